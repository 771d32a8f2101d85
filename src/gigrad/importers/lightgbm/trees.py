"""One tree of a LightGBM model's text as plain splits: `x <= T`, category sets, a side for NaN.

A split trained with zero_as_missing sends zero itself to the missing side, so that the side changes up to three times
along the column: it becomes up to three plain splits that share their children.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import CorruptModelError, UnsupportedModelError
from ...graph import Array, Column, Tree

# Numbers this close to zero are zero to LightGBM (its kZeroThreshold, a float32 constant).
_ZERO = float(np.float32(1e-35))
_BELOW_ZERO = float(np.nextafter(-_ZERO, -np.inf))
_MOST_WAYS = 2.0**26  # the native core refuses a tree with more paths from root to leaves
_NO_MISSING, _ZERO_IS_MISSING, _NAN_IS_MISSING = 0, 1, 2


@dataclass(frozen=True)
class LinearLeaf:
    """`constant + sum of coefficient * x[column]`; `fallback` where any of these x is missing."""

    constant: float
    columns: NDArray[np.int64]
    coefficients: Array
    fallback: float


@dataclass
class Nodes:
    """A tree built by appending nodes; a leaf has no column (-1), and `leaf` is its number in the model."""

    feature: list[int]
    threshold: list[float]
    left: list[int]
    right: list[int]
    missing_left: list[bool]
    leaf: list[int]
    categories: dict[int, NDArray[np.int64]]

    @classmethod
    def empty(cls) -> Nodes:
        return cls([], [], [], [], [], [], {})

    def add(
        self, feature: int, threshold: float = 0.0, left: int = -1, right: int = -1, missing_left: bool = False,
        leaf: int = -1,
    ) -> int:  # fmt: skip
        self.feature.append(feature)
        self.threshold.append(threshold)
        self.left.append(left)
        self.right.append(right)
        self.missing_left.append(missing_left)
        self.leaf.append(leaf)
        return len(self.feature) - 1


@dataclass(frozen=True)
class TextTree:
    """A tree as read: its nodes, and the leaves' numbers."""

    nodes: Nodes
    leaf_values: Array  # (leaves,)
    linear: tuple[LinearLeaf, ...]  # one a leaf; empty for a tree of constants

    def tree(self, output: int) -> Tree:
        """The tree of a model without linear leaves."""
        leaf = np.asarray(self.nodes.leaf)
        return self.packed(np.where(leaf >= 0, self.leaf_values[leaf], 0.0), output)

    def packed(self, values: Array, output: int) -> Tree:
        """The tree with the given numbers, (nodes,) or (nodes, outputs)."""
        n = self.nodes
        threshold = np.asarray(n.threshold, np.float64)
        about_zero = (threshold >= _BELOW_ZERO) & (threshold <= _ZERO)  # all of this band is zero to LightGBM
        return Tree(
            feature=np.asarray(n.feature, np.int64),
            threshold=threshold,
            left=np.asarray(n.left, np.int64),
            right=np.asarray(n.right, np.int64),
            missing_left=np.asarray(n.missing_left, bool),
            values=values,
            output=output,
            categories=dict(n.categories),
            equal=(np.where(about_zero, -_ZERO, threshold), np.where(about_zero, _ZERO, threshold)),
        )


def read_tree(fields: dict[str, str], columns: Sequence[Column]) -> TextTree:
    """Read one block of a model's text."""
    leaves = int(fields["num_leaves"])
    values = _numbers(fields, "leaf_value")
    splits = leaves - 1
    feature, kind = _numbers(fields, "split_feature", np.int64), _numbers(fields, "decision_type", np.int64)
    threshold = _numbers(fields, "threshold")
    left, right = _numbers(fields, "left_child", np.int64), _numbers(fields, "right_child", np.int64)
    for name, found, wanted in (
        ("leaf_value", values, leaves), ("split_feature", feature, splits), ("decision_type", kind, splits),
        ("threshold", threshold, splits), ("left_child", left, splits), ("right_child", right, splits),
    ):  # fmt: skip
        if len(found) != wanted:
            raise CorruptModelError(
                f"Tree {fields['number']} must have {wanted} numbers of {name}; it has {len(found)}."
            )
    sets = _category_sets(fields, threshold, kind)
    nodes = Nodes.empty()
    # Splits keep their numbers and leaf i becomes node splits + i; added nodes come after them.
    sides = [np.where(child < 0, splits + ~child, child).tolist() for child in (left, right)]
    for i in range(splits):
        nodes.add(int(feature[i]), float(threshold[i]), sides[0][i], sides[1][i])
    for i in range(leaves):
        nodes.add(-1, leaf=i)
    for i in range(splits):
        if kind[i] & 1:
            nodes.categories[i] = sets[i]  # NaN, and a code the set does not hold, go right
        else:
            _number_split(nodes, i, bool(kind[i] & 2), int(kind[i] >> 2) & 3)
            _refuse_number_split_of_category(nodes, i, columns)
    if len(nodes.feature) > splits + leaves:
        _refuse_too_many_ways(nodes, fields["number"])
    return TextTree(nodes, values, _linear_leaves(fields, values))


def _refuse_too_many_ways(nodes: Nodes, number: str) -> None:
    """Raise if there are too many paths from root to leaves: splits that share children multiply them."""
    size = len(nodes.feature)
    if not all(0 <= c < size for i in range(size) if nodes.feature[i] >= 0 for c in (nodes.left[i], nodes.right[i])):
        return  # damaged: `assemble` raises for it, and for a cycle
    ways = [0.0] * size
    open_ = [0]
    while open_ and len(open_) <= 2 * size:
        i = open_[-1]
        children = [] if nodes.feature[i] < 0 else [nodes.left[i], nodes.right[i]]
        waiting = [c for c in children if ways[c] == 0.0]
        if waiting:
            open_ += waiting
            continue
        ways[i] = sum(ways[c] for c in children) if children else 1.0
        open_.pop()
    if ways[0] > _MOST_WAYS:
        raise UnsupportedModelError(
            f"Tree {number} of this LightGBM model tests for zero repeatedly (zero_as_missing) and is too deep: it has "
            f"{ways[0]:.1e} paths to its leaves, and at most {_MOST_WAYS:.1e} are supported. Train with max_depth=12 "
            "or less, or replace zeros by missing values and train without zero_as_missing."
        )


def _numbers(fields: dict[str, str], name: str, dtype: Any = np.float64) -> NDArray[Any]:
    return np.array(fields.get(name, "").split(), dtype=dtype)


def _number_split(nodes: Nodes, i: int, default_left: bool, missing: int) -> None:
    """Rewrite split i by the rule for its kind of missing values."""
    t = nodes.threshold[i]
    if missing != _ZERO_IS_MISSING:
        if -_ZERO <= t < _ZERO:  # everything about zero is read as zero
            t = nodes.threshold[i] = _ZERO if t >= 0 else _BELOW_ZERO
        # Where NaN is not expected it is read as zero.
        nodes.missing_left[i] = default_left if missing == _NAN_IS_MISSING else t >= 0
        return
    nodes.missing_left[i] = default_left
    left, right, feature = nodes.left[i], nodes.right[i], nodes.feature[i]
    if -_ZERO <= t < _ZERO:
        nodes.threshold[i] = _ZERO if default_left else _BELOW_ZERO
    elif default_left and t < 0:  # left up to t, right up to zero, left at zero, right beyond
        above = nodes.add(feature, _ZERO, left, right, True)
        nodes.right[i] = nodes.add(feature, _BELOW_ZERO, right, above, False)
    elif not default_left and t > 0:  # left below zero, right at zero, left up to t, right beyond
        nodes.threshold[i] = _BELOW_ZERO
        above = nodes.add(feature, t, left, right, False)
        nodes.right[i] = nodes.add(feature, _ZERO, right, above, False)


def _refuse_number_split_of_category(nodes: Nodes, i: int, columns: Sequence[Column]) -> None:
    if 0 <= nodes.feature[i] < len(columns) and columns[nodes.feature[i]].kind == "category":
        raise CorruptModelError(f"Split {i} compares category column {columns[nodes.feature[i]].name!r} with a number.")


def _category_sets(fields: dict[str, str], threshold: Array, kind: NDArray[np.int64]) -> dict[int, NDArray[np.int64]]:
    """The codes that go left at every category split: bits of 32-bit words between the set's boundaries."""
    edges, words = _numbers(fields, "cat_boundaries", np.int64), _numbers(fields, "cat_threshold", np.uint32)
    out: dict[int, NDArray[np.int64]] = {}
    for i in np.nonzero(kind & 1)[0].tolist():
        which = int(threshold[i])
        if not 0 <= which < len(edges) - 1 or not 0 <= edges[which] <= edges[which + 1] <= len(words):
            raise CorruptModelError(f"Tree {fields['number']} has a category split without its set.")
        bits = np.unpackbits(words[edges[which] : edges[which + 1]].view(np.uint8), bitorder="little")
        out[i] = np.nonzero(bits)[0]
    return out


def _linear_leaves(fields: dict[str, str], values: Array) -> tuple[LinearLeaf, ...]:
    if fields.get("is_linear", "0") != "1":
        return ()
    constant = _numbers(fields, "leaf_const")
    sizes = _numbers(fields, "num_features", np.int64)
    columns, coefficients = _numbers(fields, "leaf_features", np.int64), _numbers(fields, "leaf_coeff")
    if (
        len(constant) != len(values)
        or len(sizes) != len(values)
        or not len(columns) == len(coefficients) == sizes.sum()
    ):
        raise CorruptModelError(f"Tree {fields['number']} has linear leaves whose numbers do not match.")
    ends = np.cumsum(sizes)
    return tuple(
        LinearLeaf(float(constant[i]), columns[a:b], coefficients[a:b], float(values[i]))
        for i, (a, b) in enumerate(zip(ends - sizes, ends, strict=True))
    )
