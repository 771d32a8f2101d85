"""Pullback from curves to the lines below them: weighted sums over the nodes of panels, and their truncation errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ... import kernels
from ...graph import Affine, Array, Elementwise, Node
from .. import limits
from ..paths import Ints
from ..roles import Roles, pull_back

if TYPE_CHECKING:
    from .patch import Patch


@dataclass(frozen=True, eq=False)
class Fan:
    """A layer of smooth units over the only line that curves read, and the few linear outputs that read the units.

    A net of ReLU layers ends so if the last layer is smooth. Its units are evaluated on every piece of a path: one row
    at a time, from line to outputs and back, without arrays of all units.
    """

    line: Node
    units: Elementwise
    sums: Affine
    above: tuple[Node, ...]  # the other curves

    @classmethod
    def of(cls, roles: Roles) -> Fan | None:
        """The fan at the beginning of the curves, if there is one."""
        users: dict[Node, list[Node]] = {}
        for node in (*roles.curves, *roles.head):
            for parent in node.parents:
                users.setdefault(parent, []).append(node)
        lines = [n for n in roles.line_ends if any(u in roles.curves for u in users.get(n, []))]
        if len(lines) != 1 or len(users[lines[0]]) != 1:
            return None
        (units,) = users[lines[0]]
        if not isinstance(units, Elementwise) or units.name not in kernels.UNITS or units is roles.output:
            return None
        sums = users.get(units, [])
        if (
            len(sums) != 1
            or not isinstance(sums[0], Affine)
            or sums[0].width > limits.FAN_SUMS
            or sums[0] not in roles.curves
        ):
            return None
        return cls(lines[0], units, sums[0], tuple(n for n in roles.curves if n not in (units, sums[0])))

    def at(self, rows: Array, left: Ints, part: Array) -> dict[Node, Array]:
        """The units and their outputs where the line is `part` of the way from row `left` to the next, (n,) each."""
        units, sums = kernels.units_at(self.units.name, rows, left, part, self.sums.weight)
        sums += self.sums.bias
        return {self.units: units, self.sums: sums}


@dataclass(frozen=True, eq=False)
class Parts:
    """The contributions (parts) of the columns of the rows to the speed of one column of a curve on panels.

    Where lines have kinks these are too expensive: there the speed of the curve, and the root of the sum of squares of
    its parts, replace them.

    Attributes
    ----------
    last : (up to 4, panels, columns)
        Sizes of the highest coefficients of the parts.
    largest : (panels,)
        The largest part, in the mean over the panel.
    total : (order, panels)
        The coefficients of the sum of all parts.
    largest_turn, total_turn : (orders, panels)
        The deviation of these from a polynomial of at most `limits.SEGMENT_NODES[i]` coefficients.
    largest_seen : (2 orders, panels)
        The components of the largest part of degree `limits.SEGMENT_NODES[i] - 1` or more, then of one degree more.
    """

    last: Array
    largest: Array
    total: Array
    largest_turn: Array
    total_turn: Array
    largest_seen: Array

    @classmethod
    def of(cls, parts: Array, total: Array) -> Parts:
        """The parts from their Legendre coefficients, (order, panels, columns), and those of their sum."""
        sizes = np.abs(parts)
        above = np.cumsum(sizes[::-1], axis=0)[::-1].max(axis=2, initial=0.0)
        return cls._found(sizes[-4:], sizes[0].max(axis=1, initial=0.0), above, total)

    @classmethod
    def at_nodes(cls, rows: Array, to_coefficients: Array) -> Parts:
        """The parts from their values at the nodes of panels, (panels, nodes, columns), by the native core."""
        return cls._found(*kernels.speed_parts(rows, to_coefficients))

    @classmethod
    def _found(cls, last: Array, largest: Array, above: Array, total: Array) -> Parts:
        """`above` (order, panels) has components of each degree or more: of the largest part."""
        total_above = np.cumsum(np.abs(total)[::-1], axis=0)[::-1]
        high = [min(order, len(total)) - 1 for order in limits.SEGMENT_NODES]
        from_degree = [min(order, len(total) - 1) for order in limits.SEGMENT_NODES]
        return cls(last, largest, total, above[from_degree], total_above[from_degree], above[high + from_degree])


def pulled(patch: Patch, curve: Node, column: int, weight: Array) -> tuple[dict[Node, Array], Parts]:
    """The derivatives of one column of a curve with respect to the lines below it.

    Parameters
    ----------
    weight : (k, panels, order)

    Returns
    -------
    sums : dict of (k, panels, width)
        Weighted sums over the nodes of every panel.
    parts : Parts
    """
    fan = patch.lines.fan
    if fan is not None:
        return _pulled_through_fan(patch, fan, curve, column, weight)
    gradient = patch.gradient(curve, column)
    sums = {n: np.matmul(weight[:, :, None, :], slope[None])[:, :, 0, :] for n, slope in gradient.items()}
    return sums, _parts(patch, gradient)


def _pulled_through_fan(
    patch: Patch, fan: Fan, curve: Node, column: int, weight: Array
) -> tuple[dict[Node, Array], Parts]:
    cotangent = np.zeros_like(patch.values[curve])
    cotangent[:, column] = 1.0
    waiting = pull_back(fan.above, {curve: cotangent}, patch.values)
    left, share = patch.pieces
    found = [
        kernels.units_back(
            fan.units.name, patch.values[fan.units], waiting[fan.sums], fan.sums.weight, one.ravel(),
            patch.rule.to_coefficients[-4:], patch.lines.ends[fan.line], left, share,
        )
        for one in weight
    ]  # fmt: skip
    _, total, squares = found[0]
    length, order = patch.panels.length, patch.rule.size
    total, sizes = total / length, np.stack([np.abs(total), np.sqrt(squares)], axis=2) / length[None, :, None]
    if order > 4:  # lower degrees were not computed: interpolated between the curve's speed and the known ones
        values = patch.values[curve][:, column].reshape(len(length), -1)
        speed = np.abs(values[:, -1] - values[:, 0]) / length + sizes.max(axis=(0, 2))
        share = (np.arange(order - 4) / (order - 4))[:, None, None]
        missing = speed[:, None] ** (1 - share) * sizes.max(axis=0) ** share
        sizes, total = np.concatenate([missing, sizes]), np.concatenate([missing[:, :, 0], total])
    return {fan.line: np.stack([line for line, _, _ in found])}, Parts.of(sizes, total)


def _parts(patch: Patch, gradient: dict[Node, Array]) -> Parts:
    order, panels = patch.rule.size, patch.panels
    if patch.lines.straight:
        flat = {n: v.reshape(len(panels) * order, -1) for n, v in gradient.items()}
        rows = patch.lines.pull_rows(np.repeat(panels.leg, order), flat)
        return Parts.at_nodes(rows.reshape(len(panels), order, -1), patch.rule.to_coefficients)
    found = {n: np.matmul(patch.rule.to_coefficients, slope) for n, slope in gradient.items()}
    total, squares = np.zeros((2, order, len(panels)))
    for n, values in found.items():
        values *= (patch.line_moves[n] / panels.length[:, None])[:, None]
        total += values.sum(axis=2).T
        squares += np.einsum("pdw,pdw->dp", values, values)
    return Parts.of(np.stack([total, np.sqrt(squares)], axis=2), total)
