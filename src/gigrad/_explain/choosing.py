"""Which columns are discrete or nominal: decided from a reference, or from the values in a training set.

The rule itself is in `graph.discrete`; the page "Flags, counts and categories" says why there is one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from .._common import checks
from .._common.display import is_missing
from .._io.tables import Rows, listed, open_table
from ..errors import ColumnWarning, InputError, warn
from ..graph import Array, Choice, Evidence, Graph, decide

Bools = NDArray[np.bool_]

_AT_ONCE = 256
"""Columns of a reference that are examined in one block."""

_HELD_BY = 10
"""Rows for each distinct value, on average, before a column counts as having few values: short tables prove nothing."""


def choose(graph: Graph, references: Sequence[Rows], discrete: Any, nominal: Any) -> Choice:
    """The discrete and nominal columns for rows explained against `references`; warns about 0/1 columns left out."""
    integer, whole, flag = (np.ones(graph.input.width, np.bool_) for _ in range(3))
    for rows in references:
        integer &= _integer_types(rows)
    some_zero, some_one = np.zeros((2, graph.input.width), np.bool_)
    for rows in references:
        for begin in range(0, graph.input.width, _AT_ONCE):  # many columns at a time, but no copy of the whole table
            part = slice(begin, begin + _AT_ONCE)
            numbers = rows.matrix[:, part]
            absent = ~np.isfinite(numbers)
            zero, one = numbers == 0.0, numbers == 1.0
            whole[part] &= (absent | (numbers == np.rint(numbers))).all(axis=0)
            flag[part] &= (absent | zero | one).all(axis=0)
            some_zero[part] |= zero.any(axis=0)
            some_one[part] |= one.any(axis=0)
    flag &= some_zero & some_one  # a column that is 0 throughout may well be an amount
    choice = decide(graph, references[0].names, Evidence(integer, whole, flag), discrete, nominal)
    if choice.flags and (discrete is None or len(discrete)):
        warn(
            f"{listed(choice.flags)} {'is' if len(choice.flags) == 1 else 'are'} 0 or 1 in all reference rows but not "
            "among the discrete columns, so that credits depend on where the model writes its thresholds between 0 and "
            "1. Name such columns in discrete=, or pass discrete=() to say that none is.",
            ColumnWarning,
        )
    return choice


def choose_for_pairs(graph: Graph, starts: Rows, ends: Rows, discrete: Any, nominal: Any) -> Choice:
    """The discrete and nominal columns for pairs: without a reference, the types of both tables decide, not values."""
    every = np.ones(graph.input.width, np.bool_)
    integer = _integer_types(starts) & _integer_types(ends)
    return decide(graph, ends.names, Evidence(integer, every, ~every), discrete, nominal)


def discrete_values(
    table: Any, columns: Sequence[str] | None = None, *, most: int = 50
) -> dict[str, tuple[float, ...] | None]:
    """The discrete columns of a training table and the values that each takes, as `discrete=` expects them.

    A library may split a column of 12, 24 and 36 months at 24 or at 18: the same decisions, at different points on the
    way from 12 to 36. With its values known, the column changes half-way between two of them, whichever library it is.

    Parameters
    ----------
    table : table, (n, p)
        The rows that the model was trained on, or others that show every value.
    columns : sequence of str, optional
        Which of its columns to look at; by default all that hold numbers. Those named here are listed however many
        values they take.
    most : int
        A column is listed with its values if it takes at most so many of them, each held by ten rows on average.

    Returns
    -------
    dict
        For every discrete column its values, or None for whole numbers: columns of whole numbers without a gap or
        with more than `most` of them. Columns with values in between are left out.

    Examples
    --------
    >>> import gigrad as gig
    >>> import numpy as np
    >>> import pandas as pd
    >>> loans = pd.DataFrame({"term": [36, 60] * 50, "owns_home": [0, 1] * 50})
    >>> loans["income"] = np.linspace(1.5, 9.5, 100)
    >>> gig.discrete_values(loans)
    {'term': (36.0, 60.0), 'owns_home': None}
    """
    checks.whole(most, "most", least=2)
    held = _number_columns(open_table(table, "table"))
    for name in columns or ():
        if held.get(name) is None:
            kind = "text or categories" if name in held else "no such column"
            raise InputError(f"columns must name columns of numbers in the table; {name!r} is {kind}.")
    out: dict[str, tuple[float, ...] | None] = {}
    for name, numbers in held.items():
        if numbers is None or (columns is not None and name not in columns):
            continue
        present = numbers[np.isfinite(numbers)]
        found = np.unique(present)
        whole = bool((found == np.rint(found)).all())
        few = columns is not None or (len(found) <= most and len(found) * _HELD_BY <= len(present))
        if len(found) > 1 and (few or whole):
            dense = whole and (not few or bool((np.diff(found) == 1.0).all()))
            out[name] = None if dense else tuple(found.tolist())
    return out


def _number_columns(table: Any) -> dict[str, Array | None]:
    """The columns of a table by name, as float64; None for those that hold no numbers."""
    if isinstance(table, np.ndarray):
        numeric = table.dtype.kind in "biuf"
        return {f"x{j}": table[:, j].astype(np.float64) if numeric else None for j in range(table.shape[1])}
    out: dict[str, Array | None] = {}
    for name in table.columns:
        series = table.get_column(name)
        numeric = series.dtype.is_numeric() or series.dtype == nw.Boolean
        out[str(name)] = np.asarray(series.cast(nw.Float64).to_numpy(), np.float64) if numeric else None
    return out


def _integer_types(rows: Rows) -> Bools:
    """Which columns of a table are boolean or integer by type, (p,); object columns by the types of their values."""
    if isinstance(rows.table, np.ndarray):
        if rows.table.dtype != object:
            return np.full(rows.table.shape[1], rows.table.dtype.kind in "biu")
        return np.array([_all_integer(column) for column in rows.table.T], np.bool_)
    frame = nw.from_native(rows.table, eager_only=True)
    series = [frame.get_column(name) for name in frame.columns]
    return np.array(
        [
            s.dtype.is_integer() or s.dtype == nw.Boolean or (s.dtype == nw.Object and _all_integer(s.to_list()))
            for s in series
        ],
        np.bool_,
    )


def _all_integer(values: Iterable[Any]) -> bool:
    """Whether all values that are not missing are whole numbers, or true and false, by their type."""
    present = [v for v in values if not is_missing(v)]
    return bool(present) and all(isinstance(v, (bool, int, np.bool_, np.integer)) for v in present)
