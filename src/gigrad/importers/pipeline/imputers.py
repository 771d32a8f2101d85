"""Missing values filled and marked: SimpleImputer, MissingIndicator."""

from __future__ import annotations

from typing import Any

import numpy as np

from .steps import Impute, Indicator, Step
from .table import Feature, Table


def simple_imputer(imputer: Any, table: Table) -> Table:
    marker = _marker(imputer)
    steps: list[Step | None] = []
    kept: list[int] = []
    for i, fill in enumerate(imputer.statistics_.tolist()):
        if fill is None or fill != fill:
            if not imputer.keep_empty_features:
                continue  # a column that was always missing is left out
            fill = 0.0
        kept.append(i)
        steps.append(Impute(fill if isinstance(fill, str) else float(fill), marker))
    filled = table.take(kept).then(steps, "SimpleImputer")
    if imputer.indicator_ is None:
        return filled
    return filled.become((*filled.features, *_marks(imputer.indicator_, table)), sparse=filled.sparse)


def missing_indicator(indicator: Any, table: Table) -> Table:
    return table.become(_marks(indicator, table), sparse=indicator.sparse is True)


def _marks(indicator: Any, table: Table) -> tuple[Feature, ...]:
    chosen = table.take(indicator.features_.tolist())
    return chosen.then([Indicator(_marker(indicator))] * len(chosen), "MissingIndicator").features


def _marker(imputer: Any) -> Any:
    """The label or the number that stands for a missing value; None where NaN does."""
    value = imputer.missing_values
    if isinstance(value, str):
        return value
    if value is None or value is np.nan or value != value or type(value).__name__ == "NAType":
        return None
    return float(value)
