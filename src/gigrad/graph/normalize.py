"""Rows scaled by their own size, as LayerNorm and RMSNorm do it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .node import Array, Node, Smooth


@dataclass(frozen=True, eq=False)
class Normalized(Smooth):
    """Each row divided by its root mean square, `x / sqrt(mean of x**2 + epsilon)`; with `center`, centred first.

    Centred it is LayerNorm without its weights, else RMSNorm. As one node it stays accurate where a row is nearly
    constant: the slopes of a quotient of two nodes would cancel there.
    """

    source: Node
    centered: bool
    epsilon: float

    @cached_property
    def width(self) -> int:
        return self.source.width

    def forward(self, *inputs: Array) -> Array:
        x = self._centered(inputs[0])
        return np.asarray(x / self._size(x))

    def pullback(self, cotangent: Array, *inputs: Array) -> tuple[Array, ...]:
        x = self._centered(inputs[0])
        size = self._size(x)
        out = (cotangent - (cotangent * x).mean(axis=1, keepdims=True) * x / size**2) / size
        return (self._centered(out),)

    def _centered(self, x: Array) -> Array:
        """The rows, less their means if centred: a linear map that is its own transpose."""
        return np.asarray(x - x.mean(axis=1, keepdims=True)) if self.centered else x

    def _size(self, x: Array) -> Array:
        return np.asarray(np.sqrt((x * x).mean(axis=1, keepdims=True) + self.epsilon))
