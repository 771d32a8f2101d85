"""The base of every step of a model: a frozen array function of its parents' outputs that states its own properties.

A node's class, and no list of classes elsewhere, states whether it is additive, where it has kinks, which columns it
mixes, how it is split into a sum, its bounds, how errors propagate through it, and its form in the native core. A new
node states these in its class.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from enum import IntEnum
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..kernels import Stage

Array = NDArray[np.float64]
Columns = list[set[int]]
"""For every output of a node, the columns of the rows that it may depend on."""
Bounds = tuple[Array, Array]
"""Lower and upper bounds of every output of a node, (width,) each."""


class Move(IntEnum):
    """How a number moves along a part of a path on which no tree jumps."""

    CONSTANT = 0
    LINEAR = 1
    MONOTONE = 2
    ANY = 3

    @staticmethod
    def of_sum(moves: Iterable[Move]) -> Move:
        """How a weighted sum of numbers moves; the weights may have any sign."""
        moving = [m for m in moves if m != Move.CONSTANT]
        if all(m == Move.LINEAR for m in moving):
            return Move.LINEAR if moving else Move.CONSTANT
        return moving[0] if len(moving) == 1 else Move.ANY

    def through_monotone(self) -> Move:
        """How a monotone function of the number moves."""
        return Move.MONOTONE if self == Move.LINEAR else self


@dataclass(frozen=True)
class Breaks:
    """Values of a node's source at which its slope, or its value, jumps.

    `columns` is None where every column of the source has the same values, `values[0]`.
    """

    values: tuple[Array, ...]
    columns: tuple[int, ...] | None = None


def union(sets: Iterable[set[int]]) -> set[int]:
    """The union of sets of columns; a set shared by the units of a layer is added once."""
    return set[int]().union(*{id(s): s for s in sets}.values())


@dataclass(frozen=True, eq=False)
class Node(ABC):
    """One step of a model. Nodes are compared by identity: sharing a node means computing it once."""

    @cached_property
    def parents(self) -> tuple[Node, ...]:
        """The nodes this one reads, in the order in which `forward` takes their outputs."""
        found: list[Node] = []
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, Node):
                found.append(value)
            elif isinstance(value, tuple):
                found.extend(v for v in value if isinstance(v, Node))
        return tuple(found)

    @cached_property
    def below(self) -> tuple[Node, ...]:
        """Every node that this one depends on, parents before children, each once; cached."""
        return tuple(_ordered(self.parents))

    @property
    @abstractmethod
    def width(self) -> int:
        """The number of output columns. Nodes that derive it from their parents cache it."""

    @abstractmethod
    def forward(self, *inputs: Array) -> Array:
        """The output, (n, width), for the parents' outputs, each (n, their width)."""

    @property
    def additive(self) -> bool:
        """Whether each output is a sum of functions of one input each, and straight inputs stay straight.

        The effect of one column then does not depend on the others. Columns that change at once may jump.
        """
        return False

    @property
    def piecewise_linear(self) -> bool:
        """Whether inputs that move piecewise linearly give outputs that do."""
        return self.additive

    @property
    def bends_over_one(self) -> bool:
        """Whether its curvature has a length scale of about one; see `functions.Function`."""
        return False

    @property
    def analytic(self) -> bool:
        """Whether polynomials of rising degree approach the node geometrically between its kinks.

        A root of a distance is not analytic: it is singular at distance zero, also for a path that passes close by.
        """
        return True

    @property
    def slope_is_constant(self) -> bool:
        """Whether the pullback does not depend on the inputs."""
        return False

    @property
    def kinks(self) -> tuple[float, ...]:
        """The inputs at which the slope jumps, for a node that applies one function to every number of its source."""
        return ()

    @cached_property
    def unit_slopes(self) -> tuple[float, float, float] | None:
        """The slopes below, at and above zero of units that are linear on either side of zero, such as ReLUs.

        None for every other node.
        """
        return None

    @cached_property
    def breaks_of_source(self) -> Breaks | None:
        """Where the slope of the node jumps, in terms of its one source; None for a node without kinks."""
        return None

    def columns_behind(self, parents: Sequence[Columns]) -> Columns:
        """The columns that each output may depend on, given those of the parents: all of them, unless known."""
        return [union(columns for parent in parents for columns in parent)] * self.width

    def columns_at_once(self, parents: Sequence[Columns]) -> set[int]:
        """The columns that change at once because this node reads them as categories, given those of the parents."""
        return set()

    def as_sum(self, matrix: Array) -> list[tuple[Array, Node]] | None:
        """`matrix @ node`, for a matrix (k, width), as pairs of a matrix and the parent that it multiplies.

        Constants are left out. None for a node that is not linear.
        """
        return None

    def magnitude(self, value: Array, *sizes: Array) -> Array:
        """The size of the terms that add up to `value`, given that of the parents' terms; it bounds rounding errors."""
        return np.abs(value)

    def error_scale(self, value: Array, inputs: Sequence[Array], scales: Sequence[Array]) -> Array:
        """The scale of the rounding error of `value`, to first order: its own, and that of the inputs by the slope.

        `scales` are those of `inputs`, the parents' values; all of them are multiples of the unit roundoff.
        """
        return np.maximum(np.abs(value), self.magnitude(value, *scales))

    @cached_property
    def bounds(self) -> Bounds:
        """Bounds of each output by interval arithmetic, infinite where they are unknown."""
        return np.full(self.width, -np.inf), np.full(self.width, np.inf)

    @property
    def summary_name(self) -> str:
        """What a summary of a model calls the node; empty for one that only arranges columns."""
        return type(self).__name__

    def stage(self) -> Stage | None:
        """The node's form for the native core; None if the core does not implement it."""
        return None

    def moves(self, parents: Sequence[Sequence[Move]]) -> list[Move]:
        """How each output moves while every input moves in a known way; see `Move`."""
        return [Move.ANY if any(m for moves in parents for m in moves) else Move.CONSTANT] * self.width


@dataclass(frozen=True, eq=False)
class Smooth(Node):
    """A node that is continuous and piecewise differentiable in its parents."""

    @abstractmethod
    def pullback(self, cotangent: Array, *inputs: Array) -> tuple[Array, ...]:
        """For each parent, the cotangent (n, its width) that `cotangent` (n, width) pulls back to."""

    def pullback_at(self, value: Array, cotangent: Array, *inputs: Array) -> tuple[Array, ...]:
        """As `pullback`, where the output `value` is known already."""
        return self.pullback(cotangent, *inputs)


@dataclass(frozen=True, eq=False)
class Linear(Smooth):
    """A node that is linear in its parents, but for a constant."""

    @property
    def additive(self) -> bool:
        return True

    @property
    def slope_is_constant(self) -> bool:
        return True


@dataclass(frozen=True, eq=False)
class Input(Node):
    """The encoded rows themselves: numbers, and codes for categories; NaN where a value is missing.

    `nominal` are columns of numbers that change all at once, half-way, in every part of the model.
    """

    size: int
    nominal: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not all(0 <= j < self.size for j in self.nominal):
            raise InputError(f"nominal must hold columns from 0 to {self.size - 1}; got {self.nominal}.")

    @property
    def additive(self) -> bool:
        return True

    @property
    def summary_name(self) -> str:
        return ""

    def columns_behind(self, parents: Sequence[Columns]) -> Columns:
        return [{j} for j in range(self.size)]

    @property
    def width(self) -> int:
        return self.size

    def forward(self, *inputs: Array) -> Array:
        raise InputError("Input has no forward: its output is the matrix of rows.")


@dataclass(frozen=True, eq=False)
class Select(Linear):
    """Some columns of another node, in a given order."""

    source: Node
    columns: tuple[int, ...]

    @property
    def width(self) -> int:
        return len(self.columns)

    def forward(self, *inputs: Array) -> Array:
        return inputs[0][:, list(self.columns)]

    def pullback(self, cotangent: Array, *inputs: Array) -> tuple[Array, ...]:
        out = np.zeros_like(inputs[0])
        for position, column in enumerate(self.columns):  # a column may be selected twice
            out[:, column] += cotangent[:, position]
        return (out,)

    @property
    def summary_name(self) -> str:
        return ""

    @cached_property
    def bounds(self) -> Bounds:
        return bounds_of_rising(self)

    def columns_behind(self, parents: Sequence[Columns]) -> Columns:
        return [parents[0][j] for j in self.columns]

    def as_sum(self, matrix: Array) -> list[tuple[Array, Node]] | None:
        return [(matrix @ np.eye(self.source.width)[list(self.columns)], self.source)]

    def magnitude(self, value: Array, *sizes: Array) -> Array:
        return self.forward(*sizes)

    def stage(self) -> Stage | None:
        return Stage("select", np.array(self.columns, np.float64), np.array([float(self.source.width)]))

    def moves(self, parents: Sequence[Sequence[Move]]) -> list[Move]:
        return [parents[0][j] for j in self.columns]


@dataclass(frozen=True, eq=False)
class Concat(Linear):
    """Several nodes side by side."""

    sources: tuple[Node, ...]

    @cached_property
    def width(self) -> int:
        return sum(s.width for s in self.sources)

    def forward(self, *inputs: Array) -> Array:
        return np.concatenate(inputs, axis=1)

    def pullback(self, cotangent: Array, *inputs: Array) -> tuple[Array, ...]:
        edges = np.cumsum([x.shape[1] for x in inputs])[:-1]
        return tuple(np.split(cotangent, edges, axis=1))

    @property
    def summary_name(self) -> str:
        return ""

    @cached_property
    def bounds(self) -> Bounds:
        return bounds_of_rising(self)

    def columns_behind(self, parents: Sequence[Columns]) -> Columns:
        return [columns for parent in parents for columns in parent]

    def as_sum(self, matrix: Array) -> list[tuple[Array, Node]] | None:
        edges = np.cumsum([s.width for s in self.sources])[:-1]
        return list(zip(np.split(matrix, edges, axis=1), self.sources, strict=True))

    def stage(self) -> Stage | None:
        return Stage("concat")

    def moves(self, parents: Sequence[Sequence[Move]]) -> list[Move]:
        return [m for moves in parents for m in moves]

    def magnitude(self, value: Array, *sizes: Array) -> Array:
        return self.forward(*sizes)


def bounds_of_rising(node: Node) -> Bounds:
    """Bounds of a node whose outputs do not fall when an input rises; infinite where its value is undefined."""
    with np.errstate(all="ignore"):
        low, high = (node.forward(*(p.bounds[side][None] for p in node.parents))[0] for side in (0, 1))
    return np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high)


def topological(*outputs: Node) -> list[Node]:
    """Every node that `outputs` depend on, parents before children, each once."""
    return [*outputs[0].below, outputs[0]] if len(outputs) == 1 else _ordered(outputs)


def _ordered(outputs: Sequence[Node]) -> list[Node]:
    """All nodes below the outputs, parents first; without recursion, since graphs may be deep."""
    order: list[Node] = []
    state: dict[int, bool] = {}
    stack: list[tuple[Node, Iterator[Node]]] = []
    for output in outputs:
        if id(output) in state:
            continue
        stack.append((output, iter(output.parents)))
        state[id(output)] = False
        while stack:
            node, rest = stack[-1]
            child = next(rest, None)
            if child is None:
                stack.pop()
                order.append(node)
            elif id(child) not in state:
                state[id(child)] = False
                stack.append((child, iter(child.parents)))
    return order


def evaluate(outputs: tuple[Node, ...], known: dict[Node, Array]) -> dict[Node, Array]:
    """Forward values of `outputs` and of all they need, given the values of some nodes (the Input at least)."""
    values = dict(known)
    for node in needed(outputs, set(known)):
        values[node] = node.forward(*(values[p] for p in node.parents))
    return values


def value_of(
    output: Node, known: dict[Node, Array], block: int = 1024, tell: Callable[[float], object] | None = None
) -> Array:
    """The value (n, width) of one node, computed in blocks of rows to bound the memory for a wide net's layers.

    `tell` is called with the fraction done, from 0 to 1.
    """
    rows = len(next(iter(known.values())))
    parts = []
    for i in range(0, rows, block) if rows > block else [0]:
        parts.append(evaluate((output,), {node: v[i : i + block] for node, v in known.items()})[output])
        if tell is not None:
            tell(min(1.0, (i + block) / max(rows, 1)))
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def needed(outputs: tuple[Node, ...], known: set[Node]) -> list[Node]:
    """The nodes to compute for `outputs`, in order, when the values of `known` are given."""
    wanted = set(outputs)
    keep: list[Node] = []
    for node in reversed(topological(*outputs)):
        if node in wanted and node not in known:
            keep.append(node)
            wanted.update(node.parents)
    return keep[::-1]
