"""Columns as shares of their sum: softmax, its logarithm, and columns divided by their sum."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..kernels import Stage
from .node import Array, Node, Smooth


@dataclass(frozen=True, eq=False)
class Softmax(Smooth):
    """Softmax over the columns."""

    source: Node

    @cached_property
    def width(self) -> int:
        return self.source.width

    def forward(self, *inputs: Array) -> Array:
        shifted = np.exp(inputs[0] - inputs[0].max(axis=1, keepdims=True))
        out: Array = shifted / shifted.sum(axis=1, keepdims=True)
        return out

    def pullback(self, cotangent: Array, *inputs: Array) -> tuple[Array, ...]:
        out = self.forward(*inputs)
        return (out * (cotangent - (cotangent * out).sum(axis=1, keepdims=True)),)

    def stage(self) -> Stage | None:
        return Stage("softmax")

    @property
    def bends_over_one(self) -> bool:
        return True


@dataclass(frozen=True, eq=False)
class LogSoftmax(Smooth):
    """The logarithm of the softmax over the columns, without underflow."""

    source: Node

    @property
    def width(self) -> int:
        return self.source.width

    def forward(self, *inputs: Array) -> Array:
        shifted = inputs[0] - inputs[0].max(axis=1, keepdims=True)
        out: Array = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
        return out

    def pullback(self, cotangent: Array, *inputs: Array) -> tuple[Array, ...]:
        return (cotangent - np.exp(self.forward(*inputs)) * cotangent.sum(axis=1, keepdims=True),)

    def stage(self) -> Stage | None:
        return Stage("log_softmax")


@dataclass(frozen=True, eq=False)
class Shares(Smooth):
    """The columns divided by their sum plus one other column: `x / (sum of x + extra)`.

    As one node it stays accurate where the sum is tiny: the slopes of a quotient of two nodes would cancel there.
    """

    source: Node
    extra: Node  # one column

    @cached_property
    def width(self) -> int:
        return self.source.width

    def forward(self, *inputs: Array) -> Array:
        return np.asarray(inputs[0] / (inputs[0].sum(axis=1, keepdims=True) + inputs[1]))

    def pullback(self, cotangent: Array, *inputs: Array) -> tuple[Array, ...]:
        total = inputs[0].sum(axis=1, keepdims=True) + inputs[1]
        common = (cotangent * (inputs[0] / total)).sum(axis=1, keepdims=True)
        return (cotangent - common) / total, -common / total
