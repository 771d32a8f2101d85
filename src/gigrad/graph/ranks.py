"""Trees of a head that also read raw columns: each of these is replaced by its place among the trees' thresholds.

A tree over scores jumps when a score passes a threshold. Where one of its columns is a raw one, the jump is that of an
ordinary split, so it should happen at that split's own time, exactly, ties and missing values included. The place of a
raw value among the thresholds is itself a tree of the raw columns, and trees over trees are exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .assembly import Tree, assemble
from .columns import Column
from .encode import Lookup
from .node import Array, Concat, Input, Node, Select
from .sets import contains, pack
from .trees import TreeEnsemble

_LARGEST = float(np.finfo(np.float64).max)


@dataclass(frozen=True, eq=False)
class _Raw:
    """A raw column as a head reads it: `values` are what the codes of a category stand for, None for a number."""

    column: int
    values: Array | None = None
    unknown: float = -1.0
    missing: float = np.nan


def over_ranks(trees: TreeEnsemble, source: Input, columns: Sequence[Column]) -> TreeEnsemble:
    """The same trees, reading places among thresholds instead of the raw columns that are among their source's."""
    parts = _parts(trees.source)
    raw = [r for part in parts for r in _raw_columns(part, source, columns)]
    used = [j for j, r in enumerate(raw) if r is not None and (trees.feature == j).any()]
    if not used:
        return trees
    kept = [p for p in parts if all(r is None for r in _raw_columns(p, source, columns))]
    place, total = np.full(len(raw), -1, np.int32), 0
    for j, r in enumerate(raw):
        if r is None:
            place[j], total = total, total + 1
    place[used] = total + np.arange(len(used))
    ranks: list[Tree] = []
    new = _Splits(trees)
    for output, j in enumerate(used):
        ranks.append(replace(_rank(raw[j], np.nonzero(trees.feature == j)[0], trees, new), output=output))
    split = trees.feature >= 0
    feature = trees.feature.copy()
    feature[split] = place[trees.feature[split]]
    below = Concat((*kept, assemble(source, ranks, np.zeros(len(used)))))
    return new.built(source=below, feature=feature)


# ---------------------------------------------------------------- which columns are raw


def _parts(node: Node) -> list[Node]:
    return [p for s in node.sources for p in _parts(s)] if isinstance(node, Concat) else [node]


def _raw_columns(part: Node, source: Input, columns: Sequence[Column]) -> list[_Raw | None]:
    if part is source:
        return [_direct(j, columns[j]) for j in range(source.width)]
    if isinstance(part, Select) and part.source is source:
        return [_direct(j, columns[j]) for j in part.columns]
    if isinstance(part, Lookup) and part.source is source and part.width == 1:
        return [_Raw(part.column, part.table[:, 0], float(part.unknown[0]), float(part.missing[0]))]
    return [None] * part.width


def _direct(j: int, column: Column) -> _Raw:
    if column.kind == "number":
        return _Raw(j)
    return _Raw(j, np.arange(len(column.labels or ()), dtype=np.float64))


# ---------------------------------------------------------------- places as trees, splits as sets of places


class _Splits:
    """The splits of trees being rewritten as sets of places."""

    def __init__(self, trees: TreeEnsemble) -> None:
        self.trees = trees
        self.words = [trees.set_words[a:b] for a, b in zip(trees.set_start[:-1], trees.set_start[1:], strict=True)]
        self.category_set, self.threshold = trees.category_set.copy(), trees.threshold.copy()
        self.place = trees.place.copy()

    def put(self, node: int, left: NDArray[np.bool_]) -> None:
        """Let the places marked `left`, and no others, go left."""
        self.category_set[node], self.threshold[node], self.place[node] = len(self.words), 0.0, np.nan
        self.words.append(pack(np.nonzero(left)[0]))

    def built(self, *, source: Node, feature: NDArray[np.int32]) -> TreeEnsemble:
        starts = np.concatenate([[0], np.cumsum([len(w) for w in self.words])]).astype(np.int32)
        return replace(
            self.trees, source=source, feature=feature, threshold=self.threshold, place=self.place,
            category_set=self.category_set, set_start=starts,
            set_words=np.concatenate(self.words) if self.words else np.zeros(0, np.uint32),
        )  # fmt: skip


def _rank(raw: _Raw | None, nodes: NDArray[np.int64], trees: TreeEnsemble, new: _Splits) -> Tree:
    """A tree that gives the place of a raw column; the splits at `nodes`, which read it, become sets of places."""
    if raw is None:
        raise InputError("Only a raw column has a place among thresholds.")
    return _number(raw, nodes, trees, new) if raw.values is None else _category(raw, raw.values, nodes, trees, new)


def _number(raw: _Raw, nodes: NDArray[np.int64], trees: TreeEnsemble, new: _Splits) -> Tree:
    """Place k of a number: how many thresholds lie below it. The last place is that of a missing value."""
    edges, first = np.unique(trees.threshold[nodes], return_index=True)
    some = nodes[first]
    for node in nodes.tolist():
        left = np.append(np.arange(len(edges) + 1) <= np.searchsorted(edges, trees.threshold[node]), False)
        left[-1] = trees.missing_left[node]
        new.put(node, left)
    tree = _search_tree(raw.column, len(edges) + 1, edges=edges)
    at = np.minimum(np.searchsorted(edges, tree.threshold), len(edges) - 1)
    known = edges[at] == tree.threshold
    low, high = (np.where(known, ends[some][at], tree.threshold) for ends in (trees.equal_low, trees.equal_high))
    return replace(tree, equal=(low, high), single=bool(trees.single[some].any()))


def _category(raw: _Raw, codes: Array, nodes: NDArray[np.int64], trees: TreeEnsemble, new: _Splits) -> Tree:
    """Place c of a category: its code. Then come the place of all other codes, and that of a missing value."""
    if not len(codes):  # no labels are known, so all codes that a split may name
        most = max(len(new.words[w]) for w in trees.category_set[nodes].tolist())
        codes = np.arange(32.0 * max(most, 1))
    values = np.concatenate([codes, [raw.unknown, raw.missing]])
    for node in nodes.tolist():
        which = int(trees.category_set[node])
        if which < 0:
            goes = values <= trees.threshold[node]
        else:
            goes = contains(new.words[which], np.nan_to_num(values, nan=-1.0))
        new.put(node, np.where(np.isnan(values), trees.missing_left[node], goes))
    return _search_tree(raw.column, len(codes) + 1)


def _search_tree(column: int, places: int, edges: Array | None = None) -> Tree:
    """A tree that finds the place of a value of one column by halving; a missing value has the place `places`.

    With `edges`, place k is between edges k - 1 and k; without, it is code k, the last place all other codes.
    """
    nodes: list[tuple[int, float, int, int, float]] = []  # feature, threshold, left, right, value
    categories: dict[int, NDArray[np.int64]] = {}

    def leaf(place: int) -> int:
        nodes.append((-1, 0.0, -1, -1, float(place)))
        return len(nodes) - 1

    def grow(low: int, high: int) -> int:
        index = leaf(low)
        if high - low > 1:
            middle = (low + high) // 2
            if edges is None:
                categories[index] = np.arange(low, middle)
            threshold = 0.0 if edges is None else float(edges[middle - 1])
            nodes[index] = (column, threshold, grow(low, middle), grow(middle, high), 0.0)
        return index

    root = leaf(0)
    nodes[root] = (column, _LARGEST, grow(0, places), leaf(places), 0.0)  # only a missing value goes right
    feature, threshold, left, right, value = (np.array(v) for v in zip(*nodes, strict=True))
    return Tree(feature, threshold, left, right, np.zeros(len(nodes), bool), value, categories=categories)
