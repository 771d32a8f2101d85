"""Bounds on the output of a node, by interval arithmetic: enough to see that a sum is never zero."""

from __future__ import annotations

import numpy as np

from ...graph import (
    Affine,
    Array,
    Concat,
    Elementwise,
    Node,
    PiecewiseLinear,
    Select,
    Softmax,
    Sum,
    TreeEnsemble,
)

Range = tuple[Array, Array]
_LEAST = float(np.finfo(np.float32).tiny)  # a sigmoid is positive; in float32 it may underflow, which is seen then
_RISING = ("sigmoid", "exp", "relu", "tanh", "identity", "softplus")


def range_of(node: Node) -> Range:
    """Lower and upper bounds of each column, infinite where they are unknown."""
    if isinstance(node, TreeEnsemble):
        return _of_trees(node)
    if isinstance(node, Softmax):
        return np.full(node.width, _LEAST), np.ones(node.width)
    if isinstance(node, PiecewiseLinear):
        return np.full(node.width, node.y.min()), np.full(node.width, node.y.max())
    if isinstance(node, Affine):
        low, high = range_of(node.source)
        return _weighted(node.weight, low, high) + node.bias, _weighted(node.weight, high, low) + node.bias
    if isinstance(node, (Select, Concat, Sum)):
        parts = [range_of(p) for p in node.parents]
        return node.forward(*(p[0][None] for p in parts))[0], node.forward(*(p[1][None] for p in parts))[0]
    if isinstance(node, Elementwise) and node.name in _RISING:
        low, high = range_of(node.source)
        with np.errstate(over="ignore"):
            ends = [np.asarray(node.forward(v[None])[0]) for v in (low, high)]
        positive = node.name in ("sigmoid", "exp", "softplus")
        return np.maximum(ends[0], _LEAST) if positive else ends[0], ends[1]
    if isinstance(node, Elementwise) and node.name in ("abs", "square"):
        return np.zeros(node.width), np.full(node.width, np.inf)
    return np.full(node.width, -np.inf), np.full(node.width, np.inf)


def _weighted(weight: Array, low: Array, high: Array) -> Array:
    """`weight @ x` with x = low where the weight is positive, and x = high where it is negative."""
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(weight == 0.0, 0.0, weight * np.where(weight > 0.0, low, high)).sum(axis=1))


def _of_trees(trees: TreeEnsemble) -> Range:
    """The sums of the least and of the largest leaves of all trees."""
    low, high = trees.base.copy(), trees.base.copy()
    ends = np.append(trees.roots[1:], len(trees.feature))
    if (np.diff(trees.roots) <= 0).any():
        return np.full(trees.width, -np.inf), np.full(trees.width, np.inf)
    for root, end, output in zip(trees.roots, ends, trees.tree_output, strict=True):
        at = trees.value[root:end]
        at = at[trees.feature[root:end] < 0]
        columns = np.arange(trees.width) if output < 0 else np.array([output])
        numbers = trees.values[at[:, None] + np.arange(len(columns))]
        low[columns] += numbers.min(axis=0)
        high[columns] += numbers.max(axis=0)
    return low, high
