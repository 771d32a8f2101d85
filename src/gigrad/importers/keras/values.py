"""What flows between the layers of a Keras model: numbers, columns as they were given, or codes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ...graph import Array, Concat, Input, Lookup, Node, Select, Tree, assemble
from ..common.thresholds import less_in_float32


@dataclass(frozen=True)
class Weights:
    """The variables of the layers of a model by name, and those of the models inside of it."""

    layers: Mapping[str, Sequence[Array]]
    models: Mapping[str, Weights] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Bins:
    """A column of numbers in bins: code i where i of the boundaries are at most x, compared in float32."""

    column: int
    boundaries: tuple[float, ...]

    @property
    def size(self) -> int:
        return len(self.boundaries) + 1


@dataclass(frozen=True, eq=False)
class Value:
    """What a layer gives for a row: numbers of a given shape, or something that becomes numbers when it is read.

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
    """

    shape: tuple[int, ...]
    node: Node | None = None
    raw: tuple[int, ...] = ()
    codes: tuple[Bins, ...] = ()

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))


def side_by_side(parts: Sequence[Node]) -> Node:
    return parts[0] if len(parts) == 1 else Concat(tuple(parts))


def numbers(value: Value, source: Input, codes: Mapping[int, int]) -> Node:
    """A value as numbers; `codes` says which columns are categories, and of how many codes."""
    if value.node is not None:
        return value.node
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


def binned(source: Input, bins: Bins, table: Array) -> Node:
    """Row i of a table for numbers in bin i: a chain of splits `x < boundary`, node 2i for boundary i."""
    n = len(bins.boundaries)
    if n == 0:
        return assemble(source, [], table[0])
    folded = less_in_float32(np.array(bins.boundaries))
    size = 2 * n + 1
    split = np.arange(0, 2 * n, 2)
    feature, left, right = (np.full(size, -1) for _ in range(3))
    threshold, low, high = (np.zeros(size) for _ in range(3))
    feature[split], left[split], right[split] = bins.column, split + 1, split + 2
    threshold[split], low[split], high[split] = folded.threshold, folded.equal[0], folded.equal[1]
    values = np.zeros((size, table.shape[1]))
    values[1::2], values[-1] = table[:-1], table[-1]
    tree = Tree(feature, threshold, left, right, np.zeros(size, bool), values, -1, equal=(low, high), single=True)
    return assemble(source, [tree], np.zeros(table.shape[1]))
