"""Trees over continuous scores: they jump where a score crosses a threshold, and the jump is credited by its gradient.

A tree that reads the score of a net has oblique boundaries. Where the inner score c crosses a threshold, the credit of
a variable is `jump * (dc/dx_i * move_i) / (dc/da)`: its share of the speed of the crossing. Several columns of such
scores that cross thresholds at one time first share the jump by Shapley value.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from ...graph import Array, Node, TreeEnsemble
from .. import limits
from ..corners import FunctionGame, solve
from ..paths import Bools, Ints
from ..settings import Settings
from .breaks import curves_at
from .head import Head
from .line_parts import LineParts
from .segments import Crossings, SmoothSegments

if TYPE_CHECKING:
    from .moments import Moments

Place = tuple[SmoothSegments, int]
"""A segment: the list that it is in, and its index there."""


def as_met(tree: TreeEnsemble, inputs: Array) -> Array:
    """The inputs of a tree less a bound on their rounding: values equal to a threshold up to rounding go left."""
    numeric = np.unique(tree.feature[(tree.feature >= 0) & (tree.category_set < 0)])
    out = inputs.copy()
    out[:, numeric] -= 2.0 * limits.LEVEL_MARGIN * np.abs(inputs[:, numeric])
    return out


def share_out(
    head: Head, crossings: Crossings, kept: list[SmoothSegments], moments: Moments, settings: Settings
) -> None:
    """Add the jumps at all crossings to the moments: each is divided over the lines and curves that cause it."""
    before, after = _neighbours(kept)
    found: dict[tuple[Node, int], _Jumps] = {}  # by the score that crosses, and the list of the segment before
    for mark, columns in enumerate(crossings.columns):
        levels = [head.roles.head_levels[number] for number, _ in columns]
        players = list(dict.fromkeys((one.node, column) for one, (_, column) in zip(levels, columns, strict=True)))
        (left, i), (right, j) = before[mark], after[mark]
        if len(players) > 1:
            shares, error = _shares(head, players, before[mark], after[mark], settings)
            moments.lost[crossings.panel[mark]] += error
        else:
            shares = (right.first[j] - left.last[i])[None]
        for (node, column), share in zip(players, shares, strict=True):
            jumps = found.setdefault((node, id(left)), _Jumps(node, left))
            jumps.segment.append(i)
            jumps.column.append(column)
            jumps.share.append(share)
    for jumps in found.values():
        for begin in range(0, len(jumps.segment), limits.CROSSING_BLOCK):
            _along(head, jumps, slice(begin, begin + limits.CROSSING_BLOCK), moments)


@dataclass(frozen=True, eq=False)
class _Jumps:
    """Jumps where columns of one score cross thresholds, each at the end of a segment of one list."""

    node: Node
    settled: SmoothSegments
    segment: list[int] = field(default_factory=list)
    column: list[int] = field(default_factory=list)
    share: list[Array] = field(default_factory=list)


def _neighbours(kept: list[SmoothSegments]) -> tuple[dict[int, Place], dict[int, Place]]:
    """The segments before and after each crossing."""
    before: dict[int, Place] = {}
    after: dict[int, Place] = {}
    for settled in kept:
        for marks, where in ((settled.segments.enter, after), (settled.segments.leave, before)):
            for i in np.nonzero(marks >= 0)[0].tolist():
                where[int(marks[i])] = (settled, i)
    return before, after


def _shares(
    head: Head, players: list[tuple[Node, int]], before: Place, after: Place, settings: Settings
) -> tuple[Array, Array]:
    """Shapley values (players, k) of columns that cross thresholds at one time, and their error, (k,)."""
    output, nodes = head.roles.output, tuple(dict.fromkeys(node for node, _ in players))
    sides = []
    for settled, i in (before, after):
        one = settled.part(np.array([i]))
        s = one.segments
        sides.append(head.at(nodes, s.panel, s.state, 0.5 * (s.low + s.high), one.held))
    segment = before[0].segments[np.array([before[1]])]

    def score_of(past: Bools) -> Array:
        many = segment[np.zeros(len(past), np.int64)]
        panel, state, time = many.panel, many.state, many.high
        held: dict[Node, Array] = {}
        for tree in head.roles.head_trees:
            inputs = head.at((tree.source,), panel, state, time, held)[tree.source].copy()
            for j, (node, column) in enumerate(players):
                if node is tree.source:
                    old, new = (side[node][0, column] for side in sides)
                    inputs[:, column] = np.where(past[:, j], new, old)
            held[tree] = tree.forward(inputs)
        return head.at((output,), panel, state, time, held)[output]

    numbers = sum(n.width for n in head.roles.head)
    return solve(FunctionGame(len(players), output.width, numbers, score_of), settings.seed, settings.miss)


def _along(head: Head, jumps: _Jumps, some: slice, moments: Moments) -> None:
    """Add jumps to the moments in proportion to the gradients of the scores that cross."""
    one = jumps.settled.part(np.array(jumps.segment[some]))
    column, share = np.array(jumps.column[some]), np.array(jumps.share[some])
    panel, time = one.segments.panel, one.segments.high
    normal = _Normal.at(head, jumps.node, column, one, time)
    still = np.abs(normal.speed) <= limits.STILL * normal.size
    with np.errstate(divide="ignore", invalid="ignore"):
        # rounding changes the speed by this share of its parts, and a part is as many times the jump's credit
        noise = np.where(still, 0.0, limits.SPEED_NOISE * np.square(normal.size / normal.speed))
    noise += _from_time(head, jumps.node, column, one, normal, still)
    np.add.at(moments.slow, panel, noise[:, None] * np.abs(share))
    moving = np.nonzero(~still)[0]
    normal.part(moving).add(head, panel[moving], time[moving], share[moving], moments)
    if still.any():
        index = np.nonzero(still)[0]
        _from_rest(head, jumps.node, column[index], one.part(index), share[index], moments)


def _from_time(head: Head, node: Node, column: Ints, one: SmoothSegments, normal: _Normal, still: Bools) -> Array:
    """The change of the shares of jumps, (n,), where the rounding of a slow score moves the time of its crossing."""
    out, panels = np.zeros(len(column)), head.patch.panels
    with np.errstate(divide="ignore", invalid="ignore"):
        late = limits.CAUTION * normal.doubt / np.abs(normal.speed)
        matters = late / panels.length[one.segments.panel] * normal.size / np.abs(normal.speed) > limits.FINEST_ERROR
    index = np.nonzero(matters & ~still)[0]
    if len(index):
        some = one.part(index)
        panel, time = some.segments.panel, some.segments.high
        low, high = panels.low[panel], panels.high[panel]
        moved = time + np.where(time - low < high - time, 1.0, -1.0) * np.minimum(late[index], 0.5 * (high - low))
        after = _Normal.at(head, node, column[index], some, moved)
        before, here = normal.part(index), (head, panel, time)
        with np.errstate(divide="ignore", invalid="ignore"):
            change = np.abs(
                before.parts(*here) / before.speed[:, None] - after.parts(head, panel, moved) / after.speed[:, None]
            ).max(axis=1, initial=0.0)
        out[index] = np.where(np.isfinite(change), change, 1.0 / limits.STILL)
    return out


def _from_rest(head: Head, node: Node, column: Ints, one: SmoothSegments, share: Array, moments: Moments) -> None:
    """Add jumps where a score has zero speed at a threshold, such as a product of two columns that both start at zero.

    The direction has a limit there if all columns' parts of the speed vanish together; it is extrapolated from two
    times beside it. If these do not agree, the parts cancel: the jump cannot be credited and counts as lost.
    """
    panel, time = one.segments.panel, one.segments.high
    low, high = head.patch.panels.low[panel], head.patch.panels.high[panel]
    reach = limits.REST_REACH * (high - low)
    inward = np.where(time - low < high - time, reach, -reach)
    near, far = (_Normal.at(head, node, column, one, time + part * inward) for part in (0.5, 1.0))
    with np.errstate(divide="ignore", invalid="ignore"):  # cancelling parts double, relative to half the speed
        size, size_far = (
            np.abs(normal.parts(head, panel, time + part * inward)).sum(axis=1)
            for normal, part in ((near, 0.5), (far, 1.0))
        )
        agree = size / size_far * np.abs(far.speed / near.speed) <= limits.REST_AGREES
        noise = limits.SPEED_NOISE * np.square(np.maximum(size, near.by_line) / near.speed)
    np.add.at(moments.slow, panel, np.where(agree, noise, 0.0)[:, None] * np.abs(share))
    settled = np.nonzero(agree)[0]
    for normal, part, weight in ((near, 0.5, 2.0), (far, 1.0, -1.0)):
        at = (time + part * inward)[settled]
        normal.part(settled).add(head, panel[settled], at, weight * share[settled], moments)
    lost = np.where(agree, limits.REST_LOSS, 1.0)
    np.add.at(moments.lost, panel, lost[:, None] * np.abs(share))


@dataclass(frozen=True, eq=False)
class _Normal:
    """The gradients of columns of one score at some times, with respect to the lines and curves (joints) of the head.

    Attributes
    ----------
    back : dict of (n, width)
        Derivatives of each column with respect to the joints.
    speed : (n,)
        The derivative of each column by time.
    size : (n,)
        The sum of the largest sizes of the parts of the speed on the panel, which bounds its rounding.
    by_line : (n,)
        The same for lines alone, by column of the rows, and at these times alone.
    doubt : (n,)
        The rounding error of the score itself, also as interpolated.
    """

    back: dict[Node, Array]
    speed: Array
    size: Array
    by_line: Array
    doubt: Array

    @classmethod
    def at(cls, head: Head, node: Node, column: Ints, one: SmoothSegments, time: Array) -> _Normal:
        """The gradients at times on the panels of segments."""
        s, roles = one.segments, head.roles
        values = head.at((node, roles.output), s.panel, s.state, time, one.held)
        cotangent = np.zeros_like(values[node])
        cotangent[np.arange(len(column)), column] = 1.0
        back = head.back(node, cotangent, values, s.state)
        speeds = head.patch.rates(s.panel, time)
        speed = sum(((part * speeds[n]).sum(axis=1) for n, part in back.items()), np.zeros(len(column)))
        size = np.zeros(len(column))
        panels = head.patch.panels
        for other in (time, panels.low[s.panel], panels.high[s.panel]):
            fast = head.patch.rates(s.panel, other)
            parts = ((np.abs(part) * np.abs(fast[n])).sum(axis=1) for n, part in back.items())
            size = np.maximum(size, sum(parts, np.zeros(len(column))))
        by_line = np.zeros(len(column))
        for n in (n for n in roles.head_lines if n in back):  # a line is a sum over columns, which may cancel
            by_line += (np.abs(back[n]) * LineParts(head.patch.lines).on(n, panels)[0][s.panel]).sum(axis=1)
        known = head.patch.at(s.panel, time)
        doubts = head.patch.split(head.patch.doubt[s.panel], {})
        doubt = np.zeros(len(column))
        for n, part in back.items():
            rounding = limits.ROUNDING * np.abs(known[n])
            doubt += (np.abs(part) * (rounding + np.minimum(doubts.get(n, 0.0), 10.0 * rounding))).sum(axis=1)
        return cls(back, speed, np.maximum(size, by_line), by_line, doubt)

    def part(self, index: Ints) -> _Normal:
        """Some of the gradients."""
        back = {n: v[index] for n, v in self.back.items()}
        return _Normal(back, *(v[index] for v in (self.speed, self.size, self.by_line, self.doubt)))

    def parts(self, head: Head, panel: Ints, time: Array) -> Array:
        """The parts of the speed by each line, and through curves by each column of the rows, (n, parts)."""
        roles, rates = head.roles, head.patch.rates(panel, time)
        out = [self.back[n] * rates[n] for n in roles.head_lines if n in self.back]
        if roles.curve_ends:
            each = [self.back.get(n, np.zeros((len(panel), n.width))) for n in roles.curve_ends]
            _, moved = curves_at(head.patch, panel, time)
            out.append(np.einsum("nc,ncp->np", np.concatenate(each, axis=1), moved))
        return np.concatenate(out, axis=1)

    def add(self, head: Head, panel: Ints, time: Array, share: Array, moments: Moments) -> None:
        """Add shares (n, k) of jumps to the moments, in proportion to the gradients."""
        if not len(panel):
            return
        roles, amount = head.roles, (share / self.speed[:, None])[:, None, :]
        parts = [self.back.get(n, np.zeros((len(panel), n.width))) for n in roles.curve_ends]
        curves = np.concatenate([np.zeros((len(panel), 0)), *parts], axis=1)[:, :, None] * amount
        lines = {n: self.back[n][:, :, None] * amount for n in roles.head_lines if n in self.back}
        moments.add_points(head, panel, time, curves, lines)
