"""Layers of units with kinks along legs, stretches of paths on which what they read is straight."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _native

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

LineNet = _native.LineNet
"""Steps (operation, width, steps read, weight, bias, slopes of units below, at and above 0, columns), and the ends."""


@dataclass(frozen=True, eq=False)
class TracedLegs:
    """The ends of a net on legs, from kink to kink.

    Attributes
    ----------
    offsets : (legs + 1,)
        The points of leg i are offsets[i] .. offsets[i + 1] - 1.
    time : (points,)
    ends : (points, columns of all ends)
    """

    net: Any
    trace: Any
    offsets: Ints
    time: Array
    ends: Array

    def pull_back(self, cotangent: Array, n_threads: int) -> Array:
        """Derivatives by straight columns, (legs, columns), from those by the ends, (pieces, columns of all ends)."""
        return _native.pull_lines_back(self.net, self.trace, np.ascontiguousarray(cotangent), n_threads)


def trace_lines(net: Any, low: Array, high: Array, rows: Array, n_threads: int) -> TracedLegs:
    """Follow a net along legs from `low` to `high` (legs,), whose straight columns are `rows` (2 legs, columns)."""
    return TracedLegs(net, *_native.trace_lines(net, low, high, np.ascontiguousarray(rows), n_threads))


def piece_corners(offsets: Ints, time: Array, begin: Ints, end: Ints, corner_time: Array) -> tuple[Ints, Ints]:
    """The first corner, and the one after the last, on each piece between neighbouring times of a leg.

    Leg i has the times `time[offsets[i]:offsets[i + 1]]` and the corners `begin[i]` to `end[i] - 1`. A corner at an
    edge belongs to the piece that begins there.
    """
    return _native.piece_corners(offsets, time, begin, end, corner_time)


@dataclass(frozen=True, eq=False)
class IntervalKinks:
    """Where units with a kink at zero pass it, in order of interval and time.

    Attributes
    ----------
    first : (intervals + 1,)
        The kinks of interval k are first[k] .. first[k + 1] - 1.
    unit, time : (n,)
    rate : (n,)
        How fast what the unit reads moves there.
    """

    first: Ints
    unit: Ints
    time: Array
    rate: Array

    @classmethod
    def none(cls, intervals: int) -> IntervalKinks:
        """No kinks."""
        return cls(np.zeros(intervals + 1, np.int64), np.zeros(0, np.int64), np.zeros(0), np.zeros(0))


def interval_kinks(
    values: Array, left: Ints, time: Array, below: IntervalKinks, bend: Array, rows: Array
) -> IntervalKinks:
    """The kinks of units that read `values` (points, units), on the intervals from point left[k] to the next.

    In between the values are linear but for the kinks `below`, at which the slopes of the units below change by `bend`
    in time; `rows` (units below, units) are the weights of what the units read.
    """
    return IntervalKinks(*_native.interval_kinks(values, left, time, below.first, below.unit, below.time, bend, rows))


def late_products(
    slope: Array, rows: Array, kinks: IntervalKinks, late: Array, above: IntervalKinks, late_above: Array, step: Array
) -> Array:
    """For each kink, its unit's row of `rows` (units, columns) times an integral from it to its interval's end, (n,).

    The integral is of what the columns above pass on: `slope` (intervals, columns) where the intervals begin, and
    `step` more from each of the kinks `above` on. `late` and `late_above` are what is left of the interval after each
    kink, by the measure that is integrated over.
    """
    return _native.late_products(
        slope, rows, kinks.first, kinks.unit, kinks.time, late, above.first, above.unit, above.time, late_above, step
    )


def middle_slopes(rows: Array, left: Ints, slopes: tuple[float, float, float]) -> Array:
    """The slopes of units half-way between row left[i] of what they read and the next row, (n, units).

    `slopes` are those below, at and above their kink at 0.
    """
    return _native.middle_slopes(np.ascontiguousarray(rows), left, slopes)


def later_rows(
    point: Ints, unit: Ints, later: Ints, row: Ints, factor: Array, offsets: Ints, rows: Array
) -> tuple[Array, Array]:
    """Sums of rows of a matrix from some points of legs on.

    At the points `later`, in order, `factor` times the rows `row` of `rows` (units, columns) are added up, from the end
    of each leg (its points are offsets[i] .. offsets[i + 1] - 1) backwards.

    Returns
    -------
    sums : (n,)
        The column unit[i] of what is added after point[i], in order, and before its leg ends.
    total : (legs, columns)
        The whole of each leg.
    """
    return _native.later_rows(point, unit, later, row, factor, offsets, rows)


def units_between(rows: Array, at: Ints, part: Array, sigmoid: bool) -> Array:
    """Values of tanh or sigmoid units, (n, units): they read rows, `part[i]` of the way from row at[i] to the next."""
    return _native.units_between(np.ascontiguousarray(rows), at, part, sigmoid)


@dataclass(frozen=True, eq=False)
class UnitLayer:
    """A layer of smooth units, and the layer of sums over it, at the ends of panels.

    Attributes
    ----------
    values : (rows, units)
        Those of the units, a multiple of eight; `slope` has the coefficients of their slopes as a quadratic in these.
    matrix : (outputs, units)
        The weights of the sums.
    low, high : (panels,)
        The rows of `values` at both ends of each panel.
    lines : (points, units)
        What the units read: it goes from point left[p] to the next on the piece of panel p.
    part : (panels,)
        Half of a panel's length, as a part of that of its piece.
    """

    values: Array
    slope: tuple[float, float, float]
    matrix: Array
    low: Ints
    high: Ints
    lines: Array
    left: Ints
    part: Array

    def _arguments(self) -> tuple[Array, tuple[float, float, float], Array, Ints, Ints, Array, Ints, Array]:
        return (self.values, self.slope, self.matrix, self.low, self.high, self.lines, self.left, self.part)

    def speeds(self, even: Array, odd: Array) -> tuple[Array, Array]:
        """The derivatives of the sums by their panels' own coordinate, (panels, outputs, 6), and sizes of their parts.

        The first are values at the two ends, then first derivatives, then second ones. The sizes (panels, outputs, 6)
        are, for each degree, the root of the sum of squares of Legendre coefficients of the parts by single units:
        `even` and `odd` (3, 3) give those of degrees 0, 2, 4 and 1, 3, 5 from sums and differences of the six.
        """
        return _native.unit_speeds(*self._arguments(), np.ascontiguousarray(even), np.ascontiguousarray(odd))

    def pull_back(self, weight: Array) -> Array:
        """The slopes of units at both ends and their derivatives, weighted and summed over outputs: (k, panels, units).

        `weight` is (k, panels, outputs, 6).
        """
        return _native.pull_unit_ends(*self._arguments(), np.ascontiguousarray(weight))
