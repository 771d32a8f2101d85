"""The head of a model as a program, integrated over panels: see `engine.mixed.program` and `engine.mixed.integrate`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

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


def line_moments(
    program: Any,
    legs: tuple[Ints, Ints, Ints, Ints],
    time: Array,
    lines: Array,
    corner_time: Array,
    shared: Ints,
    constants: Array,
    allowed: Array,
    rules: list[tuple[Array, ...]],
    limits: Array,
    before: Array,
    after: Array,
    n_threads: int,
) -> HeadMoments:
    """Integrate a program that reads lines alone over the pieces of legs: the panels of the result, in order.

    Parameters
    ----------
    legs : (legs + 1,), (legs,), (legs,), (legs,)
        Leg i has the points offsets[i] .. offsets[i + 1] - 1 of the lines; its path, first corner, and the one behind
        the last.
    time, lines : (points,), (points, L)
    allowed : (paths, k)

    The other parameters are those of `head_moments`.
    """
    rules_: list[Any] = [tuple(_rows(v) for v in rule) for rule in rules]
    offsets, path, begin, end = (_whole(v) for v in legs)
    found = _native.line_moments(
        program, offsets, _rows(time), _rows(lines), path, begin, end, _rows(corner_time), shared, _rows(constants),
        _rows(allowed), rules_, _rows(limits), before, after, n_threads,
    )  # fmt: skip
    return HeadMoments(*found)


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
