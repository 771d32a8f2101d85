"""Pictures of an Explanation, one file each: functions that draw on given axes, or on new ones, and return them."""

from .bar import bar
from .beeswarm import beeswarm
from .drift import drift
from .heatmap import heatmap
from .path import path
from .scatter import scatter
from .surface import surface
from .waterfall import waterfall

__all__ = ["bar", "beeswarm", "drift", "heatmap", "path", "scatter", "surface", "waterfall"]
