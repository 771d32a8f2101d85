"""Corners of too many variables to evaluate all coalitions: orders are sampled, with one error target for the row.

A row's credit is a mean over references, so the target is the error of that mean. A pilot sample of a few groups of
orders for each corner estimates how many groups the row needs and how to allocate them: most go to the corners with the
largest spread, and a corner whose coalitions cost less than its orders is enumerated. If the pilot is not accurate
enough, the planned number of new groups is drawn and the pilot discarded; if these are not accurate enough either, once
more. So the number of groups is fixed before they are drawn, and the bound on their mean is that of a sample of fixed
size.

Seeds are computed from the values of the two rows and the user's seed: a row's credits do not depend on its position,
on other rows, on batches or on threads.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log, pi
from statistics import NormalDist
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..errors import AccuracyWarning, warn
from ..graph import Array, Node
from . import limits
from .paths import Bools, Ints
from .settings import Credits


@dataclass(frozen=True, eq=False)
class Sums:
    """Sums over the sampled corners of each row, (rows, players, k) but for the last.

    Attributes
    ----------
    credit : of weight * credit, where orders were drawn
    settled : the same where all coalitions were evaluated
    variance : of the variance of `credit`
    squared : of squared variances, each over its degrees of freedom
    reach : the largest weight * (largest - least credit of a group) / number of groups
    common : (3, rows, k), the sums of variances and of squared ones and the reach, as if at each corner all players had
        those of the one that has most
    spread : (corners,), the largest variance of a credit from group to group; 0 where a corner was enumerated
    count : (corners,), groups that were drawn, maybe more than requested; 0 where all coalitions were evaluated
    """

    credit: Array
    settled: Array
    variance: Array
    squared: Array
    reach: Array
    common: Array
    spread: Array
    count: Ints


class Draw(Protocol):
    """Draws `count` groups of orders for each of some corners, independent for each `stage`; 0 means all coalitions."""

    def __call__(self, which: Ints, count: Ints, stage: int) -> Sums:
        """Sums over the corners `which`, for all rows."""


@dataclass(frozen=True, eq=False)
class Corners:
    """The corners that are sampled, all (corners,).

    Attributes
    ----------
    row, weight
        The row whose credit each is part of, in order, and its weight there.
    cost
        The cost of a group of orders, in numbers; see `limits.SAMPLED_NUMBERS`.
    whole
        The cost of all coalitions; infinite if there are too many.
    least : float
        Groups of a corner in the pilot, at least.
    """

    row: Ints
    weight: Array
    cost: Array
    whole: Array
    least: float = limits.LEAST_GROUPS[0]


def estimate(draw: Draw, corners: Corners, known: Array, target: float, miss: float) -> tuple[Array, Array]:
    """Credit of the sampled corners of each row, (rows, players, k), and a bound on its error, (rows, k).

    Parameters
    ----------
    draw : Draw
    corners : Corners
    known : (rows, players, k)
        The rows' credits without these corners.
    target : float
        The error to reach, relative to the largest credit of the row.
    miss : float
        The probability that the credits of a row are off by more than the bound.
    """
    rows, row = len(known), corners.row
    total = np.bincount(row, np.abs(corners.weight), rows)
    part = np.abs(corners.weight) / np.where(total > 0, total, 1.0)[row]
    among = np.bincount(row, minlength=rows)[row]
    # A corner of small weight may have the largest variance: half of the pilot is allocated evenly, not by weight.
    pilot = limits.PILOT_GROUPS
    count = np.ceil(np.maximum(pilot * part, np.maximum(0.5 * pilot / among, corners.least))).astype(np.int64)
    level = miss / limits.SAMPLING_STAGES
    last = draw(np.arange(len(row)), count, 0)
    spread, count, settled = last.spread, last.count, last.settled
    credit, error = settled + last.credit, bound(last, level)
    for stage in range(1, limits.SAMPLING_STAGES):
        allowed = target * np.abs(known + credit).max(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.nan_to_num(error / allowed, nan=0.0, posinf=np.inf).max(axis=1)
        redone = np.intersect1d(np.nonzero(ratio > 1.0)[0], row[count > 0])
        if not len(redone):
            break
        groups = count.copy()
        for i in redone:
            mine = np.nonzero((row == i) & (count > 0))[0]
            groups[mine] = _Plan.of(
                last, spread[mine], corners, mine, count[mine], level, allowed[i] / limits.STAGE_CARE[stage]
            ).groups()
        again = np.isin(row, redone) & (count > 0)
        whole, drawn = (np.nonzero(again & which)[0] for which in (groups == 0, groups > 0))
        settled = settled + draw(whole, groups[whole], stage).settled
        last = draw(drawn, groups[drawn], stage)
        settled = settled + last.settled
        spread[drawn], groups[drawn], count = last.spread, last.count, groups
        credit[redone], error[redone] = (settled + last.credit)[redone], bound(last, level)[redone]
    return credit, error


def bound(sums: Sums, level: float) -> Array:
    """A bound on the error of every credit of a row, (rows, k), which fails with a probability of at most `level`.

    Student's quantile for the combined degrees of freedom of the variances (Welch and Satterthwaite), for all credits
    of the row together (Bonferroni). Where a few groups of orders change a credit a lot, the distribution of its mean
    is skewed: the range term of Bernstein's bound is added, with the observed range.

    A player of a single corner has few degrees of freedom, however many corners the row has. Its variance is at most
    the sum over corners of the largest variance of any player there, which has the degrees of freedom of all corners:
    the bound from that sum holds too. Each of the two bounds gets half of the error probability, and the smaller is
    used.
    """
    half = np.zeros_like(sums.variance)
    for i in range(len(half)):
        some = sums.variance[i] > 0
        if some.any():
            each = 0.5 * level / some.sum()
            variance = sums.variance[i][some]
            mine = student(each, variance**2 / sums.squared[i][some]) * np.sqrt(variance)
            mine += log(2.0 / each) / 3.0 * sums.reach[i][some]
            variance, squared, reach = sums.common[:, i]
            with np.errstate(divide="ignore", invalid="ignore"):
                freedom = np.nan_to_num(variance**2 / squared, nan=1.0)
            all_alike = student(each, freedom) * np.sqrt(variance) + log(2.0 / each) / 3.0 * reach
            half[i][some] = np.minimum(mine, np.broadcast_to(all_alike, some.shape)[some])
    return np.asarray(half.max(axis=1))


@dataclass(frozen=True, eq=False)
class _Plan:
    """How many groups of orders the sampled corners of a row need, estimated from the groups drawn so far.

    Attributes
    ----------
    count, cost, whole : (corners,)
        Groups drawn so far, the cost of a group, the cost of all coalitions.
    spread : (corners,)
        The variance of one group in the row's credit.
    variance, freedom, reach, limit : (credits,)
        Of each credit of the row that is not exact: the variance with the groups drawn so far, its degrees of freedom,
        the reach as in `Sums`, and the error to get within.
    each : float
        The probability of failure of each credit's bound.
    budget : float
        The largest total cost.
    """

    count: Ints
    cost: Array
    whole: Array
    spread: Array
    variance: Array
    freedom: Array
    reach: Array
    limit: Array
    each: float
    budget: float

    @classmethod
    def of(
        cls, last: Sums, spread: Array, corners: Corners, mine: Ints, count: Ints, level: float, allowed: Array
    ) -> _Plan:
        """For the corners `mine` of a row, from its `last` sums, to get within `allowed` (k,)."""
        row = corners.row[mine[0]]
        spread = corners.weight[mine] ** 2 * spread
        # The variance of a few groups may be too small by chance: each is shrunk towards the mean of all corners.
        spread = ((count - 1.0) * spread + np.square(np.sqrt(spread).mean())) / count
        some = last.variance[row] > 0
        variance = last.variance[row][some]
        return cls(
            count=count,
            cost=corners.cost[mine],
            whole=corners.whole[mine],
            spread=spread,
            variance=variance,
            freedom=variance**2 / last.squared[row][some],
            reach=last.reach[row][some],
            limit=np.broadcast_to(allowed, some.shape)[some],
            each=level / max(int(some.sum()), 1),
            budget=float(np.clip(limits.SAMPLED_NUMBERS[0] * len(count), *limits.SAMPLED_NUMBERS[1:])),
        )

    def groups(self) -> Ints:
        """`limits.LEAST_GROUPS[1]` or more, or 0 where all coalitions of a corner cost less than its groups would."""
        drawn = np.ones(len(self.count), np.bool_)
        while True:
            out = np.where(drawn, self._counts(drawn), 0)
            whole = drawn & (self.whole <= out * self.cost)
            if not whole.any():
                return out
            drawn &= ~whole
            if not drawn.any():
                return np.zeros_like(out)

    def _counts(self, drawn: Bools) -> Ints:
        """The number of groups for each corner if only some corners are sampled."""
        spread, cost = np.where(drawn, self.spread, 0.0), self.cost
        best = np.sqrt(spread / cost)  # Neyman allocation: the least variance for the total cost
        share = limits.EVEN_SHARE * drawn / (cost * drawn).sum()
        if best.any():
            share = share + (1.0 - limits.EVEN_SHARE) * best / (best * cost).sum()
        spent = limits.SAMPLE_GROWTHS * float((self.count * cost).sum())
        counts = np.ceil(np.maximum(np.minimum(spent, self.budget)[:, None] * share, limits.LEAST_GROUPS[1]))
        enough = self._enough(spread, counts)
        return np.asarray(counts[np.argmax(enough) if enough.any() else -1], np.int64)

    def _enough(self, spread: Array, counts: Array) -> Bools:
        """Whether the bound will be small enough, for some numbers of groups (n, corners)."""
        now, then = spread / counts, self.spread / self.count
        total = now.sum(axis=1)
        # The predicted bound: with more groups the variance falls and its degrees of freedom grow.
        fall = (total / then.sum())[:, None]
        careful = np.sqrt(self.variance * (1.0 + 1.5 * np.sqrt(2.0 / np.maximum(self.freedom, 1.0))) * fall)
        with np.errstate(invalid="ignore"):
            freedom = np.nan_to_num(total**2 / (now**2 / (counts - 1.0)).sum(axis=1), nan=1.0)[:, None]
        nearer = (np.sqrt(spread) / counts).max(axis=1) / (np.sqrt(self.spread) / self.count).max()
        expected = student(self.each, np.broadcast_to(freedom, careful.shape)) * careful
        expected = expected + log(2.0 / self.each) / 3.0 * self.reach * nearer[:, None]
        return np.asarray((expected <= self.limit).all(axis=1))


def student(level: float, freedom: Array) -> Array:
    """The number that |t| exceeds with probability `level`, for Student's t with degrees of freedom (n,) of at least 1.

    Hill's expansion (algorithm 396 of the ACM), good to 1e-4 or better where it is used here.
    """
    n = np.maximum(freedom, 1.0)
    a = 1.0 / (n - 0.5)
    b = 48.0 / a**2
    c = ((20700.0 * a / b - 98.0) * a - 16.0) * a + 96.36
    d = ((94.5 / (b + c) - 3.0) / b + 1.0) * np.sqrt(a * pi / 2.0) * n
    y = (d * level) ** (2.0 / n)
    far = y <= 0.05 + a
    with np.errstate(all="ignore"):
        z = (1.0 / (((n + 6.0) / (n * y) - 0.089 * d - 0.822) * (n + 2.0) * 3.0) + 0.5 / (n + 4.0)) * y - 1.0
        tail = z * (n + 1.0) / (n + 2.0) + 1.0 / y
        x = NormalDist().inv_cdf(0.5 * level)
        c = np.where(n < 5.0, c + 0.3 * (n - 4.5) * (x + 0.6), c)
        c = (((0.05 * d * x - 5.0) * x - 7.0) * x - 2.0) * x + b + c
        y = (((((0.4 * x * x + 6.3) * x * x + 36.0) * x * x + 94.5) / c - x * x - 3.0) / b + 1.0) * x
        middle = np.expm1(a * y**2)
    return np.asarray(np.sqrt(n * np.where(far, tail, middle)))


def warn_of_sampling(found: Credits, node: Node, target: float) -> None:
    """Warn of rows whose sampled corners of the score `node` missed the target, with what to do."""
    if not np.any(found.sampled):
        return
    values, error = found.values, np.broadcast_to(found.sampled, found.error.shape)
    players = np.broadcast_to(found.players, len(values))
    with np.errstate(divide="ignore", invalid="ignore"):
        part = np.nan_to_num(error / np.abs(values).max(axis=1, initial=0.0), nan=0.0, posinf=np.inf).max(axis=1)
    over = np.nonzero((part > 1.05 * max(target, 1e-12)) & (error > 0).any(axis=1))[0]
    if not len(over):
        return
    worst = over[np.argmax(part[over])]
    named = ", ".join(map(str, over[:10].tolist())) + (", ..." if len(over) > 10 else "")
    warn(
        f"Up to {players[over].max()} columns change at once, too many to try all orders in which they may: their "
        f"credit in {_space(node)} was sampled. On {len(over)} of {len(values)} rows ({named}) it is off by up to "
        f"{error[worst].max():.3g}, {part[worst]:.2g} of the largest credit, where corner_tol={target:g} was asked "
        f"for; see `error`. Declare the dummies of a category as one variable with groups=, explain "
        f"output='margin', where "
        f"nothing is sampled, or ask for less with corner_tol={_rounded_up(float(part[over].max())):g}.",
        AccuracyWarning,
    )


def _space(node: Node) -> str:
    """What a score is called in a warning."""
    stage = node.stage()
    while stage is not None and stage.name == "select":
        (node,) = node.parents
        stage = node.stage()
    if stage is not None and stage.name in ("sigmoid", "softmax"):
        return "probability space"
    if stage is not None and stage.name == "piecewise_linear":
        return "the space of this score, a rank or a calibrated probability,"
    return "this score"


def _rounded_up(x: float) -> float:
    """The next number of one digit."""
    if not 0 < x < np.inf:
        return 1.0
    unit = 10.0 ** np.floor(np.log10(x))
    return float(f"{np.ceil(x / unit) * unit:.1g}")


def row_hashes(rows: Array) -> NDArray[np.uint64]:
    """A hash of the values of each row, (n,): equal for equal rows; -0.0 counts as 0.0."""
    bits = np.where(np.isnan(rows), np.nan, rows + 0.0).view(np.uint64)
    out = np.full(len(rows), 0x9E3779B97F4A7C15, np.uint64)
    for column in bits.T:
        out = _mixed(out ^ column)
    return out


def seeds(start: NDArray[np.uint64], end: NDArray[np.uint64], time: Array, seed: int, stage: int) -> NDArray[np.uint64]:
    """Seeds of corners, (n,), from the hashes of their rows."""
    out = _mixed(start ^ np.uint64(seed & 0xFFFFFFFFFFFFFFFF))
    for part in (end, (time + 0.0).view(np.uint64)):
        out = _mixed(out ^ part)
    return _mixed(out + np.uint64(stage))


def _mixed(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finalizer of splitmix64."""
    with np.errstate(over="ignore"):
        x = x + np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))
