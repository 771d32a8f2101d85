"""Columns as shares of their sum: softmax, its logarithm, and columns divided by their sum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..kernels import Stage
from .functions import POSITIVE
from .node import Array, Bounds, Node, Smooth


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

    def error_scale(self, value: Array, inputs: Sequence[Array], scales: Sequence[Array]) -> Array:
        return _softmax_scale(np.abs(value), scales[0])

    @cached_property
    def bounds(self) -> Bounds:
        return np.full(self.width, POSITIVE), np.ones(self.width)

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

    def error_scale(self, value: Array, inputs: Sequence[Array], scales: Sequence[Array]) -> Array:
        return _softmax_scale(np.maximum(np.abs(value), 1.0), scales[0])

    def stage(self) -> Stage | None:
        return Stage("log_softmax")


def _softmax_scale(size: Array, scale: Array) -> Array:
    """The errors of a softmax: each output reads the largest input, and its own."""
    return np.asarray(size * (1.0 + 2.0 * scale.max(axis=1, keepdims=True)))


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
