"""Segments of panels, on which the head is smooth, and the crossings and kinks at which they are cut."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...graph import Array, Node
from .. import limits
from ..paths import Bools, Ints
from .jumps import Corners
from .patch import PanelCurves


@dataclass(frozen=True, eq=False)
class Segments:
    """Parts of panels between jumps and kinks, in the order in which they were made.

    Attributes
    ----------
    panel, state : (n,)
        The panel of the patch, and the state of the trees.
    low, high : (n,)
        Times.
    left, right : (n,)
        The corner at each end, -1 for none.
    enter, leave : (n,)
        The threshold crossing of a tree over a continuous score at each end, -1 for none.
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
    def of(cls, patch: PanelCurves, corners: Corners) -> Segments:
        """The segments of every panel between its corners. A corner at a panel's very end leaves an empty one."""
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

    def cut(self, segment: Ints, time: Array, crossing: Ints, only: bool = True) -> Segments:
        """The segments cut at times inside them (sorted by segment and time), each marked by a crossing or -1.

        With `only` set those that are not cut are left out.
        """
        counts = np.bincount(segment, minlength=len(self)) + 1
        if only:
            counts[counts == 1] = 0
        new = self[np.repeat(np.arange(len(self)), counts)]
        inner = np.ones(len(new), np.bool_)
        inner[np.cumsum(counts)[counts > 0] - 1] = False
        before = np.nonzero(inner)[0]
        after = before + 1
        for early, late, value in (
            (new.high, new.low, time), (new.right, new.left, np.full(len(time), -1)), (new.leave, new.enter, crossing),
        ):  # fmt: skip
            early[before] = late[after] = value
        return new


@dataclass(frozen=True, eq=False)
class SmoothSegments:
    """Segments without a kink inside.

    Attributes
    ----------
    first, last : (n, k)
        The score at both ends.
    ends : dict
        The joints at both ends.
    held : dict
        The outputs of trees over continuous scores on the segment.
    """

    segments: Segments
    first: Array
    last: Array
    ends: dict[Node, tuple[Array, Array]]
    held: dict[Node, Array]

    def part(self, index: Ints) -> SmoothSegments:
        """Some of the segments."""
        return SmoothSegments(
            self.segments[index],
            self.first[index],
            self.last[index],
            {n: (a[index], b[index]) for n, (a, b) in self.ends.items()},
            {t: v[index] for t, v in self.held.items()},
        )


@dataclass(frozen=True, eq=False)
class Cuts:
    """Cuts of segments; `number` is the index of a tree's thresholds in `head_levels`, -1 for a kink."""

    segment: Ints
    time: Array
    number: Ints
    column: Ints
    level: Array


class Crossings:
    """Threshold crossings of trees over continuous scores. Those of equal time are one crossing of several columns.

    Their times are found by solving for the threshold, so they are rounded before they are compared: to the multiples
    of 2^-30 to which the times of tree splits are rounded, too.
    """

    def __init__(self) -> None:
        self.panel: list[int] = []
        self.time: list[float] = []
        self.columns: list[list[tuple[int, int]]] = []  # (index in head_levels, column) of all that cross
        self.levels: list[list[float]] = []  # the thresholds that they cross

    def closed(self, number: int, segments: Segments, first: Array, last: Array) -> Bools:
        """Where a threshold equal to the lower of two ends, (n, width), still counts: there is no cut there yet."""
        fresh = np.ones((2, *first.shape), np.bool_)
        for end, marks in enumerate((segments.enter, segments.leave)):
            for i in np.nonzero(marks >= 0)[0].tolist():
                for other, column in self.columns[marks[i]]:
                    if other == number:
                        fresh[end, i, column] = False
        return np.asarray(np.where(first <= last, fresh[0], fresh[1]))

    def had(self, number: int, segments: Segments, column: Ints, level: Array, time: Array) -> Bools:
        """Which crossings a segment already has at an end, (n,): around a threshold of 0, rounding adds others."""
        out = np.zeros(len(time), np.bool_)
        for marks, end in ((segments.enter, segments.low), (segments.leave, segments.high)):
            for i in np.nonzero((marks >= 0) & (np.abs(time - end) * limits.TIMES < 1.0))[0].tolist():
                known = zip(self.columns[marks[i]], self.levels[marks[i]], strict=True)
                out[i] |= ((number, int(column[i])), float(level[i])) in known
        return out

    def met(self, segments: Segments, which: Bools) -> Iterator[tuple[int, int, int, float]]:
        """The crossings at the ends of some segments: the segment, the index in head_levels, the column, the level."""
        for i in np.nonzero(which)[0].tolist():
            for mark in (segments.enter[i], segments.leave[i]):
                if mark >= 0:
                    for (number, column), level in zip(self.columns[mark], self.levels[mark], strict=True):
                        yield i, number, column, level

    def cut(self, segments: Segments, cuts: list[Cuts]) -> Segments:
        """The segments after cutting; records the crossings at which they are cut."""
        segment, time, number, column, level = (
            np.concatenate([getattr(c, f) for c in cuts]) for f in ("segment", "time", "number", "column", "level")
        )
        order = np.lexsort((time, segment))
        segment, time, number, column, level = (v[order] for v in (segment, time, number, column, level))
        again = self._joined(segments, segment, time, number, column, level)
        whole = np.setdiff1d(segment[again], segment[~again])
        segment, time, number, column, level = (v[~again] for v in (segment, time, number, column, level))
        apart = np.diff(np.rint(time * limits.TIMES)) != 0
        new = np.ones(len(time), np.bool_)
        new[1:] = (segment[1:] != segment[:-1]) | (number[1:] < 0) | (number[:-1] < 0) | apart
        mark = np.full(len(time), -1)
        for i in np.nonzero(number >= 0)[0].tolist():
            if new[i]:
                self.panel.append(int(segments.panel[segment[i]]))
                self.time.append(float(time[i]))
                self.columns.append([])
                self.levels.append([])
            mark[i] = len(self.time) - 1
            self.columns[-1].append((int(number[i]), int(column[i])))
            self.levels[-1].append(float(level[i]))
        cut = segments.cut(segment[new], time[new], mark[new])
        return Segments.joined([cut, segments[whole]])

    def _joined(
        self, segments: Segments, segment: Ints, time: Array, number: Ints, column: Ints, level: Array
    ) -> Bools:
        """Add to the crossing at an end of a segment what crosses at the same time; returns which of the cuts do."""
        out = np.zeros(len(time), np.bool_)
        for i in np.nonzero(number >= 0)[0].tolist():
            for mark in (int(segments.enter[segment[i]]), int(segments.leave[segment[i]])):
                if mark >= 0 and not out[i] and round(self.time[mark] * limits.TIMES) == round(time[i] * limits.TIMES):
                    self.columns[mark].append((int(number[i]), int(column[i])))
                    self.levels[mark].append(float(level[i]))
                    out[i] = True
        return out
