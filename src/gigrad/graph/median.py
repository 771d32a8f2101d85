"""The weighted median of several numbers, which AdaBoost.R2 predicts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .node import Array, Node, Smooth


@dataclass(frozen=True, eq=False)
class WeightedMedian(Smooth):
    """The weighted median of each row: the first column, sorted by value, at which the cumulative weight reaches half.

    It is continuous: where another column takes over, both are equal.
    """

    source: Node
    weight: Array  # (source width,)

    def __post_init__(self) -> None:
        if self.weight.shape != (self.source.width,) or (self.weight < 0).any() or not self.weight.sum() > 0:
            raise InputError(
                f"WeightedMedian needs a weight for each of {self.source.width} columns, none negative and not all 0."
            )

    @property
    def width(self) -> int:
        return 1

    def _chosen(self, x: Array) -> NDArray[np.intp]:
        """The input that is the weighted median of each row."""
        order = np.argsort(x, axis=1)
        total = np.cumsum(self.weight[order], axis=1)
        first = (total >= 0.5 * total[:, -1:]).argmax(axis=1)
        return np.asarray(order[np.arange(len(x)), first])

    def forward(self, *inputs: Array) -> Array:
        return inputs[0][np.arange(len(inputs[0])), self._chosen(inputs[0])][:, None]

    def pullback(self, cotangent: Array, *inputs: Array) -> tuple[Array, ...]:
        out = np.zeros_like(inputs[0])
        out[np.arange(len(out)), self._chosen(inputs[0])] = cotangent[:, 0]
        return (out,)
