"""Missing values filled and marked: SimpleImputer, IterativeImputer, MissingIndicator."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import UnsupportedModelError
from ...graph import ChainedFill, Node
from .steps import Impute, Indicator, Step
from .table import Blend, Block, Derived, Feature, Table


def simple_imputer(imputer: Any, table: Table) -> Table:
    """Fills by column, and indicators of missing values if they were fitted."""
    marker = _marker(imputer)
    steps: list[Step | None] = []
    kept: list[int] = []
    for i, fill in enumerate(imputer.statistics_.tolist()):
        if fill is None or fill != fill:
            if not imputer.keep_empty_features:
                continue  # SimpleImputer drops a column that was always missing
            fill = 0.0
        kept.append(i)
        steps.append(Impute(fill if isinstance(fill, str) else float(fill), marker))
    filled = table.take(kept).then(steps, "SimpleImputer")
    if imputer.indicator_ is None:
        return filled
    return filled.become((*filled.features, *_marks(imputer.indicator_, table)), sparse=filled.sparse)


def iterative_imputer(imputer: Any, table: Table) -> Table:
    """IterativeImputer with linear models: each imputes its column from the others, iteratively."""
    _require_chain(imputer, table)
    initial = np.asarray(imputer.initial_imputer_.statistics_, np.float64)
    size, steps = len(initial), imputer.imputation_sequence_
    weight, bias = np.zeros((len(steps), size)), np.zeros(len(steps))
    for i, step in enumerate(steps):
        weight[i, step.neighbor_feat_idx] = np.asarray(step.estimator.coef_, np.float64).ravel()
        bias[i] = float(np.ravel(step.estimator.intercept_)[0])
    column = np.array([step.feat_idx for step in steps], np.int64)

    def build(source: Node) -> Node:
        return ChainedFill(source, initial, column, weight, bias)

    block = Block("IterativeImputer", table.features, build, takes_missing=True)
    filled = table.become([Blend(block, i) for i in range(size)])
    if imputer.indicator_ is None:
        return filled
    return filled.become((*filled.features, *_marks(imputer.indicator_, table)))


def _require_chain(imputer: Any, table: Table) -> None:
    """Raise UnsupportedModelError unless an iterative imputer is a chain of linear models over all columns."""
    models = [step.estimator for step in imputer.imputation_sequence_ if not hasattr(step.estimator, "coef_")]
    first = imputer.initial_imputer_.statistics_
    reason = ""
    if imputer.sample_posterior:
        reason = "draws its values at random (sample_posterior=True); fit it with sample_posterior=False"
    elif models:
        reason = f"fills by {type(models[0]).__name__}; give it a linear estimator, such as BayesianRidge"
    elif _marker(imputer) is not None:
        reason = f"treats {imputer.missing_values!r} as missing; replace it by missing values before the pipeline"
    elif np.isfinite(imputer._min_value).any() or np.isfinite(imputer._max_value).any():
        reason = "clips its values to bounds (min_value, max_value), which have kinks; leave the bounds out"
    elif len(first) != len(table) or np.isnan(first).any():
        reason = "leaves out columns that were always missing; leave them out before the pipeline"
    elif any(isinstance(f, Derived) and f.reads == "label" for f in table.features):
        reason = "reads labels; encode them first"
    if reason:
        raise UnsupportedModelError(f"This IterativeImputer cannot be imported: it {reason}.")


def missing_indicator(indicator: Any, table: Table) -> Table:
    return table.become(_marks(indicator, table), sparse=indicator.sparse is True)


def _marks(indicator: Any, table: Table) -> tuple[Feature, ...]:
    chosen = table.take(indicator.features_.tolist())
    return chosen.then([Indicator(_marker(indicator))] * len(chosen), "MissingIndicator").features


def _marker(imputer: Any) -> Any:
    """The label or the number that means a missing value; None for NaN."""
    value = imputer.missing_values
    if isinstance(value, str):
        return value
    if value is None or value is np.nan or value != value or type(value).__name__ == "NAType":
        return None
    return float(value)
