"""What the players of every corner of a block of paths earn: the score asked in the cells around each corner."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .. import kernels
from ..graph import Array, Node
from .corners import EXACT, shapley
from .jumps import Corners, step_values
from .paths import Block, Bools, Ints
from .roles import Roles
from .settings import Settings

QUERIES = 1 << 16
"""How many cells are asked at once, at most, unless a single corner has more."""


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


class Games:
    """The games at the corners of a block of paths."""

    def __init__(
        self, roles: Roles, block: Block, corners: Corners, players: CornerPlayers, sides: Sides, settings: Settings
    ) -> None:
        self.roles, self.block, self.corners, self.players = roles, block, corners, players
        self.sides, self.settings = sides, settings

    def credit(self, allowed: Array) -> tuple[Array, Array, Array]:
        """What each player of each corner earns, (players of all corners, k), and two errors of each path, (paths, k).

        The first is what doubtful joints may cost, the second the standard error of corners that were sampled.

        `allowed` (paths, k) is the error that each path may have: where interpolated joints might cost more than a
        tenth of it at a corner, the joints are asked for there.
        """
        players, corners, k = self.players, self.corners, self.roles.output.width
        out = np.zeros((len(players.player), k))
        error, sampled = (np.zeros((len(self.block), k)) for _ in range(2))
        alone = (players.size == 1) & ~corners.broken
        out[players.offsets[:-1][alone]] = (self.sides.after - self.sides.before)[alone]
        shared = ~alone & (players.size > 0)
        for size in np.unique(players.size[shared]).tolist():
            which = np.nonzero(shared & (players.size == size))[0]
            step = max(1, QUERIES >> min(size, EXACT))
            for first in range(0, len(which), step):
                some = which[first : first + step]
                path = corners.path[some]
                credit, doubt, spread = self._solve(some, size)
                poor = np.nonzero((doubt > 0.1 * allowed[path]).any(axis=1))[0]
                if len(poor):
                    self._ask(some[poor])
                    credit[poor], doubt[poor], spread[poor] = self._solve(some[poor], size)
                out[players.offsets[some][:, None] + np.arange(size)] = credit
                np.add.at(error, path, doubt)
                np.add.at(sampled, path, spread)
        return out, error, sampled

    def _solve(self, some: Ints, size: int) -> tuple[Array, Array, Array]:
        """Shapley values (n, size, k) at some corners; what doubtful joints may cost and the standard error, (n, k)."""
        k = self.roles.output.width
        credit, spread = shapley(self._values, some, size, 2 * k, self.settings.seed)
        doubt = np.abs(credit[:, :, k:] - credit[:, :, :k]).max(axis=1)
        return credit[:, :, :k], doubt, spread[:, :k]

    def _values(self, corner: Ints, member: Bools) -> Array:
        """The score in cells, (q, 2 k): with the joints as they are, and as far off as they may be."""
        players, corners, block, roles = self.players, self.corners, self.block, self.roles
        flags = np.zeros((len(corner), players.count), np.bool_)
        who = players.player[players.offsets[corner][:, None] + np.arange(member.shape[1])]
        np.put_along_axis(flags, who, member, axis=1)
        past = flags[:, players.of_column]
        path, time = corners.path[corner], corners.time[corner]
        threads = self.settings.n_threads
        trees: dict[Node, Array] = {
            t: kernels.cells(t.forest, block.starts, block.ends, path, time, past, threads) for t in roles.trees
        }
        known = step_values(roles, trees)
        joints, doubts = self._joints(corner, past)
        value = roles.evaluate((roles.output,), {**known, **joints})[roles.output]
        if not any(d.any() for d in doubts.values()):
            return np.concatenate([value, value], axis=1)
        off = {n: joints[n] + doubts[n] for n in joints}
        return np.concatenate([value, roles.evaluate((roles.output,), {**known, **off})[roles.output]], axis=1)

    def _joints(self, corner: Ints, past: Bools) -> tuple[dict[Node, Array], dict[Node, Array]]:
        """The joints and their doubts: kept from the panels, or asked anew where jumping columns change them."""
        broken, roles = self.corners.broken[corner], self.roles
        joints, doubts = ({n: np.zeros((len(corner), n.width)) for n in roles.joints} for _ in range(2))
        kept, asked = np.nonzero(~broken)[0], np.nonzero(broken)[0]
        place = self.sides.place[corner[kept]]
        for node in roles.joints:
            joints[node][kept] = self.sides.joints[node][place]
            doubts[node][kept] = self.sides.doubts[node][place]
        if len(asked):
            # Cells that differ only in columns that no joint reads have the same joints.
            key = np.concatenate([corner[asked, None], past[asked][:, roles.moved_columns]], axis=1)
            _, first, same = np.unique(key, axis=0, return_index=True, return_inverse=True)
            some = asked[first]
            path, half = self.corners.path[corner[some]], np.full(len(some), 0.5)
            early, late = (self.block.at(path, half, np.full(len(some), flag)) for flag in (False, True))
            values = roles.evaluate(roles.joints, {roles.source: np.where(past[some], late, early)})
            for node in roles.joints:
                joints[node][asked] = values[node][same.ravel()]
        return joints, doubts

    def _ask(self, corner: Ints) -> None:
        """Replace interpolated joints at corners by what the model itself gives there."""
        corner = corner[~self.corners.broken[corner]]
        path, time = self.corners.path[corner], self.corners.time[corner]
        values = self.roles.evaluate(self.roles.joints, {self.roles.source: self.block.at(path, time, time > 0.5)})
        for node in self.roles.joints:
            self.sides.joints[node][self.sides.place[corner]] = values[node]
            self.sides.doubts[node][self.sides.place[corner]] = 0.0
