"""A table on its way through the steps of a pipeline: what each of its columns is, in terms of the raw ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import UnsupportedModelError
from ...graph import Array, Node
from .steps import Impute, Indicator, Reads, Refused, Step


@dataclass(frozen=True, eq=False)
class Derived:
    """A column that depends on one raw column alone."""

    column: int
    steps: tuple[Step, ...] = ()

    @property
    def reads(self) -> Reads:
        """What the raw column must hold for these steps: numbers or labels; "any" where both will do."""
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
    """A continuous function of several columns (or curves of one): what a step computes that trees cannot follow."""

    name: str  # the transformer's, for messages
    inputs: tuple[Feature, ...]
    build: Callable[[Node], Node]
    takes_missing: bool = False


@dataclass(frozen=True, eq=False)
class Blend:
    """One output of a Block: a column that depends on several raw columns."""

    block: Block
    index: int


Feature = Derived | Constant | Blend


@dataclass(frozen=True, eq=False)
class Table:
    """The columns, and whether they travel as a sparse matrix (some transformers then round differently).

    `dropped` are columns that a selector has looked at and left out: nothing reads them any more, and yet the steps up
    to it refuse what they refuse.
    """

    features: tuple[Feature, ...]
    sparse: bool = False
    dropped: tuple[Feature, ...] = ()

    def __len__(self) -> int:
        return len(self.features)

    def become(self, features: Sequence[Feature], *, sparse: bool = False) -> Table:
        """Other columns in the place of these."""
        return replace(self, features=tuple(features), sparse=sparse)

    def take(self, columns: Sequence[int]) -> Table:
        return replace(self, features=tuple(self.features[i] for i in columns))

    def then(self, steps: Sequence[Step | None], name: str) -> Table:
        """Every column followed by its step; None leaves one as it is."""
        out: list[Feature] = list(self.features)
        mixed: list[int] = []
        for i, (feature, step) in enumerate(zip(self.features, steps, strict=True)):
            if step is None:
                continue
            if isinstance(feature, Derived):
                out[i] = Derived(feature.column, (*feature.steps, step))
            elif isinstance(feature, Constant):
                out[i] = Constant(float(step(np.array([feature.value]))[0]))
            elif step.flat:
                raise UnsupportedModelError(
                    f"{name} cuts a number that {feature.block.name} computes into steps, so its edges are not tests "
                    f"on one raw column, which GIG needs. Put {name} before {feature.block.name}, or leave one out."
                )
            else:
                mixed.append(i)
        kinds = {type(steps[i]) for i in mixed}
        for kind in kinds:
            chosen = [i for i in mixed if type(steps[i]) is kind]
            inputs = tuple(self.features[i] for i in chosen)
            block = Block(name, inputs, _columnwise([steps[i] for i in chosen]))
            for place, i in enumerate(chosen):
                out[i] = Blend(block, place)
        return replace(self, features=tuple(out))


def _columnwise(steps: Sequence[Any]) -> Callable[[Node], Node]:
    return lambda source: type(steps[0]).nodes(steps, source)


def run(steps: Sequence[Step], z: NDArray[Any]) -> NDArray[Any]:
    """The values behind the steps; raises Refused for one that a transformer does not take."""
    for step in steps:
        if not step.takes(z):
            raise Refused
        z = step(z)
    return z


def numbers(steps: Sequence[Step]) -> Callable[[Array], Array]:
    """The steps as one function of numbers, which asks nothing about missing ones."""

    def function(z: Array) -> Array:
        with np.errstate(all="ignore"):
            for step in steps:
                z = step(z)
        return z

    return function


def fills(steps: Sequence[Step]) -> tuple[Any, ...]:
    """The labels that imputers ahead of the first encoder put in, or take for a missing one."""
    imputers = [s for s in steps if isinstance(s, Impute)]
    return tuple(
        v
        for s in imputers
        for v in (s.fill, s.marker)
        if v is not None and (s.marker is not None or isinstance(v, str))
    )
