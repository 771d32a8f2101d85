"""Operators that make step functions of columns: comparisons with constants, ArgMax, table lookups."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...graph import Array
from ..pipeline.steps import Linear, Stairs, Step
from ..pipeline.table import Blend, Constant, Derived, Feature, Table, run
from .proto import Operator
from .shape import Shape
from .values import Cells, Fixed, Value, in_shape, shape_of

MIRRORED = {
    "Less": "Greater", "Greater": "Less", "LessOrEqual": "GreaterOrEqual", "GreaterOrEqual": "LessOrEqual",
    "Equal": "Equal",
}  # fmt: skip
"""The comparison with its two sides swapped."""


@dataclass(frozen=True, eq=False)
class Whole(Step):
    """A number truncated to an integer."""

    def takes(self, z: NDArray[Any]) -> bool:
        return bool(np.isfinite(np.asarray(z, np.float64)).all())

    def __call__(self, z: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(np.trunc(z))


def then(cells: Cells, steps: Sequence[Step], operator: str, type: str | None = None) -> Cells:
    """The columns with a step appended to each."""
    return Cells(Table(cells.features).then(list(steps), operator).features, type or cells.type, cells.shape)


def compared(operator: Operator, values: Sequence[Value]) -> Value | None:
    """Comparison of columns with constants: 1 where it holds, 0 elsewhere and for NaN."""
    first, second = values
    kind = operator.kind
    if isinstance(first, Fixed):
        first, second, kind = second, first, MIRRORED[kind]
    if not isinstance(first, Cells) or not isinstance(second, Fixed) or first.type == "string":
        return None
    if shape_of(first).joined:
        return None
    index = shape_of(first).numbered(kind)
    rank, axis = index.ndim, shape_of(first).axis
    numbers = second.numbers()
    if numbers.ndim > rank or (numbers.ndim == rank and numbers.shape[axis] != 1):
        return None
    if first.type == "float32":
        numbers = numbers.astype(np.float32).astype(np.float64)
    index, numbers = np.broadcast_arrays(index, numbers)
    wide = Cells(tuple(first.features[i] for i in index.ravel()), first.type)
    out = then(wide, [_stairs(kind, float(t)) for t in numbers.ravel()], kind, "bool")
    return in_shape(out, Shape(index.shape[:axis], index.shape[axis + 1 :]))


def _stairs(kind: str, t: float) -> Stairs:
    """A comparison with `t` as a step function: 1 where it holds."""
    below = float(np.nextafter(t, -np.inf))
    if kind == "Equal":
        return Stairs(np.array([below, t]), np.array([0.0, 1.0, 0.0]), 0.0, np.array([t, t]))
    edge = below if kind in ("Less", "GreaterOrEqual") else t
    up_to = float(kind in ("Less", "LessOrEqual"))
    return Stairs(np.array([edge]), np.array([up_to, 1.0 - up_to]), 0.0, np.array([t]))


def negated(operator: Operator, values: Sequence[Value]) -> Value | None:
    """Not."""
    if not isinstance(values[0], Cells):
        return None
    return then(values[0], [Linear(times=-1.0, plus=1.0)] * len(values[0].features), "Not")


def not_zero(cells: Cells) -> Cells:
    """Cast to bool: 1 for all but zero, also for NaN."""
    edges = np.array([np.nextafter(0.0, -np.inf), 0.0])
    stairs = Stairs(edges, np.array([1.0, 0.0, 1.0]), 1.0, np.zeros(2))
    return then(cells, [stairs] * len(cells.features), "Cast", "bool")


def whole_numbers(cells: Cells, type: str) -> Cells:
    """Cast to integers, by truncation."""
    return then(cells, [Whole()] * len(cells.features), "Cast", type)


def place_of_largest(operator: Operator, values: Sequence[Value]) -> Value | None:
    """ArgMax and ArgMin over step functions of one raw column, which give another step function."""
    cells = values[0]
    if not isinstance(cells, Cells) or not shape_of(cells).plain or int(operator.get("axis", 0)) not in (1, -1):
        return None
    stairs = _together(cells.features, operator.kind == "ArgMin", bool(operator.get("select_last_index", 0)))
    if stairs is None:
        return None
    feature = Derived(stairs[0].column, (*stairs[0].steps, stairs[1]))
    shape = Shape((), (1,)) if int(operator.get("keepdims", 1)) else Shape()
    return in_shape(Cells((feature,), "int64"), shape)


def _together(features: Sequence[Feature], least: bool, last: bool) -> tuple[Derived, Stairs] | None:
    """The common steps of the columns, and the argmax as a step function of their output; None without common steps."""
    derived = [f for f in features if isinstance(f, Derived)]
    constant = [f for f in features if isinstance(f, Constant)]
    if not derived or len(derived) + len(constant) != len(features) or len({f.column for f in derived}) != 1:
        return None
    common = 0
    while all(len(f.steps) > common and f.steps[common] is derived[0].steps[common] for f in derived):
        common += 1
    stairs = [f.steps[common] for f in derived if len(f.steps) > common]
    edges = [s.edges for s in stairs if isinstance(s, Stairs)]
    if len(edges) != len(derived):
        return None
    cuts = np.unique(np.concatenate(edges))
    inside = np.append(cuts, np.nextafter(cuts[-1], np.inf))  # a number of each piece
    table = np.stack(
        [
            run(f.steps[common:], inside) if isinstance(f, Derived) else np.full(len(inside), f.value)
            for f in features
            if not isinstance(f, Blend)
        ],
        axis=1,
    )
    return Derived(derived[0].column, derived[0].steps[:common]), Stairs(cuts, largest(table, least, last))


def largest(table: Array, least: bool, last: bool) -> Array:
    """The index of the largest (or least) number of each row; of several the first, or the last."""
    signed = -table if least else table
    if last:
        return np.asarray(table.shape[1] - 1 - np.argmax(signed[:, ::-1], axis=1), np.float64)
    return np.asarray(np.argmax(signed, axis=1), np.float64)


def looked_up(operator: Operator, values: Sequence[Value]) -> Value | None:
    """Gather and ArrayFeatureExtractor of a constant, indexed by a column of integers."""
    table, index = values
    if not isinstance(table, Fixed) or not isinstance(index, Cells) or len(index.features) != 1:
        return None
    entries, shape = looked_up_shape(operator, table, shape_of(index))
    last = entries.shape[1]
    edges = np.nextafter(np.arange(1.0, last), -np.inf)
    steps = [Stairs(edges, row, None, np.arange(1.0, last)) for row in entries]
    wide = Cells(index.features * len(entries), "float32")
    return in_shape(then(wide, steps, operator.kind), shape)


def looked_up_shape(operator: Operator, table: Fixed, index: Shape) -> tuple[Array, Shape]:
    """The table to look up in, (numbers of a row, indices), and the shape of the result for one index a row."""
    array = table.numbers()
    if operator.kind == "ArrayFeatureExtractor":
        return array.reshape(-1, array.shape[-1]), Shape(array.shape[:-1] or (1,), ())
    axis = int(operator.get("axis", 0)) % array.ndim
    first, after = array.shape[:axis], array.shape[axis + 1 :]
    entries = np.moveaxis(array, axis, -1).reshape(-1, array.shape[axis])
    return entries, Shape((*first, *index.before), (*index.after, *after))


STEPS: dict[str, Callable[[Operator, Sequence[Value]], Value | None]] = {
    **dict.fromkeys(MIRRORED, compared), "Not": negated, "ArgMax": place_of_largest, "ArgMin": place_of_largest,
}  # fmt: skip
"""The function for each operator that makes step functions of columns."""
