"""Trees over straight scores, such as a forest behind a PCA, in closed form.

A score that is linear in the columns moves in a straight line, so it can be treated as a column of the rows: the native
walk finds its credit where it crosses thresholds. The boundary of a split has one normal, to which each column
contributes a constant part along the path: the credit of the score is divided among the columns in proportion to
`dz/dx_i * move_i`, once for each path. Paths on which a column that a score reads changes at once are not straight; the
mixed engine walks those, and those on which a score and a column cross thresholds at the same time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ... import kernels
from ...graph import Array, Input, Node, TreeEnsemble, evaluate, needed
from ...graph.unranked import PlainTrees, unranked
from ...kernels import Stage
from .. import limits
from ..paths import Block, Bools, Chosen, Ints, Paths
from ..roles import columns_read, pull_back
from ..settings import Credits, Settings
from .deferred import DeferredPaths, RowTotals
from .links import chain_over_trees

_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class Oblique:
    """A chain of functions over one sum of trees that reads straight scores.

    Attributes
    ----------
    plain : PlainTrees
    link : list of Stage
    weight : (scores, p)
        The derivatives of the scores by the columns.
    read : (p,)
        The columns that a score depends on.
    """

    plain: PlainTrees
    link: list[Stage]
    weight: Array
    read: Bools


def as_oblique(term: Node, source: Input) -> Oblique | None:
    """The trees and the functions above them, where `term` is such a chain; found once for each term."""
    kept: dict[str, Oblique | None] = term.__dict__.setdefault("_oblique", {})
    if "found" not in kept:
        kept["found"] = _found(term, source)
    return kept["found"]


def _found(term: Node, source: Input) -> Oblique | None:
    """The term as trees over straight scores under links; None if it is anything else."""
    found = chain_over_trees(term)
    if found is None or found[0].source is source or not _straight(found[0].source, source):
        return None
    trees, stages = found
    plain = unranked(trees, source)
    if plain is None or not plain.scores:
        return None
    nodes = tuple(dict.fromkeys(node for node, _ in plain.scores))
    if any(isinstance(node, TreeEnsemble) for node in needed(nodes, {source})):  # a sum of trees moves in steps
        return None
    return Oblique(plain, stages, _slopes(plain, source), columns_read(nodes, source))


def _straight(node: Node, source: Input) -> bool:
    """Whether a node is made of straight scores and of trees over the rows."""
    if node is source or (isinstance(node, TreeEnsemble) and node.source is source):
        return True
    return node.additive and bool(node.parents) and all(_straight(p, source) for p in node.parents)


def _slopes(plain: PlainTrees, source: Input) -> Array:
    """The derivative of every score by every column, (scores, p): the same on all rows without missing values."""
    out = np.zeros((len(plain.scores), source.width))
    rows = np.zeros((1, source.width))
    for i, (node, column) in enumerate(plain.scores):
        values = evaluate((node,), {source: rows})
        cotangent = np.zeros_like(values[node])
        cotangent[0, column] = 1.0
        out[i] = pull_back(needed((node,), {source}), {node: cotangent}, values).get(source, rows)[0]
    return out


def credits(
    term: Node, oblique: Oblique, source: Input, paths: Paths, categories: Bools, allowed: Array, settings: Settings
) -> Credits:
    """Credit of every end for trees over straight scores; arguments as of `mixed.attribute`."""
    from .. import mixed

    players = np.arange(source.width) if settings.players is None else settings.players
    totals = RowTotals.zero(len(paths.ends), players, term.width)
    walk = _Walk(oblique, source, players, settings)
    starts, ends = (walk.widened(rows) for rows in (paths.starts, paths.ends))
    rest = DeferredPaths(paths.ends)

    def walk_paths(chosen: Chosen) -> None:
        if len(chosen.row):
            totals.add(mixed.attribute(term, source, chosen, categories, allowed, settings))

    size = max(limits.SCORE_BLOCK // max((source.width + len(oblique.weight)) * term.width, 1), 1)
    for block in paths.blocks(size, categories):
        left = np.asarray((block.jumping & oblique.read).any(axis=1))
        left |= walk.tied(starts[block.start], ends[block.row])
        some = np.nonzero(~left)[0]
        if len(some):
            part, lost, large = walk.credit(block[some], starts[block.start[some]], ends[block.row[some]])
            left[some[large]] = True
            np.add.at(totals.values, block.row[some], part)
            np.add.at(totals.error, block.row[some], lost)
        walk_paths(rest.add(block, left))
    walk_paths(rest.last())
    return totals.credits()


class _Walk:
    """Straight paths through the trees, with the scores as columns behind those of the rows."""

    def __init__(self, oblique: Oblique, source: Input, players: Ints, settings: Settings) -> None:
        self.oblique, self.source, self.players, self.settings = oblique, source, players, settings
        self.count = int(players.max(initial=-1)) + 1
        every = np.concatenate([players, self.count + np.arange(len(oblique.weight))])
        self.forest = oblique.plain.trees.grouped_forest(every)

    def widened(self, rows: Array) -> Array:
        """The rows with their scores behind them."""
        nodes = tuple(dict.fromkeys(node for node, _ in self.oblique.plain.scores))
        found = evaluate(nodes, {self.source: rows})
        scores = [found[node][:, column] for node, column in self.oblique.plain.scores]
        return np.concatenate([rows, np.stack(scores, axis=1)], axis=1)

    def tied(self, starts: Array, ends: Array) -> Bools:
        """Paths on which a score passes a threshold at the very time at which a column does, (n,).

        At such a corner the score counts as equal to its threshold, which the mixed engine handles; this walk would
        treat both as players of one game.
        """
        trees, first = self.oblique.plain.trees, self.source.width
        out = np.zeros(len(starts), np.bool_)
        if not ((trees.feature >= 0) & (trees.feature < first)).any():
            return out
        jumps = kernels.jumps(trees.forest, starts, ends, self.settings.n_threads)
        path = np.repeat(np.arange(len(starts)), np.diff(jumps.offsets))
        of_score, when = jumps.variable >= first, path + 1j * jumps.time
        both = np.intersect1d(when[of_score], when[~of_score])
        out[both.real.astype(np.int64)] = True
        return out

    def credit(self, block: Block, starts: Array, ends: Array) -> tuple[Array, Array, Ints]:
        """Weighted credit (paths, players, k) of straight paths, its error (paths, k), and the paths left out.

        Left out are those with corners of too many players to evaluate all coalitions.
        """
        threads, link = self.settings.n_threads, self.oblique.link
        large = np.zeros(0, np.int64)
        if link:
            target = self.settings.corner_tol
            found = kernels.linked_credits_pairs(self.forest, link, starts, ends, threads, target=target)
            out, large = found.values, np.unique(found.large.end)
        else:
            out = kernels.credits_pairs(self.forest, starts, ends, threads)
        weight = block.weight.copy()
        weight[large] = 0.0
        own, of_scores = out[:, : self.count] * weight[:, None, None], out[:, self.count :] * weight[:, None, None]
        shares, doubt = self._shares(block.move)
        spread = np.einsum("nsk,nsp->npk", of_scores, shares)
        np.add.at(own.swapaxes(0, 1), self.players, spread.swapaxes(0, 1))
        return own, np.einsum("nsk,ns->nk", np.abs(of_scores), doubt), large

    def _shares(self, move: Array) -> tuple[Array, Array]:
        """Each column's part in the move of each score, (n, scores, p), and a bound on its error, (n, scores).

        A score that crosses a threshold by rounding alone has no direction: its credit is lost and counted as error.
        """
        parts = move[:, None, :] * self.oblique.weight
        total, size = parts.sum(axis=2), np.abs(parts).sum(axis=2)
        with np.errstate(divide="ignore", invalid="ignore"):
            shares, doubt = parts / total[:, :, None], 4.0 * _EPS * (size / total) ** 2
        still = total == 0.0
        return np.where(still[:, :, None], 0.0, shares), np.where(still, 1.0, doubt)
