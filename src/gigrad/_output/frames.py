"""An Explanation as a table: wide or long data frames, Arrow, a summary, and shap's own object."""

from __future__ import annotations

import json
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._common import checks, display
from .._common.optional import frame_library, require
from ..errors import InputError

if TYPE_CHECKING:
    from .._explain.explanation import Explanation

Columns = dict[str, Any]
Array = NDArray[np.float64]


def to_frame(e: Explanation, layout: str, library: str | None, data: bool) -> Any:
    """See `Explanation.to_frame`."""
    if layout not in ("wide", "long"):
        raise InputError(f'layout must be "wide" or "long"; got {layout!r}.')
    library = _library(e, library)
    columns = _scores(e) | _credits(e) | (_values(e) if data else {}) if layout == "wide" else _long(e)
    return _frame(columns, library)


def to_arrow(e: Explanation, data: bool) -> Any:
    """See `Explanation.to_arrow`."""
    pa = require("pyarrow", "frames")
    text = {"output": pa.string()}  # the type cannot be inferred from an empty column
    columns = {name: pa.array(column, text.get(name)) for name, column in (_scores(e) | _credits(e)).items()}
    if data:
        for prefix, rows in (("value", e.data), ("start", e.starts)):
            table = raw_arrow(rows, e.columns)
            columns |= {f"{prefix}_{c}": table.column(c).take(pa.array(_lines(e)[0])) for c in table.column_names}
    metadata = {"gigrad.provenance": json.dumps(e.provenance)}
    return pa.table(columns, metadata=metadata)


def raw_arrow(rows: Any, columns: tuple[str, ...]) -> Any:
    """Raw rows as a pyarrow table with the columns' names, (n, columns); an empty one where there are none."""
    pa = require("pyarrow", "frames")
    if rows is None:
        return pa.table({})
    kind = type(rows).__module__.split(".")[0]
    if kind == "pandas":
        table = pa.Table.from_pandas(rows, preserve_index=False)
    elif kind == "polars":
        table = rows.to_arrow()
    elif kind == "pyarrow":
        table = rows
    else:
        table = pa.table({name: _arrow_column(pa, rows[:, j], name) for j, name in enumerate(columns)})
    # renaming drops the metadata from which pandas restores its own types
    return table.rename_columns(list(columns)).replace_schema_metadata(table.schema.metadata)


def _arrow_column(pa: Any, values: NDArray[Any], name: str) -> Any:
    """A column of data for Arrow, which must be of one type."""
    try:
        return pa.array(np.ascontiguousarray(values), from_pandas=False)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        raise InputError(
            f"Column {name!r} of data must hold values of one type to be written; give X as a data frame with typed "
            "columns."
        ) from None


def to_shap(e: Explanation) -> Any:
    """See `Explanation.to_shap`."""
    shap = require("shap", "shap")
    placed = _placed(e)
    data = np.column_stack([np.full(len(e), np.nan) if c is None else c.values for c in placed])
    shown = np.empty(data.shape, dtype=object)
    for j, column in enumerate(placed):
        if column is None:
            shown[:, j] = ""
        elif column.labels is None:
            shown[:, j] = column.values
        else:
            shown[:, j] = _labels(column, display.MISSING)
    values, names = e.values, list(e.feature_names)
    if np.any(e.rest):
        values = np.concatenate([values, e.rest[:, None]], axis=1)
        names.append("features left out")
        data = np.column_stack([data, np.full(len(e), np.nan)])
        shown = np.column_stack([shown, np.full(len(e), "", dtype=object)])
    return shap.Explanation(
        values=np.ascontiguousarray(values, dtype=np.float64),
        base_values=np.array(e.base_values, dtype=np.float64),
        data=data,
        display_data=shown,
        feature_names=names,
        output_names=e.output_names[0] if e.values.ndim == 2 else list(e.output_names),
    )


def importance(e: Explanation) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Mean |credit|, mean credit and share of all |credit|, each (p,) or (p, k); zeros for no rows."""
    if len(e) == 0:
        zero = np.zeros(e.values.shape[1:])
        return zero, zero, zero
    mean_abs = np.abs(e.values).mean(axis=0)
    total = mean_abs.sum(axis=0)
    share = mean_abs / np.where(total == 0, 1.0, total)
    return mean_abs, e.values.mean(axis=0), share


def summary(e: Explanation, interval: tuple[Array, Array], library: str | None) -> Any:
    """See `Explanation.summary`; the interval is that of the mean |credit|."""
    mean_abs, mean, share, low, high = (a.reshape(len(e.feature_names), -1) for a in (*importance(e), *interval))
    order = np.argsort(-mean_abs, axis=0, kind="stable")
    outputs = range(len(e.output_names))
    columns: Columns = {}
    if len(e.output_names) > 1:
        columns["output"] = [e.output_names[k] for k in outputs for _ in e.feature_names]
    columns["feature"] = [e.feature_names[j] for k in outputs for j in order[:, k]]
    for name, array in (("mean_abs_credit", mean_abs), ("low", low), ("high", high), ("mean_credit", mean),
                        ("share", share)):  # fmt: skip
        columns[name] = np.concatenate([array[order[:, k], k] for k in outputs])
    return _frame(columns, _library(e, library))


def _lines(e: Explanation) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Row and output of each line of the wide layout, the outputs of a row together."""
    k = len(e.output_names)
    return np.repeat(np.arange(len(e)), k), np.tile(np.arange(k), len(e))


def _scores(e: Explanation) -> Columns:
    """The columns about scores: id, output, base value, prediction, gap, error and rest."""
    rows, outputs = _lines(e)
    columns: Columns = {"id": e.ids[rows]}
    if len(e.output_names) > 1:
        columns["output"] = np.array(e.output_names, dtype=object)[outputs]
    for name, array in (("base_value", e.base_values), ("prediction", e.predictions), ("gap", e.gap),
                        ("error", e.error)):  # fmt: skip
        columns[name] = array.ravel()
    if np.any(e.rest):
        columns["rest"] = e.rest.ravel()
    return columns


def _credits(e: Explanation) -> Columns:
    flat = e.values if e.values.ndim == 2 else np.moveaxis(e.values, 2, 1).reshape(-1, len(e.feature_names))
    flat = np.asfortranarray(flat)  # the frame takes columns
    return {f"credit_{name}": flat[:, j] for j, name in enumerate(e.feature_names)}


def _values(e: Explanation) -> Columns:
    """The columns of the explained rows, and of their starts where each has one."""
    rows, out = _lines(e)[0], Columns()
    for prefix, table in (("value", e.data), ("start", e.starts)):
        if table is not None:
            out |= {f"{prefix}_{name}": display.column(table, j)[rows] for j, name in enumerate(e.columns)}
    return out


def _long(e: Explanation) -> Columns:
    """One line for each row, feature and output: value or label, and credit."""
    n, p, k = len(e), len(e.feature_names), len(e.output_names)
    placed = _placed(e)
    value, label = np.full((n, p, k), np.nan), np.full((n, p, k), None, dtype=object)
    for j, column in enumerate(placed):
        if column is not None and column.labels is None:
            value[:, j] = column.values[:, None]
        elif column is not None and column.labels is not None:
            label[:, j] = _labels(column, None)[:, None]
    columns: Columns = {"id": e.ids[np.repeat(np.arange(n), p * k)]}
    if k > 1:
        columns["output"] = np.array(e.output_names, dtype=object)[np.tile(np.arange(k), n * p)]
    columns["feature"] = _Repeated(e.feature_names, np.tile(np.repeat(np.arange(p, dtype=np.int32), k), n))
    columns["value"] = value.ravel()
    if any(column is not None and column.labels is not None for column in placed):
        columns["label"] = label.ravel()
    columns["credit"] = e.values.ravel()
    return columns


def _placed(e: Explanation) -> list[display.Numbers | None]:
    """Every feature's raw values as `display.Numbers`; None for groups."""
    raw = [e.raw(j) for j in range(len(e.feature_names))]
    return [None if values is None else display.numbers(values) for values in raw]


def _labels(column: display.Numbers, missing: str | None) -> NDArray[Any]:
    """The labels of a column of categories, (n,)."""
    names = np.array([*(column.labels or ()), missing], dtype=object)
    return names[np.where(np.isnan(column.values), -1, column.values).astype(np.int64)]


class _Repeated:
    """A column of few distinct names, as names and codes: a categorical column in each library."""

    def __init__(self, names: tuple[str, ...], codes: NDArray[np.int32]) -> None:
        self.names, self.codes = names, codes


def _library(e: Explanation, library: str | None) -> str:
    """The data frame library to use: the one named, else that of the rows, else an installed one."""
    if library is not None:
        return checks.library(library)
    own = type(e.data).__module__.split(".")[0]
    if own in ("pandas", "polars"):
        return own
    # without either, pandas, which the extra installs and a message should name
    return "polars" if find_spec("pandas") is None and find_spec("polars") is not None else "pandas"


def _frame(columns: Columns, library: str) -> Any:
    """A pandas or polars frame; repeated names become categories."""
    module = frame_library(library)
    if library == "pandas":
        made = {
            name: module.Categorical.from_codes(c.codes, list(c.names)) if isinstance(c, _Repeated) else c
            for name, c in columns.items()
        }
        return module.DataFrame(made, copy=False)
    made = {}
    for name, c in columns.items():
        if isinstance(c, _Repeated):
            made[name] = module.Series(c.names, dtype=module.Enum(list(c.names))).gather(c.codes)
        else:
            made[name] = module.Series(name, c.tolist(), strict=False) if _is_object(c) else module.Series(name, c)
    return module.DataFrame(made)


def _is_object(column: Any) -> bool:
    return isinstance(column, np.ndarray) and column.dtype == object
