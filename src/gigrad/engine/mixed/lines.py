"""The piecewise-linear part of a model along straight paths: exact values, exact kinks, one pullback between kinks.

A path consists of legs, parts on which no column jumps. On a leg every line is linear between the points of a grid; a
ReLU layer adds a point wherever one of its units passes zero, and the layers above use the finer grid. The nodes below
a layer keep the coarser one, so that in the pullback the pieces are summed before they are multiplied by the matrices
below.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from ... import kernels
from ...graph import Affine, Array, Input, Node, Smooth
from .. import limits
from ..paths import Block, Bools, Ints
from ..roles import Roles
from ..roots import passed, passed_along
from .two_layers import TwoLayers, unit_slopes


@dataclass(frozen=True, eq=False)
class Legs:
    """Parts of paths on which no column jumps.

    Attributes
    ----------
    path : (n,)
    low, high : (n,)
        Times.
    late : (n,)
        Whether the columns that jump half-way have jumped.
    """

    path: Ints
    low: Array
    high: Array
    late: Bools

    def __len__(self) -> int:
        return len(self.path)

    @classmethod
    def of(cls, paths: int, broken: Bools, edges: Array) -> Legs:
        """One leg for each path and piece between `edges`, two for a piece that is `broken` half-way by a jump."""
        cuts = np.unique(np.append(edges, 0.5))
        used = np.repeat(np.isin(cuts[:-1], edges)[None], paths, axis=0)
        used[broken] = True
        path, place = np.nonzero(used)
        low = cuts[place]
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

    def refine(self, piece: Ints, part: Array) -> tuple[Grid, Ints]:
        """Cut pieces at parts of their length; gives the finer grid, and the point of each cut (-1: too close)."""
        old = len(self.time)
        keep = np.nonzero((part > limits.CLOSEST_KINKS) & (part < 1.0 - limits.CLOSEST_KINKS))[0]
        at = np.concatenate([np.arange(old), self.left[piece[keep]]])
        parts = np.concatenate([np.zeros(old), part[keep]])
        order = np.lexsort((parts, at))
        at, parts = at[order], parts[order]
        fresh = np.ones(len(at), np.bool_)
        fresh[1:] = (at[1:] != at[:-1]) | (parts[1:] - parts[:-1] > limits.CLOSEST_KINKS)
        place = np.full(len(part), -1)
        cut = order >= old
        place[keep[order[cut] - old]] = (np.cumsum(fresh) - 1)[cut]
        at, parts = at[fresh], parts[fresh]
        after = np.minimum(at + 1, old - 1)
        time = np.where(parts == 0.0, self.time[at], (1 - parts) * self.time[at] + parts * self.time[after])
        counts = np.bincount(self.leg[at], minlength=len(self.offsets) - 1)
        return Grid(np.concatenate([[0], np.cumsum(counts)]), time, at, parts), place


@dataclass(frozen=True, eq=False)
class LayerKinks:
    """The kinks of one layer of units, such as ReLUs, in order of leg and time.

    Attributes
    ----------
    level : int
        The grid of what the units read; the next finer grid has a point at every kink.
    point, unit : (n,)
        The point of the finer grid, and the unit.
    step, bend : (n,)
        The change of the unit's derivative there, with respect to its input, and to time.
    slope : (pieces, units)
        The units' derivatives with respect to their inputs at the beginning of the pieces of the coarser grid.
    """

    level: int
    point: Ints
    unit: Ints
    step: Array
    bend: Array
    slope: Array


@dataclass(frozen=True, eq=False)
class Lines:
    """The lines of a model on a block of paths, traced from the rows up.

    Attributes
    ----------
    grids : list of Grid
        From the ends of legs to the finest.
    level, values : dict
        The number of each node's grid, and its values there.
    middles : dict
        The inputs of nodes in the middle of their pieces, where the pullback depends on them.
    hinges : dict
        The kinks of layers of units that a single layer reads.
    two_layers : bool
        Whether two wide layers are followed together from kink to kink.
    stacked : dict
        Layers of sums over two such layers.
    """

    roles: Roles
    block: Block
    legs: Legs
    grids: list[Grid]
    level: dict[Node, int] = field(default_factory=dict)
    values: dict[Node, Array] = field(default_factory=dict)
    middles: dict[Node, list[Array]] = field(default_factory=dict)
    hinges: dict[Node, LayerKinks] = field(default_factory=dict)
    two_layers: bool = False
    stacked: dict[Node, TwoLayers] = field(default_factory=dict)

    @staticmethod
    def trace(
        roles: Roles, block: Block, legs: Legs, nodes: tuple[Node, ...] | None = None, two_layers: bool = False
    ) -> Lines:
        """All lines of a model, or only the given ones, with everything below them."""
        n, ends = len(legs), np.stack([legs.low, legs.high], axis=1).ravel()
        grid = Grid(np.arange(0, 2 * n + 1, 2), ends, np.arange(2 * n), np.zeros(2 * n))
        lines = Lines(roles, block, legs, [grid], two_layers=two_layers)
        for node in roles.lines if nodes is None else nodes:
            lines._trace(node)
        return lines

    @property
    def grid(self) -> Grid:
        """The finest grid: nothing has a kink inside its pieces."""
        return self.grids[-1]

    def _trace(self, node: Node) -> None:
        """Add the grid and the values of a node, whose parents were traced before."""
        if isinstance(node, Input):
            legs = self.legs
            path, late = np.repeat(legs.path, 2), np.repeat(legs.late, 2)
            self.values[node], self.level[node] = self.block.at(path, self.grids[0].time, late), 0
            return
        level = max(self.level[p] for p in node.parents)
        if node.kinks:
            level = self._kinks(node, level)
        self.level[node] = level
        if node in self.hinges:
            return  # the layer above has a faster method; other nodes compute values later
        if isinstance(node, Affine) and node.source in self.hinges:
            self.values[node] = self._bent(node, self.hinges[node.source])
        else:
            self._evaluate(node)

    def _evaluate(self, node: Node) -> None:
        """The values of a node at the edges of its level's pieces, and of its inputs at their middles if needed."""
        level = self.level[node]
        inputs = [self._lifted(p, level) for p in node.parents]
        self.values[node] = node.forward(*inputs)
        if not node.slope_is_constant:
            left = self.grids[level].left
            self.middles[node] = [0.5 * (v[left] + v[left + 1]) for v in inputs]

    def _kinks(self, node: Node, level: int) -> int:
        """Cut the grid where units of a node have kinks; returns the level of the grid that has them all."""
        grid, z = self.grids[level], self._lifted(node.parents[0], level)
        if len(node.kinks) == 1:
            piece, unit, kink = passed_along(node.kinks[0], z, grid.left)
        else:
            piece, unit, kink = passed(np.array(node.kinks), z[grid.left], z[grid.left + 1])
        if not len(piece):
            return level
        before, after = z[grid.left[piece], unit], z[grid.left[piece] + 1, unit]
        part = (kink - before) / (after - before)
        slopes = node.unit_slopes
        if slopes is None or level < len(self.grids) - 1:
            return self._cut(level, piece, part)
        fine, place = grid.refine(piece, part)
        self.grids.append(fine)
        order = np.argsort(place, kind="stable")
        order = order[place[order] >= 0]
        step = (unit_slopes(slopes, after) - unit_slopes(slopes, before))[order]
        length = np.diff(grid.time)[grid.left[piece[order]]]
        # The side of units without a kink inside is taken in the middle: one that starts or ends on its kink may lie on
        # either side there, by rounding.
        judged = kernels.middle_slopes(z, grid.left, slopes)
        judged[piece[order], unit[order]] = unit_slopes(slopes, before[order])
        bend = step * (after - before)[order] / length
        self.hinges[node] = LayerKinks(level, place[order], unit[order], step, bend, judged)
        return level + 1

    def _bent(self, node: Affine, hinges: LayerKinks) -> Array:
        """The values of a layer over units with kinks: computed on the coarser grid, and updated from kink to kink."""
        units, grid = node.source, self.grids[hinges.level + 1]
        read = self._lifted(units.parents[0], hinges.level)
        stacked = TwoLayers.of(self, node, hinges, read)
        if stacked is not None:
            self.stacked[node] = stacked
            return stacked.values(self, read)
        coarse, weights = node.forward(units.forward(read)), self.roles.transposed(node)
        return kernels.bend_rows(coarse, grid.at, grid.part, grid.time, hinges.point, hinges.bend, hinges.unit, weights)

    def _cut(self, level: int, piece: Ints, part: Array) -> int:
        """Cut pieces of a level at `part` of each; returns the number of the new, finest level."""
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
        self.grids.append(finest.refine(piece, part)[0])
        return len(self.grids) - 1

    def _lifted(self, node: Node, level: int) -> Array:
        """Values of a node on a finer grid than its own."""
        if node not in self.values:
            self._evaluate(node)
        values = self.values[node]
        for grid in self.grids[self.level[node] + 1 : level + 1]:
            values = kernels.between_rows(values, grid.at, grid.part)
        return values

    @cached_property
    def ends(self) -> dict[Node, Array]:
        """Values on the finest grid of the lines that others read."""
        return {n: self._lifted(n, len(self.grids) - 1) for n in self.roles.line_ends}

    @cached_property
    def head_ends(self) -> Array:
        """The values of the lines that the head reads, concatenated, (points, columns)."""
        return self.joined(self.roles.head_lines)

    def joined(self, nodes: tuple[Node, ...]) -> Array:
        """The values of some ends, concatenated, (points, columns)."""
        return self.ends[nodes[0]] if len(nodes) == 1 else np.concatenate([self.ends[n] for n in nodes], axis=1)

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
            if node in self.stacked:
                two = self.stacked[node]
                back = [(two.below.source.parents[0], 0, two.pull_back(self, cotangent))]
            elif isinstance(node, Affine) and node.source in self.hinges:
                hinges = self.hinges[node.source]
                back = [(node.source.parents[0], hinges.level, self._unbent(node, hinges, cotangent))]
            else:
                parts = zip(node.parents, self._back(node, cotangent), strict=True)
                back = [(parent, own, part) for parent, part in parts]
            for parent, at, part in back:
                if parent in waiting:
                    other, sum_ = waiting[parent]
                    to = min(other, at)
                    waiting[parent] = (to, self._coarser(sum_, other, to) + self._coarser(part, at, to))
                else:
                    waiting[parent] = (at, part)
        return np.zeros((len(self.legs), self.roles.source.width))

    def _unbent(self, node: Affine, hinges: LayerKinks, cotangent: Array) -> Array:
        """Pull a layer's cotangent back through the units with kinks below it, to what they read, on its grid.

        A unit without a kink passes the sum over a whole coarse piece; one with a kink, separate sums on each side.
        """
        fine = self.grids[hinges.level + 1]
        back = kernels.sum_groups(cotangent, fine.first_pieces) @ node.weight * hinges.slope
        if len(hinges.point):
            number = np.cumsum(np.bincount(fine.left, minlength=len(fine.time))) - 1  # the piece that begins at a point
            begin = number[hinges.point]
            last = np.append(fine.first_pieces, len(fine.left))
            piece = np.searchsorted(fine.first_pieces, begin, side="right") - 1
            late = kernels.suffix_products(cotangent, begin, last[piece + 1], hinges.unit, self.roles.transposed(node))
            np.add.at(back, (piece, hinges.unit), hinges.step * late)
        return np.asarray(back)

    def pull_rows(self, leg: Ints, cotangents: dict[Node, Array]) -> Array:
        """Pull cotangents (n, width) back to the columns, times their moves, on legs (n,) without kinks: (n, p)."""
        waiting = dict(cotangents)
        for node in reversed(self.roles.lines):
            if node not in waiting:
                continue
            if isinstance(node, Input):
                return waiting[node] * self.block.move[self.legs.path[leg]]
            for parent, part in zip(node.parents, self._back(node, waiting.pop(node), leg), strict=True):
                waiting[parent] = waiting[parent] + part if parent in waiting else part
        return np.zeros((len(leg), self.roles.source.width))

    def _back(self, node: Node, cotangent: Array, piece: Ints | None = None) -> tuple[Array, ...]:
        """Pull a cotangent, one row for each piece of the node's grid or for those given, back to its parents."""
        if not isinstance(node, Smooth):
            raise TypeError(f"{type(node).__name__} has no pullback.")
        if node not in self.values:  # units with kinks that are an output themselves: no layer above computed them
            self._evaluate(node)
        if node in self.middles:
            middles = self.middles[node] if piece is None else [m[piece] for m in self.middles[node]]
        else:  # only the number of columns matters
            middles = [np.broadcast_to(0.0, (len(cotangent), p.width)) for p in node.parents]
        return node.pullback(cotangent, *middles)

    @property
    def straight(self) -> bool:
        """Whether no line has a kink on any leg."""
        return len(self.grids) == 1

    def straight_below(self, node: Node) -> bool:
        """Whether neither a line nor any that it reads has a kink on any leg, so that `pull_rows` takes it."""
        return self.level.get(node) == 0

    def _coarser(self, sums: Array, level: int, to: int) -> Array:
        for grid in self.grids[to + 1 : level + 1][::-1]:
            sums = kernels.sum_groups(sums, grid.first_pieces)
        return sums
