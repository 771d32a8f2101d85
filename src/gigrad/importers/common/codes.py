"""Columns that a function reads as codes of categories: they change at once, and the function gets the codes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..._io.tables import Rows
from ...graph import Array, Column, Concat, Input, Lookup, Node, Select
from ...graph.witness import Predict


def coded(column: Column, codes: Sequence[float]) -> Column:
    """The column as a category whose labels are these codes."""
    return replace(column, kind="category", labels=tuple(codes), unknown="refuse", missing=False)


def with_codes(source: Input, columns: Sequence[Column]) -> Node:
    """The rows as the function reads them: encoded categories, 0, 1, 2..., are replaced by the codes they stand for."""
    if not _categories(columns):
        return source
    parts: list[Node] = []
    numbers: list[int] = []
    for j, column in enumerate(columns):
        if column.kind == "category":
            parts += [Select(source, tuple(numbers))] if numbers else []
            numbers = []
            table = np.array([[float(label)] for label in column.labels or ()])
            parts.append(Lookup(source, j, table, np.array([np.nan]), np.array([np.nan])))
        else:
            numbers.append(j)
    parts += [Select(source, tuple(numbers))] if numbers else []
    return parts[0] if len(parts) == 1 else Concat(tuple(parts))


@dataclass(frozen=True)
class OnCodes:
    """A prediction called with the model's own codes in place of the encoded categories 0, 1, 2... of the rows."""

    predict: Predict
    columns: tuple[Column, ...]

    def __call__(self, rows: Rows) -> Any:
        matrix: Array = rows.matrix.copy()
        for j in _categories(self.columns):
            matrix[:, j] = np.array([float(v) for v in self.columns[j].labels or ()])[matrix[:, j].astype(np.int64)]
        return self.predict(replace(rows, matrix=matrix))


def on_codes(predict: Predict, columns: tuple[Column, ...]) -> Predict:
    """The prediction wrapped in `OnCodes`; unchanged if no column is a category."""
    return OnCodes(predict, columns) if _categories(columns) else predict


def _categories(columns: Sequence[Column]) -> list[int]:
    return [j for j, c in enumerate(columns) if c.kind == "category"]
