"""The head integrated over the segments of a patch: moments for the continuous credit, scores beside the corners.

The score's change over a segment is known from its ends, so what the quadrature of a segment loses is known too.
Segments that lose too much get more nodes, then are halved.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..graph import Array, Node
from .corners import shapley
from .games import Sides
from .head import SHORTEST, Crossings, Head, Segments, Settled
from .jumps import Corners
from .paths import Bools, Ints
from .quadrature import gauss, legendre
from .roles import Levels
from .settings import Settings

ORDERS = (1, 2, 4, 8)
"""Nodes on a segment."""

ROUNDS = 40
"""How often the segments that lose too much are halved."""


@dataclass(frozen=True, eq=False)
class Moments:
    """What the continuous credit needs to know of the head on each panel of a patch.

    Attributes
    ----------
    curves : (k, panels, order + 2, columns of all curve ends)
        Integrals over the panel of the score's derivative by a curve times P_l.
    lines : dict of (k, panels, width)
        Integrals of the score's derivative by a line.
    lost : (panels, k)
        What the quadrature of the segments lost, and jumps that could not be shared out.
    sway : (panels, columns of all curve ends, k)
        How much the derivative by a curve varies on the panel: what an error of that curve costs.
    """

    curves: Array
    lines: dict[Node, Array]
    lost: Array
    sway: Array


class Integral:
    """The integration of one patch."""

    def __init__(self, head: Head, corners: Corners, sides: Sides, allowed: Array, settings: Settings) -> None:
        self.head, self.corners, self.sides, self.allowed = head, corners, sides, allowed
        self.tol, self.seed = settings.tol, settings.seed
        roles, patch = head.roles, head.patch
        self.roles, self.patch = roles, patch
        panels, k = len(patch.panels), roles.output.width
        columns = sum(n.width for n in roles.curve_ends)
        self.size = patch.rule.size + 2
        self.curves = np.zeros((k, panels, self.size, columns))
        self.lines = {n: np.zeros((k, panels, n.width)) for n in roles.head_lines}
        self.lost = np.zeros((panels, k))
        self.sways: dict[tuple[int, int], list[tuple[Ints, Array, Array]]] = {}
        self.crossings = Crossings()

    def run(self) -> Moments:
        """All moments of the patch; the sides of its corners are written to `sides`."""
        segments = self._first()
        kept: list[Settled] = []
        for turn in range(ROUNDS):
            again: list[Segments] = []
            for settled in self.head.settle(segments, self.crossings):
                if turn == 0:
                    self._corners(settled)
                if self.roles.head_trees:
                    kept.append(settled)
                again.append(self._quadrature(settled, last=turn == ROUNDS - 1))
            if not again:
                break
            segments = Segments.joined(again)
        self._cross(kept)
        k, panels, _, columns = self.curves.shape
        sway = np.zeros((panels, columns, k))
        for (column, output), parts in self.sways.items():
            sway[:, column, output] = _sway(parts, panels)
        return Moments(self.curves, self.lines, self.lost, sway)

    def _first(self) -> Segments:
        segments = Segments.of(self.patch, self.corners)
        if not self.roles.head_levels:
            return segments
        # A level that is passed and passed back goes unseen at the ends: long segments are looked at in parts.
        share = (segments.high - segments.low) / self.patch.panels.length[segments.panel]
        parts = np.ceil(8 * share).astype(np.int64)
        cut = np.repeat(np.arange(len(segments)), np.maximum(parts - 1, 0))
        step = np.arange(len(cut)) - np.searchsorted(cut, cut) + 1
        time = segments.low[cut] + (segments.high - segments.low)[cut] * step / parts[cut]
        uncut = segments[np.nonzero(parts < 2)[0]]
        return Segments.joined([uncut, segments.cut(cut, time, np.full(len(cut), -1))])

    def _corners(self, settled: Settled) -> None:
        segments, sides = settled.segments, self.sides
        for corner, values, side in ((segments.left, settled.first, 0), (segments.right, settled.last, 1)):
            at = np.nonzero(corner >= 0)[0]
            (sides.before if side else sides.after)[corner[at]] = values[at]
            if side:
                self._joints(settled, at, sides.place[corner[at]])

    def _joints(self, settled: Settled, at: Ints, place: Ints) -> None:
        at, place = at[place >= 0], place[place >= 0]
        doubts = self.patch.split(self.patch.doubt[settled.segments.panel[at]], {})
        for node, table in self.sides.joints.items():
            table[place] = settled.ends[node][1][at]
            if node in doubts:
                self.sides.doubts[node][place] = doubts[node]

    # ------------------------------------------------------------ quadrature

    def _quadrature(self, settled: Settled, last: bool) -> Segments:
        """Add the integrals over segments; gives back the halves of those that must be looked at again."""
        length = settled.segments.high - settled.segments.low
        limits = (2.0 * self.tol**0.5, 0.6 * self.tol**0.25, 2.0 * self.tol**0.125)
        order = np.searchsorted(limits, length)
        again: list[Ints] = []
        for number, size in enumerate(ORDERS):
            index = np.nonzero(order == number)[0]  # empty ones too: a corner at the very end needs its slopes
            if len(index):
                bad = self._rule(settled, index, size, last)
                if number + 1 < len(ORDERS):
                    order[bad] = number + 1
                else:
                    again.append(bad)
        halves = np.concatenate(again) if again else np.zeros(0, np.int64)
        middle = 0.5 * (settled.segments.low + settled.segments.high)
        halves.sort()
        return settled.segments.cut(halves, middle[halves], np.full(len(halves), -1))

    def _rule(self, settled: Settled, index: Ints, size: int, last: bool) -> Ints:
        """Integrate some segments with `size` nodes each; gives back those that lost too much."""
        n, output = len(index), self.roles.output
        segments = settled.segments[index]
        time, each = _spread(segments, gauss(size).nodes)
        held = {t: v[index][each] for t, v in settled.held.items()}
        values = self.head.at((output,), segments[each], time, held)
        slopes: list[dict[Node, Array]] = []  # for each output the score's derivatives by the joints, (n, size, width)
        for k in range(output.width):
            cotangent = np.zeros_like(values[output])
            cotangent[:, k] = 1.0
            back = self.head.back(output, cotangent, values)
            slopes.append({node: part.reshape(n, size, -1) for node, part in back.items()})
        masses = Steady(self, settled, index) if size == 1 else Bent(self, segments, size)
        missing = settled.last[index] - settled.first[index]
        for k, slope in enumerate(slopes):
            missing[:, k] -= masses.change(slope)
        length = segments.high - segments.low
        limit = 0.25 * self.allowed[segments.panel] * np.maximum(length, 1 / 4096)[:, None]
        bad = (np.abs(missing) > limit).any(axis=1) & (length > SHORTEST)
        if last and size == ORDERS[-1]:
            bad[:] = False
        good = np.nonzero(~bad)[0]
        np.add.at(self.lost, segments.panel[good], np.abs(missing[good]))
        self._add(masses, good, slopes)
        return index[bad]

    def _add(self, masses: Masses, good: Ints, slopes: list[dict[Node, Array]]) -> None:
        """Add the integrals of the score's derivatives, times P_l for curves, over segments."""
        panels, panel, middle = len(self.patch.panels), masses.panel[good], masses.middle[good]
        for k, slope in enumerate(slopes):
            column = 0
            for node in self.roles.curve_ends:
                if node in slope:
                    moments = masses.moments(slope[node], self.size)[good]  # (n, degrees, width)
                    for j in range(node.width):
                        for degree in range(self.size):
                            self.curves[k, :, degree, column + j] += np.bincount(panel, moments[:, degree, j], panels)
                        self.sways.setdefault((column + j, k), []).append((panel, middle, slope[node][good, :, j]))
                column += node.width
            for node in self.roles.head_lines:
                if node in slope:
                    total = masses.moments(slope[node], 1)[good, 0]
                    for j in range(node.width):
                        self.lines[node][k, :, j] += np.bincount(panel, total[:, j], panels)

    # ------------------------------------------------------------ trees over something continuous

    def _cross(self, kept: list[Settled]) -> None:
        """Share out the jumps of trees whose input passes a threshold, along the normal of what passes it."""
        count = len(self.crossings.time)
        if not count:
            return
        k = self.roles.output.width
        jump = np.zeros((count, k))
        before: dict[int, tuple[Settled, int]] = {}
        after: dict[int, tuple[Settled, int]] = {}
        for settled in kept:
            for marks, sign, where, values in (
                (settled.segments.enter, 1.0, after, settled.first),
                (settled.segments.leave, -1.0, before, settled.last),
            ):
                for i in np.nonzero(marks >= 0)[0].tolist():
                    jump[marks[i]] += sign * values[i]
                    where[int(marks[i])] = (settled, i)
        for mark in range(count):
            players = sorted(
                {(id(self._levels(number).node), column) for number, column in self.crossings.columns[mark]}
            )
            nodes = {
                id(self._levels(number).node): self._levels(number).node for number, _ in self.crossings.columns[mark]
            }
            named = [(nodes[i], column) for i, column in players]
            shares = self._shares(named, before[mark], after[mark]) if len(named) > 1 else jump[mark][None]
            for (node, column), share in zip(named, shares, strict=True):
                self._along(node, column, share, *before[mark])

    def _levels(self, number: int) -> Levels:
        return self.roles.head_levels[number]

    def _shares(
        self, players: list[tuple[Node, int]], before: tuple[Settled, int], after: tuple[Settled, int]
    ) -> Array:
        """Shapley shares (players, k) of columns that pass thresholds at one time."""
        middles = []
        for settled, i in (before, after):
            segment = settled.segments[np.array([i])]
            middles.append(
                self.head.at(
                    tuple(n for n, _ in players),
                    segment,
                    0.5 * (segment.low + segment.high),
                    {t: v[[i]] for t, v in settled.held.items()},
                )
            )
        segment = before[0].segments[np.array([before[1]])]

        def game(_: Ints, past: Bools) -> Array:
            many = segment[np.zeros(len(past), np.int64)]
            held: dict[Node, Array] = {}
            for tree in self.roles.head_trees:
                inputs = self.head.at((tree.source,), many, many.high, held)[tree.source].copy()
                for j, (node, column) in enumerate(players):
                    if node is tree.source:
                        inputs[:, column] = np.where(
                            past[:, j], middles[1][node][0, column], middles[0][node][0, column]
                        )
                held[tree] = tree.forward(inputs)
            return self.head.at((self.roles.output,), many, many.high, held)[self.roles.output]

        shares, error = shapley(game, np.zeros(1, np.int64), len(players), self.roles.output.width, self.seed)
        self.lost[segment.panel[0]] += error[0]
        return np.asarray(shares[0])

    def _along(self, node: Node, column: int, share: Array, settled: Settled, i: int) -> None:
        segment = settled.segments[np.array([i])]
        held = {t: v[[i]] for t, v in settled.held.items()}
        values = self.head.at((node, self.roles.output), segment, segment.high, held)
        cotangent = np.zeros_like(values[node])
        cotangent[0, column] = 1.0
        back = self.head.back(node, cotangent, values)
        slopes = self.patch.slopes(segment.panel, segment.high)
        speed = sum(float((part * slopes[n]).sum()) for n, part in back.items())
        if speed == 0.0:  # it touches the threshold without a direction: nobody can be credited
            self.lost[segment.panel[0]] += np.abs(share)
            return
        for output in range(len(share)):
            slope: list[dict[Node, Array]] = [{} for _ in share]
            slope[output] = {n: part[:, None] for n, part in back.items()}
            self._add(Point(self, segment, share[output] / speed), np.zeros(1, np.int64), slope)


class Masses:
    """How the score's derivatives on some segments add up to moments of their panels."""

    def __init__(self, integral: Integral, segments: Segments) -> None:
        self.patch, self.segments = integral.patch, segments
        self.panel, self.middle = segments.panel, 0.5 * (segments.low + segments.high)

    def moments(self, slope: Array, degrees: int) -> Array:
        """Integrals over each segment of `slope` (n, nodes, width) times P_0, P_1, ...: (n, degrees, width)."""
        raise NotImplementedError

    def change(self, slope: dict[Node, Array]) -> Array:
        """What the score changes by on each segment, by its derivatives, (n,)."""
        raise NotImplementedError


class Steady(Masses):
    """Short segments: the derivatives are taken as constant, the polynomials are integrated exactly."""

    def __init__(self, integral: Integral, settled: Settled, index: Ints) -> None:
        super().__init__(integral, settled.segments[index])
        self.moves = {n: last[index] - first[index] for n, (first, last) in settled.ends.items()}

    def moments(self, slope: Array, degrees: int) -> Array:
        segments, patch = self.segments, self.patch
        if degrees == 1:
            return np.asarray(slope * (segments.high - segments.low)[:, None, None])
        ends = [legendre(patch.local(self.panel, t), degrees + 1) for t in (segments.low, segments.high)]
        rise = ends[1] - ends[0]
        integral = np.empty((degrees, len(rise[0])))
        integral[0] = rise[1]
        for degree in range(1, degrees):
            integral[degree] = (rise[degree + 1] - rise[degree - 1]) / (2 * degree + 1)
        integral *= patch.half[self.panel]
        return np.asarray(integral.T[:, :, None] * slope)

    def change(self, slope: dict[Node, Array]) -> Array:
        out = np.zeros(len(self.panel))
        for node, part in slope.items():
            out += (part[:, 0] * self.moves[node]).sum(axis=1)
        return out


class Bent(Masses):
    """Longer segments: the derivatives are interpolated from `size` nodes, and the product is integrated exactly."""

    def __init__(self, integral: Integral, segments: Segments, size: int) -> None:
        super().__init__(integral, segments)
        self.rule = gauss(size + (integral.size + 1) // 2)
        basis = np.polynomial.legendre.legvander(self.rule.nodes, size - 1)
        self.refine = basis @ gauss(size).to_coefficients  # from values at `size` nodes to those at the rule's
        self.time, self.each = _spread(segments, self.rule.nodes)
        half = 0.5 * (segments.high - segments.low)
        self.weight = half[:, None] * self.rule.weights

    def moments(self, slope: Array, degrees: int) -> Array:
        mass = np.matmul(self.refine, slope) * self.weight[:, :, None]  # (n, nodes, width)
        basis = legendre(self.patch.local(self.panel[self.each], self.time), degrees)
        out: Array = np.matmul(basis.reshape(degrees, len(self.panel), -1).transpose(1, 0, 2), mass)
        return out

    def change(self, slope: dict[Node, Array]) -> Array:
        speed = self.patch.slopes(self.panel[self.each], self.time)
        out = np.zeros(len(self.panel))
        for node, part in slope.items():
            mass = np.matmul(self.refine, part) * self.weight[:, :, None]
            out += (mass * speed[node].reshape(mass.shape)).sum(axis=(1, 2))
        return out


class Point(Masses):
    """All of the derivative at the end of one segment: a jump."""

    def __init__(self, integral: Integral, segment: Segments, amount: float) -> None:
        super().__init__(integral, segment)
        self.amount = amount

    def moments(self, slope: Array, degrees: int) -> Array:
        basis = legendre(self.patch.local(self.panel, self.segments.high), degrees)
        return np.asarray(self.amount * basis.T[:, :, None] * slope)


def _spread(segments: Segments, nodes: Array) -> tuple[Array, Ints]:
    """Times of a rule's nodes on every segment, (n * nodes,), and the segment of each."""
    half = 0.5 * (segments.high - segments.low)
    time = (segments.low + half)[:, None] + half[:, None] * nodes
    return time.ravel(), np.repeat(np.arange(len(segments)), len(nodes))


def _sway(parts: list[tuple[Ints, Array, Array]], panels: int) -> Array:
    """How much a derivative varies on each panel: inside segments, and from one to the next.

    `parts` lists segments: their panels, their middles, and the derivative at their nodes.
    """
    panel = np.concatenate([p for p, _, _ in parts])
    order = np.lexsort((np.concatenate([t for _, t, _ in parts]), panel))
    panel = panel[order]
    first = np.concatenate([s[:, 0] for _, _, s in parts])[order]
    last = np.concatenate([s[:, -1] for _, _, s in parts])[order]
    inside = np.concatenate([np.abs(np.diff(s, axis=1)).sum(axis=1) for _, _, s in parts])[order]
    between = np.abs(first[1:] - last[:-1]) * (panel[1:] == panel[:-1])
    steps = np.bincount(panel[1:], between, panels).astype(np.float64)
    return steps + np.bincount(panel, inside, panels)
