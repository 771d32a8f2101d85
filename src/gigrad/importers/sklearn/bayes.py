"""scikit-learn's quadratic discriminant analysis and naive Bayes: a log-likelihood for each class, then a softmax."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ...graph import Affine, Array, Elementwise, Graph, Input, Lookup, Node, Softmax, Sum, assemble
from ...graph.growing import stump
from ..common.codes import coded, on_codes
from ..common.estimator import OwnPrediction, estimator_graph, label_of, number_columns, require_fitted
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


def import_complement_nb(model: Any) -> Graph:
    """ComplementNB: weights of the counts, without a prior."""
    require_fitted(model)
    weight = np.asarray(model.feature_log_prob_, np.float64)
    source = Input(weight.shape[1])
    whole = weight, np.zeros(len(weight))
    margin = Affine(source, *(_against_first(whole) if len(weight) == 2 else whole))
    return _classifier(model, source, margin, LayerScale((whole,)), None)


def import_bernoulli_nb(model: Any) -> Graph:
    """BernoulliNB: log-likelihoods of flags, which are 1 for numbers above `binarize`."""
    require_fitted(model)
    yes = np.asarray(model.feature_log_prob_, np.float64)
    no = np.log(1.0 - np.exp(yes))
    weight, bias = yes - no, np.asarray(model.class_log_prior_) + no.sum(axis=1)
    source = Input(weight.shape[1])
    layer = _against_first((weight, bias)) if len(bias) == 2 else (weight, bias)
    if model.binarize is None:
        margin: Node = Affine(source, *layer)
        return _classifier(model, source, margin, LayerScale(((weight, bias),)), None)
    edge = float(model.binarize)
    flags = [stump(j, edge, np.zeros(len(layer[1])), layer[0][:, j]) for j in range(source.width)]
    scale = LayerScale(((np.zeros_like(weight), np.abs(bias) + np.abs(weight).sum(axis=1)),))
    return _classifier(model, source, assemble(source, flags, layer[1]), scale, None)


def import_categorical_nb(model: Any) -> Graph:
    """CategoricalNB: log-likelihoods looked up by the code of each column."""
    require_fitted(model)
    tables = [np.asarray(t, np.float64).T for t in model.feature_log_prob_]  # (codes, classes)
    columns = tuple(coded(c, range(len(t))) for c, t in zip(number_columns(model), tables, strict=True))
    prior, source = np.asarray(model.class_log_prior_, np.float64), Input(len(tables))
    two = len(prior) == 2
    parts: list[Node] = []
    for j, table in enumerate(tables):
        own = table[:, 1:] - table[:, :1] if two else table
        nothing = np.zeros(own.shape[1])
        parts.append(Lookup(source, j, own, nothing, nothing))
    start = prior[1:] - prior[:1] if two else prior
    total = Sum(tuple(parts)) if len(parts) > 1 else parts[0]
    margin = Affine(total, np.eye(total.width), start)
    reach = sum(float(np.abs(t).max()) for t in tables) + float(np.abs(prior).max())
    layer = np.zeros((len(prior), len(tables))), np.full(len(prior), reach)
    graph = _classifier(model, source, margin, LayerScale((layer,)), None)
    witnesses = tuple(replace(w, predict=on_codes(w.predict, columns)) for w in graph.witnesses)
    return replace(graph, columns=columns, witnesses=witnesses)


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
    """A classifier with a margin for each class, or one of two."""
    score = Elementwise(margin, "sigmoid") if margin.width == 1 else Softmax(margin)
    witnesses = [held(score, OwnPrediction(model, "predict_proba", positive=True), label_of(model), scale)]
    if method is not None:
        witnesses.append(held(margin, OwnPrediction(model, method), label_of(model), scale))
    names, opposite = class_outputs(model.classes_), class_left_out(model.classes_)
    return estimator_graph(model, source, score, margin, names, *witnesses, opposite=opposite)
