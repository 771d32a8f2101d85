"""How much single columns of the rows move a line: what an error of the score's derivative by it may cost them."""

from __future__ import annotations

import numpy as np

from ..graph import Array, Node, needed
from .lines import Lines
from .panels import Panels
from .paths import Block
from .roles import pull_back

WIDEST = 64
"""Lines of more columns than this are taken to be moved by one column of the rows each."""

SAMPLES = 4
"""Times of a leg at which it is asked how much columns move a line with kinks."""


class LineParts:
    """The largest parts of the speeds of lines on a block of paths, asked once for each line."""

    def __init__(self, block: Block, lines: Lines) -> None:
        self.block, self.lines = block, lines
        self.known: dict[Node, Array] = {}

    def on(self, node: Node, panels: Panels) -> tuple[Array, Array]:
        """The most that one column moves each column of a line, and how that moves, by time: (panels, width) each."""
        grid, ends = self.lines.grid, self.lines.ends[node]
        left = grid.left[panels.piece]
        speed = (ends[left + 1] - ends[left]) / (grid.time[left + 1] - grid.time[left])[:, None]
        if node.width > WIDEST:
            return np.abs(speed), speed
        if node not in self.known:
            self.known[node] = self._on_legs(node)
        return np.maximum(self.known[node][panels.leg], np.abs(speed)), speed

    def _on_legs(self, node: Node) -> Array:
        """The most that one column moves each column of a line by time on every leg, (legs, width).

        Where lines have kinks their gradients change from piece to piece. A few times tell how large they are.
        """
        legs, source, samples = self.lines.legs, self.lines.roles.source, 1 if self.lines.straight else SAMPLES
        leg = np.repeat(np.arange(len(legs)), samples)
        part = np.tile((np.arange(samples) + 0.5) / samples, len(legs))
        time = legs.low[leg] + part * (legs.high - legs.low)[leg]
        rows = self.block.at(legs.path[leg], time, legs.late[leg])
        values = self.lines.roles.evaluate((node,), {source: rows})
        below = needed((node,), {source})
        move, out = self.block.move[legs.path[leg]], np.zeros((len(legs), node.width))
        for column in range(node.width):
            one = np.zeros((len(leg), node.width))
            one[:, column] = 1.0
            found = pull_back(below, {node: one}, values).get(source)
            if found is not None:
                largest = np.abs(found * move).max(axis=1, initial=0.0)
                out[:, column] = largest.reshape(len(legs), samples).max(axis=1)
        return out
