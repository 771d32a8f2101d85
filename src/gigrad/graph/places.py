"""Where a split stands on its column: the number from which the time of a crossing is computed.

Sides and times come from different numbers. The side of a value follows from `threshold`, with the library's own
casts folded in. The time follows from the *place* (spec, section 3):

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


def between(low: Array, high: Array, single: Bools) -> Array:
    """The place of splits whose stored number is any of `low` to `high`: the shortest decimal, or the middle.

    Where one end is not finite or beyond 1e300 (a transformer that is flat on an unbounded piece) it is the other end.
    """
    low, high = np.asarray(low, np.float64), np.asarray(high, np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        middle = np.where(low == high, low, 0.5 * low + 0.5 * high)
    far_low, far_high = ~(np.abs(low) < 1e300), ~(np.abs(high) < 1e300)
    out = np.where(far_low & ~far_high, high, np.where(far_high & ~far_low, low, middle))
    short = np.asarray(single) & ~far_low & ~far_high & (low < high)
    out[short] = kernels.shortest_decimals(low[short], high[short])
    return out


def in_support(threshold: Array, support: Array | None, share: float = 0.5) -> Array:
    """Half-way between the last value of the support that goes left of each threshold and the first that goes right.

    `support` None is the whole numbers. NaN where all values lie on one side. `share` is how far from the left value to
    the right one; anything but one half is for seeing what depends on that convention.
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
