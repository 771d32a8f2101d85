"""Kinks of opaque functions, known only by values and gradients, located where the gradient jumps.

Intervals are bisected until the gradient either changes evenly over both halves, and appears smooth, or changes on one
half alone. There the kink is bracketed: the function is extrapolated from the left and from the right, both meet near
the kink, and two points beside the intersection make the next bracket. All intervals of all panels take every step
together, so that the function is evaluated for many points at a time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ...graph import Array
from .. import limits
from ..paths import Bools, Ints
from ..quadrature import gauss
from ..roles import pull_back

if TYPE_CHECKING:
    from .patch import PanelCurves


@dataclass(frozen=True, eq=False)
class OpaqueKinks:
    """Kinks: the panel and the time of each, sorted by both, and the error of one column's credit from the uncertainty
    of that time: (n,) each."""

    panel: Ints
    time: Array
    cost: Array


def find_breaks(patch: PanelCurves, some: Ints, limit: Array) -> OpaqueKinks:
    """Kinks on some panels of a patch.

    `limit` (panels,) is the allowed error of one column's credit from the uncertain time of one kink.
    """
    width = sum(n.width for n in patch.roles.curve_ends) * patch.roles.source.width
    step = max(limits.BREAK_NUMBERS // (limits.BREAK_POINTS_EACH * max(width, 1)), 1)
    found = [
        _Search.begun(patch, some[i : i + step], limit).run(limits.BREAK_NUMBERS // max(width, 1))
        for i in range(0, len(some), step)
    ]
    panel, time, cost = (np.concatenate([getattr(f, name) for f in found]) for name in ("panel", "time", "cost"))
    which = patch.panels.apart(panel, time)
    return OpaqueKinks(panel[which], time[which], cost[which])


class _Points:
    """Values and gradients of curves at times on panels, in the order of evaluation."""

    def __init__(self, patch: PanelCurves) -> None:
        self.patch, self.count = patch, 0
        self._tables: dict[str, Array] = {}

    def __getattr__(self, name: str) -> Array:
        if name not in ("time", "value", "speed", "parts"):
            raise AttributeError(name)
        return self._tables[name]

    def evaluate(self, panel: Ints, time: Array) -> Ints:
        """Evaluate at more times; returns the indices of the new points."""
        for begin in range(0, len(panel), limits.BREAK_POINTS):
            self._add(panel[begin : begin + limits.BREAK_POINTS], time[begin : begin + limits.BREAK_POINTS])
        return np.arange(self.count - len(panel), self.count)

    def _add(self, panel: Ints, time: Array) -> None:
        """Evaluate at some times and append the results to the tables, which grow by doubling."""
        value, parts = curves_at(self.patch, panel, time)
        speed = parts.sum(axis=2)
        new = {"time": time, "value": value, "speed": speed, "parts": parts.reshape(len(time), -1)}
        end = self.count + len(time)
        for name, table in new.items():
            old = self._tables.get(name)
            if old is None or len(old) < end:
                larger = np.empty((max(2 * end, 256), *table.shape[1:]))
                if old is not None:
                    larger[: self.count] = old[: self.count]
                self._tables[name] = larger
            self._tables[name][self.count : end] = table
        self.count = end

    def change(self, a: Ints, b: Ints, drift: Array | None = None) -> Array:
        """The largest change of a gradient component between two points, (n,), less a linear drift (n, numbers)."""
        change = self.parts[b] - self.parts[a]
        if drift is not None:
            change -= drift * (self.time[b] - self.time[a])[:, None]
        return np.asarray(np.abs(change).max(axis=1, initial=0.0))

    def rate(self, a: Ints, b: Ints) -> Array:
        """The difference quotient of the gradient between two points, (n, numbers); 0 if one is -1 for none."""
        out = np.zeros((len(a), self.parts.shape[1]))
        known = (a >= 0) & (b >= 0)  # -1 would read the last row of the tables, which holds no point yet
        a, b = a[known], b[known]
        out[known] = (self.parts[b] - self.parts[a]) / (self.time[b] - self.time[a])[:, None]
        return out


def curves_at(patch: PanelCurves, panel: Ints, time: Array) -> tuple[Array, Array]:
    """All columns of the curve ends at times on panels, (n, columns), and their derivatives by time through each column
    of the rows, (n, columns, p); where lines have kinks, through each column of the lines."""
    roles, lines = patch.roles, patch.lines
    known = patch.lines_at(panel, time)
    values = roles.evaluate(roles.curves, known)
    parts = []
    for node in roles.curve_ends:
        for column in range(node.width):
            cotangent = np.zeros_like(values[node])
            cotangent[:, column] = 1.0
            back = pull_back(roles.curves, {node: cotangent}, values)
            back = {n: v for n, v in back.items() if n in known}
            if lines.straight:
                parts.append(lines.pull_rows(patch.panels.leg[panel], back))
            else:
                speed = {n: patch.line_moves[n][panel] / patch.panels.length[panel, None] for n in known}
                empty = np.zeros_like
                parts.append(np.concatenate([back.get(n, empty(s)) * s for n, s in speed.items()], axis=1))
    return np.concatenate([values[n] for n in roles.curve_ends], axis=1), np.stack(parts, axis=1)


@dataclass(frozen=True, eq=False)
class _Brackets:
    """Intervals that appear to hold one kink.

    Attributes
    ----------
    left, right : (n,)
        Points at both ends.
    before, after : (n,)
        The next points outside, -1 for none.
    jump : (n,)
        The change of the gradient when the interval was found.
    missed : (n,)
        Whether the kink was not where the last step predicted it.
    """

    panel: Ints
    left: Ints
    right: Ints
    before: Ints
    after: Ints
    jump: Array
    missed: Bools

    def __getitem__(self, index: Bools) -> _Brackets:
        return _Brackets(*(v[index] for v in self._arrays()))

    def _arrays(self) -> tuple[Any, ...]:
        return (self.panel, self.left, self.right, self.before, self.after, self.jump, self.missed)

    @staticmethod
    def joined(parts: list[_Brackets]) -> _Brackets:
        return _Brackets(*(np.concatenate(arrays) for arrays in zip(*(p._arrays() for p in parts), strict=True)))


_NONE = np.zeros(0, np.int64)


class _Search:
    """The search for kinks on some panels."""

    def __init__(self, patch: PanelCurves, limit: Array) -> None:
        self.points = _Points(patch)
        self.limit, self.panels = limit, patch.panels
        self.brackets = _Brackets(*(_NONE,) * 5, np.zeros(0), np.zeros(0, np.bool_))
        self.found: list[tuple[Ints, Array, Array]] = [(_NONE, np.zeros(0), np.zeros(0))]
        self.open = (_NONE, _NONE, _NONE)  # intervals to be bisected: panel, left, right

    @classmethod
    def begun(cls, patch: PanelCurves, some: Ints, limit: Array) -> _Search:
        """A search with a bracket on panels with one kink, and all of the others to be bisected."""
        search = cls(patch, limit)
        some = some[~search._single(patch, some)]
        ends = [search.points.evaluate(some, time) for time in (patch.panels.low[some], patch.panels.high[some])]
        search.open = (some, ends[0], ends[1])
        return search

    def _single(self, patch: PanelCurves, some: Ints) -> Bools:
        """Which panels have one kink by their nodes' residuals, too small for bisection; adds brackets for them."""
        size, points = patch.rule.size, self.points
        time = patch.middle[some, None] + patch.half[some, None] * patch.rule.nodes
        at = points.evaluate(np.repeat(some, size), time.ravel()).reshape(len(some), size)
        rest, steps = _leftovers(size)
        left = np.matmul(rest, points.parts[at])  # (panels, size, numbers)
        heights = np.matmul(steps, left)
        told, total = np.square(heights).sum(axis=2), np.square(left).sum(axis=(1, 2))
        gap = told.argmax(axis=1)
        one = np.asarray(told.max(axis=1) > (1.0 - limits.SINGLE_KINK**2) * total)
        places = np.concatenate([np.full((len(some), 1), -1), at, np.full((len(some), 1), -1)], axis=1)
        rows = np.nonzero(one)[0]
        before, a, b, after = (places[rows, gap[rows] + i] for i in range(4))
        self._bracket(some[rows], a, b, before, after)
        return one

    def run(self, most: int) -> OpaqueKinks:
        """Search until all intervals are settled, or `most` points have been evaluated."""
        points = self.points
        for _ in range(limits.BREAK_STEPS):
            self._close()
            panel, a, b = self.open
            brackets = self.brackets
            count, pairs = len(panel), len(brackets.panel)
            if not count + pairs or points.count > most:
                break
            low, high = self._beside()
            added = points.evaluate(
                np.concatenate([panel, brackets.panel, brackets.panel]),
                np.concatenate([0.5 * (points.time[a] + points.time[b]), low, high]),
            )
            self.open, self.brackets = (_NONE, _NONE, _NONE), brackets[np.zeros(pairs, np.bool_)]
            self._halved(panel, a, added[:count], b)
            self._narrowed(brackets, added[count : count + pairs], added[count + pairs :])
        panel, time, cost = (np.concatenate(parts) for parts in zip(*self.found, strict=True))
        return OpaqueKinks(panel, time, cost)

    def _close(self) -> None:
        """Record the brackets that are short enough, and drop those on which the gradient turned out smooth."""
        points, b = self.points, self.brackets
        length = points.time[b.right] - points.time[b.left]
        smooth = points.change(b.left, b.right, self._drift(b)) < limits.SINGLE_KINK * b.jump
        cost = 0.5 * length * points.change(b.left, b.right)
        rise = 0.5 * length * np.abs(points.speed[b.right] - points.speed[b.left]).max(axis=1, initial=0.0)
        done = ~smooth & ((np.maximum(cost, rise) <= self.limit[b.panel]) | (length <= 4.0 * limits.SHORTEST_BRACKET))
        self.found.append((b.panel[done], 0.5 * (points.time[b.left] + points.time[b.right])[done], cost[done]))
        self.brackets = b[~(smooth | done)]

    def _drift(self, b: _Brackets) -> Array:
        """The rate of change of the gradient beside brackets, (n, numbers): its smooth part inside of them."""
        sides = 1.0 * (b.before >= 0) + (b.after >= 0)
        both = self.points.rate(b.before, b.left) + self.points.rate(b.right, b.after)
        return np.asarray(both / np.maximum(sides, 1.0)[:, None])

    def _beside(self) -> tuple[Array, Array]:
        """Two times in every bracket, close to where its kink is expected."""
        points, b = self.points, self.brackets
        low, high = points.time[b.left], points.time[b.right]
        length = high - low
        straight, curved = self._meeting(bent=False), self._meeting(bent=True)
        known = (b.before >= 0) & (b.after >= 0)
        guess = np.where(known, curved, straight)
        width = np.where(known & ~b.missed, 0.1 * np.abs(curved - straight), 0.1 * length)
        width = np.clip(width, limits.SHORTEST_BRACKET, 0.1 * length)
        return np.maximum(guess - width, low + 0.2 * width), np.minimum(guess + width, high - 0.2 * width)

    def _meeting(self, bent: bool) -> Array:
        """The time at which the extrapolations from both sides of each bracket meet, for the column that changes most.

        With `bent` they are quadratic, with the curvature from the points outside.
        """
        points, b = self.points, self.brackets
        rows = np.arange(len(b.panel))
        column = np.abs(points.speed[b.right] - points.speed[b.left]).argmax(axis=1) if len(rows) else _NONE
        time = points.time

        def speed(at: Ints) -> Array:
            return np.asarray(points.speed[at, column])

        # The left side less the right one is low + slope t + turn t^2.
        length = time[b.right] - time[b.left]
        low = points.value[b.left, column] - points.value[b.right, column] + speed(b.right) * length
        slope, turn = speed(b.left) - speed(b.right), np.zeros(len(rows))
        with np.errstate(all="ignore"):
            if bent:
                left = (speed(b.left) - speed(b.before)) / (time[b.left] - time[b.before])
                right = (speed(b.after) - speed(b.right)) / (time[b.after] - time[b.right])
                low, slope, turn = low - 0.5 * right * length**2, slope + right * length, 0.5 * (left - right)
            root = -0.5 * (slope + np.copysign(np.sqrt(np.maximum(slope**2 - 4.0 * turn * low, 0.0)), slope))
            near, far = (np.nan_to_num(way / length, nan=-1.0) for way in (low / root, root / turn))
        part = np.where((near > 0.0) & (near < 1.0), near, np.where((far > 0.0) & (far < 1.0), far, 0.5))
        return np.asarray(time[b.left] + part * length)

    def _halved(self, panel: Ints, a: Ints, middle: Ints, b: Ints) -> None:
        """Classify bisected intervals by their middles: smooth, with one kink on one half, or to be bisected again."""
        points = self.points
        whole, first, last = points.change(a, b), points.change(a, middle), points.change(middle, b)
        mean = 0.5 * (points.parts[a] + points.parts[b])
        uneven = np.abs(points.parts[middle] - mean).max(axis=1, initial=0.0)
        size = np.abs(mean).max(axis=1, initial=0.0)
        rough = (uneven > limits.SMOOTH_GRADIENT * whole) & (uneven > limits.GRADIENT_ROUNDING * size)
        most, least = np.maximum(first, last), np.minimum(first, last)
        one = rough & (least < limits.SINGLE_KINK * most)
        left = one & (first > last)
        right = one & ~left
        none = np.full(len(panel), -1)
        self._bracket(panel[left], a[left], middle[left], none[left], b[left])
        self._bracket(panel[right], middle[right], b[right], a[right], none[right])
        again_left = (rough & ~one) | right
        again_right = (rough & ~one) | left
        self._again(panel[again_left], a[again_left], middle[again_left])
        self._again(panel[again_right], middle[again_right], b[again_right])

    def _bracket(self, panel: Ints, left: Ints, right: Ints, before: Ints, after: Ints) -> None:
        new = _Brackets(panel, left, right, before, after, np.zeros(len(panel)), np.zeros(len(panel), np.bool_))
        new = replace(new, jump=self.points.change(left, right, self._drift(new)))
        self.brackets = _Brackets.joined([self.brackets, new])

    def _again(self, panel: Ints, a: Ints, b: Ints) -> None:
        """Bisect intervals again if the changes on them matter for their panels."""
        points = self.points
        matters = points.change(a, b) * self.panels.length[panel] > self.limit[panel]
        matters &= points.time[b] - points.time[a] > limits.SHORTEST_BRACKET
        panels, lefts, rights = self.open
        self.open = (
            np.concatenate([panels, panel[matters]]),
            np.concatenate([lefts, a[matters]]),
            np.concatenate([rights, b[matters]]),
        )

    def _narrowed(self, brackets: _Brackets, low: Ints, high: Ints) -> None:
        """Keep the part of each bracket on which the gradient changes most; bisect the others if they may have kinks of
        their own."""
        points = self.points
        edges = np.stack([brackets.before, brackets.left, low, high, brackets.right, brackets.after])
        drift = self._drift(brackets)
        changes = np.stack([points.change(edges[i], edges[i + 1], drift) for i in (1, 2, 3)])
        which = changes.argmax(axis=0)
        rows = np.arange(len(which))
        left, right, before, after = (edges[which + i, rows] for i in (1, 2, 0, 3))
        new = _Brackets(brackets.panel, left, right, before, after, brackets.jump, which != 1)
        self.brackets = _Brackets.joined([self.brackets, new])
        for part, outside in ((0, (0, 1)), (1, None), (2, (4, 5))):
            a, b = edges[part + 1], edges[part + 2]
            more = changes[part] > limits.SINGLE_KINK * changes.max(axis=0)
            if outside is not None:
                more |= self._departs(a, b, edges[outside[0]], edges[outside[1]])
            more &= which != part
            self._again(brackets.panel[more], a[more], b[more])

    def _departs(self, a: Ints, b: Ints, c: Ints, d: Ints) -> Bools:
        """Whether the gradient's rate of change from a to b differs from that from c to d, beside it, or is unknown.

        One of c and d may be -1 for no point.
        """
        points = self.points
        here = points.parts[b] - points.parts[a]
        there = points.rate(c, d) * (points.time[b] - points.time[a])[:, None]
        most = np.maximum(np.abs(here).max(axis=1), np.abs(there).max(axis=1))
        return np.asarray((c < 0) | (d < 0) | (np.abs(here - there).max(axis=1) > limits.KINKED_GRADIENT * most))


@cache
def _leftovers(size: int) -> tuple[Array, Array]:
    """The projection onto residuals of polynomial fits at the nodes of a rule, and the residuals of step functions.

    Returns the projection (size, size), and the residuals of a step in each gap between nodes, (gaps, size), of norm 1.
    """
    nodes = gauss(size).nodes
    smooth, _ = np.linalg.qr(np.polynomial.legendre.legvander(nodes, size - 4))
    rest = np.eye(size) - smooth @ smooth.T
    steps = np.tril(np.ones((size, size)), -1)[:, :-1].T @ rest  # 1 after the gap
    return rest, steps / np.linalg.norm(steps, axis=1)[:, None]
