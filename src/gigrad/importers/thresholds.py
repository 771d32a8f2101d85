"""Splits that libraries decide in float32, rewritten exactly as `x <= T` in float64.

A library that rounds x to float32 before comparing it sends whole intervals of float64 numbers to one side. The last
number of such an interval is the threshold that decides the same way for every x, neighbours included.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..graph import Array

_BEYOND = 2.0**128  # where the float32 after the largest one would be: rounding to infinity begins half-way to it


def less_in_float32(t: NDArray[Any]) -> Array:
    """T such that `x <= T` in float64 is `float32(x) < float32(t)`."""
    with np.errstate(over="ignore"):
        t32 = np.asarray(t).astype(np.float32)
        before = _last_that_rounds_to(np.nextafter(t32, np.float32(-np.inf)))
    return np.where(np.isneginf(t32), -np.inf, before)


def at_most_in_float32(t: NDArray[Any]) -> Array:
    """T such that `x <= T` in float64 is `float32(x) <= t`, with t itself in float64."""
    t = np.asarray(t, np.float64)
    with np.errstate(over="ignore"):
        t32 = t.astype(np.float32)
        below = np.where(t32.astype(np.float64) > t, np.nextafter(t32, np.float32(-np.inf)), t32)
        return _last_that_rounds_to(below)


def _last_that_rounds_to(low: NDArray[np.float32]) -> Array:
    """The largest float64 that rounds (half to even) to the float32 `low` or below it."""
    high = np.nextafter(low, np.float32(np.inf))
    a, b = (np.clip(v.astype(np.float64), -_BEYOND, _BEYOND) for v in (low, high))
    middle = (a + b) / 2.0
    stays = middle.astype(np.float32) <= low
    out: Array = np.where(stays, middle, np.nextafter(middle, -np.inf))
    return np.where(np.isposinf(low), np.inf, out)
