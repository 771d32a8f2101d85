"""The definition itself, by brute force: nothing here is fast, and nothing is shared with the engine.

At a corner the model is evaluated for all 2^k subsets of the variables that cross there, those in the subset past the
corner and the others before it; `segments` integrates between corners. `times` has the time of a crossing, `path` the
values of the model on the path, `crossings` covers trees over smooth scores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import factorial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._explain.grouping import Grouping
from ..errors import InputError
from ..graph import Array, Graph, Node
from ..importers import import_model
from .blackbox import representatives
from .crossings import crossing_credit, find_crossings, has_gradient, numeric_splits, reads_scores
from .path import Choice, Path
from .segments import LONGEST, segment_credit
from .times import UNITS

Score = Callable[[Array], Array]


# ---------------------------------------------------------------- the definition


@dataclass(frozen=True)
class Corner:
    """Variables that cross at one time, a multiple of 2^-30."""

    time: float
    columns: tuple[int, ...]


def brute_force(
    model: Any,
    start: Any,
    end: Any,
    *,
    output: Any = None,
    target: str | float | None = None,
    discrete: Mapping[str, Sequence[float] | None] | None = None,
    nominal: Iterable[str] = (),
    groups: Mapping[str, Sequence[str]] | None = None,
    score: Score | None = None,
    until: float = 1.0,
    longest: float = LONGEST,
) -> Array:
    """Credit of one pair by the definition itself: (p, k), or (features, k) with groups.

    Parameters
    ----------
    model : fitted model or Graph
    start, end : (p,) encoded rows
    output, target
        As in `gigrad.explain`.
    discrete : mapping of names to values, optional
        The discrete columns and their supports, None for the whole numbers: the places of their splits are computed
        here. All other splits have the places of the graph, and so do all by default.
    nominal : names of columns
        Together with `discrete`; by default those of the graph.
    groups : mapping, optional
        As in `gigrad.explain`: columns that are one player.
    score : callable, optional
        The model as a black box, (n, p) encoded rows -> (n,) or (n, k), evaluated on a row in every cell; by default
        the graph. Only if trees alone read the rows: nets and linear models need values in between.
    until : float
        Return the credit up to this time of the path, jumps at that time included.
    longest : float
        The largest length, in time, of the pieces that the integration of a continuous part starts from. A rise and
        fall of the score on a shorter part of the path may be overlooked.

    Examples
    --------
    >>> import gigrad as gig
    >>> from gigrad.testing import brute_force
    >>> brute_force(tree, start=[0.0, 0.0], end=[1.0, 1.0])
    array([[2.],
           [2.]])
    """
    graph = import_model(model)
    node, _ = graph.output(output, target)
    start, end = (_one_row(row, graph, what) for row, what in ((start, "start"), (end, "end")))
    path = Path(graph, node, start, end, _choice(graph, discrete, nominal))
    grouping = Grouping.of(graph.feature_names, groups)
    player = np.arange(len(start)) if grouping.players is None else grouping.players
    smooth = has_gradient(node, graph.input)
    if score is not None and smooth:
        raise InputError("score must belong to a model whose rows are read by trees alone; a smooth part reads these.")
    credit = np.zeros((len(grouping.members), node.width))
    corners = path.corners()
    for time, columns in ((t, c) for t, c in corners.items() if t <= until * UNITS):
        players, game = _game(path, node, time, columns, player, score)
        credit[players] += shapley(game)
    edges: list[float] = [0, *corners, until * UNITS]
    moved = np.zeros((len(start), node.width))
    over_scores = reads_scores(graph, node)
    if over_scores:
        crossings = list(find_crossings(node, path, list(corners)))
        so_far = (crossing_credit(node, c, path, shapley) for c in crossings if c.time <= until * UNITS)
        moved += sum(so_far, start=np.zeros_like(moved))
        edges += [c.time for c in crossings]
    if smooth:
        times = np.unique([t for t in edges if t <= until * UNITS])
        long = np.diff(times) >= 1  # crossings of smooth scores may be closer; what lies between is negligible
        moved += segment_credit(path, node, times[:-1][long], times[1:][long], longest)
    np.add.at(credit, player, moved)
    if over_scores and until == 1.0:
        _check_complete(credit, path.values(node, path.ends)[node])
    return credit


def _choice(
    graph: Graph, discrete: Mapping[str, Sequence[float] | None] | None, nominal: Iterable[str]
) -> Choice | None:
    """The discrete and nominal columns by position; None to let the graph choose."""
    if discrete is None:
        return None
    position = {name: j for j, name in enumerate(graph.feature_names)}
    return Choice(
        {position[name]: values for name, values in discrete.items()}, frozenset(position[name] for name in nominal)
    )


def _one_row(row: Any, graph: Graph, what: str) -> Array:
    """One encoded row, (p,)."""
    try:
        out = np.asarray(row, np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{what} must be one encoded row, numbers only; got {row!r:.60}.") from None
    if out.shape != (graph.input.width,):
        raise InputError(f"{what} must be one encoded row of {graph.input.width} numbers; its shape is {out.shape}.")
    return out


def _check_complete(credit: Array, scores: Array) -> None:
    """Raise if the credits do not add up, since sampling may have missed crossings of scores."""
    first, last = np.asarray(scores, np.float64).reshape(2, -1)
    lost = np.abs(last - first - credit.sum(axis=0)).max()
    if lost > 1e-7 * max(1.0, np.abs([first, last]).max()):
        raise InputError(
            f"brute_force must find every crossing of a score; {lost:.3g} of the difference is left over. A score "
            "crosses a threshold where other variables jump, or crosses it and back between two samples."
        )


def thresholds(graph: Graph, node: Node) -> dict[int, Array]:
    """The numeric thresholds of every column that trees below `node` read, including trees that read other trees."""
    found: dict[int, set[float]] = {}
    for base, column, edge in numeric_splits(node):
        if base is graph.input:
            found.setdefault(column, set()).add(edge)
    return {column: np.sort(np.array(list(values))) for column, values in found.items()}


def find_corners(graph: Graph, node: Node, start: Array, end: Array) -> Iterator[Corner]:
    """The corners of the path in order of time."""
    for time, columns in Path(graph, node, start, end).corners().items():
        yield Corner(time / UNITS, tuple(columns))


def shapley(game: Array) -> Array:
    """Shapley values (players, k) of a game given on all subsets, (2^players, k): bit i of the row is player i.

    Examples
    --------
    >>> import numpy as np
    >>> from gigrad.testing import shapley
    >>> shapley(np.array([[0.0], [1.0], [1.0], [4.0]]))  # nobody, player 0, player 1, both
    array([[2.],
           [2.]])
    """
    players = int(np.log2(len(game)))
    out = np.zeros((players, game.shape[1]))
    for subset in range(len(game)):
        size = subset.bit_count()
        for player in range(players):
            if not subset >> player & 1:
                weight = factorial(size) * factorial(players - size - 1) / factorial(players)
                out[player] += weight * (game[subset | 1 << player] - game[subset])
    return out


def _game(
    path: Path, node: Node, time: int, columns: list[int], player: NDArray[np.int64], score: Score | None
) -> tuple[list[int], Array]:
    """The players of a corner, and the model's value for each subset of them past the corner, (2^players, k)."""
    players = sorted(set(player[columns].tolist()))
    if len(players) > 16:
        raise InputError(f"brute_force evaluates all 2^k subsets of a corner; {len(players)} variables cross at one.")
    subsets = np.arange(2 ** len(players))
    past = np.zeros((len(subsets), len(player)), np.bool_)
    for i, one in enumerate(players):
        past[:, player == one] = (subsets >> i & 1).astype(np.bool_)[:, None]
    cells = path.cells(time, past)
    if score is None:
        return players, path.values(node, cells)[node]
    return players, np.asarray(score(representatives(path, cells)), np.float64).reshape(len(subsets), -1)
