"""The user's rows in the form in which a fitted scikit-learn model takes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import narwhals as nw
import numpy as np

from ...graph import Column
from ...optional import require
from ...tables import Rows, are_missing
from ..frames import as_categories


def as_fitted(rows: Rows, columns: Sequence[Column], named: bool, categories: bool = False) -> Any:
    """A frame under the model's names where it was fitted on one, an array elsewhere.

    Numbers in single precision are widened first: the steps would round in it, while an explanation moves through
    numbers that have no single-precision form. `categories` says that some part of the model reads pandas categories,
    so that columns of labels that came as text become such.
    """
    if not named:
        return _array(rows)
    if isinstance(rows.table, np.ndarray):
        pd = require("pandas", "frames")
        return pd.DataFrame(_array(rows), columns=[c.name for c in columns]).infer_objects()
    frame = nw.from_native(rows.table, eager_only=True)
    single = [n for n in frame.columns if frame[n].dtype == nw.Float32]
    frame = frame.with_columns(nw.col(n).cast(nw.Float64) for n in single) if single else frame
    labelled = {n: c for n, c in zip(frame.columns, columns, strict=True) if c.kind == "category"}
    return _with_categories(frame.to_pandas(), labelled) if categories else _one_missing(frame, list(labelled))


def _array(rows: Rows) -> Any:
    table = rows.table
    if not isinstance(table, np.ndarray):
        frame = nw.from_native(table, eager_only=True)
        numeric = all(frame[n].dtype.is_numeric() or frame[n].dtype == nw.Boolean for n in frame.columns)
        table = frame.to_numpy() if numeric else np.array([frame[n].to_list() for n in frame.columns], object).T
    if table.dtype == object:
        table = np.where(are_missing(table.ravel()).reshape(table.shape), np.nan, table)
    return table.astype(np.float64) if table.dtype in (np.float32, np.float16) else table


def _one_missing(frame: nw.DataFrame[Any], labelled: Sequence[str]) -> Any:
    """The native frame, as pandas where it must be: encoders tell None and NaN apart, so all missing labels are NaN."""
    gaps = [n for n in labelled if frame[n].is_null().any()]
    if frame.implementation.is_polars() and not gaps:
        return frame.to_native()
    table = frame.to_pandas()  # maybe the user's own, which must stay as it is
    plain = [n for n in gaps if table[n].dtype.name != "category"]
    return table.assign(**{n: table[n].astype(object).where(table[n].notna(), np.nan) for n in plain})


def _with_categories(table: Any, labelled: Mapping[str, Column]) -> Any:
    plain = [n for n, c in labelled.items() if c.labels is not None and table[n].dtype.name != "category"]
    return table.assign(**{n: as_categories(table[n], labelled[n]) for n in plain})


def reads_categories(model: Any) -> bool:
    """Whether a model, or one inside of it, may read pandas categories by itself."""
    inside = [model, *model.get_params(deep=True).values()]
    return any(
        type(v).__module__.split(".")[0] in ("lightgbm", "xgboost") or "HistGradientBoosting" in type(v).__name__
        for v in inside
    )
