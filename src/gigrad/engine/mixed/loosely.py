"""Loose tolerances: wide layers evaluated at few times of a path, at twice as many until two results agree.

The credits of a path with n and with 2 n intervals differ by about three times the error of the latter. Results are
means over references, in which the errors of paths have either sign: so the results of rows are compared.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ...graph import Array
from .. import limits
from ..paths import Block, Bools
from ..settings import Settings
from .lines import Legs, Lines
from .sampled import LayerChain, SampledLines
from .walk import PathCredits, Plan, walk


def first_intervals(chain: LayerChain, settings: Settings, references: float) -> int:
    """How many intervals to begin with, for rows of so many paths; 0 where following every kink costs less."""
    enough = (limits.SAMPLED_ERROR / (settings.tol * max(references, 1.0) ** 0.5)) ** 0.5
    intervals = int(2.0 ** np.clip(np.ceil(np.log2(enough)), 3.0, 10.0))
    return intervals if intervals <= most_intervals(chain) and not settings.careful else 0


def most_intervals(chain: LayerChain) -> int:
    """Beyond so many intervals following every kink costs less."""
    return chain.units // limits.SAMPLED_UNITS


@dataclass(frozen=True, eq=False)
class IntervalComparison:
    """Paths walked with some number of intervals, and with half as many.

    Attributes
    ----------
    walked : list of PathCredits
        With the larger number; together all paths, in order.
    credit, change : (paths, players, k)
        The credits, and how they differ from those with half as many intervals.
    squares : (paths, players, k)
        The same squared, or the sum of squares of the parts of that difference where it is larger: parts may cancel.
    gap, rest : (paths, k)
        The mismatch of the sum with the change of the score, and estimates of all other errors.
    """

    walked: list[PathCredits]
    credit: Array
    change: Array
    squares: Array
    gap: Array
    rest: Array


def walk_loosely(plan: Plan, block: Block, allowed: Array, chain: LayerChain, intervals: int) -> list[PathCredits]:
    """Credit of every path of a block, of rows that may be off by `allowed` (rows, k), from `intervals` on.

    The corners that are given back are those of the first walks.
    """
    first = _compared(plan, block, allowed, chain, intervals)
    credit, error = first.credit, _estimate(block, first)
    over, most = np.nonzero(_over(block, error, allowed))[0], most_intervals(chain)
    # Corners of many players are sampled later, and errors of interpolated values beside them would not be noticed.
    if any(w.large for w in first.walked):
        over, most = np.arange(len(block)), 0
    while len(over) and 2 * intervals <= most:
        intervals *= 2
        some = block[over]
        found = _compared(plan, some, allowed, chain, intervals)
        credit[over], error[over] = found.credit, _estimate(some, found)
        over = over[_over(some, error[over], allowed)]
    for path in over.tolist():
        one = walk(plan, block[np.array([path])], allowed[block.row[[path]]], careful=False)
        credit[path], error[path] = one.credit[0].sum(axis=0), one.error[0]
    edges = np.cumsum([len(w.block) for w in first.walked])[:-1]
    parts = zip(first.walked, np.split(credit, edges), np.split(error, edges), strict=True)
    return [replace(w, credit=c[:, None], error=e) for w, c, e in parts]


def _compared(plan: Plan, block: Block, allowed: Array, chain: LayerChain, intervals: int) -> IntervalComparison:
    """Walk the paths of a block with so many intervals and with half as many, a few of them at a time."""
    widest = max(sums.width for _, sums in chain.layers)
    step = max(limits.LOOSE_NUMBERS // (widest * intervals), 1)
    parts = [
        _compare(plan, block[np.arange(first, min(first + step, len(block)))], allowed, chain, intervals)
        for first in range(0, len(block), step)
    ]
    fields = ("credit", "change", "squares", "gap", "rest")
    joined = (np.concatenate([getattr(p, f) for p in parts]) for f in fields)
    return IntervalComparison([w for p in parts for w in p.walked], *joined)


def _compare(plan: Plan, block: Block, allowed: Array, chain: LayerChain, intervals: int) -> IntervalComparison:
    """Walk with so many intervals and with half as many: the difference shows the error."""
    lines = list[SampledLines]()

    def trace(legs: Legs) -> Lines:
        lines.append(lines[0].coarser() if lines else SampledLines.of(plan.roles, block, legs, chain, intervals))
        return lines[-1]

    inner, output = limits.SAMPLED_SHARE * allowed[block.row], plan.roles.output
    fine, coarse = (walk(plan, block, inner, False, trace) for _ in range(2))
    gain = plan.ends.at_ends[output][block.row] - plan.ends.at_starts[output][block.start]
    credit = fine.credit.sum(axis=1)
    gap, change = gain - credit.sum(axis=1), credit - coarse.credit.sum(axis=1)
    squares = np.maximum(np.square(change), _by_intervals(plan, *lines) + _by_corners(plan, fine, coarse))
    return IntervalComparison([fine], credit, change, squares, gap, fine.error - limits.GAP_CAUTION * np.abs(gap))


def _estimate(block: Block, found: IntervalComparison) -> Array:
    """The error of each path's credits, (paths, k): the same for all paths of a row, from that of their mean."""
    _, row = np.unique(block.row, return_inverse=True)
    total = np.bincount(row, block.weight)

    def mean(values: Array, weight: Array = block.weight) -> Array:
        out = np.zeros((len(total), *values.shape[1:]))
        np.add.at(out, row, values * weight.reshape(-1, *[1] * (values.ndim - 1)))
        return out

    off = np.maximum(np.abs(mean(found.change)), np.sqrt(mean(found.squares, block.weight**2))).max(axis=1)
    off = np.maximum(limits.SAMPLED_CAUTION * off, limits.GAP_CAUTION * np.abs(mean(found.gap))) + mean(found.rest)
    return np.asarray(off[row] / np.maximum(total, np.finfo(np.float64).tiny)[row, None])


def _by_intervals(plan: Plan, lines: SampledLines, fewer: SampledLines) -> Array:
    """Sums over intervals of squared changes of credits, (paths, players, k)."""
    path = lines.legs.path[fewer.intervals.leg[fewer.intervals.left]]
    out = np.zeros((len(lines.block), plan.player_count, len(lines.credit)))
    for output, (credit, other) in enumerate(zip(lines.credit, fewer.credit, strict=True)):
        change = credit[::2] + credit[1::2] - other
        by_player = np.zeros((plan.player_count, len(path)))
        np.add.at(by_player, plan.players, change.T)
        np.add.at(out[:, :, output], path, np.square(by_player.T))
    return out


def _by_corners(plan: Plan, fine: PathCredits, coarse: PathCredits) -> Array:
    """Sums over corners of squared changes of credits, (paths, players, k)."""
    out = np.zeros((len(fine.block), plan.player_count, plan.roles.output.width))
    players, path = fine.corner_players, fine.corners.path
    np.add.at(out, (path[players.corner], players.player), np.square(fine.corner_credit - coarse.corner_credit))
    return out


def _over(block: Block, error: Array, allowed: Array) -> Bools:
    """Which paths belong to rows whose error, the same for all paths of a row, is larger than allowed."""
    return np.asarray((error > allowed[block.row]).any(axis=1))
