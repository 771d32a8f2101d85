"""What a user calls to join models: an ECDF for rank space."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import InputError
from .graph import Array, Node, PiecewiseLinear, Transform


class SmoothedECDF(Transform):
    """A strictly increasing piecewise-linear stand-in for the distribution of scores: maps a score to its rank.

    Linear between its knots, 0 below the first and 1 above the last. Build it with `fit`.

    Attributes
    ----------
    x : (knots,)
        Scores, strictly increasing.
    u : (knots,)
        Ranks, strictly increasing from 0 to 1.
    """

    def __init__(self, x: Any, u: Any) -> None:
        self.x: Array = np.array(x, dtype=np.float64)
        self.u: Array = np.array(u, dtype=np.float64)
        if self.x.ndim != 1 or self.x.shape != self.u.shape or len(self.x) < 2:
            raise InputError("SmoothedECDF needs two or more knots, as many scores as ranks.")
        if not (np.isfinite(self.x).all() and (np.diff(self.x) > 0).all() and (np.diff(self.u) > 0).all()):
            raise InputError("SmoothedECDF needs finite knots, strictly increasing in both score and rank.")
        self.x.setflags(write=False)
        self.u.setflags(write=False)

    @classmethod
    def fit(cls, scores: Any, knots: int = 100) -> SmoothedECDF:
        """Smooth the empirical distribution of `scores` with about `knots` knots at equal ranks.

        Tied scores make one knot at the middle of their ranks; the ends are rank 0 and 1.
        """
        values = np.sort(np.asarray(scores, dtype=np.float64).ravel())
        if knots < 2:
            raise InputError(f"knots must be at least 2; {knots} came.")
        if not np.isfinite(values).all():
            raise InputError("scores must be finite; some are NaN or infinite.")
        distinct, first = np.unique(values, return_index=True)
        if len(distinct) < 2:
            raise InputError(f"scores must have at least two distinct values to rank; {len(distinct)} came.")
        last = np.append(first[1:], len(values))
        rank = (first + last - 1) / 2.0 / (len(values) - 1)
        rank[0], rank[-1] = 0.0, 1.0
        wanted = np.linspace(0.0, 1.0, knots)
        keep = (
            np.unique(np.abs(rank[:, None] - wanted).argmin(axis=0)) if len(distinct) > knots else np.arange(len(rank))
        )
        return cls(distinct[keep], rank[keep])

    def __call__(self, scores: Any) -> NDArray[np.float64]:
        """The rank, in [0, 1], of every score."""
        return np.asarray(np.interp(np.asarray(scores, dtype=np.float64), self.x, self.u))

    def inverse(self, ranks: Any) -> NDArray[np.float64]:
        """The score of every rank in [0, 1]."""
        ranks = np.asarray(ranks, dtype=np.float64)
        if not ((ranks >= 0) & (ranks <= 1)).all():
            raise InputError("ranks must lie in [0, 1].")
        return np.asarray(np.interp(ranks, self.u, self.x))

    def apply(self, source: Node) -> Node:
        return PiecewiseLinear(source, self.x, self.u)

    def __repr__(self) -> str:
        return f"SmoothedECDF({len(self.x)} knots from {self.x[0]:.6g} to {self.x[-1]:.6g})"
