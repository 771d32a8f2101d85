"""What the integration of the head may lose of one column's credit, where it is the score's loss that is known.

On a segment the derivative of the score by a joint is interpolated, and off by d(t). The score's own change tells the
integral of d times the joint's speed. A column is credited by its part of that speed, w(t), and loses the integral of
`d w`: where columns move a joint to and fro, many times as much as the score. With D(t) the integral of d times the
speed up to the time t, integration by parts gives at most

    |D at the end| * |w / speed|  +  the largest |D| inside * the change of w / speed

and since d is orthogonal to polynomials of fewer coefficients than a segment has nodes, only what w and the speed
depart from those counts. That is what is added up here, over all joints by how much the score depends on them.
"""

from __future__ import annotations

import numpy as np

from ..graph import Array
from .moments import Moments
from .slopes import ORDERS, Parts

SLOWEST = 1e-3
"""No joint is taken to move by a smaller share of its parts than this."""

_TINY = float(np.finfo(np.float64).tiny)


class Losses:
    """The parts of speeds on some panels, (panels, k) each, weighted by the score's derivatives by the joints."""

    def __init__(self, panels: int, k: int) -> None:
        self.largest = np.zeros((panels, k))
        self.total = np.zeros((1, panels, k))  # the coefficients of what all joints together move the score by
        self.largest_turn, self.total_turn = np.zeros((2, len(ORDERS), panels, k))
        self.off = np.zeros((panels, k))  # how far off the integrals of derivatives are, times the parts of speeds

    def add_line(self, table: Array, largest: Array, total: Array) -> None:
        """Add a line, whose parts do not change: integrals of derivatives (panels, width, k), and the largest part of
        its speed and the speed, (panels, width) each."""
        self.largest += np.einsum("pwk,pw->pk", np.abs(table), largest)
        self.total[0] += np.einsum("pwk,pw->pk", table, total)

    def add_curve(self, moment: Array, speed: Parts) -> None:
        """Add a column of a curve: moments (k, panels, degrees) of the derivative by it, and the parts of its speed."""
        size = np.abs(moment[:, :, :2]).sum(axis=2).T
        self.largest += size * speed.largest[:, None]
        if len(self.total) < len(speed.total):
            self.total = np.concatenate([self.total, np.zeros((len(speed.total) - len(self.total), *size.shape))])
        self.total[: len(speed.total)] += moment[:, :, 0].T * speed.total[:, :, None]
        self.largest_turn += size * speed.largest_turn[:, :, None]
        self.total_turn += size * speed.total_turn[:, :, None]

    @property
    def moved(self) -> Array:
        """How much all joints together move the score on each panel, (panels, k)."""
        return np.asarray(np.abs(self.total[0]))

    def of(self, moments: Moments) -> Array:
        """What may be lost of one column's credit, (panels, k)."""
        # How fast the joints are where they do not turn back. What hardly moves has derivatives that hardly change, and
        # what is lost there is rounding.
        total = np.maximum(np.abs(self.total).sum(axis=0), _TINY + SLOWEST * (self.largest + self.largest_turn[0]))
        share = np.maximum(1.0, self.largest / total)
        turn = (self.largest_turn + share * self.total_turn) / total
        most = moments.lost + self.largest + self.largest_turn[0]  # all of it, where the speed is as good as none
        seen = np.minimum(moments.lost * share + (moments.wander * turn).sum(axis=0), most)
        return np.asarray(np.maximum(seen, self.off))
