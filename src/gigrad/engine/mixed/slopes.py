"""Pullback from curves to the lines below them: weighted sums over the nodes of panels, and their truncation errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ... import kernels
from ...graph import Array, Node
from .. import limits

if TYPE_CHECKING:
    from .patch import PanelCurves
    from .unit_ends import UnitEnds


_TINY = float(np.finfo(np.float64).tiny)


def opposed(largest: Array, total: Array) -> Array:
    """How many times as large the largest part of a speed is as the speed, at least 1: parts may cancel each other."""
    return np.asarray(np.clip(largest / np.maximum(total, _TINY), 1.0, 1.0 / limits.SLOWEST_JOINT))


@dataclass(frozen=True, eq=False)
class SpeedParts:
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

    @property
    def opposed(self) -> Array:
        """See `opposed`, (panels,)."""
        return opposed(self.largest, np.abs(self.total).sum(axis=0))

    @classmethod
    def of(cls, parts: Array, total: Array) -> SpeedParts:
        """The parts from their Legendre coefficients, (order, panels, columns), and those of their sum."""
        sizes = np.abs(parts)
        above = np.cumsum(sizes[::-1], axis=0)[::-1].max(axis=2, initial=0.0)
        return cls.found(sizes[-4:], sizes[0].max(axis=1, initial=0.0), above, total)

    @classmethod
    def at_nodes(cls, rows: Array, to_coefficients: Array) -> SpeedParts:
        """The parts from their values at the nodes of panels, (panels, nodes, columns), by the native core."""
        return cls.found(*kernels.speed_parts(rows, to_coefficients))

    @classmethod
    def found(cls, last: Array, largest: Array, above: Array, total: Array) -> SpeedParts:
        """`above` (order, panels) has components of each degree or more: of the largest part."""
        total_above = np.cumsum(np.abs(total)[::-1], axis=0)[::-1]
        high = [min(order, len(total)) - 1 for order in limits.SEGMENT_NODES]
        from_degree = [min(order, len(total) - 1) for order in limits.SEGMENT_NODES]
        return cls(last, largest, total, above[from_degree], total_above[from_degree], above[high + from_degree])


def pulled(patch: PanelCurves, curve: Node, column: int, weight: Array) -> tuple[dict[Node, Array], SpeedParts]:
    """The derivatives of one column of a curve with respect to the lines below it.

    Parameters
    ----------
    weight : (k, panels, order)

    Returns
    -------
    sums : dict of (k, panels, width)
        Weighted sums over the nodes of every panel.
    parts : SpeedParts
    """
    if patch.unit_ends is not None:
        return _pulled_from_ends(patch, patch.unit_ends, curve, column, weight)
    if patch.run is not None:
        return patch.run.pulled(patch.place(curve) + column, weight)
    gradient = patch.gradient(curve, column)
    sums = {n: np.matmul(weight[:, :, None, :], slope[None])[:, :, 0, :] for n, slope in gradient.items()}
    return sums, _parts(patch, gradient)


def _parts(patch: PanelCurves, gradient: dict[Node, Array]) -> SpeedParts:
    """The parts of the score's speed by column; where lines have kinks, bounds on them."""
    order, panels = patch.rule.size, patch.panels
    if patch.lines.straight:
        flat = {n: v.reshape(len(panels) * order, -1) for n, v in gradient.items()}
        rows = patch.lines.pull_rows(np.repeat(panels.leg, order), flat)
        return SpeedParts.at_nodes(rows.reshape(len(panels), order, -1), patch.rule.to_coefficients)
    found = {n: np.matmul(patch.rule.to_coefficients, slope) for n, slope in gradient.items()}
    total, squares = np.zeros((2, order, len(panels)))
    for n, values in found.items():
        values *= (patch.line_moves[n] / panels.length[:, None])[:, None]
        total += values.sum(axis=2).T
        squares += np.einsum("pdw,pdw->dp", values, values)
    return SpeedParts.of(np.stack([total, np.sqrt(squares)], axis=2), total)


def _pulled_from_ends(
    patch: PanelCurves, ends: UnitEnds, curve: Node, column: int, weight: Array
) -> tuple[dict[Node, Array], SpeedParts]:
    """The same where all curves are above a layer of units that is known at the ends of panels."""
    sums, total, root = ends.pulled(patch.by_sums(curve, column), weight)
    total, root = total * patch.scale, root * patch.scale
    return {ends.line: sums}, SpeedParts.of(np.stack([total, root], axis=2), total)
