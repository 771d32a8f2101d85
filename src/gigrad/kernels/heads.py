"""The head of a model as a program, integrated over panels: see `engine.mixed.program` and `engine.mixed.integrate`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import _native
from .arrays import Array, Ints
from .arrays import integers as _whole
from .arrays import numbers as _rows

Program = _native.Program

PROGRAM_FUNCTIONS = frozenset(_native.program_functions())
"""The elementwise functions that a program may use."""

PROGRAM_STAGES = PROGRAM_FUNCTIONS | {
    "affine", "piecewise_linear", "softmax", "log_softmax", "select", "concat", "sum", "product",
}  # fmt: skip
"""The stages that a program may have; see `links.Stage`."""


@dataclass(frozen=True, eq=False)
class HeadMoments:
    """What `head_moments` gives: the fields of `engine.mixed.integrate.Moments`, and more.

    Attributes
    ----------
    tallest : (panels, k)
        The largest |score| seen.
    unsure : (panels,)
        Whether kinks may lie where curves are not known well enough to tell.
    corner, panel, joints : (n,), (n,), (n, columns)
        Corners that several players share, and what the head reads there.
    """

    curves: Array
    lines: Array
    lost: Array
    wander: Array
    sway: Array
    off: Array
    tallest: Array
    unsure: NDArray[np.uint8]
    corner: Ints
    panel: Ints
    joints: Array


def head_moments(
    program: Any,
    times: list[Array],
    places: list[Ints],
    curves: tuple[Array, Array, Array],
    lines: Array,
    corner_time: Array,
    shared: Ints,
    constants: Array,
    allowed: Array,
    rules: list[tuple[Array, ...]],
    limits: Array,
    table: tuple[Array, Array, float, float],
    before: Array,
    after: Array,
    n_threads: int,
) -> HeadMoments:
    """Integrate a program over the segments of panels; the score beside corners is written to `before` and `after`.

    Parameters
    ----------
    times : list of (panels,)
        When panels begin and end, when their pieces of lines begin, and how long those are.
    places : list of (panels,)
        First corner, corner behind the last, state before the first, its row in the table, point of the lines.
    curves : (panels, order, C), (panels, order, C), (panels, C)
        Coefficients of the curves and of their slopes by time, and how far off the curves may be.
    lines : (points, L)
    corner_time, shared : (corners,)
        When corners are; at least zero where several players share one.
    constants : (states, columns)
    allowed : (panels, k)
    rules, limits
        Rules of segments with 1, 2, 4, 8 nodes, and the lengths up to which the first three are tried first.
    table
        A tabulated part of the head: series (rows, degrees, width), those of its slopes, and the scale of its score.
    before, after : (corners, k)
    """
    coefficients, steepness, doubt = (_rows(v) for v in curves)
    rules_: list[Any] = [tuple(_rows(v) for v in rule) for rule in rules]
    found = _native.head_moments(
        program, [_rows(t) for t in times], [_whole(p) for p in places], coefficients, steepness, doubt, _rows(lines),
        _rows(corner_time), shared, _rows(constants), _rows(allowed), rules_, _rows(limits),
        _rows(table[0]), _rows(table[1]), table[2], table[3], before, after, n_threads,
    )  # fmt: skip
    return HeadMoments(*found)


@dataclass(frozen=True, eq=False)
class LegCorners:
    """What a head that reads lines alone meets on legs; L are the columns of its lines.

    Attributes
    ----------
    path, begin, end : (legs,)
        The path of each leg, its first corner, and the one behind the last.
    time, shared : (corners,)
        When corners are; at least zero where several players share one: its row in `joints`.
    constants : (states, columns)
        The outputs of the trees: before corner c of path i in row c + i.
    allowed : (paths, k)
    parts : (legs, L)
        How fast one column of the rows moves each line at most; negative where only its whole speed is known.
    slowest : float
        The least speed of the score that is assumed, as a share of its parts.
    rules, lengths
        See `head_moments`.
    before, after, joints : (corners, k), (corners, k), (rows, L)
        Filled in: the score beside every corner, and the lines at those that are shared.
    """

    path: Ints
    begin: Ints
    end: Ints
    time: Array
    shared: Ints
    constants: Array
    allowed: Array
    parts: Array
    slowest: float
    rules: list[tuple[Array, ...]]
    lengths: Array
    before: Array
    after: Array
    joints: Array

    def _fields(self) -> tuple[Any, ...]:
        rules: list[Any] = [tuple(_rows(v) for v in rule) for rule in self.rules]
        return (
            _whole(self.path), _whole(self.begin), _whole(self.end), _rows(self.time), self.shared,
            _rows(self.constants), _rows(self.allowed), _rows(self.parts), self.slowest, rules, _rows(self.lengths),
            self.before, self.after, self.joints,
        )  # fmt: skip


class LegIntegrals(NamedTuple):
    """A head that reads lines alone, integrated over legs; k outputs.

    `sums` are the integrals of the score's derivatives by lines over the pieces between kinks, (k, pieces, L), or those
    by the straight columns of a net over whole legs, (k, legs, columns). The others, (legs, k), are the error of one
    column's credit, the way of the score between corners, and its largest size.
    """

    sums: Array
    lost: Array
    moved: Array
    tallest: Array


def head_along_lines(
    program: Any, offsets: Ints, time: Array, lines: Array, corners: LegCorners, n_threads: int
) -> LegIntegrals:
    """Integrate a program over legs: leg i has its kinks at time[offsets[i]:offsets[i + 1]], and there the lines
    `lines` (points, L)."""
    return LegIntegrals(
        *_native.head_along_lines(program, _whole(offsets), _rows(time), _rows(lines), corners._fields(), n_threads)
    )


def head_along_net(
    program: Any, net: Any, low: Array, high: Array, rows: Array, corners: LegCorners, n_threads: int
) -> LegIntegrals:
    """Follow a net along legs as `trace_lines` does, integrate a program that reads it, and pull the derivatives back:
    one leg after the other, so that nothing else of it is stored."""
    return LegIntegrals(*_native.head_along_net(program, net, low, high, _rows(rows), corners._fields(), n_threads))


def linear_credits(
    forest: Any,
    rows: tuple[Array, Array],
    weights: Array | None,
    numbers: tuple[Array, Array],
    leaves: tuple[Ints, Ints, Array],
    player: Ints,
    outputs: int,
    n_threads: int,
) -> Array:
    """Credit for trees with linear leaves, but for the way to the end that the last leaves of paths give.

    Parameters
    ----------
    rows : (starts, p), (ends, p)
    weights : (starts,), optional
        Every start with every end, credit summed over the starts by weight; None: start i with end i.
    numbers : (starts, columns), (ends, columns)
        What leaves multiply, at starts and at ends.
    leaves : (width,) each
        For each number of a leaf the column that it multiplies (-1: none), the output it adds to, and its weight.
    player : (columns,)
        The variable that each column earns for.

    Returns
    -------
    credit : (ends, variables, outputs)
    """
    column, target, factor = leaves
    return _native.linear_credits(
        forest, _rows(rows[0]), _rows(np.zeros(0) if weights is None else weights), _rows(rows[1]), _rows(numbers[0]),
        _rows(numbers[1]), _whole(column), _whole(target), _rows(factor), _whole(player), outputs, n_threads,
    )  # fmt: skip
