"""Reading of tables: NumPy arrays and pandas, polars or pyarrow tables become one encoded float64 matrix.

Numbers stay as they are, categories become codes, missing values NaN. Columns are matched by name if the model has
column names, else by position.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from ..errors import InputError, kind_of
from ..graph.columns import Column, TableType
from ..graph.node import Array
from .encoding import are_missing as are_missing
from .encoding import encode, encode_series
from .encoding import listed as listed
from .records import PLAIN, encoded, one_frame_row
from .row_checks import check_rows, fill_in, types_in

if TYPE_CHECKING:
    from ..graph.model import Graph


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows in encoded form, and as they were given.

    Attributes
    ----------
    matrix : (n, p) float64
        The encoded rows, in the order of the model's columns.
    table : array or data frame
        The rows as given, with the model's columns in the model's order: the input of the model's own predict.
    names : tuple of str
        The columns' names: the table's own where it has any, else the model's.
    cells : tuple or None
        The values of the only row, if it holds plain values; see `records`.
    """

    matrix: Array
    table: Any
    names: tuple[str, ...]
    cells: tuple[Any, ...] | None = None

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

    def take(self, rows: NDArray[np.int64]) -> Rows:
        """Some of the rows, all columns."""
        if not self.is_frame:
            return Rows(self.matrix[rows], self.table[rows], self.names)
        frame = nw.from_native(self.table, eager_only=True)
        return Rows(self.matrix[rows], frame[rows.tolist()].to_native(), self.names)


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
    """The rows of a table, encoded for a model; an InputError, with the table called `what`, if it does not fit."""
    if isinstance(X, Rows):
        return X
    opened = open_table(X, what)
    if isinstance(opened, nw.DataFrame):
        return _read_frame(opened, graph, what)
    return _read_array(opened, graph.columns, what)


def read_record(record: Any, graph: Graph, names: tuple[str, ...]) -> Rows:
    """One row from a mapping of the columns' names, (p,), to its values: no key may be missing, and none unknown."""
    if not isinstance(record, Mapping):
        raise InputError(f'The record must be a mapping such as {{"age": 41}}; got {kind_of(record)}.')
    if record.keys() != set(names):
        known = names if names == graph.feature_names or record.keys() != {*graph.feature_names} else ()
        _refuse_keys(record, known)
        names = graph.feature_names
    cells = [record[name] for name in names]
    for cell, column, name in zip(cells, graph.columns, names, strict=True):
        if column.labels is None and column.kind != "unused" and isinstance(cell, (str, bytes)):
            raise InputError(f"The record must hold a number for {name!r}; got the text {cell!r}.")
        if type(cell) not in PLAIN and isinstance(cell, (Mapping, list, tuple, set, np.ndarray)):
            raise InputError(f"The record must hold one value for {name!r}; got {kind_of(cell)}.")
    table = np.empty((1, len(cells)), dtype=object)
    for j, cell in enumerate(cells):
        table[0, j] = cell
    read = encoded(cells, graph.columns)
    if read is None:
        return replace(_read_array(table, graph.columns, "The record"), names=names)
    return Rows(check_rows(read.matrix, graph.columns, "The record"), table, names, read.cells)


def _refuse_keys(record: Mapping[Any, Any], names: Sequence[str]) -> None:
    """Raise an InputError that lists missing or unknown keys of a record."""
    absent = [name for name in names if name not in record]
    unknown = [key for key in record if key not in names] if names else []
    if absent:
        hint = _alike(absent, [str(key) for key in unknown])
        raise InputError(
            f"The record must have a value for each of the model's {len(names)} columns, None where it is missing; "
            f"{listed(absent)} {'is' if len(absent) == 1 else 'are'} not there.{hint}"
        )
    if unknown:
        raise InputError(
            f"The record must have the model's {len(names)} columns and nothing else; got {listed(unknown)} as well."
        )


def under_names(rows: Rows, names: tuple[str, ...], graph: Graph, *, what: str, other: str) -> Rows:
    """The same rows with the column names of another table of the model, (p,), so that both tables agree.

    A model without column names reads by position: two tables that both have names must then have the same ones.
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
    "LazyFrame": " Pass the result of its collect().",
    "RecordBatch": " Pass pyarrow.Table.from_batches([batch]).",
    "Tensor": " Pass the result of its numpy().",
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


_AT_ONCE = 1 << 16
"""Rows of an array that are copied in one block."""


def _read_array(X: NDArray[Any], columns: Sequence[Column], what: str) -> Rows:
    """Rows from a NumPy array, whose columns are the model's in order."""
    if X.shape[1] != len(columns):
        raise InputError(f"{what} must have the model's {len(columns)} columns; it has {X.shape[1]}.")
    matrix = np.empty(X.shape, dtype=np.float64)
    if X.dtype != object and all(c.labels is None and c.kind != "unused" for c in columns):
        if not (np.issubdtype(X.dtype, np.number) or X.dtype == bool) or np.iscomplexobj(X):
            raise InputError(f"{what} must hold real numbers; its dtype is {X.dtype}.")
        for begin in range(0, len(X), _AT_ONCE):  # a signal waits for one block, not for the whole table
            matrix[begin : begin + _AT_ONCE] = X[begin : begin + _AT_ONCE]
    else:
        for j, column in enumerate(columns):
            matrix[:, j] = encode(X[:, j], column, what)
    fill_in(matrix, columns, [_type_of(X.dtype)] * len(columns), what)
    return Rows(check_rows(matrix, columns, what), X, tuple(c.name for c in columns))


def _type_of(dtype: np.dtype[Any]) -> TableType:
    return "integer" if dtype.kind in "iu" else "float32" if dtype == np.float32 else "float64"


def _read_frame(frame: nw.DataFrame[Any], graph: Graph, what: str) -> Rows:
    """Rows of a data frame: its columns by name where the model has names, else by position."""
    columns, given = graph.columns, frame.columns
    names = [c.name for c in columns]
    if graph.named and names != given:
        found = _find_names(names, given)
        absent = [name for name, place in zip(names, found, strict=True) if place is None]
        if absent:
            hint = _alike(absent, given) or _renamed(names, absent, frame)
            raise InputError(
                f"{what} must have the model's {len(names)} columns; {listed(absent)} "
                f"{'is' if len(absent) == 1 else 'are'} missing.{hint}"
            )
        frame = frame.select([place for place in found if place is not None])
        given = frame.columns
    elif len(given) != len(columns):
        raise InputError(f"{what} must have the model's {len(columns)} columns; it has {len(given)}.")
    typed = any(c.fill is not None for c in columns)
    if len(frame) == 1 and not typed and (read := one_frame_row(frame, columns)) is not None:
        return Rows(check_rows(read.matrix, columns, what), frame.to_native(), tuple(map(str, given)), read.cells)
    matrix = np.empty((len(frame), len(columns)), dtype=np.float64)
    at_once = _plain_numbers(frame, columns)
    if at_once.any():
        matrix[:, at_once] = _as_matrix(frame[:, np.nonzero(at_once)[0].tolist()])
    for j in np.nonzero(~at_once)[0].tolist():
        matrix[:, j] = encode_series(frame.get_column(given[j]), columns[j], what)
    if typed:
        fill_in(matrix, columns, types_in(frame), what)
    return Rows(check_rows(matrix, columns, what), frame.to_native(), tuple(map(str, given)))


def _plain_numbers(frame: nw.DataFrame[Any], columns: Sequence[Column]) -> NDArray[np.bool_]:
    """Which columns hold numbers of a plain type that the model reads as numbers, (p,).

    Read one by one they would take half a millisecond each, which matters for thousands of columns.
    """
    if frame.implementation.is_pandas():  # columns of its nullable types are read one by one
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
    """For each of the model's names the table's column, or None. LightGBM replaces spaces in names by underscores: an
    absent name is matched with a column that differs in this alone, if no other name matches it."""
    asked = set(names)
    spaced: dict[str, list[str]] = {}
    for column in given:
        if column not in asked and " " in str(column):
            spaced.setdefault(str(column).replace(" ", "_"), []).append(column)
    present = set(given)
    return [n if n in present else spaced[n][0] if len(spaced.get(n, ())) == 1 else None for n in names]


def _alike(absent: Sequence[str], given: Sequence[str]) -> str:
    """A hint about columns with names similar to absent ones; empty if there are none."""
    import difflib

    spelled = {str(name).strip().lower(): str(name) for name in given if name not in absent}
    for name in absent:
        if near := difflib.get_close_matches(name.strip().lower(), spelled, n=1, cutoff=0.8):
            return f" For {name!r} there is {spelled[near[0]]!r}."
    return ""


def _renamed(names: Sequence[str], absent: Sequence[str], frame: nw.DataFrame[Any]) -> str:
    """A hint for a table with as many columns as the model but none of its names; else empty."""
    if not len(names) == len(absent) == len(frame.columns):
        return ""
    return (
        f" The table names its columns {listed(frame.columns)}. If they are the same, in the same order, give the "
        "model these names: gigrad.import_model(model).with_columns(table.columns); else rename the table's."
    )
