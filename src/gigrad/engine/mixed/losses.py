"""A bound on the error of one column's credit from the integration of the head, given the error of the score.

On a segment the derivative of the score with respect to a joint is interpolated, with an error d(t). The score's own
change shows the integral of d times the joint's speed. A column's credit has its part of that speed, w(t), and so the
error is the integral of `d w`: if columns move a joint in opposite directions, many times that of the score. With D(t)
the integral of d times the speed up to the time t, integration by parts bounds it by

    |D at the end| * |w / speed|  +  the largest |D| inside * the change of w / speed

and since d is orthogonal to polynomials with fewer coefficients than a segment has nodes, only the deviations of w and
the speed from those count. These are summed here over all joints, weighted by the score's derivatives.
"""

from __future__ import annotations

import numpy as np

from ... import kernels
from ...graph import Array
from .. import limits
from .moments import Moments
from .slopes import SpeedParts

_TINY = float(np.finfo(np.float64).tiny)


class ErrorTerms:
    """The parts of speeds on some panels, (panels, k) each, weighted by the score's derivatives by the joints."""

    def __init__(self, panels: int, k: int) -> None:
        self.largest = np.zeros((panels, k))
        self.total = np.zeros((1, panels, k))  # coefficients of the score's speed through all joints together
        self.largest_turn, self.total_turn = np.zeros((2, len(limits.SEGMENT_NODES), panels, k))
        self.off = np.zeros((panels, k))  # errors of the integrals of derivatives, times the parts of speeds

    def add_line(self, table: Array, largest: Array, total: Array) -> None:
        """Add a line, whose parts do not change: integrals of derivatives (panels, width, k), and the largest part of
        its speed and the speed, (panels, width) each."""
        self.largest += np.einsum("pwk,pw->pk", np.abs(table), largest)
        self.total[0] += np.einsum("pwk,pw->pk", table, total)

    def add_curve(self, moment: Array, speed: SpeedParts) -> None:
        """Add a column of a curve: moments (k, panels, degrees) of the derivative by it, and the parts of its speed."""
        size = np.abs(moment[:, :, :2]).sum(axis=2).T
        self.largest += size * speed.largest[:, None]
        self._make_room(len(speed.total))
        self.total[: len(speed.total)] += moment[:, :, 0].T * speed.total[:, :, None]
        self.largest_turn += size * speed.largest_turn[:, :, None]
        self.total_turn += size * speed.total_turn[:, :, None]

    def add_found(self, found: kernels.CurveCredit) -> None:
        """Add all curves, as the native core found them."""
        self.largest += found.largest
        self._make_room(len(found.total))
        self.total[: len(found.total)] += found.total
        self.largest_turn += found.largest_turn
        self.total_turn += found.total_turn
        self.off += found.off

    def _make_room(self, order: int) -> None:
        if len(self.total) < order:
            self.total = np.concatenate([self.total, np.zeros((order - len(self.total), *self.total.shape[1:]))])

    @property
    def moved(self) -> Array:
        """The change of the score through all joints together on each panel, (panels, k)."""
        return np.asarray(np.abs(self.total[0]))

    def of(self, moments: Moments) -> Array:
        """The bound on the error of one column's credit, (panels, k)."""
        # The speed of the joints, bounded below. A joint that hardly moves has nearly constant derivatives, and its
        # error is rounding.
        total = np.maximum(
            np.abs(self.total).sum(axis=0), _TINY + limits.SLOWEST_JOINT * (self.largest + self.largest_turn[0])
        )
        share = np.maximum(1.0, self.largest / total)
        turn = (self.largest_turn + share * self.total_turn) / total
        most = moments.lost + self.largest + self.largest_turn[0]  # the whole, where the speed is nearly zero
        seen = np.minimum(moments.lost * share + (moments.wander * turn).sum(axis=0), most)
        return np.asarray(np.maximum(seen, self.off))
