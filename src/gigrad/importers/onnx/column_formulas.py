"""Operators that read one raw column several times, number by number: the result stays a function of that column."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import UnsupportedModelError
from ...graph import Affine, Array, Elementwise, Node, PiecewiseLinear
from ..pipeline.steps import Impute, Linear, Present, Single, Stairs, Step
from ..pipeline.table import Constant, Derived, Feature
from .column_steps import Whole
from .formulas import (
    COMPARE,
    THE_NUMBER,
    NotFollowedError,
    Pieces,
    Term,
    are_nan,
    arithmetic,
    chosen,
    compared,
    constant,
    filled,
    joined,
    logarithm,
    looked_up,
    power,
    simplified,
    single_constant,
)
from .proto import Operator
from .shape import Shape
from .values import Cells, Fixed, InSingle, Value, in_shape, shape_of

_FAR = 1e30
"""Beyond this number a power overflows float32, and what onnxruntime then gives is not part of the smooth formula."""
_JUMP = 16.0 * 2.0**-24
"""Differences between neighbouring pieces up to this, relative to their size, are rounding of float32, not jumps."""


@dataclass(frozen=True, eq=False)
class Formula(Step):
    """What operators make of a column, piece by piece."""

    pieces: Pieces

    def __call__(self, z: NDArray[Any]) -> NDArray[Any]:
        return self.pieces(z)

    def cuts(self) -> Array:
        return self.pieces.edges

    def places(self) -> Array:
        return self.pieces.places

    def jumps(self) -> Stairs | None:
        lines = _lines(self.pieces)
        if lines is None:
            return None
        heights = _heights(self.pieces, *lines)
        at = np.flatnonzero(heights)
        if not len(at):
            return None
        edges, places = self.pieces.edges[at], self.pieces.places[at]
        return Stairs(edges, np.concatenate([[0.0], np.cumsum(heights[at])]), missing=0.0, stored=places)

    def node(self, source: Node) -> Node:
        lines = _lines(self.pieces)
        if lines is not None:
            return _bent(source, self.pieces, *lines)
        found = _smooth(self.pieces)
        if found is None:
            raise UnsupportedModelError(
                "A smooth model reads what operators make of a column where that is linear between edges, or a power "
                "transformation (Yeo-Johnson, Box-Cox); this is neither. Trees read it, and so does the model in the "
                "library that trained it."
            )
        return Elementwise(source, found[0], found[1])


# ---------------------------------------------------------------- pieces as nodes


def _line(term: Term) -> tuple[float, float] | None:
    """Slope and intercept of a linear formula."""
    if term.constant:
        return (0.0, term.value) if np.isfinite(term.value) else None
    if term.kind == "number":
        return 1.0, 0.0
    parts = [_line(p) for p in term.parts]
    if any(p is None for p in parts) or term.kind in ("Pow", "Log") or term.type in ("int32", "int64"):
        return None
    lines = [p for p in parts if p is not None]
    (a, b), (c, d) = lines[0], lines[-1]
    if term.kind == "Cast":
        return a, b
    if term.kind == "Neg":
        return -a, -b
    if term.kind in ("Add", "Sub"):
        sign = 1.0 if term.kind == "Add" else -1.0
        return a + sign * c, b + sign * d
    if term.kind == "Div":
        return a / d, b / d
    return (a * d, b * d) if c == 0.0 else (c * b, d * b)


def _lines(pieces: Pieces) -> tuple[Array, Array] | None:
    """Slope and constant of every piece; None if one is no line."""
    found = [_line(t) for t in pieces.terms]
    if any(v is None for v in found):
        return None
    both = np.array([v for v in found if v is not None])
    return both[:, 0], both[:, 1]


def _heights(pieces: Pieces, slope: Array, shift: Array) -> Array:
    """The jump at each edge; 0 for the rounding of float32."""
    at = pieces.places
    low, high = slope[:-1] * at + shift[:-1], slope[1:] * at + shift[1:]
    size = np.abs(shift).max() + np.abs(slope[:-1] * at).max(initial=0.0)
    return np.where(np.abs(high - low) > _JUMP * size, high - low, 0.0)


def _bent(source: Node, pieces: Pieces, slope: Array, shift: Array) -> Node:
    """The function without its jumps: a line that bends at edges."""
    if not len(pieces.edges):
        return Affine(source, slope[:, None], shift)
    knots, first = np.unique(pieces.places, return_index=True)
    inner = np.append(slope[first], slope[-1])  # of the pieces that are longer than one number
    rises = inner[1:-1] * np.diff(knots)
    heights = slope[0] * knots[0] + shift[0] + np.concatenate([[0.0], np.cumsum(rises)])
    if inner[0] != 0.0 or inner[-1] != 0.0:
        raise UnsupportedModelError(
            "A smooth model reads what operators make of a column where that is constant beyond the first and the last "
            "edge; this is not. Trees read it, and so does the model in the library that trained it."
        )
    return PiecewiseLinear(source, knots, heights) if len(knots) > 1 else Affine(source, np.zeros((1, 1)), heights)


def _smooth(pieces: Pieces) -> tuple[str, float] | None:
    """The name and the exponent of a power transformation that the pieces are; None for others."""
    inside = [
        t
        for t, low, high in zip(
            pieces.terms, np.append(-np.inf, pieces.edges), np.append(pieces.edges, np.inf), strict=True
        )
        if high > -_FAR and low < _FAR and not (t.constant and (t.value != t.value or t.value == 0.0))
    ]
    found = [_power_of(t) for t in inside]
    if len(found) == 1 and found[0] is not None and found[0][0] == "box_cox":
        return found[0]
    if len(found) == 2 and all(v is not None for v in found):
        names = [v[0] for v in found if v is not None]
        below, above = (v[1] for v in found if v is not None)
        if names == ["below zero", "above zero"] and abs(2.0 - below - above) <= 4.0 * 2.0**-24 * max(1.0, abs(above)):
            return "yeo_johnson", above
    return None


def _power_of(term: Term) -> tuple[str, float] | None:
    """Which part of a power transformation a formula is, and its exponent."""
    one = constant(1.0)
    if term.kind != "Div" or term.parts[0].kind != "Sub" or not term.parts[1].constant:
        return None
    exponent = term.parts[1]
    shapes = {
        "box_cox": (_raised(THE_NUMBER, exponent), one),
        "above zero": (_raised(Term("Add", (THE_NUMBER, one)), exponent), one),
        "below zero": (one, _raised(Term("Sub", (one, THE_NUMBER)), exponent)),
    }
    name = next((n for n, parts in shapes.items() if term.parts[0].parts == parts), None)
    return None if name is None else (name, exponent.value)


def _raised(base: Term, exponent: Term) -> Term:
    return Term("Pow", (base, exponent))


# ---------------------------------------------------------------- columns as pieces


@dataclass(frozen=True, eq=False)
class _Column:
    """A function of one raw column, read through some casts; None for what is the same for all rows."""

    column: int | None
    casts: tuple[Step, ...]
    pieces: Pieces


def _of(feature: Feature, type: str) -> _Column:
    """A feature as pieces over its column, and the casts that come first."""
    if isinstance(feature, Constant):
        return _Column(None, (), single_constant(feature.value, type))
    if not isinstance(feature, Derived):
        raise NotFollowedError
    first = next((i for i, s in enumerate(feature.steps) if not isinstance(s, (Single, Present))), len(feature.steps))
    pieces = Pieces(np.zeros(0), np.zeros(0), (THE_NUMBER,), np.nan, "float64" if type == "float64" else "float32")
    for step in feature.steps[first:]:
        pieces = _through(pieces, step)
    return _Column(feature.column, feature.steps[:first], Pieces(*_fields(pieces), type))


def _fields(pieces: Pieces) -> tuple[Array, Array, tuple[Term, ...], float]:
    return pieces.edges, pieces.places, pieces.terms, pieces.missing


def _through(pieces: Pieces, step: Step) -> Pieces:
    """The pieces after a step that an earlier operator appended to the column."""
    if isinstance(step, Formula) and pieces.terms == (THE_NUMBER,):
        return step.pieces
    if isinstance(step, (InSingle, Linear)):
        type_ = "float32" if isinstance(step, InSingle) else pieces.type
        for kind, value in (("Sub", step.minus), ("Div", step.over), ("Mul", step.times), ("Add", step.plus)):
            if value is not None:
                pieces = arithmetic(kind, type_, pieces, single_constant(value, type_))
        return pieces
    if isinstance(step, Whole):
        return arithmetic("Cast", "int64", pieces)
    if isinstance(step, Single):
        return pieces if pieces.flat else arithmetic("Cast", "float32", pieces)
    if isinstance(step, Impute) and not isinstance(step.fill, str) and not step.both:
        return filled(pieces, np.nan if step.marker is None else float(step.marker), float(step.fill))
    if isinstance(step, Stairs) and step.missing is not None:
        return _on_stairs(pieces, step)
    raise NotFollowedError


def _on_stairs(pieces: Pieces, step: Stairs) -> Pieces:
    """Pieces mapped by a step function."""
    if pieces.terms == (THE_NUMBER,):
        return Pieces(step.edges, step.places(), tuple(constant(v) for v in step.values), step.missing or 0.0, "bool")
    values = step(np.append(pieces.values, pieces.missing))
    terms = tuple(constant(v) for v in values[:-1])
    return simplified(Pieces(pieces.edges, pieces.places, terms, float(values[-1]), "bool"))


def _feature(found: _Column) -> Feature:
    """The function of a column as the simplest kind of feature that represents it: constant, copy, steps, formula."""
    pieces = found.pieces
    if pieces.flat and not len(pieces.edges):
        value = pieces.terms[0].value
        if found.column is None or value == pieces.missing or (value != value and pieces.missing != pieces.missing):
            return Constant(value)
    if found.column is None:
        raise NotFollowedError
    if pieces.terms == (THE_NUMBER,) and np.isnan(pieces.missing):
        return Derived(found.column, found.casts)
    if pieces.flat:
        stairs = Stairs(pieces.edges, pieces.values, pieces.missing, pieces.places)
        return Derived(found.column, (*found.casts, stairs))
    if not np.isnan(pieces.missing) and not any(t.constant and np.isnan(t.value) for t in pieces.terms):
        # as an imputer behind the formula, which smooth models read
        through = Formula(replace(pieces, missing=np.nan))
        return Derived(found.column, (*found.casts, through, Impute(pieces.missing)))
    return Derived(found.column, (*found.casts, Formula(pieces)))


# ---------------------------------------------------------------- operators


def followed(operator: Operator, values: Sequence[Value]) -> Value | None:
    """The result of an operator on columns, each a function of one raw column; None where it is not."""
    cells = [v for v in values if isinstance(v, Cells)]
    if len(cells) + sum(isinstance(v, Fixed) for v in values) != len(values) or not cells:
        return None
    if any(c.type == "string" for c in cells):
        return None
    try:
        return _number_by_number(operator, values, cells)
    except NotFollowedError:
        return None


def _number_by_number(operator: Operator, values: Sequence[Value], cells: Sequence[Cells]) -> Value | None:
    """The value of an operator over columns, each number a function of one column; None if one mixes several."""
    kind = operator.kind
    type_ = next((c.type for c in cells if c.type != "bool"), "bool")
    tensors, shape = _broadcast(operator, values[:1] if kind in ("Imputer", "Gather") else values)
    if tensors is None or shape is None:
        return None
    out: list[Feature] = []
    for place in range(shape.size):
        operands = [_operand(v, t, place, type_) for v, t in zip(values, tensors, strict=False)]
        columns = {c.column for c in operands} - {None}
        casts = {tuple(type(s) for s in c.casts) for c in operands if c.column is not None}
        if len(columns) > 1 or len(casts) > 1:
            return None
        first = next((c for c in operands if c.column is not None), operands[0])
        found = _applied(operator, [c.pieces for c in operands], type_, place)
        out.append(_feature(_Column(first.column, first.casts, found)))
    to = "bool" if kind in (*COMPARE, "IsNaN", "And", "Or") else type_
    return in_shape(Cells(tuple(out), to), shape)


def _broadcast(operator: Operator, values: Sequence[Value]) -> tuple[list[NDArray[Any]] | None, Shape | None]:
    """For each value the numbers of its columns, or its constants, as wide as the result, and the result's shape."""
    shapes = [shape_of(v) for v in values if isinstance(v, Cells)]
    first = shapes[0]
    if first.joined:
        if any(s != first for s in shapes) or any(v.array.size != 1 for v in values if isinstance(v, Fixed)):
            return None, None
        every = np.arange(first.size)
        return [np.broadcast_to(v.array.ravel(), every.shape) if isinstance(v, Fixed) else every for v in values], first
    if len({(s.axis, s.rank) for s in shapes}) > 1:
        return None, None
    tensors = [v.numbers() if isinstance(v, Fixed) else shape_of(v).numbered(operator.kind) for v in values
               if isinstance(v, (Fixed, Cells))]  # fmt: skip
    if any(t.ndim > first.rank or (t.ndim == first.rank and t.shape[first.axis] != 1) for t in tensors):
        return None, None
    wide = np.broadcast_arrays(*tensors)
    if wide[0].ndim != first.rank:
        return None, None
    sizes = wide[0].shape
    return [w.ravel() for w in wide], Shape(sizes[: first.axis], sizes[first.axis + 1 :])


def _operand(value: Value, tensor: NDArray[Any], place: int, type_: str) -> _Column:
    if isinstance(value, Cells):
        return _of(value.features[int(tensor[place])], value.type)
    return _Column(None, (), single_constant(float(tensor[place]), type_))


def _applied(operator: Operator, operands: Sequence[Pieces], type_: str, place: int) -> Pieces:
    """One operator on the pieces of its operands."""
    kind = operator.kind
    if kind in COMPARE:
        return compared(kind, *operands)
    if kind in ("And", "Or"):
        return joined(kind, *operands)
    if kind == "IsNaN":
        return are_nan(operands[0])
    if kind == "Where":
        return chosen(operands[0], operands[1], operands[2], type_)
    if kind == "Pow":
        return power(operands[0], float(operands[1].values[0]), type_) if len(operands[1].terms) == 1 else _no()
    if kind == "Log":
        return logarithm(operands[0], type_)
    if kind == "Imputer":
        fills = operator.get("imputed_value_floats") or [0.0]
        marker = float(operator.get("replaced_value_float", 0.0))
        return filled(operands[0], marker, float(fills[place if len(fills) > 1 else 0]))
    return arithmetic(kind, type_, *operands)


def _no() -> Pieces:
    raise NotFollowedError


def gathered(operator: Operator, values: Sequence[Value]) -> Value | None:
    """Gather of numbers in a row of constants, at indices that are functions of columns."""
    table, index = values
    if not isinstance(table, Fixed) or table.array.ndim != 1 or not isinstance(index, Cells):
        return None
    numbers = table.numbers()
    type_ = "float32" if table.array.dtype == np.float32 else str(table.array.dtype)
    try:
        found = [_of(f, index.type) for f in index.features]
        out = tuple(_feature(_Column(c.column, c.casts, looked_up(numbers, c.pieces, type_))) for c in found)
    except NotFollowedError:
        return None
    return in_shape(Cells(out, type_), shape_of(index))


def has_formula(values: Sequence[Value]) -> bool:
    """Whether one of the columns is a formula, which steps of other operators cannot read."""
    return any(
        isinstance(f, Derived) and any(isinstance(s, Formula) for s in f.steps)
        for v in values
        if isinstance(v, Cells)
        for f in v.features
    )


FOLLOWED: dict[str, Callable[[Operator, Sequence[Value]], Value | None]] = dict.fromkeys(
    ("Add", "Sub", "Mul", "Div", "Neg", "Pow", "Log", "IsNaN", "Where", "And", "Or", "Imputer", *COMPARE), followed
)
"""The function for each operator that may read one column several times."""
