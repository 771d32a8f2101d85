"""Values between the layers of a Keras model: numbers, columns as they were given, or codes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...errors import UnsupportedModelError
from ...graph import Array, Concat, Input, Lookup, Node, Select, assemble
from ...graph.growing import Branch, Edge, chained, grown
from ..common.thresholds import less_in_float32


@dataclass(frozen=True)
class Weights:
    """The variables of a model's layers by name, those of nested models, and the vocabularies of lookups.

    `live` are the layers and operations themselves, if there is a model and not only a file.
    """

    layers: Mapping[str, Sequence[Array]]
    models: Mapping[str, Weights] = field(default_factory=dict)
    vocabularies: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    live: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Bins:
    """A column of numbers in bins: code i where i of the boundaries are at most x, compared in float32."""

    column: int
    boundaries: tuple[float, ...]

    @property
    def size(self) -> int:
        return len(self.boundaries) + 1


@dataclass(frozen=True, eq=False)
class Labels:
    """A column of labels that a lookup turns into codes; NO_CODE for a label that one-hot codes leave out."""

    column: int
    codes: Mapping[Any, int]
    other: int | None  # the code of unknown labels; None where they are an error
    size: int


NO_CODE = -1


@dataclass(frozen=True, eq=False)
class Value:
    """The output of a layer for a row: numbers of a given shape, or columns and codes that become numbers when read.

    Attributes
    ----------
    shape : tuple of int
        Without the rows.
    node : Node or None
        The numbers, flat; None for columns and codes.
    raw : tuple of int
        Columns of the table as they are.
    codes : tuple of Bins
        Codes of bins.
    labels : tuple of Labels
        Codes of labels.
    """

    shape: tuple[int, ...]
    node: Node | None = None
    raw: tuple[int, ...] = ()
    codes: tuple[Bins, ...] = ()
    labels: tuple[Labels, ...] = ()

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))


def side_by_side(parts: Sequence[Node]) -> Node:
    return parts[0] if len(parts) == 1 else Concat(tuple(parts))


@dataclass(frozen=True)
class Known:
    """What is known of the columns before a traversal: their numbers of codes, their labels, and which are text."""

    codes: Mapping[int, int] = field(default_factory=dict)
    labels: Mapping[int, tuple[Any, ...]] = field(default_factory=dict)
    texts: frozenset[int] = frozenset()


def numbers(value: Value, source: Input, known: Known) -> Node:
    """The node of a value as numbers; `known` says which columns are categories."""
    codes = known.codes
    if value.node is not None:
        return value.node
    if value.labels:
        counted = [(one, np.arange(one.size, dtype=np.float64)[:, None]) for one in value.labels]
        return side_by_side([labelled(source, one, table, known) for one, table in counted])
    if read := [j for j in value.raw if j in known.labels or j in known.texts]:
        raise UnsupportedModelError(
            f"Column {read[0]} of this Keras model holds labels, and a layer reads it as a number. Let a StringLookup "
            "or IntegerLookup turn it into codes for every layer that reads it, or give the net two columns."
        )
    if value.codes:
        tables = [(bins, np.arange(bins.size, dtype=np.float64)[:, None]) for bins in value.codes]
        return side_by_side([binned(source, bins, table) for bins, table in tables])
    if not any(j in codes for j in value.raw):
        return source if value.raw == tuple(range(source.width)) else Select(source, value.raw)
    parts = [
        looked_up(source, j, np.arange(codes[j], dtype=np.float64)[:, None]) if j in codes else Select(source, (j,))
        for j in value.raw
    ]
    return side_by_side(parts)


def looked_up(source: Input, column: int, table: Array) -> Node:
    """Row `code` of a table, for a column of codes; other codes are refused when rows are read."""
    nothing = np.full(table.shape[1], np.nan)
    return Lookup(source, column, table, nothing, nothing)


def labelled(source: Input, one: Labels, table: Array, known: Known) -> Node:
    """Row `code` of a table, for the code that a lookup gives a label."""
    nothing = np.zeros(table.shape[1])

    def row(code: int | None) -> Array:
        return nothing if code is None or code == NO_CODE else table[code]

    labels = known.labels.get(one.column, tuple(one.codes))
    found = np.array([row(one.codes.get(label, one.other)) for label in labels]).reshape(len(labels), table.shape[1])
    return Lookup(source, one.column, found, row(one.other), np.full(table.shape[1], np.nan))


def binned(source: Input, bins: Bins, table: Array) -> Node:
    """Row i of a table for numbers in bin i: a chain of splits `x < boundary`."""
    folded = less_in_float32(np.array(bins.boundaries))
    low, high = folded.equal
    edges = [
        Edge(float(t), (float(a), float(b)), single=True) for t, a, b in zip(folded.threshold, low, high, strict=True)
    ]
    tree = grown(chained(list(table), lambda i, row, rest: Branch(bins.column, row, rest, edges[i])), output=-1)
    return assemble(source, [tree], np.zeros(table.shape[1]))
