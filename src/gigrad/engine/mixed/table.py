"""A wide head that reads few numbers, tabulated: one continuous score, and a few outputs of trees.

A net of a thousand units over two scores is a smooth function of two numbers, however wide it is. Between every two
jumps it would be evaluated several times; for a Legendre series over the box that contains the paths, it is evaluated a
few hundred times for all paths together. A series is used only if it reproduces the head to rounding: if it does not,
or would cost more than it saves, the head itself is evaluated.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import prod

import numpy as np

from ... import kernels
from ...graph import Array, Node, Opaque, Smooth, needed
from .. import limits
from ..paths import Ints
from ..quadrature import gauss, legendre
from ..roles import Roles, levels_of
from .jumps import EndValues

FINER = dict(pairwise((*limits.TABLE_NODES, limits.TABLE_POINTS + 1)))
"""Size of an axis -> the next larger one; after the last, a size larger than a table may have."""


@dataclass(frozen=True, eq=False)
class TabulatedPart:
    """A smooth part of a head through which the output depends on all of the head's inputs.

    Attributes
    ----------
    node : Node
        The output of the part.
    inputs : tuple of Node
        Its inputs: steps first, the one continuous score last.
    above : list of Node
        The head without the part.
    """

    node: Node
    inputs: tuple[Node, ...]
    above: list[Node]

    @classmethod
    def of(cls, roles: Roles) -> TabulatedPart | None:
        """The topmost such part of a head that is wide enough for a table to pay; None if there is none.

        The head must read few numbers, one of them continuous, and have no trees.
        """
        inputs = (*roles.step_ends, *roles.joints)
        few = sum(n.width for n in roles.joints) == 1 and sum(n.width for n in inputs) <= limits.TABLE_AXES
        if not few or roles.head_trees:
            return None
        for node in reversed(roles.head):
            above, below = needed((roles.output,), {node}), needed((node,), set(inputs))
            alone = not {p for n in above for p in n.parents} & {*inputs, *below} - {node}
            smooth = all(isinstance(n, Smooth) and not isinstance(n, Opaque) and levels_of(n) is None for n in below)
            if alone and smooth and sum(n.width for n in below) >= max(limits.TABLE_WIDTH, 8 * node.width):
                return cls(node, inputs, above)
        return None


class Table:
    """The values of a narrow part over a box: computed when that pays, and again when a path leaves the box."""

    def __init__(self, roles: Roles, part: TabulatedPart, seen_low: Array, seen_high: Array) -> None:
        self.roles, self.part = roles, part
        self.seen_low, self.seen_high = seen_low, seen_high
        self.low = self.high = np.full(len(seen_low), np.nan)  # the box; none yet
        self.coefficients: Array = np.zeros(0)
        self.size = [limits.TABLE_NODES[0]] * len(seen_low)  # the least sizes of the next table
        self.expected, self.tries = 0, 0

    @staticmethod
    def of(roles: Roles, ends: EndValues) -> Table | None:
        """A table for a head, if it has a part for which one pays."""
        part = TabulatedPart.of(roles)
        if part is None or not len(ends.at_ends[roles.output]):
            return None
        both = (ends.at_starts, ends.at_ends)
        seen = np.concatenate([np.concatenate([at[n] for n in part.inputs], axis=1) for at in both])
        return Table(roles, part, seen.min(axis=0), seen.max(axis=0))

    @property
    def made(self) -> bool:
        """Whether there is a table, of any box."""
        return bool(np.isfinite(self.low).all())

    def expect(self, queries: int) -> None:
        """Add to the expected number of head evaluations, which limits the cost of the table."""
        self.expected += queries

    def settle(self, times: int) -> None:
        """Compute the table if it pays for `times` times the evaluations expected so far; it is final after that.

        Later blocks may then be computed in any order, concurrently, with the same results.
        """
        self.expected *= times
        if not self.made and times:
            self.covers(self.seen_low, self.seen_high)
        self.tries = limits.TABLE_TRIES

    def covers(self, low: Array, high: Array) -> bool:
        """Whether the table covers inputs from `low` to `high` (axes,); it is computed if necessary."""
        if (self.low <= low).all() and (high <= self.high).all():
            return True
        if self.tries >= limits.TABLE_TRIES or not (np.isfinite(low).all() and np.isfinite(high).all()):
            return False
        self.seen_low, self.seen_high = np.minimum(self.seen_low, low), np.maximum(self.seen_high, high)
        width = self.seen_high - self.seen_low
        room = np.maximum(
            limits.TABLE_ROOM * width, 1e-3 * np.maximum(np.abs(self.seen_low), np.abs(self.seen_high)) + 1e-9
        )
        return self._make(self.seen_low - room, self.seen_high + room)

    def _make(self, low: Array, high: Array) -> bool:
        """Compute a table with as many nodes as each axis needs; returns whether it is accurate."""
        while prod(self.size) <= min(self.expected, limits.TABLE_POINTS):
            self.expected -= prod(self.size)
            values = self._on_grid(low, high)
            coefficients = values
            for axis, size in enumerate(self.size):
                turned = np.tensordot(gauss(size).to_coefficients, coefficients, axes=(1, axis))
                coefficients = np.moveaxis(turned, 0, axis)
            limit = limits.TABLE_CONVERGED * float(np.abs(values).max())
            last = [np.abs(np.take(coefficients, [-2, -1], axis)).max() for axis in range(len(self.size))]
            if max(last) <= limit:
                self.low, self.high, self.coefficients = low, high, coefficients
                self.tries += 1
                if self._holds(10.0 * limit):
                    return True
                break
            if not np.isfinite(limit):
                break
            self.size = [FINER[n] if tail > limit else n for n, tail in zip(self.size, last, strict=True)]
        else:
            if prod(self.size) <= limits.TABLE_POINTS:
                return False  # not yet: more may be expected later
        self.low = self.high = np.full(len(low), np.nan)
        self.tries = limits.TABLE_TRIES
        return False

    def _on_grid(self, low: Array, high: Array) -> Array:
        """The part at the nodes of all axes of a box, (nodes of each axis, width)."""
        axes = [a + (b - a) * (0.5 + 0.5 * gauss(n).nodes) for a, b, n in zip(low, high, self.size, strict=True)]
        points = np.stack([v.ravel() for v in np.meshgrid(*axes, indexing="ij")], axis=1)
        return self._ask(points).reshape(*self.size, -1)

    def _holds(self, limit: float) -> bool:
        """Whether the series reproduces the head's own values between its nodes."""
        share = np.random.default_rng(0).random((limits.TABLE_TESTED, len(self.low)))
        points = self.low + share * (self.high - self.low)
        rows = ScoreSeries.of(self, points[:, :-1])
        return bool(np.abs(rows.at(np.arange(limits.TABLE_TESTED), points[:, -1]) - self._ask(points)).max() <= limit)

    def _ask(self, points: Array) -> Array:
        """The part itself at inputs (n, axes), (n, width)."""
        edges = np.cumsum([n.width for n in self.part.inputs])[:-1]
        parts = np.split(points, edges, axis=1)
        known = dict(zip(self.part.inputs, parts, strict=True))
        return self.roles.evaluate((self.part.node,), known)[self.part.node]


@dataclass(frozen=True, eq=False)
class ScoreSeries:
    """A table for given outputs of trees: one series in the continuous score for each.

    Attributes
    ----------
    middle, scale : float
        The score is mapped to [-1, 1] by `(score - middle) * scale`.
    values, slopes : (rows, terms, width)
        Legendre coefficients of the part, and of its derivative by the score.
    """

    middle: float
    scale: float
    values: Array
    slopes: Array

    @classmethod
    def of(cls, table: Table, steps: Array) -> ScoreSeries:
        """The series for outputs of trees (rows, axes but the last)."""
        middle, scale = 0.5 * (table.low + table.high), 2.0 / (table.high - table.low)
        *sizes, last, _ = table.coefficients.shape
        basis = np.ones((len(steps), 1))
        for axis, size in enumerate(sizes):
            one = legendre((steps[:, axis] - middle[axis]) * scale[axis], size).T
            basis = (basis[:, :, None] * one[:, None, :]).reshape(len(steps), -1)
        flat = table.coefficients.reshape(prod(sizes), -1)
        values = (basis @ flat).reshape(len(steps), last, -1)
        slopes = np.matmul(gauss(last).derivative, values) * scale[-1]
        return cls(float(middle[-1]), float(scale[-1]), values, slopes)

    def at(self, row: Ints, score: Array) -> Array:
        """The part for rows (n,) at scores (n,), (n, width)."""
        return kernels.series(self.values, row, (score - self.middle) * self.scale)

    def slope_at(self, row: Ints, score: Array) -> Array:
        """The part's derivative by the score, (n, width)."""
        return kernels.series(self.slopes, row, (score - self.middle) * self.scale)
