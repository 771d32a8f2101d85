"""The piecewise-linear part of a model along straight paths: exact values, exact kinks, one pullback between kinks.

A path is walked in legs, stretches on which no column jumps. On a leg every line is linear between the points of a
grid; a ReLU layer adds a point wherever one of its units passes zero, and the layers above work on the finer grid. What
lies below a layer keeps the coarser one, so that on the way back the pieces are added up before they are pulled through
the matrices below.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..graph import Array, Elementwise, Input, Node, PiecewiseLinear, Smooth
from .paths import Block, Bools, Ints
from .roles import Roles
from .roots import passed

CLOSEST = 1e-13
"""Kinks closer than this share of their piece are one."""


@dataclass(frozen=True, eq=False)
class Legs:
    """Stretches of paths on which all columns move or stay.

    Attributes
    ----------
    path : (n,)
    low, high : (n,)
        Times.
    late : (n,)
        Whether the columns that jump half-way have done so.
    """

    path: Ints
    low: Array
    high: Array
    late: Bools

    def __len__(self) -> int:
        return len(self.path)

    @classmethod
    def of(cls, paths: int, broken: Bools, stops: Array | None = None) -> Legs:
        """One leg for each path, two for those `broken` half-way by a column that jumps; cut further at `stops`."""
        inner = np.unique(np.append([] if stops is None else stops, 0.5))
        inner = inner[(inner > 0) & (inner < 1)]
        edges = np.repeat(np.concatenate([[0.0], inner])[None], paths, axis=0)
        used = np.ones(edges.shape, np.bool_)
        if stops is None or 0.5 not in stops:
            used[:, np.searchsorted(inner, 0.5) + 1] = broken
        path, place = np.nonzero(used)
        low = edges[path, place]
        high = np.append(low[1:], 1.0)
        high[np.append(path[1:] != path[:-1], True)] = 1.0
        return cls(path, low, high, broken[path] & (low >= 0.5))


@dataclass(frozen=True, eq=False)
class Grid:
    """Times on legs: leg i owns `time[offsets[i]:offsets[i + 1]]`, its two ends included.

    Of a grid that refines another, point i lies `part[i]` of the way from the coarser point `at[i]` to the next.
    """

    offsets: Ints
    time: Array
    at: Ints
    part: Array

    @cached_property
    def leg(self) -> Ints:
        """The leg of each point."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))

    @cached_property
    def left(self) -> Ints:
        """The point at which each piece begins; the piece ends at the next point."""
        inner = np.ones(len(self.time), np.bool_)
        inner[self.offsets[1:] - 1] = False
        return np.nonzero(inner)[0]

    @cached_property
    def first_pieces(self) -> Ints:
        """For each piece of the coarser grid the first of the pieces it was cut into."""
        return np.nonzero(self.part[self.left] == 0.0)[0]

    def refine(self, piece: Ints, part: Array) -> Grid:
        """Cut pieces at the given parts of their length."""
        keep = (part > CLOSEST) & (part < 1.0 - CLOSEST)
        at = np.concatenate([np.arange(len(self.time)), self.left[piece[keep]]])
        parts = np.concatenate([np.zeros(len(self.time)), part[keep]])
        order = np.lexsort((parts, at))
        at, parts = at[order], parts[order]
        fresh = np.ones(len(at), np.bool_)
        fresh[1:] = (at[1:] != at[:-1]) | (parts[1:] - parts[:-1] > CLOSEST)
        at, parts = at[fresh], parts[fresh]
        after = np.minimum(at + 1, len(self.time) - 1)
        time = np.where(parts == 0.0, self.time[at], (1 - parts) * self.time[at] + parts * self.time[after])
        counts = np.bincount(self.leg[at], minlength=len(self.offsets) - 1)
        return Grid(np.concatenate([[0], np.cumsum(counts)]), time, at, parts)


class Lines:
    """The lines of a model on a block of paths, traced from the rows up."""

    def __init__(self, roles: Roles, block: Block, legs: Legs) -> None:
        self.roles, self.block, self.legs = roles, block, legs
        n = len(legs)
        ends = np.stack([legs.low, legs.high], axis=1).ravel()
        self.grids = [Grid(np.arange(0, 2 * n + 1, 2), ends, np.arange(2 * n), np.zeros(2 * n))]
        self.level: dict[Node, int] = {}
        self.values: dict[Node, Array] = {}
        for node in roles.lines:
            self._trace(node)

    @property
    def grid(self) -> Grid:
        """The finest grid: nothing has a kink inside its pieces."""
        return self.grids[-1]

    def _trace(self, node: Node) -> None:
        if isinstance(node, Input):
            legs = self.legs
            path, late = np.repeat(legs.path, 2), np.repeat(legs.late, 2)
            self.values[node], self.level[node] = self.block.at(path, self.grids[0].time, late), 0
            return
        level = max(self.level[p] for p in node.parents)
        inputs = [self._lifted(p, level) for p in node.parents]
        if isinstance(node, (Elementwise, PiecewiseLinear)) and node.kinks:
            grid, z = self.grids[level], inputs[0]
            piece, column, kink = passed(np.array(node.kinks), z[grid.left], z[grid.left + 1])
            if len(piece):
                before, after = z[grid.left[piece], column], z[grid.left[piece] + 1, column]
                # Finer grids already there are those of branches that do not meet this node: cut them all the same,
                # since the grids are nested in one another.
                level = self._cut(level, piece, (kink - before) / (after - before))
                inputs = [self._lifted(node.source, level)]
        self.level[node] = level
        self.values[node] = node.forward(*inputs)

    def _cut(self, level: int, piece: Ints, part: Array) -> int:
        grid = self.grids[level]
        time = grid.time[grid.left[piece]]
        time = time + part * (grid.time[grid.left[piece] + 1] - time)
        finest = self.grid
        if level < len(self.grids) - 1:  # find the same times on the finest grid
            leg = grid.leg[grid.left[piece]]
            key = finest.leg[finest.left] * 4.0 + finest.time[finest.left]
            piece = np.clip(np.searchsorted(key, leg * 4.0 + time, side="right") - 1, 0, len(finest.left) - 1)
            low = finest.time[finest.left[piece]]
            part = (time - low) / (finest.time[finest.left[piece] + 1] - low)
        self.grids.append(finest.refine(piece, part))
        return len(self.grids) - 1

    def _lifted(self, node: Node, level: int) -> Array:
        """Values of a node on a finer grid than its own."""
        values = self.values[node]
        for grid in self.grids[self.level[node] + 1 : level + 1]:
            after = np.minimum(grid.at + 1, len(values) - 1)
            part = grid.part[:, None]
            fine = values[after]
            fine -= values[grid.at]
            fine *= part
            fine += values[grid.at]
            values = np.where(part == 0.0, values[grid.at], fine)
        return values

    @cached_property
    def ends(self) -> dict[Node, Array]:
        """Values on the finest grid of the lines that others read."""
        return {n: self._lifted(n, len(self.grids) - 1) for n in self.roles.line_ends}

    def pull_back(self, cotangents: dict[Node, Array]) -> Array:
        """Credit of every column on every leg, (legs, p).

        `cotangents` holds for some nodes, for each piece of the finest grid, the integral over the piece of the
        derivative of the score by the node, (pieces, width).
        """
        level = len(self.grids) - 1
        waiting = {n: (level, c) for n, c in cotangents.items()}
        for node in reversed(self.roles.lines):
            if node not in waiting:
                continue
            level, cotangent = waiting.pop(node)
            if isinstance(node, Input):
                return self._coarser(cotangent, level, 0) * self.block.move[self.legs.path]
            own = self.level[node]
            cotangent = self._coarser(cotangent, level, own)
            left = self.grids[own].left
            inputs = [self._lifted(p, own) for p in node.parents]
            middles = [0.5 * (v[left] + v[left + 1]) for v in inputs]
            assert isinstance(node, Smooth)
            for parent, part in zip(node.parents, node.pullback(cotangent, *middles), strict=True):
                if parent in waiting:
                    other, sum_ = waiting[parent]
                    to = min(other, own)
                    part = self._coarser(sum_, other, to) + self._coarser(part, own, to)
                    waiting[parent] = (to, part)
                else:
                    waiting[parent] = (own, part)
        return np.zeros((len(self.legs), self.roles.source.width))

    def pull_rows(self, leg: Ints, cotangents: dict[Node, Array]) -> Array:
        """Pull cotangents (n, width) back to the columns, times their moves, on legs (n,) without kinks: (n, p)."""
        waiting = dict(cotangents)
        for node in reversed(self.roles.lines):
            if node not in waiting:
                continue
            if isinstance(node, Input):
                return waiting[node] * self.block.move[self.legs.path[leg]]
            assert isinstance(node, Smooth)
            middles = [0.5 * (v[2 * leg] + v[2 * leg + 1]) for v in (self.values[p] for p in node.parents)]
            for parent, part in zip(node.parents, node.pullback(waiting.pop(node), *middles), strict=True):
                waiting[parent] = waiting[parent] + part if parent in waiting else part
        return np.zeros((len(leg), self.roles.source.width))

    @property
    def straight(self) -> bool:
        """Whether no line has a kink on any leg."""
        return len(self.grids) == 1

    def _coarser(self, sums: Array, level: int, to: int) -> Array:
        for grid in self.grids[to + 1 : level + 1][::-1]:
            sums = np.add.reduceat(sums, grid.first_pieces, axis=0)
        return sums
