"""Splits that libraries decide in float32, rewritten exactly as `x <= T` in float64.

A library that rounds x to float32 before comparing it sends whole intervals of float64 numbers to one side. The last
number of such an interval is the threshold that decides the same way for every x, neighbours included.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...graph import Array

_BEYOND = 2.0**128  # where the float32 after the largest one would be: rounding to infinity begins half-way to it


class Folded(NamedTuple):
    """Splits decided in float32 as splits in float64.

    Attributes
    ----------
    threshold : (n,)
        `x <= threshold` in float64 is the library's own decision, for every x.
    equal : ((n,), (n,))
        The least and the largest number that are equal to the stored threshold for the library.
    """

    threshold: Array
    equal: tuple[Array, Array]


def less_in_float32(t: NDArray[Any]) -> Folded:
    """`float32(x) < float32(t)`."""
    with np.errstate(over="ignore"):
        t32 = np.asarray(t).astype(np.float32)
        before = _last_that_rounds_to(_step(t32, -np.inf))
        last = _last_that_rounds_to(t32)
    threshold = np.where(np.isneginf(t32), -np.inf, before)
    return Folded(threshold, _interval(threshold, last, t32))


def at_most_in_float32(t: NDArray[Any]) -> Folded:
    """`float32(x) <= t`, with t itself in float64.

    A t between two float32 numbers is the rounded mean of two values in the data: both count as equal to it.
    """
    t = np.asarray(t, np.float64)
    with np.errstate(over="ignore"):
        t32 = t.astype(np.float32)
        below = np.where(t32.astype(np.float64) > t, _step(t32, -np.inf), t32)
        threshold = _last_that_rounds_to(below)
        before = _last_that_rounds_to(_step(below, -np.inf))
        between = below.astype(np.float64) != t
        last = np.where(between, _last_that_rounds_to(_step(below, np.inf)), threshold)
    return Folded(threshold, _interval(before, last, t))


def _interval(before: Array, last: Array, stored: NDArray[Any]) -> tuple[Array, Array]:
    """The numbers after `before` up to `last`; the stored number alone where it is not finite."""
    plain = np.isfinite(stored) & np.isfinite(before) & np.isfinite(last)
    number = stored.astype(np.float64)
    return np.where(plain, np.nextafter(before, np.inf), number), np.where(plain, last, number)


def _step(x: NDArray[np.float32], towards: float) -> NDArray[np.float32]:
    return np.asarray(np.nextafter(x, np.float32(towards)))


def _last_that_rounds_to(low: NDArray[np.float32]) -> Array:
    """The largest float64 that rounds (half to even) to the float32 `low` or below it."""
    high = np.nextafter(low, np.float32(np.inf))
    a, b = (np.clip(v.astype(np.float64), -_BEYOND, _BEYOND) for v in (low, high))
    middle = (a + b) / 2.0
    stays = middle.astype(np.float32) <= low
    out: Array = np.where(stays, middle, np.nextafter(middle, -np.inf))
    return np.where(np.isposinf(low), np.inf, out)
