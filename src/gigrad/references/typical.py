"""What is usual in a reference: one value a column to set an applicant's value against."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..display import plain
from ..graph.columns import Column
from ..graph.node import Array


def typical_values(matrix: Array, weights: Array, columns: Sequence[Column]) -> list[Any]:
    """A typical value a column: the weighted median of numbers, the weighted mode of categories; None for missing.

    A number is typically missing where missing values weigh more than one half, a category where they weigh more than
    any label. Of equally frequent categories the first in the model's order is taken.

    Parameters
    ----------
    matrix : (m, p) encoded rows
    weights : (m,), summing to 1
    columns : p columns of the model
    """
    return [_typical(values, weights, column) for values, column in zip(matrix.T, columns, strict=True)]


def _typical(values: Array, weights: Array, column: Column) -> Any:
    if column.kind == "number":
        middle = weighted_median(values, weights)
        return middle if column.labels is None or middle is None else _label(float(int(middle)), column)
    return _label(weighted_mode(values, weights), column) if column.kind == "category" else None


def weighted_median(values: Array, weights: Array) -> float | None:
    """The middle of a weighted sample, half-way between two values where exactly half lies on each side."""
    missing = np.isnan(values)
    if weights[missing].sum() > 0.5:
        return None
    order = np.argsort(values[~missing], kind="stable")
    ordered, upto = values[~missing][order], np.cumsum(weights[~missing][order])
    half = upto[-1] / 2.0
    low = int(np.searchsorted(upto, half * (1 - 1e-12)))
    high = int(np.searchsorted(upto, half * (1 + 1e-12), side="right"))
    return float((ordered[low] + ordered[min(high, len(ordered) - 1)]) / 2.0)


def weighted_mode(codes: Array, weights: Array) -> float | None:
    """The code that weighs most; None where missing values weigh more."""
    distinct, group = np.unique(codes, return_inverse=True, equal_nan=True)
    best = float(distinct[int(np.bincount(group, weights=weights).argmax())])
    return None if np.isnan(best) else best


def _label(code: float | None, column: Column) -> Any:
    """The label behind a code, as something that can be written down."""
    if code is None:
        return None
    if column.labels is None:
        return int(code)
    if column.known_as != "label":
        return "(a category whose label the model has forgotten)"
    return plain(column.labels[int(code)]) if 0 <= code < len(column.labels) else "(unknown category)"
