"""The time of a crossing and the place of a split, by the definition, in exact arithmetic.

Times are counted in units of 2^-30, so that equal times are equal integers. Nothing of this is shared with the kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import floor, isfinite, isnan, log10

import numpy as np

UNITS = 2**30
"""A path lasts this many units of time; crossings in the same unit are one corner."""

HALF = UNITS // 2
"""The time at which missing values, categories and nominal columns change."""


@dataclass(frozen=True)
class Stand:
    """The place of one numeric split on its column, and the numbers that count as equal to it.

    Attributes
    ----------
    place : float
        The number from which times are computed; NaN for a crossing at one half.
    equal_low, equal_high : float
        The least and the largest number that the library cannot tell from the threshold that it stores.
    single : bool
        Whether the library reads the column in float32.
    direct : bool
        Whether it reads the column as it is, without a transformer before it. In float32 a number is then equal to the
        stored threshold if it has the same decimal.
    """

    place: float
    equal_low: float
    equal_high: float
    single: bool = False
    direct: bool = False

    def time(self, start: float, end: float) -> int:
        """The time, in units of 2^-30, at which a path from `start` to `end`, on different sides, crosses the split."""
        s, e = self._as_read(start), self._as_read(end)
        if isnan(self.place) or not (isfinite(s) and isfinite(e)):
            return HALF
        if s == e:  # on different sides, yet both equal to the threshold: only one half is symmetric
            return HALF
        if not isfinite(self.place):
            return UNITS if (self.place > 0) == (e > s) else 0
        time = (Fraction(self.place) - Fraction(s)) / (Fraction(e) - Fraction(s))
        return round(min(max(time, Fraction(0)), Fraction(1)) * UNITS)  # Python rounds halves to even

    def _as_read(self, value: float) -> float:
        """The number used for a value of the column: the place, if the value equals the stored threshold."""
        equal = self.equal_low <= value <= self.equal_high and self.equal_low <= self.place <= self.equal_high
        if equal and not (self.single and self.direct):
            return self.place
        return decimal_of_float32(value) if self.single else value


def decimal_of_float32(value: float) -> float:
    """The shortest decimal equal to `value` in float32: 0.2 for 0.20000000298; `value` itself beyond float32."""
    with np.errstate(over="ignore"):
        single = np.float32(value)
    return float(str(single)) if np.isfinite(single) else value


def shortest_decimal(low: float, high: float) -> float:
    """The decimal of the fewest digits from `low` to `high`, and of these the nearest to the middle."""
    if low <= 0.0 <= high:
        return 0.0
    middle = (Fraction(low) + Fraction(high)) / 2
    size = floor(log10(abs(float(middle))))
    for digits in range(1, 18):
        unit = Fraction(10) ** (size + 1 - digits)
        nearest = float(round(middle / unit) * unit)
        if low <= nearest <= high:
            return nearest
    return float(middle)


def discrete_place(threshold: float, stored: float, support: Sequence[float] | None) -> float:
    """Half-way between the last value of the support on the left of a split and the first on its right.

    Values up to `threshold` are on the left. `support` None is the whole numbers. Where all values are on one side it
    is `stored`, the place that the split has on a continuous column.
    """
    if support is None:
        if not abs(threshold) < 2.0**52:
            return stored
        return floor(threshold) + 0.5
    left, right = [v for v in support if v <= threshold], [v for v in support if v > threshold]
    if not left or not right:
        return stored
    return float((Fraction(max(left)) + Fraction(min(right))) / 2)
