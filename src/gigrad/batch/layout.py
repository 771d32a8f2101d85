"""The columns of a table: ids, which are copied to the result, and the model's columns, as the model reads them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .._common.optional import require
from .._io.records import inexact, is_inexact
from .._io.tables import listed
from ..errors import InputError
from ..graph import Column, Graph

# How files spell a missing number, beside an empty cell
MISSING = ("NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "<NA>")


@dataclass(frozen=True)
class Layout:
    """The names of a table's id columns and of the model's columns.

    Attributes
    ----------
    ids : tuple of str
        Columns that are copied to the result.
    columns : tuple of str
        The table's names of the model's columns, in the model's order.
    names : tuple of str
        The model's own names of those columns.
    """

    ids: tuple[str, ...]
    columns: tuple[str, ...]
    names: tuple[str, ...]

    @property
    def needed(self) -> list[str]:
        """Every column to read, each once."""
        return list(dict.fromkeys((*self.ids, *self.columns)))

    def model_table(self, table: Any, graph: Graph, *, integers: bool = False) -> Any:
        """The model's columns under the model's names; text is parsed as the type that a column must have.

        With `integers`, a text column whose numbers all have no decimal point becomes an integer column: in a reference
        this type means that the column is discrete, and a text file should give the same result as a Parquet file.
        """
        chosen = [_typed(table.column(name), c, integers) for name, c in zip(self.columns, graph.columns, strict=True)]
        return require("pyarrow", "cli").table(chosen, names=list(self.names))

    def inexact(self, table: Any, graph: Graph) -> dict[int, str]:
        """Row -> why, for integers that float64 cannot represent: the model would read another number."""
        found: dict[int, str] = {}
        for name, column in zip(self.columns, graph.columns, strict=True):
            if column.labels is None and column.kind != "unused":
                for row, value in _beyond_float(table.column(name)):
                    found.setdefault(row, inexact(column.name, value))
        return dict(sorted(found.items()))


def match(names: Sequence[str], graph: Graph, ids: Sequence[str] = (), columns: Sequence[str] | None = None) -> Layout:
    """The layout of a table: its id columns, and the model's columns.

    `columns` lists the latter in the model's order, where the table uses other names. Without it they are matched by
    name; by position only if the model has no column names and the table as many columns beside the ids.
    """
    wanted = graph.feature_names
    for what, given in (("id_cols", ids), ("columns", columns)):
        if isinstance(given, str):
            raise InputError(f"{what} must be a list of columns; got the text {given!r}.")
    twice = next((n for n in ids if list(ids).count(n) > 1), None)
    if twice is not None:
        raise InputError(f"Each id column must be named once; got {twice!r} twice.")
    _need(names, ids, "id column")
    if columns is not None:
        if len(columns) != len(wanted):
            raise InputError(f"columns must name the model's {len(wanted)} columns, in its order; got {len(columns)}.")
        twice = next((n for n in columns if list(columns).count(n) > 1), None)
        if twice is not None:
            raise InputError(f"columns must name each column of the table once; got {twice!r} twice.")
        _need(names, columns, "column")
        return Layout(tuple(ids), tuple(columns), wanted if graph.named else tuple(columns))
    if graph.named or set(wanted) <= set(names):
        _need(names, wanted, "column")
        return Layout(tuple(ids), wanted, wanted)
    rest = tuple(n for n in names if n not in ids)
    if len(rest) != len(wanted):
        raise InputError(
            f"This model knows its {len(wanted)} columns by position only, and the table has {len(rest)} beside the "
            "ids; name the model's columns, in its order (--columns, or columns=...)."
        )
    return Layout(tuple(ids), rest, rest)


def _need(names: Sequence[str], wanted: Sequence[str], what: str) -> None:
    """Refuse a table that lacks a column, or has it twice."""
    absent = [n for n in wanted if n not in names]
    if absent:
        raise InputError(
            f"The table must have the {what}{'s' if len(absent) > 1 else ''} {listed(absent)}; "
            f"its columns are {listed(list(names))}."
        )
    twice = next((n for n in wanted if names.count(n) > 1), None)
    if twice is not None:
        raise InputError(f"The table must name each column once; {twice!r} comes {names.count(twice)} times.")


def _beyond_float(values: Any) -> list[tuple[int, int]]:
    """The integers of a column that float64 cannot represent, each with its position."""
    pa, pc = require("pyarrow", "cli"), require("pyarrow.compute", "cli")
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        large = pc.match_substring_regex(pc.utf8_trim_whitespace(values), r"^[+-]?0*[1-9][0-9]{15,}$")
    elif values.type in (pa.int64(), pa.uint64()):
        large = pc.greater(values, pa.scalar(_EXACT, values.type))
        if values.type == pa.int64():
            large = pc.or_(large, pc.less(values, pa.scalar(-_EXACT, values.type)))
    else:
        return []
    where = pc.indices_nonzero(pc.fill_null(large, False)).to_pylist()
    whole = [(row, int(values[row].as_py())) for row in where]
    return [(row, value) for row, value in whole if is_inexact(value)]


_EXACT = 2**53  # float64 represents every integer up to here, and Arrow converts it


def _typed(values: Any, column: Column, integers: bool) -> Any:
    """Text cells parsed as the numbers or booleans that a column must hold; unchanged where that fails.

    Integers beyond 2^53 of a numeric column become float64, too. `integers`: whether to try integers before decimals.
    """
    pa, pc = require("pyarrow", "cli"), require("pyarrow.compute", "cli")
    labels = column.labels
    if values.type in (pa.int64(), pa.uint64()) and labels is None:
        low, high = pc.min_max(values).as_py().values()
        far = low is not None and (low < -_EXACT or high > _EXACT)
        # Arrow refuses to convert larger integers to float64, even if they are exact; see `Layout.inexact`
        return pc.cast(values, pa.float64(), safe=False) if far else values
    if not (pa.types.is_string(values.type) or pa.types.is_large_string(values.type)):
        return values
    if labels is not None and not all(isinstance(v, (bool, int, float)) for v in labels):
        return values
    text = pc.utf8_trim_whitespace(values)
    text = pc.if_else(pc.is_in(text, value_set=pa.array((*MISSING, ""), text.type)), pa.scalar(None, text.type), text)
    kinds = [pa.int64(), pa.float64()] if integers and labels is None else [pa.float64()]
    if labels is not None and all(isinstance(v, bool) for v in labels):
        kinds = [pa.bool_()]
    for kind in kinds:
        try:
            return pc.cast(text, kind)
        except pa.ArrowInvalid:
            continue
    return text
