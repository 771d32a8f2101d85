"""The place of a split on its column: the number from which the time of a crossing is computed.

Sides and times are computed from different numbers. The side of a value follows from `threshold`, with the library's
own casts folded in. The time follows from the *place* (`docs/definition.md`):

- on a continuous column the number that the library stores. Where a library reads float32, all float64 numbers of an
  interval are that number to it; the place is the shortest decimal among them (0.2, not 0.20000000298), because ties
  between columns on a grid of 0.1 are missed with the float32 numbers themselves;
- behind a transformer the middle of the raw numbers that are mapped onto the stored one;
- on a discrete column half-way between the two neighbouring values of its support;
- NaN on categories and nominal columns, which have no values in between: they change at one half.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .. import kernels
from .node import Array

Bools = NDArray[np.bool_]
_LARGEST = float(np.finfo(np.float64).max)

MIDPOINT_DIGITS, DATA_DIGITS = 2, 3
"""How many digits shorter the decimal of a neighbouring float32 must be to be preferred.

The mean of two float32 numbers, itself rounded, is off by up to 1.25 units of float32, so that its own shortest decimal
is not always the mean of their decimals: not in 23 % of all pairs from 0.01 to 10.00; in none with this rule. Libraries
that store means need 2 digits. Where the stored number may be a value of the data (XGBoost) 3 are required: with 2, one
in 120 values from 10,000 to 100,000 with two decimals moved; with 3, none.
"""
_LARGEST_UNIT = 1e38  # beyond, float32 has no neighbours
_MOST_DECIMALS = 22  # powers of ten up to it are exact


def between(low: Array, high: Array, single: Bools, digits: int = DATA_DIGITS) -> Array:
    """The place of splits whose stored number is any of `low` to `high`: the shortest decimal, or the middle.

    Where one end is not finite or beyond 1e300 (a transformer that is flat on an unbounded piece) it is the other end.

    Parameters
    ----------
    low, high : (n,)
    single : (n,)
        Whether to take the shortest decimal.
    digits : int
        How many digits shorter a decimal near the interval must be to be taken instead: within one unit of float32, or
        the interval's own length (behind a transformer its numbers may lie wider apart).
    """
    low, high = np.asarray(low, np.float64), np.asarray(high, np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        middle = np.where(low == high, low, 0.5 * low + 0.5 * high)
    far_low, far_high = ~(np.abs(low) < 1e300), ~(np.abs(high) < 1e300)
    out = np.where(far_low & ~far_high, high, np.where(far_high & ~far_low, low, middle))
    short = np.asarray(single) & ~far_low & ~far_high & (low < high)
    low, high = low[short], high[short]
    least, most = (end + side * np.maximum(_unit(end), high - low) for end, side in ((low, -1.0), (high, 1.0)))
    near, wide = _near(low, high), kernels.shortest_decimals(least, most)
    out[short] = np.where(_decimals(near) - _decimals(wide) >= digits, wide, near)
    return out


def _near(low: Array, high: Array) -> Array:
    """The shortest decimal of each interval; where it is one number in float32, the decimal that this is read as.

    The two differ at powers of two, whose neighbours below are half as far away as those above.
    """
    out = kernels.shortest_decimals(low, high)
    with np.errstate(over="ignore"):
        one = low.astype(np.float32) == high.astype(np.float32)
    out[one] = kernels.decimals_of_float32(low[one])
    return out


def of_pair(low: Array) -> Array:
    """For edges that lie between a float64 and the next: the one of the two with the shorter decimal."""
    low = np.asarray(low, np.float64)
    out = low.copy()
    finite = np.abs(low) < _LARGEST
    out[finite] = kernels.shortest_decimals(low[finite], np.nextafter(low[finite], np.inf))
    return out


def _unit(x: Array) -> Array:
    """The distance of neighbouring float32 numbers at each x."""
    plain = np.abs(x) < _LARGEST_UNIT
    return np.where(plain, np.spacing(np.abs(np.where(plain, x, 0.0)).astype(np.float32)), 0.0)


def _decimals(x: Array) -> NDArray[np.int64]:
    """The digits that each number has behind the decimal point."""
    out = np.full(len(x), _MOST_DECIMALS + 1)
    rest = np.arange(len(x))
    for count in range(_MOST_DECIMALS + 1):
        power = 10.0**count
        done = np.round(x[rest] * power) / power == x[rest]
        out[rest[done]] = count
        rest = rest[~done]
        if not len(rest):
            break
    return out


def in_support(threshold: Array, support: Array | None, share: float = 0.5) -> Array:
    """Half-way between the last value of the support that goes left of each threshold and the first that goes right.

    `support` None is the whole numbers. NaN where all values lie on one side. `share` is the fraction of the way from
    the left value to the right one; anything but one half serves to test what depends on that convention.
    """
    threshold = np.asarray(threshold, np.float64)
    if support is None:
        far = ~(np.abs(threshold) < 2.0**52)  # also infinite: no two whole numbers with a half between them
        return np.where(far, np.nan, np.floor(np.where(far, 0.0, threshold)) + share)
    values = np.unique(np.asarray(support, np.float64))
    right = np.searchsorted(values, threshold, side="right")
    inside = (right > 0) & (right < len(values))
    low, high = values[np.where(inside, right - 1, 0)], values[np.where(inside, right, 0)]
    return np.where(inside, (1.0 - share) * low + share * high, np.nan)
