"""The brute-force definition and the checks an importer must pass: for our tests and for people who write importers."""

from .crossings import gradient, has_gradient, reads_scores
from .definition import Corner, brute_force, find_corners, shapley, thresholds
from .importers import ImporterReport, check_importer, edge_tables
from .interactions import brute_force_interactions
from .path import jumping_columns

__all__ = [
    "Corner",
    "ImporterReport",
    "brute_force",
    "brute_force_interactions",
    "check_importer",
    "edge_tables",
    "find_corners",
    "gradient",
    "has_gradient",
    "jumping_columns",
    "reads_scores",
    "shapley",
    "thresholds",
]
