"""From rows and references to credit: corners by the native kernel, the continuous part by quadrature."""

from .settings import Credits, Settings
from .terms import Pairs, Population, attribute

__all__ = ["Credits", "Pairs", "Population", "Settings", "attribute"]
