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

Ints = NDArray[np.int32]


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
        self.forest  # noqa: B018  (building it checks every index, so that no walk meets a bad one)

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

    @property
    def width(self) -> int:
        return len(self.base)

    def forward(self, *inputs: Array) -> Array:
        return kernels.predict(self.forest, inputs[0])

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
    """Number the nodes of all trees parents-first and pack them into one TreeEnsemble.

    Raises CorruptModelError for a child out of range or a cycle.
    """
    parts: dict[str, list[Any]] = {k: [] for k in ("feature", "threshold", "left", "right", "missing", "set", "value")}
    words: list[NDArray[np.uint32]] = []
    values: list[Array] = []
    roots: list[int] = []
    n_nodes = n_values = 0
    for index, tree in enumerate(trees):
        order, new = _parents_first(tree, index)
        feature = np.asarray(tree.feature)[order].astype(np.int32)
        leaf = feature < 0
        sets = np.full(len(order), -1, np.int32)
        for node, codes in (tree.categories or {}).items():
            if new[node] >= 0:
                sets[new[node]] = len(words)
                words.append(_bits(codes))
        leaf_values = np.asarray(tree.values, np.float64)[order[leaf]]
        step = 1 if leaf_values.ndim == 1 else leaf_values.shape[1]
        value = np.full(len(order), -1, np.int32)
        value[leaf] = n_values + step * np.arange(leaf.sum())
        for name, child in (("left", tree.left), ("right", tree.right)):
            moved = new[np.where(leaf, 0, np.asarray(child)[order])] + n_nodes
            parts[name].append(np.where(leaf, -1, moved).astype(np.int32))
        parts["feature"].append(np.where(leaf, -1, feature).astype(np.int32))
        parts["threshold"].append(np.where(leaf, 0.0, np.asarray(tree.threshold, np.float64)[order]))
        parts["missing"].append(np.asarray(tree.missing_left)[order].astype(bool) & ~leaf)
        parts["set"].append(sets)
        parts["value"].append(value)
        values.append(leaf_values.ravel())
        roots.append(n_nodes)
        n_nodes += len(order)
        n_values += leaf_values.size
    starts = np.concatenate([[0], np.cumsum([len(w) for w in words])]).astype(np.int32)
    return TreeEnsemble(
        source=source,
        feature=_joined(parts["feature"], np.int32),
        threshold=_joined(parts["threshold"], np.float64),
        left=_joined(parts["left"], np.int32),
        right=_joined(parts["right"], np.int32),
        missing_left=_joined(parts["missing"], np.bool_),
        category_set=_joined(parts["set"], np.int32),
        set_start=starts,
        set_words=_joined(words, np.uint32),
        value=_joined(parts["value"], np.int32),
        values=_joined(values, np.float64),
        roots=np.asarray(roots, np.int32),
        tree_output=np.asarray([t.output for t in trees], np.int32),
        base=np.asarray(base, np.float64).ravel(),
    )


def _joined(parts: Sequence[NDArray[Any]], dtype: Any) -> NDArray[Any]:
    return np.concatenate(parts).astype(dtype, copy=False) if len(parts) else np.zeros(0, dtype)


def _bits(codes: NDArray[Any]) -> NDArray[np.uint32]:
    codes = np.asarray(codes, np.int64)
    out = np.zeros(int(codes.max(initial=-1)) // 32 + 1, np.uint32)
    np.bitwise_or.at(out, codes // 32, (np.uint32(1) << (codes % 32).astype(np.uint32)))
    return out


def _parents_first(tree: Tree, index: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Level order of the reachable nodes, and the new number of each old node (-1 where unreachable)."""
    feature = np.asarray(tree.feature)
    left, right = np.asarray(tree.left, np.int64), np.asarray(tree.right, np.int64)
    size = len(feature)
    if size == 0:
        raise CorruptModelError(f"Tree {index} has no nodes.")
    levels = [np.zeros(1, np.int64)]
    seen = np.zeros(size, bool)
    seen[0] = True
    while True:
        split = levels[-1][feature[levels[-1]] >= 0]
        children = np.stack([left[split], right[split]], axis=1).ravel()
        if not len(children):
            break
        if (children < 0).any() or (children >= size).any():
            raise CorruptModelError(f"Tree {index} has a child outside of its {size} nodes.")
        if seen[children].any() or len(np.unique(children)) < len(children):
            raise CorruptModelError(f"Tree {index} reaches a node twice: it has a cycle or a shared child.")
        seen[children] = True
        levels.append(children)
    order = np.concatenate(levels)
    new = np.full(size, -1, np.int64)
    new[order] = np.arange(len(order))
    return order, new
