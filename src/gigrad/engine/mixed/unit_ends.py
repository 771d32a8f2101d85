"""A wide layer of smooth units over lines with kinks, evaluated once for each kink.

On a panel between two kinks what such a unit reads is linear in time, so that its value at an end of the panel also
gives its derivatives by time there. Values and two derivatives at both ends determine a polynomial of degree 5, and
neighbouring panels share an end: one evaluation a panel, where Gauss's nodes would take two or three.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ... import kernels
from ...graph import Array, Node
from ..paths import Ints
from ..quadrature import by_ends
from ..roles import Roles, WideUnits
from .lines import Lines
from .panels import Panels


@dataclass(frozen=True, eq=False)
class UnitEnds:
    """A wide layer of units at both ends of panels, and the sums over it.

    Attributes
    ----------
    line : Node
        What the units read.
    layer : UnitLayer
    sums : (panels * nodes, outputs)
        The layer above, at the nodes of `by_ends().rule`.
    speed : (panels, outputs, 6)
        Its derivatives by the panels' own coordinate at both ends.
    sizes : (panels, outputs, 6)
        For each degree, the root of the sum of squares of coefficients of the units' parts of that derivative.
    """

    line: Node
    layer: kernels.UnitLayer
    sums: Array
    speed: Array
    sizes: Array

    @classmethod
    def of(cls, wide: WideUnits, lines: Lines, panels: Panels) -> UnitEnds:
        """The layer on panels, of which neighbours share an end."""
        grid, rows = lines.grid, lines.ends[wide.units.source]
        left = grid.left[panels.piece]
        start = grid.time[left]
        length = grid.time[left + 1] - start
        # Both ends of all panels in turn, as the point of the grid before and the share of the piece after it.
        share = np.stack([(panels.low - start) / length, (panels.high - start) / length], axis=1).ravel()
        at = np.repeat(left, 2) + (share == 1.0)
        share[share == 1.0] = 0.0
        fresh = np.ones(len(at), np.bool_)
        fresh[1:] = (np.diff(at) != 0) | (np.diff(share) != 0)
        low, high = (np.cumsum(fresh) - 1).reshape(-1, 2).T
        values = kernels.units_between(rows, at[fresh], share[fresh], wide.units.name == "sigmoid")
        layer = kernels.UnitLayer(
            values, wide.slope, wide.sums.weight, np.ascontiguousarray(low), np.ascontiguousarray(high), rows, left,
            0.5 * panels.length / length,
        )  # fmt: skip
        rule = by_ends()
        speed, sizes = layer.speeds(rule.even, rule.odd)
        sums = values @ wide.sums.weight.T + wide.sums.bias
        known = np.concatenate([sums[low][:, None], sums[high][:, None], speed.transpose(0, 2, 1)[:, :4]], axis=1)
        nodes = np.matmul(rule.to_nodes, known)
        return cls(wide.units.source, layer, nodes.reshape(-1, wide.sums.width), speed, sizes)

    def part(self, index: Ints) -> UnitEnds:
        """The same of some of the panels."""
        layer, nodes = self.layer, len(self.sums) // len(self.speed)
        some = {name: getattr(layer, name)[index] for name in ("low", "high", "left", "part")}
        sums = self.sums.reshape(len(self.speed), nodes, -1)[index].reshape(len(index) * nodes, -1)
        return UnitEnds(self.line, replace(layer, **some), sums, self.speed[index], self.sizes[index])

    def speeds(self, by_sums: Array) -> Array:
        """The derivative by the panels' own coordinate of what has derivatives `by_sums` (panels, nodes, outputs)."""
        at_nodes = np.matmul(by_ends().to_nodes, self.speed.transpose(0, 2, 1))  # (panels, nodes, outputs)
        return np.asarray((by_sums * at_nodes).sum(axis=2))

    def pulled(self, by_sums: Array, weight: Array) -> tuple[Array, Array, Array]:
        """Such derivatives pulled back to what the units read.

        Parameters
        ----------
        by_sums : (panels, nodes, outputs)
        weight : (k, panels, nodes)

        Returns
        -------
        sums : (k, panels, units)
            Weighted sums over the nodes.
        total, root : (nodes, panels)
            Legendre coefficients of the derivative by the panels' own coordinate, and a bound on the root of the sum
            of squares of those of its parts by units.
        """
        rule = by_ends()
        to_coefficients = rule.rule.to_coefficients
        by_weight = weight[:, :, None] * by_sums.transpose(0, 2, 1)  # (k, panels, outputs, nodes)
        sums = self.layer.pull_back(by_weight @ rule.to_nodes)
        factor = np.abs(np.matmul(to_coefficients, by_sums)).transpose(0, 2, 1)  # (panels, outputs, degrees)
        products = (self.sizes[:, :, :, None] * factor[:, :, None, :]).sum(axis=1)  # by degree and degree
        root = (products.reshape(len(products), -1) @ rule.products.reshape(-1, len(to_coefficients))).T
        return sums, to_coefficients @ self.speeds(by_sums).T, root


def shares_ends(roles: Roles, lines: Lines) -> bool:
    """Whether all curves of a model are over a wide layer of units that is evaluated at the ends of panels alone."""
    return roles.wide_units is not None and not lines.straight
