"""Typical values of a reference, one a column, to compare an applicant's values with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._common.display import plain
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
    numbers = [j for j, c in enumerate(columns) if c.kind == "number"]
    medians = dict(zip(numbers, weighted_medians(matrix[:, numbers], weights), strict=True))
    return [
        _number(medians[j], column) if column.kind == "number"
        else _label(weighted_mode(matrix[:, j], weights), column) if column.kind == "category"
        else None
        for j, column in enumerate(columns)
    ]  # fmt: skip


def _number(middle: float | None, column: Column) -> Any:
    """A median as the table has it: that of an ordered category is one of its labels."""
    return middle if column.labels is None or middle is None else _label(float(int(middle)), column)


def weighted_medians(matrix: Array, weights: Array) -> list[float | None]:
    """The weighted median of each column: half-way between two values if exactly half of the weight is on each side."""
    some = max(1, NUMBERS_AT_ONCE // max(len(matrix), 1))
    parts = [_medians(matrix[:, j : j + some], weights) for j in range(0, matrix.shape[1], some)]
    return [value for part in parts for value in part]


NUMBERS_AT_ONCE = 1 << 20
"""The number of values that are sorted in one block: thousands of columns of a short table, and no large copies."""


def _medians(matrix: Array, weights: Array) -> list[float | None]:
    """The weighted median of each column; None where more than half is missing."""
    if len(matrix) and np.ptp(weights) == 0:
        return _short_medians(matrix) if len(matrix) <= SHORT else [_median(column) for column in matrix.T]
    order = np.argsort(matrix, axis=0)  # missing values come last
    ordered = np.take_along_axis(matrix, order, axis=0)
    missing = np.isnan(ordered)
    share = np.where(missing, weights[order], 0.0).sum(axis=0)
    upto = np.cumsum(np.where(missing, 0.0, weights[order]), axis=0)
    half, last = upto[-1] / 2.0, np.maximum((~missing).sum(axis=0) - 1, 0)
    low = np.minimum((upto < half * (1 - 1e-12)).sum(axis=0), last)
    high = np.minimum((upto <= half * (1 + 1e-12)).sum(axis=0), last)
    columns = np.arange(matrix.shape[1])
    middle = (ordered[low, columns] + ordered[high, columns]) / 2.0
    return [None if gone > 0.5 else value for gone, value in zip(share.tolist(), middle.tolist(), strict=True)]


SHORT = 1024
"""Rows up to which columns are sorted all at once: a call for each of 90,000 columns takes seconds."""


def _short_medians(matrix: Array) -> list[float | None]:
    """The medians for equal weights and few rows."""
    ordered, columns = np.sort(matrix, axis=0), np.arange(matrix.shape[1])  # missing values come last
    known = len(matrix) - np.isnan(matrix).sum(axis=0)
    middle = (
        ordered[np.maximum(known - 1, 0) // 2, columns] + ordered[np.minimum(known // 2, len(matrix) - 1), columns]
    ) / 2.0
    return [value if 2 * n >= len(matrix) else None for n, value in zip(known.tolist(), middle.tolist(), strict=True)]


def _median(values: Array) -> float | None:
    """The median of one column with equal weights, (m,), by selection, in a tenth of the time of sorting."""
    known = values[~np.isnan(values)]
    return float(np.median(known)) if 2 * len(known) >= len(values) else None


def weighted_mode(codes: Array, weights: Array) -> float | None:
    """The code that weighs most; None where missing values weigh more."""
    distinct, group = np.unique(codes, return_inverse=True, equal_nan=True)
    best = float(distinct[int(np.bincount(group, weights=weights).argmax())])
    return None if np.isnan(best) else best


def _label(code: float | None, column: Column) -> Any:
    """The label of a code, as a value that JSON can hold."""
    if code is None:
        return None
    if column.labels is None:
        return int(code)
    if column.known_as != "label":
        return "(a category whose label the model has forgotten)"
    return plain(column.labels[int(code)]) if 0 <= code < len(column.labels) else "(unknown category)"
