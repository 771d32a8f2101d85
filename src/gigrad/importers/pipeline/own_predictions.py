"""The model's own predictions of a pipeline: raw rows go through the fitted steps themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._io.tables import Rows, read_rows
from ...errors import InputError
from ...graph import Column, Graph, Input, Node, Witness
from ...graph.magnitudes import size_of_terms
from ...graph.witness import Predict
from .fitted_form import as_fitted, is_wide

# The steps as nodes may round in another order than the transformers: scaled columns cancel, normal scores are steep. A
# wrong step would differ by far more than this.
STEPS_RTOL, STEPS_ATOL = 1e-9, 1e-12

# The error of a column, relative to its size, where steps round in half precision: some tens of the 2^-11 of one
# operation. An overflow makes an error of the size of the column.
HALF_PRECISION = 0.02


@dataclass(frozen=True)
class Prepare:
    """The rows as the model at the end reads them: transformed by the fitted steps themselves."""

    steps: tuple[Any, ...]
    inner: Graph
    columns: tuple[Column, ...]
    named: bool
    absent: bool

    def __call__(self, rows: Rows, wide: bool = False) -> Rows:
        table = as_fitted(rows, self.columns, self.named, wide=wide)
        for step in self.steps:
            table = step.transform(table)
        if type(table).__module__.startswith("scipy.sparse"):
            table = table.toarray()
            if self.absent:
                table = np.where(table == 0, np.nan, table)
        return read_rows(table, self.inner, what="the transformed table")

    def in_double(self, rows: Rows) -> Rows | None:
        """The rows transformed in double precision throughout; None if that makes no difference.

        NumPy computes functions of small integers in half or single precision, and integers may overflow. The function
        in double precision is explained, so a difference larger than rounding is an error.
        """
        if is_wide(rows, self.columns):
            return None
        own, wide = self(rows), self(rows, wide=True)
        apart = np.abs(own.matrix - wide.matrix)
        apart[(own.matrix == wide.matrix) | (np.isnan(own.matrix) & np.isnan(wide.matrix))] = 0.0
        if not apart.any():
            return None
        size = np.abs(np.nan_to_num(wide.matrix)).max(axis=0)
        off = np.nonzero(~(apart.max(axis=0) <= HALF_PRECISION * size))[0]
        if len(off):
            raise InputError(
                "The steps of the pipeline must not overflow; with the types of this table they do: "
                f"{wide.names[off[0]]!r} behind them is off by up to {apart[:, off[0]].max():.3g}. Convert the table "
                "to float64 before the pipeline is fitted and predicts."
            )
        return wide


@dataclass(frozen=True)
class InDouble:
    """The prediction in double precision, None where it is the same; `exact` is the model's prediction in float64."""

    predict: Predict
    exact: Predict | None
    prepare: Prepare

    def __call__(self, rows: Rows) -> Any:
        wide = self.prepare.in_double(rows)
        if wide is not None:
            return (self.exact or self.predict)(wide)
        return None if self.exact is None else self.exact(self.prepare(rows))


def score_witness(node: Node, read: tuple[int, ...], prepare: Prepare, source: Input, label: str) -> Witness:
    """The witness for columns that trees read as scores: the output of the fitted steps."""
    return Witness(node, _Columns(prepare, read), label, rtol=STEPS_RTOL, atol=STEPS_ATOL, scale=_Largest(node, source))


@dataclass(frozen=True)
class _Columns:
    """Some columns of the transformed table, in double precision: the trees above are compared in it, too."""

    prepare: Prepare
    read: tuple[int, ...]

    def __call__(self, rows: Rows) -> Any:
        wide = self.prepare.in_double(rows)
        return (self.prepare(rows) if wide is None else wide).matrix[:, list(self.read)]


@dataclass(frozen=True)
class _Largest:
    """The size of the terms that add up to the columns of a node, which bounds their rounding."""

    node: Node
    source: Input

    def __call__(self, rows: Rows) -> Any:
        return np.nan_to_num(size_of_terms(self.node, self.source, rows.matrix))
