"""The game at one corner of many players: trees, smooth parts in which columns jump, and a head over both.

The trees give the scores of all coalitions at once (`CornerLeaves`). Smooth parts are evaluated once for each coalition
of the players that jump inside them. Only the head is evaluated for every coalition of all players.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ... import kernels
from ...graph import Array, Node
from ...kernels.corner_games import MAX_ENUMERATED, TABLE_NUMBERS, CoalitionFold, CornerLeaves, enumerates
from .. import limits
from ..corners import prefixes, strong_players, subsets
from ..paths import Block, Bools, Ints
from ..roles import Roles
from ..settings import Settings
from .jumps import step_values


@dataclass(frozen=True, eq=False)
class LargeCorner:
    """A corner of many players: its description, without the memory that its game needs.

    Attributes
    ----------
    block : Block
        A block of its path only.
    path : int
        The index of the path in the original block.
    time : float
    player : (n,)
        The players that cross there.
    of_column : (p,)
        The player of every column.
    joints : dict or None
        The values of smooth parts that the head reads there, (width,) each; None if players jump inside them.
    players, cost, whole : int, float, float
        The number of players with an effect; the cost of a group of orders and of all coalitions, in numbers.
    """

    block: Block
    path: int
    time: float
    player: Ints
    of_column: Ints
    joints: dict[Node, Array] | None
    players: int = 0
    cost: float = 0.0
    whole: float = np.inf

    @property
    def row(self) -> int:
        """The explained row."""
        return int(self.block.row[0])

    @property
    def weight(self) -> float:
        """The weight of its path in the row's credit."""
        return float(self.block.weight[0])


@dataclass(eq=False)
class LargeGame:
    """The game at a large corner; players that jump inside smooth parts come first. See `corners.Game`.

    Attributes
    ----------
    forests, leaves : dict
        The native form of each tree, and its leaves at the corner; none of these where trees read other trees.
    who : (players,)
        The players with an effect; the first `moved` of them jump inside smooth parts.
    order, strong : (players,), int
        Set by `set_order`.
    """

    roles: Roles
    corner: LargeCorner
    threads: int | None
    forests: dict[Node, Any]
    leaves: dict[Node, CornerLeaves]
    who: Ints
    moved: int
    order: Ints
    strong: int = 0

    @classmethod
    def of(cls, roles: Roles, corner: LargeCorner, settings: Settings) -> LargeGame:
        """The game of a corner's players, without those that have no effect."""
        block = corner.block
        forests: dict[Node, Any] = {t: t.grouped_forest(settings.players) for t in roles.trees}
        every: dict[Node, CornerLeaves] = {}
        moved = np.zeros(0, np.int64)
        if corner.joints is None:
            columns = np.nonzero(block.jumping[0] & roles.moved_columns)[0]
            moved = np.intersect1d(corner.player, corner.of_column[columns])
        matter = corner.player
        if not roles.exact_trees:
            every = {t: CornerLeaves(f, block.starts, block.ends, corner.time) for t, f in forests.items()}
            matter = np.concatenate([moved, *(leaves.variables() for leaves in every.values())])
        who = np.concatenate([moved, np.setdiff1d(np.intersect1d(corner.player, matter), moved)])
        for leaves in every.values():
            leaves.set_players(who.astype(np.int32))
        return cls(roles, corner, settings.n_threads, forests, every, who, len(moved), np.arange(len(who)))

    @property
    def players(self) -> int:
        """The number of players with an effect."""
        return len(self.who)

    @property
    def outputs(self) -> int:
        """The number of outputs of the score."""
        return self.roles.output.width

    @cached_property
    def numbers(self) -> int:
        """The cost of the score of one coalition: see `corners.Game`."""
        roles = self.roles
        widths = sum(n.width for n in (*roles.steps, *roles.head))
        walked = sum(8 * len(t.roots) for t in roles.trees) if roles.exact_trees else 0
        if self.moved and not self._tabulated:
            widths += self._smooth_numbers
        return max(sum(t.width for t in roles.trees) + -(-widths // limits.HEAD_COST) + walked, 1)

    def enumerable(self, target: float) -> bool:
        """Whether all coalitions are evaluated, by the rule that all engines share."""
        return enumerates(self.players, self.numbers, self._once, self.corner.block.references, target)

    @property
    def _once(self) -> float:
        """The fixed cost of evaluating all coalitions, in numbers."""
        smooth = 2.0**self.moved * self._smooth_numbers if self.moved else 0.0
        return smooth + sum(leaves.coefficients for leaves in self.leaves.values())

    @property
    def whole(self) -> float:
        """The cost of all coalitions, in numbers."""
        return 2.0**self.players * self.numbers + self._once if self.players <= MAX_ENUMERATED else np.inf

    @property
    def cost(self) -> float:
        """The cost of a group of orders, in numbers."""
        q = strong_players(self)
        return 4.0 * (self.players - q + 1) * 2.0**q * self.numbers

    def jump(self) -> Array:
        """The total credit of all players, (k,)."""
        ends = self.values(np.array([[False], [True]]).repeat(self.players, axis=1))
        return np.asarray(ends[1] - ends[0])

    @property
    def _smooth_numbers(self) -> int:
        """The cost of smooth parts for one coalition of the players that jump inside them, in numbers."""
        return sum(n.width for n in (*self.roles.lines, *self.roles.curves))

    @property
    def _tabulated(self) -> bool:
        """Whether smooth parts are evaluated once for all of their coalitions, not along every order."""
        widths = sum(n.width for n in self.roles.joints)
        return 2**self.moved <= limits.STORED_COALITIONS and widths << self.moved <= TABLE_NUMBERS

    # ------------------------------------------------------------ the score of coalitions

    def values(self, past: Bools) -> Array:
        """Scores (n, outputs) of some coalitions (n, players)."""
        joints = self._evaluated(past[:, : self.moved]) if self.moved else self._fixed(len(past))
        return self._score(self._cells(past), joints)

    def tables(self) -> Iterator[Array]:
        """Scores of all coalitions in order, in blocks (n, outputs): bit i of a coalition's number is player i."""
        n = self.players
        widest = max((t.width for t in self.roles.trees), default=1)
        bits = min(n, (TABLE_NUMBERS // widest).bit_length() - 1)
        step = min(limits.GAME_BLOCK, 2**bits)
        for part in range(2 ** (n - bits)):
            trees = {t: leaves.table(bits, part) for t, leaves in self.leaves.items()}
            for first in range(0, 2**bits, step):
                place = np.arange(first, first + step) + (part << bits)
                some = {t: table[first : first + step] for t, table in trees.items()}
                if not self.leaves:
                    some = self._cells((place[:, None] >> np.arange(n)) & 1 == 1)
                yield self._score(some, self._joints(place))

    def set_order(self, order: Ints, strong: int) -> None:
        """Set the order of the players by strength: the first `strong` are enumerated from now on."""
        self.order, self.strong = order, strong
        for leaves in self.leaves.values():
            leaves.set_order(order.astype(np.int32), strong)

    def follow(self, joins: Ints) -> tuple[Array, list[Array]]:
        """As in `Game`; the control variates are the trees' sums and the fully tabulated smooth parts."""
        shape = (len(joins), joins.shape[1] + 1, 2**self.strong)
        if self.leaves:
            trees = {t: leaves.follow(joins).reshape(-1, t.width) for t, leaves in self.leaves.items()}
        else:
            trees = self._cells(prefixes(self.order, self.strong, joins).reshape(-1, self.players))
        joints = self._joints_of(joins)
        values = self._score(trees, joints)
        known = [trees[t] for t in self._known_trees] + [joints[n] for n in self._known_joints]
        return values.reshape(*shape, self.outputs), [k.reshape(*shape, k.shape[1]) for k in known]

    def shares(self) -> Array:
        """The Shapley values of the control variates, side by side, (players, sum of their widths)."""
        out = [np.zeros((self.players, 0)), *(self.leaves[t].shares() for t in self._known_trees)]
        for node in self._known_joints:
            fold = CoalitionFold(self.moved, node.width)
            fold.add(self._all_joints[node])
            out.append(np.concatenate([fold.finish(), np.zeros((self.players - self.moved, node.width))]))
        return np.concatenate(out, axis=1)

    @cached_property
    def _known_trees(self) -> list[Node]:
        known = list(self.leaves)
        return known if sum(t.width for t in known) <= limits.CONTROL_VARIATES else []

    @cached_property
    def _known_joints(self) -> list[Node]:
        known = list(self._all_joints)
        return known if sum(n.width for n in (*known, *self._known_trees)) <= limits.CONTROL_VARIATES else []

    def _score(self, trees: dict[Node, Array], joints: dict[Node, Array]) -> Array:
        """The score, (n, outputs), for a block of coalitions at a time."""
        roles, parts = self.roles, list[Array]()
        n = max((len(v) for v in (*trees.values(), *joints.values())), default=1)
        for first in range(0, n, limits.GAME_BLOCK):
            some = slice(first, first + limits.GAME_BLOCK)
            known = step_values(roles, {t: v[some] for t, v in trees.items()})
            known.update({node: v[some] for node, v in joints.items()})
            parts.append(roles.evaluate((roles.output,), known)[roles.output])
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _cells(self, past: Bools) -> dict[Node, Array]:
        """The outputs of the trees for some coalitions (n, players), evaluated one by one."""
        block, n = self.corner.block, len(past)
        flags = np.zeros((n, int(self.corner.of_column.max(initial=-1)) + 1), np.bool_)
        flags[:, self.who] = past
        path, time = np.zeros(n, np.int64), np.full(n, self.corner.time)
        return {
            t: kernels.cells(f, block.starts, block.ends, path, time, flags, self.threads)
            for t, f in self.forests.items()
        }

    # ------------------------------------------------------------ values of smooth parts that the head reads (joints)

    @cached_property
    def _all_joints(self) -> dict[Node, Array]:
        """The joints for all coalitions of the players that jump inside them; empty if there are none, or too many."""
        if not self.moved or not self._tabulated:
            return {}
        step = limits.GAME_BLOCK
        parts = [self._evaluated(subsets(self.moved)[i : i + step]) for i in range(0, 2**self.moved, step)]
        return {n: np.concatenate([p[n] for p in parts]) for n in self.roles.joints}

    def _joints(self, place: Ints) -> dict[Node, Array]:
        """The joints of consecutively numbered coalitions, (n,)."""
        if not self.moved:
            return self._fixed(len(place))
        if self._all_joints:
            return {n: table.take(place & (2**self.moved - 1), axis=0) for n, table in self._all_joints.items()}
        some = min(len(place), 2**self.moved)
        found = self._evaluated((place[:some, None] >> np.arange(self.moved)) & 1 == 1)
        return {n: np.tile(v, (len(place) // some, 1)) for n, v in found.items()}

    def _joints_of(self, joins: Ints) -> dict[Node, Array]:
        """The joints of the coalitions in `follow`, in its order."""
        weak, n = self.order[self.strong :], len(joins)
        if not self.moved:
            return self._fixed(n * (len(weak) + 1) * 2**self.strong)
        member = subsets(self.strong)
        inside = self.order[: self.strong] < self.moved
        strong = self.order[: self.strong][inside]
        who = weak[joins]  # (n, weak)
        if self._all_joints:
            bit = np.where(np.arange(self.players) < self.moved, 1 << np.minimum(np.arange(self.players), 62), 0)
            code = np.concatenate([np.zeros((n, 1), np.int64), np.cumsum(bit[who], axis=1)], axis=1)
            at = (code[:, :, None] + (member[:, inside] * bit[strong]).sum(axis=1)).ravel()
            return {node: table.take(at, axis=0) for node, table in self._all_joints.items()}
        # Along an order they change only where a player joins that jumps inside them.
        new = np.concatenate([np.ones((n, 1), np.bool_), who < self.moved], axis=1)
        order, prefix = np.nonzero(new)
        rank = np.empty_like(who)
        np.put_along_axis(rank, joins, np.arange(len(weak))[None], axis=1)
        past = np.zeros((len(order), 2 ** len(strong), self.moved), np.bool_)
        mine = weak < self.moved
        past[:, :, weak[mine]] = (rank[order][:, mine] < prefix[:, None])[:, None]
        past[:, :, strong] = subsets(len(strong))
        found = [self._evaluated(p) for p in np.array_split(past.reshape(-1, self.moved), len(past) // 64 + 1)]
        number = np.cumsum(new.ravel()) - 1
        subset = (member[:, inside] << np.arange(len(strong))).sum(axis=1)
        at = (number[:, None] * 2 ** len(strong) + subset).ravel()
        return {node: np.concatenate([f[node] for f in found])[at] for node in self.roles.joints}

    def _fixed(self, n: int) -> dict[Node, Array]:
        """The joints, n times each, where no player with an effect jumps inside of smooth parts."""
        joints = self.corner.joints
        if joints is None:  # the players that jump inside have no effect
            return {node: np.repeat(v, n, axis=0) for node, v in self._evaluated(np.zeros((1, 0), np.bool_)).items()}
        return {node: np.repeat(v[None], n, axis=0) for node, v in joints.items()}

    def _evaluated(self, past: Bools) -> dict[Node, Array]:
        """The joints of some coalitions (n, moved) of the players that jump inside them, evaluated."""
        roles, block, zero = self.roles, self.corner.block, np.zeros(1, np.int64)
        early, late = (block.at(zero, np.array([0.5]), np.array([flag])) for flag in (False, True))
        flags = np.zeros((len(past), int(self.corner.of_column.max(initial=-1)) + 1), np.bool_)
        flags[:, self.who[: self.moved]] = past
        rows = np.where(flags[:, self.corner.of_column], late, early)
        found = roles.evaluate(roles.joints, {roles.source: rows})
        return {n: found[n] for n in roles.joints}
