"""Steps that use a whole row: rows divided by their norm, and missing values filled from the other columns."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .node import Array, Breaks, Node, Smooth


@dataclass(frozen=True, eq=False)
class UnitRows(Smooth):
    """Each row divided by its norm, "l1" or "l2"; a row of zeros stays one, which is a jump."""

    source: Node
    norm: str

    def __post_init__(self) -> None:
        if self.norm not in ("l1", "l2"):
            raise InputError(f"The norm of UnitRows must be 'l1' or 'l2'; got {self.norm!r}.")

    @cached_property
    def width(self) -> int:
        return self.source.width

    @cached_property
    def breaks_of_source(self) -> Breaks | None:
        return Breaks((np.zeros(1),)) if self.norm == "l1" else None

    def _length(self, x: Array) -> Array:
        """The norm of every row, (n, 1); 1 where it is zero."""
        size = np.abs(x).sum(axis=1) if self.norm == "l1" else np.sqrt((x * x).sum(axis=1))
        return np.where(size == 0.0, 1.0, size)[:, None]

    def forward(self, *inputs: Array) -> Array:
        return np.asarray(inputs[0] / self._length(inputs[0]))

    def pullback(self, cotangent: Array, *inputs: Array) -> tuple[Array, ...]:
        x = inputs[0]
        length = self._length(x)
        along = (cotangent * x).sum(axis=1, keepdims=True) / (length * length)
        return ((cotangent - along * (np.sign(x) * length if self.norm == "l1" else x)) / length,)


@dataclass(frozen=True, eq=False)
class ChainedFill(Smooth):
    """Missing values imputed from the other columns by linear models, iteratively.

    They start as `initial`; step i then sets column `column[i]` to `x @ weight[i] + bias[i]` where it is missing.
    Which values are missing does not change while a row moves, so it moves in a straight line.
    """

    source: Node
    initial: Array  # (source width,)
    column: NDArray[np.int64]  # (steps,)
    weight: Array  # (steps, source width), zero at the step's own column
    bias: Array  # (steps,)

    def __post_init__(self) -> None:
        shape = (len(self.column), self.source.width)
        if self.weight.shape != shape or self.bias.shape != shape[:1] or self.initial.shape != shape[1:]:
            raise InputError(
                f"ChainedFill needs one row of weights and one bias for each of its {shape[0]} steps, over "
                f"{shape[1]} columns; their shapes are {self.weight.shape} and {self.bias.shape}."
            )
        if ((self.column < 0) | (self.column >= shape[1])).any():
            raise InputError(f"The columns of a ChainedFill must be from 0 to {shape[1] - 1}.")

    @cached_property
    def width(self) -> int:
        return self.source.width

    @property
    def piecewise_linear(self) -> bool:
        return True

    def forward(self, *inputs: Array) -> Array:
        missing = np.isnan(inputs[0])
        out = np.where(missing, self.initial, inputs[0])
        for column, weight, bias in zip(self.column.tolist(), self.weight, self.bias.tolist(), strict=True):
            out[:, column] = np.where(missing[:, column], out @ weight + bias, out[:, column])
        return out

    def pullback(self, cotangent: Array, *inputs: Array) -> tuple[Array, ...]:
        missing = np.isnan(inputs[0])
        back = cotangent.copy()
        for column, weight in zip(self.column.tolist()[::-1], self.weight[::-1], strict=True):
            passed = np.where(missing[:, column], back[:, column], 0.0)
            back[:, column] -= passed
            back += passed[:, None] * weight
        return (np.where(missing, 0.0, back),)
