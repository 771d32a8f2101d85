"""GaussianProcessClassifier: the probability from the mean and the variance of a latent process, by class."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import UnsupportedModelError
from ...graph import Affine, Elementwise, Graph, Input, KernelMachine, Node, Product, Sum, Witness
from ..common.estimator import OwnPrediction, estimator_graph, label_of, require_fitted
from ..common.links import class_left_out, class_outputs
from ..common.meta import normalised
from .kernel import gp_terms

ROUNDING = 1e-9
"""The error of the probability: scikit-learn adds five terms of up to 3500 that nearly cancel."""


def import_gaussian_classifier(model: Any) -> Graph:
    """GaussianProcessClassifier: two classes, or several with one process for each against the rest."""
    require_fitted(model)
    source = Input(model.n_features_in_)
    if model.n_classes_ == 2:
        score = _probability(model.base_estimator_, source)
    elif model.multi_class == "one_vs_rest":
        each = [_probability(e, source) for e in model.base_estimator_.estimators_]
        score = normalised(each, otherwise=0.0)
    else:
        raise UnsupportedModelError(
            "GaussianProcessClassifier(multi_class='one_vs_one') has no probabilities. Use multi_class='one_vs_rest'."
        )
    predict = OwnPrediction(model, "predict_proba", positive=True)
    own = Witness(score, predict, label_of(model), rtol=ROUNDING, atol=ROUNDING)
    names, opposite = class_outputs(model.classes_), class_left_out(model.classes_, margin_total=1.0)
    return estimator_graph(model, source, score, score, names, own, opposite=opposite)


def _probability(one: Any, source: Input) -> Node:
    """`sum of share * normal_cdf(sqrt(2) rate * mean / sqrt(1 + 2 rate^2 variance))`.

    The logistic function is approximated by five error functions (Williams and Barber), as in scikit-learn.
    """
    from sklearn.gaussian_process._gpc import COEFS, LAMBDAS

    shares, rates = (np.asarray(v, np.float64).ravel() for v in (COEFS, LAMBDAS))
    support = np.asarray(one.X_train_, np.float64)
    half = np.linalg.solve(np.asarray(one.L_, np.float64), np.diag(np.asarray(one.W_sr_, np.float64)))
    mean = _expansion(one.kernel_, source, support, np.asarray(one.y_train_ - one.pi_, np.float64)[None])
    spread = _expansion(one.kernel_, source, support, half)
    diagonal = np.asarray(one.kernel_.diag(np.stack([np.zeros(support.shape[1]), support[0] + 1.0])), np.float64)
    if diagonal[0] != diagonal[1]:
        raise UnsupportedModelError(
            "GaussianProcessClassifier is supported with stationary kernels (RBF, Matern, RationalQuadratic, "
            "ConstantKernel, WhiteKernel); the prior variance of this one depends on the row."
        )
    squares = Elementwise(spread, "square")
    widths = 2.0 * rates**2
    inside = Affine(squares, -np.outer(widths, np.ones(squares.width)), 1.0 + widths * diagonal[0])
    shrink = Elementwise(Elementwise(inside, "sqrt"), "reciprocal")
    steep = Affine(mean, np.sqrt(2.0) * rates[:, None], np.zeros(len(rates)))
    parts = Elementwise(Product(steep, shrink), "normal_cdf")
    return Affine(parts, shares[None], np.zeros(1))


def _expansion(kernel: Any, source: Input, support: Any, weight: Any) -> Node:
    """The sum over training rows that a Gaussian process's latent function is."""
    parts = [
        KernelMachine(source, support, amount * weight, np.zeros(len(weight)), factors)
        for amount, factors in gp_terms(kernel, support.shape[1])
    ]
    if not parts:
        raise UnsupportedModelError("A Gaussian process must have more than white noise, whose mean is constant.")
    return parts[0] if len(parts) == 1 else Sum(tuple(parts))
