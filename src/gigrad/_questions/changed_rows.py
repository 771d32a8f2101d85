"""A row with some of its values changed, as a table of the same kind, for the model's own prediction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals as nw
import numpy as np

from .._common import display
from .._explain.explainer import Explainer
from .._io.tables import Rows, read_rows
from ..errors import InputError

Edit = dict[int, float]
"""The encoded new values of some columns."""


def raw_value(explainer: Explainer, row: Rows, column: int, value: float) -> Any:
    """An encoded value as a table holds it: a label for a code, a number as it is, None where it is missing.

    A label that the model does not hold is looked up in the row, then in the reference.
    """
    if np.isnan(value):
        return None
    known = explainer.scorer.columns[column]
    if known.kind != "category" or known.labels is None:
        return int(value) if value == int(value) else value
    if known.known_as == "label" and value >= 0:
        label = known.labels[int(value)]
    else:
        holder = row if row.matrix[0, column] == value else explainer.reference
        at = int(np.flatnonzero(holder.matrix[:, column] == value)[0])
        label = display.column(holder.table, column)[at]
    return label.item() if isinstance(label, np.generic) else label


def changed(explainer: Explainer, row: Rows, edits: Sequence[Edit]) -> Rows:
    """The row with each edit applied, one row for each; an InputError if the model would read another value."""
    table = _repeated(row.table, len(edits))
    for column in sorted({c for edit in edits for c in edit}):
        at = [i for i, edit in enumerate(edits) if column in edit]
        values = [raw_value(explainer, row, column, edits[i][column]) for i in at]
        table = _written(table, column, at, values)
    rows = read_rows(table, explainer.scorer.graph, what="the changed row")
    wanted = np.repeat(row.matrix, len(edits), axis=0)
    for i, edit in enumerate(edits):
        wanted[i, list(edit)] = list(edit.values())
    if not np.array_equal(rows.matrix, wanted, equal_nan=True):
        i, j = (int(v[0]) for v in np.nonzero(~((rows.matrix == wanted) | (np.isnan(rows.matrix) & np.isnan(wanted)))))
        raise InputError(
            f"{row.names[j]!r} cannot be set to {wanted[i, j]!r}: the model would read {rows.matrix[i, j]!r}. Give its "
            "values in rules, or freeze it."
        )
    return Rows(rows.matrix, rows.table, row.names)


def _repeated(table: Any, times: int) -> Any:
    if isinstance(table, np.ndarray):
        return np.repeat(table[:1], times, axis=0)
    return nw.from_native(table, eager_only=True)[[0] * times].to_native()


def _written(table: Any, column: int, at: list[int], values: list[Any]) -> Any:
    """The table with new values in one column."""
    whole = all(isinstance(v, int) for v in values)
    if isinstance(table, np.ndarray):
        wide = table if table.dtype == object else table.astype(np.float64)
        out = wide.copy()
        out[at, column] = values
        return out
    frame = nw.from_native(table, eager_only=True)
    series = frame.get_column(frame.columns[column])
    kept = series.dtype
    if kept.is_numeric() or kept == nw.Boolean:
        if kept == nw.Boolean and set(values) <= {0, 1}:
            values = [bool(v) for v in values]
        else:  # wide enough for any value that is allowed: a column of int8 may hold ages up to 100 by chance
            series = series.cast(nw.Int64 if whole and kept.is_integer() else nw.Float64)
            values = values if series.dtype.is_integer() else [float(v) for v in values]
        return frame.with_columns(series.scatter(at, values)).to_native()
    if frame.implementation.is_pandas():  # its categories keep their codes when labels are set
        own = series.to_native().copy()
        for i, value in zip(at, values, strict=True):
            own.iloc[i] = value
        return table.assign(**{str(frame.columns[column]): own})
    text = series.cast(nw.String).scatter(at, [str(v) for v in values])
    return frame.with_columns(text if kept == nw.String else text.cast(kept)).to_native()
