"""scikit-learn's HistGradientBoosting, read from its predictors.

It compares in float64 (`x <= t` goes left). Its trees read reordered columns, categories first, with categories
replaced by their index in the encoder's list; here every split is mapped back to the column of the table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from ..._io.tables import Rows
from ...graph import Column, Graph, Input, Tree, assemble
from ...graph.sets import unpack
from ..common.estimator import OwnPrediction, names_of, number_columns, require_fitted
from ..common.frames import as_pandas, has_labels
from .trees import boosted_graph, loss_link


def import_hist_gradient_boosting(model: Any) -> Graph:
    """HistGradientBoostingClassifier and HistGradientBoostingRegressor."""
    require_fitted(model)
    columns, order = _columns(model)
    source = Input(len(columns))
    trees = assemble(
        source,
        [_read_tree(p, order, k) for stage in model._predictors for k, p in enumerate(stage)],
        np.asarray(model._baseline_prediction, np.float64).ravel(),
    )
    return boosted_graph(model, columns, source, trees, loss_link(model), _OwnHistPrediction)


def _columns(model: Any) -> tuple[tuple[Column, ...], NDArray[np.int64]]:
    """The columns of the table, and for each column of the trees the position of its column in the table."""
    names = [c.name for c in number_columns(model)]
    if model.is_categorical_ is None:
        return tuple(Column(n) for n in names), np.arange(len(names))
    category = np.asarray(model.is_categorical_, bool)
    encoder = model._preprocessor.named_transformers_["encoder"]
    labels = dict(zip(np.flatnonzero(category).tolist(), map(_labels, encoder.categories_), strict=True))
    columns = tuple(
        Column(n, "category", labels[j], unknown="missing") if j in labels else Column(n) for j, n in enumerate(names)
    )
    return columns, np.concatenate([np.flatnonzero(category), np.flatnonzero(~category)])


def _labels(categories: NDArray[Any]) -> tuple[Any, ...]:
    """The encoder's categories as plain values, without a missing value, which it lists last and trees treat apart."""
    return tuple(v for v in categories.tolist() if v is not None and v == v)


def _read_tree(predictor: Any, order: NDArray[np.int64], output: int) -> Tree:
    """One tree of a predictor; `order` holds the column of the table for each of its features."""
    nodes = predictor.nodes
    leaf = nodes["is_leaf"].astype(bool)
    sets = {
        int(i): unpack(predictor.raw_left_cat_bitsets[nodes["bitset_idx"][i]])
        for i in np.flatnonzero(nodes["is_categorical"].astype(bool) & ~leaf)
    }
    return Tree(
        feature=np.where(leaf, -1, order[np.where(leaf, 0, nodes["feature_idx"])]),
        threshold=nodes["num_threshold"],
        left=nodes["left"].astype(np.int64),
        right=nodes["right"].astype(np.int64),
        missing_left=nodes["missing_go_to_left"].astype(bool),
        values=nodes["value"],
        output=output,
        categories=sets,
    )


@dataclass(frozen=True)
class _OwnHistPrediction(OwnPrediction):
    """The estimator's own prediction, for rows with the labels of its categories if it has any."""

    def data(self, rows: Rows) -> Any:
        """The rows in the form that the model was fitted on."""
        columns, _ = _columns(self.model)
        if not has_labels(columns):
            return rows.matrix
        if names_of(self.model) is not None:
            return as_pandas(rows, columns)
        return rows.table if isinstance(rows.table, np.ndarray) else nw.from_native(rows.table).to_numpy()
