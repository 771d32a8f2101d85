"""DummyClassifier and DummyRegressor: the same prediction for every row."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import UnsupportedModelError
from ...graph import Affine, Column, Graph, Input, Witness
from ..common.estimator import OwnPrediction, label_of, names_of, require_fitted
from ..common.links import class_left_out, class_outputs, plain_outputs
from ..common.meta import is_classifier


def import_dummy(model: Any) -> Graph:
    """DummyClassifier and DummyRegressor: a constant score; random predictions are refused."""
    require_fitted(model)
    if getattr(model, "strategy", "") in ("stratified", "uniform"):
        raise UnsupportedModelError(
            f"DummyClassifier(strategy={model.strategy!r}) predicts at random, which cannot be explained. Use "
            "strategy='prior'."
        )
    if int(getattr(model, "n_outputs_", 1)) > 1:
        raise UnsupportedModelError(f"{label_of(model)} is supported for one target; this one has several.")
    if not hasattr(model, "n_features_in_"):
        raise UnsupportedModelError(
            f"{label_of(model)} must have n_features_in_, the number of its columns; got none, since scikit-learn "
            "before 1.5 does not store it. Set it: model.n_features_in_ = X.shape[1]."
        )
    classifier = is_classifier(model)
    predict = OwnPrediction(model, "predict_proba" if classifier else "predict", positive=True)
    size = int(model.n_features_in_)
    own = np.asarray(getattr(model, predict.method)(np.zeros((1, size))), np.float64).reshape(1, -1)
    value = own[0, 1:] if classifier and own.shape[1] == 2 else own[0]
    names = names_of(model) or tuple(f"x{j}" for j in range(size))
    source = Input(size)
    node = Affine(source, np.zeros((len(value), size)), value)
    return Graph(
        columns=tuple(Column(n, missing=False) for n in names),
        input=source,
        score=node,
        margin=node,
        output_names=class_outputs(model.classes_) if classifier else plain_outputs(1),
        opposite=class_left_out(model.classes_, margin_total=1.0) if classifier else None,
        witnesses=(Witness(node, predict, label_of(model)),),
        named=names_of(model) is not None,
        label=label_of(model),
    )
