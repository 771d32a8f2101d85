"""lifelines' Cox model: on columns of numbers, with Breslow's baseline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._common.optional import require
from ..._io.tables import Rows
from ...errors import NotFittedError, UnsupportedModelError
from ...graph import Affine, Array, Column, Graph, Input, Times, Witness
from ..common.links import DOUBLE
from ..common.rounding import NodeScale, sum_units
from .hazards import MARGIN, checked, names_of_times, survival


def import_cox(model: Any) -> Graph:
    """CoxPHFitter: survival at the times of its baseline; in between the hazard is interpolated, as lifelines does."""
    if getattr(model, "_model", None) is None:
        raise NotFittedError("This CoxPHFitter has not been fitted; call fit first.")
    if getattr(model, "baseline_estimation_method", "breslow") != "breslow":
        raise UnsupportedModelError(
            f"CoxPHFitter with a {model.baseline_estimation_method!r} baseline is not imported; use the default, "
            "baseline_estimation_method='breslow'."
        )
    if model.strata:
        raise UnsupportedModelError(
            "CoxPHFitter with strata has another baseline for each stratum, which is not imported. Fit a model for "
            "each stratum, or let the column be a covariate."
        )
    names = tuple(str(n) for n in model.params_.index)
    read = model.regressors.mappings["beta_"]
    if not isinstance(read, list) or [str(n) for n in read] != list(names):
        raise UnsupportedModelError(
            "CoxPHFitter with a formula is not imported; make its terms columns of the table before, and fit it on "
            "them without formula=."
        )
    weight = np.asarray(model.params_, np.float64)
    mean = np.asarray(model._norm_mean, np.float64)
    source = Input(len(names))
    margin = Affine(source, weight[None, :], -(mean * weight).sum(keepdims=True))
    baseline = model.baseline_cumulative_hazard_
    times, hazard = checked(baseline.index, baseline.iloc[:, 0], "CoxPHFitter")
    score = survival(margin, hazard)
    columns = tuple(Column(n, missing=False) for n in names)
    units = 8.0 * sum_units(2 * len(names))
    witnesses = (
        Witness(score, _Own(model, columns, tuple(times.tolist())), "CoxPHFitter", rtol=units, atol=16.0 * DOUBLE,
                scale=NodeScale(source, score)),
        Witness(margin, _Own(model, columns, ()), "CoxPHFitter", rtol=units, atol=16.0 * DOUBLE,
                scale=_Scale(np.abs(weight), float((np.abs(mean * weight)).sum()))),
    )  # fmt: skip
    return Graph(
        columns, source, score, margin, names_of_times(times), MARGIN, witnesses, named=True, label="CoxPHFitter",
        times=Times(tuple(times.tolist()), "linear"),
    )  # fmt: skip


@dataclass(frozen=True)
class _Own:
    """The model's own prediction: survival at times, or, without times, the log of the partial hazard."""

    model: Any
    columns: tuple[Column, ...]
    times: tuple[float, ...]

    def __call__(self, rows: Rows) -> Array:
        frame = require("pandas", "frames").DataFrame(rows.matrix, columns=[c.name for c in self.columns])
        if not self.times:
            return np.asarray(self.model.predict_log_partial_hazard(frame), np.float64)
        return np.asarray(self.model.predict_survival_function(frame, times=list(self.times)), np.float64).T


@dataclass(frozen=True, eq=False)
class _Scale:
    """The sum of absolute values of the terms of the log of the partial hazard, for its rounding."""

    weight: Array
    shift: float

    def __call__(self, rows: Rows) -> Array:
        return np.asarray((np.abs(rows.matrix) @ self.weight + self.shift)[:, None])
