"""What the continuous credit needs to know of the head on panels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .. import kernels
from ..graph import Array, Node
from .paths import Ints
from .slopes import ORDERS

if TYPE_CHECKING:
    from .head import Head, Segments


@dataclass(frozen=True, eq=False)
class Moments:
    """What the continuous credit needs to know of the head on each panel of a patch.

    Attributes
    ----------
    curves : (panels, order + 2, columns of all curve ends, k)
        Integrals over the panel of the score's derivative by a curve times P_l.
    lines : dict of (panels, width, k)
        Integrals of the score's derivative by a line.
    lost : (panels, k)
        What the quadrature of the segments lost, and jumps that could not be shared out.
    wander : (orders, panels, k)
        How far the quadrature with so many nodes is from the score inside of segments, times the share of the panel
        that a segment is to the power of its nodes: as much of a curve as a polynomial of that degree misses. What is
        made up for before a segment ends is no loss of the score, but one of a column's credit where that column's part
        in a curve's speed changes on the way.
    sway : (panels, columns of all curve ends, k)
        How much the derivative by a curve varies on the panel, as a sum of squares: what an error of that curve, which
        looks like a Legendre polynomial of high degree, costs.
    off : (panels, columns of all curve ends and lines, k)
        How far off the integrals of the derivatives by each joint are; zero where only the core could tell.
    """

    curves: Array
    lines: dict[Node, Array]
    lost: Array
    wander: Array
    sway: Array
    off: Array

    @classmethod
    def zero(cls, head: Head) -> Moments:
        """Nothing yet."""
        roles, panels, k = head.roles, len(head.patch.panels), head.roles.output.width
        columns = sum(n.width for n in roles.curve_ends)
        return cls(
            np.zeros((panels, head.patch.rule.size + 2, columns, k)),
            {n: np.zeros((panels, n.width, k)) for n in roles.head_lines},
            np.zeros((panels, k)),
            np.zeros((len(ORDERS), panels, k)),
            np.zeros((panels, columns, k)),
            np.zeros((panels, sum(n.width for n in roles.joints), k)),
        )

    def add_points(self, head: Head, panel: Ints, time: Array, curves: Array, lines: dict[Node, Array]) -> None:
        """Add masses at points: of the derivatives by curves, (n, columns, k), and by lines, (n, width, k) each."""
        panels, degrees, columns, k = self.curves.shape
        if columns:
            mass = curves.reshape(len(panel), -1)
            found = kernels.point_moments(panel, head.patch.local(panel, time), mass, panels, degrees)
            self.curves[...] += found.reshape(panels, degrees, columns, k)
        for node, part in lines.items():
            flat = part.reshape(len(panel), -1)
            total = kernels.point_moments(panel, np.zeros(len(panel)), flat, panels, 1)
            self.lines[node][...] += total.reshape(panels, -1, k)

    def add_segments(self, head: Head, segments: Segments, curves: Array, lines: dict[Node, Array]) -> None:
        """Add derivatives constant on segments: by curves, (n, columns, k), and by lines, (n, width, k) each."""
        panels, degrees, columns, k = self.curves.shape
        panel, patch = segments.panel, head.patch
        low, high = patch.local(panel, segments.low), patch.local(panel, segments.high)
        half = patch.half[:, None, None]
        if columns:
            found = kernels.segment_moments(panel, low, high, curves.reshape(len(panel), -1), panels, degrees)
            self.curves[...] += (found * half).reshape(panels, degrees, columns, k)
        for node, part in lines.items():
            total = kernels.segment_moments(panel, low, high, part.reshape(len(panel), -1), panels, 1) * half
            self.lines[node][...] += total.reshape(panels, -1, k)
