"""Plots of an Explanation, or of a result made from several, one file each.

They are functions that draw on given axes, or on new ones, and return them.
"""

from .bar import bar
from .beeswarm import beeswarm
from .change import change
from .comparison import comparison
from .drift import drift
from .heatmap import heatmap
from .interactions import interactions
from .path import path
from .scatter import scatter
from .surface import surface
from .waterfall import waterfall
from .what_if import what_if

__all__ = [
    "bar",
    "beeswarm",
    "change",
    "comparison",
    "drift",
    "heatmap",
    "interactions",
    "path",
    "scatter",
    "surface",
    "waterfall",
    "what_if",
]
