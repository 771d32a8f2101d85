"""From rows and references to credit: corners by the native kernel, the continuous part by quadrature."""

from .paths import Pairs, Population
from .settings import Credits, Settings
from .terms import attribute, linear_terms

__all__ = ["Credits", "Pairs", "Population", "Settings", "attribute", "linear_terms"]
