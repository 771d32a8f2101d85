"""Trees over scores and raw columns as trees over plain rows: the inverse of `ranks`.

Scores that move in straight lines can be treated as columns, by an engine for trees of columns. For that the ranks
among thresholds, which replace raw columns, become splits of those columns again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from .forests import with_sets, words_of
from .node import Input, Node
from .rewire import columns_of
from .sets import contains
from .trees import TreeEnsemble

_EDGE = ("threshold", "equal_low", "equal_high", "single", "place")


@dataclass(frozen=True, eq=False)
class PlainTrees:
    """Trees over rows extended by scores as further columns.

    Attributes
    ----------
    trees : TreeEnsemble
        Over an Input of the columns of the rows, then the scores.
    scores : tuple of (Node, int)
        The node and the column of each score.
    """

    trees: TreeEnsemble
    scores: tuple[tuple[Node, int], ...]


def unranked(trees: TreeEnsemble, source: Input) -> PlainTrees | None:
    """The same trees over plain rows; None if they read trees other than ranks of raw columns."""
    read = columns_of(trees.source)
    used = np.unique(trees.feature[trees.feature >= 0]).tolist()
    scores = [read[j] for j in used if read[j][0] is not source and not _on_rows(read[j][0], source)]
    place = np.zeros(len(read), np.int32)
    columns = _Columns(trees)
    for j in used:
        node, k = read[j]
        if isinstance(node, TreeEnsemble):
            if node.source is not source or not columns.unrank(j, node, k):
                return None
            place[j] = columns.raw
        else:
            place[j] = k if node is source else source.width + scores.index((node, k))
    of_score = (trees.feature >= 0) & (place[np.maximum(trees.feature, 0)] >= source.width)
    # a score is a float64 number, whatever the trees round it to before comparing: the time of its crossing follows
    # from the threshold that decides the side
    for name, value in (("equal_low", trees.threshold), ("equal_high", trees.threshold), ("place", trees.threshold)):
        columns.arrays[name][of_score] = value[of_score]
    columns.arrays["single"][of_score] = False
    feature = np.where(trees.feature >= 0, place[np.maximum(trees.feature, 0)], -1).astype(np.int32)
    wide = Input(source.width + len(scores), source.nominal)
    plain = replace(trees, source=wide, feature=feature, **columns.arrays)
    return PlainTrees(with_sets(plain, columns.left), tuple(scores))


def _on_rows(node: Node, source: Input) -> bool:
    return isinstance(node, TreeEnsemble) and node.source is source


class _Columns:
    """The splits of trees, of which those on ranks of raw columns are rewritten one by one."""

    def __init__(self, trees: TreeEnsemble) -> None:
        self.trees, self.raw = trees, -1
        names = (*_EDGE, "category_set", "missing_left", "left", "right")
        self.arrays = {name: getattr(trees, name).copy() for name in names}
        self.left: dict[int, NDArray[np.bool_]] = {}

    def unrank(self, column: int, ranks: TreeEnsemble, output: int) -> bool:
        """Rewrite the splits on a column that is an output of `ranks`; False if it is not the rank of a raw column."""
        search = _Search.of(ranks, output)
        nodes = np.nonzero(self.trees.feature == column)[0].tolist()
        if search is None or (self.trees.category_set[nodes] < 0).any():
            return False
        self.raw = search.column
        for node in nodes:
            words = words_of(self.trees, int(self.trees.category_set[node]))
            marks = contains(words, np.arange(search.places + 1))
            goes, missing = marks[:-1], bool(marks[-1])
            if search.category:
                self._category(node, goes, missing)
            elif not self._number(node, goes, missing, search, ranks):
                return False
        return True

    def _category(self, node: int, goes: NDArray[np.bool_], missing: bool) -> None:
        """Rewrite a split by the codes that go left; the last rank is that of all other codes, which go right."""
        if goes[-1]:
            goes, missing = ~goes, not missing
            self._swap(node)
        self.left[node] = goes
        self.arrays["missing_left"][node] = missing

    def _number(self, node: int, goes: NDArray[np.bool_], missing: bool, search: _Search, ranks: TreeEnsemble) -> bool:
        """Write a split on a rank as one on the column itself, if one threshold separates its values."""
        edge = int(goes.sum()) - 1
        if not goes[: edge + 1].all() or not 0 <= edge < len(search.edges):
            return False
        for name in _EDGE:
            self.arrays[name][node] = getattr(ranks, name)[search.edges[edge]]
        self.arrays["category_set"][node] = -1
        self.arrays["missing_left"][node] = missing
        return True

    def _swap(self, node: int) -> None:
        left, right = self.arrays["left"], self.arrays["right"]
        left[node], right[node] = right[node], left[node]


@dataclass(frozen=True)
class _Search:
    """A search tree of `ranks`: the raw column, its number of ranks, and the node of each edge in order."""

    column: int
    places: int
    category: bool
    edges: tuple[int, ...]

    @classmethod
    def of(cls, ranks: TreeEnsemble, output: int) -> _Search | None:
        """The search tree that gives one output; None if this output is no rank."""
        own = np.nonzero(ranks.tree_output == output)[0]
        if len(own) != 1 or ranks.base[output] != 0.0 or (ranks.tree_output < 0).any():
            return None
        root = int(ranks.roots[own[0]])
        if ranks.feature[root] < 0 or ranks.missing_left[root] or ranks.threshold[root] < np.finfo(np.float64).max:
            return None
        edges: list[int] = []
        leaves: list[float] = []
        stack = [int(ranks.left[root])]
        while stack:  # in order: the left part, the edge, the right part
            node = stack.pop()
            if node < 0:
                edges.append(~node)
            elif ranks.feature[node] < 0:
                leaves.append(float(ranks.values[ranks.value[node]]))
            else:
                stack += [int(ranks.right[node]), ~node, int(ranks.left[node])]
        if leaves != list(range(len(leaves))):
            return None
        category = bool((ranks.category_set[edges] >= 0).any()) if edges else False
        return cls(int(ranks.feature[root]), len(leaves), category, tuple(edges))
