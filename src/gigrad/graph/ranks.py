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
from .forests import with_sets, words_of
from .node import Array, Concat, Input, Node, Select
from .sets import contains
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
    kept = [p for p in parts if all(r is None for r in _raw_columns(p, source, columns))]
    if not used and (not kept or len(kept) == len(parts)):
        return trees
    place, total = np.full(len(raw), -1, np.int32), 0
    for j, r in enumerate(raw):
        if r is None:
            place[j], total = total, total + 1
    split = trees.feature >= 0
    feature = trees.feature.copy()
    feature[split] = place[trees.feature[split]]
    ranks: list[Tree] = []
    new: Left = {}
    for j in used:
        for nodes in _in_order(raw[j], np.nonzero(trees.feature == j)[0], trees):
            feature[nodes] = total + len(ranks)
            ranks.append(replace(_rank(raw[j], nodes, trees, new), output=len(ranks)))
    # raw columns that no split reads are left out: a missing value there would be a score that is no number
    below = Concat((*kept, assemble(source, ranks, np.zeros(len(ranks))))) if used else Concat(tuple(kept))
    return with_sets(trees, new, source=below, feature=feature)


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


Left = dict[int, NDArray[np.bool_]]
"""For each split that has been rewritten, which places go left."""


def _rank(raw: _Raw | None, nodes: NDArray[np.int64], trees: TreeEnsemble, new: Left) -> Tree:
    """A tree that gives the place of a raw column; the splits at `nodes`, which read it, become sets of places."""
    if raw is None:
        raise InputError("Only a raw column has a place among thresholds.")
    return _number(raw, nodes, trees, new) if raw.values is None else _category(raw, raw.values, nodes, trees, new)


def _in_order(raw: _Raw | None, nodes: NDArray[np.int64], trees: TreeEnsemble) -> list[NDArray[np.int64]]:
    """The splits at `nodes`, parted so that in every part the places are in the order of the thresholds.

    Nearly always one part. Thresholds that are less than a unit of float32 apart, of libraries that read different
    precisions, may be crossed in the other order than they lie in, and one search tree cannot do both.
    """
    if raw is None or raw.values is not None:
        return [nodes]
    edges, which = _edges(trees, nodes)
    part = np.zeros(len(edges), np.int64)
    last: list[float] = []  # the place that each part has come to
    for i, place in enumerate(trees.place[edges].tolist()):
        part[i] = next((k for k, end in enumerate(last) if end <= place), len(last))
        last[part[i] : part[i] + 1] = [place]
    return [nodes[part[which] == k] for k in range(len(last))]


def _edges(trees: TreeEnsemble, nodes: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
    """One node for each distinct split on a number, by threshold and then place; and which of them each node is."""
    arrays = (trees.threshold, trees.place, trees.equal_low, trees.equal_high, trees.single)
    keys = np.stack([a[nodes] for a in arrays], axis=1)
    _, first, which = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    return nodes[first], which.ravel()


def _number(raw: _Raw, nodes: NDArray[np.int64], trees: TreeEnsemble, new: Left) -> Tree:
    """Place k of a number: how many thresholds lie below it. The last place is that of a missing value."""
    edges, which = _edges(trees, nodes)
    for node, edge in zip(nodes.tolist(), which.tolist(), strict=True):
        new[node] = np.append(np.arange(len(edges) + 1) <= edge, trees.missing_left[node])
    tree, edge_of = _search_tree(raw.column, len(edges) + 1, categories=False)
    known = edge_of >= 0
    at = edges[np.where(known, edge_of, 0)]
    threshold, low, high, place = (
        np.where(known, a[at], _LARGEST) for a in (trees.threshold, trees.equal_low, trees.equal_high, trees.place)
    )
    return replace(tree, threshold=threshold, equal=(low, high), single=known & trees.single[at], place=place)


def _category(raw: _Raw, codes: Array, nodes: NDArray[np.int64], trees: TreeEnsemble, new: Left) -> Tree:
    """Place c of a category: its code. Then come the place of all other codes, and that of a missing value."""
    if not len(codes):  # no labels are known, so all codes that a split may name
        most = max((len(words_of(trees, w)) for w in trees.category_set[nodes].tolist() if w >= 0), default=0)
        codes = np.arange(32.0 * max(most, 1))
    values = np.concatenate([codes, [raw.unknown, raw.missing]])
    for node in nodes.tolist():
        which = int(trees.category_set[node])
        if which < 0:
            goes = values <= trees.threshold[node]
        else:
            goes = contains(words_of(trees, which), np.nan_to_num(values, nan=-1.0))
        new[node] = np.where(np.isnan(values), trees.missing_left[node], goes)
    return _search_tree(raw.column, len(codes) + 1, categories=True)[0]


def _search_tree(column: int, places: int, categories: bool) -> tuple[Tree, NDArray[np.int64]]:
    """A tree that finds the place of a value of one column by halving; a missing value has the place `places`.

    Place k is code k, the last place all other codes; or else it is between edges k - 1 and k, and the edge that each
    node asks about (-1 for none) comes with the tree.
    """
    nodes: list[tuple[int, int, int, int, float]] = []  # feature, edge, left, right, value
    sets: dict[int, NDArray[np.int64]] = {}

    def leaf(place: int) -> int:
        nodes.append((-1, -1, -1, -1, float(place)))
        return len(nodes) - 1

    def grow(low: int, high: int) -> int:
        index = leaf(low)
        if high - low > 1:
            middle = (low + high) // 2
            if categories:
                sets[index] = np.arange(low, middle)
            nodes[index] = (column, middle - 1, grow(low, middle), grow(middle, high), 0.0)
        return index

    root = leaf(0)
    nodes[root] = (column, -1, grow(0, places), leaf(places), 0.0)  # only a missing value goes right
    feature, edge, left, right, value = (np.array(v) for v in zip(*nodes, strict=True))
    every = np.full(len(nodes), _LARGEST)
    return Tree(feature, every, left, right, np.zeros(len(nodes), bool), value, categories=sets), edge
