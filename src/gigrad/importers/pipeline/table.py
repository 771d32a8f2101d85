"""A table inside a pipeline: each of its columns as a function of the raw columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...graph import Array, Graph, Node
from .steps import Impute, Indicator, Reads, Refused, Step


@dataclass(frozen=True, eq=False)
class Derived:
    """A column that depends on one raw column alone."""

    column: int
    steps: tuple[Step, ...] = ()

    @property
    def reads(self) -> Reads:
        """What the raw column must hold for these steps: numbers or labels; "any" if both are accepted."""
        for step in self.steps:
            if isinstance(step, Indicator):
                return "any"
            if step.reads != "any":
                return step.reads
        return "number"

    @property
    def flat(self) -> bool:
        """Whether it is a step function of the raw column."""
        return any(step.flat for step in self.steps)


@dataclass(frozen=True, eq=False)
class Constant:
    """A column that is the same for every row."""

    value: float


@dataclass(frozen=True, eq=False)
class Block:
    """A continuous function of several columns (or curves of one), which cannot become splits on raw columns."""

    name: str  # the transformer's, for messages
    inputs: tuple[Feature, ...]
    build: Callable[[Node], Node]
    takes_missing: bool = False


@dataclass(frozen=True, eq=False, kw_only=True)
class ModelBlock(Block):
    """A model whose predictions are columns: its trees are rewritten on the raw columns like those at the end."""

    graph: Graph
    node: Node  # of the graph


@dataclass(frozen=True, eq=False)
class Blend:
    """One output of a Block: a column that depends on several raw columns."""

    block: Block
    index: int


Feature = Derived | Constant | Blend


@dataclass(frozen=True, eq=False)
class Table:
    """The columns, and whether they are passed as a sparse matrix (some transformers then round differently).

    `dropped` are columns that a selector left out: no later step reads them, but the steps before it still refuse some
    of their values.
    """

    features: tuple[Feature, ...]
    sparse: bool = False
    dropped: tuple[Feature, ...] = ()

    def __len__(self) -> int:
        return len(self.features)

    def become(self, features: Sequence[Feature], *, sparse: bool = False) -> Table:
        """A table with these columns replaced by others."""
        return replace(self, features=tuple(features), sparse=sparse)

    def take(self, columns: Sequence[int]) -> Table:
        return replace(self, features=tuple(self.features[i] for i in columns))

    def then(self, steps: Sequence[Step | None], name: str) -> Table:
        """The table with a step appended to every column; None leaves one unchanged."""
        out: list[Feature] = list(self.features)
        mixed: list[int] = []
        for i, (feature, step) in enumerate(zip(self.features, steps, strict=True)):
            if step is None:
                continue
            if isinstance(feature, Derived):
                out[i] = Derived(feature.column, (*feature.steps, step))
            elif isinstance(feature, Constant):
                out[i] = Constant(float(step(np.array([feature.value]))[0]))
            else:
                mixed.append(i)
        for kind in dict.fromkeys(type(steps[i]) for i in mixed):
            chosen = [i for i in mixed if type(steps[i]) is kind]
            inputs = tuple(self.features[i] for i in chosen)
            block = Block(name, inputs, _columnwise([steps[i] for i in chosen]))
            for place, i in enumerate(chosen):
                out[i] = Blend(block, place)
        return replace(self, features=tuple(out))


def _columnwise(steps: Sequence[Any]) -> Callable[[Node], Node]:
    """A function that builds the node of steps of one kind, one for each column; flat steps become small trees."""
    if not steps[0].flat:
        return lambda source: type(steps[0]).nodes(steps, source)

    def build(source: Node) -> Node:
        from .nodes import flights  # circular: it imports this module

        return flights(source, steps)

    return build


def run(steps: Sequence[Step], z: NDArray[Any]) -> NDArray[Any]:
    """The output of the steps; raises Refused for a value that a transformer refuses."""
    for step in steps:
        if not step.takes(z):
            raise Refused
        z = step(z)
    return z


def numbers(steps: Sequence[Step]) -> Callable[[Array], Array]:
    """The steps as one function of numbers, without checks for missing ones."""

    def function(z: Array) -> Array:
        with np.errstate(all="ignore"):
            for step in steps:
                z = step(z)
        return z

    return function


def fills(steps: Sequence[Step]) -> tuple[Any, ...]:
    """The labels that imputers before the first encoder fill in, or treat as missing."""
    imputers = [s for s in steps if isinstance(s, Impute)]
    return tuple(
        v
        for s in imputers
        for v in (s.fill, s.marker)
        if v is not None and (s.marker is not None or isinstance(v, str))
    )
