"""The definition itself, by brute force: nothing here is fast, and nothing is shared with the engine.

Corners ask the model as a black box on either side of each threshold, for all 2^k subsets of the variables that cross
there; the segments between them are integrated by bisection until nothing changes. Trees over smooth scores are in
`crossings`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from math import factorial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..graph import (
    Array,
    Graph,
    Node,
    evaluate,
    pick,
)
from ..importers import import_model

TIE = 0.0
from .crossings import crossing_credit, find_crossings, gradient, has_gradient, numeric_splits, reads_scores

Score = Callable[[Array], Array]


# ---------------------------------------------------------------- the definition


@dataclass(frozen=True)
class Corner:
    """Variables that cross at one time: their values just before and just after it."""

    time: float
    before: dict[int, float]
    after: dict[int, float]


def brute_force(
    model: Any,
    start: Any,
    end: Any,
    *,
    output: Any = None,
    target: int | str | None = None,
    score: Score | None = None,
    smooth: bool | None = None,
) -> Array:
    """Credit of one pair by the definition itself: (p, k).

    Parameters
    ----------
    model : fitted model or Graph
    start, end : (p,) encoded rows
    output, target
        As in `gigrad.explain`.
    score : callable, optional
        The model as a black box, (n, p) encoded rows -> (n,) or (n, k); by default the graph's forward.
    smooth : bool, optional
        Whether there is a continuous part to integrate; found from the graph by default.

    Examples
    --------
    >>> import gigrad as gig
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> tree = DecisionTreeRegressor().fit([[0, 0], [0, 1], [1, 0], [1, 1]], [0, 1, 1, 4])
    >>> from gigrad.testing import brute_force
    >>> brute_force(tree, start=[0.0, 0.0], end=[1.0, 1.0])
    array([[2.],
           [2.]])
    """
    graph = import_model(model)
    node, _ = pick(*graph.output(output), target)
    start, end = (_one_row(row, graph, what) for row, what in ((start, "start"), (end, "end")))
    ask = score or (lambda x: evaluate((node,), {graph.input: x})[node])
    jumping = jumping_columns(graph, start, end)
    corners = list(find_corners(graph, node, start, end))
    credit = np.zeros((len(start), node.width))
    for corner in corners:
        credit += _corner_credit(ask, corner, _along(start, end, jumping, corner.time, corner.time > 0.5))
    times = [c.time for c in corners]
    over_scores = reads_scores(graph, node)
    if over_scores:
        move = np.where(jumping, 0.0, end - start)

        def along(at: Array) -> Array:
            return np.stack([_along(start, end, jumping, t, t > 0.5) for t in at.tolist()])

        crossings = list(find_crossings(graph, node, along, times))
        for crossing in crossings:
            point = along(np.array([crossing.time]))[0]
            credit += crossing_credit(graph, node, crossing, point, move, shapley)
        times += [crossing.time for crossing in crossings]
    if smooth is None:
        smooth = has_gradient(node, graph.input)
    if smooth:
        edges = [0.0, *sorted(times), 1.0]
        for low, high in pairwise(edges):
            if high - low > TIE:
                credit += _segment_credit(graph, node, start, end, jumping, low, high)
    if over_scores:
        _check_complete(credit, ask(np.stack([start, end])))
    return credit


def _one_row(row: Any, graph: Graph, what: str) -> Array:
    """One encoded row, (p,)."""
    try:
        out = np.asarray(row, np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{what} must be one encoded row, numbers only; {row!r:.60} came.") from None
    if out.shape != (graph.input.width,):
        raise InputError(f"{what} must be one encoded row of {graph.input.width} numbers; its shape is {out.shape}.")
    return out


def _check_complete(credit: Array, scores: Array) -> None:
    """Sampling may overlook crossings; what is left unexplained must not pass for the definition."""
    first, last = np.asarray(scores, np.float64).reshape(2, -1)
    lost = np.abs(last - first - credit.sum(axis=0)).max()
    if lost > 1e-7 * max(1.0, np.abs([first, last]).max()):
        raise InputError(
            f"brute_force could not follow every score: {lost:.3g} of the difference is left over. One passes a "
            "threshold where other variables jump, or passes it and back between two samples."
        )


def jumping_columns(graph: Graph, start: Array, end: Array) -> NDArray[np.bool_]:
    """The columns that change at once, half-way: categories, and any with a missing value at either end."""
    category = np.array([c.kind == "category" for c in graph.columns])
    return category | np.isnan(start) | np.isnan(end)


def thresholds(graph: Graph, node: Node) -> dict[int, Array]:
    """The numeric thresholds of every column that trees below `node` read; trees over trees jump with those."""
    found: dict[int, set[float]] = {}
    for base, column, edge in numeric_splits(node):
        if base is graph.input:
            found.setdefault(column, set()).add(edge)
    return {column: np.sort(np.array(list(values))) for column, values in found.items()}


def find_corners(graph: Graph, node: Node, start: Array, end: Array) -> Iterator[Corner]:
    """The corners of the path in order of time."""
    crossings: list[tuple[float, int, float, float]] = []
    jumping = jumping_columns(graph, start, end)
    for column in np.nonzero(jumping)[0].tolist():
        if start[column] != end[column] and not (np.isnan(start[column]) and np.isnan(end[column])):
            crossings.append((0.5, column, float(start[column]), float(end[column])))
    for column, values in thresholds(graph, node).items():
        if jumping[column]:
            continue
        low, high = sorted((start[column], end[column]))
        rising = end[column] > start[column]
        between = values[(low <= values) & (values < high)]
        for t in (between if rising else between[::-1]).tolist():  # in the order of the path, even at one time
            time = float(np.clip((t - start[column]) / (end[column] - start[column]), 0.0, 1.0))
            above = float(np.nextafter(t, np.inf))
            crossings.append((time, column, t if rising else above, above if rising else t))
    crossings.sort(key=lambda c: c[0])
    while crossings:
        time = crossings[0][0]
        tied = [c for c in crossings if c[0] - time <= TIE]
        crossings = crossings[len(tied) :]
        before: dict[int, float] = {}
        after: dict[int, float] = {}
        for _, column, old, new in tied:
            before.setdefault(column, old)
            after[column] = new
        yield Corner(time, before, after)


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


def _corner_credit(ask: Score, corner: Corner, point: Array) -> Array:
    columns = list(corner.before)
    if len(columns) > 16:
        raise InputError(f"brute_force asks for all 2^k subsets of a corner; {len(columns)} variables cross at one.")
    points = np.repeat(point[None], 2 ** len(columns), axis=0)
    for subset in range(len(points)):
        for i, column in enumerate(columns):
            points[subset, column] = (corner.after if subset >> i & 1 else corner.before)[column]
    game = np.asarray(ask(points), np.float64).reshape(len(points), -1)
    out = np.zeros((len(point), game.shape[1]))
    out[columns] = shapley(game)
    return out


def _along(start: Array, end: Array, jumping: NDArray[np.bool_], time: float, late: bool) -> Array:
    """The point of the path at `time`; jumping columns hold the end's value once `late`."""
    moving = np.clip(start + time * (end - start), np.fmin(start, end), np.fmax(start, end))
    return np.where(jumping, end if late else start, moving)  # the clip keeps rounding from leaving the end's side


# ---------------------------------------------------------------- the continuous part


def _segment_credit(
    graph: Graph, node: Node, start: Array, end: Array, jumping: NDArray[np.bool_], low: float, high: float
) -> Array:
    """Integrated gradients over one segment. All points lie inside it, so every split is on the segment's side.

    A piece is halved until its halves agree with it; until the slopes beside its ends lie on the polynomial through the
    slopes at its nodes, since a kink that hides beyond the outermost node shows there alone; and until what it adds up
    to is the change of the score, since a steep stretch may hide between two nodes.
    """
    nodes, weights = np.polynomial.legendre.leggauss(8)
    points = np.concatenate([nodes, [-1 + 1e-9, 1 - 1e-9]])
    ends = np.polynomial.legendre.legvander(points[8:], 7) @ np.linalg.inv(np.polynomial.legendre.legvander(nodes, 7))
    move = np.where(jumping, 0.0, end - start)

    def rule(a: float, b: float) -> tuple[Array, bool, float]:
        times = (a + b) / 2 + (b - a) / 2 * points
        x = np.stack([_along(start, end, jumping, t, t > 0.5) for t in times])
        columns = [gradient(node, graph.input, x, k) for k in range(node.width)]
        slopes = np.stack(columns, axis=2) * move[None, :, None]
        if not np.isfinite(slopes).all():  # which no halving would ever bring to an end
            raise InputError(f"brute_force needs finite gradients; one is not between the times {a:.6g} and {b:.6g}.")
        whole = np.tensordot(weights, slopes[:8], 1) * (b - a) / 2
        steepest = float(np.abs(slopes).max())
        astray = np.abs(np.tensordot(ends, slopes[:8], 1) - slopes[8:]).max()
        scores = evaluate((node,), {graph.input: x[8:]})[node]
        outside = slopes[8:].sum(axis=(0, 1)) * (points[8] + 1) * (b - a) / 2  # beyond the points beside the ends
        lost = np.abs(scores[1] - scores[0] - whole.sum(axis=0) + outside).max()
        seen = lost < 1e-9 * max(1.0, np.abs(scores).max()) + 1e-15 * steepest  # the latter is the rounding of times
        smooth = astray < 1e-7 * max(1.0, steepest) or astray * (b - a) < 1e-13  # the latter is too little to see
        return whole, bool(smooth and seen), steepest

    total = np.zeros((len(start), node.width))
    stack = [(low, high, rule(low, high))]
    while stack:
        a, b, (whole, plain, steepest) = stack.pop()
        middle = (a + b) / 2
        halves = rule(a, middle), rule(middle, b)
        both = halves[0][0] + halves[1][0]
        agree = np.abs(both - whole).max() < 1e-12 * max(1.0, np.abs(whole).max())
        # around a kink a piece never settles: it is let go when all that happens in it is too little to see
        if (agree and plain) or (b - a) * max(1.0, steepest) < 1e-13 or not a < middle < b:
            total += both
        else:
            stack += [(a, middle, halves[0]), (middle, b, halves[1])]
    return total
