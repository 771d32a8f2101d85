"""glum's generalised linear models: numbers, and pandas categories that glum encodes itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._io.tables import Rows
from ..errors import UnsupportedModelError
from ..graph import Affine, Array, Column, Concat, Graph, Input, Lookup, Node, Select, Witness
from .common.estimator import label_of, require_fitted
from .common.frames import as_pandas, has_labels
from .common.links import DOUBLE, MEANS, plain_outputs
from .common.rounding import NodeScale, sum_units

_LINKS = {"IdentityLink": "identity", "LogLink": "log", "LogitLink": "logit"}


def import_glum(model: Any) -> Graph:
    """GeneralizedLinearRegressor and its cross-validated form: the linear predictor, and the mean as the score."""
    require_fitted(model)
    label, link = label_of(model), type(model.link_instance).__name__
    if link not in _LINKS:
        raise UnsupportedModelError(f"{label} with a {link} cannot be imported; known are {', '.join(_LINKS)}.")
    if getattr(model, "formula", None) is not None:
        raise UnsupportedModelError(f"{label} with a formula is not imported; fit it on a table of columns.")
    names = tuple(dict.fromkeys(map(str, model.term_names_)))
    levels = {str(n): tuple(v) for n, v in (getattr(model, "categorical_levels_", None) or {}).items()}
    columns = tuple(_column(model, n, levels.get(n)) for n in names)
    source = Input(len(columns))
    coefficients = dict(zip(map(str, model.feature_names_), np.ravel(model.coef_).tolist(), strict=True))
    parts = [_part(model, source, j, c, coefficients) for j, c in enumerate(columns)]
    if coefficients:
        raise UnsupportedModelError(f"Every term of {label} must be a column; not so: {', '.join(coefficients)}.")
    each = parts[0] if len(parts) == 1 else Concat(tuple(parts))
    margin = Affine(each, np.ones((1, each.width)), np.array([float(model.intercept_)]))
    score = MEANS[_LINKS[link]](margin)
    named = not all(n.startswith("_col_") for n in names)
    own = Witness(
        score, _Own(model, columns), label, rtol=4.0 * sum_units(each.width), atol=16.0 * DOUBLE,
        scale=NodeScale(source, score),
    )  # fmt: skip
    return Graph(columns, source, score, margin, plain_outputs(1), witnesses=(own,), named=named, label=label)


def _column(model: Any, name: str, levels: tuple[Any, ...] | None) -> Column:
    """A column of the model's table, with its levels if it is a category."""
    if levels is None:
        return Column(name, missing=False)
    known = tuple(v for v in levels if v != model.cat_missing_name)
    method = model.cat_missing_method
    missing = method == "zero" or (method == "convert" and bool(model.has_missing_category_.get(name)))
    return Column(name, "category", known, missing, unknown="refuse")


def _part(model: Any, source: Input, j: int, column: Column, coefficients: dict[str, float]) -> Node:
    """The node of a column's part of the linear predictor; its coefficients are removed from `coefficients`."""
    if column.labels is None:
        weight = coefficients.pop(column.name)
        return Affine(Select(source, (j,)), np.array([[weight]]), np.zeros(1))

    def taken(level: Any) -> float:  # a first level that was dropped has none
        return coefficients.pop(model.categorical_format.format(name=column.name, category=level), 0.0)

    table = np.array([[taken(level)] for level in column.labels])
    missing = np.array([taken(model.cat_missing_name)])
    return Lookup(source, j, table, np.array([np.nan]), missing)


@dataclass(frozen=True)
class _Own:
    """The mean that the model itself predicts."""

    model: Any
    columns: tuple[Column, ...]

    def __call__(self, rows: Rows) -> Array:
        table = as_pandas(rows, self.columns) if has_labels(self.columns) else rows.matrix
        return np.asarray(self.model.predict(table), np.float64)
