"""Steps that turn a raw column into numbers: categories looked up, missing values filled or marked.

On the path of an explanation such a column changes at once, so these nodes add no jumps of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .node import Array, Columns, Node, Smooth


@dataclass(frozen=True, eq=False)
class Lookup(Smooth):
    """A category column turned into numbers: row `code` of a table, one row for unknown codes, one for missing."""

    source: Node
    column: int
    table: Array  # (codes, width)
    unknown: Array  # (width,)
    missing: Array  # (width,)

    @property
    def width(self) -> int:
        return int(self.table.shape[1])

    def forward(self, *inputs: Array) -> Array:
        codes = inputs[0][:, self.column]
        rows = np.concatenate([self.table, self.unknown[None], self.missing[None]])
        size = len(self.table)
        known = (codes >= 0) & (codes < size)
        index = np.where(known, codes, size)
        index[np.isnan(codes)] = size + 1
        return rows[index.astype(np.int64)]

    def pullback(self, cotangent: Array, *inputs: Array) -> tuple[Array, ...]:
        return (np.zeros_like(inputs[0]),)

    @property
    def additive(self) -> bool:
        return True

    def columns_behind(self, parents: Sequence[Columns]) -> Columns:
        return [parents[0][self.column]] * self.width

    def columns_at_once(self, parents: Sequence[Columns]) -> set[int]:
        return parents[0][self.column]


@dataclass(frozen=True, eq=False)
class Fill(Smooth):
    """Each column's missing values replaced by one number: a simple imputer."""

    source: Node
    fill: Array  # (source width,)

    @cached_property
    def width(self) -> int:
        return self.source.width

    def forward(self, *inputs: Array) -> Array:
        return np.where(np.isnan(inputs[0]), self.fill, inputs[0])

    def pullback(self, cotangent: Array, *inputs: Array) -> tuple[Array, ...]:
        return (np.where(np.isnan(inputs[0]), 0.0, cotangent),)

    @property
    def additive(self) -> bool:
        return True

    def columns_behind(self, parents: Sequence[Columns]) -> Columns:
        return parents[0]


@dataclass(frozen=True, eq=False)
class IsMissing(Smooth):
    """1 where a value is missing, 0 elsewhere: a missing indicator."""

    source: Node

    @cached_property
    def width(self) -> int:
        return self.source.width

    def forward(self, *inputs: Array) -> Array:
        return np.isnan(inputs[0]).astype(np.float64)

    def pullback(self, cotangent: Array, *inputs: Array) -> tuple[Array, ...]:
        return (np.zeros_like(inputs[0]),)

    @property
    def additive(self) -> bool:
        return True

    def columns_behind(self, parents: Sequence[Columns]) -> Columns:
        return parents[0]
