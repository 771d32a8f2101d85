"""Curves on panels by the native core: what `patch` and `slopes` do in Python, which is the oracle in tests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ... import kernels
from ...graph import Affine, Array, Input, Node, Smooth
from .. import limits
from ..quadrature import Rule
from ..roles import Roles
from ..settings import Settings
from .lines import Lines
from .moments import Moments
from .panels import Panels
from .program import curve_program
from .slopes import SpeedParts


@dataclass(frozen=True, eq=False)
class CurveProgram:
    """All curves of a model as a program of the core.

    Attributes
    ----------
    read : tuple of Node
        The lines that are its inputs, concatenated.
    matrix : (columns of the rows, columns of these lines), optional
        Their derivatives by the columns of the rows, if those never change.
    """

    read: tuple[Node, ...]
    matrix: Array | None
    native: Any

    @staticmethod
    def of(roles: Roles) -> CurveProgram | None:
        """The program; None if the core does not implement a curve, or if a curve has kinks of its own."""
        if not roles.curves or roles.curve_levels:
            return None
        read = tuple(n for n in roles.line_ends if any(n in c.parents for c in roles.curves))
        native = curve_program(roles, read)
        return None if native is None else CurveProgram(read, _matrix(roles, read), native)


def usable(roles: Roles, lines: Lines, settings: Settings) -> CurveProgram | None:
    """The program of the curves, if the core takes them on these lines."""
    program = roles.curve_program if settings.native else None
    if program is None or (program.matrix is None if lines.straight else roles.wide_units is not None):
        return None
    return program


def _matrix(roles: Roles, read: tuple[Node, ...]) -> Array | None:
    """The derivatives of lines by the columns of the rows; None if slopes change, or if layers in between are smaller
    than the matrix."""
    if not all(n.slope_is_constant for n in roles.lines if not isinstance(n, Input)):
        return None
    weights = sum(n.weight.size for n in roles.lines if isinstance(n, Affine))
    if weights < roles.source.width * sum(n.width for n in read):
        return None
    found = []
    for line in read:
        waiting = {line: np.eye(line.width)}
        for node in reversed(roles.lines):
            if node in waiting and isinstance(node, Smooth):
                cotangent = waiting.pop(node)
                inputs = (np.broadcast_to(0.0, (line.width, p.width)) for p in node.parents)  # only widths matter
                for parent, part in zip(node.parents, node.pullback(cotangent, *inputs), strict=True):
                    waiting[parent] = waiting[parent] + part if parent in waiting else part
        found.append(waiting[roles.source].T)
    return np.ascontiguousarray(np.concatenate(found, axis=1))


@dataclass(frozen=True, eq=False)
class CurveRun:
    """The curves of some panels, evaluated and differentiated at the nodes of a rule.

    Attributes
    ----------
    found : CurveValues
        For all columns of all curve ends.
    """

    program: CurveProgram
    rule: Rule
    found: kernels.CurveValues
    decay: tuple[float, float]

    @staticmethod
    def of(
        roles: Roles, lines: Lines, panels: Panels, rule: Rule, least_rate: float, settings: Settings
    ) -> CurveRun | None:
        """The curves on all panels; None if the core does not implement them."""
        program = usable(roles, lines, settings)
        if program is None:
            return None
        grid, path = lines.grid, lines.legs.path[panels.leg]
        left = grid.left[panels.piece]
        start = grid.time[left]
        matrix = program.matrix if lines.straight and program.matrix is not None else np.zeros((0, 0))
        decay = least_rate, limits.SLOW_DECAY
        found = kernels.curve_values(
            program.native, [panels.low, panels.high, start, grid.time[left + 1] - start], left,
            lines.joined(program.read), (rule.nodes, rule.to_coefficients), matrix, lines.block.move, path, decay,
            kernels.threads(settings.n_threads),
        )  # fmt: skip
        return CurveRun(program, rule, found, decay)

    def pulled(self, column: int, weight: Array) -> tuple[dict[Node, Array], SpeedParts]:
        """See `slopes.pulled`, for one column of all curve ends."""
        sums = kernels.weigh_nodes(self.found.gradient[column], weight)
        return self._by_line(sums), self._parts(column)

    def credit(self, astray: Array, length: Array, moments: Moments) -> tuple[dict[Node, Array], kernels.CurveCredit]:
        """The integrals of the score's derivatives by each line through all curves, (k, panels, width), and all that
        follows from the moments of the score's derivatives."""
        found = kernels.curve_credit(
            self.found, astray, length, self.rule.to_coefficients, moments.curves, moments.sway, moments.off,
            self.decay, 1.0 / limits.SLOWEST_JOINT,
        )  # fmt: skip
        return self._by_line(found.sums), found

    def gradient(self, column: int) -> dict[Node, Array]:
        """Derivatives by each line at all nodes, (panels, order, width)."""
        return self._by_line(self.found.gradient[column].transpose(0, 2, 1))

    def _parts(self, column: int) -> SpeedParts:
        found = self.found
        above, total = found.above[column], found.total[column]
        return SpeedParts.found(found.last[column], found.first[column], above, total)

    def _by_line(self, table: Array) -> dict[Node, Array]:
        """The last axis by line."""
        out, first = dict[Node, Array](), 0
        for node in self.program.read:
            out[node] = table[..., first : first + node.width]
            first += node.width
        return out
