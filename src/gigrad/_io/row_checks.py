"""Which rows a model refuses, and why; and missing values that are marked by numbers or filled in a column's type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from ..errors import ColumnWarning, InputError, warn
from ..graph.columns import Column, TableType
from ..graph.node import Array
from .encoding import encode, encode_series

if TYPE_CHECKING:
    from ..graph.model import Graph


def check_rows(matrix: Array, columns: Sequence[Column], what: str) -> Array:
    """The matrix with NaN for numbers that mean a missing value; raises for infinities and refused missing values."""
    if np.isinf(matrix).any():
        row, j = (int(v[0]) for v in np.nonzero(np.isinf(matrix)))
        raise InputError(
            f"{what} must be finite: column {columns[j].name!r} is infinite in row {row}, and no path leads there. "
            "Use a missing value or the column's largest value."
        )
    refused = np.isnan(matrix) & ~np.array([c.missing for c in columns], dtype=bool)
    if refused.any():
        row, j = (int(v[0]) for v in np.nonzero(refused))
        raise InputError(
            f"{what} must have no missing value in column {columns[j].name!r}, which this model cannot take; "
            f"row {row} has one."
        )
    beyond = _beyond(matrix, columns)
    if beyond.any():
        row, j = (int(v[0]) for v in np.nonzero(beyond))
        column = columns[j]
        raise InputError(
            f"{what} must hold numbers from {column.least} to {column.most} in column {column.name!r}, the range that "
            f"this model accepts; row {row} has {matrix[row, j]!r}."
        )
    _mark_missing(matrix, columns)
    return matrix


def _beyond(matrix: Array, columns: Sequence[Column]) -> NDArray[np.bool_]:
    """Which numbers the model refuses, (n, p)."""
    out = np.zeros(matrix.shape, np.bool_)
    for j, column in enumerate(columns):
        if column.least is not None or column.most is not None:
            out[:, j] = column.refuses(matrix[:, j])
    return out


def _mark_missing(matrix: Array, columns: Sequence[Column]) -> None:
    """Replace numbers that mean a missing value (`Column.missing_value`) by NaN."""
    for j, column in enumerate(columns):
        if column.missing_value is not None:
            matrix[column.stands_for_missing(matrix[:, j]), j] = np.nan


def bad_rows(table: Any, graph: Graph) -> dict[int, str]:
    """Row -> the first reason why the model refuses it. `table` has the model's columns, in its order."""
    frame = nw.from_native(table, eager_only=True)
    matrix = np.zeros((len(frame), len(graph.columns)))
    found: dict[int, str] = {}
    for j, column in enumerate(graph.columns):
        series = frame.get_column(frame.columns[j])
        try:
            matrix[:, j] = encode_series(series, column, "it")
        except InputError:
            for i, value in enumerate(series.to_list()):
                try:
                    matrix[i, j] = encode(np.array([value, None], dtype=object)[:1], column, "it")[0]
                except InputError as error:
                    found.setdefault(i, str(error))
    for i in _not_filled(matrix, graph.columns, types_in(frame)):
        found.setdefault(i, "a missing value is filled with a number of the column's type that cannot be followed")
    refused = np.isnan(matrix) & ~np.array([c.missing for c in graph.columns], dtype=bool)
    for what, where in (("is infinite, and no path leads there", np.isinf(matrix)),
                        ("is missing, which this model cannot take", refused),
                        ("is beyond what this model takes", _beyond(matrix, graph.columns))):  # fmt: skip
        for i, j in np.argwhere(where).tolist():
            found.setdefault(i, f"column {graph.columns[j].name!r} {what}")
    return dict(sorted(found.items()))


def _not_filled(matrix: Array, columns: Sequence[Column], types: Sequence[TableType]) -> list[int]:
    """Fill missing values as `fill_in` does; the rows whose missing values it refuses."""
    refused: list[int] = []
    for j, (column, type_) in enumerate(zip(columns, types, strict=True)):
        try:
            fill_in(matrix[:, j : j + 1], [column], [type_], "it")
        except InputError:
            refused += np.flatnonzero(np.isnan(matrix[:, j]) | column.stands_for_missing(matrix[:, j])).tolist()
    return refused


def fill_in(matrix: Array, columns: Sequence[Column], types: Sequence[TableType], what: str) -> None:
    """Replace missing values of columns that an imputer fills in the column's own type (`Column.fill`)."""
    for j, (column, type_) in enumerate(zip(columns, types, strict=True)):
        if column.fill is None:
            continue
        missing = np.isnan(matrix[:, j]) | column.stands_for_missing(matrix[:, j])
        if not missing.any():
            continue
        if type_ == "float64":
            _warn_of_integers(matrix[~missing, j], column, what)
            continue
        number = column.fill_as(type_)
        if number is None:
            raise InputError(
                f"{what} must hold column {column.name!r} as float64: it is of the type {type_} and has missing "
                "values, which the model's Imputer fills with a number of that type that cannot be followed here. Cast "
                "the column to double before the pipeline is fitted and predicts."
            )
        matrix[missing, j] = number


def _warn_of_integers(present: Array, column: Column, what: str) -> None:
    """Warn where float64 may be what a conversion has made of integers with missing values, as pandas does."""
    whole = column.fill_as("integer")
    if whole is not None and whole != column.fill and len(present) and (present == np.trunc(present)).all():
        warn(
            f"{what} has whole numbers and missing values in column {column.name!r}, as float64, so they are filled "
            f"with {column.fill:.6g}. If the model reads a column of integers, its Imputer fills them with "
            f"{whole:g}: pass integers then (Int64 in pandas, or a pyarrow table).",
            ColumnWarning,
        )


def types_in(frame: nw.DataFrame[Any]) -> list[TableType]:
    """The type of each column of a frame, as messages and places of splits need it."""
    return [
        "integer" if d.is_integer() else "decimal" if d.is_decimal() else "float32" if d == nw.Float32() else "float64"
        for d in frame.schema.values()
    ]
