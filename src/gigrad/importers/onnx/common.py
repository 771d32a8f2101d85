"""Helpers of operators on numbers: nodes of values, scaled columns, layers, the function at the end of a model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...errors import CorruptModelError, UnsupportedModelError
from ...graph import Affine, Array, Concat, Elementwise, Node, Select, Softmax, TreeEnsemble
from ...graph.forests import weighted_sum
from .proto import Operator, unsupported
from .shape import Shape
from .values import Fixed, Numbers, Value, in_shape, shape_of, spread

AS_A_STEP = (
    "skl2onnx writes a StackingRegressor or VotingRegressor that is a step of a pipeline so, as its one prediction: "
    "explain the pipeline in scikit-learn itself."
)
"""What to do about a model that reads more columns than the one before it gives."""

Layer = Callable[[Operator, Sequence[Value]], Value]


def any_shape(operator: Operator, value: Value) -> Numbers:
    """Numbers in a tensor of any shape."""
    if not isinstance(value, Numbers):
        raise unsupported(f"{operator.kind} of constants or predicted classes")
    if value.truncated:
        raise unsupported(f"{operator.kind} of numbers truncated to integers")
    return value


def node_of(operator: Operator, value: Value) -> Node:
    """The node of numbers in rows and columns."""
    numbers = any_shape(operator, value)
    if numbers.shape is not None:
        raise UnsupportedModelError(f"{operator.kind} must read rows and columns to be imported; got {numbers.shape}.")
    return numbers.node


def like(value: Numbers, node: Node) -> Numbers:
    """Another node of as many columns, in the same shape."""
    return Numbers(node, None, value.shape)


# ---------------------------------------------------------------- tensors that are broadcast


@dataclass(frozen=True, eq=False)
class Side:
    """One input of an operator that works number by number: a node or constants, as wide as the result.

    `places` are the columns of the node that the columns of the result read.
    """

    node: Node | None
    places: tuple[int, ...]
    constants: Array

    def wide(self, node: Node | None = None) -> Node:
        """The node, or another one of its width, spread to the columns of the result."""
        found = self.node if node is None else node
        if found is None:
            raise CorruptModelError("An operator of this ONNX model must read numbers; it reads a constant alone.")
        return spread(found, self.places)


def aligned(operator: Operator, values: Sequence[Value]) -> tuple[list[Side], Shape]:
    """What an operator reads, broadcast as ONNX does it, and the shape of the result."""
    numbers = [any_shape(operator, v) for v in values if not isinstance(v, Fixed)]
    shapes = [shape_of(n) for n in numbers]
    first = shapes[0]
    if first.joined:
        if any(s != first for s in shapes) or any(v.array.size != 1 for v in values if isinstance(v, Fixed)):
            raise unsupported(f"{operator.kind} of a tensor {first}, whose rows are joined,")
        every = tuple(range(first.size))
        return [_joined_side(v, every) for v in values], first
    behind = {s.rank - s.axis for s in shapes}  # the axis of the rows, counted from the end
    tensors = [v.numbers() if isinstance(v, Fixed) else shape_of(_numbers(v)).numbered(operator.kind) for v in values]
    wanted = behind.pop()
    if behind or any(t.ndim >= wanted and t.shape[t.ndim - wanted] != 1 for t in tensors):
        said = ", ".join(str(t.shape) if isinstance(v, Fixed) else str(shape_of(_numbers(v))) for v, t in zip(
            values, tensors, strict=True))  # fmt: skip
        raise unsupported(f"{operator.kind} of tensors of the shapes {said}, which mixes rows,")
    wide = np.broadcast_arrays(*tensors)
    full = wide[0].shape
    axis = len(full) - wanted
    sides = []
    for value, tensor in zip(values, wide, strict=True):
        if isinstance(value, Fixed):
            sides.append(Side(None, (), np.array(tensor, np.float64).ravel()))
        else:
            sides.append(Side(_numbers(value).node, tuple(int(i) for i in tensor.ravel()), np.zeros(0)))
    return sides, Shape(full[:axis], full[axis + 1 :])


def _numbers(value: Value) -> Numbers:
    """The value, which must be computed numbers."""
    if not isinstance(value, Numbers):
        raise UnsupportedModelError(
            "An operator of this ONNX model must read numbers; it reads text, labels or a shape."
        )
    return value


def _joined_side(value: Value, every: tuple[int, ...]) -> Side:
    if isinstance(value, Fixed):
        return Side(None, (), np.broadcast_to(value.numbers().ravel(), (len(every),)).copy())
    return Side(_numbers(value).node, every, np.zeros(0))


def placed(node: Node, shape: Shape) -> Numbers:
    """Numbers in a tensor of a shape."""
    found = in_shape(Numbers(node), shape)
    return found if isinstance(found, Numbers) else Numbers(node)


# ---------------------------------------------------------------- layers


def scaled(node: Node, weight: Array, bias: Array) -> Node:
    """`weight * node + bias`, column by column; one column is repeated where the constants are wider."""
    width = max(node.width, weight.size, bias.size)
    w, b = (np.broadcast_to(v.ravel(), (width,)) for v in (weight, bias))
    if isinstance(node, TreeEnsemble) and node.width == width and (w == w[0]).all():
        trees = node if w[0] == 1.0 else weighted_sum([node], [float(w[0])])
        return replace(trees, base=trees.base + b) if b.any() else trees
    if node.width == 1 and width > 1:
        node = Select(node, (0,) * width)
    if node.width != width:
        raise CorruptModelError(f"An operator must have as many constants as columns; got {width} and {node.width}.")
    return Affine(node, np.diag(w), np.array(b))


def affine(node: Node, weight: Array, bias: Array) -> Node:
    if weight.ndim != 2 or weight.shape[1] != node.width:
        raise CorruptModelError(f"A layer of shape {weight.shape} cannot read {node.width} columns.")
    return Affine(node, np.ascontiguousarray(weight), np.array(bias, np.float64))


def combined(node: Node, matrix: Array) -> Node:
    """`matrix @ node`; trees that are only added up and averaged stay one sum of trees."""
    parts = node.parents if isinstance(node, Concat) else (node,)
    blocks = np.split(matrix, np.cumsum([p.width for p in parts])[:-1], axis=1)
    trees = [p for p in parts if isinstance(p, TreeEnsemble) and p.width == len(matrix)]
    if len(trees) == len(parts) and all(t.source is trees[0].source for t in trees):
        shares = [float(block[0, 0]) for block in blocks]
        if all(np.array_equal(b, s * np.eye(len(matrix))) for b, s in zip(blocks, shares, strict=True)):
            return weighted_sum(trees, shares)
    return Affine(node, np.ascontiguousarray(matrix), np.zeros(len(matrix)))


def post(operator: Operator, node: Node) -> Node:
    """The post_transform of an operator, applied to its scores."""
    return post_transformed(operator.get("post_transform", "NONE"), node, operator.kind)


def post_transformed(name: str, node: Node, kind: str) -> Node:
    """The post_transform of a given name, applied to the scores of an operator of some kind."""
    if name == "NONE":
        return node
    if name == "LOGISTIC":
        return Elementwise(node, "sigmoid")
    if name == "SOFTMAX":
        return Softmax(node)
    raise UnsupportedModelError(
        f"The post_transform of {kind} must be NONE, LOGISTIC or SOFTMAX to be imported; got {name}."
    )
