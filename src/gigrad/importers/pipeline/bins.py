"""Numbers cut into steps: KBinsDiscretizer and Binarizer."""

from __future__ import annotations

from typing import Any

import numpy as np

from .encoders import one_hot_steps
from .pieces import before
from .steps import Single, Stairs
from .table import Feature, Table


def k_bins_discretizer(binner: Any, table: Table) -> Table:
    """KBinsDiscretizer: a number equal to an edge belongs to the bin on its right."""
    if binner.dtype is not None and np.dtype(binner.dtype) == np.float32:
        table = table.then([Single()] * len(table), "KBinsDiscretizer")
    edges = [np.unique(np.asarray(e, np.float64)[1:-1]) for e in binner.bin_edges_]
    binned = table.then([Stairs(before(e), np.arange(len(e) + 1.0), stored=e) for e in edges], "KBinsDiscretizer")
    if binner.encode == "ordinal":
        return binned
    columns: list[Feature] = []
    for feature, steps in zip(binned.features, one_hot_steps(binner._encoder), strict=True):
        part = Table((feature,) * len(steps)).then(steps, "KBinsDiscretizer")
        columns += part.features
    return table.become(columns, sparse=binner.encode == "onehot")


def binarizer(transformer: Any, table: Table) -> Table:
    edge = np.array([float(transformer.threshold)])
    return table.then([Stairs(edge, np.array([0.0, 1.0]))] * len(table), "Binarizer")
