"""Tables in: NumPy arrays and pandas, polars or pyarrow tables become one encoded float64 matrix.

Numbers stay as they are, categories become codes, missing values NaN. Columns are matched by name where the model
knows names, by position elsewhere.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from .._common.display import is_missing
from ..errors import InputError, kind_of
from ..graph.columns import Column
from ..graph.node import Array

if TYPE_CHECKING:
    from ..graph.model import Graph


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows as gigrad works on them, and as they were given.

    Attributes
    ----------
    matrix : (n, p) float64
        The encoded rows, in the order of the model's columns.
    table : array or data frame
        The rows as given, with the model's columns in the model's order: what the model's own predict is asked with.
    names : tuple of str
        The columns' names: the table's own where it has any, else the model's.
    """

    matrix: Array
    table: Any
    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.matrix)

    @property
    def is_frame(self) -> bool:
        return not isinstance(self.table, np.ndarray)

    def select(self, positions: Sequence[int], matrix: Array) -> Rows:
        """Some columns of the same rows, with `matrix` (n, len(positions)) as their encoded form."""
        names = tuple(self.names[j] for j in positions)
        if not self.is_frame:
            return Rows(matrix, self.table[:, list(positions)], names)
        frame = nw.from_native(self.table, eager_only=True)
        return Rows(matrix, frame.select([frame.columns[j] for j in positions]).to_native(), names)


_NEVER_SEEN = "a label the model has never seen"


def decoded_rows(matrix: Array, columns: Sequence[Column]) -> Rows:
    """Rows of an encoded matrix (n, len(columns)), with labels in the place of their codes in the table."""
    names = tuple(c.name for c in columns)
    if all(c.labels is None for c in columns):
        return Rows(matrix, matrix, names)
    table = matrix.astype(object)
    for j, column in enumerate(columns):
        if column.labels is not None:
            label: dict[float, Any] = {-1.0: _NEVER_SEEN, **{float(i): v for i, v in enumerate(column.labels)}}
            table[:, j] = [None if np.isnan(code) else label[code] for code in matrix[:, j]]
    return Rows(matrix, table, names)


def read_rows(X: Any, graph: Graph, *, what: str) -> Rows:
    """Encode a table for a model; a table that does not fit is an InputError that calls it `what`."""
    if isinstance(X, Rows):
        return X
    opened = open_table(X, what)
    if isinstance(opened, nw.DataFrame):
        return _read_frame(opened, graph, what)
    return _read_array(opened, graph.columns, what)


def under_names(rows: Rows, names: tuple[str, ...], graph: Graph, *, what: str, other: str) -> Rows:
    """The same rows under the names of another table of the model, (p,), so that both speak of the same columns.

    A model without names knows its columns by position: two tables that both name theirs must then agree.
    """
    if rows.names == names:
        return rows
    if not graph.named and graph.feature_names not in (rows.names, names):
        own, there = next((a, b) for a, b in zip(rows.names, names, strict=True) if a != b)
        raise InputError(
            f"{what} must have the columns of {other}, in its order, for {graph.label} knows them by position only; "
            f"got {own!r} where {other} has {there!r}. Rename or reorder them, or give the model their names: "
            "gigrad.import_model(model).with_columns([...])."
        )
    return replace(rows, names=names)


_HINTS = {
    "Series": " For one row of a pandas table, pass table.iloc[[i]].",
    "LazyFrame": " Pass what its collect() gives.",
    "RecordBatch": " Pass pyarrow.Table.from_batches([batch]).",
    "Tensor": " Pass what its numpy() gives.",
    "dict": " Pass pandas.DataFrame([row]) for one row, pandas.DataFrame(columns) for columns.",
}


def open_table(table: Any, what: str) -> Any:
    """A table as a NumPy array of two dimensions or a narwhals.DataFrame; lists of rows are arrays, too.

    Anything else is an InputError that calls it `what`.
    """
    if isinstance(table, np.ma.MaskedArray):
        raise InputError(
            f"{what} must show its missing values; got a masked array, which hides them. Pass X.filled(numpy.nan)."
        )
    if type(table).__module__.startswith("scipy.sparse"):
        raise InputError(
            f"{what} must be a dense table; got a sparse matrix. Whether its empty cells are zeros or missing values "
            "differs between libraries, so say which: pass X.toarray(), or an array with NaN in them."
        )
    if isinstance(table, (list, tuple)):
        if any(isinstance(row, Mapping) for row in table):
            raise InputError(f"{what} must have rows of cells; got a list of dicts. Pass pandas.DataFrame(rows).")
        try:
            table = np.asarray(table)
        except ValueError:
            raise InputError(f"{what} must have rows of one length; got a list of rows of several lengths.") from None
    if isinstance(table, np.ndarray):
        if table.ndim != 2:
            instead = "A mask chooses rows: pass table[mask]." if table.dtype == bool else "For one row, pass [row]."
            raise InputError(f"{what} must have two dimensions, rows and columns; it has {table.ndim}. {instead}")
        # XGBoost reads the bytes of a big-endian array as if they were in the machine's own order.
        return table if table.dtype.isnative else table.astype(table.dtype.newbyteorder("="))
    try:
        return nw.from_native(_in_native_order(table), eager_only=True)
    except TypeError:
        hint = _HINTS.get(type(table).__name__, "")
        raise InputError(
            f"{what} must be a NumPy array or a pandas, polars or pyarrow table; got {kind_of(table)}.{hint}"
        ) from None
    except nw.exceptions.DuplicateError as problem:
        raise InputError(f"{what} must name each column once: {' '.join(str(problem).split())}.") from None


def _in_native_order(table: Any) -> Any:
    """A pandas frame with its big-endian columns in the machine's own order; anything else as it is."""
    if type(table).__module__.partition(".")[0] != "pandas" or not hasattr(table, "columns"):
        return table
    if all(not isinstance(d, np.dtype) or d.isnative for d in set(table.dtypes)):
        return table
    swapped = {c: d for c, d in table.dtypes.items() if isinstance(d, np.dtype) and not d.isnative}
    return table.astype({c: d.newbyteorder("=") for c, d in swapped.items()})


def _read_array(X: NDArray[Any], columns: Sequence[Column], what: str) -> Rows:
    if X.shape[1] != len(columns):
        raise InputError(f"{what} must have the model's {len(columns)} columns; it has {X.shape[1]}.")
    matrix = np.empty(X.shape, dtype=np.float64)
    if X.dtype != object and all(c.labels is None and c.kind != "unused" for c in columns):
        if not (np.issubdtype(X.dtype, np.number) or X.dtype == bool) or np.iscomplexobj(X):
            raise InputError(f"{what} must hold real numbers; its dtype is {X.dtype}.")
        matrix[:] = X
    else:
        for j, column in enumerate(columns):
            matrix[:, j] = _encode(X[:, j], column, what)
    _check(matrix, columns, what)
    _mark_missing(matrix, columns)
    return Rows(matrix, X, tuple(c.name for c in columns))


def _read_frame(frame: nw.DataFrame[Any], graph: Graph, what: str) -> Rows:
    columns = graph.columns
    names = [c.name for c in columns]
    if graph.named:
        found = _find_names(names, frame.columns)
        absent = [name for name, place in zip(names, found, strict=True) if place is None]
        if absent:
            hint = _alike(absent, frame.columns) or _renamed(names, absent, frame)
            raise InputError(
                f"{what} must have the model's {len(names)} columns; {listed(absent)} "
                f"{'is' if len(absent) == 1 else 'are'} missing.{hint}"
            )
        frame = frame.select([place for place in found if place is not None])
    elif len(frame.columns) != len(columns):
        raise InputError(f"{what} must have the model's {len(columns)} columns; it has {len(frame.columns)}.")
    matrix = np.empty((len(frame), len(columns)), dtype=np.float64)
    given = frame.columns
    at_once = _plain_numbers(frame, columns)
    if at_once.any():
        matrix[:, at_once] = _as_matrix(frame[:, np.nonzero(at_once)[0].tolist()])
    for j in np.nonzero(~at_once)[0].tolist():
        matrix[:, j] = _encode_series(frame.get_column(given[j]), columns[j], what)
    _check(matrix, columns, what)
    _mark_missing(matrix, columns)
    return Rows(matrix, frame.to_native(), tuple(map(str, given)))


def _plain_numbers(frame: nw.DataFrame[Any], columns: Sequence[Column]) -> NDArray[np.bool_]:
    """Columns that hold numbers of a plain type, and that the model reads as such, (p,).

    Read one by one they take half a millisecond each, which tells where there are thousands.
    """
    if frame.implementation.is_pandas():  # its nullable types are read one by one
        kinds = list(frame.to_native().dtypes)
        plain = {d: isinstance(d, np.dtype) and d.kind in "fiub" for d in set(kinds)}
    else:
        kinds = list(frame.schema.values())
        plain = {d: d.is_float() or d.is_integer() for d in set(kinds)}
    asked = (c.labels is None and c.kind != "unused" and plain[d] for c, d in zip(columns, kinds, strict=True))
    return np.fromiter(asked, np.bool_, len(columns))


def _as_matrix(frame: nw.DataFrame[Any]) -> Array:
    """A frame of plain numbers as one matrix, with NaN where a value is missing."""
    if frame.implementation.is_pandas():
        return np.asarray(frame.to_native().to_numpy(np.float64))
    return np.asarray(frame.to_numpy(), np.float64)


def _find_names(names: Sequence[str], given: Sequence[str]) -> list[str | None]:
    """For each of the model's names the table's column, or None. LightGBM writes the spaces of a name as underscores,
    so a name that is absent may be a column that differs in nothing else and that no other name asks for."""
    asked = set(names)
    spaced: dict[str, list[str]] = {}
    for column in given:
        if column not in asked and " " in str(column):
            spaced.setdefault(str(column).replace(" ", "_"), []).append(column)
    present = set(given)
    return [n if n in present else spaced[n][0] if len(spaced.get(n, ())) == 1 else None for n in names]


def _encode_series(series: nw.Series[Any], column: Column, what: str) -> NDArray[Any]:
    if column.kind == "unused":
        return np.zeros(len(series))
    if column.labels is None and (series.dtype.is_numeric() or series.dtype == nw.Boolean):
        if series.dtype.is_float() and not series.is_null().any():
            return series.to_numpy()
        return np.asarray(series.cast(nw.Float64).to_numpy(), dtype=np.float64)
    return _encode(np.array([*series.to_list(), None], dtype=object)[:-1], column, what)


def are_missing(values: Iterable[Any]) -> NDArray[np.bool_]:
    """Which of some Python values are missing: None, NaN, and the marks that pandas and NumPy have of their own."""
    return np.array([is_missing(v) for v in values], dtype=bool)


def _encode(values: NDArray[Any], column: Column, what: str) -> NDArray[np.float64]:
    """One column of Python values as float64: numbers, or the codes of labels."""
    if column.kind == "unused":
        return np.zeros(len(values))
    missing = are_missing(values)
    out = np.full(len(values), np.nan)
    present = values[~missing]
    if column.labels is None:
        try:
            out[~missing] = present.astype(np.float64)
        except OverflowError:
            raise InputError(
                f"{what} must hold numbers below 1e308 in column {column.name!r}; got a larger one."
            ) from None
        except (TypeError, ValueError):
            example = next(v for v in present if not isinstance(v, (int, float, np.number)))
            raise InputError(
                f"{what} must hold numbers in column {column.name!r}; got {example!r}. Encode it as the model's "
                "training data was."
            ) from None
        return out
    _refuse_dates(present, column, column.labels, what)
    try:
        found = column.codes(present.tolist())
    except TypeError:  # a list or a dict, which nothing can be looked up by
        raise InputError(
            f"{what} must hold categories in column {column.name!r}, such as {listed(column.labels[:1])}; got "
            "something that cannot be a label."
        ) from None
    if (found < 0).any() and column.unknown != "other":
        if column.unknown == "refuse":
            example = present[int(np.argmax(found < 0))]
            raise InputError(
                f"{what} must hold categories the model knows in column {column.name!r}; {example!r} is not one of "
                f"its {len(column.labels)} ({listed(column.labels)})."
            )
        found[found < 0] = np.nan
    out[~missing] = found
    return out


_DATES = (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)  # pandas' are among them


def _refuse_dates(values: NDArray[Any], column: Column, labels: Sequence[Any], what: str) -> None:
    """Dates are no label that was never seen where all labels are something else: libraries fail on them."""
    date = next((v for v in values if isinstance(v, _DATES)), None)
    if date is not None and not any(isinstance(label, _DATES) for label in labels):
        raise InputError(
            f"{what} must hold categories in column {column.name!r}, such as {listed(labels[:1])}; got the "
            f"date {date}. Write it as the model's training data did."
        )


def _mark_missing(matrix: Array, columns: Sequence[Column]) -> None:
    """Put NaN where a number stands for a missing value."""
    for j, column in enumerate(columns):
        if column.missing_value is not None:
            matrix[column.stands_for_missing(matrix[:, j]), j] = np.nan


def bad_rows(table: Any, graph: Graph) -> dict[int, str]:
    """Row -> the first reason why the model cannot take it. `table` has the model's columns, in its order."""
    frame = nw.from_native(table, eager_only=True)
    matrix = np.zeros((len(frame), len(graph.columns)))
    found: dict[int, str] = {}
    for j, column in enumerate(graph.columns):
        series = frame.get_column(frame.columns[j])
        try:
            matrix[:, j] = _encode_series(series, column, "it")
        except InputError:
            for i, value in enumerate(series.to_list()):
                try:
                    matrix[i, j] = _encode(np.array([value, None], dtype=object)[:1], column, "it")[0]
                except InputError as error:
                    found.setdefault(i, str(error))
    refused = np.isnan(matrix) & ~np.array([c.missing for c in graph.columns], dtype=bool)
    for what, where in (("is infinite, and no path leads there", np.isinf(matrix)),
                        ("is missing, which this model cannot take", refused)):  # fmt: skip
        for i, j in np.argwhere(where).tolist():
            found.setdefault(i, f"column {graph.columns[j].name!r} {what}")
    return dict(sorted(found.items()))


def _check(matrix: Array, columns: Sequence[Column], what: str) -> None:
    """Refuse infinities, and missing values where the model takes none."""
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


def _alike(absent: Sequence[str], given: Sequence[str]) -> str:
    """A sentence about columns that may have been meant by those that are absent; nothing where there are none."""
    import difflib

    spelled = {str(name).strip().lower(): str(name) for name in given if name not in absent}
    for name in absent:
        if near := difflib.get_close_matches(name.strip().lower(), spelled, n=1, cutoff=0.8):
            return f" For {name!r} there is {spelled[near[0]]!r}."
    return ""


def _renamed(names: Sequence[str], absent: Sequence[str], frame: nw.DataFrame[Any]) -> str:
    """A sentence for a table that has as many columns, none of which the model knows: it has other names for them."""
    if not len(names) == len(absent) == len(frame.columns):
        return ""
    return (
        f" The table names its columns {listed(frame.columns)}. If they are the same, in the same order, give the "
        "model these names: gigrad.import_model(model).with_columns(table.columns); else rename the table's."
    )


def listed(names: Sequence[Any], most: int = 8) -> str:
    """Names for a message: the first few, and how many more."""
    shown = ", ".join(repr(n) for n in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
