"""The way back from curves to the lines below them: weighted sums over the nodes of panels, and what they may lack."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .. import kernels
from ..graph import Affine, Array, Elementwise, Node
from .paths import Ints
from .roles import Roles, pull_back

if TYPE_CHECKING:
    from .panels import Patch

ORDERS = (1, 2, 4, 8)
"""Nodes on a segment of the head: an interpolant is orthogonal to what it misses up to that degree."""

SUMS = 8
"""Units that more sums than this read are pulled back by a matrix product."""


@dataclass(frozen=True, eq=False)
class Fan:
    """A layer of smooth units over the one line that curves read, and the few sums that are all that reads the units.

    A net of ReLU layers with a smooth one on top ends so, and its units are asked on every piece of a path: they are
    followed one row at a time from line to sums and back, without tables of all of them in between.
    """

    line: Node
    units: Elementwise
    sums: Affine
    above: tuple[Node, ...]  # the other curves

    @classmethod
    def of(cls, roles: Roles) -> Fan | None:
        """The fan that curves begin with, if they do."""
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
        if len(sums) != 1 or not isinstance(sums[0], Affine) or sums[0].width > SUMS or sums[0] not in roles.curves:
            return None
        return cls(lines[0], units, sums[0], tuple(n for n in roles.curves if n not in (units, sums[0])))

    def at(self, rows: Array, left: Ints, part: Array) -> dict[Node, Array]:
        """The units and their sums where the line has gone `part` of the way from row `left` to the next, (n,) each."""
        units, sums = kernels.units_at(self.units.name, rows, left, part, self.sums.weight)
        sums += self.sums.bias
        return {self.units: units, self.sums: sums}


@dataclass(frozen=True, eq=False)
class Parts:
    """How fast the columns of the rows move one column of a curve on panels: its speed, taken apart.

    Where lines have kinks the columns are too far away: there the speed of the curve, and the size that a sum of its
    parts has when their signs are as likely as not, stand for all of them.

    Attributes
    ----------
    last : (up to 4, panels, columns)
        Sizes of the highest coefficients of the parts.
    largest : (panels,)
        The largest part, as it is on the average.
    total : (order, panels)
        The coefficients of the sum of all.
    largest_turn, total_turn : (orders, panels)
        How much these depart from a polynomial of no more than `ORDERS[i]` coefficients.
    """

    last: Array
    largest: Array
    total: Array
    largest_turn: Array
    total_turn: Array

    @classmethod
    def of(cls, parts: Array, total: Array) -> Parts:
        """From the coefficients of all degrees: of the parts, (order, panels, columns), and of their sum."""
        sizes, totals = np.abs(parts), np.abs(total)
        from_degree = [min(order, len(sizes) - 1) for order in ORDERS]
        return cls(
            sizes[-4:],
            sizes[0].max(axis=1, initial=0.0),
            total,
            np.stack([sizes[degree:].sum(axis=0).max(axis=1, initial=0.0) for degree in from_degree]),
            np.stack([totals[degree:].sum(axis=0) for degree in from_degree]),
        )


def pulled(patch: Patch, curve: Node, column: int, weight: Array) -> tuple[dict[Node, Array], Parts]:
    """The derivatives of one column of a curve by the lines below it.

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
    if order > 4:  # lower degrees were not asked for: they fall from the speed of the curve to those that were
        values = patch.values[curve][:, column].reshape(len(length), -1)
        speed = np.abs(values[:, -1] - values[:, 0]) / length + sizes.max(axis=(0, 2))
        share = (np.arange(order - 4) / (order - 4))[:, None, None]
        missing = speed[:, None] ** (1 - share) * sizes.max(axis=0) ** share
        sizes, total = np.concatenate([missing, sizes]), np.concatenate([missing[:, :, 0], total])
    return {fan.line: np.stack([line for line, _, _ in found])}, Parts.of(sizes, total)


def _parts(patch: Patch, gradient: dict[Node, Array]) -> Parts:
    order, panels = patch.rule.size, patch.panels
    found = {n: np.matmul(patch.rule.to_coefficients, slope) for n, slope in gradient.items()}
    if patch.lines.straight:
        flat = {n: v.reshape(len(panels) * order, -1) for n, v in found.items()}
        rows = patch.lines.pull_rows(np.repeat(panels.leg, order), flat)
        parts = rows.reshape(len(panels), order, -1).transpose(1, 0, 2)
        return Parts.of(parts, parts.sum(axis=2))
    total, squares = np.zeros((2, order, len(panels)))
    for n, values in found.items():
        values *= (patch.line_moves[n] / panels.length[:, None])[:, None]
        total += values.sum(axis=2).T
        squares += np.einsum("pdw,pdw->dp", values, values)
    return Parts.of(np.stack([total, np.sqrt(squares)], axis=2), total)
