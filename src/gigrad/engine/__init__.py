"""From rows and references to credit: corners by the native kernel, the continuous part by quadrature."""

from .cells import told_apart
from .closed_form.links import as_link
from .completeness import attribute, attribute_singly, held_to
from .paths import KnownStarts, Pairs, Population, distinct
from .progress import ScoreJumps, jumps_unlisted, progress, scores_along
from .roles import categories_read, columns_read
from .settings import Credits, Settings
from .terms import LinkedTrees, as_linked_trees, linear_terms

__all__ = [
    "Credits",
    "KnownStarts",
    "LinkedTrees",
    "Pairs",
    "Population",
    "ScoreJumps",
    "Settings",
    "as_link",
    "as_linked_trees",
    "attribute",
    "attribute_singly",
    "categories_read",
    "columns_read",
    "distinct",
    "held_to",
    "jumps_unlisted",
    "linear_terms",
    "progress",
    "scores_along",
    "told_apart",
]
