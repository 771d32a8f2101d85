"""Bounds on how much single columns of the rows move a line, from which errors of their credits follow."""

from __future__ import annotations

import numpy as np

from ...graph import Array, Node
from .. import limits
from .lines import Lines
from .panels import Panels


class LineParts:
    """The largest contributions of single columns to the speeds of lines on a block of paths, kept with the lines."""

    def __init__(self, lines: Lines) -> None:
        self.lines = lines
        self.known: dict[Node, Array] = lines.__dict__.setdefault("_parts", {})

    def on(self, node: Node, panels: Panels) -> tuple[Array, Array]:
        """The largest contribution of one column to the speed of each column of a line, and that speed: (panels, width)
        each."""
        grid, ends = self.lines.grid, self.lines.ends[node]
        left = grid.left[panels.piece]
        speed = (ends[left + 1] - ends[left]) / (grid.time[left + 1] - grid.time[left])[:, None]
        largest = self.by_leg(node)
        return np.abs(speed) if largest is None else largest[panels.leg], speed

    def by_leg(self, node: Node) -> Array | None:
        """The largest contributions on every leg, (legs, width); None where lines have kinks, or are many."""
        if not self.lines.straight_below(node) or node.width > limits.WIDEST_LINE:
            return None
        if node not in self.known:
            legs = np.arange(len(self.lines.legs))
            each = np.zeros((len(legs), node.width))
            for column in range(node.width):
                one = np.zeros((len(legs), node.width))
                one[:, column] = 1.0
                each[:, column] = np.abs(self.lines.pull_rows(legs, {node: one})).max(axis=1, initial=0.0)
            self.known[node] = each
        return self.known[node]
