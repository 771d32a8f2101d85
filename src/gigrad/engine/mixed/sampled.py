"""Wide layers of units with kinks, asked at a few times of each leg: for loose tolerances.

Following every kink costs a product with the matrix of a wide layer for each of a thousand kinks. Here layers are asked
at a few times alone, and the last one is interpolated in between. The kinks of the first two layers of units are still
found, all of them and exactly: a unit of the second moves straight between kinks of the first, and those are known. On
the way back a unit passes on as much of the derivative as comes while it is at work, and a unit that changes within an
interval is told which units above it work before and after that. What is left falls with the square of the number of
intervals: how derivatives by the last layer bend within an interval, and kinks of layers that are no neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ... import kernels
from ...graph import Affine, Array, Node
from .. import limits
from ..paths import Block, Ints
from ..roles import Roles
from .lines import Grid, Legs, Lines

ASKED, PARTS = limits.SAMPLED_ASKED, 2 * limits.SAMPLED_ASKED
"""How often layers are asked in an interval, and into how many straight parts the last one is cut."""

Kinks = kernels.IntervalKinks
Below = tuple[Kinks, Array, Array]
"""Kinks of the layer below, by how much the slopes of its units change there, and the weights in between."""


@dataclass(frozen=True, eq=False)
class LayerChain:
    """Layers of units with kinks, one over the other, up to a line that others read.

    Attributes
    ----------
    straight : tuple of Node
        Lines without kinks.
    layers : tuple of (units, the sums that read them)
    """

    straight: tuple[Node, ...]
    layers: tuple[tuple[Node, Affine], ...]

    @classmethod
    def of(cls, roles: Roles) -> LayerChain | None:
        """The chain that all lines with kinks are, if they are one."""
        bent: list[Node] = []
        for node in roles.lines:
            if node.kinks or any(p in bent for p in node.parents):
                bent.append(node)
        layers: list[tuple[Node, Affine]] = []
        for units, sums in zip(bent[::2], bent[1::2], strict=False):
            if units.unit_slopes is None or not isinstance(sums, Affine) or sums.source is not units:
                return None
            if layers and units.parents[0] is not layers[-1][1]:
                return None
            layers.append((units, sums))
        if not layers or len(bent) % 2 or [n for n in bent if n in roles.line_ends] != bent[-1:]:
            return None
        return cls(tuple(n for n in roles.lines if n not in bent), tuple(layers))

    @property
    def units(self) -> int:
        """How many units there are in all."""
        return sum(units.width for units, _ in self.layers)


def sampled_chain(roles: Roles) -> LayerChain | None:
    """The layers that may be asked at a few times; None where kinks are cheap to follow, or trees read a score.

    Where a score passes a threshold of a tree, its derivatives at that very time are wanted.
    """
    return None if roles.head_trees or roles.line_program is not None else LayerChain.of(roles)


@dataclass(frozen=True, eq=False)
class UnitSlopes:
    """What the units of a layer do on the intervals.

    Attributes
    ----------
    slope : (intervals, units)
        Their slopes where intervals begin.
    step : (kinks,)
        By how much these change at kinks.
    """

    slope: Array
    kinks: Kinks
    step: Array

    def every_second(self) -> UnitSlopes:
        """The same of intervals that are twice as long."""
        return UnitSlopes(self.slope[::2], replace(self.kinks, first=self.kinks.first[::2]), self.step)

    @cached_property
    def interval(self) -> Ints:
        """The interval of each kink."""
        return np.repeat(np.arange(len(self.kinks.first) - 1), np.diff(self.kinks.first))


@dataclass(frozen=True, eq=False)
class KinkWeights:
    """How the head weighs the times of intervals, 1 in all for each.

    Attributes
    ----------
    late, late_moment : (kinks,)
        The weight that is left after a kink, and its first moment about the middle of the interval's weight, in
        lengths of the interval.
    """

    late: Array
    late_moment: Array


class SampledLines(Lines):
    """The lines of a model on a block of paths, asked at a few times of each leg.

    Attributes
    ----------
    intervals : Grid
        Between whose points derivatives by the last layer are taken to turn evenly.
    asked : Grid
        Where layers are asked: `ASKED` times an interval.
    grid : Grid
        Between whose points the last layer is taken for straight, and the head is integrated: twice as dense again.
    credit : list of (intervals, p)
        What has been pulled back, one for each output, by interval and column.
    """

    def __init__(
        self, roles: Roles, block: Block, legs: Legs, chain: LayerChain, counts: Ints, finer: SampledLines | None = None
    ) -> None:
        """Ask layers on `counts` (legs,) intervals of each leg, or take what was asked of lines with twice as many."""
        super().__init__(roles, block, legs, chain.straight)
        self.chain, self.counts = chain, counts
        self.intervals, self.asked, self._finest = (_even(legs, many * counts) for many in (1, ASKED, PARTS))
        self.credit: list[Array] = []
        if finer is None:
            self.read, self.passed, self.top = self._ask()
            return
        leg = self.asked.leg
        second = finer.asked.offsets[leg] + 2 * (np.arange(len(leg)) - self.asked.offsets[leg])
        self.read, self.top = [values[second] for values in finer.read], finer.top[second]
        exact, later = finer.passed[: limits.SAMPLED_LAYERS], chain.layers[limits.SAMPLED_LAYERS :]
        self.passed = [p.every_second() for p in exact]
        self.passed += [self._passed(u, values, None)[0] for (u, _), values in zip(later, self.read, strict=True)]

    @classmethod
    def of(cls, roles: Roles, block: Block, legs: Legs, chain: LayerChain, intervals: int) -> SampledLines:
        """So many intervals of each path, shared out among its legs in even numbers."""
        return cls(roles, block, legs, chain, 2 * np.ceil(0.5 * intervals * (legs.high - legs.low)).astype(np.int64))

    def coarser(self) -> SampledLines:
        """The same with half as many intervals, of what was asked already."""
        return SampledLines(self.roles, self.block, self.legs, self.chain, self.counts // 2, self)

    @property
    def grid(self) -> Grid:
        return self._finest

    @property
    def straight(self) -> bool:
        return False

    @cached_property
    def ends(self) -> dict[Node, Array]:
        """Values on the grid of the lines that others read."""
        top = self.chain.layers[-1][1]
        return {n: self._curved() if n is top else self._between(n, self.grid) for n in self.roles.line_ends}

    def _between(self, node: Node, grid: Grid) -> Array:
        """A straight line at the points of a grid."""
        return kernels.between_rows(self.values[node], grid.at, grid.part)

    def _curved(self) -> Array:
        """The last layer at the points asked, and half-way by cubic interpolation of four of them."""
        top, asked = self.top, self.asked
        left = asked.left
        inner = left[1:][np.diff(left) == 1]
        bend = np.zeros_like(top)  # by how much the steps at both sides of a point differ
        bend[inner] = top[inner + 1] - 2.0 * top[inner] + top[inner - 1]
        first, last = asked.offsets[:-1], asked.offsets[1:] - 1
        bend[first], bend[last] = bend[first + 1], bend[last - 1]
        place = 2 * np.arange(len(top)) - asked.leg  # of the points asked on the grid
        out = np.empty((len(self.grid.time), top.shape[1]))
        out[place] = top
        out[place[left] + 1] = 0.5 * (top[left] + top[left + 1]) - 0.0625 * (bend[left] + bend[left + 1])
        return out

    # ------------------------------------------------------------ the way up

    def _ask(self) -> tuple[list[Array], list[UnitSlopes], Array]:
        """What later layers of units read at the points asked, what all of them do in between, and the last sums."""
        read, passed, below = list[Array](), list[UnitSlopes](), None
        values = self._between(self.chain.layers[0][0].parents[0], self.asked)
        for depth, (units, sums) in enumerate(self.chain.layers):
            if depth >= limits.SAMPLED_LAYERS:
                read.append(values)
            found, kinks = self._passed(units, values, below)
            passed.append(found)
            # What is two layers below bends the sums too, but at the cost of a product with a matrix for each kink.
            exact = depth + 1 < limits.SAMPLED_LAYERS
            below = (kinks, found.step * kinks.rate, self.roles.transposed(sums)) if exact else None
            values = sums.forward(units.forward(values))
        return read, passed, values

    def _passed(self, units: Node, values: Array, below: Below | None) -> tuple[UnitSlopes, Kinks]:
        """What units do that read `values` at the points asked: by interval, and their kinks between those points."""
        left = self.asked.left
        if below is None:
            below = Kinks.none(len(left)), np.zeros(0), np.zeros((0, values.shape[1]))
        kinks = kernels.interval_kinks(values, left, self.asked.time, *below)
        if units.unit_slopes is None:
            raise TypeError(f"{type(units).__name__} has no kink at zero.")
        before, _, above = units.unit_slopes
        begin = left[::ASKED]
        first = values[begin]
        on = (first > 0.0) | ((first == 0.0) & (values[begin + 1] > 0.0))
        step = np.where(kinks.rate > 0.0, above - before, before - above)
        by_interval = replace(kinks, first=kinks.first[::ASKED])
        return UnitSlopes(np.where(on, above, before), by_interval, step), kinks

    # ------------------------------------------------------------ the way back

    def pull_back(self, cotangents: dict[Node, Array]) -> Array:
        """Credit of every column on every leg, (legs, p): see `Lines.pull_back`."""
        top, leg = self.chain.layers[-1][1], self.intervals.leg[self.intervals.left]
        parts = np.arange(0, len(self.grid.left), PARTS)
        waiting = {n: kernels.sum_groups(c, parts) for n, c in cotangents.items() if n is not top}
        if top in cotangents:
            source, part = self.chain.layers[0][0].parents[0], self._through(cotangents[top])
            waiting[source] = waiting[source] + part if source in waiting else part
        self.credit.append(self.pull_rows(leg, waiting))
        return kernels.sum_groups(self.credit[-1], self.intervals.offsets[:-1] - np.arange(len(self.legs)))

    def _through(self, cotangent: Array) -> Array:
        """Derivatives by the last layer, summed over parts of intervals, pulled back to the first: (intervals, width).

        Within an interval they are taken for one direction that turns evenly, and that the head weighs by time.
        """
        parts = cotangent.reshape(len(self.intervals.left), PARTS, -1)
        sums = parts.sum(axis=1)
        weight = _weights(parts, sums)
        above: tuple[UnitSlopes, KinkWeights, Array, Array] | None = None
        for (_, layer), passed in zip(reversed(self.chain.layers), reversed(self.passed), strict=True):
            kinks, interval, measure = passed.kinks, passed.interval, self._measure(passed, weight)
            mean = sums @ layer.weight
            turn = self._turn(mean)
            if above is None:
                at = interval, kinks.unit
                late = mean[at] * measure.late + turn[at] * measure.late_moment
            else:
                upper, other, *by = above
                rows, late = self.roles.transposed(layer), np.zeros(len(kinks.unit))
                measures = (measure.late, other.late), (measure.late_moment, other.late_moment)
                for values, (own, theirs) in zip(by, measures, strict=True):
                    step = values[upper.interval, upper.kinks.unit] * upper.step
                    late += kernels.late_products(values * upper.slope, rows, kinks, own, upper.kinks, theirs, step)
            sums = mean * passed.slope
            np.add.at(sums, (interval, kinks.unit), passed.step * late)
            above = passed, measure, mean, turn
        return np.asarray(sums)

    def _turn(self, mean: Array) -> Array:
        """By how much derivatives, (intervals, width), turn over each interval: from neighbours of the same leg.

        Those are scaled to be as long, since the head may weigh them quite differently.
        """
        leg = self.intervals.leg[self.intervals.left]
        before, after = mean[:-1], mean[1:]
        product, squares = np.einsum("iw,iw->i", before, after), np.einsum("iw,iw->i", mean, mean)
        alike = (leg[1:] == leg[:-1]) & (product > 0.5 * np.sqrt(squares[:-1] * squares[1:]))
        out, count = np.zeros_like(mean), np.zeros(len(mean))
        for own, other, square, sign, place in (
            (before, after, squares[1:], 1.0, slice(None, -1)),
            (after, before, squares[:-1], -1.0, slice(1, None)),
        ):
            scale = np.divide(product, square, out=np.zeros_like(product), where=alike)
            out[place] += np.where(alike[:, None], sign * (scale[:, None] * other - own), 0.0)
            count[place] += alike
        return np.asarray(out / np.maximum(count, 1.0)[:, None])

    def _measure(self, passed: UnitSlopes, weight: Array) -> KinkWeights:
        """What is left of the weight of its interval, (intervals, parts), after each kink."""
        begin = self.intervals.left[passed.interval]
        low, high = self.intervals.time[begin], self.intervals.time[begin + 1]
        part = (passed.kinks.time - low) / (high - low) * PARTS
        which = np.clip(part.astype(np.int64), 0, PARTS - 1)
        gone = part - which  # of the part that the kink lies in
        middle = (np.arange(PARTS) + 0.5) / PARTS - 0.5
        middle = middle - (weight @ middle)[:, None]
        after, moments = (np.cumsum(w[:, ::-1], axis=1)[:, ::-1] for w in (weight, weight * middle))
        at = passed.interval, which
        lost = weight[at] * gone
        return KinkWeights(after[at] - lost, moments[at] - lost * (middle[at] + 0.5 * (gone - 1.0) / PARTS))


def _even(legs: Legs, counts: Ints) -> Grid:
    """So many equal intervals of each leg; points lie `part` of the way from its first end, or are its second."""
    offsets = np.concatenate([[0], np.cumsum(counts + 1)])
    leg = np.repeat(np.arange(len(legs)), counts + 1)
    part = (np.arange(offsets[-1]) - offsets[leg]) / counts[leg]
    time, last = legs.low[leg] + part * (legs.high - legs.low)[leg], offsets[1:] - 1
    time[last], part[last] = legs.high, 0.0
    at = 2 * leg
    at[last] += 1
    return Grid(offsets, time, at, part)


def _weights(parts: Array, sums: Array) -> Array:
    """The share that each part has of its interval's sum, by direction, (intervals, parts): 1 in all."""
    square = np.einsum("iw,iw->i", sums, sums)
    along = np.einsum("ipw,iw->ip", parts, sums)
    even = np.full_like(along, 1.0 / along.shape[1])
    # Where parts cancel, their sum has no direction that they share.
    steady = square > limits.SAMPLED_STEADY * np.einsum("ipw,ipw->i", parts, parts)
    return np.asarray(np.divide(along, square[:, None], out=even, where=steady[:, None]))
