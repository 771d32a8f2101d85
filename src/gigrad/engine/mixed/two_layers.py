"""Two wide layers of units with kinks, one over the other, followed from kink to kink of a path.

What a layer of sums over both gives is linear between kinks. At a kink of an upper unit its slope changes by that
unit's weights; at one of a lower unit by the product of both layers' weights, over the upper units that have a slope
then. These products, one for each kink of a lower unit, are one multiplication of matrices for a whole path, and the
same products serve the way back. Where many paths lead to a row, the two layers are multiplied once for the slopes
that the upper units have at the row: only units that have another slope are left to be multiplied, about half as many.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np

from ... import kernels
from ...graph import Affine, Array
from .. import limits
from ..paths import Ints

if TYPE_CHECKING:
    from .lines import LayerKinks, Lines


@dataclass(frozen=True, eq=False)
class KeptProducts:
    """The latest few products of two layers, which threads share."""

    kept: dict[tuple[Affine, bytes], Array] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)

    def of(self, node: Affine, below: Affine, slope: Array, weights: Array) -> Array:
        """The weights of `node` over units of these slopes over `below`, by lower unit: (lower units, width).

        `weights` are those of `node` by unit, (upper units, width).
        """
        key = (node, slope.tobytes())
        with self.lock:
            if key not in self.kept:
                if len(self.kept) >= limits.KEPT_PRODUCTS:
                    del self.kept[next(iter(self.kept))]
                moving = np.nonzero(slope)[0]
                self.kept[key] = below.weight[moving].T @ (slope[moving, None] * weights[moving])
            return self.kept[key]


@dataclass(frozen=True, eq=False)
class UpperKinks:
    """Changes of the slopes of the upper units, in order of time.

    Attributes
    ----------
    point, unit : (n,)
        The point of the finest grid, and the unit.
    step, bend : (n,)
        The change of its slope, and of its derivative by time.
    """

    point: Ints
    unit: Ints
    step: Array
    bend: Array

    @classmethod
    def of(cls, lines: Lines, kinks: LayerKinks, read: Array) -> UpperKinks:
        """The kinks of units that read `read` (points, units).

        A unit that passes its kink just where a lower unit has one has no kink inside of any piece: only its slopes
        in neighbouring pieces differ.
        """
        coarse, fine, slope = lines.grids[kinks.level], lines.grids[kinks.level + 1], kinks.slope
        own = _piece_at(coarse.left, fine.at[kinks.point])
        # A unit ends a piece with the slope that it begins it with, but for kinks inside.
        turned = np.zeros(slope.shape, np.bool_)
        np.not_equal(slope[1:], slope[:-1], out=turned[:-1])
        next_ = np.minimum(own + 1, len(slope) - 1)
        turned[own, kinks.unit] = slope[next_, kinks.unit] != slope[own, kinks.unit] + kinks.step
        turned[np.append(np.diff(coarse.left) > 1, True)] = False  # the last pieces of legs
        piece, unit = np.nonzero(turned) if turned.any() else np.zeros((2, 0), np.int64)
        inside = np.zeros(len(piece))
        if len(piece):
            known, wanted = own * slope.shape[1] + kinks.unit, piece * slope.shape[1] + unit
            at = np.nonzero(np.isin(known, wanted))[0]
            np.add.at(inside, np.searchsorted(wanted, known[at]), kinks.step[at])
        left = coarse.left[piece]
        speed = (read[left + 1, unit] - read[left, unit]) / (coarse.time[left + 1] - coarse.time[left])
        step = slope[piece + 1, unit] - (slope[piece, unit] + inside)
        point = np.append(kinks.point, np.nonzero(fine.part == 0.0)[0][left + 1])
        order = np.argsort(point, kind="stable")
        return cls(
            point[order],
            np.append(kinks.unit, unit)[order],
            np.append(kinks.step, step)[order],
            np.append(kinks.bend, step * speed)[order],
        )


@dataclass(frozen=True, eq=False)
class TwoLayers:
    """The kinks of two layers on the legs of a path, and what they change in the sums over both.

    Attributes
    ----------
    node, below : Affine
        The sums over the upper units, and those between the two layers.
    lower : LayerKinks
    lower_point : (m,)
        The points of the finest grid of the lower units' kinks.
    upper : UpperKinks
    first : (legs, upper units)
        The slopes of the upper units where legs begin.
    changes : (m + n, width)
        By how much a change of a unit's derivative changes that of the sums: lower kinks, then upper ones.
    """

    node: Affine
    below: Affine
    lower: LayerKinks
    lower_point: Ints
    upper: UpperKinks
    first: Array
    changes: Array

    @classmethod
    def of(cls, lines: Lines, node: Affine, kinks: LayerKinks, read: Array) -> TwoLayers | None:
        """The layers below a layer of sums, of which the upper units have `kinks` and read `read` (points, units).

        None unless there are two, the lower one of which reads what is straight, and they are wide.
        """
        below, slopes = node.source.parents[0], node.source.unit_slopes
        if not lines.two_layers or not isinstance(below, Affine) or slopes is None or len(lines.block) > 1:
            return None
        lower = lines.hinges.get(below.source)
        if lower is None or lower.level != 0 or kinks.level != 1 or not len(lower.point):
            return None
        middle, fine = lines.grids[1:3]
        upper = UpperKinks.of(lines, kinks, read)
        weights = lines.roles.transposed(node)
        changes = np.empty((len(lower.point) + len(upper.point), node.width))
        after = kinks.slope[_piece_at(middle.left, lower.point)]
        _products(lines, node, below, lower.unit, after, unit_slopes(slopes, read[-1]), changes)
        np.take(weights, upper.unit, axis=0, out=changes[len(lower.point) :])
        first = kinks.slope[middle.first_pieces]
        point = np.nonzero(fine.part == 0.0)[0][lower.point]
        return cls(node, below, lower, point, upper, first, changes)

    def values(self, lines: Lines, read: Array) -> Array:
        """The values of the sums on the finest grid, from what the upper units read on the grid below it."""
        middle, fine = lines.grids[1:3]
        coarse = self.node.forward(self.node.source.forward(read[middle.part == 0.0]))
        point = np.append(self.lower_point, self.upper.point)
        order = np.argsort(point, kind="stable")
        bend = np.append(self.lower.bend, self.upper.bend)
        at, part = middle.at[fine.at], fine.part + middle.part[fine.at]
        return kernels.bend_rows(coarse, at, part, fine.time, point[order], bend[order], order, self.changes)

    def pull_back(self, lines: Lines, cotangent: Array) -> Array:
        """A cotangent on the pieces of the finest grid, (pieces, width), pulled back to what the lower units read."""
        middle, fine = lines.grids[1:3]
        pieces = fine.first_pieces[middle.first_pieces]  # where legs begin
        count, leg = len(self.lower.point), fine.leg
        point = np.append(self.lower_point, self.upper.point)
        order = np.argsort(point, kind="stable")
        begin = _piece_at(fine.left, point)
        end = np.append(pieces, len(fine.left))[leg[point] + 1]
        late = np.empty(len(point))
        late[order] = kernels.suffix_products(cotangent, begin[order], end[order], order, self.changes)
        # What follows a lower kink also changes as upper units do, by their weights of the lower unit.
        factor = self.upper.step * late[count:]
        later, total = kernels.later_rows(
            self.lower_point, self.lower.unit, self.upper.point, self.upper.unit, factor, fine.offsets,
            self.below.weight,
        )  # fmt: skip
        whole = kernels.sum_groups(cotangent, pieces) @ self.node.weight * self.first
        back = (whole @ self.below.weight + total) * self.lower.slope
        np.add.at(back, (leg[self.lower_point], self.lower.unit), self.lower.step * (late[:count] + later))
        return np.asarray(back)


def unit_slopes(slopes: tuple[float, float, float], inputs: Array) -> Array:
    """The slopes of units at their inputs: `slopes` are those below, at and above zero."""
    below, at, above = slopes
    return np.where(inputs > 0.0, above, np.where(inputs < 0.0, below, at))


def _piece_at(left: Ints, point: Ints) -> Ints:
    """The pieces, which begin at the points `left`, that begin at points or have them inside."""
    return np.searchsorted(left, point, side="right") - 1


def _products(lines: Lines, node: Affine, below: Affine, unit: Ints, slope: Array, at_row: Array, out: Array) -> None:
    """The weights of lower units `unit` (n,) through both layers, written to the first rows of `out`.

    `slope` (n, upper units) are the slopes of upper units for each, `at_row` (upper units,) those where the path ends.
    """
    weights, n = lines.roles.transposed(node), len(unit)
    if lines.block.references * n >= limits.ROW_PRODUCT_KINKS * below.source.width:
        np.take(lines.roles.products.of(node, below, at_row, weights), unit, axis=0, out=out[:n])
        slope -= at_row
    else:
        out[:n] = 0.0
    used = slope != 0.0
    last = n - 1 - used[::-1].argmax(axis=0)
    columns = np.nonzero(used.any(axis=0))[0]
    columns = columns[np.argsort(-last[columns], kind="stable")]  # those that are used longest first
    factor = slope[:, columns] * lines.roles.transposed(below)[unit][:, columns]
    weights = weights[columns]
    until = np.searchsorted(-last[columns], -np.arange(n), side="right")  # how many are used from each kink on
    for first in range(0, n, limits.KINKS_TOGETHER):
        some = slice(first, min(first + limits.KINKS_TOGETHER, n))
        out[some] += factor[some, : until[first]] @ weights[: until[first]]
