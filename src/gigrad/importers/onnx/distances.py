"""Scan as skl2onnx writes it: the squared distances of each row from constant ones, and kernels of these."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...errors import UnsupportedModelError
from ...graph import Affine, Array, Elementwise, Factor, KernelMachine, Node
from .common import node_of, placed
from .proto import Body, Operator
from .shape import Shape
from .values import Distances, Fixed, Numbers, Value

MOST = 1 << 22
"""The largest size of the matrix that adds up squares, for distances that are not the exponent of a Gaussian kernel."""


def scan(operator: Operator, values: Sequence[Value]) -> Value:
    """The loop that subtracts one constant row after the other from all rows and adds up the squares."""
    body = operator.get("body")
    constant = values[1] if len(values) == 2 else None
    plain = all(not operator.get(k) for k in ("scan_input_axes", "scan_output_axes", "scan_input_directions"))
    if not (isinstance(body, Body) and isinstance(constant, Fixed) and constant.array.ndim == 2 and plain):
        raise UnsupportedModelError(
            "Scan is imported only where it measures squared distances from constant rows; another loop was found."
        )
    node = node_of(operator, values[0])
    support = constant.numbers()
    if not _measures(body) or support.shape[1] != node.width or int(operator.get("num_scan_inputs", 0)) != 1:
        raise UnsupportedModelError(
            "Scan is imported only where it measures squared distances from constant rows; another loop was found."
        )
    return Distances(node, support, 1.0, turned=False)


def _measures(body: Body) -> bool:
    """Whether a loop passes its rows on, and outputs the sums of their squared differences from another row."""
    if len(body.inputs) != 2 or len(body.outputs) != 2:
        return False
    made = {o.outputs[0]: o for o in body.operators if o.outputs}

    def behind(name: str) -> str:
        for _ in body.operators:
            if name in made and made[name].kind == "Identity":
                name = made[name].inputs[0]
        return name

    squares = made.get(behind(body.outputs[1]))
    if behind(body.outputs[0]) != body.inputs[0] or squares is None or squares.kind != "ReduceSumSquare":
        return False
    axes = squares.get("axes", body.constants.get(squares.inputs[1]) if len(squares.inputs) > 1 else None)
    difference = made.get(behind(squares.inputs[0]))
    return (
        axes is not None
        and np.asarray(axes).ravel().tolist() in ([1], [-1])
        and not int(squares.get("keepdims", 1))
        and difference is not None
        and difference.kind == "Sub"
        and sorted(map(behind, difference.inputs)) == sorted(body.inputs)
    )


def followed(operator: Operator, values: Sequence[Value]) -> Value | None:
    """The result of an operator on distances if it is a multiple or a Gaussian kernel of them; None for others."""
    value = next((v for v in values if isinstance(v, Distances)), None)
    if value is None:
        return None
    if operator.kind == "Transpose" and operator.get("perm", [1, 0]) == [1, 0]:
        return Distances(value.node, value.support, value.factor, not value.turned)
    if operator.kind == "Neg":
        return Distances(value.node, value.support, -value.factor, value.turned)
    number = _scalar(values[1 - values.index(value)]) if len(values) == 2 else None
    if operator.kind == "Mul" and number is not None:
        return Distances(value.node, value.support, value.factor * number, value.turned)
    if operator.kind == "Div" and number and value is values[0]:
        return Distances(value.node, value.support, value.factor / number, value.turned)
    if operator.kind == "Exp" and value.turned and value.factor < 0.0:
        count, width = value.support.shape
        scale = Factor("gaussian", np.full(width, np.sqrt(-value.factor)))
        return Numbers(KernelMachine(value.node, value.support, np.eye(count), np.zeros(count), (scale,)))
    return None


def _scalar(value: Value) -> float | None:
    return float(value.numbers().ravel()[0]) if isinstance(value, Fixed) and value.array.size == 1 else None


def as_numbers(value: Distances) -> Numbers:
    """Distances as numbers: differences, their squares, and sums of these, which do not cancel near zero."""
    count, width = value.support.shape
    if count * count * width > MOST:
        raise UnsupportedModelError(
            f"Distances from {count} rows of {width} columns are imported only as the exponent of a Gaussian kernel: "
            "for other uses they are too many. Explain the model in the library that trained it."
        )
    apart = Affine(value.node, np.tile(np.eye(width), (count, 1)), -value.support.ravel())
    added = np.kron(np.eye(count), np.full((1, width), value.factor))
    total = Affine(Elementwise(apart, "square"), added, np.zeros(count))
    return placed(total, Shape((), (count,)) if value.turned else Shape((count,), ()))


def of_kernels(node: Node, weight: Array) -> Node | None:
    """`weight @ node` of kernels that each stand alone: an expansion over their support vectors."""
    if not isinstance(node, KernelMachine) or node.width != len(node.support) or node.width < 2:
        return None
    if not np.array_equal(node.weight, np.eye(node.width)):
        return None
    return KernelMachine(node.source, node.support, np.ascontiguousarray(weight), weight @ node.bias, node.factors)
