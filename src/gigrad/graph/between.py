"""A graph that can be evaluated at any point of a path, for explaining the path in parts.

The side of a split follows from its threshold, the time of its crossing from its place, and on rows the two agree. A
point inside a path may hold values that no row has: a flag of 0.3 lies beyond a threshold of 1e-35 while the path,
which crosses that split at one half, has not crossed it yet. Here thresholds are moved to the places, so that every
point is on the side that the path has there; and since times are computed from shortest decimals where a library reads
float32, rows are converted to those.
A value outside of a discrete column's support counts with the nearest value of the support.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from .model import Graph
from .node import Array, Node, topological
from .rewire import rewire
from .trees import TreeEnsemble

Bools = NDArray[np.bool_]

_NARROW = 4.0
"""The largest width, in units of float32, of an interval of numbers that rounding makes equal: two halves and a cast.
Wider intervals are flat pieces of transformers, which lie on one side as a whole: there the threshold stays."""


@dataclass(frozen=True, eq=False)
class Between:
    """The nodes of a graph in a form that can be evaluated at points between rows.

    Attributes
    ----------
    nodes : tuple of Node
    decimal : (p,) bool
        The columns whose values are replaced by the shortest decimals of their float32 forms.
    """

    nodes: tuple[Node, ...]
    decimal: Bools

    @classmethod
    def of(cls, graph: Graph, *nodes: Node) -> Between:
        """The same nodes with their splits' thresholds at the places; rows enter at the graph's input as before."""
        single, wide = (np.zeros(graph.input.width, np.bool_) for _ in range(2))
        new: dict[Node, Node] = {graph.input: graph.input}
        for tree in topological(*nodes):
            if isinstance(tree, TreeEnsemble) and tree.source is graph.input:
                numeric = (tree.feature >= 0) & (tree.category_set < 0)
                single[tree.feature[numeric & tree.single]] = True
                wide[tree.feature[numeric & ~tree.single]] = True
                new[tree] = _moved(tree, numeric)
        moved = rewire(nodes, new)
        return cls(tuple(moved[node] for node in nodes), single & ~wide)

    def read(self, rows: Array) -> Array:
        """Rows converted for the input of these nodes, (n, p)."""
        out = rows.copy()
        with np.errstate(over="ignore"):
            short = rows[:, self.decimal].astype(np.float32)
        # NumPy writes float32 as the shortest decimal that reads back as the same number
        out[:, self.decimal] = np.where(np.isfinite(short), short.astype(str).astype(np.float64), rows[:, self.decimal])
        return out


def _moved(trees: TreeEnsemble, numeric: Bools) -> TreeEnsemble:
    """The trees with their splits at the places, so that they compare as numbers between values."""
    with np.errstate(invalid="ignore", over="ignore"):
        unit = np.spacing(np.abs(trees.place).astype(np.float32)).astype(np.float64)
        narrow = trees.equal_high - trees.equal_low <= _NARROW * unit
    at = numeric & narrow & np.isfinite(trees.place)
    place = trees.place[at]
    below = trees.threshold[at] < place  # a value equal to the stored threshold goes right
    threshold, low, high = trees.threshold.copy(), trees.equal_low.copy(), trees.equal_high.copy()
    threshold[at] = np.where(below, np.nextafter(place, -np.inf), place)
    low[at] = high[at] = place
    if not trees.single.any() and np.array_equal(threshold, trees.threshold):
        return trees
    return replace(trees, threshold=threshold, equal_low=low, equal_high=high, single=np.zeros_like(trees.single))
