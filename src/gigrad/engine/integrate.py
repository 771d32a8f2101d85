"""The head integrated over the segments of a patch: moments for the continuous credit, scores beside the corners.

The score's change over a segment is known from its ends, so what the quadrature of a segment loses is known too.
Segments that lose too much get more nodes, then are halved.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..graph import Array, Node
from .corners import shapley
from .head import SHORTEST, Crossings, Head, Segments, Settled
from .jumps import Corners
from .paths import Ints
from .quadrature import gauss, legendre
from .settings import Settings

ORDERS = (1, 2, 4, 8)
"""Nodes on a segment."""

ROUNDS = 40
"""How often the segments that lose too much are halved."""


@dataclass(frozen=True, eq=False)
class Sides:
    """The score on either side of every corner of a block, (corners, k) each, and the joints at some of them.

    `place` gives for each corner its row in `joints`, -1 for those that need none.
    """

    before: Array
    after: Array
    place: Ints
    joints: dict[Node, Array]


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
        self.sway = np.zeros((panels, columns, k))
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
        return Moments(self.curves, self.lines, self.lost, self.sway)

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
                place = sides.place[corner[at]]
                for node, table in sides.joints.items():
                    table[place[place >= 0]] = settled.ends[node][side][at[place >= 0]]

    # ------------------------------------------------------------ quadrature

    def _quadrature(self, settled: Settled, last: bool) -> Segments:
        """Add the integrals over segments; gives back the halves of those that must be looked at again."""
        length = settled.segments.high - settled.segments.low
        limits = (2.0 * self.tol**0.5, 0.6 * self.tol**0.25, 2.0 * self.tol**0.125)
        order = np.searchsorted(limits, length)
        again: list[Ints] = []
        for number, size in enumerate(ORDERS):
            index = np.nonzero((order == number) & (length > 0))[0]
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
        rule, n = gauss(size), len(index)
        segments = settled.segments[index]
        half = 0.5 * (segments.high - segments.low)
        each = np.repeat(np.arange(n), size)
        time = ((segments.low + half)[:, None] + half[:, None] * rule.nodes).ravel()
        weight = (half[:, None] * rule.weights).ravel()
        many = segments[each]
        held = {t: v[index][each] for t, v in settled.held.items()}
        values = self.head.at((self.roles.output,), many, time, held)
        if size == 1:
            move = {n: (b[index] - a[index]) for n, (a, b) in settled.ends.items()}
        else:
            move = {n: v * weight[:, None] for n, v in self.patch.slopes(many.panel, time).items()}
        k = self.roles.output.width
        slopes: list[dict[Node, Array]] = []
        missing = settled.last[index] - settled.first[index]
        for output in range(k):
            cotangent = np.zeros_like(values[self.roles.output])
            cotangent[:, output] = 1.0
            back = self.head.back(self.roles.output, cotangent, values)
            slopes.append(back)
            for node, part in back.items():
                missing[:, output] -= (part * move[node]).sum(axis=1).reshape(n, size).sum(axis=1)
        limit = 0.25 * self.allowed[segments.panel] * np.maximum(2 * half, 1 / 4096)[:, None]
        bad = (np.abs(missing) > limit).any(axis=1) & (2 * half > SHORTEST)
        if last and size == ORDERS[-1]:
            bad[:] = False
        good = ~bad
        np.add.at(self.lost, segments.panel[good], np.abs(missing[good]))
        keep = good[each]
        if not keep.all():
            slopes = [{n: v[keep] for n, v in s.items()} for s in slopes]
        self._add(many.panel[keep], time[keep], weight[keep], slopes)
        return index[bad]

    def _add(self, panel: Ints, time: Array, weight: Array, slopes: list[dict[Node, Array]]) -> None:
        """Add point masses: `weight` times the score's derivatives by the joints, at times on panels."""
        panels = len(self.patch.panels)
        basis = legendre(self.patch.local(panel, time), self.size) if self.roles.curve_ends else None
        for output, slope in enumerate(slopes):
            column = 0
            for node in self.roles.curve_ends:
                for j in range(node.width if node in slope else 0):
                    mass = weight * slope[node][:, j]
                    for degree in range(self.size):
                        assert basis is not None
                        self.curves[output, :, degree, column + j] += np.bincount(panel, mass * basis[degree], panels)
                    self._sway(panel, time, slope[node][:, j], column + j, output)
                column += node.width
            for node in self.roles.head_lines:
                for j in range(node.width if node in slope else 0):
                    self.lines[node][output, :, j] += np.bincount(panel, weight * slope[node][:, j], panels)

    def _sway(self, panel: Ints, time: Array, slope: Array, column: int, output: int) -> None:
        order = np.lexsort((time, panel))
        change = np.abs(np.diff(slope[order])) * (np.diff(panel[order]) == 0)
        self.sway[:, column, output] += np.bincount(panel[order][1:], change, len(self.sway))

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

    def _levels(self, number: int):  # type: ignore[no-untyped-def]
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

        def game(_: Ints, past: Array) -> Array:
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
        return shares[0]

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
            slope[output] = back
            self._add(segment.panel, segment.high, np.array([share[output] / speed]), slope)
