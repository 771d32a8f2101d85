"""Models made so that one constant of accuracy matters, for accuracy_limits.py; each file has those of one part."""

from . import crossings, functions, heads, layers, narrow, rounding, tables
from .case import CASES, Found

__all__ = ["CASES", "Found", "crossings", "functions", "heads", "layers", "narrow", "rounding", "tables"]
