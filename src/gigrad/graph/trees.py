"""Sums of decision trees, every library's rule written in one form: `x <= threshold` in float64 goes left.

A node is a numeric split, a category split (codes in a set go left) or a leaf. NaN takes the node's missing side.
Children come after their parent, so a cycle cannot be written down; two parents may share a child.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import kernels
from ..errors import CorruptModelError
from .node import Array, Node
from .sets import pack

Ints = NDArray[np.int32]
_MOST_CODES = 1 << 26  # far above any table; a larger code is a damaged one, and its bits would fill the memory


@dataclass(frozen=True, eq=False)
class TreeEnsemble(Node):
    """`base + sum of trees` over the columns of `source`.

    Attributes
    ----------
    feature : (nodes,) int32
        Column of `source` that a split reads; -1 marks a leaf.
    threshold : (nodes,) float64
        Numeric splits: `x <= threshold` goes left. Unused elsewhere.
    left, right : (nodes,) int32
        Children of a split, both with a larger index than their parent's.
    missing_left : (nodes,) bool
        The side that NaN takes.
    category_set : (nodes,) int32
        Category splits: which set of `set_words` goes left; -1 for numeric splits and leaves.
    set_start : (sets + 1,) int32
        Where each set begins in `set_words`.
    set_words : (words,) uint32
        Bit `c % 32` of word `c // 32` of a set says that code `c` belongs to it. Codes beyond it do not.
    value : (nodes,) int32
        Leaves: where the leaf's numbers begin in `values`; -1 for splits.
    values : (numbers,) float64
        Leaf values: one number a leaf for a tree with an output of its own, `outputs` numbers for a vector tree.
    roots : (trees,) int32
    tree_output : (trees,) int32
        The output column a tree adds to; -1 for trees with vector leaves.
    base : (outputs,) float64
    """

    source: Node
    feature: Ints
    threshold: Array
    left: Ints
    right: Ints
    missing_left: NDArray[np.bool_]
    category_set: Ints
    set_start: Ints
    set_words: NDArray[np.uint32]
    value: Ints
    values: Array
    roots: Ints
    tree_output: Ints
    base: Array

    def __post_init__(self) -> None:
        _ = self.forest  # building it checks every index, so that no walk meets a bad one

    @cached_property
    def forest(self) -> Any:
        """The native form of the trees, checked."""
        try:
            return kernels.Forest(
                self.source.width, self.feature, self.threshold, self.left, self.right, self.missing_left,
                self.category_set, self.set_start, self.set_words, self.value, self.values, self.roots,
                self.tree_output, self.base,
            )  # fmt: skip
        except ValueError as error:
            raise CorruptModelError(f"These trees cannot be walked: {error}") from None

    @cached_property
    def columns_of_outputs(self) -> tuple[Ints, ...]:
        """The columns that the trees of each output split on: those of all trees where outputs share them."""
        order = np.argsort(self.roots)
        tree = np.searchsorted(self.roots[order], np.arange(len(self.feature)), side="right") - 1
        output = self.tree_output[order][tree]  # of each node, where trees lie one after the other
        split = np.nonzero(self.feature >= 0)[0]
        apart = (output >= 0).all() and all((output[c[split]] == output[split]).all() for c in (self.left, self.right))
        if not apart:
            return (np.unique(self.feature[split]),) * self.width
        return tuple(np.unique(self.feature[split[output[split] == k]]) for k in range(self.width))

    @cached_property
    def category_columns(self) -> Ints:
        """The columns that some split reads as a category."""
        return np.unique(self.feature[(self.feature >= 0) & (self.category_set >= 0)])

    @property
    def width(self) -> int:
        return len(self.base)

    def forward(self, *inputs: Array) -> Array:
        return kernels.predict(self.forest, inputs[0])

    def __getstate__(self) -> dict[str, Any]:
        """What is pickled: all but the native form, which is built again when it is needed."""
        return {name: value for name, value in self.__dict__.items() if name != "forest"}

    def scaled(self, factor: float) -> TreeEnsemble:
        """The same trees with every leaf and the base multiplied by `factor`."""
        return replace(self, values=self.values * factor, base=self.base * factor)


@dataclass(frozen=True)
class Tree:
    """One tree as an importer reads it; `assemble` turns a list of them into a TreeEnsemble.

    `left`/`right` may be in any order; a node is a leaf where `feature` is negative. `values` is (nodes,) for a tree
    that adds to output `output`, or (nodes, outputs) for vector leaves (`output=-1`). `categories` maps a node to the
    codes that go left.
    """

    feature: NDArray[Any]
    threshold: NDArray[Any]
    left: NDArray[Any]
    right: NDArray[Any]
    missing_left: NDArray[Any]
    values: NDArray[Any]
    output: int = 0
    categories: dict[int, NDArray[Any]] | None = None


def assemble(source: Node, trees: Sequence[Tree], base: Array) -> TreeEnsemble:
    """Number the nodes of all trees parents-first, tree after tree, and pack them into one TreeEnsemble.

    Raises CorruptModelError for a child out of range, a cycle, or trees the walk cannot take.
    """
    base = np.asarray(base, np.float64).ravel()
    sizes = np.array([len(t.feature) for t in trees], np.int64)
    if (sizes == 0).any():
        raise CorruptModelError(f"Tree {int(np.argmin(sizes))} has no nodes.")
    roots = np.cumsum(sizes) - sizes
    tree = np.repeat(np.arange(len(trees)), sizes)
    feature = _joined([np.asarray(t.feature) for t in trees], np.int64)
    leaf = feature < 0
    left, right = (
        _children([np.asarray(c) for c in side], leaf, tree, sizes, roots)
        for side in ([t.left for t in trees], [t.right for t in trees])
    )
    order = _parents_first(left, right, leaf, tree, roots)
    new = np.full(len(feature), -1, np.int64)
    new[order] = np.arange(len(order))
    sets, words = _packed_sets(trees, roots, len(feature))
    leaves = order[leaf[order]]
    width = np.array([np.asarray(t.values).size // len(t.feature) for t in trees], np.int64)
    starts = np.cumsum(width[tree[leaves]]) - width[tree[leaves]]
    value = np.full(len(feature), -1, np.int64)
    value[leaves] = starts
    return TreeEnsemble(
        source=source,
        feature=np.where(leaf, -1, feature)[order].astype(np.int32),
        threshold=np.where(leaf, 0.0, _joined([np.asarray(t.threshold) for t in trees], np.float64))[order],
        left=np.where(leaf, -1, new[left])[order].astype(np.int32),
        right=np.where(leaf, -1, new[right])[order].astype(np.int32),
        missing_left=(_joined([np.asarray(t.missing_left) for t in trees], np.bool_) & ~leaf)[order],
        category_set=sets[order],
        set_start=np.concatenate([[0], np.cumsum([len(w) for w in words])]).astype(np.int32),
        set_words=_joined(words, np.uint32),
        value=value[order].astype(np.int32),
        values=_leaf_values(trees, leaves, tree, roots, width),
        roots=new[roots].astype(np.int32),
        tree_output=np.asarray([t.output for t in trees], np.int32),
        base=base,
    )


def _joined(parts: Sequence[NDArray[Any]], dtype: Any) -> NDArray[Any]:
    return np.concatenate(parts).astype(dtype, copy=False) if len(parts) else np.zeros(0, dtype)


def _children(
    parts: Sequence[NDArray[Any]],
    leaf: NDArray[np.bool_],
    tree: NDArray[np.int64],
    sizes: NDArray[np.int64],
    roots: NDArray[np.int64],
) -> NDArray[np.int64]:
    """One child of every node, numbered over all trees; leaves point at themselves."""
    child = _joined(parts, np.int64)
    bad = ~leaf & ((child < 0) | (child >= sizes[tree]))
    if bad.any():
        index = int(tree[np.argmax(bad)])
        raise CorruptModelError(f"Tree {index} has a child outside of its {sizes[index]} nodes.")
    return np.where(leaf, np.arange(len(leaf)), child + roots[tree])


def _parents_first(
    left: NDArray[np.int64],
    right: NDArray[np.int64],
    leaf: NDArray[np.bool_],
    tree: NDArray[np.int64],
    roots: NDArray[np.int64],
) -> NDArray[np.int64]:
    """The nodes that the roots reach, tree after tree, each after all of its parents.

    All trees are peeled at once, level by level: a node comes when the last of its parents has come, so shared
    children cost nothing extra and a cycle shows as nodes that never come.
    """
    reached = np.zeros(len(leaf), bool)
    level = roots
    while len(level):
        reached[level] = True
        split = level[~leaf[level]]
        level = np.unique(np.concatenate([left[split], right[split]]))
        level = level[~reached[level]]
    split = np.nonzero(reached & ~leaf)[0]
    waiting = np.zeros(len(leaf), np.int64)
    np.add.at(waiting, left[split], 1)
    np.add.at(waiting, right[split], 1)
    depth = np.full(len(leaf), -1, np.int64)
    level, steps = roots[waiting[roots] == 0], 0
    while len(level):
        depth[level] = steps
        split = level[~leaf[level]]
        children = np.concatenate([left[split], right[split]])
        np.subtract.at(waiting, children, 1)
        level = np.unique(children[waiting[children] == 0])
        steps += 1
    stuck = reached & (depth < 0)
    if stuck.any():
        raise CorruptModelError(f"Tree {int(tree[np.argmax(stuck)])} has a cycle: a node is its own descendant.")
    found = np.nonzero(reached)[0]
    return found[np.lexsort((depth[found], tree[found]))]


def _packed_sets(
    trees: Sequence[Tree], roots: NDArray[np.int64], size: int
) -> tuple[NDArray[np.int32], list[NDArray[np.uint32]]]:
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
