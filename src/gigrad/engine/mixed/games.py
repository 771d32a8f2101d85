"""What the players of every corner of a block of paths earn: the score asked in the cells around each corner."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .. import kernels
from ..graph import Array, Node
from ..kernels.corner_games import coalition_scores
from .corners import exact, subsets, weights
from .jumps import Corners, step_values
from .large_games import LargeCorner, LargeGame
from .paths import Block, Bools, Ints
from .roles import Roles
from .settings import Settings

SMALL = 8
"""Corners of up to this many players are done many at once; larger ones are worth a game of their own."""

QUERIES = 1 << 16
"""How many coalitions are asked at once, at most."""


@dataclass(frozen=True, eq=False)
class CornerPlayers:
    """The players of every corner: the columns that cross, or their groups, each once.

    Those of corner i are `player[offsets[i]:offsets[i + 1]]`; `corner` repeats i for each of them. `of_column` (p,) is
    the player of every column, `count` how many players there are.
    """

    offsets: Ints
    player: Ints
    corner: Ints
    of_column: Ints
    count: int

    @property
    def size(self) -> Ints:
        """How many players each corner has."""
        return np.diff(self.offsets)

    @classmethod
    def of(cls, corners: Corners, of_column: Ints) -> CornerPlayers:
        """The players of corners, given the player that every column belongs to."""
        corner = np.repeat(np.arange(len(corners)), corners.size)
        if np.array_equal(of_column, np.arange(len(of_column))):
            return cls(corners.offsets, corners.column, corner, of_column, len(of_column))
        count = int(of_column.max(initial=-1)) + 1
        pairs = np.unique(corner * count + of_column[corners.column])
        corner, player = pairs // max(count, 1), pairs % max(count, 1)
        offsets = np.concatenate([[0], np.cumsum(np.bincount(corner, minlength=len(corners)))])
        return cls(offsets, player, corner, of_column, count)


@dataclass(frozen=True, eq=False)
class Sides:
    """The score on either side of every corner, (corners, k) each, and the joints at those with several players.

    Attributes
    ----------
    place : (corners,)
        The row of a corner in `joints` and `doubts`; -1 for corners that need none.
    joints, doubts : dict of (rows, width)
        The continuous nodes that the head reads, and how far off their interpolation may be.
    """

    before: Array
    after: Array
    place: Ints
    joints: dict[Node, Array]
    doubts: dict[Node, Array]

    @classmethod
    def empty(cls, roles: Roles, corners: Corners, players: CornerPlayers) -> Sides:
        """Tables to be filled in."""
        n, k = len(corners), roles.output.width
        shared = np.nonzero((players.size > 1) & ~corners.broken)[0]
        place = np.full(n, -1)
        place[shared] = np.arange(len(shared))
        tables = [{node: np.zeros((len(shared), node.width)) for node in roles.joints} for _ in range(2)]
        return cls(np.zeros((n, k)), np.zeros((n, k)), place, *tables)

    @classmethod
    def of_steps(cls, roles: Roles, corners: Corners, states: dict[Node, Array]) -> Sides:
        """The sides where the score is constant between corners."""
        output, before = states[roles.output], corners.before
        return cls(output[before], output[before + 1], np.full(len(corners), -1), {}, {})


@dataclass(frozen=True, eq=False)
class Shared:
    """What corners give.

    Attributes
    ----------
    credit : (players of all corners, k)
        Zero at those that are too large.
    error, unshared : (paths, k)
        What doubtful joints may cost; the jumps of the corners that are too large.
    large : list of LargeCorner
        Those.
    """

    credit: Array
    error: Array
    unshared: Array
    large: list[LargeCorner]


class Games:
    """The games at the corners of a block of paths."""

    def __init__(
        self, roles: Roles, block: Block, corners: Corners, players: CornerPlayers, sides: Sides, settings: Settings
    ) -> None:
        self.roles, self.block, self.corners, self.players = roles, block, corners, players
        self.sides, self.settings = sides, settings

    def credit(self, allowed: Array) -> Shared:
        """What each player of each corner earns.

        `allowed` (paths, k) is the error that each path may have: where interpolated joints might cost more than a
        tenth of it at a corner, the joints are asked for there.
        """
        players, corners, k = self.players, self.corners, self.roles.output.width
        error, unshared = (np.zeros((len(self.block), k)) for _ in range(2))
        out = Shared(np.zeros((len(players.player), k)), error, unshared, [])
        alone = (players.size == 1) & ~corners.broken
        out.credit[players.offsets[:-1][alone]] = (self.sides.after - self.sides.before)[alone]
        shared = ~alone & (players.size > 0)
        for size in np.unique(players.size[shared & (players.size <= SMALL)]).tolist():
            which = np.nonzero(shared & (players.size == size))[0]
            step = max(1, QUERIES >> size)
            for first in range(0, len(which), step):
                some = which[first : first + step]
                path = corners.path[some]
                credit, doubt = self._solve(some, size)
                poor = np.nonzero((doubt > 0.1 * allowed[path]).any(axis=1))[0]
                if len(poor):
                    self._ask(some[poor])
                    credit[poor], doubt[poor] = self._solve(some[poor], size)
                out.credit[players.offsets[some][:, None] + np.arange(size)] = credit
                np.add.at(out.error, path, doubt)
        for corner in np.nonzero(shared & (players.size > SMALL))[0].tolist():
            self._solve_large(corner, out)
        return out

    def _solve(self, some: Ints, size: int) -> tuple[Array, Array]:
        """Shapley values (n, size, k) at some corners, and what doubtful joints may cost, (n, k)."""
        k = self.roles.output.width
        values = self._values(some, size)
        credit = np.matmul(weights(size), values - values[:, :1])
        doubt = np.abs(credit[:, :, k:] - credit[:, :, :k]).max(axis=1)
        return credit[:, :, :k], doubt

    def _solve_large(self, corner: int, out: Shared) -> None:
        """Enumerate the game at one corner, or list it with those that are too large."""
        self._ask(np.array([corner]))
        first, last = self.players.offsets[corner : corner + 2]
        joints = None
        if not self.corners.broken[corner]:
            place = self.sides.place[corner]
            joints = {n: self.sides.joints[n][place] for n in self.roles.joints}
        path, who = int(self.corners.path[corner]), self.players.player[first:last]
        time, alone = float(self.corners.time[corner]), self.block[np.array([path])]
        large = LargeCorner(alone, path, time, who, self.players.of_column, joints)
        game = LargeGame(self.roles, large, self.settings)
        if game.enumerable(self.settings.corner_tol):
            out.credit[first + np.searchsorted(who, game.who)] = exact(game)
        else:
            large.players, large.cost = game.players, game.cost
            out.large.append(large)
            out.unshared[path] += game.jump()

    def _values(self, some: Ints, size: int) -> Array:
        """The score of all coalitions, (n, 2^size, 2 k): with the joints as they are, and as far off as they may be."""
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
        value = roles.evaluate((roles.output,), {**known, **joints})[roles.output]
        other = value
        if any(d.any() for d in doubts.values()):
            off = {n: joints[n] + doubts[n] for n in joints}
            other = roles.evaluate((roles.output,), {**known, **off})[roles.output]
        return np.concatenate([value, other], axis=1).reshape(len(some), cells, -1)

    def _past(self, who: Ints, member: Bools) -> Bools:
        """Which columns are past, (n, p), for coalitions: `member` (n, k) of the players `who` (n, k)."""
        flags = np.zeros((len(who), self.players.count), np.bool_)
        np.put_along_axis(flags, who, member, axis=1)
        return flags[:, self.players.of_column]

    def _joints(self, some: Ints, who: Ints) -> tuple[dict[Node, Array], dict[Node, Array]]:
        """The joints and their doubts for all coalitions: kept from the panels, or asked anew where they jump."""
        roles, (n, size) = self.roles, who.shape
        cells = 2**size
        joints, doubts = ({node: np.zeros((n, cells, node.width)) for node in roles.joints} for _ in range(2))
        broken = self.corners.broken[some]
        place = self.sides.place[some[~broken]]
        for node in roles.joints:
            joints[node][~broken] = self.sides.joints[node][place][:, None]
            doubts[node][~broken] = self.sides.doubts[node][place][:, None]
        if broken.any() and roles.joints:
            asked, path = who[broken], self.corners.path[some[broken]]
            # Coalitions that differ only in players that no joint reads have the same joints.
            moved = np.zeros((len(asked), self.players.count), np.bool_)
            at, column = np.nonzero(self.block.jumping[path] & roles.moved_columns)
            moved[at, self.players.of_column[column]] = True
            mask = (np.take_along_axis(moved, asked, axis=1) << np.arange(size)).sum(axis=1)
            place = np.arange(cells)
            corner, coalition = np.nonzero((place & ~mask[:, None]) == 0)
            number = np.zeros((len(asked), cells), np.int64)
            number[corner, coalition] = np.arange(len(corner))
            same = np.take_along_axis(number, place & mask[:, None], axis=1)
            past = self._past(asked[corner], subsets(size)[coalition])
            half = np.full(len(corner), 0.5)
            early, late = (self.block.at(path[corner], half, np.full(len(corner), flag)) for flag in (False, True))
            values = roles.evaluate(roles.joints, {roles.source: np.where(past, late, early)})
            for node in roles.joints:
                joints[node][broken] = values[node][same]
        flat = ({node: table.reshape(n * cells, -1) for node, table in d.items()} for d in (joints, doubts))
        first, second = flat
        return first, second

    def _ask(self, corner: Ints) -> None:
        """Replace interpolated joints at corners by what the model itself gives there."""
        corner = corner[~self.corners.broken[corner]]
        if not len(corner) or not self.roles.joints:
            return
        path, time = self.corners.path[corner], self.corners.time[corner]
        values = self.roles.evaluate(self.roles.joints, {self.roles.source: self.block.at(path, time, time > 0.5)})
        for node in self.roles.joints:
            self.sides.joints[node][self.sides.place[corner]] = values[node]
            self.sides.doubts[node][self.sides.place[corner]] = 0.0
