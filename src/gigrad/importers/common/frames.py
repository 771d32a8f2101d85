"""The rows of an explanation, in the form in which a model's own predict takes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import narwhals as nw
import numpy as np

from ..._common.optional import require
from ..._io.tables import Rows
from ...graph import Column


def has_labels(columns: Sequence[Column]) -> bool:
    """Whether the model reads labelled categories, which only a data frame can hold."""
    return any(c.labels is not None for c in columns)


def as_matrix(rows: Rows) -> Any:
    """The rows as an array of numbers: the array that was given, where it was one."""
    if isinstance(rows.table, np.ndarray) and rows.table.dtype != object:
        return rows.table
    return rows.matrix


def as_pandas(rows: Rows, columns: Sequence[Column]) -> Any:
    """The rows as a pandas frame under the model's names, labelled columns as pandas categories.

    Columns that already are categories keep their own codes: recoding them is the library's business.
    """
    pd = require("pandas", "frames")

    data: dict[str, Any] = {}
    column_of = _columns_as_given(rows)
    dtypes = list(rows.table.dtypes) if isinstance(rows.table, pd.DataFrame) else [None] * len(columns)
    for j, column in enumerate(columns):
        # A category where the model is thought to read a number is the library's to refuse.
        if column.labels is None and not (column.kind == "number" and isinstance(dtypes[j], pd.CategoricalDtype)):
            data[column.name] = rows.matrix[:, j]
            continue
        given = column_of(j)
        if isinstance(given.dtype, pd.CategoricalDtype) and given.notna().any():
            data[column.name] = given.reset_index(drop=True).cat.remove_unused_categories()
        else:
            data[column.name] = as_categories(given, column)
    return pd.DataFrame(data)


def as_categories(values: Any, column: Column) -> Any:
    """Labels as pandas categories: those that the column knows, then any others that were given."""
    pd = require("pandas", "frames")

    present = [None if pd.isna(v) else v for v in values]
    seen = dict.fromkeys([*(column.labels or ()), *(v for v in present if v is not None)])
    return pd.Categorical(present, categories=list(seen))


def as_given(rows: Rows, columns: Sequence[Column]) -> Any:
    """The rows as a pandas frame under the model's names, categories as the plain values that were given."""
    pd = require("pandas", "frames")

    column_of = _columns_as_given(rows)
    data = {
        column.name: rows.matrix[:, j] if column.kind == "number" else column_of(j).astype(object).to_numpy()
        for j, column in enumerate(columns)
    }
    return pd.DataFrame(data)


def _columns_as_given(rows: Rows) -> Callable[[int], Any]:
    """A function from a column's position to the column as it was given, as a pandas series."""
    pd = require("pandas", "frames")

    if isinstance(rows.table, np.ndarray):
        return lambda j: pd.Series(rows.table[:, j].tolist(), dtype=object)
    frame = nw.from_native(rows.table, eager_only=True)
    if frame.implementation.is_pandas():
        return lambda j: rows.table.iloc[:, j]
    return lambda j: pd.Series(frame[:, j].to_list(), dtype=object)
