"""The rows of an explanation, in the form in which a model's own predict takes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import narwhals as nw
import numpy as np

from ..._common.optional import require
from ..._io.tables import Rows
from ...graph import Array, Column


def has_labels(columns: Sequence[Column]) -> bool:
    """Whether the model reads labelled categories, which only a data frame can hold."""
    return any(c.labels is not None for c in columns)


def as_matrix(rows: Rows) -> Any:
    """The rows as an array of numbers: the given array, if it was one."""
    if isinstance(rows.table, np.ndarray) and rows.table.dtype != object:
        return rows.table
    return rows.matrix


def as_pandas(rows: Rows, columns: Sequence[Column]) -> Any:
    """The rows as a pandas frame under the model's names, labelled columns as pandas categories.

    Columns that already are categories keep their own codes, which the library recodes.
    """
    pd = require("pandas", "frames")

    if rows.cells is not None:
        return _one_row(rows.table, rows.cells, rows.matrix, columns)
    data: dict[str, Any] = {}
    column_of = _columns_as_given(rows)
    dtypes = list(rows.table.dtypes) if isinstance(rows.table, pd.DataFrame) else [None] * len(columns)
    for j, column in enumerate(columns):
        # A category in place of a number is left for the library to refuse.
        if column.labels is None and not (column.kind == "number" and isinstance(dtypes[j], pd.CategoricalDtype)):
            data[column.name] = rows.matrix[:, j]
            continue
        given = column_of(j)
        if isinstance(given.dtype, pd.CategoricalDtype) and given.notna().any():
            data[column.name] = given.reset_index(drop=True).cat.remove_unused_categories()
        else:
            data[column.name] = as_categories(given, column)
    return pd.DataFrame(data)


def _one_row(table: Any, cells: Sequence[Any], matrix: Array, columns: Sequence[Column]) -> Any:
    """`as_pandas` for one row of plain cells: 1 ms, where 42 columns one by one take 10 ms."""
    pd = require("pandas", "frames")

    dtypes = list(table.dtypes) if isinstance(table, pd.DataFrame) else [None] * len(columns)
    exact = not (np.abs(matrix) > 2.0**53).any()  # float64 represents all integers up to here
    if exact and all(map(_as_read, dtypes, columns)) and [c.name for c in columns] == list(table.columns):
        return table
    data: dict[str, Any] = {}
    for j, (cell, column, dtype) in enumerate(zip(cells, columns, dtypes, strict=True)):
        category, missing = isinstance(dtype, pd.CategoricalDtype), cell is None or cell != cell
        if column.labels is None and not (column.kind == "number" and category):
            data[column.name] = matrix[:, j]
            continue
        if category and not missing:
            kind, code = _only(dtype, cell), 0
        else:
            kind = _known(column.labels or (), tuple(map(type, column.labels or ())))
            code = -1 if missing else int(matrix[0, j])
        data[column.name] = pd.Categorical.from_codes([code], dtype=kind)
    return pd.DataFrame(data, copy=False)


@lru_cache(maxsize=4096)
def _as_read(dtype: Any, column: Column) -> bool:
    """Whether the model's library can read a pandas column of this type directly, without unknown categories."""
    if column.missing_value is not None or column.kind == "unused":
        return False
    if column.labels is None:
        return isinstance(dtype, np.dtype) and dtype.kind in "fiub"
    known = getattr(dtype, "categories", None)
    return known is not None and all(column.code(label) >= 0 for label in known)


@lru_cache(maxsize=4096)
def _only(dtype: Any, label: Any) -> Any:
    """A pandas categorical type with one label only, in the type of the given one's labels."""
    at = dtype.categories.get_loc(label)
    return type(dtype)(dtype.categories[at : at + 1], dtype.ordered)


@lru_cache(maxsize=4096)
def _known(labels: tuple[Any, ...], types: tuple[type, ...]) -> Any:
    """The pandas categorical type of some labels; `types` keeps the equal 1, 1.0 and True apart in the cache."""
    return require("pandas", "frames").CategoricalDtype(list(labels))


def as_categories(values: Any, column: Column) -> Any:
    """Labels as a pandas categorical: the column's labels, then any others that were given."""
    pd = require("pandas", "frames")

    present = [None if pd.isna(v) else v for v in values]
    seen = dict.fromkeys([*(column.labels or ()), *(v for v in present if v is not None)])
    return pd.Categorical(present, categories=list(seen))


def as_given(rows: Rows, columns: Sequence[Column]) -> Any:
    """The rows as a pandas frame under the model's names, categories as the plain values that were given."""
    pd = require("pandas", "frames")

    if rows.cells is not None:
        given = np.array([rows.cells], dtype=object)
        one = (rows.matrix if column.kind == "number" else given for column in columns)
        data = {column.name: part[:, j] for j, (column, part) in enumerate(zip(columns, one, strict=True))}
        return pd.DataFrame(data, copy=False)
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
