"""The continuous part of the definition: integrated gradients between the jumps, by adaptive subdivision."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..graph import Array, Node
from .crossings import gradient
from .path import Path
from .times import UNITS

_MOST_PIECES = 1 << 16

LONGEST = 1 / 24
"""The largest length of a piece, in time: a dip of the score that is shorter may lie between two nodes."""

_PARTS = 4
"""The number of parts that an unconverged piece is cut into: a kink is located in few rounds. With more parts, those
without a kink dominate the cost."""


def segment_credit(path: Path, node: Node, low: Array, high: Array, longest: float = LONGEST) -> Array:
    """Integrated gradients (p, k) over segments, from times to times of neighbouring jumps, in units of 2^-30.

    A piece is cut until its parts agree with it; until the slopes beside its ends lie on the polynomial through the
    slopes at its nodes, since a kink beyond the outermost node shows only there; and until its integral is the change
    of the score, since a steep part may lie between two nodes. All pieces are evaluated in one call.
    """
    total = np.zeros((len(path.start), node.width))
    a, b = _cut(low / UNITS, high / UNITS, longest)
    found = _pieces(path, node, a, b)
    asked, parts = 0, 2
    while len(a):
        asked += len(a)
        if asked > _MOST_PIECES:
            raise InputError("brute_force needs a score that can be integrated; the integral of this one diverges.")
        edges = a[:, None] + (b - a)[:, None] * (np.arange(parts + 1) / parts)
        edges[:, -1] = b
        finer = _pieces(path, node, edges[:, :-1].ravel(), edges[:, 1:].ravel())
        summed = finer.credit.reshape(len(a), parts, *total.shape).sum(axis=1)
        size = np.abs(found.credit).max(axis=(1, 2), initial=1.0)
        agree = np.abs(summed - found.credit).max(axis=(1, 2)) < 1e-12 * size
        # a piece around a kink never converges: it is accepted when its whole contribution is negligible
        little = (b - a) * np.maximum(1.0, found.steepest) < 1e-13
        done = (agree & found.plain) | little | (np.diff(edges) <= 0.0).any(axis=1)
        total += summed[done].sum(axis=0)
        again = (np.nonzero(~done)[0][:, None] * parts + np.arange(parts)).ravel()
        found = finer.part(again)
        a, b = edges[~done, :-1].ravel(), edges[~done, 1:].ravel()
        parts = _PARTS
    return total


def _cut(low: Array, high: Array, longest: float) -> tuple[Array, Array]:
    """Segments cut into parts that are not longer than `longest`."""
    parts = np.maximum(np.ceil((high - low) / longest), 1).astype(np.int64)
    segment = np.repeat(np.arange(len(parts)), parts)
    number = np.arange(len(segment)) - np.repeat(np.cumsum(parts) - parts, parts)
    step = ((high - low) / parts)[segment]
    last = number == parts[segment] - 1
    return low[segment] + number * step, np.where(last, high[segment], low[segment] + (number + 1) * step)


@dataclass(frozen=True)
class _Pieces:
    """Integrals over pieces of a path, whether each piece has converged, and its steepest slope."""

    credit: Array  # (n, p, k)
    plain: NDArray[np.bool_]  # (n,)
    steepest: Array  # (n,)

    def part(self, index: NDArray[np.int64]) -> _Pieces:
        return _Pieces(self.credit[index], self.plain[index], self.steepest[index])


@cache
def _rule() -> tuple[Array, Array, Array]:
    """Gauss nodes and two points beside the ends, the weights, and the extrapolation from nodes to those two points."""
    nodes, weights = np.polynomial.legendre.leggauss(8)
    points = np.concatenate([nodes, [-1 + 1e-9, 1 - 1e-9]])
    ends = np.polynomial.legendre.legvander(points[8:], 7) @ np.linalg.inv(np.polynomial.legendre.legvander(nodes, 7))
    return points, weights, ends


def _pieces(path: Path, node: Node, a: Array, b: Array) -> _Pieces:
    """Gauss's rule with 8 nodes on pieces from times `a` to times `b`, and two more points beside their ends."""
    points, weights, ends = _rule()
    half, source = (b - a) / 2, path.graph.input
    times = ((a + b) / 2)[:, None] + half[:, None] * points
    inside = np.repeat((a + b) / 2, len(points))  # sides of splits are constant on a segment: take those at its middle
    values = path.values(node, path.between(times.ravel() * UNITS, inside * UNITS))
    order = path.order(node, frozenset({source}))
    columns = [gradient(node, source, values[source], k, values, order) for k in range(node.width)]
    slopes = (np.stack(columns, axis=2) * path.move[None, :, None]).reshape(len(a), 10, len(path.start), node.width)
    if not np.isfinite(slopes).all():  # subdivision would never converge
        raise InputError(
            f"brute_force needs finite gradients; one is not between the times {a.min():.6g} and {b.max():.6g}."
        )
    whole = np.einsum("q,nqpk->npk", weights, slopes[:, :8]) * half[:, None, None]
    steepest = np.abs(slopes).max(axis=(1, 2, 3))
    astray = np.abs(np.einsum("eq,nqpk->nepk", ends, slopes[:, :8]) - slopes[:, 8:]).max(axis=(1, 2, 3))
    scores = values[node].reshape(len(a), 10, -1)[:, 8:]
    outside = slopes[:, 8:].sum(axis=(1, 2)) * ((points[8] + 1) * half)[:, None]  # beyond the points beside the ends
    lost = np.abs(scores[:, 1] - scores[:, 0] - whole.sum(axis=1) + outside).max(axis=1)
    # the second part is the rounding of times
    seen = lost < 1e-9 * np.abs(scores).max(axis=(1, 2), initial=1.0) + 1e-15 * steepest
    smooth = (astray < 1e-7 * np.maximum(1.0, steepest)) | (astray * (b - a) < 1e-13)  # the latter: negligible
    return _Pieces(whole, smooth & seen, steepest)
