"""The continuous part of the definition: integrated gradients between the jumps, by halving until nothing changes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..graph import Array, Node
from .crossings import gradient
from .path import Path
from .times import UNITS

_MOST_PIECES = 1 << 16

_LONGEST = 1 / 24
"""How long a piece may be at most, in time."""


def segment_credit(path: Path, node: Node, low: Array, high: Array) -> Array:
    """Integrated gradients (p, k) over segments, from times to times of neighbouring jumps, in units of 2^-30.

    A piece is halved until its halves agree with it; until the slopes beside its ends lie on the polynomial through the
    slopes at its nodes, since a kink that hides beyond the outermost node shows there alone; and until what it adds up
    to is the change of the score, since a steep stretch may hide between two nodes. Pieces are asked all at once.
    """
    total = np.zeros((len(path.start), node.width))
    a, b = _cut(low / UNITS, high / UNITS)
    found = _pieces(path, node, a, b)
    asked = 0
    while len(a):
        asked += len(a)
        if asked > _MOST_PIECES:
            raise InputError("brute_force needs a score that can be integrated; this one does not settle anywhere.")
        middle, n = (a + b) / 2, len(a)
        halves = _pieces(path, node, np.append(a, middle), np.append(middle, b))
        both = halves.credit[:n] + halves.credit[n:]
        size = np.abs(found.credit).max(axis=(1, 2), initial=1.0)
        agree = np.abs(both - found.credit).max(axis=(1, 2)) < 1e-12 * size
        # around a kink a piece never settles: it is let go when all that happens in it is too little to see
        little = (b - a) * np.maximum(1.0, found.steepest) < 1e-13
        done = (agree & found.plain) | little | ~((a < middle) & (middle < b))
        total += both[done].sum(axis=0)
        again = np.nonzero(~done)[0]
        found = halves.part(np.append(again, n + again))
        a, b = np.append(a[again], middle[again]), np.append(middle[again], b[again])
    return total


def _cut(low: Array, high: Array) -> tuple[Array, Array]:
    """Segments in parts of no more than `_LONGEST`: a dip that is made up for at once must not hide between nodes."""
    parts = np.maximum(np.ceil((high - low) / _LONGEST), 1).astype(np.int64)
    segment = np.repeat(np.arange(len(parts)), parts)
    number = np.arange(len(segment)) - np.repeat(np.cumsum(parts) - parts, parts)
    step = ((high - low) / parts)[segment]
    last = number == parts[segment] - 1
    return low[segment] + number * step, np.where(last, high[segment], low[segment] + (number + 1) * step)


@dataclass(frozen=True)
class _Pieces:
    """Integrals over pieces of a path, whether a piece looks smooth and adds up, and its steepest slope."""

    credit: Array  # (n, p, k)
    plain: NDArray[np.bool_]  # (n,)
    steepest: Array  # (n,)

    def part(self, index: NDArray[np.int64]) -> _Pieces:
        return _Pieces(self.credit[index], self.plain[index], self.steepest[index])


def _pieces(path: Path, node: Node, a: Array, b: Array) -> _Pieces:
    """Gauss's rule with 8 nodes on pieces from times `a` to times `b`, and two more points beside their ends."""
    nodes, weights = np.polynomial.legendre.leggauss(8)
    points = np.concatenate([nodes, [-1 + 1e-9, 1 - 1e-9]])
    ends = np.polynomial.legendre.legvander(points[8:], 7) @ np.linalg.inv(np.polynomial.legendre.legvander(nodes, 7))
    half, source = (b - a) / 2, path.graph.input
    times = ((a + b) / 2)[:, None] + half[:, None] * points
    inside = np.repeat((a + b) / 2, len(points))  # all points lie on the side that every split has on the segment
    values = path.values(node, path.between(times.ravel() * UNITS, inside * UNITS))
    columns = [gradient(node, source, values[source], k, values) for k in range(node.width)]
    slopes = (np.stack(columns, axis=2) * path.move[None, :, None]).reshape(len(a), 10, len(path.start), node.width)
    if not np.isfinite(slopes).all():  # which no halving would ever bring to an end
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
    smooth = (astray < 1e-7 * np.maximum(1.0, steepest)) | (astray * (b - a) < 1e-13)  # the latter: too little to see
    return _Pieces(whole, smooth & seen, steepest)
