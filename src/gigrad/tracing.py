"""What happens on the way from the references to a row: the score, the credit gathered so far, the largest jumps.

A sum of trees, under links or not, only jumps, and the native core lists its jumps. Any other model is explained piece
by piece: credit adds up along a path, so what a variable gathers between two times is the credit of the short path
between the two points, asked of a graph whose splits have the sides there that the path has (`graph.between`).
Variables that change all at once do so half-way; the pieces are laid so that one half is the middle of one, and there
they change in the piece as they do in the whole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import checks, kernels
from .engine import Pairs, Population, Settings, as_link, attribute, categories_read, linear_terms
from .errors import InputError
from .graph import Array, Between, Graph, Node, TreeEnsemble, evaluate
from .paths import Paths

# Numbers of pieces are odd, so that one half is the middle of a piece.
FINE = 121
"""Pieces of a path that jumps, or whose jumps are listed."""
COARSE = 41
"""Pieces of a mean over many paths that must be explained one by one."""
WAYS = 2500
"""How many paths in all, rows times references, are explained piece by piece before references are sampled."""
LEAST = 50
"""How many references a sample has at least."""
JUMPS = 6
NARROWED = 5
"""How often a piece is cut to a third to see whether it holds a jump."""
VISIBLE = 0.02
"""The smallest jump worth marking, as a part of the largest credit."""
BLOCK = 20_000

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Jump:
    """At `time` the score changes by `size` (outputs,) on account of `feature`."""

    time: float
    feature: int
    size: Array


@dataclass(frozen=True, eq=False)
class Way:
    """One mean path: the score (times, outputs), the credit so far (times, columns, outputs), the largest jumps."""

    score: Array
    credit: Array
    jumps: tuple[Jump, ...]


@dataclass(frozen=True, eq=False)
class Traced:
    """The output of a model that paths are asked of, at rows and between them; rows are read by `read`."""

    graph: Graph
    node: Node
    settings: Settings
    read: Callable[[Array], Array]

    @classmethod
    def of(cls, graph: Graph, node: Node, settings: Settings) -> Traced:
        """The output `node` of a graph."""
        between = Between.of(graph, node)
        return cls(graph, between.nodes[0], settings, between.read)

    def times(self, starts: int) -> Array:
        """The edges of the pieces of a mean over so many paths."""
        return np.linspace(0.0, 1.0, (FINE if self.only_jumps or starts == 1 else COARSE) + 1)

    def way(self, starts: Array, weights: Array, end: Array) -> Way:
        """The mean path from starts (m, p), weighted (m,), to one end (p,)."""
        times = self.times(len(starts))
        gained, jumps = (_jump_gains if self.only_jumps else _piece_gains)(self, starts, weights, end, times)
        credit = np.concatenate([np.zeros((1, *gained.shape[1:])), np.cumsum(gained, axis=0)])
        visible = VISIBLE * np.abs(credit[-1]).max()
        largest = sorted((j for j in jumps if np.abs(j.size).max() > visible), key=lambda j: -np.abs(j.size).max())
        if self.only_jumps:  # nothing is lost on the way, so the credits say what the score is
            score = weights @ self.score(starts) + credit.sum(axis=1)
        else:
            points = _points(self, *_repeated(starts, end, times))
            score = np.einsum("tmo,m->to", self.score(points).reshape(len(times), len(starts), -1), weights)
        return Way(score, credit, tuple(largest[:JUMPS]))

    @cached_property
    def only_jumps(self) -> bool:
        """Whether the output is a weighted sum of links over trees, every column on its own account."""
        terms = [term for _, term in linear_terms(self.node)]
        return self.settings.players is None and all(as_link(term, self.graph.input) is not None for term in terms)

    @cached_property
    def categories(self) -> NDArray[np.bool_]:
        """The columns that change all at once, (p,)."""
        return categories_read(self.node, self.graph.input)

    def score(self, rows: Array) -> Array:
        """The graph's own score, (rows, outputs)."""
        return evaluate((self.node,), {self.graph.input: rows})[self.node]


def chosen_rows(paths: Any, n: int) -> Ints:
    """The rows whose paths a caller asked for: the first so many, or those listed."""
    if checks.is_whole(paths) and paths >= 0:
        return np.arange(min(int(paths), n))
    rows = np.asarray(paths)
    if rows.ndim != 1 or rows.dtype.kind not in "iu" or ((rows < 0) | (rows >= n)).any():
        raise InputError(
            f"paths must be how many rows' paths to keep, or a list of row numbers below {n}; {paths!r} came."
        )
    return np.unique(rows).astype(np.int64)


def trace_population(traced: Traced, population: Population, rows: Ints) -> Paths:
    """The mean paths of some rows from the references."""
    starts, weights = traced.read(population.starts), population.weights
    if not traced.only_jumps:
        starts, weights = _sampled(traced, starts, weights, max(LEAST, WAYS // len(rows)))
    ways = [traced.way(starts, weights, end) for end in traced.read(population.ends[rows])]
    return _joined(ways, rows, traced.times(len(starts)), len(starts), len(population.starts))


def trace_pairs(traced: Traced, pairs: Pairs, rows: Ints) -> Paths:
    """The paths of some pairs."""
    starts, ends = traced.read(pairs.starts[rows]), traced.read(pairs.ends[rows])
    ways = [traced.way(start[None], np.ones(1), end) for start, end in zip(starts, ends, strict=True)]
    return _joined(ways, rows, traced.times(1), 1, 1)


def _sampled(traced: Traced, starts: Array, weights: Array, most: int) -> tuple[Array, Array]:
    """At most `most` references that keep the spread of the scores: one for each equal part of the ranked weight."""
    if len(starts) <= most:
        return starts, weights
    order = np.argsort(traced.score(starts)[:, 0], kind="stable")
    edges = np.cumsum(weights[order])
    middles = (np.arange(most) + 0.5) / most * edges[-1]
    picked = order[np.minimum(np.searchsorted(edges, middles), len(starts) - 1)]
    return starts[picked], np.full(most, 1.0 / most)


def _joined(ways: Sequence[Way], rows: Ints, times: Array, references: int, of: int) -> Paths:
    score, credit = np.stack([w.score for w in ways]), np.stack([w.credit for w in ways])
    jumps = [(i, jump) for i, way in enumerate(ways) for jump in way.jumps]
    size = np.array([jump.size for _, jump in jumps]).reshape(len(jumps), score.shape[-1])
    one = score.shape[-1] == 1
    return Paths(
        rows=rows,
        times=times,
        score=score[..., 0] if one else score,
        credit=credit[..., 0] if one else credit,
        jump_row=np.array([i for i, _ in jumps], np.int64),
        jump_time=np.array([jump.time for _, jump in jumps], np.float64),
        jump_feature=np.array([jump.feature for _, jump in jumps], np.int64),
        jump_size=size[..., 0] if one else size,
        references=references,
        of=of,
    )


# ---------------------------------------------------------------- trees, under links or not


@dataclass(frozen=True, eq=False)
class _Steps:
    """Changes of the score, one line each: of which start's path, when, on which column's account, by how much."""

    pair: Ints
    time: Array
    column: Ints
    size: Array  # (steps, outputs)


def _jump_gains(traced: Traced, starts: Array, weights: Array, end: Array, edges: Array) -> tuple[Array, list[Jump]]:
    """Credit gathered in each piece (pieces, columns, outputs), and the jumps, from the native list of all jumps."""
    width, p = traced.node.width, len(end)
    gained = np.zeros((len(edges) - 1, p, width))
    every = [steps for matrix, term in linear_terms(traced.node) for steps in _steps(traced, matrix, term, starts, end)]
    if not every:
        return gained, []
    time, column = np.concatenate([s.time for s in every]), np.concatenate([s.column for s in every])
    size = np.concatenate([weights[s.pair, None] * s.size for s in every])
    cell = np.clip(np.searchsorted(edges, time) - 1, 0, len(gained) - 1) * p + column
    for k in range(width):
        gained[:, :, k] = np.bincount(cell, size[:, k], len(gained) * p).reshape(len(gained), p)
    return gained, _same_moment(time, column, size)


def _steps(traced: Traced, matrix: Array, term: Node, starts: Array, end: Array) -> list[_Steps]:
    """All changes of one term, a link over trees, times `matrix`, on the paths from the starts to the end."""
    linked = as_link(term, traced.graph.input)
    if linked is None:
        raise TypeError("only links over trees can be traced by their jumps")
    trees, link = linked
    found = kernels.jumps(trees.forest, starts, np.tile(end, (len(starts), 1)), traced.settings.n_threads)
    if not len(found.time):
        return []
    pair = np.repeat(np.arange(len(starts)), np.diff(found.offsets))
    column = found.variable.astype(np.int64)
    if not link:
        return [_Steps(pair, found.time, column, found.delta @ matrix.T)]
    begin = np.flatnonzero(np.concatenate([[True], (np.diff(pair) > 0) | (np.diff(found.time) > 0)]))
    jump = np.add.reduceat(found.delta, begin, axis=0)
    corner = _Steps(pair[begin], found.time[begin], column[begin], _linked(term, trees, starts, pair[begin], jump))
    alone = np.diff([*begin, len(pair)]) == 1
    lonely = _Steps(corner.pair[alone], corner.time[alone], corner.column[alone], corner.size[alone] @ matrix.T)
    return [lonely, *_shared(traced, matrix, term, starts, end, corner, ~alone)]


def _linked(term: Node, trees: TreeEnsemble, starts: Array, pair: Ints, jump: Array) -> Array:
    """What the jumps (corners, trees' outputs) of the trees' sum are worth after the link: (corners, outputs)."""
    running = np.cumsum(jump, axis=0)
    first = np.concatenate([[True], np.diff(pair) > 0])
    before_pair = (running - jump)[first][np.cumsum(first) - 1]
    after = trees.forward(starts)[pair] + running - before_pair
    value = [evaluate((term,), {trees: margin})[term] for margin in (after - jump, after)]
    return value[1] - value[0]


def _shared(
    traced: Traced, matrix: Array, term: Node, starts: Array, end: Array, corner: _Steps, several: NDArray[np.bool_]
) -> list[_Steps]:
    """Corners that several variables pass at once: the engine shares them out, on a short path that holds no other."""
    if not several.any():
        return []
    same = np.diff(corner.pair) == 0
    space = np.where(same, np.diff(corner.time), 1.0)
    room = np.minimum(np.concatenate([[1.0], space]), np.concatenate([space, [1.0]]))
    to_half = np.abs(corner.time - 0.5)
    room = 0.4 * np.minimum(room, np.where(to_half > 0, to_half, 1.0))[several]
    pair, time = corner.pair[several], corner.time[several]
    ends = np.tile(end, (len(pair), 1))
    low, high = (_points(traced, starts[pair], ends, np.clip(t, 0.0, 1.0)) for t in (time - room, time + room))
    quiet = replace(traced.settings, quiet=True)
    credit = attribute(term, traced.graph.input, Pairs(low, high), quiet).values @ matrix.T
    which, column = np.nonzero(np.abs(credit).max(axis=2))
    return [_Steps(pair[which], time[which], column, credit[which, column])]


def _same_moment(time: Array, column: Ints, size: Array) -> list[Jump]:
    """Jumps of one variable at one time, over all trees and references, are one jump of the mean."""
    if not len(time):
        return []
    order = np.lexsort((time, column))
    time, column, size = time[order], column[order], size[order]
    first = np.concatenate([[True], (np.diff(column) > 0) | (np.diff(time) > 0)])
    begin = np.flatnonzero(first)
    total = np.add.reduceat(size, begin, axis=0)
    largest = np.argsort(-np.abs(total).max(axis=1), kind="stable")[:JUMPS]
    return [Jump(float(time[begin[i]]), int(column[begin[i]]), total[i]) for i in largest]


# ---------------------------------------------------------------- any model, piece by piece


def _piece_gains(traced: Traced, starts: Array, weights: Array, end: Array, edges: Array) -> tuple[Array, list[Jump]]:
    """Credit gathered in each piece (pieces, columns, outputs), and the jumps.

    The largest changes of one variable within a piece are narrowed down to a third, again and again: a jump keeps its
    size, a slope loses it. Thirds keep one half in the middle of the piece that holds it.
    """
    gained = _between(traced, starts, weights, end, edges[:-1], edges[1:])
    size = np.abs(gained).max(axis=2)
    order = np.argsort(-size, axis=None, kind="stable")[:JUMPS]
    piece, column = (index[size.ravel()[order] > 0] for index in np.unravel_index(order, size.shape))
    if not len(piece):
        return gained, []
    low, high, change = edges[piece], edges[piece + 1], gained[piece, column]
    each = np.arange(len(piece))
    for _ in range(NARROWED):
        third = (high - low) / 3
        lows, highs = np.stack([low, low + third, high - third]), np.stack([low + third, high - third, high])
        parts = _between(traced, starts, weights, end, lows.ravel(), highs.ravel())
        parts = parts.reshape(3, len(piece), *gained.shape[1:])[:, each, column]
        largest = np.abs(parts).max(axis=2).argmax(axis=0)
        low, high, change = lows[largest, each], highs[largest, each], parts[largest, each]
    kept = np.abs(change).max(axis=1) >= 0.5 * size[piece, column]
    return gained, [Jump(float(low[i] + high[i]) / 2, int(column[i]), change[i]) for i in np.flatnonzero(kept)]


def _between(traced: Traced, starts: Array, weights: Array, end: Array, low: Array, high: Array) -> Array:
    """Mean credit gathered from time low[i] to high[i]: (pieces, columns, outputs)."""
    from_, to = (_points(traced, *_repeated(starts, end, times)) for times in (low, high))
    settings = replace(traced.settings, quiet=True)  # a warning would count pieces, which nobody can look up
    parts = [Pairs(from_[i : i + BLOCK], to[i : i + BLOCK]) for i in range(0, len(from_), BLOCK)]
    credit = np.concatenate([attribute(traced.node, traced.graph.input, p, settings).values for p in parts])
    out: Array = np.einsum("kmpo,m->kpo", credit.reshape(len(low), len(starts), *credit.shape[1:]), weights)
    return out


def _repeated(starts: Array, end: Array, times: Array) -> tuple[Array, Array, Array]:
    """Every start at every time: starts, ends and times, one line each."""
    m = len(starts)
    return np.tile(starts, (len(times), 1)), np.tile(end, (len(times) * m, 1)), np.repeat(times, m)


def _points(traced: Traced, starts: Array, ends: Array, times: Array) -> Array:
    """Where pair i is at times[i], (pairs, columns): numbers in between, the rest on either side of one half."""
    t = times[:, None]
    leaps = np.isnan(starts) | np.isnan(ends) | traced.categories
    return np.where(leaps, np.where(t < 0.5, starts, ends), (1.0 - t) * starts + t * ends)
