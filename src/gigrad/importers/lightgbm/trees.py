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
from ...graph.growing import Edge, Nodes
from ...graph.sets import unpack

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


@dataclass(frozen=True)
class TextTree:
    """A tree as read, and its linear leaves, one for each leaf; none for a tree of constants."""

    tree: Tree
    linear: tuple[LinearLeaf, ...]


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
    _refuse_number_splits_of_categories(feature[kind & 1 == 0], columns)
    edge, missing_left = _number_splits(threshold, kind & 2 != 0, kind >> 2 & 3)
    threshold = np.where(kind & 1, threshold, edge)
    about_zero = (threshold >= _BELOW_ZERO) & (threshold <= _ZERO)  # all of this band is zero to LightGBM
    equal = np.where(about_zero, -_ZERO, threshold), np.where(about_zero, _ZERO, threshold)
    none, zeros = np.full(leaves, -1), np.zeros(leaves)
    tree = Tree(  # splits keep their numbers, and leaf i becomes node splits + i
        feature=np.append(feature, none),
        threshold=np.append(threshold, zeros),
        left=np.append(np.where(left < 0, splits + ~left, left), none),
        right=np.append(np.where(right < 0, splits + ~right, right), none),
        missing_left=np.append(missing_left & (kind & 1 == 0), zeros != 0),  # NaN goes right of a category set
        values=np.append(np.zeros(splits), values),
        categories=sets,
        equal=(np.append(equal[0], zeros), np.append(equal[1], zeros)),
    )
    zero = np.flatnonzero((kind & 1 == 0) & (kind >> 2 & 3 == _ZERO_IS_MISSING)).tolist()
    if zero:
        tree = _split_off_zeros(tree, zero, fields["number"])
    return TextTree(tree, _linear_leaves(fields, values))


def _refuse_too_many_ways(nodes: Nodes, number: str) -> None:
    """Raise if there are too many paths from root to leaves: splits that share children multiply them."""
    size = len(nodes)
    below = [() if column < 0 else pair for column, pair in zip(nodes.column, nodes.children, strict=True)]
    if not all(0 <= c < size for pair in below for c in pair):
        return  # damaged: `assemble` raises for it, and for a cycle
    ways = [0.0] * size
    open_ = [0]
    while open_ and len(open_) <= 2 * size:
        i = open_[-1]
        waiting = [c for c in below[i] if ways[c] == 0.0]
        if waiting:
            open_ += waiting
            continue
        ways[i] = sum(ways[c] for c in below[i]) if below[i] else 1.0
        open_.pop()
    if ways[0] > _MOST_WAYS:
        raise UnsupportedModelError(
            f"Tree {number} of this LightGBM model tests for zero repeatedly (zero_as_missing) and is too deep: it has "
            f"{ways[0]:.1e} paths to its leaves, and at most {_MOST_WAYS:.1e} are supported. Train with max_depth=12 "
            "or less, or replace zeros by missing values and train without zero_as_missing."
        )


def _numbers(fields: dict[str, str], name: str, dtype: Any = np.float64) -> NDArray[Any]:
    return np.array(fields.get(name, "").split(), dtype=dtype)


def _number_splits(
    t: Array, default_left: NDArray[np.bool_], missing: NDArray[np.int64]
) -> tuple[Array, NDArray[np.bool_]]:
    """The thresholds of splits `x <= t` and whether NaN goes left, by the rules for their kinds of missing values."""
    # Everything about zero is read as zero; where that is missing, it goes the way of missing values.
    zero_left = np.where(missing == _ZERO_IS_MISSING, default_left, t >= 0)
    threshold = np.where((t >= -_ZERO) & (t < _ZERO), np.where(zero_left, _ZERO, _BELOW_ZERO), t)
    # Where NaN is not expected it is read as zero.
    return threshold, np.where(missing == _NO_MISSING, threshold >= 0, default_left)


def _split_off_zeros(tree: Tree, splits: Sequence[int], number: str) -> Tree:
    """The tree with zero, trained as missing, on the side of missing values in the given splits.

    Splits are added where that side changes at zero.
    """
    nodes = Nodes.of(tree)
    zero, below_zero = (Edge(edge, (-_ZERO, _ZERO)) for edge in (_ZERO, _BELOW_ZERO))
    for i in splits:
        column, (left, right), edge = nodes.column[i], nodes.children[i], nodes.edge[i]
        default_left = nodes.missing_left[i]
        if default_left and edge.threshold <= _BELOW_ZERO:  # left up to t, right up to zero, left at zero, right beyond
            above = nodes.split(column, left, right, zero, missing_left=True)
            rest = nodes.split(column, right, above, below_zero)
            nodes.split(column, left, rest, edge, missing_left=True, at=i)
        elif not default_left and edge.threshold >= _ZERO:  # left below zero, right at zero, left up to t, right beyond
            above = nodes.split(column, left, right, edge)
            rest = nodes.split(column, right, above, zero)
            nodes.split(column, left, rest, below_zero, at=i)
    if len(nodes) > len(tree.feature):
        _refuse_too_many_ways(nodes, number)
    return nodes.tree()


def _refuse_number_splits_of_categories(feature: NDArray[np.int64], columns: Sequence[Column]) -> None:
    for j in np.unique(feature).tolist():
        if 0 <= j < len(columns) and columns[j].kind == "category":
            raise CorruptModelError(f"A split compares category column {columns[j].name!r} with a number.")


def _category_sets(fields: dict[str, str], threshold: Array, kind: NDArray[np.int64]) -> dict[int, NDArray[np.int64]]:
    """The codes that go left at every category split: bits of 32-bit words between the set's boundaries."""
    edges, words = _numbers(fields, "cat_boundaries", np.int64), _numbers(fields, "cat_threshold", np.uint32)
    out: dict[int, NDArray[np.int64]] = {}
    for i in np.nonzero(kind & 1)[0].tolist():
        which = int(threshold[i])
        if not 0 <= which < len(edges) - 1 or not 0 <= edges[which] <= edges[which + 1] <= len(words):
            raise CorruptModelError(f"Tree {fields['number']} has a category split without its set.")
        out[i] = unpack(words[edges[which] : edges[which + 1]])
    return out


def _linear_leaves(fields: dict[str, str], values: Array) -> tuple[LinearLeaf, ...]:
    """The linear function in each leaf; none for trees with constant leaves."""
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
