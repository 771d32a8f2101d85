"""The jump at a corner, shared by Shapley value among the variables that cross there.

All subsets are asked, in one batch, up to `EXACT` players. Above, permutations are drawn in antithetic pairs with a
fixed seed; every one of them shares out the whole jump, and the standard error of their mean is reported.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import factorial

import numpy as np
from numpy.typing import NDArray

from ..graph import Array

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

EXACT = 12
"""The largest number of players for which all subsets are asked."""

Game = Callable[[Ints, Bools], Array]
"""`game(corner, past)`: the score, (q, k), at the corners (q,) with the players of `past` (q, players) past them."""


@cache
def subsets(players: int) -> Bools:
    """All subsets, (2^players, players): bit i of the row's number is player i."""
    return np.asarray((np.arange(2**players)[:, None] >> np.arange(players)) & 1 == 1)


@cache
def weights(players: int) -> Array:
    """The matrix (players, 2^players) that turns a game's values on all subsets into Shapley values."""
    member = subsets(players)
    size = member.sum(axis=1)
    plus = np.array([factorial(max(u - 1, 0)) * factorial(players - u) for u in range(players + 1)], np.float64)
    minus = np.array([factorial(u) * factorial(max(players - u - 1, 0)) for u in range(players + 1)], np.float64)
    out: Array = np.where(member, plus[size][:, None], -minus[size][:, None]).T / factorial(players)
    return out


def shapley(game: Game, corners: Ints, players: int, outputs: int, seed: int) -> tuple[Array, Array]:
    """Shapley values (n, players, k) of the games at `corners` (n,), all with the same number of players.

    The second array, (n, k), is the largest standard error of a corner's values: zero where all subsets were asked.
    """
    if players > EXACT:
        return _sampled(game, corners, players, outputs, seed)
    member = subsets(players)
    values = game(np.repeat(corners, len(member)), np.tile(member, (len(corners), 1)))
    values = values.reshape(len(corners), len(member), outputs)
    return np.matmul(weights(players), values), np.zeros((len(corners), outputs))


def _sampled(game: Game, corners: Ints, players: int, outputs: int, seed: int) -> tuple[Array, Array]:
    pairs = max(2**EXACT // (2 * players), 16)
    rng = np.random.default_rng([seed, players])
    forth = np.argsort(rng.random((pairs, players)), axis=1)
    order = np.concatenate([forth, forth[:, ::-1]])
    # rank of a player in its permutation; after s steps those of rank < s are past
    past = np.argsort(order, axis=1)[:, None, :] < np.arange(players + 1)[None, :, None]
    flat = past.reshape(-1, players)
    credit = np.zeros((len(corners), players, outputs))
    error = np.zeros((len(corners), outputs))
    for i in range(len(corners)):
        values = game(np.repeat(corners[i : i + 1], len(flat)), flat).reshape(2 * pairs, players + 1, outputs)
        gain = np.zeros((2 * pairs, players, outputs))
        np.put_along_axis(gain, order[:, :, None], np.diff(values, axis=1), axis=1)
        each = 0.5 * (gain[:pairs] + gain[pairs:])
        credit[i] = each.mean(axis=0)
        error[i] = (each.std(axis=0, ddof=1) / np.sqrt(pairs)).max(axis=0)
    return credit, error
