"""The head on segments: the only part of a model that is evaluated between every two jumps.

On a segment the trees are constant and curves and lines are smooth. The head's derivatives are integrated there against
the Legendre polynomials of the panel, from which the continuous credit follows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ...graph import Array, Node, TreeEnsemble
from .. import limits
from ..paths import Ints
from ..roles import Levels, Roles, pull_back
from ..roots import solve
from .curve_kinks import may_pass
from .patch import PanelCurves
from .program import HeadProgram, empty_table, head_program, whole_program
from .segments import Crossings, Cuts, Segments, SmoothSegments
from .table import ScoreSeries, Table, TabulatedPart


@dataclass(frozen=True, eq=False)
class Head:
    """The head of a model on one patch of panels, with the trees' states known.

    Attributes
    ----------
    states : dict of (states, width)
        The outputs of trees and steps between corners.
    constants : (states, columns)
        The same concatenated, as inputs of the head; empty if a table contains them.
    narrow : TabulatedHead, optional
        The table that replaces most of the head.
    """

    roles: Roles
    patch: PanelCurves
    states: dict[Node, Array]
    constants: Array
    narrow: TabulatedHead | None

    @classmethod
    def of(
        cls, roles: Roles, patch: PanelCurves, states: dict[Node, Array], constants: Array, table: Table | None
    ) -> Head:
        """The head, from a table if there is one for these panels."""
        narrow = None if table is None else TabulatedHead.of(table, patch, states)
        return cls(roles, patch, states, constants if narrow is None else np.zeros((0, 0)), narrow)

    def program(self) -> HeadProgram | None:
        """The head as a program of the native core, if the core implements all of its nodes."""
        if self.narrow is None:
            return whole_program(self.roles)
        known, part = self.roles.programs, self.narrow.part
        if part.node not in known:
            known[part.node] = head_program(self.roles, tuple(part.above), part.node)
        return known[part.node]

    def table_rows(self, state: Ints) -> tuple[Ints, tuple[Array, Array, float, float]]:
        """For each panel, given its first state of the trees, its row in the table; and the table as the core takes it.

        The table is values, slopes, and the middle and scale of its score; empty if the head is not tabulated.
        """
        if self.narrow is None:
            return np.zeros(len(state), np.int64), empty_table()
        rows = self.narrow.rows
        table = rows.values, rows.slopes, rows.middle, rows.scale
        return np.searchsorted(self.narrow.states, state), table

    def at(
        self,
        wanted: tuple[Node, ...],
        panel: Ints,
        state: Ints,
        time: Array,
        held: dict[Node, Array] | None = None,
        doubts: dict[Node, Array] | None = None,
    ) -> dict[Node, Array]:
        """Values of nodes at times on panels, in states of the trees.

        `held` are outputs of trees over continuous scores, which are else computed from their inputs; `doubts` are
        added to the values of curves.
        """
        known = self.patch.at(panel, time)
        for node, doubt in (doubts or {}).items():
            known[node] = known[node] + doubt
        if self.narrow is not None:
            return self.roles.evaluate(wanted, self.narrow.at(known, state))
        for node in self.roles.step_ends:
            known[node] = self.states[node][state]
        return self.roles.evaluate(wanted, {**known, **held} if held else known)

    def held(self, segments: Segments, crossings: Crossings | None = None) -> dict[Node, Array]:
        """Outputs of the trees over continuous scores, in the middle of each segment.

        An empty segment means that a threshold is met at the edge of a panel, on the side of equality: the value there
        is set to the threshold, since an interpolated value may lie on either side of it.
        """
        out: dict[Node, Array] = {}
        point, middle = segments.high <= segments.low, 0.5 * (segments.low + segments.high)
        for tree in self.roles.head_trees:
            inputs = self.at((tree.source,), segments.panel, segments.state, middle, out)[tree.source]
            if point.any():
                numeric = np.unique(tree.feature[(tree.feature >= 0) & (tree.category_set < 0)])
                inputs = inputs.copy()
                inputs[np.ix_(point, numeric)] -= 2.0 * limits.LEVEL_MARGIN * np.abs(inputs[np.ix_(point, numeric)])
                for i, number, column, level in [] if crossings is None else crossings.met(segments, point):
                    if self.roles.head_levels[number].user is tree:
                        inputs[i, column] = level
            out[tree] = tree.forward(inputs)
        return out

    def back(self, node: Node, cotangent: Array, values: dict[Node, Array], state: Ints) -> dict[Node, Array]:
        """Pull a cotangent of a node of the head back to the curves and lines that the head reads."""
        if self.narrow is not None:
            return self.narrow.back(node, cotangent, values, state)
        waiting = pull_back(self.roles.head, {node: cotangent}, values)
        return {n: waiting[n] for n in self.roles.joints if n in waiting}

    # ------------------------------------------------------------ kinks and thresholds inside segments

    def turns(self, segments: Segments) -> tuple[Ints, Array, Ints]:
        """Segments on which a node may cross a level twice, and the time of the extremum in between, sorted by time.

        A parabola through both ends and the middle decides. Very short segments are assumed to have no extremum. The
        third result are panels whose curves are not known well enough to decide.
        """
        long = (segments.high - segments.low) > limits.TURNING_SHARE * self.patch.panels.length[segments.panel]
        index = np.nonzero(long)[0]
        some = segments[index]
        held, nodes = self.held(some), tuple(levels.node for levels in self.roles.head_levels)
        times = (some.low, 0.5 * (some.low + some.high), some.high)
        first, middle, last = (self.at(nodes, some.panel, some.state, t, held) for t in times)
        doubts = self.patch.split(self.patch.doubt[some.panel], {})
        off = self.at(nodes, some.panel, some.state, times[1], held, doubts) if doubts else middle
        found: list[tuple[Ints, Array]] = [(np.zeros(0, np.int64), np.zeros(0))]
        unsure = [np.zeros(0, np.int64)]
        for levels in self.roles.head_levels:
            a, b, c = (values[levels.node] for values in (first, middle, last))
            bend = a - 2.0 * b + c
            least, most = np.minimum(np.minimum(a, b), c), np.maximum(np.maximum(a, b), c)
            unsure.append(some.panel[may_pass(levels, least, most, np.abs(off[levels.node] - b))])
            with np.errstate(divide="ignore", invalid="ignore"):
                turn, depth = 0.5 * (a - c) / bend, np.square(c - a) / (8.0 * bend)
            inside = np.abs(turn) < 1.0  # in the segment's own coordinate
            top = np.where(inside, b - 1.2 * depth - 0.1 * bend, a)
            for end in (a, c):
                row, column, _ = levels.passed(np.where(inside, end, a), top)
                length = some.high[row] - some.low[row]
                found.append((index[row], some.low[row] + 0.5 * (1.0 + turn[row, column]) * length))
        segment, time = (np.concatenate(parts) for parts in zip(*found, strict=True))
        order = np.lexsort((time, segment))
        segment, time = segment[order], time[order]
        fresh = np.ones(len(order), np.bool_)
        fresh[1:] = (segment[1:] != segment[:-1]) | (np.diff(time) > limits.SHORTEST_SEGMENT)
        return segment[fresh], time[fresh], np.concatenate(unsure)

    def settle(self, segments: Segments, crossings: Crossings) -> Iterator[SmoothSegments]:
        """The segments cut at every kink and threshold of the head, with the score at both ends."""
        output = self.roles.output
        wanted = (output, *(levels.node for levels in self.roles.head_levels))
        while len(segments):
            held = self.held(segments, crossings)
            first, last = (
                self.at(wanted, segments.panel, segments.state, t, held) for t in (segments.low, segments.high)
            )
            whole = np.ones(len(segments), np.bool_)
            cuts: list[Cuts] = []
            for number, levels in enumerate(self.roles.head_levels):
                index = np.nonzero(whole & (segments.high - segments.low > limits.SHORTEST_SEGMENT))[0]
                tree = isinstance(levels.user, TreeEnsemble)
                low, high = first[levels.node][index], last[levels.node][index]
                closed = crossings.closed(number, segments[index], low, high) if tree else None
                row, column, level = levels.passed(low, high, closed)
                segment = index[row]
                if len(segment):
                    time = self._times(levels, segments, held, (first, last), segment, column, level)
                    # a kink at an edge makes no cut; by rounding a steep function may seem to pass it there
                    inside = (time > segments.low[segment]) & (time < segments.high[segment])
                    inside = ~crossings.had(number, segments[segment], column, level, time) if tree else inside
                    segment, column = segment[inside], column[inside]
                    time, level = time[inside], level[inside]
                if len(segment):
                    cuts.append(Cuts(segment, time, np.full(len(segment), number if tree else -1), column, level))
                    whole[segment] = False
            ends = {n: (first[n], last[n]) for n in self.roles.joints}
            settled = SmoothSegments(segments, first[output], last[output], ends, held)
            if not cuts:
                yield settled
                return
            yield settled.part(np.nonzero(whole)[0])
            segments = crossings.cut(segments, cuts)

    def _times(
        self, levels: Levels, segments: Segments, held: dict[Node, Array],
        ends: tuple[dict[Node, Array], dict[Node, Array]], segment: Ints, column: Ints, level: Array,
    ) -> Array:  # fmt: skip
        """The times at which a column of a node of the head has a level, on segments where it passes it."""
        node = levels.node

        def function(index: Ints, time: Array) -> Array:
            some = segment[index]
            some_held = {n: v[some] for n, v in held.items()}
            values = self.at((node,), segments.panel[some], segments.state[some], time, some_held)[node]
            return values[np.arange(len(index)), column[index]] - level[index]

        at_low, at_high = (values[node][segment, column] - level for values in ends)
        margin = limits.LEVEL_MARGIN * np.maximum(
            np.maximum(np.abs(at_low + level), np.abs(at_high + level)), np.abs(level)
        )
        early, late = np.abs(at_low) <= margin, np.abs(at_high) <= margin  # met at an edge: nothing to solve
        least = 0.0 if isinstance(levels.user, TreeEnsemble) else 1e-13  # a jump's shares depend on its time
        noise = least * np.maximum(np.abs(at_low), np.abs(at_high)) + 2e-16 * np.abs(level)
        low, high = segments.low[segment], segments.high[segment]
        root = solve(function, low, high, at_low, at_high, np.where(early | late, np.inf, noise))
        return np.where(early, low, np.where(late, high, root))


@dataclass(frozen=True, eq=False)
class TabulatedHead:
    """A head that is tabulated but for its uppermost nodes, on one patch of panels.

    Attributes
    ----------
    states : (rows,)
        The states of the trees that occur on the patch, in order; `rows` has a series for each.
    """

    part: TabulatedPart
    states: Ints
    rows: ScoreSeries

    @staticmethod
    def of(table: Table, patch: PanelCurves, states: dict[Node, Array]) -> TabulatedHead | None:
        """The narrow head, if the table covers all inputs on the patch; else None."""
        panels = patch.panels
        counts = panels.end - panels.begin + 1
        first = panels.begin + patch.lines.legs.path[panels.leg]
        used = np.unique(np.arange(counts.sum()) + np.repeat(first - np.cumsum(counts) + counts, counts))
        steps = np.concatenate([np.zeros((len(used), 0)), *(states[n][used] for n in table.part.inputs[:-1])], axis=1)
        least, most = patch.range_of(table.part.inputs[-1])
        low, high = np.append(steps.min(axis=0), least), np.append(steps.max(axis=0), most)
        if not table.covers(low, high):
            return None
        return TabulatedHead(table.part, used, ScoreSeries.of(table, steps))

    def at(self, joints: dict[Node, Array], state: Ints) -> dict[Node, Array]:
        """The tabulated node's values, together with the joints."""
        score = joints[self.part.inputs[-1]][:, 0]
        return {**joints, self.part.node: self.rows.at(np.searchsorted(self.states, state), score)}

    def back(self, node: Node, cotangent: Array, values: dict[Node, Array], state: Ints) -> dict[Node, Array]:
        """Pull a cotangent back to the only joint."""
        waiting = pull_back(self.part.above, {node: cotangent}, values)
        if self.part.node not in waiting:
            return {}
        joint = self.part.inputs[-1]
        slope = self.rows.slope_at(np.searchsorted(self.states, state), values[joint][:, 0])
        return {joint: (waiting[self.part.node] * slope).sum(axis=1, keepdims=True)}
