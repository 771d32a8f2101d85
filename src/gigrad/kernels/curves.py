"""Curves on panels by the native core: see `engine.mixed.native_curves`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from . import _native
from .arrays import Array, Ints
from .arrays import integers as _whole
from .arrays import numbers as _rows


@dataclass(frozen=True, eq=False)
class CurveValues:
    """What `curve_values` gives, for C curves over L lines at `order` nodes of panels.

    Attributes
    ----------
    ends : (panels, order, C)
        The curves.
    coefficients, steepness : (panels, order, C)
        Their Legendre coefficients, and those of their derivatives by time.
    doubt : (panels, C)
        What the next two coefficients may amount to.
    gradient : (C, panels, L, order)
        Their derivatives by the lines.
    last, first, above, total : (C, up to 4, panels, columns), (C, panels), (C, order, panels), (C, order, panels)
        As from `speed_parts`, for each curve. Where lines have kinks there are two columns: the speed, and the root of
        the sum of squares of the parts of lines.
    """

    ends: Array
    coefficients: Array
    steepness: Array
    doubt: Array
    gradient: Array
    last: Array
    first: Array
    above: Array
    total: Array


@dataclass(frozen=True, eq=False)
class CurveCredit:
    """What `curve_credit` gives, for outputs k.

    Attributes
    ----------
    sums : (k, panels, L)
        Integrals of the score's derivatives by the lines, through curves.
    error : (panels, k)
        The error of one column's credit from interpolating the derivatives of curves.
    largest, total, largest_turn, total_turn, off : (panels, k), (order, panels, k), (4, panels, k) twice, (panels, k)
        See `engine.mixed.losses.ErrorTerms`.
    """

    sums: Array
    error: Array
    largest: Array
    total: Array
    largest_turn: Array
    total_turn: Array
    off: Array


def curve_values(
    program: Any,
    times: list[Array],
    left: Ints,
    rows: Array,
    rule: tuple[Array, Array],
    matrix: Array,
    move: Array,
    path: Ints,
    decay: tuple[float, float],
    n_threads: int,
) -> CurveValues:
    """Evaluate a program, and differentiate its outputs, at the nodes of panels.

    Parameters
    ----------
    times : list of (panels,)
        When panels begin and end, when their pieces of lines begin, and how long those are.
    left : (panels,)
        The point that a panel's piece begins at; it ends at the next.
    rows : (points, L)
        The lines.
    rule : (order,), (order, order)
        Nodes, and the matrix from values there to Legendre coefficients.
    matrix, move : (columns, L), (paths, columns)
        The derivatives of lines by the columns of the rows, and how far those move; no columns where lines have kinks.
    path : (panels,)
    decay : float, float
        The fastest fall of coefficients from one degree to the next that is trusted, and the slowest that counts: see
        `engine.quadrature.tails`.
    """
    found = _native.curve_values(
        program, [_rows(t) for t in times], _whole(left), _rows(rows), _rows(rule[0]), _rows(rule[1]),
        _rows(matrix), _rows(move), _whole(path), *decay, n_threads,
    )  # fmt: skip
    return CurveValues(*found)


def weigh_nodes(gradient: Array, weight: Array) -> Array:
    """Derivatives at nodes, (panels, L, order), summed with weights (k, panels, order): (k, panels, L)."""
    return _native.weigh_nodes(_rows(gradient), _rows(weight))


def curve_credit(
    values: CurveValues,
    astray: Array,
    length: Array,
    to_coefficients: Array,
    moments: Array,
    sway: Array,
    off: Array,
    decay: tuple[float, float],
    most_opposed: float,
) -> CurveCredit:
    """The credit of panels through their curves.

    Parameters
    ----------
    astray : (panels, C)
    length : (panels,)
    to_coefficients : (order, order)
    moments, sway, off : (panels, order + 2, C, k), (panels, C, k), (8, panels, joints, k)
        Of the head; `off` has the columns of curves first.
    decay : float, float
        As in `curve_values`.
    most_opposed : float
        The most that the largest part of a speed may count for, relative to the speed.
    """
    found = _native.curve_credit(
        values.gradient, values.last, values.first, values.above, values.total, values.doubt, _rows(astray),
        _rows(length), to_coefficients, _rows(moments), _rows(sway), _rows(off), *decay, most_opposed,
    )  # fmt: skip
    return CurveCredit(*found)
