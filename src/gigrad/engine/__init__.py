"""From rows and references to credit: corners by the native kernel, the continuous part by quadrature."""

from .completeness import attribute, held_to
from .links import as_link
from .paths import Pairs, Population
from .progress import Jumps, jumps_unlisted, progress, scores_along
from .roles import categories_read
from .settings import Credits, Settings
from .terms import linear_terms

__all__ = [
    "Credits",
    "Jumps",
    "Pairs",
    "Population",
    "Settings",
    "as_link",
    "attribute",
    "categories_read",
    "held_to",
    "jumps_unlisted",
    "linear_terms",
    "progress",
    "scores_along",
]
