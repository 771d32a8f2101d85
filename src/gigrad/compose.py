"""What a user calls to join models: an ECDF for rank space."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import CorruptModelError, InputError
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
        keep = _nearest(rank, np.linspace(0.0, 1.0, knots)) if len(distinct) > knots else np.arange(len(rank))
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

    def save(self, path: Any) -> None:
        """Write the knots to a JSON file, to the last bit."""
        Path(path).write_text(json.dumps({"format": "gigrad-ecdf-1", "x": self.x.tolist(), "u": self.u.tolist()}))

    @classmethod
    def load(cls, path: Any) -> SmoothedECDF:
        """Read what `save` wrote."""
        try:
            found = json.loads(Path(path).read_text())
            if found["format"] != "gigrad-ecdf-1":
                raise KeyError("format")
            return cls(found["x"], found["u"])
        except (KeyError, TypeError, ValueError) as error:
            raise CorruptModelError(
                f"{path} must be a file written by SmoothedECDF.save; it is not ({error})."
            ) from None

    def __repr__(self) -> str:
        return f"SmoothedECDF({len(self.x)} knots from {self.x[0]:.6g} to {self.x[-1]:.6g})"


def _nearest(sorted_values: Array, wanted: Array) -> NDArray[np.int64]:
    """Positions of the values nearest to the wanted ones, each once."""
    right = np.searchsorted(sorted_values, wanted).clip(1, len(sorted_values) - 1)
    nearer_left = wanted - sorted_values[right - 1] <= sorted_values[right] - wanted
    return np.unique(right - nearer_left)
