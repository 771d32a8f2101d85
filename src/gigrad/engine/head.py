"""The head on segments: the only part of a model that is asked between every two jumps.

On a segment the trees are constant and curves and lines are smooth. The head is integrated there against the Legendre
polynomials of the panel, which is all that the continuous credit needs to know of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..graph import Array, Node, Smooth, TreeEnsemble, evaluate
from ..kernels import TIE
from .jumps import Corners
from .panels import Patch
from .paths import Ints
from .roles import Levels, Roles
from .roots import MARGIN, Bools, passed, solve

SHORTEST = 1e-14
"""Segments shorter than this in time are not divided any more."""


@dataclass(frozen=True, eq=False)
class Segments:
    """Stretches of panels between jumps and kinks, in the order in which they were made.

    Attributes
    ----------
    panel, state : (n,)
        The panel of the patch, and the state of the trees.
    low, high : (n,)
        Times.
    left, right : (n,)
        The corner at each end, -1 for none.
    enter, leave : (n,)
        The threshold crossing of a tree over something continuous at each end, -1 for none.
    """

    panel: Ints
    state: Ints
    low: Array
    high: Array
    left: Ints
    right: Ints
    enter: Ints
    leave: Ints

    def __len__(self) -> int:
        return len(self.panel)

    def __getitem__(self, index: Ints) -> Segments:
        return Segments(*(v[index] for v in self._arrays()))

    def _arrays(self) -> tuple[Any, ...]:
        return (self.panel, self.state, self.low, self.high, self.left, self.right, self.enter, self.leave)

    @staticmethod
    def joined(parts: list[Segments]) -> Segments:
        """All segments of some lists."""
        return Segments(*(np.concatenate(arrays) for arrays in zip(*(p._arrays() for p in parts), strict=True)))

    @classmethod
    def of(cls, patch: Patch, corners: Corners) -> Segments:
        """The stretches of every panel between its corners. A corner at a panel's very end leaves an empty one."""
        panels = patch.panels
        counts = panels.end - panels.begin + 1
        panel = np.repeat(np.arange(len(panels)), counts)
        index = np.arange(len(panel)) - np.repeat(np.cumsum(counts) - counts, counts)
        last = index == counts[panel] - 1
        corner = panels.begin[panel] + index  # the one at the right end
        right = np.where(last, -1, corner)
        left = np.where(index == 0, -1, corner - 1)
        low, high = panels.low[panel].copy(), panels.high[panel].copy()
        time = np.clip(corners.time[right[~last]], panels.low[panel[~last]], panels.high[panel[~last]])
        high[~last] = time
        low[index > 0] = time
        state = corner + patch.lines.legs.path[panels.leg[panel]]
        none = np.full(len(panel), -1)
        return cls(panel, state, low, high, left, right, none, none)

    def cut(self, segment: Ints, time: Array, crossing: Ints) -> Segments:
        """The given segments cut at times inside them (sorted by segment and time), each marked by a crossing or -1."""
        which = np.unique(segment)
        counts = np.bincount(segment, minlength=len(self))[which] + 1
        new = self[np.repeat(which, counts)]
        inner = np.ones(len(new), np.bool_)
        inner[np.cumsum(counts) - 1] = False
        after = np.nonzero(inner)[0] + 1
        low, high, left, right = new.low.copy(), new.high.copy(), new.left.copy(), new.right.copy()
        enter, leave = new.enter.copy(), new.leave.copy()
        high[inner], low[after] = time, time
        right[inner], left[after] = -1, -1
        leave[inner], enter[after] = crossing, crossing
        return Segments(new.panel, new.state, low, high, left, right, enter, leave)


class Head:
    """The head of a model on one patch of panels, with the trees' states known."""

    def __init__(self, roles: Roles, patch: Patch, states: dict[Node, Array]) -> None:
        self.roles, self.patch, self.states = roles, patch, states

    def at(
        self, wanted: tuple[Node, ...], segments: Segments, time: Array, held: dict[Node, Array] | None = None
    ) -> dict[Node, Array]:
        """Values of nodes on each segment at one time; `held` are outputs of trees over something continuous."""
        known = self.patch.at(segments.panel, time)
        for node in self.roles.step_ends:
            known[node] = self.states[node][segments.state]
        return evaluate(wanted, {**known, **(held or {})})

    def held(self, segments: Segments) -> dict[Node, Array]:
        """Outputs of the trees over something continuous, in the middle of each segment.

        A segment without length stands where a threshold is met at the edge of a panel, on the side of equality.
        """
        out: dict[Node, Array] = {}
        point = segments.high <= segments.low
        for tree in self.roles.head_trees:
            inputs = self.at((tree.source,), segments, 0.5 * (segments.low + segments.high), out)[tree.source]
            if point.any():
                numeric = np.unique(tree.feature[(tree.feature >= 0) & (tree.category_set < 0)])
                inputs = inputs.copy()
                inputs[np.ix_(point, numeric)] -= 2.0 * MARGIN * np.abs(inputs[np.ix_(point, numeric)])
            out[tree] = tree.forward(inputs)
        return out

    def back(self, node: Node, cotangent: Array, values: dict[Node, Array]) -> dict[Node, Array]:
        """Pull a cotangent of a node of the head back to the curves and lines that the head reads."""
        waiting = {node: cotangent}
        for current in reversed(self.roles.head):
            if current in waiting and isinstance(current, Smooth):
                parts = current.pullback(waiting.pop(current), *(values[p] for p in current.parents))
                for parent, part in zip(current.parents, parts, strict=True):
                    waiting[parent] = waiting[parent] + part if parent in waiting else part
        return {n: waiting[n] for n in self.roles.joints if n in waiting}

    # ------------------------------------------------------------ kinks and thresholds inside segments

    def settle(self, segments: Segments, crossings: Crossings) -> Iterator[Settled]:
        """The segments cut at every kink and threshold of the head, with the score at both ends."""
        output = self.roles.output
        wanted = (output, *(levels.node for levels in self.roles.head_levels))
        while len(segments):
            held = self.held(segments)
            first = self.at(wanted, segments, segments.low, held)
            last = self.at(wanted, segments, segments.high, held)
            whole = np.ones(len(segments), np.bool_)
            cuts: list[Cuts] = []
            for number, levels in enumerate(self.roles.head_levels):
                index = np.nonzero(whole & (segments.high - segments.low > SHORTEST))[0]
                tree = isinstance(levels.user, TreeEnsemble)
                low, high = first[levels.node][index], last[levels.node][index]
                closed = crossings.closed(number, segments[index], low, high) if tree else None
                row, column, level = _passed(levels, low, high, closed)
                segment = index[row]
                if len(segment):
                    time = self._times(levels, segments, held, (first, last), segment, column, level)
                    cuts.append(Cuts(segment, time, np.full(len(segment), number if tree else -1), column))
                    whole[segment] = False
            done = np.nonzero(whole)[0]
            yield Settled(
                segments[done],
                first[output][done],
                last[output][done],
                {n: (first[n][done], last[n][done]) for n in self.roles.joints},
                {t: v[done] for t, v in held.items()},
            )
            if not cuts:
                return
            segments = crossings.cut(segments, cuts)

    def _times(
        self, levels: Levels, segments: Segments, held: dict[Node, Array],
        ends: tuple[dict[Node, Array], dict[Node, Array]], segment: Ints, column: Ints, level: Array,
    ) -> Array:  # fmt: skip
        """When a column of a node of the head has a level, on segments where it passes it."""
        some, node = segments[segment], levels.node
        some_held = {n: v[segment] for n, v in held.items()}
        rows = np.arange(len(segment))

        def function(time: Array) -> Array:
            return self.at((node,), some, time, some_held)[node][rows, column] - level

        at_low, at_high = (values[node][segment, column] - level for values in ends)
        margin = MARGIN * np.maximum(np.maximum(np.abs(at_low + level), np.abs(at_high + level)), np.abs(level))
        early, late = np.abs(at_low) <= margin, np.abs(at_high) <= margin  # met at an edge: nothing to solve
        noise = 1e-15 * np.maximum(np.abs(at_low), np.abs(at_high)) + 2e-16 * np.abs(level)
        root = solve(function, some.low, some.high, at_low, at_high, np.where(early | late, np.inf, noise))
        return np.where(early, some.low, np.where(late, some.high, root))


@dataclass(frozen=True, eq=False)
class Settled:
    """Segments without a kink inside.

    Attributes
    ----------
    first, last : (n, k)
        The score at both ends.
    ends : dict
        The joints at both ends.
    held : dict
        What trees over something continuous give on the segment.
    """

    segments: Segments
    first: Array
    last: Array
    ends: dict[Node, tuple[Array, Array]]
    held: dict[Node, Array]


@dataclass(frozen=True, eq=False)
class Cuts:
    """Where segments are to be cut; `number` is the place of a tree's thresholds in `head_levels`, -1 for a kink."""

    segment: Ints
    time: Array
    number: Ints
    column: Ints


class Crossings:
    """Threshold crossings of trees over something continuous. Those closer than TIE are one, with several columns."""

    def __init__(self) -> None:
        self.panel: list[int] = []
        self.time: list[float] = []
        self.columns: list[list[tuple[int, int]]] = []  # (place in head_levels, column) of all that cross

    def closed(self, number: int, segments: Segments, first: Array, last: Array) -> Bools:
        """Where a threshold met at the lower of two ends, (n, width), still counts: no cut has been made there yet."""
        fresh = np.ones((2, *first.shape), np.bool_)
        for end, marks in enumerate((segments.enter, segments.leave)):
            for i in np.nonzero(marks >= 0)[0].tolist():
                for other, column in self.columns[marks[i]]:
                    if other == number:
                        fresh[end, i, column] = False
        return np.asarray(np.where(first <= last, fresh[0], fresh[1]))

    def cut(self, segments: Segments, cuts: list[Cuts]) -> Segments:
        """Cut segments, and keep a record of the crossings at which they are cut."""
        segment, time, number, column = (
            np.concatenate([getattr(c, f) for c in cuts]) for f in ("segment", "time", "number", "column")
        )
        order = np.lexsort((time, segment))
        segment, time, number, column = segment[order], time[order], number[order], column[order]
        new = np.ones(len(order), np.bool_)
        new[1:] = (segment[1:] != segment[:-1]) | (number[1:] < 0) | (number[:-1] < 0) | (np.diff(time) > TIE)
        mark = np.full(len(order), -1)
        for i in np.nonzero(number >= 0)[0].tolist():
            if new[i]:
                self.panel.append(int(segments.panel[segment[i]]))
                self.time.append(float(time[i]))
                self.columns.append([])
            mark[i] = len(self.time) - 1
            self.columns[-1].append((int(number[i]), int(column[i])))
        return segments.cut(segment[new], time[new], mark[new])


def _passed(levels: Levels, low: Array, high: Array, closed: Bools | None) -> tuple[Ints, Ints, Array]:
    """Row, column and level of everything that a node passes between its values `low` and `high`, (n, width)."""
    if levels.columns is None:
        return passed(levels.table[0], low, high, closed)
    rows, columns, found = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0)]
    for j, table in zip(levels.columns, levels.table, strict=True):
        only = slice(j, j + 1)
        row, _, level = passed(table, low[:, only], high[:, only], None if closed is None else closed[:, only])
        rows.append(row)
        columns.append(np.full(len(row), j))
        found.append(level)
    return np.concatenate(rows), np.concatenate(columns), np.concatenate(found)
