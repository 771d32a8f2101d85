"""scikit-learn's linear models: one affine layer, and the link from it to the model's prediction."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...graph import Affine, Array, Elementwise, Graph, Input, Node, PiecewiseLinear, Product, Softmax
from ..common.estimator import OwnPrediction, estimator_graph, label_of, require_fitted
from ..common.links import class_left_out, class_outputs, plain_outputs
from ..common.rounding import Layer, LayerScale, held

_NO_STEADY_SCORE = (
    "SGDClassifier(loss='modified_huber') with several classes gives all of them the same probability wherever every "
    'decision is under -1, a jump that no single variable makes; explain its decisions with output="margin".'
)


def import_linear_regressor(model: Any) -> Graph:
    """`predict` is `x @ coef_ + intercept_`: least squares, ridge, lasso and their many relatives."""
    require_fitted(model)
    return _linear(model, *_layer(model.coef_, model.intercept_))


def import_pls(model: Any) -> Graph:
    """PLSRegression, PLSCanonical and CCA: linear in the centred columns."""
    require_fitted(model)
    weight, bias = _layer(model.coef_, model.intercept_)
    if _predict_divides(model, weight):
        weight = weight / np.asarray(model._x_std, np.float64)
    return _linear(model, weight, bias - weight @ np.asarray(model._x_mean, np.float64))


def _predict_divides(model: Any, weight: Array) -> bool:
    """Whether `coef_` is for columns divided by `_x_std`, as before scikit-learn 1.5; later ones divide `coef_`."""
    rotations, loadings = (np.asarray(x, np.float64) for x in (model.x_rotations_, model.y_loadings_))
    scaled = (rotations @ loadings.T * model._y_std).T
    return bool(np.allclose(weight, scaled, rtol=1e-9, atol=1e-9 * np.abs(weight).max()))


def _linear(model: Any, weight: Array, bias: Array) -> Graph:
    """The graph of a regressor whose `predict` is `x @ weight.T + bias`."""
    source = Input(weight.shape[1])
    node = Affine(source, weight, bias)
    own = held(node, OwnPrediction(model, "predict"), label_of(model), LayerScale(((weight, bias),)))
    return estimator_graph(model, source, node, node, plain_outputs(node.width), own)


def import_glm(model: Any) -> Graph:
    """Poisson, gamma and Tweedie regression: the exponential of a linear predictor, unless the link is the identity."""
    require_fitted(model)
    weight, bias = _layer(model.coef_, model.intercept_)
    source = Input(weight.shape[1])
    margin = Affine(source, weight, bias)
    link, power = model.get_params().get("link", "log"), model.get_params().get("power", 1.0)
    logarithmic = link == "log" or (link == "auto" and power > 0)
    score: Node = Elementwise(margin, "exp") if logarithmic else margin
    scale = LayerScale(((weight, bias),), exponent=(source, margin) if logarithmic else None)
    own = held(score, OwnPrediction(model, "predict"), label_of(model), scale)
    return estimator_graph(model, source, score, margin, plain_outputs(1), own)


def import_linear_classifier(model: Any) -> Graph:
    """Linear classifiers: a linear decision function, and a link to the probability, if the model has one.

    For a model without probabilities (a linear SVM, a ridge classifier, a perceptron) the decisions are explained.
    """
    require_fitted(model)
    weight, bias = _layer(model.coef_, model.intercept_)
    source = Input(weight.shape[1])
    margin = Affine(source, weight, bias)
    link = _link_of(model)
    score = _with_link(margin, link)
    scale = LayerScale(((weight, bias),))
    witnesses = [held(margin, OwnPrediction(model, "decision_function"), label_of(model), scale)]
    if score is not margin:
        witnesses.append(held(score, OwnPrediction(model, "predict_proba", positive=True), label_of(model), scale))
    names = class_outputs(model.classes_)
    if len(names) != margin.width:  # one decision for each of several labels
        names = plain_outputs(margin.width)
    no_score = _NO_STEADY_SCORE if link == "no steady score" else ""
    opposite = class_left_out(model.classes_, 0.0 if score is margin else 1.0) if margin.width == 1 else None
    return estimator_graph(model, source, score, margin, names, *witnesses, no_score=no_score, opposite=opposite)


def import_one_class_sgd(model: Any) -> Graph:
    """SGDOneClassSVM: a linear decision."""
    require_fitted(model)
    weight, bias = _layer(model.coef_, -np.asarray(model.offset_))
    source = Input(weight.shape[1])
    node = Affine(source, weight, bias)
    own = held(node, OwnPrediction(model, "decision_function"), label_of(model), LayerScale(((weight, bias),)))
    return estimator_graph(model, source, node, node, ("decision",), own)


# ---------------------------------------------------------------- parts


def _layer(coef: Any, intercept: Any) -> Layer:
    """The weight (out, in) and bias (out,) of a model whose shapes depend on the number of its targets."""
    weight: Array = np.atleast_2d(np.asarray(coef, np.float64))
    return weight, np.broadcast_to(np.asarray(intercept, np.float64).ravel(), len(weight)).copy()


def _link_of(model: Any) -> str:
    """The name of the link from a linear classifier's margin to its probability."""
    binary = len(model.classes_) == 2
    kind = {cls.__name__ for cls in type(model).__mro__}
    if "LinearDiscriminantAnalysis" in kind:
        return "sigmoid" if binary else "softmax"
    if "LogisticRegression" in kind:
        return _logistic_link(model, binary)
    if "SGDClassifier" in kind and model.loss == "log_loss":
        return "sigmoid" if binary else "normalised"
    if "SGDClassifier" in kind and model.loss == "modified_huber":
        return "clip" if binary else "no steady score"
    return "identity"


def _logistic_link(model: Any, binary: bool) -> str:
    """The link of a logistic regression; up to scikit-learn 1.7 `multi_class` may be one-against-rest."""
    asked = model.get_params().get("multi_class", "auto")
    if asked == "multinomial":
        return "doubled" if binary else "softmax"
    if binary:
        return "sigmoid"
    return "normalised" if asked == "ovr" or model.solver == "liblinear" else "softmax"


def _with_link(margin: Node, link: str) -> Node:
    """The score for a margin under a link named by `_link_of`."""
    if link == "sigmoid":
        return Elementwise(margin, "sigmoid")
    if link == "doubled":  # the softmax of -margin and margin
        return Elementwise(Affine(margin, np.array([[2.0]]), np.zeros(1)), "sigmoid")
    if link == "softmax":
        return Softmax(margin)
    if link == "clip":
        return PiecewiseLinear(margin, np.array([-1.0, 1.0]), np.array([0.0, 1.0]))
    if link == "normalised":
        each = Elementwise(margin, "sigmoid")
        total = Affine(each, np.ones((1, each.width)), np.zeros(1))
        return Product(each, Elementwise(total, "reciprocal"))
    return margin
