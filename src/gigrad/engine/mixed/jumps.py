"""The jumps of the trees of a block of paths: corners, the columns that cross there, the trees' outputs in between."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ... import kernels
from ...graph import Array, Node, TreeEnsemble
from ...kernels.corner_games import path_corners
from .. import limits
from ..paths import Block, Bools, Chosen, Ints, Paths
from ..roles import Roles

if TYPE_CHECKING:
    from .lines import Legs


@dataclass(frozen=True, eq=False)
class Corners:
    """All corners of a block of paths, in order of path and time.

    Attributes
    ----------
    time : (n,)
    offsets : (n + 1,)
        The columns that cross at corner i are `column[offsets[i]:offsets[i + 1]]`.
    column : (crossings,)
    broken : (n,)
        Whether a line or a curve may change at once there: a column that they read jumps.
    first : (paths + 1,)
        The first corner of each path.
    trees : dict
        The output of each sum of trees in every state, (states, width). Path i has one state more than corners; the
        state before corner c is c + i, the one after it c + i + 1.
    """

    time: Array
    offsets: Ints
    column: Ints
    broken: Bools
    first: Ints
    trees: dict[Node, Array]

    def __len__(self) -> int:
        return len(self.time)

    @cached_property
    def path(self) -> Ints:
        """The path of each corner."""
        return np.repeat(np.arange(len(self.first) - 1), np.diff(self.first))

    @cached_property
    def before(self) -> Ints:
        """The state before each corner; the one after it is the next."""
        return np.arange(len(self)) + self.path

    @cached_property
    def size(self) -> Ints:
        """How many columns cross at each corner."""
        return np.diff(self.offsets)

    def on(self, legs: Legs) -> tuple[Ints, Ints]:
        """The first corner on each leg, and the one after the last. One where two legs meet is on the second of them,
        and on neither where a line or a curve may change."""
        if len(legs) == len(self.first) - 1:  # every path is one leg
            return self.first[:-1], self.first[1:]
        begin = np.searchsorted(self.path * 4.0 + self.time, legs.path * 4.0 + legs.low)
        end = np.append(begin[1:], len(self))
        broken = np.nonzero(self.broken)[0]
        where = np.full(len(self.first) - 1, -1)
        where[self.path[broken]] = broken
        at = where[legs.path]
        end = np.where((at >= 0) & ~legs.late, np.minimum(end, at), end)
        begin = np.where((at >= 0) & legs.late, np.maximum(begin, at + 1), begin)
        return begin, np.maximum(begin, end)


@dataclass(frozen=True, eq=False)
class EndValues:
    """The score, the outputs of the trees and the head's inputs at all starts and ends, computed once."""

    at_starts: dict[Node, Array]
    at_ends: dict[Node, Array]

    @classmethod
    def of(cls, roles: Roles, paths: Paths | Chosen) -> EndValues:
        """Evaluate the model, in blocks of rows to bound the memory for the layers of a wide net."""
        wanted = (roles.output, *roles.trees, *roles.step_ends, *roles.joints)
        widths = sum(n.width for n in (*roles.lines, *roles.curves, *roles.steps, *roles.head))
        step = max(limits.SCORED_NUMBERS // max(widths, 1), 1)

        def evaluate(known: dict[Node, Array]) -> dict[Node, Array]:
            parts: list[dict[Node, Array]] = []
            for first in range(0, max(len(known[roles.source]), 1), step):
                values = roles.evaluate(wanted, {n: v[first : first + step] for n, v in known.items()})
                parts.append({n: values[n] for n in wanted})
            return {n: np.concatenate([p[n] for p in parts]) for n in wanted}

        at_starts, at_ends = paths.known(roles.output, roles.source)
        kept = paths.at_starts
        if not all(n in kept for n in wanted):
            found = evaluate(at_starts)
            if sum(n.width for n in wanted) * len(paths.starts) > limits.SCORED_NUMBERS:
                return cls(found, evaluate(at_ends))
            kept.update(found)
        return cls({n: kept[n] for n in wanted}, evaluate(at_ends))


def find_corners(roles: Roles, block: Block, ends: EndValues, n_threads: int | None) -> Corners:
    """The corners of a block of paths, from the jumps of all trees and from columns that jump in smooth parts."""
    half_path, half_column = np.nonzero(_jumping(roles, block))
    at_starts = [ends.at_starts[t][block.start] for t in roles.trees]
    found = path_corners(
        [t.forest for t in roles.trees], at_starts, block.starts, block.ends, (half_path, half_column), n_threads
    )
    trees: dict[Node, Array] = dict(zip(roles.trees, found.states, strict=True))
    corners = Corners(found.time, found.offsets, found.column, found.broken, found.first, trees)
    if any(isinstance(s, TreeEnsemble) for s in roles.steps):
        for tree, first in zip(roles.trees, at_starts, strict=True):
            trees[tree] = _walked(tree, block, first, corners, n_threads)
    return corners


def _jumping(roles: Roles, block: Block) -> Bools:
    """Which columns of which paths change at once and may change a line or a curve, (paths, p).

    If there are many, those without effect are left out: columns whose values at both ends give the same output of
    every step that works on columns one by one or adds them up.
    """
    out = block.jumping & roles.moved_columns
    many = np.nonzero(out.sum(axis=1) > limits.FEW_JUMPING)[0]
    path, column = np.nonzero(out[many])
    if not len(path):
        return out
    path = many[path]
    before = block.starts[path]
    after = before.copy()
    after[np.arange(len(path)), column] = block.ends[path, column]
    first, last = (roles.evaluate(roles.additive_ends, {roles.source: rows}) for rows in (before, after))
    same = np.ones(len(path), np.bool_)
    for node in roles.additive_ends:
        equal = (first[node] == last[node]) | (np.isnan(first[node]) & np.isnan(last[node]))
        same &= equal.all(axis=1)
    out[path[same], column[same]] = False
    return out


def _walked(tree: TreeEnsemble, block: Block, at_starts: Array, corners: Corners, n_threads: int | None) -> Array:
    """The trees' output in every state, evaluated for each state: equal to the trees' own predictions to the last bit.

    Needed below other trees, whose splits could change sides by the rounding of a running sum.
    """
    out = np.empty((len(corners) + len(block), tree.width))
    out[corners.first[:-1] + np.arange(len(block))] = at_starts
    past = np.ones((len(corners), block.starts.shape[1]), np.bool_)
    out[corners.before + 1] = kernels.cells(
        tree.forest, block.starts, block.ends, corners.path, corners.time, past, n_threads
    )
    return out


def step_values(roles: Roles, trees: dict[Node, Array]) -> dict[Node, Array]:
    """Values of the trees and steps that the head reads, or that are the output, for given outputs of the trees."""
    values = roles.evaluate(roles.step_ends, trees)
    return {n: values[n] for n in roles.step_ends}
