"""Operators on numbers: arithmetic, layers of nets, linear models as nodes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...errors import CorruptModelError, UnsupportedModelError
from ...graph import (
    Affine,
    Concat,
    Elementwise,
    KernelMachine,
    LogSoftmax,
    Node,
    PiecewiseLinear,
    Product,
    Select,
    Shares,
    Softmax,
    Sum,
    TreeEnsemble,
    UnitRows,
)
from ...graph.forests import weighted_sum
from .columns import bounds
from .common import AS_A_STEP, Layer, affine, aligned, any_shape, like, node_of, placed, post, scaled
from .distances import of_kernels, scan
from .medians import PICKING, median
from .proto import Operator, unsupported
from .reductions import REDUCTIONS
from .score_steps import SCORE_STEPS
from .shape import Shape
from .support_vectors import support_vectors
from .values import Fixed, Numbers, Value

# ---------------------------------------------------------------- arithmetic


def add(operator: Operator, values: Sequence[Value]) -> Numbers:
    """Add, Sub and Sum."""
    sign = -1.0 if operator.kind == "Sub" else 1.0
    sides, shape = aligned(operator, values)
    nodes, shift = list[Node](), np.zeros(1)
    for place, side in enumerate(sides):
        factor = sign if place else 1.0
        if side.node is None:
            shift = shift + factor * side.constants
        else:
            nodes.append(side.wide(side.node if factor == 1.0 else negative(side.node)))
    total = _summed(nodes)
    return placed(scaled(total, np.ones(1), shift) if np.any(shift) else total, shape)


def _summed(nodes: Sequence[Node]) -> Node:
    """The sum of nodes; sums of trees over the same rows become one."""
    trees = [n for n in nodes if isinstance(n, TreeEnsemble)]
    if len(trees) == len(nodes) > 1 and all(t.source is trees[0].source for t in trees):
        return weighted_sum(trees, [1.0] * len(trees))
    return nodes[0] if len(nodes) == 1 else Sum(tuple(nodes))


def negative(node: Node) -> Node:
    if isinstance(node, Affine):
        return Affine(node.source, -node.weight, -node.bias)
    return scaled(node, -np.ones(1), np.zeros(1))


def multiply(operator: Operator, values: Sequence[Value]) -> Numbers:
    """Multiplication, by constants or of two computed tables."""
    (a, b), shape = aligned(operator, values)
    if a.node is None or b.node is None:
        side, constants = (a, b.constants) if b.node is None else (b, a.constants)
        return placed(scaled(side.wide(), constants, np.zeros(1)), shape)
    return placed(_product(a.wide(), b.wide()), shape)


def divide(operator: Operator, values: Sequence[Value]) -> Numbers:
    """Division; recognises a sigmoid (1 / (1 + exp(-x))) and shares (x over its sum)."""
    (a, b), shape = aligned(operator, values)
    if b.node is None:
        return placed(scaled(a.wide(), 1.0 / b.constants, np.zeros(1)), shape)
    if a.node is None:
        logistic = _logistic(b.node) if (a.constants == 1.0).all() else None
        if logistic is not None:
            return placed(b.wide(logistic), shape)
        return placed(scaled(b.wide(Elementwise(b.node, "reciprocal")), a.constants, np.zeros(1)), shape)
    shares = _shares(a.node, b.node) if a.wide() is a.node and set(b.places) == {0} else None
    return placed(_product(a.wide(), b.wide(Elementwise(b.node, "reciprocal"))) if shares is None else shares, shape)


def _product(a: Node, b: Node) -> Node:
    return Elementwise(a, "square") if a is b else Product(a, b)


def _logistic(node: Node) -> Node | None:
    """sigmoid(-z) if `node` is 1 + exp(z): its reciprocal as one function, which does not overflow. Else None."""
    inner = node.source if isinstance(node, Affine) else None
    if not isinstance(node, Affine) or not isinstance(inner, Elementwise) or inner.name != "exp":
        return None
    if not (np.array_equal(node.weight, np.eye(node.width)) and (node.bias == 1.0).all()):
        return None
    return Elementwise(negative(inner.source), "sigmoid")


def _shares(node: Node, total: Node) -> Node | None:
    """Numbers divided by their sum, which may have one number more, as one function; exponentials are a softmax."""
    terms = list(total.parents) if isinstance(total, Sum) else [total]
    sums = [t for t in terms if _adds_up(t, node)]
    if len(sums) != 1 or len(terms) > 2 or node.width < 2:
        return None
    extra = next((t for t in terms if t is not sums[0]), None)
    if extra is None and isinstance(node, Elementwise) and node.name == "exp":
        return Softmax(_without_shift(node.source))
    return Shares(node, Affine(node, np.zeros((1, node.width)), np.zeros(1)) if extra is None else extra)


def _adds_up(total: Node, node: Node) -> bool:
    return (
        isinstance(total, Affine) and total.source is node and bool((total.weight == 1.0).all()) and not total.bias[0]
    )


def _without_shift(node: Node) -> Node:
    """A sum without what is the same for all columns, which a softmax does not see."""
    if not isinstance(node, Sum):
        return node
    own = [s for s in node.sources if not (isinstance(s, Select) and s.source.width == 1)]
    return _summed(own) if own else node


def matmul(operator: Operator, values: Sequence[Value]) -> Numbers:
    """Rows times a constant matrix; after a kernel, the kernel machine."""
    if not isinstance(values[1], Fixed) or values[1].array.ndim > 2:
        raise UnsupportedModelError("MatMul must multiply rows by a constant matrix to be imported.")
    weight = values[1].numbers()
    flat = weight.ndim == 1
    weight = weight[:, None] if flat else weight
    node = node_of(operator, values[0])
    layer = of_kernels(node, weight.T) if len(weight) == node.width else None
    layer = affine(node, weight.T, np.zeros(weight.shape[1])) if layer is None else layer
    return placed(layer, Shape() if flat else Shape((), (layer.width,)))


def gemm(operator: Operator, values: Sequence[Value]) -> Numbers:
    """An affine layer: alpha * x W + beta * b."""
    if int(operator.get("transA", 0)) or not isinstance(values[1], Fixed):
        raise UnsupportedModelError("Gemm must multiply rows by a constant matrix to be imported.")
    weight = values[1].numbers()
    weight = weight if int(operator.get("transB", 0)) else weight.T
    bias = values[2].numbers().ravel() if len(values) > 2 and isinstance(values[2], Fixed) else np.zeros(1)
    alpha, beta = (float(operator.get(k, 1.0)) for k in ("alpha", "beta"))
    return Numbers(affine(node_of(operator, values[0]), alpha * weight, np.broadcast_to(beta * bias, (len(weight),))))


# ---------------------------------------------------------------- functions

_FUNCTIONS = {
    "Relu": "relu", "Sigmoid": "sigmoid", "Tanh": "tanh", "Exp": "exp", "Log": "log", "Sqrt": "sqrt", "Abs": "abs",
    "Softplus": "softplus", "Reciprocal": "reciprocal", "Cos": "cos",
}  # fmt: skip
_SELU = (1.67326319217681884765625, 1.05070102214813232421875)


def elementwise(operator: Operator, values: Sequence[Value]) -> Numbers:
    value = any_shape(operator, values[0])
    return like(value, _function(operator, value.node))


def _function(operator: Operator, node: Node) -> Node:
    """A function of every number, with its parameters."""
    kind = operator.kind
    if kind == "LeakyRelu":
        return Elementwise(node, "leaky_relu", float(operator.get("alpha", 0.01)))
    if kind == "Elu":
        return Elementwise(node, "elu", float(operator.get("alpha", 1.0)))
    if kind == "Selu":
        alpha, gamma = (float(operator.get(k, v)) for k, v in zip(("alpha", "gamma"), _SELU, strict=True))
        return scaled(Elementwise(node, "elu", alpha), np.array([gamma]), np.zeros(1))
    if kind == "Gelu":
        return Elementwise(node, "gelu_tanh" if operator.get("approximate") == "tanh" else "gelu")
    if kind == "Erf":  # 2 * Phi(sqrt(2) x) - 1
        inner = scaled(node, np.array([np.sqrt(2.0)]), np.zeros(1))
        return scaled(Elementwise(inner, "normal_cdf"), np.array([2.0]), -np.ones(1))
    if kind == "Neg":
        return negative(node)
    if kind == "Sin":  # cos(x - pi / 2)
        return Elementwise(scaled(node, np.ones(1), np.array([-0.5 * np.pi])), "cos")
    if kind == "Sqrt" and not (node.bounds[0] < 0.0).any():  # distances reach zero, where the root has no slope
        return Elementwise(node, "sqrt_or_zero")
    logistic = _logistic(node) if kind == "Reciprocal" else None
    return Elementwise(node, _FUNCTIONS[kind]) if logistic is None else logistic


def softmax(operator: Operator, values: Sequence[Value]) -> Numbers:
    """Softmax or LogSoftmax over the columns."""
    if int(operator.get("axis", -1)) not in (1, -1):
        raise unsupported(f"{operator.kind} along other axes than the columns")
    node = node_of(operator, values[0])
    return Numbers(Softmax(node) if operator.kind == "Softmax" else LogSoftmax(node))


def clip(operator: Operator, values: Sequence[Value]) -> Numbers:
    """Computed numbers limited to an interval."""
    low, high = bounds(operator, values)
    value = any_shape(operator, values[0])
    node = value.node
    if np.isfinite(low) and np.isfinite(high):
        ends = np.array([low, high])
        return like(value, PiecewiseLinear(node, ends, ends))
    if not np.isfinite(low) and not np.isfinite(high):
        return value
    # low + relu(x - low), or high - relu(high - x)
    side, bound = (np.ones(1), np.array([low])) if np.isfinite(low) else (-np.ones(1), np.array([high]))
    return like(value, scaled(Elementwise(scaled(node, side, -side * bound), "relu"), side, bound))


def batch_normalization(operator: Operator, values: Sequence[Value]) -> Numbers:
    """Batch normalisation in inference: an affine layer."""
    if int(operator.get("training_mode", 0)) or not all(isinstance(v, Fixed) for v in values[1:5]):
        raise UnsupportedModelError("BatchNormalization must be in inference mode, with constants; this one trains.")
    scale, bias, mean, variance = (v.numbers().ravel() for v in values[1:5] if isinstance(v, Fixed))
    weight = scale / np.sqrt(variance + float(operator.get("epsilon", 1e-5)))
    return Numbers(scaled(node_of(operator, values[0]), weight, bias - mean * weight))


def scaler(operator: Operator, values: Sequence[Value]) -> Numbers:
    offset, scale = (np.array(operator.get(k, [v]), np.float64) for k, v in (("offset", 0.0), ("scale", 1.0)))
    return Numbers(scaled(node_of(operator, values[0]), scale, -offset * scale))


def normalizer(operator: Operator, values: Sequence[Value]) -> Numbers:
    """Normalizer: rows divided by their norm; for L1 without negative numbers, by their sum."""
    value = values[0]
    node = node_of(operator, value)
    norm = str(operator.get("norm", "MAX"))
    if norm not in ("L1", "L2"):
        raise UnsupportedModelError(f"The norm of Normalizer must be L1 or L2; got {norm}.")
    if norm == "L2" or (node.bounds[0] < 0.0).any():
        return Numbers(UnitRows(node, norm.lower()))
    nothing = Affine(node, np.zeros((1, node.width)), np.zeros(1))
    return Numbers(Shares(node, nothing), value.classes if isinstance(value, Numbers) else None)


def zip_map(operator: Operator, values: Sequence[Value]) -> Value:
    """ZipMap: the numbers of a classifier, with the labels of its classes as names."""
    labels = operator.get("classlabels_strings") or operator.get("classlabels_int64s") or []
    if isinstance(values[0], Fixed):  # a classifier that has seen one class
        return Fixed(values[0].array, values[0].repeated, tuple(labels))
    shape = any_shape(operator, values[0]).shape
    if shape is not None:
        raise CorruptModelError(
            f"ZipMap must read rows and columns; it reads a tensor {shape}, so that onnxruntime cannot run this model. "
            "Convert it without ZipMap: to_onnx(model, X, options={id(model): {'zipmap': False}}) in skl2onnx."
        )
    node = node_of(operator, values[0])
    if labels and len(labels) != node.width:
        raise CorruptModelError(
            f"ZipMap must name the {node.width} numbers that it reads; it names {len(labels)}, so that onnxruntime "
            "cannot run this model. Explain the model in the library that trained it; converted without ZipMap it can "
            "be run, but what it says must then be compared with the model."
        )
    pairs = (
        isinstance(node, KernelMachine) and node.width > 1
    )  # decisions between each two classes, of which none is one
    return Numbers(node, tuple(labels) if labels and not pairs else None)


def sequence(operator: Operator, values: Sequence[Value]) -> Value:
    """SequenceConstruct: the scores of several targets, side by side; each is named by its target and its class."""
    parts = [any_shape(operator, v) for v in values]
    node = Concat(tuple(node_of(operator, p) for p in parts))
    known = all(p.classes is not None and len(p.classes) == p.node.width for p in parts)
    if not known or node.width == 2:  # two names would be those of two classes
        return Numbers(node)
    return Numbers(node, tuple(f"{i}: {c}" for i, p in enumerate(parts) for c in p.classes or ()))


# ---------------------------------------------------------------- linear models


def linear(operator: Operator, values: Sequence[Value]) -> Numbers:
    """LinearRegressor and LinearClassifier."""
    node = node_of(operator, values[0])
    bias = np.array(operator.get("intercepts", []), np.float64)
    weight = np.array(operator.get("coefficients", []), np.float64)
    targets = int(operator.get("targets", 1)) if operator.kind == "LinearRegressor" else max(bias.size, 1)
    if not weight.size or weight.size != targets * node.width:
        raise CorruptModelError(
            f"{operator.kind} must have a coefficient for each of its {node.width} columns and each output; it has "
            f"{weight.size}. {AS_A_STEP}"
        )
    weight = weight.reshape(-1, node.width)
    margin = affine(node, weight, np.broadcast_to(bias if bias.size else 0.0, (len(weight),)))
    if operator.kind == "LinearRegressor":
        return Numbers(post(operator, margin))
    labels = tuple(operator.get("classlabels_strings") or operator.get("classlabels_ints") or ())
    if margin.width == 1 and len(labels) == 2:
        score = post(operator, margin)
        one = 0.0 if operator.get("post_transform", "NONE") == "NONE" else 1.0
        return Numbers(Concat((scaled(score, -np.ones(1), np.array([one])), score)), labels)
    return Numbers(post(operator, margin), labels or None)


LAYERS: dict[str, Layer] = {
    **dict.fromkeys(("Add", "Sub", "Sum"), add), "Mul": multiply, "Div": divide, "MatMul": matmul, "Gemm": gemm,
    **dict.fromkeys((*_FUNCTIONS, "LeakyRelu", "Elu", "Selu", "Gelu", "Erf", "Neg", "Sin"), elementwise),
    "Softmax": softmax, "LogSoftmax": softmax, "Clip": clip, "BatchNormalization": batch_normalization,
    "Scaler": scaler, "Normalizer": normalizer, "ZipMap": zip_map, "SequenceConstruct": sequence,
    "LinearRegressor": linear, "LinearClassifier": linear, "SVMRegressor": support_vectors,
    "SVMClassifier": support_vectors, "Scan": scan,
    **dict.fromkeys(PICKING, median), **REDUCTIONS, **SCORE_STEPS,
}  # fmt: skip
"""The function for each operator on numbers."""
