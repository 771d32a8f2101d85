"""scikit-learn's quadratic discriminant analysis and naive Bayes: a log-likelihood for each class, then a softmax."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...graph import Affine, Array, Elementwise, Graph, Input, Node, Softmax
from ..common.estimator import Ask, label_of, names_of, number_columns, require_fitted
from ..common.links import class_left_out, class_outputs
from ..common.rounding import Layer, LayerScale, held


def import_qda(model: Any) -> Graph:
    """QuadraticDiscriminantAnalysis: squares of rotated, scaled distances to each class's mean."""
    require_fitted(model)
    turned = [r * s**-0.5 for r, s in zip(model.rotations_, model.scalings_, strict=True)]
    first = (
        np.concatenate([t.T for t in turned]),
        -np.concatenate([m @ t for m, t in zip(model.means_, turned, strict=True)]),
    )
    constants = np.log(model.priors_) - 0.5 * np.array([np.log(s).sum() for s in model.scalings_])
    return _quadratic(model, first, [t.shape[1] for t in turned], constants, "decision_function")


def import_gaussian_nb(model: Any) -> Graph:
    """GaussianNB: squares of scaled distances to each class's mean, column by column."""
    require_fitted(model)
    spread = np.sqrt(model.var_)
    first = np.concatenate([np.diag(1.0 / s) for s in spread]), -(model.theta_ / spread).ravel()
    constants = np.log(model.class_prior_) - 0.5 * np.log(2.0 * np.pi * model.var_).sum(axis=1)
    return _quadratic(model, first, [model.theta_.shape[1]] * len(model.classes_), constants, None)


def import_multinomial_nb(model: Any) -> Graph:
    """MultinomialNB: log-likelihoods that are linear in the counts."""
    require_fitted(model)
    weight, bias = np.asarray(model.feature_log_prob_), np.asarray(model.class_log_prior_)
    source = Input(weight.shape[1])
    layer = _against_first((weight, bias)) if len(bias) == 2 else (weight, bias)
    margin = Affine(source, *layer)
    return _classifier(model, source, margin, LayerScale(((weight, bias),)), None)


def _quadratic(model: Any, first: Layer, widths: list[int], constants: Array, method: str | None) -> Graph:
    """`constant - 1/2 sum of squares` for each class; for two classes their difference."""
    source = Input(first[0].shape[1])
    owner = np.repeat(np.arange(len(widths)), widths)
    second: Layer = (-0.5 * (owner == np.arange(len(widths))[:, None]), constants)
    scale = LayerScale((first, second), squared=0)
    if len(widths) == 2:
        second = _against_first(second)
    margin = Affine(Elementwise(Affine(source, *first), "square"), *second)
    return _classifier(model, source, margin, scale, method)


def _against_first(layer: Layer) -> Layer:
    weight, bias = layer
    return weight[1:] - weight[:1], bias[1:] - bias[:1]


def _classifier(model: Any, source: Input, margin: Node, scale: LayerScale, method: str | None) -> Graph:
    score = Elementwise(margin, "sigmoid") if margin.width == 1 else Softmax(margin)
    witnesses = [held(score, Ask(model, "predict_proba", positive=True), label_of(model), scale)]
    if method is not None:
        witnesses.append(held(margin, Ask(model, method), label_of(model), scale))
    return Graph(
        columns=number_columns(model),
        input=source,
        score=score,
        margin=margin,
        output_names=class_outputs(model.classes_),
        opposite=class_left_out(model.classes_),
        witnesses=tuple(witnesses),
        named=names_of(model) is not None,
        label=label_of(model),
    )
