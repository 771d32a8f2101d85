"""Lines computed by the native core: everything from the first units with kinks upward.

Nodes below the first kinks are linear on a leg, and are evaluated at its two ends in Python (`Lines`). `Lines` does all
of it for nets that the core does not implement, and is the oracle in tests of the core.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ... import kernels
from ...graph import Array, Node
from .. import limits
from ..paths import Block
from ..roles import Roles
from ..settings import Settings
from .lines import Grid, Legs, Lines

_NO_WEIGHT, _NO_BIAS = np.zeros((0, 0)), np.zeros(0)


@dataclass(frozen=True, eq=False)
class LineProgram:
    """A net of the native core, and its inputs.

    Attributes
    ----------
    straight : tuple of Node
        Lines without kinks: those that the net reads, those that are ends, and the nodes below them.
    read : tuple of Node
        Those of them that are the inputs of the net, concatenated.
    """

    straight: tuple[Node, ...]
    read: tuple[Node, ...]
    native: Any


def line_program(roles: Roles) -> LineProgram | None:
    """The program of a model's lines from the first kinks upward; None without kinks, or if the core lacks a node."""
    depth: dict[Node, int] = {}  # number of layers with kinks up to and including each node
    for node in roles.lines:
        depth[node] = max((depth[p] for p in node.parents), default=0) + bool(node.kinks)
    above = [n for n in roles.lines if depth[n]]
    straight = tuple(n for n in roles.lines if not depth[n])
    if not above or any(_faster_by_blas(n, depth) for n in above):
        return None
    wanted = {p for n in above for p in n.parents} | set(roles.line_ends)
    read = tuple(n for n in straight if n in wanted)
    place = {n: i for i, n in enumerate((*read, *above))}
    steps: list[tuple[Any, ...]] = [("straight", n.width, [], _NO_WEIGHT, _NO_BIAS, [], []) for n in read]
    for node in above:
        step = _step(node, place)
        if step is None:
            return None
        steps.append(step)
    return LineProgram(straight, read, kernels.LineNet(steps, [place[n] for n in roles.line_ends]))


def _faster_by_blas(node: Node, depth: dict[Node, int]) -> bool:
    """Whether a node is a large layer that is multiplied at many points of a leg.

    A layer over the first units is multiplied only at the two ends of a leg.
    """
    stage = node.stage()
    if stage is None or stage.name != "affine" or stage.a.size <= limits.TRACED_WEIGHTS:
        return False
    return depth[node] > 1 or not node.parents[0].kinks


def _step(node: Node, place: dict[Node, int]) -> tuple[Any, ...] | None:
    """A node in the form that `kernels.LineNet` takes, from its own description; None if the net does not have it."""
    at, stage = [place[p] for p in node.parents], node.stage()
    if node.unit_slopes is not None:
        return "units", node.width, at, _NO_WEIGHT, _NO_BIAS, list(node.unit_slopes), []
    name = None if stage is None else stage.name
    if stage is None or name not in ("affine", "sum", "select", "concat"):
        return None
    if name == "affine":
        return "affine", node.width, at, np.ascontiguousarray(stage.a), stage.b, [], []
    if name == "sum":
        return "sum", node.width, at, _NO_WEIGHT, _NO_BIAS, [], []
    columns = [(i, j) for i, p in enumerate(node.parents) for j in range(p.width)]
    if name == "select":
        columns = [columns[int(j)] for j in stage.a]
    return "gather", node.width, at, _NO_WEIGHT, _NO_BIAS, [], columns


@dataclass(frozen=True, eq=False, kw_only=True)
class TracedLines(Lines):
    """The lines of a model on a block of paths, computed by the native core.

    Attributes
    ----------
    rows : (2 legs, columns)
        What the net reads at the two ends of every leg.
    """

    program: LineProgram
    rows: Array
    n_threads: int

    @staticmethod
    def by_core(roles: Roles, block: Block, legs: Legs, program: LineProgram, n_threads: int) -> TracedLines:
        """The lines below the first kinks in Python, all others by the core, once they are asked for."""
        below = Lines.trace(roles, block, legs, program.straight)
        rows = np.concatenate([below.values[n] for n in program.read], axis=1)
        return TracedLines(
            roles, block, legs, below.grids, below.level, below.values, below.middles, below.hinges,
            program=program, rows=rows, n_threads=n_threads,
        )  # fmt: skip

    @cached_property
    def traced(self) -> kernels.TracedLegs:
        """The net on all legs, from kink to kink."""
        return kernels.trace_lines(self.program.native, self.legs.low, self.legs.high, self.rows, self.n_threads)

    @cached_property
    def grid(self) -> Grid:
        """The finest grid: nothing has a kink inside its pieces."""
        time = self.traced.time
        return Grid(self.traced.offsets, time, np.arange(len(time)), np.zeros(len(time)))

    @property
    def straight(self) -> bool:
        return len(self.traced.time) == 2 * len(self.legs)

    @cached_property
    def ends(self) -> dict[Node, Array]:
        """Values on the finest grid of the lines that others read."""
        edges = np.cumsum([0, *(n.width for n in self.roles.line_ends)]).tolist()
        parts = zip(self.roles.line_ends, edges[:-1], edges[1:], strict=True)
        return {n: np.ascontiguousarray(self.traced.ends[:, a:b]) for n, a, b in parts}

    def pull_back(self, cotangents: dict[Node, Array]) -> Array:
        """Credit of every column on every leg, (legs, p): see `Lines.pull_back`."""
        pieces = len(self.grid.left)
        parts = [cotangents.get(n, np.zeros((pieces, n.width))) for n in self.roles.line_ends]
        return self.pull_straight(self.traced.pull_back(np.concatenate(parts, axis=1), self.n_threads))

    def pull_straight(self, back: Array) -> Array:
        """The same from integrals of derivatives by what the net reads, (legs, columns)."""
        edges = np.cumsum([n.width for n in self.program.read])[:-1]
        by_node = dict(zip(self.program.read, np.split(back, edges, axis=1), strict=True))
        return self.pull_rows(np.arange(len(self.legs)), by_node)


def lines_of(roles: Roles, block: Block, legs: Legs, settings: Settings, alone: bool = False) -> Lines:
    """The lines of a block of paths, by the native core if it implements them and they have kinks.

    With `alone` set, they will only be followed together with a head, which finds out itself whether they have.
    """
    program = roles.line_program if settings.native else None
    if program is not None:
        traced = TracedLines.by_core(roles, block, legs, program, kernels.threads(settings.n_threads))
        if alone or not traced.straight:
            return traced
    return Lines.trace(roles, block, legs, two_layers=settings.native)
