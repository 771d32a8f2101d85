"""Functions of one number, piece by piece: what operators make of a column that they read several times.

skl2onnx writes a QuantileTransformer as a binary search among constants and an interpolation, and a PowerTransformer as
two formulas of which one is chosen. Both are followed operator by operator: between two neighbouring edges every
comparison has one answer, so what is left there is a constant, or one monotone formula of the number. Numbers are
computed as ONNX computes them, each operation rounded to the type of its tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...graph import Array
from ...kernels import power as power_of_c
from ..pipeline.pieces import changes

_LARGEST_SINGLE = float(np.finfo(np.float32).max)


class NotFollowedError(Exception):
    """What operators make of a column is not monotone between edges, or not known to be."""


# ---------------------------------------------------------------- formulas


@dataclass(frozen=True)
class Term:
    """A formula of one number: the number itself, a constant, or an operator on formulas."""

    kind: str
    parts: tuple[Term, ...] = ()
    value: float = 0.0
    type: str = "float32"

    @property
    def constant(self) -> bool:
        return self.kind == "constant"


THE_NUMBER = Term("number")


def constant(value: float) -> Term:
    return Term("constant", (), float(value))


def _power(base: NDArray[Any], exponent: NDArray[Any]) -> NDArray[Any]:
    """The function of the C library, which onnxruntime calls too, but for whole exponents, refused by `power`."""
    wide = np.broadcast_to(exponent, base.shape).astype(np.float64)
    return power_of_c(base.astype(np.float64), wide, base.dtype == np.float32).astype(base.dtype)


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide, "Neg": np.negative, "Pow": _power,
    "Log": np.log, "Cast": np.positive,
}  # fmt: skip
COMPARE: dict[str, Callable[..., Any]] = {
    "Less": np.less, "Greater": np.greater, "LessOrEqual": np.less_equal, "GreaterOrEqual": np.greater_equal,
    "Equal": np.equal,
}  # fmt: skip


def computed(kind: str, type: str, values: Sequence[Any]) -> NDArray[Any]:
    """The result of an operator in the type of its tensor; integers are held as float64."""
    given = [np.asarray(v, np.float32 if type == "float32" else np.float64) for v in values]
    with np.errstate(all="ignore"):
        out = np.asarray(_FUNCTIONS[kind](*given))
    return np.trunc(out) if type in ("int32", "int64") else out


def evaluated(term: Term, x: NDArray[Any]) -> NDArray[Any]:
    """A term of a formula at the numbers `x` of its column."""
    if term.constant:
        return np.full(len(x), term.value)
    if term.kind == "number":
        return x
    return computed(term.kind, term.type, [evaluated(p, x) for p in term.parts])


def direction(term: Term) -> int:
    """1 for a formula that never falls, -1 for one that never rises, 0 for a constant.

    Rounding keeps this, since it is monotone itself. Raises NotFollowedError where it is not known.
    """
    if term.constant:
        return 0
    if term.kind == "number":
        return 1
    first = direction(term.parts[0])
    if term.kind in ("Cast", "Log"):
        return first
    if term.kind == "Neg":
        return -first
    other = direction(term.parts[1])
    if term.kind in ("Add", "Sub"):
        return _together(first, other if term.kind == "Add" else -other)
    a, b = term.parts
    if term.kind == "Mul" and a.constant:
        a, b, first, other = b, a, other, first
    if other != 0:
        raise NotFollowedError
    return first * int(np.sign(b.value))  # for a power the base is not negative: see `power`


def _together(first: int, second: int) -> int:
    if first and second and first != second:
        raise NotFollowedError
    return first or second


# ---------------------------------------------------------------- pieces


@dataclass(frozen=True, eq=False)
class Pieces:
    """A function of one number: `terms[i]` up to and with `edges[i]`, the last one beyond the last edge.

    Attributes
    ----------
    places : (edges,)
        The number that the model compares with at each edge, or the middle of the two numbers that it separates.
    missing : float
        The result for NaN.
    type : str
        The type of the tensor; "bool" is 0 and 1.
    """

    edges: Array
    places: Array
    terms: tuple[Term, ...]
    missing: float
    type: str

    def __call__(self, z: NDArray[Any]) -> NDArray[Any]:
        z = np.asarray(z, np.float64)
        at = np.searchsorted(self.edges, z, side="left")
        out = np.empty(len(z))
        with np.errstate(over="ignore"):
            for i in np.unique(at).tolist():
                out[at == i] = evaluated(self.terms[i], z[at == i])
        return np.where(np.isnan(z), self.missing, out)

    @property
    def flat(self) -> bool:
        return all(t.constant for t in self.terms)

    @property
    def values(self) -> Array:
        """The constants of pieces that are all constant."""
        if not self.flat:
            raise NotFollowedError
        return np.array([t.value for t in self.terms])


def single_constant(value: float, type: str) -> Pieces:
    return Pieces(np.zeros(0), np.zeros(0), (constant(value),), float(value), type)


def refined(operands: Sequence[Pieces]) -> tuple[Array, Array, list[tuple[Term, ...]]]:
    """The edges of all operands, their places, and the formulas of the operands on each piece."""
    every = np.concatenate([p.edges for p in operands])
    edges, first = np.unique(every, return_index=True)
    places = np.concatenate([p.places for p in operands])[first]
    ends = np.append(edges, np.inf)
    at = [np.searchsorted(p.edges, ends, side="left") for p in operands]
    return edges, places, [tuple(p.terms[a[i]] for p, a in zip(operands, at, strict=True)) for i in range(len(ends))]


def arithmetic(kind: str, type: str, *operands: Pieces) -> Pieces:
    """Add, Sub, Mul, Div, Neg, Cast of functions of one number."""
    if kind == "Div" and not operands[1].flat:
        return _quotient(type, *operands)
    edges, places, terms = refined(operands)
    missing = float(computed(kind, type, [p.missing for p in operands]))
    if kind == "Mul" and type in ("int32", "int64") and 0.0 in (p.missing for p in operands):
        missing = 0.0  # no integer is NaN
    return simplified(Pieces(edges, places, tuple(folded(kind, type, t) for t in terms), missing, type))


def folded(kind: str, type: str, parts: tuple[Term, ...]) -> Term:
    """An operator on formulas, as simple as it can be written without rounding otherwise."""
    if all(p.constant for p in parts):
        return constant(float(computed(kind, type, [p.value for p in parts])))
    if any(p.constant and np.isnan(p.value) for p in parts):
        return constant(np.nan)
    if kind == "Sub" and parts[0] == parts[1]:
        return constant(0.0)
    if kind == "Mul" and any(p.constant and p.value == 0.0 for p in parts):
        return constant(0.0)  # what is not constant is finite
    if kind in ("Add", "Mul"):
        for one, other in (parts, parts[::-1]):
            if one.constant and one.value == float(kind == "Mul"):
                return other
    if kind == "Cast" and type == parts[0].type:
        return parts[0]
    term = Term(kind, parts, 0.0, type)
    direction(term)
    return term


def simplified(pieces: Pieces) -> Pieces:
    """The same function without edges between equal formulas; NaN is equal to NaN."""

    def same(a: Term, b: Term) -> bool:
        return a == b or (a.constant and b.constant and a.value != a.value and b.value != b.value)

    kept = np.array([not same(a, b) for a, b in zip(pieces.terms[:-1], pieces.terms[1:], strict=True)], bool)
    terms = tuple(t for t, keep in zip(pieces.terms, [*kept, True], strict=True) if keep)
    return Pieces(pieces.edges[kept], pieces.places[kept], terms, pieces.missing, pieces.type)


def _quotient(type: str, above: Pieces, below: Pieces) -> Pieces:
    """A function divided by itself: 1, but NaN where it is zero."""
    _, _, terms = refined((above, below))
    if any(a != b for a, b in terms):
        raise NotFollowedError
    zero = compared("Equal", below, single_constant(0.0, type))
    return chosen(zero, single_constant(np.nan, type), single_constant(1.0, type), type)


def power(base: Pieces, exponent: float, type: str) -> Pieces:
    """The power of a function; where it is negative it has none."""
    if float(exponent).is_integer():
        raise NotFollowedError
    wanted = single_constant(exponent, type)
    negative = compared("Less", base, single_constant(0.0, type))
    held = chosen(negative, single_constant(np.nan, type), base, type)
    return _mapped(held, lambda t: folded("Pow", type, (t, wanted.terms[0])), ("Pow", exponent), type)


def logarithm(source: Pieces, type: str) -> Pieces:
    """The logarithm of a function; of zero it is minus infinity, and of what is negative there is none."""
    nothing = single_constant(0.0, type)
    held = chosen(compared("Less", source, nothing), single_constant(np.nan, type), source, type)
    held = chosen(compared("Equal", source, nothing), nothing, held, type)
    return _mapped(held, lambda t: folded("Log", type, (t,)), ("Log", None), type)


def _mapped(source: Pieces, function: Callable[[Term], Term], operator: tuple[str, float | None], type: str) -> Pieces:
    kind, second = operator
    missing = float(computed(kind, type, [[source.missing], *([] if second is None else [[second]])])[0])
    return simplified(Pieces(source.edges, source.places, tuple(map(function, source.terms)), missing, type))


# ---------------------------------------------------------------- comparisons


def compared(kind: str, a: Pieces, b: Pieces) -> Pieces:
    """A comparison of two functions of one number: 0 and 1 between edges, which are found by bisection."""
    edges, places, terms = refined((a, b))
    for first, second in terms:
        _together(direction(first), -direction(second))
    compare = COMPARE[kind]

    def answer(how: Callable[..., Any]) -> Callable[[Array], Array]:
        return lambda z: np.asarray(how(a(z), b(z)), np.float64)

    tests = [np.less_equal, np.greater_equal] if kind == "Equal" else [compare]
    single = "float64" not in (a.type, b.type)
    for test in tests:
        found = changes(answer(test), edges, lambda z, which: z > 0.5, 1).edges
        found = np.setdiff1d(_in_single(found) if single else found, edges)
        about = [_place(e, terms[i], single) for e, i in zip(found, np.searchsorted(edges, found), strict=True)]
        order = np.argsort(every := np.concatenate([edges, found]), kind="stable")
        edges, places = every[order], np.concatenate([places, about])[order]
        terms = refined((a, b, Pieces(edges, places, (THE_NUMBER,) * (len(edges) + 1), 0.0, "bool")))[2]
        terms = [t[:2] for t in terms]
    inside = np.append(edges, _after(edges[-1], single) if len(edges) else 0.0)
    values = tuple(constant(v) for v in answer(compare)(inside))
    return simplified(Pieces(edges, places, values, float(compare(a.missing, b.missing)), "bool"))


def _in_single(edges: Array) -> Array:
    """The last float32 up to each edge; those beyond all float32 are left out."""
    with np.errstate(over="ignore"):
        near = edges.astype(np.float32)
    near = np.where(near > edges, np.nextafter(near, np.float32(-np.inf)), near).astype(np.float64)
    return np.unique(near[np.abs(near) < _LARGEST_SINGLE])


def _after(edge: float, single: bool) -> float:
    return float(np.nextafter(np.float32(edge), np.float32(np.inf))) if single else float(np.nextafter(edge, np.inf))


def _place(edge: float, terms: tuple[Term, ...], single: bool) -> float:
    """The number that is compared with; for formulas, the middle of the two numbers that an edge separates."""
    one, other = terms if terms[1].constant else terms[::-1]
    if other.constant and one == THE_NUMBER:
        return other.value
    if other.constant and one.kind == "Neg" and one.parts[0] == THE_NUMBER:
        return -other.value
    return 0.5 * edge + 0.5 * _after(edge, single)


def chosen(condition: Pieces, yes: Pieces, no: Pieces, type: str) -> Pieces:
    """Where: one of two functions, by a condition that is 0 or 1."""
    if not condition.flat:
        raise NotFollowedError
    edges, places, terms = refined((condition, yes, no))
    picked = tuple(t[1] if t[0].value != 0.0 else t[2] for t in terms)
    return simplified(Pieces(edges, places, picked, yes.missing if condition.missing else no.missing, type))


def looked_up(table: Array, index: Pieces, type: str) -> Pieces:
    """Constants at an index that is constant on each piece."""
    places = np.append(index.values, index.missing)
    if not ((places >= -len(table)) & (places < len(table)) & (places == np.trunc(places))).all():
        raise NotFollowedError
    found = table[places.astype(np.int64)]
    terms = tuple(constant(v) for v in found[:-1])
    return simplified(Pieces(index.edges, index.places, terms, float(found[-1]), type))


def are_nan(source: Pieces) -> Pieces:
    """IsNaN: constants may be NaN, a formula of a number is not."""
    terms = tuple(constant(float(t.constant and t.value != t.value)) for t in source.terms)
    return simplified(Pieces(source.edges, source.places, terms, float(source.missing != source.missing), "bool"))


def filled(source: Pieces, marker: float, fill: float) -> Pieces:
    """Imputer: NaN, or another number that means a missing value, replaced."""
    value = single_constant(fill, source.type)
    if np.isnan(marker):
        return chosen(are_nan(source), value, source, source.type)
    return chosen(compared("Equal", source, single_constant(marker, source.type)), value, source, source.type)


def joined(kind: str, a: Pieces, b: Pieces) -> Pieces:
    """And, Or of functions that are 0 or 1."""
    if not (a.flat and b.flat):
        raise NotFollowedError
    edges, places, terms = refined((a, b))
    how = np.logical_and if kind == "And" else np.logical_or
    values = tuple(constant(float(how(s.value, t.value))) for s, t in terms)
    return simplified(Pieces(edges, places, values, float(how(a.missing, b.missing)), "bool"))
