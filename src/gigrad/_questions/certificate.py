"""A stopping rule: when a sample of the reference determines which reasons are the largest against all of it.

References are drawn without replacement, in one random order, after a certainty stratum: the few on which a rare value
depends are always included. The mean credit over the others is estimated from the first n of them by regression
(`regression.py`). Half-widths are Student's, with the finite population correction, at a level divided between the
comparisons and the looks (sample sizes at which stopping is considered): by the union bound they hold together,
wherever the drawing stops. They assume that means of about a hundred residuals are nearly normal.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..graph import Array

Ints = NDArray[np.int64]

LAST = 0.75
"""If more than this share of the references would be needed, all are used: the others cost less than a wrong answer."""
PAIRS = 0.8
"""Share of the level for comparisons of two features; the rest is for the bounds of each. At 0.9 as many references
were taken on Lending Club (with a first look at 128 of them), and the bounds are wider."""
STEP = 0.2
"""Distance from the cut between reasons and others, as a share of the largest credit. Comparisons of a feature that is
about so far from the cut get an eighth of the level of those nearer to it, twice as far or farther an eighth of that.
With weights that fall smoothly with the distance it took 12 % fewer references on Lending Club (200 trees of depth 5)
than equal parts, at half or twice the distance 9 % and 6 %; these steps come close to those weights."""
STEPS = 2


class Schedule(NamedTuple):
    """The smallest sample, its growth between looks, and the largest share of the references in the certainty stratum
    for one feature."""

    first: int
    growth: float
    rare: float


class Estimate(NamedTuple):
    """Mean credits over all references (p,), and the covariance of their errors (p, p) with its degrees of freedom."""

    mean: Array
    covariance: Array
    freedom: int


@dataclass(frozen=True)
class Plan:
    """The parameters of the stopping rule: confidence, number of reasons, ties, and the looks.

    Attributes
    ----------
    confidence : float
    top : int
    tie : float
        Credits that differ by less than this share of the row's largest are tied.
    looks : tuple of int
        The numbers of references at which a row may be settled.
    features, references : int
    schedule : Schedule
    """

    confidence: float
    top: int
    tie: float
    looks: tuple[int, ...]
    features: int
    references: int
    schedule: Schedule

    @classmethod
    def of(cls, confidence: float, top: int, tie: float, features: int, references: int, schedule: Schedule) -> Plan:
        """For so many references to be drawn from."""
        looks, n = [], float(schedule.first)
        while n <= LAST * references and confidence < 1.0:
            looks.append(int(n))
            n *= schedule.growth
        return cls(confidence, top, tie, tuple(looks), features, references, schedule)

    def over(self, references: int) -> Plan:
        """The same for another number of references to be drawn from."""
        return Plan.of(self.confidence, self.top, self.tie, self.features, references, self.schedule)

    def quantile(self, freedom: int) -> float:
        """The half-width of the interval of a credit, in standard errors."""
        return student(-NormalDist().inv_cdf(self._miss * (1.0 - PAIRS) / (2 * self.features)), freedom)

    @property
    def _miss(self) -> float:
        return (1.0 - self.confidence) / len(self.looks)

    def far(self, guess: Array) -> Ints:
        """How far each feature lies from the cut between reasons and others, in steps of `STEP` up to `STEPS`, (p,).

        By a guess of the adverse credits that was made before anything was drawn.
        """
        largest = float(guess.max(initial=0.0))
        if largest <= 0.0 or self.features <= self.top:
            return np.zeros(self.features, np.int64)
        order = -np.sort(-guess)
        cut = max(float(order[self.top - 1] + order[self.top]) / 2.0, 0.0)
        return np.asarray(np.minimum(np.rint(np.abs(guess - cut) / (STEP * largest)), STEPS), np.int64)

    def pair_quantiles(self, far: Ints, freedom: int) -> Array:
        """The half-width of the interval of a difference of two credits, in standard errors, by the sum of their `far`.

        If a wrong reason is given in place of a right one, the omitted one belongs to the true reasons, a set of at
        most `top` features, and the given one does not: only comparisons between that set and the others can be wrong.
        The part of the level for a comparison is the product of two weights, one for each feature, so that the parts
        for a set of weight t add up to t * (all - t); the sum of the `top` largest weights bounds t for every set.
        """
        weight = 8.0**-far
        whole, most = float(weight.sum()), float(np.sort(weight)[::-1][: self.top].sum())
        sets = most * (whole - most) if most < whole / 2.0 else whole**2 / 4.0
        miss = self._miss * PAIRS / sets
        return np.array([student(-NormalDist().inv_cdf(miss * 8.0**-k), freedom) for k in range(2 * STEPS + 1)])

    def settled(self, found: Estimate, far: Ints) -> bool:
        """Whether the reasons by these estimated adverse credits are, with confidence, those of all references."""
        variance = np.maximum(np.diag(found.covariance), 0.0)
        half = self.quantile(found.freedom) * np.sqrt(variance)
        tie = self.tie * max(float((found.mean - half).max()), 0.0)
        given, left = named(found.mean, self.top)
        if (found.mean[given] - half[given] < -tie).any():
            return False
        if len(given) < self.top:
            return bool((found.mean[left] + half[left] <= tie).all())
        apart = found.mean[given][:, None] - found.mean[left]
        spread = variance[given][:, None] + variance[left] - 2.0 * found.covariance[np.ix_(given, left)]
        width = self.pair_quantiles(far, found.freedom)[far[given][:, None] + far[left]]
        return bool((apart + tie >= width * np.sqrt(np.maximum(spread, 0.0))).all())


def named(adverse: Array, top: int) -> tuple[Ints, Ints]:
    """The features that are reasons, the largest first, and the others."""
    order = np.argsort(-adverse, kind="stable")
    count = int((adverse[order[:top]] > 0).sum())
    return order[:count], order[count:]


def student(z: float, freedom: int) -> float:
    """The quantile of Student's distribution at the level of a normal one, z (Abramowitz and Stegun, 26.7.5)."""
    first = (z**3 + z) / 4.0
    second = (5.0 * z**5 + 16.0 * z**3 + 3.0 * z) / 96.0
    third = (3.0 * z**7 + 19.0 * z**5 + 17.0 * z**3 - 15.0 * z) / 384.0
    return z + first / freedom + second / freedom**2 + third / freedom**3
