"""Curves of one number that are polynomials between breaks: spline bases, which may repeat with a period."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..errors import InputError
from .node import Array, Breaks, Node, Smooth

MOST_PERIODS = 100
"""The number of periods to either side of its breaks in which a periodic curve is evaluated: each has its own kinks."""


@dataclass(frozen=True, eq=False)
class PiecewisePolynomial(Smooth):
    """Several continuous curves of one column, each a polynomial between neighbouring breaks.

    On the piece that begins at break b a curve is the sum over powers n of `coefficients[piece * powers + n] *
    (x - b)**n`; the first piece lies below all breaks and is written around the first. With a `period` whole periods
    are taken off x first, so that it lies beyond the first break by less than one.
    """

    source: Node
    breaks: Array  # (pieces - 1,), strictly increasing
    coefficients: Array  # (pieces * powers, width)
    period: float | None = None

    def __post_init__(self) -> None:
        if self.source.width != 1 or len(self.breaks) < 1 or not (np.diff(self.breaks) > 0).all():
            raise InputError("PiecewisePolynomial needs one column and strictly increasing breaks.")
        if self.coefficients.ndim != 2 or not len(self.coefficients) or len(self.coefficients) % self._pieces:
            raise InputError(
                f"PiecewisePolynomial needs as many rows of coefficients for each of its {self._pieces} pieces; the "
                f"shape of its coefficients is {self.coefficients.shape}."
            )
        if self.period is not None and not self.breaks[-1] - self.breaks[0] < self.period < np.inf:
            raise InputError(f"All breaks of a PiecewisePolynomial must lie within its period; it is {self.period}.")

    @property
    def width(self) -> int:
        return int(self.coefficients.shape[1])

    @property
    def _pieces(self) -> int:
        return len(self.breaks) + 1

    @property
    def kinks(self) -> tuple[float, ...]:
        """The inputs at which the polynomial changes."""
        if self.period is None:
            return tuple(self.breaks.tolist())
        periods = np.arange(-MOST_PERIODS, MOST_PERIODS + 1)[:, None] * self.period
        return tuple((periods + self.breaks).ravel().tolist())

    @cached_property
    def breaks_of_source(self) -> Breaks | None:
        return Breaks((np.array(self.kinks),))

    def forward(self, *inputs: Array) -> Array:
        offset, coefficients = self._at(inputs[0])
        out = coefficients[:, -1].copy()
        for power in range(coefficients.shape[1] - 2, -1, -1):
            out = out * offset + coefficients[:, power]
        return out

    def pullback(self, cotangent: Array, *inputs: Array) -> tuple[Array, ...]:
        offset, coefficients = self._at(inputs[0])
        slope = np.zeros_like(coefficients[:, 0])
        for power in range(coefficients.shape[1] - 1, 0, -1):
            slope = slope * offset + power * coefficients[:, power]
        return ((cotangent * slope).sum(axis=1, keepdims=True),)

    def _at(self, x: Array) -> tuple[Array, Array]:
        """Each row's distance (n, 1) from the break its piece begins at, and the piece's coefficients."""
        if self.period is not None:
            x = self._within_a_period(x)
        piece = np.searchsorted(self.breaks, x[:, 0], side="right")
        begin = self.breaks[np.maximum(piece - 1, 0)]
        return x - begin[:, None], self.coefficients.reshape(self._pieces, -1, self.width)[piece]

    def _within_a_period(self, x: Array) -> Array:
        """The inputs moved into the first period."""
        from_first = x - self.breaks[0]
        far = np.abs(from_first) > MOST_PERIODS * (self.period or np.inf)
        if far.any():
            raise InputError(
                f"Inputs of a curve with the period {self.period:g} must lie within {MOST_PERIODS} periods to either "
                f"side; got {x[far][0]:g}. Subtract whole periods from that column before the model reads it."
            )
        return np.asarray(self.breaks[0] + from_first % self.period)
