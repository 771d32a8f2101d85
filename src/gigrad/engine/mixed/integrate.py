"""The head integrated over the segments of a patch: moments for the continuous credit, scores beside the corners.

The score's change over a segment is known from its ends, so the error of the quadrature of a segment is known too.
Inaccurate segments get more nodes, then are halved.
"""

from __future__ import annotations

import numpy as np

from ...graph import Array, Node
from .. import limits
from ..paths import Bools, Ints
from ..quadrature import gauss
from ..settings import Settings
from .bumps import cells, radial
from .crossings import share_out
from .derivatives import EDGES, DerivativeErrors, NodeValues, Slopes
from .games import CornerScores
from .head import Head
from .jumps import Corners
from .moments import Moments, PanelIntegrals
from .native import native_moments, segment_lengths, up_to_nodes
from .segments import Crossings, Segments, SmoothSegments


def integrated(head: Head, corners: Corners, sides: CornerScores, allowed: Array, settings: Settings) -> PanelIntegrals:
    """A head integrated over its patch, by the native core if that implements all of its nodes.

    The scores beside the corners of the patch are written to `sides`.
    """
    program = head.program() if settings.native else None
    if program is not None:
        return native_moments(head, program, corners, sides, allowed, settings)
    return Integral(head, corners, sides, allowed, segment_lengths(head.roles, settings), settings).run()


class Integral:
    """The integration of one patch in Python: sums that grow segment by segment."""

    def __init__(
        self,
        head: Head,
        corners: Corners,
        sides: CornerScores,
        allowed: Array,
        lengths: tuple[float, ...],
        settings: Settings,
    ) -> None:
        self.head, self.corners, self.sides, self.allowed, self.settings = head, corners, sides, allowed, settings
        self.roles, self.patch = head.roles, head.patch
        self.moments = Moments.zero(head)
        self.lengths = lengths  # of segments, for one, two and four nodes
        self.tallest = np.zeros_like(allowed)  # the largest |score| seen on each panel
        self.unsure = self.patch.unsure.copy()

    def run(self) -> PanelIntegrals:
        """All moments of the patch; the sides of its corners are written to `sides`."""
        crossings, kept = Crossings(), list[SmoothSegments]()
        segments = self._first()
        most = limits.SEGMENT_GROWTH * (len(segments) + len(self.patch.panels))
        for turn in range(limits.SEGMENT_HALVINGS):
            again: list[Segments] = []
            last = turn == limits.SEGMENT_HALVINGS - 1 or len(segments) > most
            for settled in self.head.settle(segments, crossings):
                if turn == 0:
                    self._corners(settled)
                if self.roles.head_trees:
                    kept.append(settled)
                self._measure(settled)
                again.append(self._quadrature(settled, last))
            segments = Segments.joined(again)
            if not len(segments):
                break
        if crossings.time:
            share_out(self.head, crossings, kept, self.moments, self.settings)
        return PanelIntegrals(self.moments, self.tallest, self.unsure)

    def _first(self) -> Segments:
        """The initial segments: between corners, and cut where the head's inputs may turn."""
        segments = self._bumps(Segments.of(self.patch, self.corners))
        if not self.roles.head_levels:
            return segments
        # A level that is crossed twice does not show at the ends: long segments are examined in parts. A curve that few
        # nodes describe has few extrema, and a missed kink shows in `rest`; a missed jump would not.
        share = (segments.high - segments.low) / self.patch.panels.length[segments.panel]
        most = 8.0 if self.roles.head_trees else 0.8 * (self.patch.rule.size - 3)
        parts = np.ceil(most * share).astype(np.int64)
        cut = np.repeat(np.arange(len(segments)), np.maximum(parts - 1, 0))
        step = np.arange(len(cut)) - np.searchsorted(cut, cut) + 1
        time = segments.low[cut] + (segments.high - segments.low)[cut] * step / parts[cut]
        if len(cut):
            segments = segments.cut(cut, time, np.full(len(cut), -1), only=False)
        cut, time, unsure = self.head.turns(segments)
        self.unsure[unsure] = True
        return segments.cut(cut, time, np.full(len(cut), -1), only=False) if len(cut) else segments

    def _bumps(self, segments: Segments) -> Segments:
        """Cut segments where the head passes support vectors of narrow kernels."""
        for machine, factor in radial(self.roles.head):
            length = segments.high - segments.low
            bends = (length > self.patch.panels.length[segments.panel] / limits.KERNEL_STRETCHES) & bool(
                self.roles.curve_ends
            )
            found = []
            for some, count in ((np.nonzero(~bends)[0], 1), (np.nonzero(bends)[0], limits.KERNEL_STRETCHES)):
                cut, part = cells(machine, factor, self._polyline(segments[some], machine.source, count))
                found.append((some[cut], segments.low[some[cut]] + length[some[cut]] * part))
            cut, time = (np.concatenate(parts) for parts in zip(*found, strict=True))
            order = np.lexsort((time, cut))
            segments = segments.cut(cut[order], time[order], np.full(len(cut), -1), only=False)
        return segments

    def _polyline(self, segments: Segments, node: Node, count: int) -> Array:
        """The values of a node of the head at `count` equal steps along segments, (n, count + 1, width)."""
        time, each = _spread(segments, np.linspace(-1.0, 1.0, count + 1))
        held = {t: v[each] for t, v in self.head.held(segments).items()}
        values = self.head.at((node,), segments.panel[each], segments.state[each], time, held)[node]
        return values.reshape(len(segments), count + 1, node.width)

    def _measure(self, settled: SmoothSegments) -> None:
        tall = np.maximum(np.abs(settled.first), np.abs(settled.last))
        np.maximum.at(self.tallest, settled.segments.panel, tall)

    def _corners(self, settled: SmoothSegments) -> None:
        """Keep the scores at the ends of segments that are corners, and the joints there where they are shared."""
        segments, sides = settled.segments, self.sides
        at = np.nonzero(segments.left >= 0)[0]
        sides.after[segments.left[at]] = settled.first[at]
        at = np.nonzero(segments.right >= 0)[0]
        corner = segments.right[at]
        sides.before[corner] = settled.last[at]
        shared = sides.place[corner] >= 0
        if self.roles.head_trees:
            self._broken_corners(settled)
        at, place = at[shared], sides.place[corner[shared]]
        doubts = self.patch.split(self.patch.doubt[segments.panel[at]], {})
        for node, table in sides.joints.items():
            table[place] = settled.ends[node][1][at]
            if node in doubts:
                sides.doubts[node][place] = doubts[node]

    def _broken_corners(self, settled: SmoothSegments) -> None:
        """Set the sides of corners between two legs, which lie on no panel, from the ends of both legs."""
        segments, corners = settled.segments, self.corners
        corner = segments.state - self.patch.lines.legs.path[self.patch.panels.leg[segments.panel]]
        for table, which, bare, time, scores in (
            (self.sides.before, corner, (segments.right < 0) & (segments.leave < 0), segments.high, settled.last),
            (self.sides.after, corner - 1, (segments.left < 0) & (segments.enter < 0), segments.low, settled.first),
        ):
            inside = np.nonzero(bare & (which >= 0) & (which < len(corners)))[0]
            at = which[inside]
            inside = inside[corners.broken[at] & (corners.time[at] == time[inside])]
            table[which[inside]] = scores[inside]

    # ------------------------------------------------------------ quadrature

    def _quadrature(self, settled: SmoothSegments, last: bool) -> Segments:
        """Add the integrals over segments; returns the halves of those that are not accurate enough."""
        segments = settled.segments
        if not len(segments):  # all of a batch were cut where the head's trees jump
            return segments
        if self.roles.joints == self.roles.head_lines and sum(n.width for n in self.roles.joints) == 1:
            self._chords(settled)
            return segments[np.zeros(0, np.int64)]
        order = np.searchsorted(self.lengths, segments.high - segments.low)
        ends = np.zeros((2, len(segments), *self.moments.sway.shape[1:]))  # the derivatives at first and last nodes
        bad = np.zeros(0, np.int64)
        for number, size in enumerate(limits.SEGMENT_NODES):
            index = np.nonzero(order == number)[0]  # empty ones too: a corner at the very end needs its slopes
            if len(index):
                some = settled if len(index) == len(order) else settled.part(index)
                slopes, inside = self._slopes(some, gauss(size).nodes)
                ends[:, index] = slopes.curves[:, [0, -1]].swapaxes(0, 1)
                final = last and size == limits.SEGMENT_NODES[-1]
                if size == 1:
                    bad = index[self._steady(some, slopes, inside)]
                else:
                    bad = index[self._bent(some, slopes, inside, size, final)]
                order[bad] = number + 1
        steps = np.square(ends[1] - ends[0])
        steps[1:] += np.square(ends[0, 1:] - ends[1, :-1]) * (np.diff(segments.panel) == 0)[:, None, None]
        u = self.patch.local(segments.panel, segments.low)
        # the square of a Legendre polynomial of high degree, averaged over its oscillations
        height = np.minimum(1.0, 0.64 / ((self.patch.rule.size + 0.5) * np.sqrt(np.maximum(1.0 - u * u, 1e-12))))
        _add_at(self.moments.sway, segments.panel, steps * height[:, None, None])
        bad = np.nonzero(order == len(limits.SEGMENT_NODES))[0]
        middle = 0.5 * (segments.low + segments.high)
        return segments.cut(bad, middle[bad], np.full(len(bad), -1))

    def _slopes(self, settled: SmoothSegments, nodes: Array) -> tuple[Slopes, NodeValues]:
        """The score's derivatives, and the score itself, at the nodes of a rule on every segment."""
        segments, output, n, size = settled.segments, self.roles.output, len(settled.segments), len(nodes)
        time, each = _spread(segments, nodes)
        held = {t: v[each] for t, v in settled.held.items()}
        values = self.head.at((output,), segments.panel[each], segments.state[each], time, held)
        _, _, columns, k = self.moments.curves.shape
        curves = np.zeros((n, size, columns, k))
        lines = {node: np.zeros((n, size, node.width, k)) for node in self.roles.head_lines}
        for k_ in range(k):
            cotangent = np.zeros_like(values[output])
            cotangent[:, k_] = 1.0
            back, first = self.head.back(output, cotangent, values, segments.state[each]), 0
            for node in self.roles.curve_ends:
                if node in back:
                    curves[:, :, first : first + node.width, k_] = back[node].reshape(n, size, -1)
                first += node.width
            for node in self.roles.head_lines:
                if node in back:
                    lines[node][..., k_] = back[node].reshape(n, size, -1)
        joints = {node: values[node].reshape(n, size, -1) for node in self.roles.joints}
        return Slopes(curves, lines), NodeValues(values[output].reshape(n, size, k), joints)

    def _chords(self, settled: SmoothSegments) -> None:
        """A head over one line: the credit of a column is its part of the line's move, whatever the head's shape.

        The slope of the chord is exact, unless it is a small difference of large numbers: then the mean of two slopes
        is taken if it agrees with it up to rounding. What they leave of the score's change bounds their error; it is
        rounding where the line moves by rounding alone, and there the two differ by as much as they may be off.
        """
        (node,) = self.roles.joints
        slopes, _ = self._slopes(settled, gauss(2).nodes)
        low, high = settled.ends[node]
        way, rise, two = high - low, settled.last - settled.first, slopes.lines[node][:, :, 0]
        slope = two.mean(axis=1)
        rest, differ = np.abs(rise - way * slope), np.abs(way * (two[:, 1] - two[:, 0]))
        with np.errstate(divide="ignore", invalid="ignore"):
            chord = rise / way
        better = (rest > limits.ROUNDING * self._sizes(settled, slopes)) & np.isfinite(chord)
        still = np.abs(way) <= limits.ROUNDING * np.maximum(np.abs(low), np.abs(high))
        lost = np.where(better, 0.0, np.where(still, differ, rest))
        slope = np.where(better, chord, slope)
        self.moments.add_segments(self.head, settled.segments, slopes.curves[:, 0], {node: slope[:, None]})
        _add_at(self.moments.lost, settled.segments.panel, lost)

    def _steady(self, settled: SmoothSegments, slopes: Slopes, inside: NodeValues) -> Bools:
        """Short segments: derivatives are assumed constant, the polynomials are integrated exactly.

        Adds the accurate ones, and returns which are not accurate enough.
        """
        rest, wander = settled.last - settled.first, inside.score[:, 0] - settled.first
        for node, slope in slopes.by_joint(self.roles):
            low, high = settled.ends[node]
            rest -= np.einsum("nw,nwk->nk", high - low, slope[:, 0])
            wander -= np.einsum("nw,nwk->nk", inside.joints[node][:, 0] - low, slope[:, 0])
        bad = self._loses(settled, slopes, rest, np.abs(wander), final=False)
        segments = settled.segments
        if bad.any():
            good = np.nonzero(~bad)[0]
            segments, slopes = segments[good], slopes.part(good)
        if not len(segments):
            return bad
        lines = {node: v[:, 0] for node, v in slopes.lines.items()}
        self.moments.add_segments(self.head, segments, slopes.curves[:, 0], lines)
        return bad

    def _bent(self, settled: SmoothSegments, slopes: Slopes, inside: NodeValues, size: int, final: bool) -> Bools:
        """Longer segments: derivatives are interpolated from `size` nodes, the product is integrated exactly.

        Adds the accurate ones, or all if `final`, and returns which are not accurate enough.
        """
        segments = settled.segments
        rule = gauss((self.moments.curves.shape[1] + size) // 2)
        basis = np.polynomial.legendre.legvander(rule.nodes, size - 1)
        refine = basis @ gauss(size).to_coefficients  # from values at `size` nodes to those at the rule's
        time, each = _spread(segments, rule.nodes)
        weight = 0.5 * (segments.high - segments.low)[:, None] * rule.weights
        masses = Slopes(*_refined(slopes, refine, weight))
        panel = segments.panel[each]
        speeds = self.patch.slopes(panel, time)
        gained = np.zeros((len(segments), len(rule.nodes), settled.first.shape[1]))  # through each of the rule's nodes
        for node, mass in masses.by_joint(self.roles):
            gained += np.einsum("nqw,nqwk->nqk", speeds[node].reshape(mass.shape[:3]), mass)
        rest = settled.last - settled.first - gained.sum(axis=1)
        up_to = np.einsum("sq,nqk->nsk", up_to_nodes(size, rule.size), gained)
        wander = np.abs(inside.score - settled.first[:, None] - up_to).max(axis=1)
        bad = self._loses(settled, slopes, rest, wander, final)
        if bad.any():
            good = np.nonzero(~bad)[0]
            keep = ~bad[each]
            masses, panel, time = masses.part(good), panel[keep], time[keep]
        if not len(panel):
            return bad
        flat = {node: v.reshape(len(panel), *v.shape[2:]) for node, v in masses.lines.items()}
        curves = masses.curves.reshape(len(panel), *masses.curves.shape[2:])
        self.moments.add_points(self.head, panel, time, curves, flat)
        return bad

    def _loses(self, settled: SmoothSegments, slopes: Slopes, rest: Array, wander: Array, final: bool) -> Bools:
        """Which segments miss too much of the score's change; the losses of the others are added to the moments."""
        segments = settled.segments
        length = segments.high - segments.low
        limit = 0.25 * self.allowed[segments.panel] * np.maximum(length, 1 / 4096)[:, None]
        missed = DerivativeErrors.of(slopes, self._slopes(settled, EDGES)[0], self.roles)
        most, first = np.abs(rest), 0
        for node in self.roles.joints:
            low, high = settled.ends[node]
            beyond = missed.beyond[:, first : first + node.width] * np.abs(high - low)[:, :, None]
            most, first = np.maximum(most, beyond.max(axis=1, initial=0.0)), first + node.width
        doubtful = (most > limit).any(axis=1)
        if doubtful.any():  # halving does not reduce rounding errors
            limit = np.maximum(limit, limits.ROUNDING * self._sizes(settled, slopes))
        bad = (most > limit).any(axis=1) & (length > limits.SHORTEST_SEGMENT)
        if final:
            bad[:] = False
        good = ~bad
        self._add_off(segments[np.nonzero(good)[0]], missed.part(good))
        panel = segments.panel[good]
        _add_at(self.moments.lost, panel, np.abs(rest[good]))
        size = slopes.curves.shape[1]
        share = (length[good] / self.patch.panels.length[panel]) ** size
        _add_at(self.moments.wander[limits.SEGMENT_NODES.index(size)], panel, wander[good] * share[:, None])
        return bad

    def _add_off(self, segments: Segments, missed: DerivativeErrors) -> None:
        """Add the interpolation error of derivatives to the moments, as integrated with a column's part of the speed.

        The even part of the error is orthogonal to all components of that part below degree n, and the odd one to those
        below n - 1; on a segment these are smaller than on the panel by the ratio of lengths to that power. A constant
        part is affected by the terms `beyond` alone.
        """
        n, panel, length = missed.nodes, segments.panel, segments.high - segments.low
        number = limits.SEGMENT_NODES.index(n)
        part = length / self.patch.panels.length[panel]
        even = (length * part**n / (2.0 * n + 1.0))[:, None, None]
        odd = (length * part ** (n - 1) * n / ((2.0 * n + 1.0) * (2.0 * n - 1.0)))[:, None, None]
        off = self.moments.off
        _add_at(off[number], panel, odd * missed.odd)
        _add_at(off[len(limits.SEGMENT_NODES) + number], panel, even * missed.even)
        _add_at(off[0], panel, length[:, None, None] * missed.beyond)

    def _sizes(self, settled: SmoothSegments, slopes: Slopes) -> Array:
        """The size of the terms of which a segment's loss is a small difference, (n, k), for rounding."""
        out = np.abs(settled.first) + np.abs(settled.last)
        for node, slope in slopes.by_joint(self.roles):
            size = np.maximum(*(np.abs(v) for v in settled.ends[node]))
            out += np.einsum("nw,nwk->nk", size, np.abs(slope).max(axis=1))
        return out


def _refined(slopes: Slopes, refine: Array, weight: Array) -> tuple[Array, dict[Node, Array]]:
    """Derivatives interpolated to the nodes of a finer rule, times its weights."""

    def one(values: Array) -> Array:
        flat = np.matmul(refine, values.reshape(*values.shape[:2], -1)) * weight[:, :, None]
        return np.asarray(flat.reshape(*flat.shape[:2], *values.shape[2:]))

    return one(slopes.curves), {node: one(v) for node, v in slopes.lines.items()}


def _spread(segments: Segments, nodes: Array) -> tuple[Array, Ints]:
    """Times of a rule's nodes on every segment, (n * nodes,), and the segment of each."""
    half = 0.5 * (segments.high - segments.low)
    time = (segments.low + half)[:, None] + half[:, None] * nodes
    return time.ravel(), np.repeat(np.arange(len(segments)), len(nodes))


def _add_at(table: Array, row: Ints, values: Array) -> None:
    """`table[row] += values`, where rows may occur more than once."""
    if not len(row):
        return
    flat = values.reshape(len(row), -1)
    for j, column in enumerate(np.moveaxis(table.reshape(len(table), -1), 1, 0)):
        column += np.bincount(row, flat[:, j], len(table))
