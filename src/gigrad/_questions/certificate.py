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
    """How samples of references grow.

    Attributes
    ----------
    first : int
        The smallest sample.
    growth : float
        The factor by which it grows from one look to the next.
    rare : float
        The largest share of the references that the certainty stratum may take for one feature.
    beside : float
        Of how many more references margin credits alone are computed, as a multiple of the sample.
    """

    first: int
    growth: float
    rare: float
    beside: float = 0.0


class Estimate(NamedTuple):
    """Estimates of the mean credits of rows over all references.

    Attributes
    ----------
    mean : (n, p)
    covariance : (n, p, p)
        Of the estimates' errors.
    freedom : int
        The degrees of freedom of the covariances.
    """

    mean: Array
    covariance: Array
    freedom: int

    @property
    def variance(self) -> Array:
        """The variances of the estimates, (n, p)."""
        return np.maximum(np.diagonal(self.covariance, axis1=1, axis2=2), 0.0)


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
        """This plan for another number of references to be drawn from."""
        return Plan.of(self.confidence, self.top, self.tie, self.features, references, self.schedule)

    @property
    def beside(self) -> tuple[int, ...]:
        """How many of the references at the end of the order are known by their margin credits alone, at each look.

        In the end all that were not drawn.
        """
        wanted = [int(self.schedule.beside * n) for n in self.looks]
        all_ = [n + m > LAST * self.references for n, m in zip(self.looks, wanted, strict=True)]
        if not any(all_):
            return tuple(wanted)
        first = all_.index(True)
        return (*wanted[:first], *[self.references - self.looks[first]] * (len(wanted) - first))

    def quantile(self, freedom: int) -> float:
        """The half-width of the interval of a credit, in standard errors."""
        z = -NormalDist().inv_cdf(self._miss * (1.0 - PAIRS) / (2 * self.features))
        return float(student(np.array(z), freedom))

    @property
    def _miss(self) -> float:
        return (1.0 - self.confidence) / len(self.looks)

    def far(self, guess: Array) -> Ints:
        """How far each feature lies from the cut between reasons and others, in steps of `STEP` up to `STEPS`, (n, p).

        By a guess of the adverse credits of rows, (n, p), that does not depend on what is drawn.
        """
        if self.features <= self.top:
            return np.zeros(guess.shape, np.int64)
        largest = guess.max(axis=1, keepdims=True)
        order = -np.sort(-guess, axis=1)
        cut = np.maximum((order[:, [self.top - 1]] + order[:, [self.top]]) / 2.0, 0.0)
        steps = np.rint(np.abs(guess - cut) / (STEP * np.where(largest > 0.0, largest, 1.0)))
        return np.where(largest > 0.0, np.minimum(steps, STEPS), 0).astype(np.int64)

    def pair_quantiles(self, far: Ints) -> Array:
        """The half-width of the interval of a difference of two credits, for known variances in standard errors, by the
        sum of their `far`, (n, 2 * STEPS + 1).

        If a wrong reason is given in place of a right one, the omitted one belongs to the true reasons, a set of at
        most `top` features, and the given one does not: only comparisons between that set and the others can be wrong.
        The part of the level for a comparison is the product of two weights, one for each feature, so that the parts
        for a set of weight t add up to t * (all - t); the sum of the `top` largest weights bounds t for every set.
        """
        weight = 8.0**-far
        whole, most = weight.sum(axis=1), -np.sort(-weight, axis=1)[:, : self.top].sum(axis=1)
        sets = np.where(most < whole / 2.0, most * (whole - most), whole**2 / 4.0)
        miss = (self._miss * PAIRS / sets)[:, None] * 8.0 ** -np.arange(2 * STEPS + 1)
        miss = np.minimum(miss, 0.5)  # sums of `far` that no two features of a row have may have more than the level
        return np.array([[-NormalDist().inv_cdf(x) for x in one] for one in miss.tolist()])

    def settled(self, found: Estimate, far: Ints, widths: Array) -> NDArray[np.bool_]:
        """Whether the reasons by these estimated adverse credits are, with confidence, those of all references, (n,).

        With the `far` of the rows, and their `pair_quantiles`.
        """
        top = min(self.top, self.features)
        order = np.argsort(-found.mean, axis=1, kind="stable")
        mean, variance = (np.take_along_axis(x, order, axis=1) for x in (found.mean, found.variance))
        far = np.take_along_axis(far, order, axis=1)
        half = self.quantile(found.freedom) * np.sqrt(variance)
        tie = self.tie * np.maximum((mean - half).max(axis=1, keepdims=True), 0.0)
        count = (mean[:, :top] > 0).sum(axis=1)
        given = np.arange(self.features) < count[:, None]
        adverse = (~given | (mean - half >= -tie)).all(axis=1)
        no_other = (given | (mean + half <= tie)).all(axis=1)
        apart = mean[:, :top, None] - mean[:, None, top:]
        row = np.arange(len(mean))[:, None, None]
        both = found.covariance[row, order[:, :top, None], order[:, None, top:]]
        spread = np.maximum(variance[:, :top, None] + variance[:, None, top:] - 2.0 * both, 0.0)
        width = student(widths, found.freedom)[row, far[:, :top, None] + far[:, None, top:]]
        separate = (apart + tie[:, :, None] >= width * np.sqrt(spread)).all(axis=(1, 2))
        return np.asarray(adverse & np.where(count < top, no_other, separate))


def named(adverse: Array, top: int) -> tuple[Ints, Ints]:
    """The features that are reasons, the largest first, and the others."""
    order = np.argsort(-adverse, kind="stable")
    count = int((adverse[order[:top]] > 0).sum())
    return order[:count], order[count:]


def student(z: Array, freedom: int) -> Array:
    """Quantiles of Student's distribution at the levels of normal ones, z (Abramowitz and Stegun, 26.7.5)."""
    first = (z**3 + z) / 4.0
    second = (5.0 * z**5 + 16.0 * z**3 + 3.0 * z) / 96.0
    third = (3.0 * z**7 + 19.0 * z**5 + 17.0 * z**3 - 15.0 * z) / 384.0
    return np.asarray(z + first / freedom + second / freedom**2 + third / freedom**3)
