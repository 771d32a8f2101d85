"""Corners of too many variables to ask all coalitions: sampled for the row, not for the pair.

What is reported is a mean over references, so its error is what counts. A pilot of a few groups of orders for each
corner tells how many the row needs; if the pilot itself is not accurate enough, that many new ones are drawn and the
pilot is forgotten. The number of groups is thus known before they are drawn, and the bound on their mean is one for a
sample of fixed size, however it was decided.

Seeds come from the values of the two rows and the user's seed: a row's answer does not depend on its place, on other
rows, on batches or on threads.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log, pi
from statistics import NormalDist
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..errors import AccuracyWarning, warn
from ..graph import Array
from ..kernels.corner_games import ROW_NUMBERS
from .paths import Ints
from .settings import Credits

PILOT = 48
"""Groups of orders of a row's pilot, shared out among its corners by weight; two or more for each."""


@dataclass(frozen=True, eq=False)
class Sums:
    """Sums over the sampled corners of each row, all (rows, players, k).

    Attributes
    ----------
    credit : of weight * credit
    variance : of the variance of that
    squared : of squared variances, each over its degrees of freedom
    reach : the largest weight * (largest - least credit of a group) / number of groups
    """

    credit: Array
    variance: Array
    squared: Array
    reach: Array


class Draw(Protocol):
    """Draws `count` groups of orders for each of some corners, told apart by `stage`."""

    def __call__(self, which: Ints, count: Ints, stage: int) -> Sums:
        """Sums over the corners `which`, for all rows."""


def estimate(
    draw: Draw, row: Ints, weight: Array, cost: Array, known: Array, target: float, miss: float
) -> tuple[Array, Array]:
    """Credit of the sampled corners of each row, (rows, players, k), and a bound on its error, (rows, k).

    Parameters
    ----------
    draw : Draw
    row, weight : (corners,)
        The row that each corner counts for, in order, and by how much.
    cost : (corners,)
        What a group of orders costs, in numbers: a row may cost `ROW_NUMBERS` after its pilot.
    known : (rows, players, k)
        What the rows' credits are without these corners.
    target : float
        Error to reach, as a part of the largest credit of the row.
    miss : float
        How likely the credits of a row may be farther off than the bound says.
    """
    rows = len(known)
    total = np.bincount(row, np.abs(weight), rows)
    part = np.abs(weight) / np.where(total > 0, total, 1.0)[row]
    corners = np.bincount(row, minlength=rows)[row]
    # A corner that counts little may vary most: each has its part of half of the pilot whatever it counts.
    count = np.ceil(np.maximum(PILOT * part, np.maximum(0.5 * PILOT / corners, 2.0))).astype(np.int64)
    level = 0.5 * miss  # for each of the two looks
    pilot = draw(np.arange(len(row)), count, 0)
    credit, error = pilot.credit.copy(), bound(pilot, level)
    largest = np.abs(known + credit).max(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.nan_to_num(error / (target * largest), nan=0.0, posinf=np.inf).max(axis=1)
    again = np.nonzero(ratio[row] > 1.0)[0]
    if len(again):
        spent = np.bincount(row, count * cost, rows)
        most = np.maximum(ROW_NUMBERS / np.maximum(spent, 1.0), 1.0)
        growth = np.minimum(_growth(pilot, level, target * largest), most)
        main = draw(again, np.ceil(count[again] * growth[row[again]]).astype(np.int64), 1)
        redone = np.unique(row[again])
        credit[redone], error[redone] = main.credit[redone], bound(main, level)[redone]
    return credit, error


def bound(sums: Sums, level: float) -> Array:
    """What no credit of a row is farther off than, (rows, k), but for a chance of `level`.

    Student's quantile for the degrees of freedom that the variances have together (Welch and Satterthwaite), for all
    credits of the row at once (Bonferroni). Credits that few groups of orders change a lot have skew means: the term
    of Bernstein's bound that holds for them is added, with the range that was seen.
    """
    half = np.zeros_like(sums.variance)
    for i in range(len(half)):
        some = sums.variance[i] > 0
        if some.any():
            each = level / some.sum()
            freedom = sums.variance[i][some] ** 2 / sums.squared[i][some]
            half[i][some] = student(each, freedom) * np.sqrt(sums.variance[i][some])
            half[i][some] += log(2.0 / each) / 3.0 * sums.reach[i][some]
    return np.asarray(half.max(axis=1))


GROWTHS = 1.1 ** np.arange(140)
"""By how much the pilot may be multiplied: up to half a million times."""


def _growth(pilot: Sums, level: float, allowed: Array) -> Array:
    """By how much to multiply the pilot's groups to get within `allowed` (rows, k), (rows,)."""
    out = np.ones(len(allowed))
    for i in range(len(out)):
        some = pilot.variance[i] > 0
        if not some.any():
            continue
        each, limit = level / some.sum(), np.broadcast_to(allowed[i], some.shape)[some]
        variance, reach = pilot.variance[i][some], pilot.reach[i][some]
        freedom = variance**2 / pilot.squared[i][some]
        careful = np.sqrt(variance * (1.0 + 1.5 * np.sqrt(2.0 / np.maximum(freedom, 1.0))))
        # What the bound will be: the variance falls with the number of groups, and its degrees of freedom grow with it.
        grid = GROWTHS[:, None]
        expected = student(each, freedom * grid) * careful / np.sqrt(grid) + log(2.0 / each) / 3.0 * reach / grid
        enough = (1.05 * expected <= limit).all(axis=1)
        out[i] = GROWTHS[np.argmax(enough)] if enough.any() else np.inf
    return out


def student(level: float, freedom: Array) -> Array:
    """What Student's t exceeds in size with a chance of `level`, for degrees of freedom (n,) of one or more.

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


def warn_of_sampling(found: Credits, target: float) -> None:
    """Say which rows' sampled corners missed the target, and what helps."""
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
        f"credit in this score was sampled. On {len(over)} of {len(values)} rows ({named}) it is off by up to "
        f"{error[worst].max():.3g}, {part[worst]:.2g} of the largest credit, where corner_tol={target:g} was asked "
        f"for; see `error`. Declare the dummies of a category as one variable with groups=, explain "
        f"output='margin', where "
        f"nothing is sampled, or ask for less with corner_tol={_rounded_up(float(part[over].max())):g}.",
        AccuracyWarning,
    )


def _rounded_up(x: float) -> float:
    """The next number of one digit."""
    if not 0 < x < np.inf:
        return 1.0
    unit = 10.0 ** np.floor(np.log10(x))
    return float(f"{np.ceil(x / unit) * unit:.1g}")


def row_hashes(rows: Array) -> NDArray[np.uint64]:
    """A number for the values of each row, (n,): equal rows have equal ones, zeros without their sign."""
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
