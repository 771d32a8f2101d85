"""Trees of a head that also read raw columns: each of these is replaced by its rank among the trees' thresholds.

A tree over scores jumps when a score passes a threshold. If one of its columns is a raw one, the jump is that of an
ordinary split, so it should happen at that split's own time, exactly, ties and missing values included. The rank of a
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
from .growing import Branch, Part, edges_of, grown, halved
from .node import Array, Concat, Input, Node, Select
from .sets import contains
from .trees import TreeEnsemble


@dataclass(frozen=True, eq=False)
class _Raw:
    """A raw column as a head reads it: `values` are those that the codes of a category encode, None for a number."""

    column: int
    values: Array | None = None
    unknown: float = -1.0
    missing: float = np.nan


def over_ranks(trees: TreeEnsemble, source: Input, columns: Sequence[Column]) -> TreeEnsemble:
    """The same trees, reading ranks among thresholds in place of the raw columns in their source."""
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
    # raw columns that no split reads are left out: a missing value there would make a score NaN
    below = Concat((*kept, assemble(source, ranks, np.zeros(len(ranks))))) if used else Concat(tuple(kept))
    return with_sets(trees, new, source=below, feature=feature)


# ---------------------------------------------------------------- which columns are raw


def _parts(node: Node) -> list[Node]:
    return [p for s in node.sources for p in _parts(s)] if isinstance(node, Concat) else [node]


def _raw_columns(part: Node, source: Input, columns: Sequence[Column]) -> list[_Raw | None]:
    """For each output of `part`, the raw column that it is, or the one that it looks up; None for others."""
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


# ---------------------------------------------------------------- ranks as trees, splits as sets of ranks


Left = dict[int, NDArray[np.bool_]]
"""For each split that has been rewritten, which ranks go left."""


def _rank(raw: _Raw | None, nodes: NDArray[np.int64], trees: TreeEnsemble, new: Left) -> Tree:
    """A tree whose output is the rank of a raw column; the splits at `nodes`, which read it, become sets of ranks."""
    if raw is None:
        raise InputError("Only a raw column can be replaced by its rank among thresholds.")
    return _number(raw, nodes, trees, new) if raw.values is None else _category(raw, raw.values, nodes, trees, new)


def _in_order(raw: _Raw | None, nodes: NDArray[np.int64], trees: TreeEnsemble) -> list[NDArray[np.int64]]:
    """The splits at `nodes`, in groups within which the places increase with the thresholds.

    Nearly always one group. Thresholds less than a unit of float32 apart, of libraries with different precisions, may
    have places in the opposite order, and one search tree cannot represent both orders.
    """
    if raw is None or raw.values is not None:
        return [nodes]
    edges, which = _edges(trees, nodes)
    part = np.zeros(len(edges), np.int64)
    last: list[float] = []  # the last place in each group
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
    """The tree for a number: its rank is how many thresholds lie below it. The last rank is that of a missing value."""
    edges, which = _edges(trees, nodes)
    for node, edge in zip(nodes.tolist(), which.tolist(), strict=True):
        new[node] = np.append(np.arange(len(edges) + 1) <= edge, trees.missing_left[node])
    at = edges_of(trees, edges)
    places = halved(_places(len(edges) + 1), lambda k, low, high: Branch(raw.column, low, high, at[k]))
    return grown(Branch(raw.column, places, len(edges) + 1.0))


def _category(raw: _Raw, codes: Array, nodes: NDArray[np.int64], trees: TreeEnsemble, new: Left) -> Tree:
    """The tree for a category: its rank is its code. Then follow one rank for all other codes and one for missing."""
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
    last = len(codes)

    def split(k: int, low: Part, high: Part) -> Branch:
        return Branch(raw.column, low, high, codes=np.arange(k + 1))

    return grown(Branch(raw.column, halved(_places(last + 1), split), last + 1.0))


def _places(count: int) -> list[Part]:
    """The leaf values of a tree of ranks: 0, 1, 2, ..."""
    return [float(k) for k in range(count)]
