"""The node for each kind of Keras layer. A layer that is not listed is used by its gradient, or refused by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...errors import CorruptModelError
from ...graph import Affine, Array, Elementwise, Node, PiecewiseLinear, Product, Sum
from .activations import activated, scaled
from .lookups import looked_up_labels
from .values import Bins, Value, side_by_side
from .walk import Config, Layer, NotAsNodes, Walk

__all__ = ["apply"]


def apply(kind: str, name: str, config: Config, weights: Sequence[Array], values: Sequence[Value], walk: Walk) -> Value:
    """The output of a layer for its input values."""
    layer = Layer(kind, name, config, weights)
    if kind in _UNCHANGED:
        return _one(values, layer)
    if kind in _OF_ONE:
        return _OF_ONE[kind](layer, _one(values, layer), walk)
    if kind in _OF_SEVERAL:
        return _OF_SEVERAL[kind](layer, values, walk)
    if kind in _JUMPS:
        raise layer.refuse(_JUMPS[kind])
    raise NotAsNodes(
        f"The layer {name!r} of this Keras model is a {kind}, which is not read from its configuration. Those read are "
        f"{', '.join(sorted({*_UNCHANGED, *_OF_ONE, *_OF_SEVERAL}))}."
    )


_JUMPS = {
    "Hashing": "makes codes of labels in a way that cannot be read; use StringLookup or IntegerLookup, or give the net "
    "integer codes, which an Embedding reads",
    "Masking": "leaves out the steps that equal a number exactly, a jump which no gradient sees; give the net a column "
    "that says how many steps count, or codes to an Embedding with mask_zero=True",
}


def _one(values: Sequence[Value], layer: Layer) -> Value:
    if len(values) != 1:
        raise CorruptModelError(f"The layer {layer.name!r} ({layer.kind}) must have one input; it has {len(values)}.")
    return values[0]


def _row(layer: Layer, value: Value) -> int:
    """The number of columns of a value that must be a row of numbers."""
    if len(value.shape) > 1:
        raise layer.not_as_nodes(
            f"must read a row of numbers to be imported, and reads the shape {value.shape}; flatten it"
        )
    return value.size


def _made(node: Node) -> Value:
    return Value((node.width,), node)


# ---------------------------------------------------------------- layers with one input


def _dense(layer: Layer, value: Value, walk: Walk) -> Value:
    """A dense layer and its activation."""
    width, units = _row(layer, value), int(layer.config["units"])
    weight = layer.weight(0, (width, units)).T
    bias = layer.weight(1, (units,)) if layer.config.get("use_bias", True) else np.zeros(units)
    node = Affine(walk.numbers(value), np.ascontiguousarray(weight), bias)
    return _made(activated(node, layer.config.get("activation"), layer.name))


def _activation(layer: Layer, value: Value, walk: Walk) -> Value:
    return _elementwise(layer, value, walk, layer.config["activation"])


def _elementwise(layer: Layer, value: Value, walk: Walk, name: Any) -> Value:
    if name in ("softmax", "log_softmax"):
        _row(layer, value)
    return Value(value.shape, activated(walk.numbers(value), name, layer.name))


def _relu(layer: Layer, value: Value, walk: Walk) -> Value:
    """ReLU with a ceiling, another slope below zero, and a threshold, if it is continuous."""
    top, slope, start = (layer.config.get(k) for k in ("max_value", "negative_slope", "threshold"))
    node = walk.numbers(value)
    slope, start = float(slope or 0.0), float(start or 0.0)
    if start != 0.0 and slope != 1.0:
        raise layer.refuse("has a threshold at which it jumps, which is not a split on one column")
    if top is None:
        node = Elementwise(node, "leaky_relu", slope) if slope else Elementwise(node, "relu")
    elif slope:
        at_most = scaled(Elementwise(scaled(node, -1.0, float(top)), "relu"), -1.0, float(top))  # top - relu(top - x)
        node = Elementwise(at_most, "leaky_relu", slope)
    else:
        node = PiecewiseLinear(node, np.array([0.0, float(top)]), np.array([0.0, float(top)]))
    return Value(value.shape, node)


def _leaky(layer: Layer, value: Value, walk: Walk) -> Value:
    slope = layer.config.get("negative_slope", layer.config.get("alpha", 0.3))
    return Value(value.shape, Elementwise(walk.numbers(value), "leaky_relu", float(slope)))


def _elu(layer: Layer, value: Value, walk: Walk) -> Value:
    return Value(value.shape, Elementwise(walk.numbers(value), "elu", float(layer.config.get("alpha", 1.0))))


def _prelu(layer: Layer, value: Value, walk: Walk) -> Value:
    """relu(x) - alpha * relu(-x), with a slope for each column."""
    width = _row(layer, value)
    node, alpha = walk.numbers(value), layer.weight(0, (width,))
    below = Elementwise(scaled(node, -1.0), "relu")
    return _made(Sum((Elementwise(node, "relu"), Affine(below, np.diag(-alpha), np.zeros(width)))))


def _softmax(layer: Layer, value: Value, walk: Walk) -> Value:
    if layer.config.get("axis", -1) not in (-1, 1, [-1], [1]):
        raise layer.not_as_nodes("must be taken over the columns to be imported")
    return _elementwise(layer, value, walk, "softmax")


def _batch_norm(layer: Layer, value: Value, walk: Walk) -> Value:
    """Batch normalisation with the means and variances of training: an affine layer."""
    width, config = _row(layer, value), layer.config
    if config.get("axis", -1) not in (-1, 1, [-1], [1]):
        raise layer.not_as_nodes("must have axis=-1 to be imported")
    kept = iter(range(4))
    gamma = layer.weight(next(kept), (width,)) if config.get("scale", True) else np.ones(width)
    beta = layer.weight(next(kept), (width,)) if config.get("center", True) else np.zeros(width)
    mean, variance = layer.weight(next(kept), (width,)), layer.weight(next(kept), (width,))
    if (variance < 0).any():
        raise CorruptModelError(f"The layer {layer.name!r} must have variances of at least 0.")
    scale = gamma / np.sqrt(variance + float(config["epsilon"]))
    return _made(Affine(walk.numbers(value), np.diag(scale), beta - mean * scale))


def _layer_norm(layer: Layer, value: Value, walk: Walk) -> Value:
    """(x - mean) / sqrt(variance + epsilon) over the columns of the row, then scaled."""
    width, config = _row(layer, value), layer.config
    if config.get("axis", -1) not in (-1, 1, [-1], [1]) or config.get("rms_scaling"):
        raise layer.not_as_nodes("must have axis=-1 and no rms_scaling to be imported")
    centred = Affine(walk.numbers(value), np.eye(width) - 1.0 / width, np.zeros(width))
    spread = Affine(Elementwise(centred, "square"), np.full((1, width), 1.0 / width),
                    np.array([float(config["epsilon"])]))  # fmt: skip
    out = Product(centred, Elementwise(Elementwise(spread, "sqrt"), "reciprocal"))
    kept = iter(range(2))
    gamma = layer.weight(next(kept), (width,)) if config.get("scale", True) else np.ones(width)
    beta = layer.weight(next(kept), (width,)) if config.get("center", True) else np.zeros(width)
    return _made(Affine(out, np.diag(gamma), beta))


def _normalization(layer: Layer, value: Value, walk: Walk) -> Value:
    """(x - mean) / sqrt(variance) by column, or its inverse."""
    width, config = _row(layer, value), layer.config
    mean, variance = config.get("mean"), config.get("variance")
    if mean is None or variance is None:
        if len(layer.weights) < 2:
            raise CorruptModelError(f"The layer {layer.name!r} has no mean and variance; call adapt before training.")
        mean, variance = layer.weights[0], layer.weights[1]
    mean, variance = (np.broadcast_to(np.asarray(v, np.float64).ravel(), width) for v in (mean, variance))
    spread = np.maximum(np.sqrt(variance), 1e-7)  # keras.config.epsilon()
    if not (np.isfinite(mean).all() and np.isfinite(spread).all()):
        raise CorruptModelError(f"The layer {layer.name!r} must have a finite mean, and variances of at least 0.")
    scale, shift = (spread, mean) if config.get("invert") else (1.0 / spread, -mean / spread)
    return _made(Affine(walk.numbers(value), np.diag(scale), np.array(shift)))


def _rescaling(layer: Layer, value: Value, walk: Walk) -> Value:
    scale, offset = (np.broadcast_to(np.asarray(layer.config[k], np.float64), value.shape).ravel()
                     for k in ("scale", "offset"))  # fmt: skip
    return Value(value.shape, Affine(walk.numbers(value), np.diag(scale), offset.copy()))


def _flatten(layer: Layer, value: Value, walk: Walk) -> Value:
    return replace(value, shape=(value.size,))


def _reshape(layer: Layer, value: Value, walk: Walk) -> Value:
    """The same numbers in another shape, of which one size may be -1."""
    shape = [int(n) for n in layer.config["target_shape"]]
    known = int(np.prod([n for n in shape if n != -1], dtype=np.int64))
    shape = [value.size // max(known, 1) if n == -1 else n for n in shape]
    if np.prod(shape, dtype=np.int64) != value.size:
        raise CorruptModelError(f"The layer {layer.name!r} cannot give {value.shape} the shape {tuple(shape)}.")
    return replace(value, shape=tuple(shape))


def _embedding(layer: Layer, value: Value, walk: Walk) -> Value:
    """A row of the weights for each code."""
    size, width = int(layer.config["input_dim"]), int(layer.config["output_dim"])
    parts = walk.tables(value, layer.weight(0, (size, width)), layer.name)
    walk.masks |= bool(layer.config.get("mask_zero"))
    return Value((*value.shape, width), side_by_side(parts))


def _category_encoding(layer: Layer, value: Value, walk: Walk) -> Value:
    """One-hot codes; "multi_hot" and "count" join those of several columns."""
    size, mode = int(layer.config["num_tokens"]), layer.config["output_mode"]
    return _encoded(layer, value, walk, size, mode)


def _encoded(layer: Layer, value: Value, walk: Walk, size: int, mode: str) -> Value:
    """Codes as dummies: of one column, or counted over several."""
    parts = walk.tables(value, np.eye(size), layer.name)
    if len(parts) == 1 and mode in ("one_hot", "multi_hot", "count"):
        return _made(parts[0])
    if mode == "count":
        return _made(Sum(tuple(parts)))
    raise layer.refuse(
        f"encodes {len(parts)} columns as {mode!r}; encode each column by itself, or with output_mode='count'"
    )


def _discretization(layer: Layer, value: Value, walk: Walk) -> Value:
    """Columns of the table as numbers of bins, or as dummies of them."""
    edges = layer.config.get("bin_boundaries")
    if edges is None:
        raise layer.refuse("has no boundaries; call adapt on it before training")
    if value.node is not None or not value.raw:
        raise layer.refuse("must read columns of the table themselves to be imported: it rounds them to float32 first")
    edges = tuple(float(e) for e in edges)
    if not np.isfinite(edges).all() or (np.diff(np.asarray(edges, np.float32)) <= 0).any():
        raise CorruptModelError(f"The layer {layer.name!r} must have boundaries that rise in float32.")
    codes = Value(value.shape, codes=tuple(Bins(j, edges) for j in value.raw))
    mode = layer.config.get("output_mode", "int")
    return codes if mode == "int" else _encoded(layer, codes, walk, len(edges) + 1, mode)


def _lookup(layer: Layer, value: Value, walk: Walk) -> Value:
    codes, size = looked_up_labels(layer, value, walk)
    mode = layer.config.get("output_mode", "int")
    return codes if mode == "int" else _encoded(layer, codes, walk, size, mode)


# ---------------------------------------------------------------- layers with several inputs


def _concatenate(layer: Layer, values: Sequence[Value], walk: Walk) -> Value:
    """Columns side by side; raw ones stay raw."""
    if layer.config.get("axis", -1) not in (-1, 1):
        raise layer.not_as_nodes("must join columns (axis=-1) to be imported")
    width = sum(_row(layer, v) for v in values)
    if all(v.raw for v in values):
        return Value((width,), raw=tuple(j for v in values for j in v.raw))
    return _made(side_by_side([walk.numbers(v) for v in values]))


def _merged(join: Callable[[list[Node]], Node]) -> Callable[[Layer, Sequence[Value], Walk], Value]:
    """The function for a layer that combines its inputs elementwise by `join`; rows of width 1 are broadcast."""

    def merge(layer: Layer, values: Sequence[Value], walk: Walk) -> Value:
        if len(values) > 1 and len({v.shape for v in values}) == 1:
            return Value(values[0].shape, join([walk.numbers(v) for v in values]))
        widths = [_row(layer, v) for v in values]
        if len(values) < 2 or {*widths} - {1, max(widths)}:
            raise CorruptModelError(f"The layer {layer.name!r} must join rows of one width; got {widths}.")
        wide = max(widths)
        nodes = [
            node if node.width == wide else Affine(node, np.ones((wide, 1)), np.zeros(wide))
            for node in (walk.numbers(v) for v in values)
        ]
        return _made(join(nodes))

    return merge


def _multiplied(nodes: list[Node]) -> Node:
    """The product of several nodes."""
    out = nodes[0]
    for node in nodes[1:]:
        out = Product(out, node)
    return out


def _less(a: Node, b: Node) -> Node:
    return Sum((a, scaled(b, -1.0)))


def _largest(nodes: list[Node]) -> Node:
    """max(a, b) = a + relu(b - a)."""
    out = nodes[0]
    for node in nodes[1:]:
        out = Sum((out, Elementwise(_less(node, out), "relu")))
    return out


def _smallest(nodes: list[Node]) -> Node:
    return scaled(_largest([scaled(n, -1.0) for n in nodes]), -1.0)


_UNCHANGED = frozenset(
    ("ActivityRegularization", "AlphaDropout", "Dropout", "GaussianDropout", "GaussianNoise", "Identity", "InputLayer")
)
_OF_ONE: dict[str, Callable[[Layer, Value, Walk], Value]] = {
    "Activation": _activation,
    "BatchNormalization": _batch_norm,
    "CategoryEncoding": _category_encoding,
    "Dense": _dense,
    "Discretization": _discretization,
    "ELU": _elu,
    "Embedding": _embedding,
    "Flatten": _flatten,
    "IntegerLookup": _lookup,
    "LayerNormalization": _layer_norm,
    "LeakyReLU": _leaky,
    "Normalization": _normalization,
    "PReLU": _prelu,
    "ReLU": _relu,
    "Rescaling": _rescaling,
    "Reshape": _reshape,
    "Softmax": _softmax,
    "StringLookup": _lookup,
}
_OF_SEVERAL: dict[str, Callable[[Layer, Sequence[Value], Walk], Value]] = {
    "Add": _merged(lambda nodes: Sum(tuple(nodes))),
    "Average": _merged(lambda nodes: scaled(Sum(tuple(nodes)), 1.0 / len(nodes))),
    "Concatenate": _concatenate,
    "Maximum": _merged(_largest),
    "Minimum": _merged(_smallest),
    "Multiply": _merged(_multiplied),
    "Subtract": _merged(lambda nodes: _less(nodes[0], nodes[1])),
}
