"""Products with a wide layer's matrix over its active units only.

Half of the units of a ReLU layer are zero at any time, and along a path few of them change. The rows of the matrix are
sorted once for each leg, so that the units that are active in each part of it are contiguous: forward and backward
products then use a slice of the rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...graph import Array
from .. import limits
from ..paths import Bools, Ints


@dataclass(frozen=True, eq=False)
class Stretch:
    """Some consecutive points of a grid, and the units that are active there.

    Attributes
    ----------
    points, pieces : slice
        Of all points and of all pieces of the grid.
    units : (n,)
    rows : (n, width)
        Their rows of the matrix, a view of the leg's.
    """

    points: slice
    pieces: slice
    units: Ints
    rows: Array


class ActiveRows:
    """The rows of a layer's matrix, sorted by when their units are active along the legs of a grid."""

    def __init__(self, rows: Array, offsets: Ints, values: Array, slope: Array) -> None:
        """Sort the units of every leg.

        Parameters
        ----------
        rows : (units, width)
        offsets : (legs + 1,)
            The first point of each leg.
        values : (points, units)
            The outputs of the units.
        slope : (points - legs, units)
            Their slopes on the pieces between points.
        """
        self.width = rows.shape[1]
        self.stretches: list[Stretch] = []
        for leg, (first, end) in enumerate(zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)):
            edges = np.linspace(first, end, max((end - first) // limits.ACTIVE_STRETCH, 1) + 1).astype(np.int64)
            points = [slice(a, b) for a, b in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)]
            pieces = [slice(p.start - leg, min(p.stop, end - 1) - leg) for p in points]
            used = [
                (values[p] != 0).any(axis=0) | (slope[q] != 0).any(axis=0) for p, q in zip(points, pieces, strict=True)
            ]
            order, begin, stop = side_by_side(np.array(used))
            sorted_ = rows[order]
            self.stretches += [
                Stretch(p, q, order[a:b], sorted_[a:b]) for p, q, a, b in zip(points, pieces, begin, stop, strict=True)
            ]

    @staticmethod
    def worth(rows: Array, offsets: Ints) -> bool:
        """Whether a layer is wide enough, and legs have enough points, for sorting to pay."""
        return (
            min(rows.shape) >= limits.ACTIVE_WIDTH
            and len(offsets) > 1
            and (offsets[-1] / (len(offsets) - 1)) >= 2 * limits.ACTIVE_STRETCH
        )

    def forward(self, values: Array) -> Array:
        """`values @ rows`, for the units' values (points, units)."""
        out = np.empty((len(values), self.width))
        for s in self.stretches:
            np.matmul(values[s.points][:, s.units], s.rows, out=out[s.points])
        return out

    def back(self, cotangent: Array, slope: Array) -> Array:
        """`cotangent @ rows.T * slope`, for a cotangent (pieces, width) and the units' slopes (pieces, units)."""
        out = np.zeros(slope.shape)
        for s in self.stretches:
            out[s.pieces, s.units] = (cotangent[s.pieces] @ s.rows.T) * slope[s.pieces][:, s.units]
        return out


def side_by_side(used: Bools) -> tuple[Ints, list[int], list[int]]:
    """An order of units in which those used at each of some times are contiguous.

    Units that end early come first, by the time they end; then those used all the time, or in the middle only; then
    those that begin late, by the time they begin. A unit counts as used between its first and last time.

    Parameters
    ----------
    used : (times, units)

    Returns
    -------
    order : (n,)
        The units used at any time.
    begin, stop : (times,)
        Those used at time t are among `order[begin[t]:stop[t]]`.
    """
    times = len(used)
    units = np.nonzero(used.any(axis=0))[0]
    used = used[:, units]
    first, last = used.argmax(axis=0), times - 1 - used[::-1].argmax(axis=0)
    place = np.zeros(len(units), np.int64)
    ends, begins = (first == 0) & (last < times - 1), (first > 0) & (last == times - 1)
    place[ends] = last[ends] - times  # below zero, the earliest end first
    place[begins] = first[begins]
    order = np.argsort(place, kind="stable")
    place = place[order]
    time = np.arange(times)
    begin, stop = np.searchsorted(place, time - times), np.searchsorted(place, time, side="right")
    return units[order], begin.tolist(), stop.tolist()
