"""Paths from the references to a row: the score over time, the credit accumulated so far, the largest jumps.

The engine gives the credit of every variable in each of many short intervals of time (`engine.progress`), and lists
the jumps. The number of intervals is odd, so that a column that changes at time 1/2 does so inside an interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._common import checks
from .._common.progress import parts
from ..engine import (
    Pairs,
    Population,
    ScoreJumps,
    Settings,
    as_link,
    jumps_unlisted,
    linear_terms,
    progress,
    scores_along,
)
from ..errors import InputError
from ..graph import Array, Graph, Node, value_of
from .paths import Paths

FINE = 121
"""Intervals for a single path, or for a score that only jumps."""
COARSE = 41
"""Intervals for a mean over many paths that must be integrated one by one."""
WAYS = 2500
"""References are sampled where there would be more paths than this in all, rows times references."""
LEAST = 50
"""The least number of references in such a sample."""
JUMPS = 6
NARROWED = 5
"""How often an interval is cut to a third to see whether it holds a jump."""
VISIBLE = 0.02
"""The smallest jump worth marking, as a part of the largest credit."""

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
    """The output of a model whose paths are traced."""

    graph: Graph
    node: Node
    settings: Settings

    def times(self, starts: int) -> Array:
        """The edges of the time intervals for a mean over so many paths."""
        return np.linspace(0.0, 1.0, (FINE if self.only_jumps or starts == 1 else COARSE) + 1)

    def way(self, starts: Array, weights: Array, end: Array) -> Way:
        """The mean path from starts (m, p), weighted (m,), to one end (p,)."""
        node, source, times = self.node, self.graph.input, self.times(len(starts))
        paths = Population(starts, weights, end[None])
        gained, jumps = progress(node, source, paths, times, self.settings)
        credit = np.concatenate([np.zeros((1, *gained.shape[1:])), np.cumsum(gained, axis=0)])
        if self.only_jumps:  # credits are exact, so the score is the base plus their sum
            score = weights @ self.score(starts) + credit.sum(axis=1)
        else:
            score = scores_along(node, source, paths, times, self.settings.n_threads)
        found = _narrowed(self, paths, gained, times) if jumps_unlisted(node, source) else _same_moment(jumps)
        visible = VISIBLE * np.abs(credit[-1]).max()
        largest = sorted((j for j in found if np.abs(j.size).max() > visible), key=lambda j: -np.abs(j.size).max())
        return Way(score, credit, tuple(largest[:JUMPS]))

    @cached_property
    def only_jumps(self) -> bool:
        """Whether the output is a weighted sum of links over trees."""
        return all(as_link(term, self.graph.input) is not None for _, term in linear_terms(self.node))

    def score(self, rows: Array) -> Array:
        """The graph's own score, (rows, outputs)."""
        return value_of(self.node, {self.graph.input: rows})


def chosen_rows(paths: Any, n: int) -> Ints:
    """The numbers of the rows that `paths` selects: the first so many, or those listed."""
    if checks.is_whole(paths) and paths >= 0:
        return np.arange(min(int(paths), n))
    rows = np.asarray(paths)
    if rows.ndim != 1 or rows.dtype.kind not in "iu" or ((rows < 0) | (rows >= n)).any():
        raise InputError(
            f"paths must be how many rows' paths to keep, or a list of row numbers below {n}; got {paths!r}."
        )
    return np.unique(rows).astype(np.int64)


def trace_population(traced: Traced, population: Population, rows: Ints) -> Paths:
    """The mean paths of some rows from the references."""
    starts, weights = population.starts, population.weights
    if not traced.only_jumps:
        starts, weights = _sampled(traced, starts, weights, max(LEAST, WAYS // len(rows)))
    ways = []
    for stage, end in zip(parts(*np.ones(len(rows))), population.ends[rows], strict=True):
        with stage:
            ways.append(traced.way(starts, weights, end))
    return _joined(ways, rows, traced.times(len(starts)), len(starts), len(population.starts))


def trace_pairs(traced: Traced, pairs: Pairs, rows: Ints) -> Paths:
    """The paths of some pairs."""
    ways = [traced.way(pairs.starts[[i]], np.ones(1), pairs.ends[i]) for i in rows]
    return _joined(ways, rows, traced.times(1), 1, 1)


def _sampled(traced: Traced, starts: Array, weights: Array, most: int) -> tuple[Array, Array]:
    """At most `most` references with their weights, stratified by score: one from each stratum of equal weight."""
    if len(starts) <= most:
        return starts, weights
    order = np.argsort(traced.score(starts)[:, 0], kind="stable")
    edges = np.cumsum(weights[order])
    middles = (np.arange(most) + 0.5) / most * edges[-1]
    picked = order[np.minimum(np.searchsorted(edges, middles), len(starts) - 1)]
    return starts[picked], np.full(most, 1.0 / most)


def _joined(ways: Sequence[Way], rows: Ints, times: Array, references: int, of: int) -> Paths:
    """The traced ways of some rows as one object, without the outputs' axis if there is one output."""
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


def _same_moment(jumps: ScoreJumps) -> list[Jump]:
    """The largest jumps of the mean path, after adding up those of the same variable at the same time."""
    if not len(jumps.time):
        return []
    order = np.lexsort((jumps.time, jumps.player))
    time, player, size = jumps.time[order], jumps.player[order], jumps.size[order]
    begin = np.flatnonzero(np.concatenate([[True], (np.diff(player) > 0) | (np.diff(time) > 0)]))
    total = np.add.reduceat(size, begin, axis=0)
    largest = np.argsort(-np.abs(total).max(axis=1), kind="stable")[:JUMPS]
    return [Jump(float(time[begin[i]]), int(player[begin[i]]), total[i]) for i in largest]


def _narrowed(traced: Traced, paths: Population, gained: Array, edges: Array) -> list[Jump]:
    """The largest jumps of the mean path, located by trisection where the engine does not list them all.

    The intervals in which a variable's credit changes most are repeatedly cut to the third with the largest change: a
    jump keeps its size, a slope loses it. With thirds, time 1/2 stays inside an interval and is never its edge.
    """
    size = np.abs(gained).max(axis=2)
    order = np.argsort(-size, axis=None, kind="stable")[:JUMPS]
    piece, player = (index[size.ravel()[order] > 0] for index in np.unravel_index(order, size.shape))
    if not len(piece):
        return []
    low, high, change = edges[piece], edges[piece + 1], gained[piece, player]
    for _ in range(NARROWED):
        third = (high - low) / 3
        lows, highs = np.stack([low, low + third, high - third]), np.stack([low + third, high - third, high])
        cuts = np.unique(np.concatenate([[0.0, 1.0], lows.ravel(), high]))
        credit = progress(traced.node, traced.graph.input, paths, cuts, traced.settings)[0]
        parts = credit[np.searchsorted(cuts, lows), player]  # (3, jumps, outputs)
        largest = np.abs(parts).max(axis=2).argmax(axis=0)[None]
        low, high = (np.take_along_axis(side, largest, axis=0)[0] for side in (lows, highs))
        change = np.take_along_axis(parts, largest[:, :, None], axis=0)[0]
    kept = np.abs(change).max(axis=1) >= 0.5 * size[piece, player]
    return [Jump(float(low[i] + high[i]) / 2, int(player[i]), change[i]) for i in np.flatnonzero(kept)]
