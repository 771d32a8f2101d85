"""The nodes that paths meet, counted from the definition, without the kernel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gigrad.graph import Graph, TreeEnsemble, topological

TOGETHER = 100  # pairs counted at once


@dataclass(frozen=True)
class Visits:
    """How many nodes a path meets, in all trees and on average, and how many are met by some path."""

    met: float
    some: int


def trees_of(graph: Graph) -> TreeEnsemble:
    """The first sum of trees in the order of evaluation: there is one."""
    return next(node for node in topological(graph.score) if isinstance(node, TreeEnsemble))


def count(trees: TreeEnsemble, starts: np.ndarray, ends: np.ndarray) -> Visits:
    """Nodes that the paths from each start to the end beside it meet."""
    seen = np.zeros(len(trees.feature), bool)
    total = 0
    for first in range(0, len(starts), TOGETHER):
        total += _walk(trees, starts[first : first + TOGETHER], ends[first : first + TOGETHER], seen)
    return Visits(total / len(starts), int(seen.sum()))


def _walk(trees: TreeEnsemble, starts: np.ndarray, ends: np.ndarray, seen: np.ndarray) -> int:
    pairs = np.repeat(np.arange(len(starts)), len(trees.roots))
    node = np.tile(np.asarray(trees.roots), len(starts))
    low, high = np.zeros(len(node)), np.ones(len(node))
    total = 0
    while len(node):
        total += len(node)
        seen[node] = True
        inner = trees.feature[node] >= 0
        pairs, node, low, high = pairs[inner], node[inner], low[inner], high[inner]
        column, threshold = trees.feature[node], trees.threshold[node]
        s, e = starts[pairs, column], ends[pairs, column]
        start_left, end_left = s <= threshold, e <= threshold
        crossed = start_left != end_left
        with np.errstate(all="ignore"):
            when = np.where(crossed, (threshold - s) / (e - s), 0.0)
        near, far = (
            np.where(start_left, trees.left[node], trees.right[node]),
            np.where(end_left, trees.left[node], trees.right[node]),
        )
        # a path that does not cross goes on alone; one that crosses has a part before and a part after
        before, after = ~crossed | (low < when), crossed & (when < high)
        parts = [
            (pairs[before], near[before], low[before], np.where(crossed, np.minimum(high, when), high)[before]),
            (pairs[after], far[after], np.maximum(low, when)[after], high[after]),
        ]
        pairs, node, low, high = (np.concatenate(x) for x in zip(*parts, strict=True))
    return total
