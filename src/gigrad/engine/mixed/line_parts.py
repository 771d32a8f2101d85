"""How much single columns of the rows move a line: what an error of the score's derivative by it may cost them."""

from __future__ import annotations

import numpy as np

from ..graph import Array, Node
from .lines import Lines
from .panels import Panels

WIDEST = 64
"""Lines of more columns than this are taken to be moved by one column of the rows each."""


class LineParts:
    """The largest parts of the speeds of lines on a block of paths, asked once for each line."""

    def __init__(self, lines: Lines) -> None:
        self.lines = lines
        self.known: dict[Node, Array] = {}

    def on(self, node: Node, panels: Panels) -> tuple[Array, Array]:
        """The most that one column moves each column of a line, and how that moves, by time: (panels, width) each."""
        grid, ends = self.lines.grid, self.lines.ends[node]
        left = grid.left[panels.piece]
        speed = (ends[left + 1] - ends[left]) / (grid.time[left + 1] - grid.time[left])[:, None]
        if not self.lines.straight or node.width > WIDEST:
            return np.abs(speed), speed
        if node not in self.known:
            legs = np.arange(len(self.lines.legs))
            each = np.zeros((len(legs), node.width))
            for column in range(node.width):
                one = np.zeros((len(legs), node.width))
                one[:, column] = 1.0
                each[:, column] = np.abs(self.lines.pull_rows(legs, {node: one})).max(axis=1, initial=0.0)
            self.known[node] = each
        return self.known[node][panels.leg], speed
