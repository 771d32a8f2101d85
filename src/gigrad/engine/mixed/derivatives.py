"""The score's derivatives on segments: at the nodes of a rule, and the error of interpolating them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ...graph import Array, Node
from ..paths import Bools, Ints
from ..quadrature import gauss
from ..roles import Roles


@dataclass(frozen=True, eq=False)
class Slopes:
    """The score's derivatives at the nodes of segments by curves, (n, nodes, columns, k), and by each line."""

    curves: Array
    lines: dict[Node, Array]

    def part(self, index: Ints) -> Slopes:
        """Those of some of the segments."""
        return Slopes(self.curves[index], {n: v[index] for n, v in self.lines.items()})

    def by_joint(self, roles: Roles) -> Iterator[tuple[Node, Array]]:
        """The derivatives with respect to each line or curve, (n, nodes, width, k)."""
        first = 0
        for node in roles.joints:
            if node in self.lines:
                yield node, self.lines[node]
            else:
                yield node, self.curves[:, :, first : first + node.width]
                first += node.width


@dataclass(frozen=True, eq=False)
class NodeValues:
    """The score (n, nodes, k) and the head's lines and curves (n, nodes, width) at the nodes of segments."""

    score: Array
    joints: dict[Node, Array]


EDGES = np.array([-1.0, 1.0]) * (1.0 - 1e-6)
"""The points near both ends of a segment, from -1 to 1, at which derivatives are checked: a kink may lie at an end."""


@dataclass(frozen=True, eq=False)
class DerivativeErrors:
    """The interpolation error of derivatives from n nodes, (n, columns of all joints, k) each.

    The score's change does not show errors that cancel between joints, or between columns that move a joint in opposite
    directions. The derivatives at both ends do: the error is about P_n(u) (even + odd u), with u from -1 to 1 on the
    segment; coefficients continue to decay at the same rate, which gives those `beyond`, of degree 2 n.
    """

    nodes: int
    even: Array
    odd: Array
    beyond: Array

    @classmethod
    def of(cls, slopes: Slopes, edges: Slopes, roles: Roles) -> DerivativeErrors:
        """The errors of an interpolation from inner nodes, as seen at the ends, and their estimated rest."""
        inner, outer = (np.concatenate([v for _, v in s.by_joint(roles)], axis=2) for s in (slopes, edges))
        n = inner.shape[1]
        to_coefficients = gauss(n).to_coefficients
        at_ends = np.polynomial.legendre.legvander(np.array([-1.0, 1.0]), n - 1) @ to_coefficients
        first, last = (outer - np.einsum("es,nsck->neck", at_ends, inner)).swapaxes(0, 1)
        first = -first if n == 1 else first  # P_1 is odd, the others are even
        even, odd = np.abs(0.5 * (last + first)), np.abs(0.5 * (last - first))
        if n == 1:
            return cls(n, even, odd, np.zeros_like(even))
        highest = to_coefficients[-2 if n > 2 else -1 :]  # with two nodes the first coefficient is the mean
        before, here = np.abs(np.einsum("es,nsck->neck", highest, inner)).max(axis=1), np.maximum(even, odd)
        rate = np.divide(here, before, out=np.ones_like(here), where=here < before)
        return cls(n, even, odd, 0.5 * here * rate ** (2.0 if n == 2 else 0.5 * n))

    def part(self, some: Bools) -> DerivativeErrors:
        """Those of some of the segments."""
        return DerivativeErrors(self.nodes, self.even[some], self.odd[some], self.beyond[some])
