"""The state of one traversal of a Keras model: what is known of its columns, and the layer being applied."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...errors import CorruptModelError, UnsupportedModelError
from ...graph import Array, Input, Node
from .values import Known, Labels, Value, binned, labelled, looked_up, numbers

Config = Mapping[str, Any]


class NotAsNodes(UnsupportedModelError):
    """Raised for a layer, or a use of one, without nodes of its own; if the layer is live, its gradient is used."""


class NotByLayers(Exception):
    """Raised for a model whose layers do not follow from its configuration: it is used as one function."""


@dataclass
class Walk:
    """The state of one traversal: what is known of the columns, and the codes and lookups found so far.

    `whole` are the columns that the model reads as integers; `masks` says whether layers pass masks on.
    """

    source: Input
    known: Known
    whole: frozenset[int] = frozenset()
    found: dict[int, int] = field(default_factory=dict)
    lookups: list[Labels] = field(default_factory=list)
    masks: bool = False

    def numbers(self, value: Value) -> Node:
        return numbers(value, self.source, self.known)

    def tables(self, value: Value, table: Array, layer: str) -> list[Node]:
        """Rows of a table, looked up by each code of a value."""
        if value.codes:
            if any(bins.size > len(table) for bins in value.codes):
                raise CorruptModelError(f"The layer {layer!r} has {len(table)} codes, fewer than the bins it reads.")
            return [binned(self.source, bins, table[: bins.size]) for bins in value.codes]
        if value.labels:
            if any(one.size > len(table) for one in value.labels):
                raise CorruptModelError(f"The layer {layer!r} has {len(table)} codes, fewer than the lookup it reads.")
            return [labelled(self.source, one, table, self.known) for one in value.labels]
        if value.node is not None or not value.raw:
            raise UnsupportedModelError(
                f"The layer {layer!r} reads codes, which must be a column of the table or come from a Discretization, "
                "StringLookup or IntegerLookup layer; here another layer computes them."
            )
        for j in value.raw:
            self.found[j] = min(self.found.get(j, len(table)), len(table))
        return [looked_up(self.source, j, table[: self.known.codes.get(j, len(table))]) for j in value.raw]


@dataclass(frozen=True)
class Layer:
    """A layer being applied: its name, configuration and weights."""

    kind: str
    name: str
    config: Config
    weights: Sequence[Array]

    def weight(self, index: int, shape: tuple[int, ...]) -> Array:
        """One of the layer's weights, which must be finite and have this shape."""
        if index >= len(self.weights) or self.weights[index].shape != shape:
            got = self.weights[index].shape if index < len(self.weights) else "none"
            raise CorruptModelError(
                f"The layer {self.name!r} ({self.kind}) must have weights of shape {shape}; it has {got}."
            )
        if not np.isfinite(self.weights[index]).all():
            raise CorruptModelError(f"The layer {self.name!r} ({self.kind}) must have finite weights.")
        return self.weights[index]

    def refuse(self, what: str) -> UnsupportedModelError:
        return UnsupportedModelError(f"The layer {self.name!r} ({self.kind}) of this Keras model {what}.")

    def not_as_nodes(self, what: str) -> NotAsNodes:
        return NotAsNodes(f"The layer {self.name!r} ({self.kind}) of this Keras model {what}.")
