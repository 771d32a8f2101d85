"""The user's rows in the form in which a fitted scikit-learn model takes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import narwhals as nw
import numpy as np

from ..._common.optional import require
from ..._io.tables import Rows, are_missing
from ...graph import Column
from ..common.frames import as_categories


def as_fitted(rows: Rows, columns: Sequence[Column], named: bool, categories: bool = False, wide: bool = False) -> Any:
    """The rows as a frame with the model's names if it was fitted on one, else as an array.

    Single precision is converted to double first: the steps would round in it, while the path of an explanation has
    numbers that single precision cannot represent. `wide` converts every column of numbers, also half precision and
    integers, for which NumPy's functions compute in half or single precision, or overflow. `categories`: some part of
    the model reads pandas categories, so that columns of labels given as text are converted to them.
    """
    if not named:
        return _array(rows, wide)
    if isinstance(rows.table, np.ndarray):
        pd = require("pandas", "frames")
        return pd.DataFrame(_array(rows, wide), columns=[c.name for c in columns]).infer_objects()
    frame = nw.from_native(rows.table, eager_only=True)
    known = {n: c.name for n, c in zip(frame.columns, columns, strict=True) if n != c.name}
    frame = frame.rename(known) if known else frame  # names changed by Graph.with_columns
    narrow = _narrow(frame, columns) if wide else [n for n in frame.columns if frame[n].dtype == nw.Float32]
    frame = frame.with_columns(nw.col(n).cast(nw.Float64) for n in narrow) if narrow else frame
    labelled = {n: c for n, c in zip(frame.columns, columns, strict=True) if c.kind == "category"}
    return _with_categories(frame.to_pandas(), labelled) if categories else _one_missing(frame, list(labelled))


def is_wide(rows: Rows, columns: Sequence[Column]) -> bool:
    """Whether `wide` makes no difference to these rows: all columns are in double precision, or labels."""
    if isinstance(rows.table, np.ndarray):
        return rows.table.dtype.kind not in "biu" and rows.table.dtype != np.float16
    return not any(_narrow(nw.from_native(rows.table, eager_only=True), columns))


def _narrow(frame: nw.DataFrame[Any], columns: Sequence[Column]) -> list[str]:
    numbers = [n for n, c in zip(frame.columns, columns, strict=True) if c.kind == "number"]
    dtypes = {n: frame[n].dtype for n in numbers}
    return [n for n in numbers if dtypes[n] == nw.Boolean or (dtypes[n].is_numeric() and dtypes[n] != nw.Float64)]


def _array(rows: Rows, wide: bool = False) -> Any:
    """The rows as scikit-learn would see them: an array, missing values as NaN, numbers in their own type."""
    table = rows.table
    if not isinstance(table, np.ndarray):
        frame = nw.from_native(table, eager_only=True)
        numeric = all(frame[n].dtype.is_numeric() or frame[n].dtype == nw.Boolean for n in frame.columns)
        table = frame.to_numpy() if numeric else np.array([frame[n].to_list() for n in frame.columns], object).T
    if table.dtype == object:
        table = np.where(are_missing(table.ravel()).reshape(table.shape), np.nan, table)
    narrow = table.dtype.kind in "biu" or table.dtype == np.float16
    return table.astype(np.float64) if table.dtype == np.float32 or (wide and narrow) else table


def _one_missing(frame: nw.DataFrame[Any], labelled: Sequence[str]) -> Any:
    """The native frame with NaN for all missing labels, if need be as pandas: encoders distinguish None and NaN."""
    gaps = [n for n in labelled if frame[n].is_null().any()]
    if frame.implementation.is_polars() and not gaps:
        return frame.to_native()
    table = frame.to_pandas()  # may be the user's own object, which must not be changed
    plain = [n for n in gaps if table[n].dtype.name != "category"]
    return table.assign(**{n: table[n].astype(object).where(table[n].notna(), np.nan) for n in plain})


def _with_categories(table: Any, labelled: Mapping[str, Column]) -> Any:
    plain = [n for n, c in labelled.items() if c.labels is not None and table[n].dtype.name != "category"]
    return table.assign(**{n: as_categories(table[n], labelled[n]) for n in plain})


def reads_categories(model: Any) -> bool:
    """Whether a model, or a part of it, may read pandas categories directly."""
    inside = [model, *model.get_params(deep=True).values()]
    return any(
        type(v).__module__.split(".")[0] in ("lightgbm", "xgboost") or "HistGradientBoosting" in type(v).__name__
        for v in inside
    )
