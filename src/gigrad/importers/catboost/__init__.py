"""CatBoost models, read from their own JSON.

CatBoost compares in float32 (`x <= border` goes left). It identifies a category by the hash of its label: a split tests
for one label, or compares a statistic of the label (a CTR) with a border, so that both are sets of labels here. A
statistic of several columns becomes a small decision diagram, in which every test is on one column (`questions`).
"""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..._io.tables import Rows
from ...errors import NotFittedError, UnsupportedModelError
from ...graph import Column, Concat, Elementwise, Graph, Input, Node, Select, Witness, assemble
from ..common.frames import as_given
from ..common.links import DOUBLE, LINKS, Link, class_left_out, class_outputs, plain_outputs, sum_error, times, witness
from .statistics import known_hashes
from .trees import read_trees

_CLASSIFIER_LINKS = {
    "Logloss": "sigmoid",
    "CrossEntropy": "sigmoid",
    "MultiClass": "softmax",
    "MultiClassOneVsAll": "sigmoid",
    "MultiLogloss": "sigmoid",
    "MultiCrossEntropy": "sigmoid",
}
_SEVERAL_LABELS = ("MultiLogloss", "MultiCrossEntropy")  # a probability for each of several yes-or-no labels
_BINARY = ("Logloss", "CrossEntropy")
_EXPONENTIAL = ("Poisson", "Tweedie")  # a CatBoostRegressor itself exponentiates these


def import_catboost(model: Any) -> Graph:
    """The graph of a CatBoostClassifier, CatBoostRegressor, CatBoostRanker or plain CatBoost."""
    if not model.is_fitted():
        raise NotFittedError(f"This {type(model).__name__} has not been fitted; fit or load it first.")
    dump = _dump(model)
    columns, hashes = _columns(model, dump)
    source = Input(len(columns))
    scale, bias = dump["scale_and_bias"]
    trees = assemble(source, read_trees(dump, hashes, len(bias)), np.zeros(len(bias)))
    margin = replace(trees.scaled(float(scale)), base=np.asarray(bias, np.float64))
    predict = _Predict(model, columns, margin.width)
    loss = _loss(dump)
    error = sum_error(margin, DOUBLE)
    own = witness(margin, predict.margin, predict.label, DOUBLE, error)
    kinds = {cls.__name__ for cls in type(model).__mro__}
    names = margin_names = plain_outputs(margin.width)
    opposite = class_left_out(model.classes_, 0.0) if loss in _BINARY else None
    score: Node = margin
    witnesses: tuple[Witness, ...] = (own,)
    if "CatBoostClassifier" in kinds:
        link = _classifier_link(loss)
        score = link.apply(margin)
        witnesses = (own, witness(score, predict.probabilities, predict.label, DOUBLE, error, link))
        if loss not in _SEVERAL_LABELS:
            names = margin_names = class_outputs(model.classes_)
            opposite = class_left_out(model.classes_) if margin.width == 1 else None
    elif "CatBoostRegressor" in kinds and loss in _EXPONENTIAL:
        score = LINKS["exp"].apply(margin)
        witnesses = (own, witness(score, predict.score, predict.label, DOUBLE, error, LINKS["exp"]))
    elif "CatBoostRegressor" in kinds and loss == "RMSEWithUncertainty":
        score, names = _with_uncertainty(margin), ("mean", "variance")
        rtol = float(np.expm1(2.0 * error)) + 64.0 * DOUBLE
        witnesses = (own, Witness(score, predict.score, predict.label, rtol=rtol, atol=error))
    return Graph(
        columns=columns,
        input=source,
        score=score,
        margin=margin,
        output_names=names,
        margin_names=margin_names,
        witnesses=witnesses,
        named=_named(dump),
        label=predict.label,
        opposite=opposite,
    )


def _with_uncertainty(margin: Node) -> Node:
    """The mean, and the variance, whose log the margin holds half of."""
    spread = Elementwise(times(2.0, Select(margin, (1,))), "exp")
    return Concat((Select(margin, (0,)), spread))


def _classifier_link(loss: str) -> Link:
    """The link of a classifier with this loss."""
    if loss not in _CLASSIFIER_LINKS:
        raise UnsupportedModelError(
            f"The loss of a CatBoostClassifier must be one of {', '.join(_CLASSIFIER_LINKS)} to be imported; got "
            f"{loss!r}, whose link from raw score to probability is unknown."
        )
    return LINKS[_CLASSIFIER_LINKS[loss]]


# ---------------------------------------------------------------- the model's JSON


def _dump(model: Any) -> dict[str, Any]:
    """The model in CatBoost's JSON; models on texts or embeddings are refused."""
    for kind, found in (
        ("text_features", model.get_text_feature_indices()),
        ("embedding_features", model.get_embedding_feature_indices()),
    ):
        if found:  # checked first: such models cannot be saved as JSON
            names = ", ".join(repr(model.feature_names_[j]) for j in found[:8])
            raise UnsupportedModelError(
                f"CatBoost models with {kind} cannot be imported: CatBoost makes many numbers out of one such column "
                f"({names}), and its splits are on those. Train on numbers made from the column beforehand, which then "
                "get the credit."
            )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        model.save_model(str(path), format="json")
        dump: dict[str, Any] = json.loads(path.read_text())
    return dump


def _loss(dump: dict[str, Any]) -> str:
    parameters = dump["model_info"].get("params", {})
    parameters = json.loads(parameters) if isinstance(parameters, str) else parameters
    return str(parameters.get("loss_function", {}).get("type", ""))


def _named(dump: dict[str, Any]) -> bool:
    info = dump["features_info"]
    return any(f["feature_id"] for f in (*info.get("float_features", ()), *info.get("categorical_features", ())))


def _columns(model: Any, dump: dict[str, Any]) -> tuple[tuple[Column, ...], dict[int, tuple[int, ...]]]:
    """The columns of the table; and by the index of each categorical feature its labels' hashes."""
    info = dump["features_info"]
    hashes = known_hashes(dump)
    names = model.feature_names_
    out = [Column(name) for name in names]
    for feature in info.get("categorical_features", ()):
        j = feature["flat_feature_index"]
        labels = hashes.get(feature["feature_index"], ())
        out[j] = Column(names[j], "category", labels, missing=False, known_as="catboost hash")
    return tuple(out), hashes


# ---------------------------------------------------------------- the model's own predictions


@dataclass(frozen=True)
class _Predict:
    """CatBoost's own predictions of the rows of an explanation."""

    model: Any
    columns: tuple[Column, ...]
    outputs: int

    @property
    def label(self) -> str:
        return type(self.model).__name__

    def margin(self, rows: Rows) -> Any:
        if "CatBoostRanker" in {cls.__name__ for cls in type(self.model).__mro__}:
            return self.model.predict(self._data(rows))
        return self.model.predict(self._data(rows), prediction_type="RawFormulaVal")

    def score(self, rows: Rows) -> Any:
        return self.model.predict(self._data(rows))

    def probabilities(self, rows: Rows) -> Any:
        own = self.model.predict_proba(self._data(rows))
        return own[:, 1:] if self.outputs == 1 else own

    def _data(self, rows: Rows) -> Any:
        return as_given(rows, self.columns) if any(c.kind == "category" for c in self.columns) else rows.matrix
