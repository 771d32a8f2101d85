"""Reductions over the columns of a row, normalisation, and functions with kinks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from ...errors import CorruptModelError, UnsupportedModelError
from ...graph import Affine, Array, Elementwise, LogSoftmax, Node, PiecewiseLinear, Product, Select, Sum
from .common import Layer, aligned, any_shape, combined, node_of, placed, scaled
from .proto import Operator, unsupported
from .reshaping import ints
from .shape import Shape
from .values import Fixed, Numbers, Value, shape_of, side_by_side, spread

REDUCED = (
    "ReduceSum", "ReduceMean", "ReduceProd", "ReduceMax", "ReduceMin", "ReduceSumSquare", "ReduceLogSumExp",
)  # fmt: skip


def reduced(operator: Operator, values: Sequence[Value]) -> Numbers:
    """Sums, means, products, the largest and the least over other axes than the rows."""
    value = any_shape(operator, values[0])
    own = shape_of(value)
    axes = {own.place(operator.kind, a) for a in ints(operator, values, 1, "axes")}
    if not axes and int(operator.get("noop_with_empty_axes", 0)):
        return value
    if not axes or own.axis in axes:
        raise unsupported(f"{operator.kind} over the rows")
    index = own.numbered(operator.kind)
    last = np.moveaxis(index, sorted(axes), range(-len(axes), 0))
    groups = last.reshape(-1, int(np.prod([index.shape[a] for a in axes])))
    kept = 1 if int(operator.get("keepdims", 1)) else None
    sizes = [(i, kept if i in axes else s) for i, s in enumerate(index.shape) if i != own.axis]
    before, after = (tuple(s for i, s in sizes if s is not None and (i < own.axis) is first) for first in (True, False))
    return placed(_over(operator.kind, value.node, groups), Shape(before, after))


def _over(kind: str, node: Node, groups: NDArray[np.int64]) -> Node:
    """One number for each group of columns, (groups, columns)."""
    if kind == "ReduceLogSumExp":
        return side_by_side([_log_sum_exp(spread(node, group)) for group in groups.tolist()])
    if kind in ("ReduceProd", "ReduceMax", "ReduceMin"):
        parts = [spread(node, group) for group in groups.T.tolist()]
        return reduce(Product if kind == "ReduceProd" else _larger if kind == "ReduceMax" else _smaller, parts)
    matrix = np.zeros((len(groups), node.width))
    np.add.at(matrix, (np.arange(len(groups))[:, None], groups), 1.0)
    if kind == "ReduceMean":
        matrix /= groups.shape[1]
    return combined(Elementwise(node, "square") if kind == "ReduceSumSquare" else node, matrix)


def _log_sum_exp(node: Node) -> Node:
    """log(sum(exp(x))) = x_0 - log(softmax(x))_0, which does not overflow."""
    first, share = (Select(n, (0,)) for n in (node, LogSoftmax(node)))
    return Sum((first, scaled(share, -np.ones(1), np.zeros(1))))


def _larger(a: Node, b: Node) -> Node:
    """a + relu(b - a)."""
    return Sum((a, Elementwise(Sum((b, scaled(a, -np.ones(1), np.zeros(1)))), "relu")))


def _smaller(a: Node, b: Node) -> Node:
    """a - relu(a - b)."""
    above = Elementwise(Sum((a, scaled(b, -np.ones(1), np.zeros(1)))), "relu")
    return Sum((a, scaled(above, -np.ones(1), np.zeros(1))))


def layer_normalization(operator: Operator, values: Sequence[Value]) -> Numbers:
    """(x - mean) / sqrt(variance + epsilon) over the columns of a row, then scaled."""
    node = node_of(operator, values[0])
    if int(operator.get("axis", -1)) not in (1, -1):
        raise unsupported("LayerNormalization over other axes than the columns")
    width = node.width
    centred = Affine(node, np.eye(width) - 1.0 / width, np.zeros(width))
    epsilon = np.array([float(operator.get("epsilon", 1e-5))])
    variance = Affine(Elementwise(centred, "square"), np.full((1, width), 1.0 / width), epsilon)
    inverse = Elementwise(Elementwise(variance, "sqrt"), "reciprocal")
    scale = _constant(operator, values[1])
    bias = _constant(operator, values[2]) if len(values) > 2 else np.zeros(1)
    return Numbers(scaled(Product(centred, Select(inverse, (0,) * width)), scale, bias))


def prelu(operator: Operator, values: Sequence[Value]) -> Numbers:
    """relu(x) - slope * relu(-x), with a slope for each column."""
    node, slope = node_of(operator, values[0]), _constant(operator, values[1])
    below = Elementwise(scaled(node, -np.ones(1), np.zeros(1)), "relu")
    return Numbers(Sum((Elementwise(node, "relu"), scaled(below, -slope, np.zeros(1)))))


def hard_sigmoid(operator: Operator, values: Sequence[Value]) -> Numbers:
    """HardSigmoid, and HardSwish, which is x times it."""
    node = node_of(operator, values[0])
    swish = operator.kind == "HardSwish"
    alpha, beta = (1.0 / 6.0, 0.5) if swish else (float(operator.get(k, v)) for k, v in (("alpha", 0.2), ("beta", 0.5)))
    if not alpha > 0.0:
        raise CorruptModelError(f"{operator.kind} must have a positive alpha; got {alpha}.")
    bent = _between_0_and_1(node, alpha, beta)
    return Numbers(Product(node, bent) if swish else bent)


def _between_0_and_1(node: Node, alpha: float, beta: float) -> Node:
    """clip(alpha * x + beta, 0, 1)"""
    return PiecewiseLinear(node, np.array([-beta / alpha, (1.0 - beta) / alpha]), np.array([0.0, 1.0]))


def power(operator: Operator, values: Sequence[Value]) -> Numbers:
    """Squares, roots, reciprocals and whole powers up to the fourth; one exponent for each column."""
    if not isinstance(values[1], Fixed):
        raise unsupported("Pow with a computed exponent")
    (base, exponent), shape = aligned(operator, values)
    exponents = exponent.constants
    if len(set(exponents.tolist())) == 1:
        return placed(_power(base.wide(), float(exponents[0])), shape)
    parts = [_power(Select(base.wide(), (j,)), float(e)) for j, e in enumerate(exponents)]
    return placed(side_by_side(parts), shape)


_POWERS = {2.0: "square", 0.5: "sqrt", -1.0: "reciprocal"}


def _power(node: Node, exponent: float) -> Node:
    """A constant power, by nodes that are exact for it."""
    if exponent == 0.0:
        return Affine(node, np.zeros((node.width, node.width)), np.ones(node.width))
    if exponent == 1.0:
        return node
    if exponent in _POWERS:
        return Elementwise(node, _POWERS[exponent])
    if exponent in (3.0, 4.0):
        square = Elementwise(node, "square")
        return Product(square, node) if exponent == 3.0 else Elementwise(square, "square")
    if (node.bounds[0] > 0.0).all():
        return Elementwise(scaled(Elementwise(node, "log"), np.array([exponent]), np.zeros(1)), "exp")
    raise UnsupportedModelError(
        f"The exponent of Pow must be -1, 0, 0.5, 1, 2, 3 or 4, unless the base is always positive; got {exponent:g}."
    )


def _constant(operator: Operator, value: Value) -> Array:
    if not isinstance(value, Fixed):
        raise unsupported(f"{operator.kind} with computed constants")
    return value.numbers().ravel()


REDUCTIONS: dict[str, Layer] = {
    **dict.fromkeys(REDUCED, reduced), "Pow": power, "PRelu": prelu,
    "LayerNormalization": layer_normalization, "HardSigmoid": hard_sigmoid, "HardSwish": hard_sigmoid,
}  # fmt: skip
"""The function for each operator on numbers."""
