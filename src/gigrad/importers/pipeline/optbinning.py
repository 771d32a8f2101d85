"""optbinning's BinningProcess as a step: a number for each bin of a column, such as its weight of evidence."""

from __future__ import annotations

from typing import Any

from ...errors import UnsupportedModelError
from ..scorecards.optbinning import stored
from .table import Feature, Table
from .tabulated import ColumnCall, labels_tabulated, numbers_tabulated


def binning_process(process: Any, table: Table) -> Table:
    """The columns that the process selects, each tabulated at the edges or labels of its bins."""
    names = [str(n) for n in process.variable_names]
    if len(names) != len(table):
        raise UnsupportedModelError(
            f"The step BinningProcess was fitted on {len(names)} columns and is given {len(table)}."
        )
    chosen = [str(n) for n in process.get_support(names=True)]
    binned = {n: process.get_binned_variable(n) for n in chosen}
    for n, one in binned.items():
        if not hasattr(one, "splits") or "Piecewise" in type(one).__name__ or "PW" in type(one).__name__:
            raise UnsupportedModelError(
                f"The step BinningProcess bins {n!r} by a {type(one).__name__}, which is not imported; OptimalBinning, "
                "ContinuousOptimalBinning and MulticlassOptimalBinning are."
            )
        params = (process.binning_transform_params or {}).get(n, {})
        if params.get("metric") == "bins":
            raise UnsupportedModelError(
                f"The step BinningProcess outputs the texts of the bins of {n!r}, which is not supported. Use their "
                'weight of evidence, or their numbers (metric "indices").'
            )
    numeric = {n: one.dtype == "numerical" for n, one in binned.items()}
    kept = {n: stored(one, n) for n, one in binned.items()}
    call = ColumnCall(process, {n: kept[n][0] if n in kept and not numeric[n] else 0.0 for n in names})
    out: list[Feature] = []
    for k, n in enumerate(chosen):
        feature = table.take([names.index(n)])
        steps = (numbers_tabulated if numeric[n] else labels_tabulated)(call, n, kept[n], [k])
        out += feature.then(steps, "BinningProcess").features
    return table.become(out)
