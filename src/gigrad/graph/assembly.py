"""Trees as importers read them, packed into one TreeEnsemble.

Trees are packed in batches whose working set fits the processor's cache, so that a forest of millions of nodes costs as
much a node as a small one, and needs no more memory than the packed trees and one batch.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import CorruptModelError
from .node import Array, Node
from .places import DATA_DIGITS, MIDPOINT_DIGITS, between
from .sets import pack
from .trees import Ints, TreeEnsemble

_MOST_CODES = 1 << 26  # larger codes come from damaged files, and their bit sets would fill the memory
_BATCH = 1 << 17  # nodes that are packed at once


@dataclass(frozen=True)
class Tree:
    """One tree as an importer reads it; `assemble` turns many of them into a TreeEnsemble.

    `left`/`right` may be in any order; a node is a leaf where `feature` is negative. `values` is (nodes,) for a tree
    that adds to output `output`, or (nodes, outputs) for vector leaves (`output=-1`). `categories` maps a node to the
    codes that go left. `equal` are the least and the largest numbers that the library cannot tell from the threshold it
    stores, (nodes,) each, by default the thresholds; `single` says that it reads float32, of all nodes or of each;
    `midpoints` that it stores means of two float32 numbers. `place` are the places of splits, (nodes,); None, or NaN at
    a node, where it is to be derived from the other fields.
    """

    feature: NDArray[Any]
    threshold: NDArray[Any]
    left: NDArray[Any]
    right: NDArray[Any]
    missing_left: NDArray[Any]
    values: NDArray[Any]
    output: int = 0
    categories: dict[int, NDArray[Any]] | None = None
    equal: tuple[NDArray[Any], NDArray[Any]] | None = None
    single: bool | NDArray[np.bool_] = False
    midpoints: bool = False
    place: NDArray[Any] | None = None


Arrays = dict[str, NDArray[Any]]
"""Packed trees: the attributes of a TreeEnsemble that describe nodes and trees, by name."""

DTYPES: dict[str, Any] = {
    "feature": np.int32, "threshold": np.float64, "equal_low": np.float64, "equal_high": np.float64,
    "single": np.bool_, "place": np.float64, "left": np.int32, "right": np.int32, "missing_left": np.bool_,
    "category_set": np.int32, "set_start": np.int32, "set_words": np.uint32, "value": np.int32,
    "values": np.float64, "roots": np.int32, "tree_output": np.int32,
}  # fmt: skip
_COUNTED_IN = {  # for an array of indices, the array that they index
    "left": "feature", "right": "feature", "roots": "feature", "value": "values", "category_set": "set_start",
}  # fmt: skip


def assemble(source: Node, trees: Iterable[Tree], base: Array) -> TreeEnsemble:
    """A TreeEnsemble of all trees; nodes are numbered tree by tree, parents before children.

    `trees` are read one after the other and not kept: a generator takes the least memory.
    Raises CorruptModelError for a child out of range, a cycle, or trees that the native core refuses.
    """
    parts: list[Arrays] = []
    n_trees = 0
    for batch in _batches(trees):
        parts.append(_pack(batch, first=n_trees))
        n_trees += len(batch)
    return TreeEnsemble(source=source, **join(parts), base=np.asarray(base, np.float64).ravel())


def join(parts: Sequence[Arrays]) -> Arrays:
    """The trees of all parts, one part after the other."""
    sizes = {name: [len(p[name]) for p in parts] for name in ("feature", "values", "set_words")}
    sizes["set_start"] = [len(p["set_start"]) - 1 for p in parts]
    before = {name: _before(each) for name, each in sizes.items()}
    out: Arrays = {}
    for name, dtype in DTYPES.items():
        arrays = [p[name] for p in parts]
        if name in _COUNTED_IN:
            arrays = [
                np.where(x < 0, x, x + np.int32(b))  # a negative index means none
                for x, b in zip(arrays, before[_COUNTED_IN[name]], strict=True)
            ]
        elif name == "set_start":
            ends = [x[1:] + np.int32(b) for x, b in zip(arrays, before["set_words"], strict=True)]
            arrays = [np.zeros(1, np.int32), *ends]
        out[name] = _joined(arrays, dtype)
    return out


def _batches(trees: Iterable[Tree]) -> Iterator[list[Tree]]:
    """The trees in order, as many at a time as together reach `_BATCH` nodes."""
    batch: list[Tree] = []
    size = 0
    for tree in trees:
        batch.append(tree)
        size += len(tree.feature)
        if size >= _BATCH:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _pack(trees: Sequence[Tree], first: int) -> Arrays:
    """A batch of trees packed; `first` is the number of its first tree, for messages."""
    sizes = np.array([len(t.feature) for t in trees], np.int64)
    if (sizes == 0).any():
        raise CorruptModelError(f"Tree {first + int(np.argmin(sizes))} has no nodes.")
    roots = np.cumsum(sizes) - sizes
    tree = np.repeat(np.arange(len(trees)), sizes)
    feature = _joined([np.asarray(t.feature) for t in trees], np.int64)
    leaf = feature < 0
    left, right = (
        _children([np.asarray(c) for c in side], leaf, tree, sizes, roots, first)
        for side in ([t.left for t in trees], [t.right for t in trees])
    )
    order = _parents_first(left, right, leaf, tree, roots, first)
    new = np.full(len(feature), -1, np.int64)
    new[order] = np.arange(len(order))
    sets, words = _packed_sets(trees, roots, len(feature))
    threshold = _joined([np.asarray(t.threshold) for t in trees], np.float64)
    low, high = (
        _joined([np.asarray(t.threshold if t.equal is None else t.equal[end]) for t in trees], np.float64)
        for end in (0, 1)
    )
    single = _joined([np.broadcast_to(t.single, len(t.feature)) for t in trees], np.bool_)
    midpoints = np.repeat(np.array([t.midpoints for t in trees], np.bool_), sizes)
    given = _joined([np.full(len(t.feature), np.nan) if t.place is None else t.place for t in trees], np.float64)
    numeric = ~leaf & (sets < 0)
    leaves = order[leaf[order]]
    width = np.array([np.asarray(t.values).size // len(t.feature) for t in trees], np.int64)
    value = np.full(len(feature), -1, np.int64)
    value[leaves] = np.cumsum(width[tree[leaves]]) - width[tree[leaves]]
    return {
        "feature": np.where(leaf, -1, feature)[order].astype(np.int32),
        "threshold": np.where(leaf, 0.0, threshold)[order],
        "equal_low": np.where(numeric, low, np.nan)[order],
        "equal_high": np.where(numeric, high, np.nan)[order],
        "single": (single & numeric)[order],
        "place": np.where(
            numeric & ~np.isnan(given), given, _places(low, high, single, midpoints, numeric & np.isnan(given))
        )[order],
        "left": np.where(leaf, -1, new[left])[order].astype(np.int32),
        "right": np.where(leaf, -1, new[right])[order].astype(np.int32),
        "missing_left": (_joined([np.asarray(t.missing_left) for t in trees], np.bool_) & ~leaf)[order],
        "category_set": sets[order],
        "set_start": np.cumsum([0, *(len(w) for w in words)]).astype(np.int32),
        "set_words": _joined(words, np.uint32),
        "value": value[order].astype(np.int32),
        "values": _leaf_values(trees, leaves, tree, roots, width),
        "roots": new[roots].astype(np.int32),
        "tree_output": np.array([t.output for t in trees], np.int32),
    }


def _places(
    low: Array, high: Array, single: NDArray[np.bool_], midpoints: NDArray[np.bool_], wanted: NDArray[np.bool_]
) -> Array:
    """The places of the `wanted` splits, NaN elsewhere; each distinct interval is computed once."""
    out = np.full(len(low), np.nan)
    for one, means in itertools.product((False, True), repeat=2):
        mine = wanted & (single == one) & (midpoints == means)
        both = np.empty(int(mine.sum()), np.complex128)  # as complex numbers, pairs are sorted by both parts
        both.real, both.imag = low[mine], high[mine]
        ends, which = np.unique(both, return_inverse=True)
        digits = MIDPOINT_DIGITS if means else DATA_DIGITS
        out[mine] = between(ends.real.copy(), ends.imag.copy(), np.full(len(ends), one), digits)[which.ravel()]
    return out


def _joined(parts: Sequence[NDArray[Any]], dtype: Any) -> NDArray[Any]:
    return np.concatenate(parts).astype(dtype, copy=False) if len(parts) else np.zeros(0, dtype)


def _before(sizes: Sequence[int]) -> NDArray[np.int64]:
    """The offset of each part in the concatenation."""
    ends = np.cumsum(sizes, dtype=np.int64)
    if len(ends) and ends[-1] > np.iinfo(np.int32).max:
        raise CorruptModelError(f"Trees must have fewer than 2**31 nodes and numbers together; these have {ends[-1]}.")
    return ends - np.asarray(sizes, np.int64)


def _children(
    parts: Sequence[NDArray[Any]],
    leaf: NDArray[np.bool_],
    tree: NDArray[np.int64],
    sizes: NDArray[np.int64],
    roots: NDArray[np.int64],
    first: int,
) -> NDArray[np.int64]:
    """One child of every node, numbered over the batch; leaves point at themselves."""
    child = _joined(parts, np.int64)
    bad = ~leaf & ((child < 0) | (child >= sizes[tree]))
    if bad.any():
        index = int(tree[np.argmax(bad)])
        raise CorruptModelError(f"Tree {first + index} has a child outside of its {sizes[index]} nodes.")
    return np.where(leaf, np.arange(len(leaf)), child + roots[tree])


def _parents_first(
    left: NDArray[np.int64],
    right: NDArray[np.int64],
    leaf: NDArray[np.bool_],
    tree: NDArray[np.int64],
    roots: NDArray[np.int64],
    first: int,
) -> NDArray[np.int64]:
    """The nodes that the roots reach, tree after tree, each after all of its parents.

    Kahn's algorithm on all trees at once, level by level: a node is taken once all of its parents have been, so that
    shared children cost nothing extra and a cycle leaves nodes that are never taken.
    """
    scratch = np.empty(len(leaf), np.int64)
    reached = np.zeros(len(leaf), bool)
    level = roots
    while len(level):
        reached[level] = True
        split = level[~leaf[level]]
        children = np.concatenate([left[split], right[split]])
        level = _once(children[~reached[children]], scratch)
    split = np.nonzero(reached & ~leaf)[0]
    waiting = np.bincount(np.concatenate([left[split], right[split]]), minlength=len(leaf))
    depth = np.full(len(leaf), -1, np.int64)
    level, steps = roots[waiting[roots] == 0], 0
    while len(level):
        depth[level] = steps
        split = level[~leaf[level]]
        children = np.concatenate([left[split], right[split]])
        np.subtract.at(waiting, children, 1)
        level = _once(children[waiting[children] == 0], scratch)
        steps += 1
    stuck = reached & (depth < 0)
    if stuck.any():
        index = first + int(tree[np.argmax(stuck)])
        raise CorruptModelError(f"Tree {index} has a cycle: a node is its own descendant.")
    found = np.nonzero(reached)[0]
    return found[np.lexsort((depth[found], tree[found]))]


def _once(nodes: NDArray[np.int64], scratch: NDArray[np.int64]) -> NDArray[np.int64]:
    """The distinct nodes, in any order, without sorting or hashing: of duplicates, the last one written is kept."""
    places = np.arange(len(nodes))
    scratch[nodes] = places
    kept: NDArray[np.int64] = nodes[scratch[nodes] == places]
    return kept


def _packed_sets(trees: Sequence[Tree], roots: NDArray[np.int64], size: int) -> tuple[Ints, list[NDArray[np.uint32]]]:
    """The category set of every node (-1 for none), and the sets' bits."""
    sets = np.full(size, -1, np.int32)
    words: list[NDArray[np.uint32]] = []
    for root, tree in zip(roots.tolist(), trees, strict=True):
        for node, codes in (tree.categories or {}).items():
            if len(codes) and not 0 <= min(codes) <= max(codes) < _MOST_CODES:
                raise CorruptModelError(f"A category set must hold codes from 0 to {_MOST_CODES - 1}; one does not.")
            sets[root + node] = len(words)
            words.append(pack(codes))
    return sets, words


def _leaf_values(
    trees: Sequence[Tree],
    leaves: NDArray[np.int64],
    tree: NDArray[np.int64],
    roots: NDArray[np.int64],
    width: NDArray[np.int64],
) -> Array:
    """The numbers of the leaves, in the order of `leaves`, one or several a leaf."""
    numbers = _joined([np.asarray(t.values, np.float64).ravel() for t in trees], np.float64)
    ends = np.cumsum([np.asarray(t.values).size for t in trees], dtype=np.int64)
    owner = tree[leaves]
    first = ends[owner] - np.diff(ends, prepend=0)[owner] + (leaves - roots[owner]) * width[owner]
    steps = width[owner]
    out: Array = numbers[np.repeat(first - (np.cumsum(steps) - steps), steps) + np.arange(steps.sum())]
    return out
