"""One column of a table as numbers: values as they are, labels as their codes, missing values as NaN."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from .._common.display import is_missing
from ..errors import InputError
from ..graph.columns import Column


def encode_series(series: nw.Series[Any], column: Column, what: str) -> NDArray[Any]:
    """One column of a table as numbers: as they are, or the codes of labels; `what` names the table in messages."""
    if column.kind == "unused":
        return np.zeros(len(series))
    if column.labels is None and (series.dtype.is_numeric() or series.dtype == nw.Boolean):
        if series.dtype.is_float() and not series.is_null().any():
            return series.to_numpy()
        return np.asarray(series.cast(nw.Float64).to_numpy(), dtype=np.float64)
    if series.dtype == nw.Categorical and series.implementation.is_pandas():
        return _encode_categories(series.to_native(), column, what)
    return encode(np.array([*series.to_list(), None], dtype=object)[:-1], column, what)


def _encode_categories(series: Any, column: Column, what: str) -> NDArray[np.float64]:
    """A pandas categorical column as codes of the model: each label that occurs is looked up once, not once a row."""
    codes = series.cat.codes.to_numpy()
    used, first, place = np.unique(codes, return_index=True, return_inverse=True)
    order = np.argsort(first)  # in order of occurrence, so that a message names the first unknown label
    labels = [None if code < 0 else series.cat.categories[code] for code in used[order].tolist()]
    encoded = np.empty(len(used))
    encoded[order] = encode(np.array([*labels, None], dtype=object)[:-1], column, what)
    return np.asarray(encoded[place])


def are_missing(values: Iterable[Any]) -> NDArray[np.bool_]:
    """Which Python values are missing, (n,): None, NaN, pandas' NA and NaT, NumPy's NaT."""
    return np.array([is_missing(v) for v in values], dtype=bool)


def encode(values: NDArray[Any], column: Column, what: str) -> NDArray[np.float64]:
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
    except TypeError:  # a list or a dict, which is not hashable
        raise InputError(
            f"{what} must hold categories in column {column.name!r}, such as {listed(column.labels[:1])}; got a list "
            "or another value that cannot be a label."
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
    """Raise for dates in a column whose labels are not dates: libraries fail on them, not treating them as new."""
    date = next((v for v in values if isinstance(v, _DATES)), None)
    if date is not None and not any(isinstance(label, _DATES) for label in labels):
        raise InputError(
            f"{what} must hold categories in column {column.name!r}, such as {listed(labels[:1])}; got the "
            f"date {date}. Write it as the model's training data did."
        )


def listed(names: Sequence[Any], most: int = 8) -> str:
    """Names for a message: the first few, and how many more."""
    shown = ", ".join(repr(n) for n in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
