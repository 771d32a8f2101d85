"""Curves on panels: short stretches of a leg on which a few nodes describe them, and nobody asks them anywhere else."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from .. import kernels
from ..graph import Array, Node
from .bumps import kernel_lengths
from .jumps import Corners
from .lines import Legs, Lines
from .paths import Bools, Ints
from .quadrature import Rule, gauss, legendre, tails
from .roles import Levels, Roles, pull_back
from .roots import solve

HIGHEST = 12
"""Panels that need more nodes than this are halved."""


@dataclass(frozen=True, eq=False)
class Panels:
    """Stretches of legs, without a kink of a line inside.

    Attributes
    ----------
    leg, piece : (n,)
        The leg, and the piece of the lines' finest grid, that a panel is part of.
    low, high : (n,)
        Times.
    begin, end : (n,)
        The corners on the panel: begin, ..., end - 1.
    order : (n,)
        How many nodes to ask the curves at.
    """

    leg: Ints
    piece: Ints
    low: Array
    high: Array
    begin: Ints
    end: Ints
    order: Ints

    def __len__(self) -> int:
        return len(self.leg)

    @property
    def length(self) -> Array:
        return self.high - self.low

    def __getitem__(self, index: Ints | Bools | slice) -> Panels:
        return Panels(*(v[index] for v in self._arrays()))

    def _arrays(self) -> tuple[Any, ...]:
        return (self.leg, self.piece, self.low, self.high, self.begin, self.end, self.order)

    @staticmethod
    def joined(parts: list[Panels]) -> Panels:
        """All panels of some lists."""
        return Panels(*(np.concatenate(arrays) for arrays in zip(*(p._arrays() for p in parts), strict=True)))

    def with_order(self, order: Ints) -> Panels:
        """The same panels with another number of nodes."""
        return replace(self, order=order)

    def finer(self, corners: Corners, legs: Legs) -> Panels:
        """The same stretches with more nodes, or in halves where there are many already."""
        more = self.order < HIGHEST
        halves = np.nonzero(~more)[0]
        time = 0.5 * (self.low + self.high)[halves]
        raised = self[more].with_order(np.minimum(2 * self.order[more], HIGHEST))
        return Panels.joined([raised, self.cut(halves, time, corners, legs)])

    def cut(self, panel: Ints, time: Array, corners: Corners, legs: Legs) -> Panels:
        """The given panels cut at the given times, which must lie inside them and be sorted by panel and time."""
        which = np.unique(panel)
        counts = np.bincount(panel, minlength=len(self))[which] + 1
        new = self[np.repeat(which, counts)]
        inner = np.ones(len(new), np.bool_)
        inner[np.cumsum(counts) - 1] = False  # the last part of each keeps its end
        low, high, begin, end = new.low.copy(), new.high.copy(), new.begin.copy(), new.end.copy()
        high[inner] = time
        low[1:][inner[:-1]] = time
        path = legs.path[new.leg[inner]]
        at = np.searchsorted(corners.path * 4.0 + corners.time, path * 4.0 + time)
        at = np.clip(at, new.begin[inner], new.end[inner])
        end[inner] = at
        begin[1:][inner[:-1]] = at
        return replace(new, low=low, high=high, begin=begin, end=end)


def first_panels(lines: Lines, corners: Corners) -> Panels:
    """One panel for each piece of the lines' finest grid."""
    grid, legs = lines.grid, lines.legs
    n = len(legs)
    # A corner at the edge of two legs is looked at from the second of them.
    begin = np.searchsorted(corners.path * 4.0 + corners.time, legs.path * 4.0 + legs.low)
    end = np.append(begin[1:], len(corners))
    broken = np.nonzero(corners.broken)[0]
    where = np.full(len(corners.first) - 1, -1)
    where[corners.path[broken]] = broken
    at = where[legs.path]
    end = np.where((at >= 0) & ~legs.late, np.minimum(end, at), end)
    begin = np.where((at >= 0) & legs.late, np.maximum(begin, at + 1), begin)
    whole = Panels(np.arange(n), np.arange(n), legs.low, legs.high, begin, end, np.ones(n, np.int64))
    inside = np.ones(len(grid.time), np.bool_)
    inside[grid.offsets[:-1]] = inside[grid.offsets[1:] - 1] = False
    if inside.any():
        parts = whole.cut(grid.leg[inside], grid.time[inside], corners, legs)
        untouched = whole[~np.isin(whole.leg, grid.leg[inside])]
        whole = Panels.joined([parts, untouched])
        whole = whole[np.lexsort((whole.low, whole.leg))]
    return replace(whole, piece=np.arange(len(whole)))


EAGER = {True: 2 / 3, False: 0.85}
"""What share of the digits wanted the first panels aim at, where lines are straight and where they have kinks."""

LENGTHS = ((0.01, 2), (0.04, 3), (0.12, 5), (0.3, 8), (np.inf, HIGHEST))
"""Nodes of a first panel up to each length, where nothing else is known."""


def first_orders(roles: Roles, lines: Lines, panels: Panels, tol: float) -> tuple[Ints, Ints]:
    """Into how many parts to cut panels at first, and how many nodes the parts get. What is too little shows later."""
    read = {p for c in roles.curves for p in c.parents} & set(roles.line_ends)
    first = [c for c in roles.curves if set(c.parents) & read]
    known = all(c.bends_over_one for c in first)
    if not known:
        parts = np.ceil(panels.length / 0.5).astype(np.int64)
        limits, orders = zip(*LENGTHS, strict=True)
        # by what is left of the path, or, where a kernel is narrow, of its own width
        length = np.maximum(panels.length, 0.1 * kernel_lengths(roles, lines, panels)) / parts
        return parts, np.array(orders)[np.searchsorted(limits, length)]
    left = lines.grid.left[panels.piece]
    way = np.max([kernels.largest_steps(v, left) for n, v in lines.ends.items() if n in read], axis=0)
    # Where there are few panels it pays to begin with too few nodes: what few need more is cheaper than more for all.
    # Estimates from very few nodes would be poor, though.
    digits = np.log(10.0 / tol)
    digits = max(EAGER[lines.straight] * digits, min(digits, 10.0))
    if not roles.head:  # Gauss's rule is exact to twice the degree
        digits = 0.6 * digits if lines.straight else max(0.6 * digits, min(digits, 12.0))

    def order(way: Array) -> Array:
        # tanh has a pole at a distance of pi / 2: nodes gain this factor each. Layers above double the speed, say.
        reach = np.pi / np.maximum(2.0 * way, 1e-9)
        return np.asarray(np.ceil(digits / np.log(reach + np.sqrt(1.0 + reach**2))))

    parts = np.ones(len(panels), np.int64)
    while (more := order(way / parts) > HIGHEST).any() and parts.max() < 64:
        parts[more] += 1
    sizes = np.array([2, 3, 4, 6, 8, 10, HIGHEST])  # few sizes, since panels of one size are done together
    return parts, sizes[np.minimum(np.searchsorted(sizes, order(way / parts)), len(sizes) - 1)]


class Patch:
    """Some panels with the curves known on them: asked at `order` nodes each, interpolated in between."""

    def __init__(self, roles: Roles, lines: Lines, panels: Panels, order: int, rough: bool, careful: bool) -> None:
        self.roles, self.lines, self.panels = roles, lines, panels
        self.read = {p for c in roles.curves for p in c.parents}
        self.rule: Rule = gauss(order)
        self.half = 0.5 * panels.length
        self.scale = 1.0 / np.maximum(self.half, 1e-300)
        self.middle = 0.5 * (panels.low + panels.high)
        time = self.middle[:, None] + self.half[:, None] * self.rule.nodes
        owner = np.repeat(np.arange(len(panels)), order)
        self.values: dict[Node, Array] = {}
        if lines.fan is not None:
            at = lines.fan.at(lines.ends[lines.fan.line], *self._part(owner, time.ravel()))
            self.values = roles.evaluate(roles.curves, at)
        elif roles.curves:
            self.values = roles.evaluate(roles.curves, self.lines_at(owner, time.ravel()))
        ends = [self.values[n].reshape(len(panels), order, n.width) for n in roles.curve_ends]
        empty = np.zeros((len(panels), order, 0))
        # (panels, order, columns of all curve ends)
        self.coefficients: Array = np.matmul(self.rule.to_coefficients, np.concatenate([empty, *ends], axis=2))
        # how far off each column may be anywhere on its panel, (panels, columns)
        last = np.abs(self.coefficients[:, -4:]).transpose(1, 0, 2)
        self.doubt: Array = tails(last, order, rough)[:2].sum(axis=0)
        # how far off each column is seen to be at the ends of its panel, where asked, (panels, columns)
        self.unsure = np.zeros(len(panels), np.bool_)
        self.astray: Array = self._astray() if careful and roles.curve_ends else np.zeros_like(self.doubt)

    def part(self, index: Ints) -> Patch:
        """The same knowledge of some of the panels."""
        out = object.__new__(Patch)
        out.read = self.read
        out.roles, out.lines, out.rule, out.panels = self.roles, self.lines, self.rule, self.panels[index]
        out.half, out.scale, out.middle = self.half[index], self.scale[index], self.middle[index]
        out.coefficients, out.doubt, out.astray = self.coefficients[index], self.doubt[index], self.astray[index]
        out.unsure = self.unsure[index]
        nodes = (index[:, None] * self.rule.size + np.arange(self.rule.size)).ravel()
        out.values = {n: v[nodes] for n, v in self.values.items()}
        return out

    def edges(self) -> tuple[dict[Node, Array], dict[Node, Array]]:
        """The curve ends at the first and at the last moment of every panel, asked of the curves themselves."""
        every = np.arange(len(self.panels))
        first, last = (
            self.roles.evaluate(self.roles.curve_ends, self.lines_at(every, time))
            for time in (self.panels.low, self.panels.high)
        )
        return first, last

    def _astray(self) -> Array:
        """What the interpolation of a curve cannot tell: a step beyond its outermost nodes."""
        sign = (-1.0) ** np.arange(self.rule.size)[None, :, None]
        found = []
        for values, series in zip(self.edges(), ((self.coefficients * sign), self.coefficients), strict=True):
            asked = np.concatenate([values[n] for n in self.roles.curve_ends], axis=1)
            found.append(np.abs(asked - series.sum(axis=1)))
        return np.asarray(np.maximum(*found))

    def _part(self, panel: Ints, time: Array) -> tuple[Ints, Array]:
        grid = self.lines.grid
        left = grid.left[self.panels.piece[panel]]
        start = grid.time[left]
        return left, (time - start) / (grid.time[left + 1] - start)

    def lines_at(self, panel: Ints, time: Array) -> dict[Node, Array]:
        """What curves read, at given times on given panels."""
        left, part = self._part(panel, time)
        return {n: kernels.between_rows(values, left, part) for n, values in self.lines.ends.items() if n in self.read}

    def local(self, panel: Ints, time: Array) -> Array:
        """Times in the panels' own coordinate."""
        return np.asarray((time - self.middle[panel]) * self.scale[panel])

    def at(self, panel: Ints, time: Array) -> dict[Node, Array]:
        """What the head reads of curves and lines, at given times on given panels."""
        if not self.roles.curve_ends:
            return self._head_lines(panel, time)
        series = kernels.series(self.coefficients, panel, self.local(panel, time))
        return self.split(series, self._head_lines(panel, time))

    def range_of(self, joint: Node) -> tuple[float, float]:
        """Bounds of a joint of one column on all panels."""
        if joint in self.roles.curve_ends:
            first = sum(n.width for n in self.roles.curve_ends[: self.roles.curve_ends.index(joint)])
            series = self.coefficients[:, :, first]
            way = np.abs(series[:, 1:]).sum(axis=1)
            return float((series[:, 0] - way).min()), float((series[:, 0] + way).max())
        left = self.lines.grid.left[self.panels.piece]
        ends = np.stack([self.lines.ends[joint][left], self.lines.ends[joint][left + 1]])
        return float(ends.min()), float(ends.max())

    def slopes(self, panel: Ints, time: Array) -> dict[Node, Array]:
        """The derivatives by time of what `at` gives."""
        grid = self.lines.grid
        left = grid.left[self.panels.piece[panel]]
        width = (grid.time[left + 1] - grid.time[left])[:, None]
        lines = {n: (self.lines.ends[n][left + 1] - self.lines.ends[n][left]) / width for n in self.roles.head_lines}
        if not self.roles.curve_ends:
            return lines
        return self.split(kernels.series(self.steepness, panel, self.local(panel, time)), lines)

    def rates(self, panel: Ints, time: Array) -> dict[Node, Array]:
        """As `slopes`, from the gradients of curves at the nodes: what is shared out by them adds up then."""
        lines = {n: v for n, v in self.slopes(panel, time).items() if n in self.roles.head_lines}
        if not self.roles.curve_ends:
            return lines
        return self.split(kernels.series(self._rates, panel, self.local(panel, time)), lines)

    @cached_property
    def _rates(self) -> Array:
        """Coefficients of the derivatives by time, interpolated as the gradients are, (panels, order, columns)."""
        speed = {n: moves / self.panels.length[:, None] for n, moves in self.line_moves.items()}
        out = np.zeros_like(self.coefficients)
        places = [(curve, column) for curve in self.roles.curve_ends for column in range(curve.width)]
        for place, (curve, column) in enumerate(places):
            for line, slope in self.gradient(curve, column).items():
                out[:, :, place] += np.einsum("pow,pw->po", slope, speed[line])
        return np.asarray(np.matmul(self.rule.to_coefficients, out))

    @cached_property
    def steepness(self) -> Array:
        """Coefficients of the derivatives by time."""
        return np.asarray(np.matmul(self.rule.derivative, self.coefficients) * self.scale[:, None, None])

    def _head_lines(self, panel: Ints, time: Array) -> dict[Node, Array]:
        if not self.roles.head_lines:
            return {}
        left, part = self._part(panel, time)
        return {n: kernels.between_rows(self.lines.ends[n], left, part) for n in self.roles.head_lines}

    def split(self, series: Array, lines: dict[Node, Array]) -> dict[Node, Array]:
        """The columns of all curve ends by node, together with some lines."""
        out, first = dict(lines), 0
        for node in self.roles.curve_ends:
            out[node] = series[:, first : first + node.width]
            first += node.width
        return out

    # ------------------------------------------------------------ the way back

    def gradient(self, curve: Node, column: int) -> dict[Node, Array]:
        """Derivatives of one column of a curve end by the lines below it, at all nodes: (panels, order, width) each."""
        cotangent = np.zeros_like(self.values[curve])
        cotangent[:, column] = 1.0
        found = pull_back(self.roles.curves, {curve: cotangent}, self.values)
        return {n: v.reshape(len(self.panels), self.rule.size, -1) for n, v in found.items()}

    @cached_property
    def pieces(self) -> tuple[Ints, Array]:
        """For each panel the point where its piece begins, and the share of the piece that it is."""
        grid = self.lines.grid
        left = grid.left[self.panels.piece]
        return left, self.panels.length / (grid.time[left + 1] - grid.time[left])

    @cached_property
    def line_moves(self) -> dict[Node, Array]:
        """How far each line that curves read moves over each panel, (panels, width)."""
        left, share = self.pieces
        return {n: share[:, None] * (v[left + 1] - v[left]) for n, v in self.lines.ends.items() if n in self.read}

    @cached_property
    def line_sizes(self) -> dict[Node, Array]:
        """How large each line that curves read is about each panel, (panels, width): what its rounding goes by."""
        left = self.lines.grid.left[self.panels.piece]
        return {n: np.abs(v[left]) + np.abs(v[left + 1]) for n, v in self.lines.ends.items() if n in self.read}

    # ------------------------------------------------------------ kinks inside

    def kinks(self) -> tuple[Ints, Array]:
        """Panels that hide kinks of a curve, and the times of these, sorted by panel and time.

        Only the first function that has a kink on a panel is looked at: what lies above it bends there too. Panels on
        which a kink may or may not be, since too few nodes tell what passes it, are marked in `unsure`.
        """
        n, order = len(self.panels), self.rule.size
        found_panel: list[Ints] = [np.zeros(0, np.int64)]
        found_time: list[Array] = [np.zeros(0)]
        open_ = np.ones(n, np.bool_)
        for levels in self.roles.curve_levels:
            z = self.values[levels.node].reshape(n, order, -1)
            coefficients = np.matmul(self.rule.to_coefficients, z)
            sign = (-1.0) ** np.arange(order)[None, :, None]
            ends = (coefficients * sign).sum(axis=1), coefficients.sum(axis=1)
            z = np.concatenate([ends[0][:, None], z, ends[1][:, None]], axis=1)
            u = np.concatenate([[-1.0], self.rule.nodes, [1.0]])
            row, column, level = levels.passed(
                z[:, :-1].reshape(n * (order + 1), -1), z[:, 1:].reshape(n * (order + 1), -1)
            )
            panel, gap = row // (order + 1), row % (order + 1)
            doubt = tails(np.abs(coefficients[:, -4:]).transpose(1, 0, 2), order, False)[:2].sum(axis=0)
            self.unsure[may_pass(levels, z.min(axis=1), z.max(axis=1), doubt)] = True
            more = self._turned(coefficients, z, u, levels)
            panel, column = np.append(panel, more[0]), np.append(column, more[1])
            level, from_, to = np.append(level, more[2]), np.append(u[gap], more[3]), np.append(u[gap + 1], more[4])
            keep = open_[panel]
            panel, column, level, from_, to = panel[keep], column[keep], level[keep], from_[keep], to[keep]
            low = self.middle[panel] + self.half[panel] * from_
            high = self.middle[panel] + self.half[panel] * to
            real, root = self._roots(levels.node, panel, column, level, low, high)
            near = 1e-10 * self.panels.length[panel]
            real &= (root > self.panels.low[panel] + near) & (root < self.panels.high[panel] - near)
            found_panel.append(panel[real])
            found_time.append(root[real])
            open_[panel[real]] = False
        panel, time = np.concatenate(found_panel), np.concatenate(found_time)
        order_ = np.lexsort((time, panel))
        panel, time = panel[order_], time[order_]
        fresh = np.ones(len(panel), np.bool_)
        fresh[1:] = (panel[1:] != panel[:-1]) | (time[1:] - time[:-1] > 1e-10 * self.panels.length[panel[1:]])
        return panel[fresh], time[fresh]

    def _turned(
        self, coefficients: Array, z: Array, u: Array, levels: Levels
    ) -> tuple[Ints, Ints, Array, Array, Array]:
        """Levels that a column passes and passes back between two of its nodes, where it turns.

        Gives the panel, the column, the level, and from where to where it is passed, in the panel's own coordinate.
        """
        steep = np.matmul(self.rule.derivative, coefficients)
        slope = np.matmul(np.polynomial.legendre.legvander(u, self.rule.size - 1), steep)
        panel, gap, column = np.nonzero(slope[:, :-1] * slope[:, 1:] < 0)
        before, after = slope[panel, gap, column], slope[panel, gap + 1, column]
        turn = u[gap] + (u[gap + 1] - u[gap]) * before / (before - after)
        basis = legendre(turn, self.rule.size)
        top = np.einsum("ln,nl->n", basis, coefficients[panel, :, column])
        low, high = np.zeros((2, 2 * len(panel), z.shape[2]))  # columns that do not turn pass nothing
        every, doubled = np.arange(2 * len(panel)), np.tile(column, 2)
        low[every, doubled] = np.concatenate([z[panel, gap, column], z[panel, gap + 1, column]])
        high[every, doubled] = np.tile(top, 2)
        row, column, level = levels.passed(low, high)
        from_, to = np.concatenate([u[gap], turn])[row], np.concatenate([turn, u[gap + 1]])[row]
        return np.tile(panel, 2)[row], column, level, from_, to

    def _roots(
        self, node: Node, panel: Ints, column: Ints, level: Array, low: Array, high: Array
    ) -> tuple[Bools, Array]:
        """Whether and where a column of a curve has a level: asked of the curve itself, not of its interpolant."""
        rows = np.arange(len(panel))

        def function(index: Ints, time: Array) -> Array:
            values = self.roles.evaluate((node,), self.lines_at(panel[index], time))[node]
            return values[np.arange(len(index)), column[index]] - level[index]

        if not len(panel):
            return np.zeros(0, np.bool_), low
        at_low, at_high = function(rows, low), function(rows, high)
        real = np.sign(at_low) * np.sign(at_high) < 0
        noise = np.where(real, 1e-15 * np.maximum(np.abs(at_low), np.abs(at_high)) + 1e-16 * np.abs(level), np.inf)
        root = solve(function, low, high, np.where(real, at_low, -1.0), np.where(real, at_high, 1.0), noise)
        return real, root


def may_pass(levels: Levels, least: Array, most: Array, doubt: Array) -> Ints:
    """Rows on which a node that was seen from `least` to `most` may pass a level beyond, being off by `doubt`."""
    return np.concatenate([levels.passed(least - doubt, least)[0], levels.passed(most, most + doubt)[0]])
