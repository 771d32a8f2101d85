"""The credit of large corners, sampled row by row: orders of their players, as many as the row's target needs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...graph import Array
from .. import limits
from ..corners import exact, sample
from ..paths import Ints
from ..roles import Roles
from ..sampling import Corners, Sums, estimate, row_hashes, seeds
from ..settings import Settings
from .large_games import LargeCorner, LargeGame


@dataclass(frozen=True, eq=False)
class SampledRows:
    """The credit of the large corners of some rows.

    Attributes
    ----------
    rows, players : (r,)
        The rows, and the largest number of players of a corner of each.
    credit, error : (r, players, k), (r, k)
        What the corners add to the credits of the rows, and a bound on its error.
    by_corner : list of (players of the corner, k)
        The credit of each corner, without the weight of its path.
    """

    rows: Ints
    players: Ints
    credit: Array
    error: Array
    by_corner: list[Array]

    def add_to(self, values: Array, error: Array, players: Ints) -> None:
        """Add to the credits and errors of all rows, and to the largest numbers of players."""
        values[self.rows] += self.credit
        error[self.rows] += self.error
        players[self.rows] = np.maximum(players[self.rows], self.players)


def sample_rows(roles: Roles, corners: list[LargeCorner], values: Array, settings: Settings) -> SampledRows:
    """Sample the credit of large corners, by row.

    `values` (n, players, k) are the credits of all rows, to which nothing else is missing: the target is relative to
    the largest.
    """
    if not corners:
        nothing = np.zeros(0, np.int64)
        return SampledRows(nothing, nothing, values[:0], np.zeros((0, values.shape[2])), [])
    seed = seeds_of(corners, settings.seed)
    merged: dict[tuple[int, int], list[int]] = {}
    for place, corner in enumerate(corners):  # equal references are merged, with the sum of their weights
        merged.setdefault((corner.row, int(seed[place, 0])), []).append(place)
    some = [merged[key] for key in sorted(merged)]
    first = [corners[same[0]] for same in some]
    weight = np.array([sum(corners[c].weight for c in same) for same in some])
    rows, row = np.unique([corner.row for corner in first], return_inverse=True)
    cost, whole = (np.array([getattr(corner, f) for corner in first]) for f in ("cost", "whole"))
    players = np.zeros(len(rows), np.int64)
    np.maximum.at(players, row, [corner.players for corner in first])
    by_corner = [np.zeros((0, 0))] * len(corners)

    def draw(which: Ints, count: Ints, stage: int) -> Sums:
        """Sums over new orders of some corners."""
        zeros = np.zeros((5, *values[rows].shape))
        common = np.zeros((3, len(rows), values.shape[2]))
        sums = Sums(zeros[0], zeros[1], zeros[2], zeros[3], zeros[4], common, np.zeros(len(which)), count)
        for place, (i, n) in enumerate(zip(which.tolist(), count.tolist(), strict=True)):
            game = LargeGame.of(roles, first[i], settings)
            at = (row[i], game.who)
            if n == 0:
                mean = exact(game)
            else:
                found = sample(game, n, int(seed[some[i][0], stage]))
                mean, variance = found.mean, weight[i] ** 2 * found.squares / (n * (n - 1.0))
                sums.variance[at] += variance
                sums.squared[at] += variance**2 / (n - 1.0)
                reach = abs(weight[i]) * found.range / n
                sums.reach[at] = np.maximum(sums.reach[at], reach)
                most = variance.max(axis=0, initial=0.0)
                common[:2, row[i]] += most, most**2 / (n - 1.0)
                common[2, row[i]] = np.maximum(common[2, row[i]], reach.max(axis=0, initial=0.0))
                sums.spread[place] = found.squares.max(initial=0.0) / (n - 1.0)
            (sums.credit if n else sums.settled)[at] += weight[i] * mean
            credit = np.zeros((len(first[i].player), game.outputs))
            credit[np.searchsorted(first[i].player, game.who)] = mean
            for same in some[i]:
                by_corner[same] = credit
        return sums

    corners_of = Corners(row, weight, cost, whole)
    credit, bound = estimate(draw, corners_of, values[rows], settings.corner_tol, settings.miss)
    return SampledRows(rows, players, credit, bound, by_corner)


def seeds_of(corners: list[LargeCorner], seed: int) -> NDArray[np.uint64]:
    """Random seeds from the content of each corner's pair of rows, (corners, stages): for the pilot and for later."""
    starts, ends = (row_hashes(np.concatenate([getattr(c.block, f) for c in corners])) for f in ("starts", "ends"))
    time = np.array([c.time for c in corners])
    return np.stack([seeds(starts, ends, time, seed, stage) for stage in range(limits.SAMPLING_STAGES)], axis=1)
