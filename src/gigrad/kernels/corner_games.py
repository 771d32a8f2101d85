"""Games at corners whose score is more than a link over trees: outputs of the trees by coalition, and Shapley values.

Bit i of a coalition's number says whether player i is in it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import _native
from .arrays import Array, Ints, integers, numbers, threads

STRONG_PLAYERS: int = _native.STRONG_PLAYERS
"""The largest number of players of a sampled corner that are enumerated for every order of the others."""

TABLE_NUMBERS: int = _native.TABLE_NUMBERS
"""The largest size of a table of coalitions: larger games are enumerated in parts."""

MAX_ENUMERATED: int = _native.MAX_ENUMERATED
"""The largest number of players whose coalitions are all evaluated."""

CornerLeaves = _native.CornerLeaves
"""The outputs of trees for coalitions at one corner: `CornerLeaves(forest, start (1, p), end (1, p), time)`.

`variables()` are those that matter to the trees there, `coefficients` is what a table costs beside its size. First
`set_players(variables)` names the players, some of whom may matter elsewhere. Then `table(bits, part)` gives the scores
of all coalitions of the first `bits` players, (2^bits, outputs), with those of the others that are in `part`; parts are
requested in order. `shares()` is Shapley's value of the trees' sum, (players, outputs). For sampled orders
`set_order(order, strong)` lists the players by strength; `follow(joins)` then gives, for orders (n, weak) of the weak
players, numbered by their places after the strong ones, the scores of all coalitions of the strong with none, one, ...
all of the others: (n, weak + 1, 2^strong, outputs).
"""

CoalitionFold = _native.CoalitionFold
"""The Shapley value of a game: `CoalitionFold(players, outputs)`.

`add` takes the values of the next coalitions, (n, outputs), n a multiple of 256 or all of them; `finish` gives
(players, outputs).
"""


class PathCorners(NamedTuple):
    """The corners of paths, in order of path and time: see `path_corners`."""

    first: Ints  # (paths + 1,) of each path
    time: Array  # (n,)
    offsets: Ints  # (n + 1,)
    column: Ints  # the distinct columns that cross at corner i, in order: column[offsets[i]:offsets[i + 1]]
    broken: NDArray[np.bool_]  # (n,) whether a column that jumps half-way is among them
    states: list[Array]  # outputs of each sum of trees, (n + paths, outputs): before corner c of path i in row c + i


def path_corners(
    forests: list[Any],
    at_starts: list[Array],
    starts: Array,
    ends: Array,
    half: tuple[Ints, Ints],
    n_threads: int | None = None,
) -> PathCorners:
    """The corners of the paths from starts[i] to ends[i], from the jumps of several sums of trees.

    `at_starts` are the outputs of each at the starts, `half` paths (in order) and columns that jump half-way.
    """
    outputs = [numbers(v) for v in at_starts]
    return PathCorners(
        *_native.path_corners(
            forests, outputs, numbers(starts), numbers(ends), integers(half[0]), integers(half[1]), threads(n_threads)
        )
    )


def coalition_scores(
    forest: Any, starts: Array, ends: Array, pair: Ints, time: Array, players: Ints, n_threads: int | None = None
) -> Array:
    """The outputs of the trees for all coalitions of the players (n, k) of n corners: (n, 2^k, outputs).

    Corner i is that at `time[i]` of the path from `starts[pair[i]]` to `ends[pair[i]]`.
    """
    return _native.coalition_scores(
        forest, numbers(starts), numbers(ends), integers(pair), numbers(time),
        np.ascontiguousarray(players, np.int32), threads(n_threads),
    )  # fmt: skip


def fold_orders(values: Array) -> Array:
    """Credits of players from the scores of coalitions, less that of the empty one, (orders, w + 1, 2^q, outputs).

    All coalitions of q players are enumerated, with none, one, ... all of w others, who join in a given order. The
    result (orders, q + w, outputs) is each player's mean contribution over all orders of the q + w players in which the
    w come in the given order.
    """
    return _native.fold_orders(numbers(values))


def order_groups(players: int, count: int, seed: int) -> Ints:
    """Random orders in groups of four, (count, 4, players): who joins first, second, ..."""
    return _native.order_groups(players, count, seed)


def strong_players(margins: int) -> int:
    """The largest number of players of a sampled corner to enumerate, for a link over so many sums of trees."""
    return _native.strong_players(margins)


def enumerates(players: int, numbers: int, others: float, references: int, target: float) -> bool:
    """Whether to evaluate all coalitions of a corner, by the rule of `corner_policy.hpp`.

    `numbers` is the cost of a coalition and `others` a cost that occurs once; a row's credit is a mean over
    `references`, and `target` is the error that sampling would have to reach.
    """
    return _native.enumerates(players, others, numbers, references, target)
