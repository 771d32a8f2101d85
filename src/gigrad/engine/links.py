"""One link over one sum of trees, the commonest model of all, has a native walk of its own."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import kernels
from ..graph import Array, Input, Node, TreeEnsemble
from ..kernels import Stage
from ..kernels.corner_games import STRONG_PLAYERS
from .paths import Ints, Pairs, Paths
from .sampling import Sums, estimate, row_hashes, seeds
from .settings import Credits, Settings


def as_link(term: Node, source: Input) -> tuple[TreeEnsemble, list[Stage]] | None:
    """The trees and the stages above them, where `term` is a chain of functions over one sum of trees of the rows."""
    stages: list[Stage] = []
    while not isinstance(term, TreeEnsemble):
        stage = term.link_stage()
        if stage is None:
            return None
        stages.append(stage)
        (term,) = term.parents
    return (term, stages[::-1]) if term.source is source else None


def credits(trees: TreeEnsemble, link: list[Stage], paths: Paths, settings: Settings) -> Credits:
    """Credit of every end for a link over a sum of trees; without stages, for the sum itself."""
    if link:
        return _linked(trees.grouped_forest(settings.players), link, paths, settings)
    forest = trees.grouped_forest(settings.players)
    if isinstance(paths, Pairs):
        values = kernels.credits_pairs(forest, paths.starts, paths.ends, settings.n_threads)
    else:
        values = kernels.credits(forest, paths.starts, paths.weights, paths.ends, settings.n_threads)
    return Credits(values, np.zeros((len(values), trees.width)))


def _linked(forest: Any, link: list[Stage], paths: Paths, settings: Settings) -> Credits:
    threads, target = settings.n_threads, settings.corner_tol
    if isinstance(paths, Pairs):
        found = kernels.linked_credits_pairs(forest, link, paths.starts, paths.ends, threads, target=target)
        weights = np.ones(len(paths.starts))
    else:
        weights = paths.weights
        found = kernels.linked_credits(forest, link, paths.starts, weights, paths.ends, threads, target=target)
    values, large = found
    error, players = np.zeros((len(values), values.shape[2])), np.zeros(len(values), np.int64)
    if len(large.end):
        np.maximum.at(players, large.end, large.players)
        rows = np.unique(large.end)
        sampled, error[rows] = _sampled(forest, link, paths, weights, large, rows, values[rows], settings)
        values[rows] += sampled
    return Credits(values, error, sampled=error, players=players)


def _sampled(
    forest: Any,
    link: list[Stage],
    paths: Paths,
    weights: Array,
    large: kernels.LargeCorners,
    rows: Ints,
    known: Array,
    settings: Settings,
) -> tuple[Array, Array]:
    """Credit of the large corners of some rows, (rows, p, k), and its error, (rows, k); `known` is all other credit."""
    at_starts, at_ends = row_hashes(paths.starts), row_hashes(paths.ends)
    # References that are equal are one, with the sum of their weights: their samples would be the same.
    key = np.stack([large.end.astype(np.uint64), at_starts[large.start], large.time.view(np.uint64)], axis=1)
    _, first, same = np.unique(key, axis=0, return_index=True, return_inverse=True)
    weight = np.asarray(np.bincount(same.ravel(), weights[large.start]), np.float64)
    start, end, time = large.start[first], large.end[first], large.time[first]
    row = np.searchsorted(rows, end)

    def draw(which: Ints, count: Ints, stage: int) -> Sums:
        seed = seeds(at_starts[start[which]], at_ends[end[which]], time[which], settings.seed, stage)
        some = kernels.SampledCorners(row[which], start[which], end[which], time[which], weight[which], count, seed)
        sums = kernels.sample_corners(forest, link, paths.starts, paths.ends, some, len(rows), settings.n_threads)
        return Sums(*sums)

    cost = 4.0 * (large.players[first] - STRONG_PLAYERS + 1.0) * 2.0**STRONG_PLAYERS * known.shape[2]
    return estimate(draw, row, weight, cost, known, settings.corner_tol, settings.miss)
