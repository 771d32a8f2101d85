"""Panels: short parts of a leg on which a few nodes describe the curves, and the initial cuts of legs into panels."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ... import kernels
from ...graph import Array, Opaque
from .. import limits
from ..paths import Bools, Ints
from ..roles import Roles
from .bumps import kernel_lengths
from .jumps import Corners
from .lines import Legs, Lines


@dataclass(frozen=True, eq=False)
class Panels:
    """Parts of legs without a kink of a line inside.

    Attributes
    ----------
    leg, piece : (n,)
        The leg, and the piece of the lines' finest grid, that a panel is part of.
    low, high : (n,)
        Times.
    begin, end : (n,)
        The corners on the panel: begin, ..., end - 1.
    order : (n,)
        The number of nodes at which the curves are evaluated.
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

    def apart(self, panel: Ints, time: Array) -> Ints:
        """Which of some kinks cut their panels, by panel and time: each once, and none at an end of its panel."""
        near = limits.SAME_CUT * self.length[panel]
        inside = np.nonzero((time > self.low[panel] + near) & (time < self.high[panel] - near))[0]
        order = inside[np.lexsort((time[inside], panel[inside]))]
        fresh = np.ones(len(order), np.bool_)
        fresh[1:] = (np.diff(panel[order]) != 0) | (np.diff(time[order]) > near[order][1:])
        return order[fresh]

    def with_order(self, order: Ints) -> Panels:
        """The same panels with another number of nodes."""
        return replace(self, order=order)

    def finer(self, corners: Corners, legs: Legs, most: int) -> Panels:
        """The refined panels: with more nodes, or halved if there are as many already as there may be."""
        more = self.order < most
        halves = np.nonzero(~more)[0]
        time = 0.5 * (self.low + self.high)[halves]
        raised = self[more].with_order(np.minimum(2 * self.order[more], most))
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
    """One panel for each piece of the lines' finest grid, with the corners that lie on it."""
    grid, legs = lines.grid, lines.legs
    begin, end = corners.on(legs)
    pieces = len(grid.left)
    first, last = kernels.piece_corners(grid.offsets, grid.time, begin, end, corners.time)
    low, high = grid.time[grid.left], grid.time[grid.left + 1]
    return Panels(grid.leg[grid.left], np.arange(pieces), low, high, first, last, np.ones(pieces, np.int64))


def first_orders(roles: Roles, lines: Lines, panels: Panels, tol: float, most: int) -> tuple[Ints, Ints]:
    """The initial number of parts of each panel, and of nodes of each part, at most `most`; too few are refined."""
    read = {p for c in roles.curves for p in c.parents} & set(roles.line_ends)
    first = [c for c in roles.curves if set(c.parents) & read]
    known = all(c.bends_over_one for c in first)
    if not known:
        parts = np.ceil(panels.length / 0.5).astype(np.int64)
        lengths, orders = zip(*limits.FIRST_NODES, strict=True)
        # An opaque function may have kinks, which only many nodes show.
        rough = any(isinstance(c, Opaque) for c in roles.curves)
        most = most if rough else max(6, math.ceil(limits.NODES_PER_DIGIT * math.log10(10.0 / tol)))
        # by the length relative to the path or, for a narrow kernel, to its own width
        length = np.maximum(panels.length, 0.1 * kernel_lengths(roles, lines, panels)) / parts
        return parts, np.minimum(np.array(orders)[np.searchsorted(lengths, length)], most)
    left = lines.grid.left[panels.piece]
    way = np.max([kernels.largest_steps(v, left) for n, v in lines.ends.items() if n in read], axis=0)
    # For few panels it pays to begin with too few nodes: refining some is cheaper than more nodes for all. Error
    # estimates from very few nodes would be poor, though.
    digits = np.log(10.0 / tol)
    digits = max(limits.FIRST_DIGITS[lines.straight] * digits, min(digits, 10.0))
    if not roles.head:  # Gauss's rule is exact to twice the degree
        digits = 0.6 * digits if lines.straight else max(0.6 * digits, min(digits, 12.0))

    def order(way: Array) -> Array:
        # tanh has a pole at a distance of pi / 2: nodes gain this factor each. Layers above double the speed, say.
        reach = np.pi / np.maximum(2.0 * way, 1e-9)
        return np.asarray(np.ceil(digits / np.log(reach + np.sqrt(1.0 + reach**2))))

    parts = np.ones(len(panels), np.int64)
    while (more := order(way / parts) > most).any() and parts.max() < 64:
        parts[more] += 1
    sizes = np.array([2, 3, 4, 6, 8, 10, most] if most > 10 else [most])  # few: panels of one size are done together
    return parts, sizes[np.minimum(np.searchsorted(sizes, order(way / parts)), len(sizes) - 1)]
