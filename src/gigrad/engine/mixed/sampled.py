"""Wide layers of units with kinks, evaluated at a few times of each leg: for loose tolerances.

Following every kink costs a product with the matrix of a wide layer for each of a thousand kinks. Here layers are
evaluated at a few times only, and the last one is interpolated in between. All kinks of the first two layers of units
are still found exactly: a unit of the second is linear in time between the kinks of the first. In the pullback a unit's
derivative is the mean over the interval, weighted by the time before and after its kink, and a unit with a kink inside
an interval uses the slopes of the units above it before and after that kink. The remaining error falls with the square
of the number of intervals: it comes from the curvature of derivatives by the last layer within an interval, and from
kinks of layers that are not neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from ... import kernels
from ...graph import Affine, Array, Node
from .. import limits
from ..paths import Block, Ints
from ..roles import Roles
from .lines import Grid, Legs, Lines

EACH, PARTS = limits.SAMPLED_EACH, 2 * limits.SAMPLED_EACH
"""Evaluations of layers in each interval, and the number of straight parts of the last layer there."""

Kinks = kernels.IntervalKinks
Below = tuple[Kinks, Array, Array]
"""Kinks of the layer below, the changes of its units' slopes there, and the weights of the layer in between."""


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
    """The layers that may be evaluated at a few times; None where kinks are cheap to follow, or trees read a score.

    Where a score passes a threshold of a tree, its derivatives at exactly that time are needed.
    """
    return None if roles.head_trees or roles.line_program is not None else LayerChain.of(roles)


@dataclass(frozen=True, eq=False)
class UnitSlopes:
    """The slopes of the units of a layer on the intervals.

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


@dataclass(frozen=True, eq=False, kw_only=True)
class SampledLines(Lines):
    """The lines of a model on a block of paths, evaluated at a few times of each leg.

    Attributes
    ----------
    counts : (legs,)
        The number of intervals of each leg.
    points : Grid
        The times at which layers are evaluated: `EACH` an interval.
    read : list of (points, width)
        The values that layers of units read there, from layer `SAMPLED_LAYERS` on.
    passed : list of UnitSlopes
        The slopes of each layer of units.
    top : (points, width)
        The values of the last layer.
    credit : list of (intervals, p)
        The credit by interval and column, one for each output that was pulled back.
    """

    chain: LayerChain
    counts: Ints
    points: Grid
    read: list[Array]
    passed: list[UnitSlopes]
    top: Array
    credit: list[Array] = field(default_factory=list)

    @staticmethod
    def of(roles: Roles, block: Block, legs: Legs, chain: LayerChain, intervals: int) -> SampledLines:
        """Evaluate layers on so many intervals of each path, allotted to its legs in even numbers."""
        below = Lines.trace(roles, block, legs, chain.straight)
        counts = 2 * np.ceil(0.5 * intervals * (legs.high - legs.low)).astype(np.int64)
        points = _even(legs, EACH * counts)
        return _sampled(below, chain, counts, points, *_evaluated(below, chain, points))

    def coarser(self) -> SampledLines:
        """The same with half as many intervals, from the same evaluations."""
        counts = self.counts // 2
        points = _even(self.legs, EACH * counts)
        second = self.points.offsets[points.leg] + 2 * (np.arange(len(points.leg)) - points.offsets[points.leg])
        read = [values[second] for values in self.read]
        later = zip(self.chain.layers[limits.SAMPLED_LAYERS :], read, strict=True)
        passed = [p.every_second() for p in self.passed[: limits.SAMPLED_LAYERS]]
        passed += [_unit_slopes(units, values, points, None)[0] for (units, _), values in later]
        return _sampled(self, self.chain, counts, points, read, passed, self.top[second])

    @cached_property
    def intervals(self) -> Grid:
        """The intervals, within which derivatives by the last layer are assumed to turn at a constant rate."""
        return _even(self.legs, self.counts)

    @cached_property
    def grid(self) -> Grid:
        """The parts of intervals on which the last layer is assumed linear, and on which the head is integrated."""
        return _even(self.legs, PARTS * self.counts)

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
        """The last layer at the points, and half-way between them by cubic interpolation of four of them."""
        top, points = self.top, self.points
        left = points.left
        inner = left[1:][np.diff(left) == 1]
        bend = np.zeros_like(top)  # the second difference at each point
        bend[inner] = top[inner + 1] - 2.0 * top[inner] + top[inner - 1]
        first, last = points.offsets[:-1], points.offsets[1:] - 1
        bend[first], bend[last] = bend[first + 1], bend[last - 1]
        place = 2 * np.arange(len(top)) - points.leg  # of the points on the grid
        out = np.empty((len(self.grid.time), top.shape[1]))
        out[place] = top
        out[place[left] + 1] = 0.5 * (top[left] + top[left + 1]) - 0.0625 * (bend[left] + bend[left + 1])
        return out

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


def _sampled(
    lines: Lines, chain: LayerChain, counts: Ints, points: Grid, read: list[Array], passed: list[UnitSlopes], top: Array
) -> SampledLines:
    """The lines below a chain of layers, with what was found of the chain."""
    return SampledLines(
        lines.roles, lines.block, lines.legs, lines.grids, lines.level, lines.values, lines.middles, lines.hinges,
        chain=chain, counts=counts, points=points, read=read, passed=passed, top=top,
    )  # fmt: skip


def _evaluated(below: Lines, chain: LayerChain, points: Grid) -> tuple[list[Array], list[UnitSlopes], Array]:
    """The values that later layers of units read at the points, the slopes of all layers, and the last layer's values.

    `below` are the lines without kinks.
    """
    read, passed, lower = list[Array](), list[UnitSlopes](), None
    first = chain.layers[0][0].parents[0]
    values = kernels.between_rows(below.values[first], points.at, points.part)
    for depth, (units, sums) in enumerate(chain.layers):
        if depth >= limits.SAMPLED_LAYERS:
            read.append(values)
        found, kinks = _unit_slopes(units, values, points, lower)
        passed.append(found)
        # Kinks two layers below bend the sums too, but each would cost a product with a matrix.
        exact = depth + 1 < limits.SAMPLED_LAYERS
        lower = (kinks, found.step * kinks.rate, below.roles.transposed(sums)) if exact else None
        values = sums.forward(units.forward(values))
    return read, passed, values


def _unit_slopes(units: Node, values: Array, points: Grid, below: Below | None) -> tuple[UnitSlopes, Kinks]:
    """The slopes of units that read `values` at the points, by interval, and their kinks between the points."""
    left = points.left
    if below is None:
        below = Kinks.none(len(left)), np.zeros(0), np.zeros((0, values.shape[1]))
    kinks = kernels.interval_kinks(values, left, points.time, *below)
    if units.unit_slopes is None:
        raise TypeError(f"{type(units).__name__} has no kink at zero.")
    before, _, above = units.unit_slopes
    begin = left[::EACH]
    first = values[begin]
    on = (first > 0.0) | ((first == 0.0) & (values[begin + 1] > 0.0))
    step = np.where(kinks.rate > 0.0, above - before, before - above)
    by_interval = replace(kinks, first=kinks.first[::EACH])
    return UnitSlopes(np.where(on, above, before), by_interval, step), kinks


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
