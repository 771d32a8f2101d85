"""A function of one straight score, such as a logistic regression, in closed form.

Where everything that a term depends on goes through one score z that moves in a straight line along a path, its
gradient is that of z times a scalar, whose mean over the path is the slope of the chord: the credit of a column is
`dz/dx_i * move_i * (g(z_end) - g(z_start)) / (z_end - z_start)`. Paths on which a column that z reads changes at once
are not straight; the mixed engine walks those.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...graph import (
    Array,
    Input,
    Node,
    Smooth,
    evaluate,
    needed,
    topological,
    value_of,
)
from ...graph.magnitudes import size_of_terms
from .. import limits, mixed
from ..paths import Block, Bools, Chosen, Ints, Paths
from ..quadrature import gauss
from ..roles import Levels, columns_read, levels_of, pull_back
from ..settings import Credits, Settings
from .deferred import DeferredPaths, RowTotals

_EPS = float(np.finfo(np.float64).eps)


def straight_score(term: Node, source: Input) -> Node | None:
    """The node of one column through which alone a term depends on the rows, if it is linear in them; else None."""
    straight: set[Node] = set()
    found = None
    for node in topological(term):
        if node.additive and all(p in straight for p in node.parents):
            straight.add(node)
            if node.width == 1 and source not in needed((term,), {node}):
                found = node
    return found


def attribute(
    term: Node, score: Node, source: Input, paths: Paths, categories: Bools, allowed: Array, settings: Settings
) -> Credits:
    """Credit of every end for `term`, a function of `score` alone; arguments as of `mixed.attribute`."""
    players = np.arange(source.width) if settings.players is None else settings.players
    totals = RowTotals.zero(len(paths.ends), players, term.width)
    curve = Chord(term, score)
    at_starts, at_ends = (value_of(score, {source: rows})[:, 0] for rows in (paths.starts, paths.ends))
    start_noise = curve.noise(at_starts, _rounding(score, source, paths.starts))
    end_noise = curve.noise(at_ends, _rounding(score, source, paths.ends))
    slopes = _slopes(score, source, paths.ends)
    read = columns_read((score,), source)
    left_over = DeferredPaths(paths.ends)

    def walk(chosen: Chosen) -> None:
        if len(chosen.row):
            totals.add(mixed.attribute(term, source, chosen, categories, allowed, settings))

    for block in paths.blocks(max(limits.SCORE_BLOCK // max(source.width, 1), 1), categories):
        rest = np.asarray((block.jumping & read).any(axis=1))
        if not curve.smooth:  # short moves are left to the mixed engine: slopes do not show a jump
            rest |= np.abs(at_ends[block.row] - at_starts[block.start]) < limits.SHORT_MOVE
        some = np.nonzero(~rest)[0]
        parts = slopes[block.row[some]] * block.move[some]
        noise = start_noise[block.start[some]] + end_noise[block.row[some]]
        steep, doubt = curve.mean_slope(at_starts[block.start[some]], at_ends[block.row[some]], noise)
        _add(totals.values, players, block, some, parts, steep)
        size = block.weight[some] * np.abs(parts).max(axis=1, initial=0)
        np.add.at(totals.error, block.row[some], doubt * size[:, None])
        walk(left_over.add(block, rest))
    walk(left_over.last())
    return totals.credits()


def _slopes(score: Node, source: Input, rows: Array) -> Array:
    """d score / d column at every row, (n, p)."""
    values = evaluate((score,), {source: rows})
    found = pull_back(needed((score,), {source}), {score: np.ones((len(rows), 1))}, values)
    return found.get(source, np.zeros_like(rows))


def _rounding(score: Node, source: Input, rows: Array) -> Array:
    """A bound on the rounding error of the score of every row, (n,), from the sum of absolute values of its terms."""
    return np.asarray(_EPS * size_of_terms(score, source, rows)[:, 0])


def _add(values: Array, players: Ints, block: Block, some: Ints, parts: Array, steep: Array) -> None:
    """Add the credit of some paths to that of the rows they end at, which come in order."""
    if not len(some):
        return
    row = block.row[some]
    first = np.nonzero(np.concatenate([[True], row[1:] != row[:-1]]))[0]
    for output in range(steep.shape[1]):
        each = parts * (steep[:, output] * block.weight[some])[:, None]
        sums = np.add.reduceat(each, first, axis=0)
        np.add.at(values[:, :, output], (row[first][:, None], players[None]), sums)


@dataclass(frozen=True, eq=False)
class Chord:
    """The mean slope of a term over intervals of the one score that it depends on."""

    term: Node
    score: Node

    @cached_property
    def order(self) -> list[Node]:
        """The nodes between the score and the term."""
        return needed((self.term,), {self.score})

    @cached_property
    def smooth(self) -> bool:
        """Whether no tree is among them."""
        return all(isinstance(node, Smooth) for node in self.order)

    @cached_property
    def levels(self) -> list[Levels]:
        """Their kinks."""
        found = [levels_of(node) for node in self.order if isinstance(node, Smooth)]
        return [levels for levels in found if levels is not None]

    @property
    def watched(self) -> tuple[Node, ...]:
        """The term, and the nodes whose values show whether a kink is passed."""
        return (self.term, *(levels.node for levels in self.levels))

    def noise(self, z: Array, rounding: Array) -> Array:
        """The error of the term, (n, k), at scores (n,) with errors `rounding` (n,).

        The side of a tree's threshold follows from the score as the model computes it, rounding included.
        """
        here, below, above = (value_of(self.term, {self.score: v[:, None]}) for v in (z, z - rounding, z + rounding))
        steep = np.maximum(np.abs(above - here), np.abs(below - here)) if self.smooth else 0.0
        return np.asarray(_EPS * np.abs(here) + steep)

    def mean_slope(self, low: Array, high: Array, noise: Array) -> tuple[Array, Array]:
        """Mean slopes (n, k) from scores `low` to scores `high` (n,), and bounds on their errors.

        `noise` (n, k) is the error of the term's change from `low` to `high`.

        The chord is exact whatever lies in between, but on a short interval it is a small difference of large numbers.
        The mean of slopes inside is more accurate there, if there is no kink between the nodes and it agrees with the
        chord.
        """
        way = high - low
        first, last = (evaluate(self.watched, {self.score: z[:, None]}) for z in (low, high))
        a, b = first[self.term], last[self.term]
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = (b - a) / way[:, None]
            doubt = 2.0 * noise / np.abs(way)[:, None]
        short = np.nonzero(np.abs(way) < limits.SHORT_MOVE)[0]
        if len(short):
            fine, coarse = (self._quadrature(low[short], way[short], size) for size in (4, 3))
            lost = np.abs(fine - coarse)
            far = np.maximum(lost, np.abs(fine - slope[short]))  # NaN where the score does not move
            better = ~(far > doubt[short]) & ~self._kinked(first, last, short)[:, None]
            slope[short] = np.where(better, fine, slope[short])
            doubt[short] = np.where(better, lost, doubt[short])
        return slope, doubt

    def _kinked(self, first: dict[Node, Array], last: dict[Node, Array], some: Ints) -> Bools:
        """Whether a function inside the term passes one of its kinks on an interval, (len(some),)."""
        out = np.zeros(len(some), np.bool_)
        for levels in self.levels:
            out[levels.passed(first[levels.node][some], last[levels.node][some])[0]] = True
        return out

    def _quadrature(self, low: Array, way: Array, size: int) -> Array:
        """The mean slope between `low` and `low + way`, by Gauss with `size` nodes."""
        rule = gauss(size)
        z = low[:, None] + way[:, None] * (0.5 + 0.5 * rule.nodes)
        slopes = self._slopes(z.ravel()).reshape(len(low), size, -1)
        return np.asarray(np.einsum("nqk,q->nk", slopes, 0.5 * rule.weights))

    def _slopes(self, z: Array) -> Array:
        """d term / d score, (n, k)."""
        values = evaluate((self.term,), {self.score: z[:, None]})
        out = np.zeros((len(z), self.term.width))
        for output in range(self.term.width):
            cotangent = np.zeros_like(out)
            cotangent[:, output] = 1.0
            found = pull_back(self.order, {self.term: cotangent}, values)
            if self.score in found:
                out[:, output] = found[self.score][:, 0]
        return out
