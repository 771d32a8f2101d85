"""The credit of each interval of time; `attribute` gives the sum over all of them.

A link over trees only jumps, and the native core lists its jumps. Every other term is computed as a whole by the mixed
engine, with its legs cut at the edges of the pieces. An interval is never explained as a path of its own between two
points of the line: a flag has no value in between, and at such a point a tree may be on the other side of a split than
the path is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from .. import kernels
from ..graph import Array, Input, Node, TreeEnsemble, topological, value_of
from . import limits
from .closed_form.links import as_link, credits
from .paths import WHOLE, Bools, Ints, Population
from .roles import Roles, categories_read
from .settings import Settings
from .terms import as_outputs, linear_terms, share


@dataclass(frozen=True, eq=False)
class ScoreJumps:
    """Jumps of the mean score over many paths: when, on which player's account, by how much; (n,), (n,), (n, k)."""

    time: Array
    player: Ints
    size: Array

    @staticmethod
    def joined(parts: list[ScoreJumps], outputs: int) -> ScoreJumps:
        """The jumps of some lists."""
        none = ScoreJumps(np.zeros(0), np.zeros(0, np.int64), np.zeros((0, outputs)))
        time, player, size = (np.concatenate([getattr(p, f) for p in (none, *parts)]) for f in none.__dict__)
        return ScoreJumps(time, player, size)


Part = tuple[Array, ScoreJumps]
"""The credit (pieces, players, k) that some paths add to the mean, and their jumps."""


def progress(node: Node, source: Input, paths: Population, edges: Array, settings: Settings) -> Part:
    """The mean credit of the paths to one end in each interval of time, and every jump.

    The credit (pieces, players, k) is that between each two neighbours of `edges`, which reach from 0 to 1. A jump at
    an edge counts in the piece that ends there, one at time 0 in the first.
    """
    terms, listed = linear_terms(node), list[ScoreJumps]()
    gained = np.zeros((len(edges) - 1, _players(source, settings), node.width))
    starts, ends = paths.scores(node, source)
    allowed = settings.tol * np.maximum(np.abs(ends), np.abs(paths.base(starts))) / len(terms)
    for matrix, term in terms:
        if as_link(term, source) is not None:
            parts = _listed(term, source, paths, edges, settings)
        else:
            matrix, term = as_outputs(matrix, term)
            parts = _walked(term, source, paths, edges, categories_read(node, source), share(allowed, matrix), settings)
        for credit, jumps in parts:
            gained += credit @ matrix.T
            listed.append(ScoreJumps(jumps.time, jumps.player, jumps.size @ matrix.T))
    return gained, ScoreJumps.joined(listed, node.width)


def jumps_unlisted(node: Node, source: Input) -> bool:
    """Whether trees below `node` read continuous values: no single variable causes their jumps, so none are listed."""
    return any(Roles.of(term, source).head_trees for _, term in linear_terms(node))


def scores_along(node: Node, source: Input, paths: Population, times: Array, n_threads: int | None) -> Array:
    """The mean score at some times of the paths to one end, (times, k); at a jump it is the one after it.

    Trees are evaluated on the sides that the path has at these times, which may differ from those of the point on the
    straight line.
    """
    trees = [t for t in topological(node) if isinstance(t, TreeEnsemble) and t.source is source]
    out = np.zeros((len(times), node.width))
    for block in paths.blocks(max(limits.SCORED_POINTS // len(times), 1), categories_read(node, source)):
        path, time = np.repeat(np.arange(len(block)), len(times)), np.tile(times, len(block))
        past = np.repeat((time > 0.0)[:, None], source.width, axis=1)  # at time 0 nothing has happened yet
        known: dict[Node, Array] = {source: block.at(path, time, time >= 0.5)}
        for tree in trees:
            known[tree] = kernels.cells(tree.forest, block.starts, block.ends, path, time, past, n_threads)
        out += np.einsum("mtk,m->tk", value_of(node, known).reshape(len(block), len(times), -1), block.weight)
    return out


def _players(source: Input, settings: Settings) -> int:
    return source.width if settings.players is None else int(settings.players.max(initial=-1)) + 1


def _walked(
    term: Node, source: Input, paths: Population, edges: Array, categories: Bools, allowed: Array, settings: Settings
) -> Iterator[Part]:
    """Any term, computed as a whole by the mixed engine."""
    from . import mixed  # half of the engine, not imported for trees alone
    from .mixed.corner_samples import sample_rows
    from .mixed.large_games import LargeCorner

    roles, large = mixed.plan(term, source, settings), list[LargeCorner]()
    total = np.zeros((1, _players(source, settings), term.width))
    for walked in mixed.walks(roles, paths, categories, allowed, settings, edges):
        weight, table, corners = walked.block.weight, walked.corner_players, walked.corners
        size = walked.corner_credit * weight[corners.path[table.corner], None]
        gained = np.einsum("nqpk,n->qpk", walked.credit, weight)
        total[0] += gained.sum(axis=0)
        large += walked.large
        yield gained, ScoreJumps(corners.time[table.corner], table.player, size)
    found = sample_rows(roles, large, total, settings)
    total[found.rows] += found.credit
    for corner, credit in zip(large, found.by_corner, strict=True):
        jumps = ScoreJumps(np.full(len(corner.player), corner.time), corner.player, corner.weight * credit)
        yield _by_piece(jumps, edges, total.shape[1]), jumps


def _listed(term: Node, source: Input, paths: Population, edges: Array, settings: Settings) -> Iterator[Part]:
    """A link over trees, jump by jump."""
    players = _players(source, settings)
    total, large = np.zeros((players, term.width)), list[tuple[Array, Array]]()
    for block in paths.blocks(limits.LISTED_STARTS, categories_read(term, source)):
        found = _link_jumps(term, source, block.starts, block.ends, settings)
        jumps = ScoreJumps(found.time, found.player, found.size * block.weight[found.path, None])
        total += _by_piece(jumps, WHOLE, players)[0]
        large.append((found.large_time, block.weight[found.large_path]))
        yield _by_piece(jumps, edges, players), jumps
    time, weight = (np.concatenate(parts) for parts in zip(*large, strict=True))
    if weight.sum():
        # Corners of many players may have been sampled, here and for the row, with other orders. The credit of the row
        # is the better estimate: what it has more, such corners have earned.
        trees, link = _as_link(term, source)
        missing = credits(trees, link, paths, settings).values[0] - total
        times, at = np.unique(time, return_inverse=True)
        share = np.bincount(at.ravel(), weight) / weight.sum()
        size = (share[:, None, None] * missing).reshape(-1, term.width)
        jumps = ScoreJumps(np.repeat(times, players), np.tile(np.arange(players), len(times)), size)
        yield _by_piece(jumps, edges, players), jumps


def _by_piece(jumps: ScoreJumps, edges: Array, players: int) -> Array:
    """The sums of jumps between neighbouring edges, (pieces, players, k)."""
    pieces, outputs = len(edges) - 1, jumps.size.shape[1]
    cell = np.maximum(np.searchsorted(edges, jumps.time) - 1, 0) * players + jumps.player
    out = np.zeros((pieces * players, outputs))
    for k in range(outputs):
        out[:, k] = np.bincount(cell, jumps.size[:, k], len(out))
    return out.reshape(pieces, players, outputs)


@dataclass(frozen=True, eq=False)
class LinkJumps:
    """All jumps of some pairs, and the corners of so many players that credits of a row may rest on samples there.

    Attributes
    ----------
    path, time, player : (n,)
    size : (n, k)
    large_path, large_time : (corners,)
    """

    path: Ints
    time: Array
    player: Ints
    size: Array
    large_path: Ints
    large_time: Array


def _as_link(term: Node, source: Input) -> tuple[TreeEnsemble, list[kernels.Stage]]:
    """The trees and links of a term, which must be of this kind."""
    found = as_link(term, source)
    if found is None:
        raise TypeError("only links over trees have a list of jumps")
    return found


def _link_jumps(term: Node, source: Input, starts: Array, ends: Array, settings: Settings) -> LinkJumps:
    """Every jump of `term`, a link over trees, on the paths of some pairs."""
    trees, link = _as_link(term, source)
    forest = trees.grouped_forest(settings.players)
    found = kernels.jumps(forest, starts, ends, settings.n_threads)
    path, time, player = np.repeat(np.arange(len(starts)), np.diff(found.offsets)), found.time, found.variable
    if not link or not len(path):
        size = np.zeros((0, term.width)) if link else found.delta
        return LinkJumps(path, time, player.astype(np.int64), size, np.zeros(0, np.int64), np.zeros(0))
    first = np.flatnonzero(np.concatenate([[True], (np.diff(path) > 0) | (np.diff(time) > 0)]))
    change = np.add.reduceat(found.delta, first, axis=0)
    after = trees.forward(starts)[path[first]] + _running(change, path[first])
    size = value_of(term, {trees: after}) - value_of(term, {trees: after - change})
    # What several players cross at once under a link is shared out as in the whole: with the corners of all trees.
    count = np.diff(np.append(first, len(path)))
    lone, shared, large = first[count == 1], first[count > 1], first[count > limits.ALWAYS_ENUMERATED]
    corners = kernels.corner_credits(forest, link, starts, ends, path[shared], time[shared], settings.n_threads)
    at, who = np.nonzero(np.abs(corners).max(axis=2))
    return LinkJumps(
        np.concatenate([path[lone], path[shared][at]]),
        np.concatenate([time[lone], time[shared][at]]),
        np.concatenate([player[lone].astype(np.int64), who]),
        np.concatenate([size[count == 1], corners[at, who]]),
        path[large],
        time[large],
    )


def _running(change: Array, path: Ints) -> Array:
    """Sums of the changes (n, k) of each path so far, for changes in order of their paths (n,)."""
    running: Array = np.cumsum(change, axis=0)
    first = np.concatenate([[True], np.diff(path) > 0])
    return np.asarray(running - (running - change)[first][np.cumsum(first) - 1])
