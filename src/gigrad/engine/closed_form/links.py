"""One link over one sum of trees, the commonest model of all, has a native walk of its own."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import kernels
from ...graph import Array, Input, Node, TreeEnsemble
from ...kernels import Stage
from ...kernels.corner_games import MAX_ENUMERATED, strong_players
from .. import limits
from ..paths import Ints, Pairs, Paths
from ..sampling import Corners, Sums, estimate, row_hashes, seeds
from ..settings import Credits, Settings


def as_link(term: Node, source: Input) -> tuple[TreeEnsemble, list[Stage]] | None:
    """The trees and the stages above them, where `term` is a chain of functions over one sum of trees of the rows."""
    found = chain_over_trees(term)
    return found if found is not None and found[0].source is source else None


def chain_over_trees(term: Node) -> tuple[TreeEnsemble, list[Stage]] | None:
    """The trees and the stages above them, where `term` is a chain of functions over one sum of trees of any node."""
    stages: list[Stage] = []
    while not isinstance(term, TreeEnsemble):
        stage = term.stage()
        if stage is None or stage.name not in kernels.LINK_STAGES:
            return None
        stages.append(stage)
        (term,) = term.parents
    return term, stages[::-1]


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
    """Credits by the native walks; corners that are too large are sampled afterwards."""
    threads, target = settings.n_threads, settings.corner_tol
    if isinstance(paths, Pairs):
        found = kernels.linked_credits_pairs(forest, link, paths.starts, paths.ends, threads, target=target)
    else:
        found = kernels.linked_credits(forest, link, paths.starts, paths.weights, paths.ends, threads, target=target)
    return _with_sampled(found, forest, link, paths, settings)


def credits_singly(
    trees: TreeEnsemble, link: list[Stage], starts: Array, ends: Array, pairs: Pairs, settings: Settings
) -> tuple[Credits, Array]:
    """Credit of every start with every end by itself, for a link over a sum of trees and for the sum itself.

    `pairs` are the same paths one by one, all starts of the first end first.
    """
    forest, threads = trees.grouped_forest(settings.players), settings.n_threads
    found, sums = kernels.linked_credits_singly(forest, link, starts, ends, threads, target=settings.corner_tol)
    return _with_sampled(found, forest, link, pairs, settings), sums


def _with_sampled(found: kernels.Linked, forest: Any, link: list[Stage], paths: Paths, settings: Settings) -> Credits:
    """Credits with the corners that the native walk left out."""
    weights = np.ones(len(paths.starts)) if isinstance(paths, Pairs) else paths.weights
    values, large = found.values, found.large
    error, players = np.zeros((len(values), values.shape[2])), np.zeros(len(values), np.int64)
    if len(large.end):
        np.maximum.at(players, large.end, large.players)
        rows = np.unique(large.end)
        sampled, error[rows] = _sampled(forest, link, paths, weights, found, rows, settings)
        values[rows] += sampled
    return Credits(values, error, sampled=error, players=players)


def _sampled(
    forest: Any,
    link: list[Stage],
    paths: Paths,
    weights: Array,
    found: kernels.Linked,
    rows: Ints,
    settings: Settings,
) -> tuple[Array, Array]:
    """Credit of the large corners of some rows, (rows, p, k), and its error, (rows, k)."""
    known, large = found.values[rows], found.large
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
        some = some._replace(found=found.found, number=first[which])
        if stage == 0:
            some = some._replace(allowed=allowed[which], scale=scale[which])
        sums = kernels.sample_corners(forest, link, paths.starts, paths.ends, some, len(rows), settings.n_threads)
        return Sums(*sums)

    players, outputs = large.players[first], known.shape[2]
    strong = strong_players(forest.n_outputs)
    cost = 4.0 * (players - strong + 1.0) * 2.0**strong * outputs
    whole = np.where(players > MAX_ENUMERATED, np.inf, outputs * 2.0 ** np.minimum(players, MAX_ENUMERATED))
    allowed, scale = quotas(row, weight, known, isinstance(paths, Pairs), settings.corner_tol)
    corners = Corners(row, weight, cost, whole, least=limits.LINK_PILOT_GROUPS)
    return estimate(draw, corners, known, settings.corner_tol, settings.miss)


def quotas(row: Ints, weight: Array, known: Array, alone: bool, target: float) -> tuple[Array, Array]:
    """`allowed` (n,) and `scale` (n, k) of `SampledCorners`, so that the rows come within the target.

    The corners of a row may err alike. How large the row's largest credit will be is guessed from each corner by
    itself, and from the references that have no such corners, if there are enough of them; a pair has no others.
    """
    rows = len(known)
    total, among = np.bincount(row, np.abs(weight), rows), np.bincount(row, minlength=rows)
    each = np.where(weight != 0, np.abs(weight), 1.0)
    allowed = target / limits.QUOTA_ERRORS * total[row] / np.sqrt(among[row]) / each
    rest = np.where((total < 0.8) & (total > 0) & (not alone), 1.0 - total, np.inf)
    return allowed, (np.abs(known).max(axis=1) / (rest * total)[:, None])[row]
