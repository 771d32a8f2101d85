"""The continuous steps: linear layers, elementwise and piecewise linear functions, products, opaque functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..errors import InputError
from ..kernels import Stage
from .functions import FUNCTIONS, Function
from .node import Array, Bounds, Breaks, Columns, Linear, Move, Node, Smooth, bounds_of_rising, union


@dataclass(frozen=True, eq=False)
class Affine(Linear):
    """`x @ weight.T + bias`."""

    source: Node
    weight: Array  # (width, source width)
    bias: Array  # (width,)

    def __post_init__(self) -> None:
        if self.weight.shape != (len(self.bias), self.source.width):
            raise InputError(
                f"Affine needs a weight of shape (bias, source width) = {(len(self.bias), self.source.width)}; "
                f"it has shape {self.weight.shape}."
            )

    @property
    def width(self) -> int:
        return len(self.bias)

    def forward(self, *inputs: Array) -> Array:
        out: Array = inputs[0] @ self.weight.T
        out += self.bias
        return out

    def pullback(self, cotangent: Array, *inputs: Array) -> tuple[Array, ...]:
        return (cotangent @ self.weight,)

    def columns_behind(self, parents: Sequence[Columns]) -> Columns:
        """The columns that each output depends on; dense layers are assumed to mix all of their inputs."""
        (columns,) = parents
        used = self.weight != 0.0
        if used.sum() > 2 * len(used):
            return [union(columns[j] for j in np.nonzero(used.any(axis=0))[0])] * len(used)
        found: dict[bytes, set[int]] = {}  # most units of a layer read the same columns
        keys = [row.tobytes() for row in used]
        for key, row in zip(keys, used, strict=True):
            if key not in found:
                found[key] = union(columns[j] for j in np.nonzero(row)[0])
        return [found[key] for key in keys]

    def as_sum(self, matrix: Array) -> list[tuple[Array, Node]] | None:
        return [(matrix @ self.weight, self.source)]

    def magnitude(self, value: Array, *sizes: Array) -> Array:
        return np.asarray(sizes[0] @ np.abs(self.weight).T + np.abs(self.bias))

    @cached_property
    def bounds(self) -> Bounds:
        low, high = self.source.bounds
        return _weighted(self.weight, low, high) + self.bias, _weighted(self.weight, high, low) + self.bias

    def stage(self) -> Stage | None:
        return Stage("affine", self.weight, self.bias)

    def moves(self, parents: Sequence[Sequence[Move]]) -> list[Move]:
        return [
            Move.of_sum(m for m, w in zip(parents[0], row, strict=True) if w != 0.0) for row in self.weight.tolist()
        ]


def _weighted(weight: Array, low: Array, high: Array) -> Array:
    """`weight @ x` with x = low where the weight is positive, and x = high where it is negative."""
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(weight == 0.0, 0.0, weight * np.where(weight > 0.0, low, high)).sum(axis=1))


@dataclass(frozen=True, eq=False)
class Elementwise(Smooth):
    """One scalar function applied to every number: sigmoid, ReLU, exp... (see `functions.FUNCTIONS`)."""

    source: Node
    name: str
    parameter: float = 0.0

    def __post_init__(self) -> None:
        if self.name not in FUNCTIONS:
            known = ", ".join(sorted(FUNCTIONS))
            raise InputError(f"The function of Elementwise must be one of {known}; got {self.name!r}.")

    @cached_property
    def width(self) -> int:
        return self.source.width

    @property
    def function(self) -> Function:
        """The scalar function and what is known about it."""
        return FUNCTIONS[self.name]

    @property
    def kinks(self) -> tuple[float, ...]:
        """The inputs at which the slope jumps."""
        return self.function.kinks

    def forward(self, *inputs: Array) -> Array:
        return self.function.value(inputs[0], self.parameter)

    def pullback(self, cotangent: Array, *inputs: Array) -> tuple[Array, ...]:
        return (cotangent * self.function.slope(inputs[0], self.parameter),)

    def pullback_at(self, value: Array, cotangent: Array, *inputs: Array) -> tuple[Array, ...]:
        if self.function.slope_of_value is None:
            return self.pullback(cotangent, *inputs)
        slope = self.function.slope_of_value(value)
        return (np.multiply(slope, cotangent, out=slope if slope is not value else None),)

    @property
    def additive(self) -> bool:
        return self.name == "identity"

    @property
    def piecewise_linear(self) -> bool:
        return self.function.piecewise_linear

    @cached_property
    def unit_slopes(self) -> tuple[float, float, float] | None:
        if not self.function.piecewise_linear or self.kinks != (0.0,):
            return None
        below, at, above = self.function.slope(np.array([-1.0, 0.0, 1.0]), self.parameter).tolist()
        return below, at, above

    @property
    def bends_over_one(self) -> bool:
        return self.function.bends_over_one

    @cached_property
    def breaks_of_source(self) -> Breaks | None:
        return Breaks((np.array(self.kinks),)) if self.kinks else None

    def columns_behind(self, parents: Sequence[Columns]) -> Columns:
        return parents[0]

    def as_sum(self, matrix: Array) -> list[tuple[Array, Node]] | None:
        return [(matrix, self.source)] if self.name == "identity" else None

    def error_scale(self, value: Array, inputs: Sequence[Array], scales: Sequence[Array]) -> Array:
        slope = np.abs(self.function.slope(inputs[0], self.parameter))
        if self.kinks:  # rounding may move the input across a kink
            slope = np.maximum(slope, max(1.0, abs(self.parameter)))
        return np.asarray(np.abs(value) + slope * scales[0])

    @cached_property
    def bounds(self) -> Bounds:
        low, high = bounds_of_rising(self) if self.function.monotone(self.parameter) else super().bounds
        return np.maximum(low, self.function.least), high

    @property
    def summary_name(self) -> str:
        return self.name

    def stage(self) -> Stage | None:
        return Stage(self.name, np.array([self.parameter]))

    def moves(self, parents: Sequence[Sequence[Move]]) -> list[Move]:
        if self.function.monotone(self.parameter):
            return [m.through_monotone() for m in parents[0]]
        return super().moves(parents)


@dataclass(frozen=True, eq=False)
class PiecewiseLinear(Smooth):
    """Linear interpolation through the knots `(x, y)`, constant beyond the first and the last."""

    source: Node
    x: Array  # (knots,), strictly increasing
    y: Array  # (knots,)

    def __post_init__(self) -> None:
        if len(self.x) < 2 or self.x.shape != self.y.shape or not (np.diff(self.x) > 0).all():
            raise InputError("PiecewiseLinear needs at least two knots with strictly increasing x.")

    @cached_property
    def width(self) -> int:
        return self.source.width

    @property
    def kinks(self) -> tuple[float, ...]:
        """The inputs at which the slope jumps."""
        return tuple(self.x.tolist())

    def forward(self, *inputs: Array) -> Array:
        return np.interp(inputs[0], self.x, self.y)

    def pullback(self, cotangent: Array, *inputs: Array) -> tuple[Array, ...]:
        slopes = np.concatenate([[0.0], np.diff(self.y) / np.diff(self.x), [0.0]])
        return (cotangent * slopes[np.searchsorted(self.x, inputs[0], side="right")],)

    @property
    def piecewise_linear(self) -> bool:
        return True

    @cached_property
    def breaks_of_source(self) -> Breaks | None:
        return Breaks((np.array(self.kinks),)) if self.kinks else None

    def columns_behind(self, parents: Sequence[Columns]) -> Columns:
        return parents[0]

    def error_scale(self, value: Array, inputs: Sequence[Array], scales: Sequence[Array]) -> Array:
        return np.asarray(np.abs(value) + np.abs(np.diff(self.y) / np.diff(self.x)).max() * scales[0])

    @cached_property
    def bounds(self) -> Bounds:
        return np.full(self.width, self.y.min()), np.full(self.width, self.y.max())

    def stage(self) -> Stage | None:
        return Stage("piecewise_linear", self.x, self.y)

    def moves(self, parents: Sequence[Sequence[Move]]) -> list[Move]:
        steps = np.diff(self.y)
        if (steps >= 0).all() or (steps <= 0).all():
            return [m.through_monotone() for m in parents[0]]
        return super().moves(parents)


@dataclass(frozen=True, eq=False)
class Sum(Linear):
    """Elementwise sum of nodes of one width."""

    sources: tuple[Node, ...]

    @cached_property
    def width(self) -> int:
        return self.sources[0].width

    def forward(self, *inputs: Array) -> Array:
        out = inputs[0].copy()
        for value in inputs[1:]:
            out += value
        return out

    def pullback(self, cotangent: Array, *inputs: Array) -> tuple[Array, ...]:
        return (cotangent,) * len(inputs)

    def columns_behind(self, parents: Sequence[Columns]) -> Columns:
        return _side_by_side(parents, self.width)

    def as_sum(self, matrix: Array) -> list[tuple[Array, Node]] | None:
        return [(matrix, source) for source in self.sources]

    @cached_property
    def bounds(self) -> Bounds:
        return bounds_of_rising(self)

    def stage(self) -> Stage | None:
        return Stage("sum")

    def moves(self, parents: Sequence[Sequence[Move]]) -> list[Move]:
        return [Move.of_sum(each) for each in zip(*parents, strict=True)]

    def magnitude(self, value: Array, *sizes: Array) -> Array:
        return self.forward(*sizes)


@dataclass(frozen=True, eq=False)
class Product(Smooth):
    """Elementwise product of two nodes of one width, or of any width with a single column."""

    left: Node
    right: Node

    @cached_property
    def width(self) -> int:
        return max(self.left.width, self.right.width)

    def forward(self, *inputs: Array) -> Array:
        return inputs[0] * inputs[1]

    def pullback(self, cotangent: Array, *inputs: Array) -> tuple[Array, ...]:
        left, right = cotangent * inputs[1], cotangent * inputs[0]
        if inputs[0].shape[1] < left.shape[1]:
            left = left.sum(axis=1, keepdims=True)
        if inputs[1].shape[1] < right.shape[1]:
            right = right.sum(axis=1, keepdims=True)
        return left, right

    def error_scale(self, value: Array, inputs: Sequence[Array], scales: Sequence[Array]) -> Array:
        return np.asarray(np.abs(value) + np.abs(inputs[0]) * scales[1] + np.abs(inputs[1]) * scales[0])

    def stage(self) -> Stage | None:
        return Stage("product")

    def columns_behind(self, parents: Sequence[Columns]) -> Columns:
        return _side_by_side(parents, self.width)


def _side_by_side(parents: Sequence[Columns], width: int) -> Columns:
    """The columns that each output of an elementwise operation depends on; a single column is broadcast."""
    each = [p * width if len(p) == 1 else p for p in parents]
    return [union(columns) for columns in zip(*each, strict=True)]


@dataclass(frozen=True, eq=False)
class Opaque(Smooth):
    """A function known only by its value and its gradient: a torch module, a callable with a given gradient.

    `value(x)` takes (n, source width) and gives (n, width); `gradient(x, cotangent)` gives (n, source width). `breaks`
    are (column of the source, values) where its slope may jump, or around which it is steep; they must be given.
    """

    source: Node
    size: int
    value: Callable[[Array], Array]
    gradient: Callable[[Array, Array], Array]
    label: str = "function"
    breaks: tuple[tuple[int, tuple[float, ...]], ...] = ()

    @property
    def width(self) -> int:
        return self.size

    @cached_property
    def breaks_of_source(self) -> Breaks | None:
        if not self.breaks:
            return None
        columns, tables = zip(*self.breaks, strict=True)
        return Breaks(tuple(np.unique(t) for t in tables), columns)

    def forward(self, *inputs: Array) -> Array:
        out = np.asarray(self.value(inputs[0]), dtype=np.float64)
        if out.shape != (len(inputs[0]), self.size):
            raise InputError(
                f"{self.label} must give an array of shape (rows, {self.size}); for {len(inputs[0])} rows it gave "
                f"shape {out.shape}."
            )
        return out

    def pullback(self, cotangent: Array, *inputs: Array) -> tuple[Array, ...]:
        out = np.asarray(self.gradient(inputs[0], cotangent), dtype=np.float64)
        if out.shape != inputs[0].shape:
            raise InputError(
                f"The gradient of {self.label} must have the shape of its input, {inputs[0].shape}; it has {out.shape}."
            )
        return (out,)
