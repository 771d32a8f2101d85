"""Crossings of levels along paths: brackets, and safeguarded root finding, vectorised over many functions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from .. import kernels
from ..graph import Array
from . import limits

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


def passed(levels: Array, first: Array, last: Array, closed: Bools | None = None) -> tuple[Ints, Ints, Array]:
    """Every level strictly between `first` and `last`, both (n, width): its row, its column and the level itself.

    Where `closed` (n, width) is set, a level at the lower of the two counts as well: that is the side of a threshold on
    which equality lies, so that each crossing is found on one of the two brackets that it lies between.
    """
    if len(levels) == 1 and closed is None:
        return _passed_one(levels[0], first, last)
    low, high = np.minimum(first, last), np.maximum(first, last)
    margin = limits.LEVEL_MARGIN * np.maximum(-low, high)
    if len(levels) == 1:
        margin = np.maximum(margin, limits.LEVEL_MARGIN * abs(levels[0]))
    least = low + margin if closed is None else np.where(closed, low - margin, low + margin)
    if len(levels) == 1:
        row, column = np.nonzero((least < levels[0]) & (levels[0] < high - margin))
        return row, column, np.full(len(row), levels[0])
    begin = np.searchsorted(levels, least, side="right")
    count = np.maximum(np.searchsorted(levels, high - margin, side="left") - begin, 0)
    row, column = np.nonzero(count)
    each = count[row, column]
    index = np.arange(each.sum()) - np.repeat(np.cumsum(each) - each, each) + np.repeat(begin[row, column], each)
    return np.repeat(row, each), np.repeat(column, each), levels[index]


def _passed_one(level: float, first: Array, last: Array) -> tuple[Ints, Ints, Array]:
    """`passed` for one level, the kink of a ReLU, for many units at a time."""
    row, column = np.nonzero(((first > level) & (last < level)) | ((first < level) & (last > level)))
    inside = _inside(level, first[row, column], last[row, column])
    return row[inside], column[inside], np.full(int(inside.sum()), level)


def passed_along(level: float, rows: Array, left: Ints) -> tuple[Ints, Ints, Array]:
    """The crossings of `level` between row left[i] of `rows` and the next row: i, column and level, as in `passed`."""
    piece, column = kernels.passed_rows(rows, left, level)
    inside = _inside(level, rows[left[piece], column], rows[left[piece] + 1, column])
    return piece[inside], column[inside], np.full(int(inside.sum()), level)


def _inside(level: float, a: Array, b: Array) -> Bools:
    """Whether a level between `a` and `b` is farther from both than rounding."""
    margin = limits.LEVEL_MARGIN * np.maximum(np.maximum(np.abs(a), np.abs(b)), abs(level))
    return np.asarray(np.minimum(np.abs(a - level), np.abs(b - level)) > margin)


def solve(
    function: Callable[[Ints, Array], Array], low: Array, high: Array, at_low: Array, at_high: Array, noise: Array
) -> Array:
    """A root of each function in its bracket, (n,): secant steps that stay inside, halving where they do not help.

    `function(index, time)` evaluates some of the n functions, one time each; `at_low` and `at_high` have opposite
    signs; a value below `noise` (n,) counts as zero.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        root = low + (high - low) * np.clip(np.nan_to_num(at_low / (at_low - at_high)), 0.0, 1.0)
    kept = np.zeros(len(low))  # which end has stayed: -1 the lower, 1 the upper
    open_ = np.arange(len(low))
    for step in range(60):
        value = function(open_, root[open_])
        going = np.nonzero((np.abs(value) > noise[open_]) & (high - low > 1e-15))[0]
        if not len(going):
            break
        open_, value = open_[going], value[going]
        low, high, at_low, at_high, kept = (v[going] for v in (low, high, at_low, at_high, kept))
        here = root[open_]
        below = np.sign(value) == np.sign(at_low)
        # Illinois: an end that stays twice in a row counts half, or it might stay for ever
        at_high = np.where(below, np.where(kept == 1, 0.5 * at_high, at_high), value)
        at_low = np.where(below, value, np.where(kept == -1, 0.5 * at_low, at_low))
        low, high = np.where(below, here, low), np.where(below, high, here)
        kept = np.where(below, 1.0, -1.0)
        with np.errstate(invalid="ignore", divide="ignore"):
            guess = low + (high - low) * (at_low / (at_low - at_high))
        halve = ~((guess > low) & (guess < high)) | (step % 8 == 7)
        root[open_] = np.where(halve, 0.5 * (low + high), guess)
    return root
