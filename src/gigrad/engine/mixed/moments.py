"""Moments of the head's derivatives on panels, from which the continuous credit is computed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ... import kernels
from ...graph import Array, Node
from .. import limits
from ..paths import Bools, Ints

if TYPE_CHECKING:
    from .head import Head
    from .segments import Segments


@dataclass(frozen=True, eq=False)
class PanelIntegrals:
    """A head integrated over the panels of a patch: moments, the largest |score| (panels, k), and unsure panels."""

    moments: Moments
    tallest: Array
    unsure: Bools


@dataclass(frozen=True, eq=False)
class Moments:
    """Integrals of the head's derivatives on each panel of a patch, and bounds on their errors.

    Attributes
    ----------
    curves : (panels, order + 2, columns of all curve ends, k)
        Integrals over the panel of the score's derivative with respect to a curve, times P_l.
    lines : dict of (panels, width, k)
        Integrals of the score's derivative with respect to a line.
    lost : (panels, k)
        The error of the quadrature of the segments, and jumps that could not be credited.
    slow : (panels, k)
        The error of one column's credit from the rounding of slow scores' speeds at thresholds.
    wander : (orders, panels, k)
        The largest error of the running integral inside of segments, by number of nodes, times (segment length / panel
        length) to the power of the nodes: the part of a curve that a polynomial of that degree misses. An error that
        cancels before the segment ends is none of the score, but one of a column's credit if that column's part of a
        curve's speed changes on the segment.
    sway : (panels, columns of all curve ends, k)
        The variation of the derivative with respect to a curve on the panel, as a sum of squares: the effect of an
        error of that curve in the form of a Legendre polynomial of high degree.
    off : (2 orders, panels, columns of all curve ends and lines, k)
        The interpolation error, from n nodes, of the derivatives with respect to each joint: the factor for the part of
        a column's speed of degree n - 1 and more; then the factor for degree n and more.
    """

    curves: Array
    lines: dict[Node, Array]
    lost: Array
    slow: Array
    wander: Array
    sway: Array
    off: Array

    @classmethod
    def zero(cls, head: Head) -> Moments:
        """Moments of zero."""
        roles, panels, k = head.roles, len(head.patch.panels), head.roles.output.width
        columns = sum(n.width for n in roles.curve_ends)
        return cls(
            np.zeros((panels, head.patch.rule.size + 2, columns, k)),
            {n: np.zeros((panels, n.width, k)) for n in roles.head_lines},
            np.zeros((panels, k)),
            np.zeros((panels, k)),
            np.zeros((len(limits.SEGMENT_NODES), panels, k)),
            np.zeros((panels, columns, k)),
            np.zeros((2 * len(limits.SEGMENT_NODES), panels, sum(n.width for n in roles.joints), k)),
        )

    def add_points(self, head: Head, panel: Ints, time: Array, curves: Array, lines: dict[Node, Array]) -> None:
        """Add point masses of the derivatives by curves, (n, columns, k), and by lines, (n, width, k) each."""
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
