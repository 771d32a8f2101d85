"""The credit of the players of every corner of a block of paths: Shapley values of the score around each corner."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ... import kernels
from ...graph import Array, Node
from ...kernels.corner_games import coalition_scores
from .. import limits
from ..corners import exact, subsets, weights
from ..paths import Block, Bools, Ints
from ..roles import Roles
from ..settings import Settings
from .crossings import as_met
from .jumps import Corners, step_values
from .large_games import LargeCorner, LargeGame


@dataclass(frozen=True, eq=False)
class CornerPlayers:
    """The players of every corner: the columns that cross, or their groups, each once.

    Those of corner i are `player[offsets[i]:offsets[i + 1]]`. `of_column` (p,) is the player of every column, `count`
    the number of players.
    """

    offsets: Ints
    player: Ints
    of_column: Ints
    count: int

    @cached_property
    def size(self) -> Ints:
        """The number of players of each corner."""
        return np.diff(self.offsets)

    @cached_property
    def corner(self) -> Ints:
        """The corner of every entry of `player`."""
        return np.repeat(np.arange(len(self.offsets) - 1), self.size)

    @classmethod
    def of(cls, corners: Corners, of_column: Ints) -> CornerPlayers:
        """The players of corners, given the player that every column belongs to."""
        if np.array_equal(of_column, np.arange(len(of_column))):
            return cls(corners.offsets, corners.column, of_column, len(of_column))
        count = int(of_column.max(initial=-1)) + 1
        corner = np.repeat(np.arange(len(corners)), corners.size)
        pairs = np.unique(corner * count + of_column[corners.column])
        corner, player = pairs // max(count, 1), pairs % max(count, 1)
        offsets = np.concatenate([[0], np.cumsum(np.bincount(corner, minlength=len(corners)))])
        return cls(offsets, player, of_column, count)


@dataclass(frozen=True, eq=False)
class CornerScores:
    """The score before and after every corner, (corners, k) each, and the head's lines and curves (joints) at corners
    of several players.

    Attributes
    ----------
    place : (corners,)
        The row of a corner in `joints` and `doubts`; -1 for corners that need none.
    joints, doubts : dict of (rows, width)
        The continuous nodes that the head reads, and the error of their interpolation.
    """

    before: Array
    after: Array
    place: Ints
    joints: dict[Node, Array]
    doubts: dict[Node, Array]

    @classmethod
    def empty(cls, roles: Roles, corners: Corners, players: CornerPlayers) -> CornerScores:
        """Arrays to be filled in."""
        n, k = len(corners), roles.output.width
        shared = np.nonzero(players.size > 1)[0]
        shared = shared[~corners.broken[shared]]
        place = np.full(n, -1)
        place[shared] = np.arange(len(shared))
        tables = [{node: np.zeros((len(shared), node.width)) for node in roles.joints} for _ in range(2)]
        return cls(np.zeros((n, k)), np.zeros((n, k)), place, *tables)

    @classmethod
    def of_steps(cls, roles: Roles, corners: Corners, states: dict[Node, Array]) -> CornerScores:
        """The sides where the score is constant between corners."""
        output, before = states[roles.output], corners.before
        return cls(output[before], output[before + 1], np.full(len(corners), -1), {}, {})


@dataclass(frozen=True, eq=False)
class CornerCredit:
    """The credit at the corners of a block.

    Attributes
    ----------
    credit : (players of all corners, k)
        Zero at those that are too large.
    error, unshared : (paths, k)
        The error from interpolated joints; the jumps of the corners that are too large.
    large : list of LargeCorner
        The corners that are too large.
    """

    credit: Array
    error: Array
    unshared: Array
    large: list[LargeCorner]


@dataclass(frozen=True, eq=False)
class Games:
    """The games at the corners of a block of paths."""

    roles: Roles
    block: Block
    corners: Corners
    players: CornerPlayers
    sides: CornerScores
    settings: Settings

    @cached_property
    def joints(self) -> dict[Node, Array]:
        """The values of the joints at corners, interpolated until `_evaluate` replaces them."""
        return {node: table.copy() for node, table in self.sides.joints.items()}

    @cached_property
    def doubts(self) -> dict[Node, Array]:
        """Bounds on their errors."""
        return {node: table.copy() for node, table in self.sides.doubts.items()}

    def credit(self, allowed: Array) -> CornerCredit:
        """The credit of each player of each corner.

        `allowed` (paths, k) is the error that each path may have: where interpolated joints might cause too large a
        share of it at a corner, the joints are evaluated there.
        """
        players, corners, k = self.players, self.corners, self.roles.output.width
        error, unshared = (np.zeros((len(self.block), k)) for _ in range(2))
        jump = self.sides.after - self.sides.before
        if players.size.max(initial=0) < 2 and not corners.broken.any():  # as on most tables of continuous columns
            return CornerCredit(jump, error, unshared, [])
        out = CornerCredit(np.zeros((len(players.player), k)), error, unshared, [])
        alone = (players.size == 1) & ~corners.broken
        out.credit[players.offsets[:-1][alone]] = jump[alone]
        shared = ~alone & (players.size > 0)
        for size in np.unique(players.size[shared & (players.size <= limits.SMALL_GAME)]).tolist():
            which = np.nonzero(shared & (players.size == size))[0]
            step = max(1, limits.COALITIONS >> size)
            for first in range(0, len(which), step):
                some = which[first : first + step]
                path = corners.path[some]
                credit, doubt = self._solve(some, size)
                poor = np.nonzero((doubt > limits.JOINT_SHARE * allowed[path]).any(axis=1))[0]
                if len(poor):
                    self._evaluate(some[poor])
                    credit[poor], doubt[poor] = self._solve(some[poor], size)
                out.credit[players.offsets[some][:, None] + np.arange(size)] = credit
                np.add.at(out.error, path, doubt)
        for corner in np.nonzero(shared & (players.size > limits.SMALL_GAME))[0].tolist():
            self._solve_large(corner, out)
        return out

    def _solve(self, some: Ints, size: int) -> tuple[Array, Array]:
        """Shapley values (n, size, k) at some corners, and their error from interpolated joints, (n, k)."""
        k = self.roles.output.width
        values = self._values(some, size)
        credit = np.matmul(weights(size), values - values[:, :1])
        doubt = np.abs(credit[:, :, k:] - credit[:, :, :k]).max(axis=1)
        return credit[:, :, :k], doubt

    def _solve_large(self, corner: int, out: CornerCredit) -> None:
        """Enumerate the game at one corner, or list it with those that are too large."""
        self._evaluate(np.array([corner]))
        first, last = self.players.offsets[corner : corner + 2]
        joints = None
        if not self.corners.broken[corner]:
            place = self.sides.place[corner]
            joints = {n: self.joints[n][place] for n in self.roles.joints}
        path, who = int(self.corners.path[corner]), self.players.player[first:last]
        time, alone = float(self.corners.time[corner]), self.block[np.array([path])]
        large = LargeCorner(alone, path, time, who, self.players.of_column, joints)
        game = LargeGame.of(self.roles, large, self.settings)
        if game.enumerable(self.settings.corner_tol):
            out.credit[first + np.searchsorted(who, game.who)] = exact(game)
        else:
            out.large.append(replace(large, players=game.players, cost=game.cost, whole=game.whole))
            out.unshared[path] += game.jump()

    def _values(self, some: Ints, size: int) -> Array:
        """The score of all coalitions, (n, 2^size, 2 k): with the joints as interpolated, and with their error."""
        corners, block, roles, cells = self.corners, self.block, self.roles, 2**size
        who = self.players.player[self.players.offsets[some][:, None] + np.arange(size)]
        path, time, threads = corners.path[some], corners.time[some], self.settings.n_threads
        trees: dict[Node, Array] = {}
        for tree in roles.trees:
            if roles.exact_trees:
                past = self._past(np.repeat(who, cells, axis=0), np.tile(subsets(size), (len(some), 1)))
                path_, time_ = np.repeat(path, cells), np.repeat(time, cells)
                trees[tree] = kernels.cells(tree.forest, block.starts, block.ends, path_, time_, past, threads)
            else:
                forest = tree.grouped_forest(self.settings.players)
                scores = coalition_scores(forest, block.starts, block.ends, path, time, who, threads)
                trees[tree] = scores.reshape(-1, tree.width)
        known = step_values(roles, trees)
        joints, doubts = self._joints(some, who)
        value = self._score({**known, **joints})
        other = value
        if any(d.any() for d in doubts.values()):
            off = {n: joints[n] + doubts[n] for n in joints}
            other = self._score({**known, **off})
        out = np.concatenate([value, other], axis=1).reshape(len(some), cells, -1)
        if roles.head_trees:  # whether a threshold is met beside the corner is decided already
            for cell, side in ((0, self.sides.before), (-1, self.sides.after)):
                out[:, cell] = np.tile(side[some], (1, 2))
        return out

    def _score(self, known: dict[Node, Array]) -> Array:
        """The score; a continuous value that equals a threshold up to rounding counts as equal, and goes left."""
        roles, values = self.roles, dict(known)
        for tree in roles.head_trees:
            inputs = roles.evaluate((tree.source,), values)[tree.source]
            values[tree] = tree.forward(as_met(tree, inputs))
        return roles.evaluate((roles.output,), values)[roles.output]

    def _past(self, who: Ints, member: Bools) -> Bools:
        """Which columns are past, (n, p), for coalitions: `member` (n, k) of the players `who` (n, k)."""
        flags = np.zeros((len(who), self.players.count), np.bool_)
        np.put_along_axis(flags, who, member, axis=1)
        return flags[:, self.players.of_column]

    def _joints(self, some: Ints, who: Ints) -> tuple[dict[Node, Array], dict[Node, Array]]:
        """The joints and their errors for all coalitions: those of the panels, or re-evaluated where they jump."""
        roles, (n, size) = self.roles, who.shape
        cells = 2**size
        joints, doubts = ({node: np.zeros((n, cells, node.width)) for node in roles.joints} for _ in range(2))
        broken = self.corners.broken[some]
        place = self.sides.place[some[~broken]]
        for node in roles.joints:
            joints[node][~broken] = self.joints[node][place][:, None]
            doubts[node][~broken] = self.doubts[node][place][:, None]
        if broken.any() and roles.joints:
            crossing, path = who[broken], self.corners.path[some[broken]]
            # Coalitions that differ only in players that no joint reads have the same joints.
            moved = np.zeros((len(crossing), self.players.count), np.bool_)
            at, column = np.nonzero(self.block.jumping[path] & roles.moved_columns)
            moved[at, self.players.of_column[column]] = True
            mask = (np.take_along_axis(moved, crossing, axis=1) << np.arange(size)).sum(axis=1)
            place = np.arange(cells)
            corner, coalition = np.nonzero((place & ~mask[:, None]) == 0)
            number = np.zeros((len(crossing), cells), np.int64)
            number[corner, coalition] = np.arange(len(corner))
            same = np.take_along_axis(number, place & mask[:, None], axis=1)
            past = self._past(crossing[corner], subsets(size)[coalition])
            half = np.full(len(corner), 0.5)
            early, late = (self.block.at(path[corner], half, np.full(len(corner), flag)) for flag in (False, True))
            values = roles.evaluate(roles.joints, {roles.source: np.where(past, late, early)})
            for node in roles.joints:
                joints[node][broken] = values[node][same]
        flat = ({node: table.reshape(n * cells, -1) for node, table in d.items()} for d in (joints, doubts))
        first, second = flat
        return first, second

    def _evaluate(self, corner: Ints) -> None:
        """Replace interpolated joints at corners by their exact values."""
        corner = corner[~self.corners.broken[corner]]
        if not len(corner) or not self.roles.joints:
            return
        path, time = self.corners.path[corner], self.corners.time[corner]
        values = self.roles.evaluate(self.roles.joints, {self.roles.source: self.block.at(path, time, time > 0.5)})
        for node in self.roles.joints:
            self.joints[node][self.sides.place[corner]] = values[node]
            self.doubts[node][self.sides.place[corner]] = 0.0
