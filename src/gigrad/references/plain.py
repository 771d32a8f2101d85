"""A table without a model: its columns as numbers or categories, and some of its rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from .._common.checks import is_number
from .._common.display import is_missing
from .._io.tables import open_table
from ..errors import InputError
from ..graph.node import Array


@dataclass(frozen=True, eq=False)
class PlainColumn:
    """One column of a table.

    Attributes
    ----------
    name : str
    kind : "number" or "category"
    values : (n,) float64
        Numbers, or codes of the categories in no particular order; NaN where missing.
    """

    name: str
    kind: Literal["number", "category"]
    values: Array


def count_rows(table: Any, what: str) -> int:
    """The number of rows of a table; `what` is its name in the message if it is not one."""
    return len(open_table(table, what))


def take_rows(table: Any, index: NDArray[np.int64]) -> Any:
    """Some rows of a table, as a table of the same kind."""
    opened = open_table(table, "the table")
    return opened[index] if isinstance(opened, np.ndarray) else opened[index.tolist()].to_native()


def plain_columns(table: Any, other: Any = None) -> list[tuple[PlainColumn, PlainColumn]]:
    """Every column of `table`, paired with the same column of `other` (itself if None) under the same codes."""
    first = open_table(table, "the table")
    second = first if other is None else open_table(other, "the other table")
    if isinstance(first, np.ndarray) != isinstance(second, np.ndarray):
        raise InputError("The two tables must be of one kind, both arrays or both data frames.")
    if isinstance(first, np.ndarray):
        if first.shape[1] != second.shape[1]:
            raise InputError(f"The two tables must have the same columns; they have {first.shape[1]} and "
                             f"{second.shape[1]}.")  # fmt: skip
        names = [str(j) for j in range(first.shape[1])]
        return [_pair(n, first[:, j], second[:, j]) for j, n in enumerate(names)]
    absent = [name for name in first.columns if name not in second.columns]
    if absent:
        raise InputError(f"The two tables must have the same columns; {absent[0]!r} is missing from one.")
    return [_pair(name, _values(first[name]), _values(second[name])) for name in first.columns]


def _values(series: nw.Series[Any]) -> NDArray[Any]:
    """A column as float64 where it holds numbers, else as Python objects."""
    if series.dtype.is_numeric():
        return np.asarray(series.cast(nw.Float64).to_numpy(), dtype=np.float64)
    return np.array([*series.to_list(), None], dtype=object)[:-1]


def _pair(name: str, first: NDArray[Any], second: NDArray[Any]) -> tuple[PlainColumn, PlainColumn]:
    """A column of two tables in the same form: numbers, or codes of the same labels."""
    both = np.concatenate([first, second])
    if both.dtype != object and both.dtype.kind in "fiu":
        return PlainColumn(name, "number", first.astype(np.float64)), PlainColumn(
            name, "number", second.astype(np.float64)
        )
    cells = [(v, is_missing(v)) for v in both]
    numeric = all(missing or is_number(v) for v, missing in cells)
    codes: dict[Any, int] = {}
    try:
        values = np.array(
            [np.nan if missing else float(v) if numeric else codes.setdefault(v, len(codes)) for v, missing in cells]
        )
    except (TypeError, OverflowError):
        raise InputError(f"Column {name!r} must hold labels, or numbers below 1e308; got something else.") from None
    kind: Literal["number", "category"] = "number" if numeric else "category"
    cut = len(first)
    return PlainColumn(name, kind, values[:cut]), PlainColumn(name, kind, values[cut:])
