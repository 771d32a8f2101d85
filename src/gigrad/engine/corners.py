"""Shapley values of the games at corners: all coalitions evaluated, or orders of the weaker players sampled.

With few players the score of every coalition is computed, which is the definition. If there are too many, a few
*strong* players are enumerated, and the others join in random orders: the score is computed for every coalition of the
strong ones after each of them, and `fold_orders` turns that into the mean over all orders in which the strong ones may
join as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from math import factorial
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..graph import Array
from ..kernels import DEFAULT_TARGET
from ..kernels.corner_games import STRONG_PLAYERS, CoalitionFold, enumerates, fold_orders, order_groups
from . import limits
from .sampling import Sums, bound

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


class Game(Protocol):
    """A game at a corner.

    Attributes
    ----------
    players, outputs : int
        The number of players, and of outputs of a score.
    numbers : int
        The cost of the score of one coalition, in units of one number, about 4 ns.
    """

    @property
    def players(self) -> int: ...
    @property
    def outputs(self) -> int: ...
    @property
    def numbers(self) -> int: ...

    def values(self, past: Bools) -> Array:
        """Scores (n, outputs) of some coalitions (n, players)."""

    def tables(self) -> Iterator[Array]:
        """Scores of all coalitions in order, in blocks (n, outputs): bit i of a coalition's number is player i."""

    def set_order(self, order: Ints, strong: int) -> None:
        """Set the order of the players by strength, (players,): the first `strong` are enumerated from now on."""

    def follow(self, joins: Ints) -> tuple[Array, list[Array]]:
        """Scores of all coalitions of the strong players, with none, one, ... all of the others.

        `joins` (n, weak) are orders of the others, numbered by their places after the strong. Returns (n, weak + 1,
        2^strong, outputs), and a list of control variates, (n, weak + 1, 2^strong, l) each: scores whose own Shapley
        value is known.
        """

    def shares(self) -> Array:
        """The Shapley values of the control variates, side by side, (players, sum of l)."""


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


def exact(game: Game) -> Array:
    """Shapley values, (players, outputs), from the scores of all coalitions."""
    fold = CoalitionFold(game.players, game.outputs)
    for values in game.tables():
        fold.add(np.ascontiguousarray(values))
    return fold.finish()


@dataclass(frozen=True, eq=False)
class Sample:
    """Statistics of some groups of orders, all (players, outputs).

    The mean, the sum of squared differences from it, and the largest difference of two groups.
    """

    mean: Array
    squares: Array
    range: Array


def sample(game: Game, count: int, seed: int) -> Sample:
    """Draw `count` groups of four orders each, from `seed`.

    Control variates: the sampled game is score - slopes * known, for scores `known` whose Shapley values are known,
    with slopes that depend on the game alone, not on the orders that are drawn.
    """
    n, k, q = game.players, game.outputs, strong_players(game)
    order = by_strength(game)
    strong, weak = order[:q], order[q:]
    game.set_order(order, q)
    values, known = game.follow(np.arange(n - q)[None])
    ends = [x[0, [0, -1]].reshape(2 * 2**q, x.shape[-1]) for x in (values, *known)]
    nobody = ends[0][0].copy()
    slopes = _slopes(np.concatenate([ends[0][:, :0], *ends[1:]], axis=1), ends[0])
    groups = np.empty((count, n, k))
    for i, joins in enumerate(order_groups(n - q, count, seed)):
        values, known = game.follow(joins)
        values -= nobody
        first = 0
        for one, end in zip(known, ends[1:], strict=True):
            one = one - end[0]
            last = first + one.shape[-1]
            values -= one * slopes[first] if last == first + 1 else one @ slopes[first:last]
            first = last
        found = fold_orders(values)
        groups[i, strong] = found[:, :q].mean(axis=0)
        each = np.empty((4, n - q, k))
        np.put_along_axis(each, joins[:, :, None], found[:, q:], axis=1)
        groups[i, weak] = each.mean(axis=0)
    mean = groups.mean(axis=0)
    squares, reach = np.square(groups - mean).sum(axis=0), np.ptp(groups, axis=0)
    return Sample(mean + game.shares() @ slopes, squares, reach)


class FunctionGame:
    """A game whose score is computed coalition by coalition: `score(past)`, (n, outputs), for members (n, players)."""

    def __init__(self, players: int, outputs: int, numbers: int, score: Callable[[Bools], Array]) -> None:
        self.players, self.outputs, self.numbers, self.values = players, outputs, numbers, score
        self.order, self.strong = np.arange(players), 0

    def tables(self) -> Iterator[Array]:
        """Scores of all coalitions in order, in blocks (n, outputs)."""
        for first in range(0, 2**self.players, limits.GAME_BLOCK):
            place = np.arange(first, min(first + limits.GAME_BLOCK, 2**self.players))
            yield self.values((place[:, None] >> np.arange(self.players)) & 1 == 1)

    def set_order(self, order: Ints, strong: int) -> None:
        """Set the order of the players by strength: the first `strong` are enumerated from now on."""
        self.order, self.strong = order, strong

    def follow(self, joins: Ints) -> tuple[Array, list[Array]]:
        """As in `Game`; no score is known."""
        past = prefixes(self.order, self.strong, joins)
        values = self.values(past.reshape(-1, self.players)).reshape(*past.shape[:3], self.outputs)
        return values, []

    def shares(self) -> Array:
        """No control variates: nothing about the function is known."""
        return np.zeros((self.players, 0))


def prefixes(order: Ints, strong: int, joins: Ints) -> Bools:
    """The coalitions that `Game.follow` evaluates, (n, weak + 1, 2^strong, players)."""
    weak = len(order) - strong
    rank = np.empty_like(joins)
    np.put_along_axis(rank, joins, np.arange(weak)[None], axis=1)
    out = np.zeros((len(joins), weak + 1, 2**strong, len(order)), np.bool_)
    out[..., order[strong:]] = (rank[:, None] < np.arange(weak + 1)[:, None])[:, :, None]
    out[..., order[:strong]] = subsets(strong)
    return out


def solve(game: Game, seed: int, miss: float) -> tuple[Array, Array]:
    """Shapley values (players, outputs) and a bound on their error, (outputs,), which is zero where they are exact."""
    if enumerates(game.players, game.numbers, 0.0, 1, DEFAULT_TARGET):
        return exact(game), np.zeros(game.outputs)
    found, n = sample(game, limits.PILOT_GROUPS, seed), float(limits.PILOT_GROUPS)
    variance = found.squares / (n * (n - 1.0))
    squared, reach = variance**2 / (n - 1.0), found.range / n
    common = np.stack([x.max(axis=0) for x in (variance, squared, reach)])[:, None]
    sums = Sums(
        found.mean[None], 0.0 * variance[None], variance[None], squared[None], reach[None], common, np.zeros(1),
        np.full(1, limits.PILOT_GROUPS),
    )  # fmt: skip
    return found.mean, bound(sums, miss)[0]


def strong_players(game: Game) -> int:
    """The number of players that are enumerated for every order of the others: fewer where a coalition is costly."""
    most = max(limits.ORDER_NUMBERS // ((game.players + 1) * game.numbers), 1)
    return min(most.bit_length() - 1, STRONG_PLAYERS, game.players)


def by_strength(game: Game) -> Ints:
    """The players in order of their effect on the score when they join first or last, the largest first."""
    n = game.players
    past = np.concatenate([np.zeros((1, n)), np.eye(n), np.ones((1, n)), 1.0 - np.eye(n)]) > 0
    values = game.values(past)
    first, last = values[1 : n + 1] - values[0], values[n + 1] - values[n + 2 :]
    return np.argsort(-(np.abs(first) + np.abs(last)).sum(axis=1), kind="stable")


def _slopes(known: Array, values: Array) -> Array:
    """Slopes (l, outputs) of the least-squares fit of values (n, outputs) by known scores (n, l)."""
    if not known.shape[1]:
        return np.zeros((0, values.shape[1]))
    x, y = known - known.mean(axis=0), values - values.mean(axis=0)
    out: Array = np.linalg.lstsq(x, y, rcond=1e-9)[0]
    return out
