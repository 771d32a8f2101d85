"""Keras's activation functions by name, as nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ...graph import Affine, Elementwise, LogSoftmax, Node, PiecewiseLinear, Product, Softmax, Sum
from .walk import NotAsNodes


def scaled(node: Node, factor: float, shift: float = 0.0) -> Node:
    """`factor * x + shift`, elementwise."""
    return Affine(node, factor * np.eye(node.width), np.full(node.width, shift))


def _hard_sigmoid(node: Node) -> Node:
    return PiecewiseLinear(node, np.array([-3.0, 3.0]), np.array([0.0, 1.0]))


def _between(low: float, high: float) -> Callable[[Node], Node]:
    return lambda n: PiecewiseLinear(n, np.array([low, high]), np.array([low, high]))


ACTIVATIONS: dict[str, Callable[[Node], Node]] = {
    "linear": lambda n: n,
    "elu": lambda n: Elementwise(n, "elu", 1.0),
    "celu": lambda n: Elementwise(n, "elu", 1.0),
    "exponential": lambda n: Elementwise(n, "exp"),
    "gelu": lambda n: Elementwise(n, "gelu"),
    "hard_sigmoid": _hard_sigmoid,
    "hard_silu": lambda n: Product(n, _hard_sigmoid(n)),
    "hard_swish": lambda n: Product(n, _hard_sigmoid(n)),
    "hard_tanh": _between(-1.0, 1.0),
    "leaky_relu": lambda n: Elementwise(n, "leaky_relu", 0.2),
    "log_sigmoid": lambda n: scaled(Elementwise(scaled(n, -1.0), "softplus"), -1.0),
    "log_softmax": LogSoftmax,
    "mish": lambda n: Product(n, Elementwise(Elementwise(n, "softplus"), "tanh")),
    "relu": lambda n: Elementwise(n, "relu"),
    "relu6": _between(0.0, 6.0),
    "selu": lambda n: scaled(Elementwise(n, "elu", 1.6732632423543772), 1.0507009873554805),
    "sigmoid": lambda n: Elementwise(n, "sigmoid"),
    "silu": lambda n: Elementwise(n, "silu"),
    "softmax": Softmax,
    "softplus": lambda n: Elementwise(n, "softplus"),
    "softsign": lambda n: Product(n, Elementwise(scaled(Elementwise(n, "abs"), 1.0, 1.0), "reciprocal")),
    "swish": lambda n: Elementwise(n, "silu"),
    "tanh": lambda n: Elementwise(n, "tanh"),
    "tanh_shrink": lambda n: Sum((n, scaled(Elementwise(n, "tanh"), -1.0))),
}


def activated(node: Node, name: Any, layer: str) -> Node:
    """A node with an activation function of that name in Keras applied to it."""
    if name is None:
        return node
    if isinstance(name, Mapping):
        name = name.get("config") if name.get("class_name") == "function" else name.get("class_name")
    if not isinstance(name, str) or name not in ACTIVATIONS:
        raise NotAsNodes(
            f"The activation {str(name)!r} of the layer {layer!r} of this Keras model is not imported. Imported are "
            f"{', '.join(sorted(ACTIVATIONS))}."
        )
    return ACTIVATIONS[name](node)
