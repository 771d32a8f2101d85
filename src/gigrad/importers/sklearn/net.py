"""scikit-learn's multi-layer perceptrons."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...graph import Affine, Elementwise, Graph, Input, Node, Softmax
from ..common.estimator import OwnPrediction, estimator_graph, label_of, require_fitted
from ..common.links import class_left_out, class_outputs, plain_outputs
from ..common.rounding import LayerScale, held, layers_of

_ACTIVATIONS = {"logistic": "sigmoid", "tanh": "tanh", "relu": "relu", "exp": "exp"}


def import_mlp(model: Any) -> Graph:
    """MLPClassifier and MLPRegressor; the margin is the input of the last logistic, softmax or exponential."""
    require_fitted(model)
    layers = layers_of([w.T for w in model.coefs_], model.intercepts_)
    source = Input(layers[0][0].shape[1])
    node: Node = source
    for i, (weight, bias) in enumerate(layers):
        if i and model.activation != "identity":
            node = Elementwise(node, _ACTIVATIONS[model.activation])
        node = Affine(node, weight, bias)
    margin, last = node, model.out_activation_
    score = margin
    if last == "softmax":
        score = Softmax(margin)
    elif last != "identity":
        score = Elementwise(margin, _ACTIVATIONS[last])
    classifier = "MLPClassifier" in {cls.__name__ for cls in type(model).__mro__}
    predict = OwnPrediction(model, "predict_proba" if classifier else "predict", positive=margin.width == 1)
    scale = LayerScale(layers, exponent=(source, margin) if last == "exp" else None)
    names = _names(model, margin.width) if classifier else plain_outputs(margin.width)
    opposite = class_left_out(model.classes_) if classifier and margin.width == 1 else None
    own = held(score, predict, label_of(model), scale)
    return estimator_graph(model, source, score, margin, names, own, opposite=opposite)


def _names(model: Any, width: int) -> tuple[str, ...]:
    """The names of the classes; for a multilabel model the numbers of the labels."""
    names = class_outputs(np.asarray(model.classes_).tolist())
    return names if len(names) == width else plain_outputs(width)
