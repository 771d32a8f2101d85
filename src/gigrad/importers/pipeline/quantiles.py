"""QuantileTransformer: the number's rank among the training rows, or that rank's normal score.

The rank is the mean of two interpolations through the quantiles, from below and from above. Where a value repeats in
the training rows they differ, and the rank jumps: to their mean at the value itself, and on beyond it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import UnsupportedModelError
from ...graph import Affine, Array, Elementwise, Node, PiecewiseLinear
from .pieces import before, changes
from .steps import NO_CUTS, Stairs, Step
from .table import Table

_BOUND = 1e-7  # scikit-learn's BOUNDS_THRESHOLD: this close to an end counts as the end, before a normal score


def quantile_transformer(transformer: Any, table: Table) -> Table:
    """The rank of each number among the fitted quantiles, or its normal score."""
    if table.sparse:
        raise UnsupportedModelError(
            "QuantileTransformer leaves the zeros of a sparse matrix as they are, so it is not a function of the "
            "number. Give it a dense table."
        )
    normal = transformer.output_distribution == "normal"
    references = np.asarray(transformer.references_, np.float64)
    ranks = [Rank(np.asarray(q, np.float64), references, normal) for q in transformer.quantiles_.T]
    out = table.then(ranks, "QuantileTransformer")
    if not normal:
        return out
    return out.then([NormalScore()] * len(table), "QuantileTransformer")


@dataclass(frozen=True, eq=False)
class Rank(Step):
    """A number's rank in [0, 1], with scikit-learn's own treatment of ties and of the two ends."""

    quantiles: Array  # not decreasing
    references: Array
    normal: bool

    def __call__(self, z: NDArray[Any]) -> NDArray[Any]:
        z = np.asarray(z, np.float64)
        q, r = self.quantiles, self.references
        out = 0.5 * (np.interp(z, q, r) - np.interp(-z, -q[::-1], -r[::-1]))
        if self.normal:
            low, high = z - _BOUND < q[0], z + _BOUND > q[-1]
        else:
            low, high = z == q[0], z == q[-1]
        out = np.where(high, 1.0, out)
        out = np.where(low, 0.0, out)
        return np.where(np.isnan(z), z, out)

    @cached_property
    def _bounds(self) -> Array:
        """The last number that counts as the lower end, and the last that does not count as the upper."""
        if not self.normal:
            return NO_CUTS
        q = self.quantiles
        tests = np.array([q[0], q[-1]])
        found = changes(
            lambda z: z,
            NO_CUTS,
            lambda z, which: np.where(which == 0, z - _BOUND < tests[0], z + _BOUND > tests[1]),
            2,
        )
        return found.edges

    @cached_property
    def _cuts(self) -> tuple[Array, Array]:
        """The cuts, and the quantile that each of them is about."""
        q = self.quantiles
        bounded = q[[0, -1]] if self.normal else NO_CUTS
        cuts, first = np.unique(np.concatenate([before(q), q, self._bounds]), return_index=True)
        return cuts, np.concatenate([q, q, bounded])[first]

    def cuts(self) -> Array:
        return self._cuts[0]

    def places(self) -> Array:
        return self._cuts[1]

    def ends(self) -> Array:
        return self.quantiles[[0, -1]]

    def _edges(self) -> Array:
        """The numbers after which the rank jumps: on either side of a repeated quantile, and at the two bounds."""
        values, counts = np.unique(self.quantiles, return_counts=True)
        tied = values[counts > 1]
        edges = np.concatenate([before(tied), tied, self._bounds])
        if self.normal:
            low, high = np.sort(self._bounds)[[0, -1]]
            edges = edges[(edges >= low) & (edges <= high)]
        return np.unique(edges)

    def jumps(self) -> Stairs | None:
        edges = self._edges()
        if not len(edges):
            return None
        heights = self(np.nextafter(edges, np.inf)) - self(edges)
        stored = self.places()[np.searchsorted(self.cuts(), edges)]
        return Stairs(edges, np.concatenate([[0.0], np.cumsum(heights)]), missing=0.0, stored=stored)

    def node(self, source: Node) -> Node:
        knots = np.unique(np.concatenate([self.quantiles, self._edges(), np.nextafter(self._edges(), np.inf)]))
        stairs = self.jumps()
        values = self(knots) - (stairs(knots) if stairs else 0.0)
        if len(knots) == 1:
            return Affine(source, np.zeros((1, 1)), values)
        return PiecewiseLinear(source, knots, values)


@dataclass(frozen=True, eq=False)
class NormalScore(Step):
    """The standard normal number of a rank, with a bound at either end."""

    def __call__(self, z: NDArray[Any]) -> NDArray[Any]:
        from scipy.special import ndtri

        low = _BOUND - np.spacing(1)
        return np.asarray(np.clip(ndtri(z), ndtri(low), ndtri(1 - low)))

    def node(self, source: Node) -> Node:
        return Elementwise(source, "normal_score")
