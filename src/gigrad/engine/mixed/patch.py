"""Curves on panels: evaluated at a few nodes of each, and interpolated everywhere else."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ... import kernels
from ...graph import Array, Node
from ..paths import Bools, Ints
from ..quadrature import Rule, by_ends, gauss, tails
from ..roles import Roles, pull_back
from ..settings import Settings
from .lines import Lines
from .native_curves import CurveRun
from .panels import Panels
from .unit_ends import UnitEnds, shares_ends


@dataclass(frozen=True, eq=False)
class PanelCurves:
    """Some panels with the interpolated curves on them.

    Attributes
    ----------
    rule : Rule
        The Gauss rule at whose nodes the curves are known.
    least_rate : float
        The fastest decay of their coefficients that is trusted, see `quadrature.tails`.
    run : CurveRun, optional
        The curves at the nodes, by the native core.
    values : dict of (panels * nodes, width)
        The same without it: the curves, and what they read. Not a layer that is evaluated at the ends of panels.
    unit_ends : UnitEnds, optional
        That layer, from which all curves follow.
    ends : (panels, nodes, columns of all curve ends)
        The curves that the head reads, or that are the output, at the nodes.
    coefficients : (panels, nodes, columns of all curve ends)
        Legendre coefficients of the curves that the head reads.
    doubt : (panels, columns)
        A bound on the interpolation error of each column on its panel.
    astray : (panels, columns)
        The measured interpolation error of each column at the ends of its panel, if evaluated; else 0.
    unsure : (panels,)
        Where there may be a kink, since there are too few nodes to decide.
    """

    roles: Roles
    lines: Lines
    panels: Panels
    rule: Rule
    least_rate: float
    run: CurveRun | None
    values: dict[Node, Array]
    unit_ends: UnitEnds | None
    ends: Array
    coefficients: Array
    doubt: Array
    astray: Array
    unsure: Bools

    @classmethod
    def of(
        cls,
        roles: Roles,
        lines: Lines,
        panels: Panels,
        order: int,
        least_rate: float,
        careful: bool,
        settings: Settings,
    ) -> PanelCurves:
        """The patch with curves evaluated at `order` nodes of every panel; with `careful` set, also at both ends."""
        shared = roles.wide_units is not None and shares_ends(roles, lines)
        rule, nowhere = by_ends().rule if shared else gauss(order), np.zeros(len(panels), np.bool_)
        run = CurveRun.of(roles, lines, panels, rule, least_rate, settings)
        none = np.zeros((len(panels), order, 0))
        bare = cls(roles, lines, panels, rule, least_rate, run, {}, None, none, none, none[:, 0], none[:, 0], nowhere)
        if roles.wide_units is not None and shared:
            unit_ends = UnitEnds.of(roles.wide_units, lines, panels)
            values = roles.evaluate(roles.above_wide, {roles.wide_units.sums: unit_ends.sums})
            patch = replace(bare, unit_ends=unit_ends)._with_values(values)
        else:
            patch = bare._in_python() if run is None else bare._by_core(run.found)
        return replace(patch, astray=_astray(patch)) if careful and roles.curve_ends else patch

    def _by_core(self, found: kernels.CurveValues) -> PanelCurves:
        """The patch with what the native core found."""
        return replace(
            self,
            ends=found.ends,
            coefficients=found.coefficients,
            doubt=found.doubt,
            astray=np.zeros_like(found.doubt),
        )

    def _in_python(self) -> PanelCurves:
        """The patch with all curves evaluated at the nodes."""
        if not self.roles.curves:
            return self
        time = self.middle[:, None] + self.half[:, None] * self.rule.nodes
        panel = np.repeat(np.arange(len(self.panels)), self.rule.size)
        return self._with_values(self.roles.evaluate(self.roles.curves, self.lines_at(panel, time.ravel())))

    def _with_values(self, values: dict[Node, Array]) -> PanelCurves:
        """The patch with the values of curves at the nodes."""
        order = self.rule.size
        parts = [values[n].reshape(len(self.panels), order, n.width) for n in self.roles.curve_ends]
        ends = np.concatenate(parts, axis=2)
        coefficients: Array = np.matmul(self.rule.to_coefficients, ends)
        last = np.abs(coefficients[:, -4:]).transpose(1, 0, 2)
        doubt: Array = tails(last, order, self.least_rate)[:2].sum(axis=0)
        return replace(
            self, values=values, ends=ends, coefficients=coefficients, doubt=doubt, astray=np.zeros_like(doubt)
        )

    def part(self, index: Ints) -> PanelCurves:
        """The patch of some of the panels, whose curves have kinks: the native core does not implement those."""
        nodes = (index[:, None] * self.rule.size + np.arange(self.rule.size)).ravel()
        return replace(
            self,
            panels=self.panels[index],
            ends=self.ends[index],
            values={n: v[nodes] for n, v in self.values.items()},
            unit_ends=None if self.unit_ends is None else self.unit_ends.part(index),
            coefficients=self.coefficients[index],
            doubt=self.doubt[index],
            astray=self.astray[index],
            unsure=self.unsure[index],
        )

    @cached_property
    def read(self) -> set[Node]:
        """The lines that curves read."""
        return {p for c in self.roles.curves for p in c.parents}

    @cached_property
    def half(self) -> Array:
        """Half of each panel's length."""
        return np.asarray(0.5 * self.panels.length)

    @cached_property
    def scale(self) -> Array:
        """The factor from time to the panels' own coordinate."""
        return np.asarray(1.0 / np.maximum(self.half, 1e-300))

    @cached_property
    def middle(self) -> Array:
        """The time in the middle of each panel."""
        return np.asarray(0.5 * (self.panels.low + self.panels.high))

    def edges(self) -> tuple[dict[Node, Array], dict[Node, Array]]:
        """The exact values of the curve ends at the beginning and at the end of every panel."""
        every = np.arange(len(self.panels))
        first, last = (
            self.roles.evaluate(self.roles.curve_ends, self.lines_at(every, time))
            for time in (self.panels.low, self.panels.high)
        )
        return first, last

    def _part(self, panel: Ints, time: Array) -> tuple[Ints, Array]:
        """For each time the first edge of its piece, and the time as a share of the piece."""
        grid = self.lines.grid
        left = grid.left[self.panels.piece[panel]]
        start = grid.time[left]
        return left, (time - start) / (grid.time[left + 1] - start)

    def lines_at(self, panel: Ints, time: Array) -> dict[Node, Array]:
        """The lines that curves read, at given times on given panels."""
        left, part = self._part(panel, time)
        return {n: kernels.between_rows(values, left, part) for n, values in self.lines.ends.items() if n in self.read}

    def local(self, panel: Ints, time: Array) -> Array:
        """Times in the panels' own coordinate."""
        return np.asarray((time - self.middle[panel]) * self.scale[panel])

    def at(self, panel: Ints, time: Array) -> dict[Node, Array]:
        """The curves and lines that the head reads, at given times on given panels."""
        if not self.roles.curve_ends:
            return self._head_lines(panel, time)
        series = kernels.series(self.coefficients, panel, self.local(panel, time))
        return self.split(series, self._head_lines(panel, time))

    def range_of(self, joint: Node) -> tuple[float, float]:
        """Bounds of a joint of one column on all panels."""
        if joint in self.roles.curve_ends:
            series = self.coefficients[:, :, self.place(joint)]
            way = np.abs(series[:, 1:]).sum(axis=1)
            return float((series[:, 0] - way).min()), float((series[:, 0] + way).max())
        left = self.lines.grid.left[self.panels.piece]
        ends = np.stack([self.lines.ends[joint][left], self.lines.ends[joint][left + 1]])
        return float(ends.min()), float(ends.max())

    def slopes(self, panel: Ints, time: Array) -> dict[Node, Array]:
        """The derivatives by time of the values of `at`."""
        grid = self.lines.grid
        left = grid.left[self.panels.piece[panel]]
        width = (grid.time[left + 1] - grid.time[left])[:, None]
        lines = {n: (self.lines.ends[n][left + 1] - self.lines.ends[n][left]) / width for n in self.roles.head_lines}
        if not self.roles.curve_ends:
            return lines
        return self.split(kernels.series(self.steepness, panel, self.local(panel, time)), lines)

    def rates(self, panel: Ints, time: Array) -> dict[Node, Array]:
        """As `slopes`, from the gradients of curves at the nodes, so that shares by column add up exactly."""
        lines = {n: v for n, v in self.slopes(panel, time).items() if n in self.roles.head_lines}
        if not self.roles.curve_ends:
            return lines
        return self.split(kernels.series(self._rates, panel, self.local(panel, time)), lines)

    @cached_property
    def _rates(self) -> Array:
        """Coefficients of the derivatives by time, interpolated as the gradients are, (panels, order, columns)."""
        speed = {n: moves / self.panels.length[:, None] for n, moves in self.line_moves.items()}
        out = np.zeros_like(self.coefficients)
        places = [(curve, column) for curve in self.roles.curve_ends for column in range(curve.width)]
        for place, (curve, column) in enumerate(places):
            if self.unit_ends is not None:
                out[:, :, place] = self.unit_ends.speeds(self.by_sums(curve, column)) * self.scale[:, None]
                continue
            for line, slope in self.gradient(curve, column).items():
                out[:, :, place] += np.einsum("pow,pw->po", slope, speed[line])
        return np.asarray(np.matmul(self.rule.to_coefficients, out))

    @cached_property
    def steepness(self) -> Array:
        """Coefficients of the derivatives by time."""
        if self.run is not None:
            return self.run.found.steepness
        return np.asarray(np.matmul(self.rule.derivative, self.coefficients) * self.scale[:, None, None])

    def _head_lines(self, panel: Ints, time: Array) -> dict[Node, Array]:
        """The lines that the head reads, at times on panels."""
        if not self.roles.head_lines:
            return {}
        left, part = self._part(panel, time)
        return {n: kernels.between_rows(self.lines.ends[n], left, part) for n in self.roles.head_lines}

    def place(self, end: Node) -> int:
        """The first column of a curve end among those of all."""
        return sum(n.width for n in self.roles.curve_ends[: self.roles.curve_ends.index(end)])

    def split(self, series: Array, lines: dict[Node, Array]) -> dict[Node, Array]:
        """The columns of all curve ends by node, together with some lines."""
        out, first = dict(lines), 0
        for node in self.roles.curve_ends:
            out[node] = series[:, first : first + node.width]
            first += node.width
        return out

    # ------------------------------------------------------------ pullback

    def gradient(self, curve: Node, column: int) -> dict[Node, Array]:
        """Derivatives of one column of a curve end by each line below it, at all nodes: (panels, order, width) each."""
        if self.run is not None:
            return self.run.gradient(self.place(curve) + column)
        cotangent = np.zeros_like(self.values[curve])
        cotangent[:, column] = 1.0
        found = pull_back(self.roles.curves, {curve: cotangent}, self.values)
        return {n: v.reshape(len(self.panels), self.rule.size, -1) for n, v in found.items()}

    def by_sums(self, curve: Node, column: int) -> Array:
        """Derivatives of one column of a curve end by the sums over a wide layer, (panels, nodes, sums)."""
        wide = self.roles.wide_units
        assert wide is not None
        cotangent = np.zeros_like(self.values[curve])
        cotangent[:, column] = 1.0
        found = pull_back(self.roles.above_wide, {curve: cotangent}, self.values)[wide.sums]
        return found.reshape(len(self.panels), self.rule.size, -1)

    @cached_property
    def pieces(self) -> tuple[Ints, Array]:
        """For each panel the point where its piece begins, and its length as a share of the piece."""
        grid = self.lines.grid
        left = grid.left[self.panels.piece]
        return left, self.panels.length / (grid.time[left + 1] - grid.time[left])

    @cached_property
    def line_moves(self) -> dict[Node, Array]:
        """How far each line that curves read moves over each panel, (panels, width)."""
        left, share = self.pieces
        return {n: share[:, None] * (v[left + 1] - v[left]) for n, v in self.lines.ends.items() if n in self.read}

    @cached_property
    def line_sizes(self) -> dict[Node, Array]:
        """The size of each line that curves read around each panel, (panels, width), for its rounding."""
        left = self.lines.grid.left[self.panels.piece]
        return {n: np.abs(v[left]) + np.abs(v[left + 1]) for n, v in self.lines.ends.items() if n in self.read}


def _astray(patch: PanelCurves) -> Array:
    """The interpolation error of a curve at the ends of panels, which shows a step beyond its outermost nodes."""
    sign = (-1.0) ** np.arange(patch.rule.size)[None, :, None]
    found = []
    for values, series in zip(patch.edges(), (patch.coefficients * sign, patch.coefficients), strict=True):
        exact = np.concatenate([values[n] for n in patch.roles.curve_ends], axis=1)
        found.append(np.abs(exact - series.sum(axis=1)))
    return np.asarray(np.maximum(*found))
