"""CalibratedClassifierCV: the mean over folds of a classifier's scores, each mapped by its calibrator."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import UnsupportedModelError
from ...graph import Affine, Elementwise, Graph, Node, PiecewiseLinear, Select, Softmax
from ..common.estimator import require_fitted
from ..common.links import class_left_out, class_outputs
from ..common.meta import built, has_method, joined, mean, normalised, output_of, positive, probabilities

_EPS = 1e-12  # added to probabilities before their logarithm, by scikit-learn's temperature scaling


def import_calibrated(model: Any) -> Graph:
    """Sigmoid, isotonic and temperature calibration, of one classifier or of one for each fold."""
    require_fitted(model)
    folds = model.calibrated_classifiers_
    parts = joined(model, [fold.estimator for fold in folds])
    score = mean([_calibrated(fold, graph) for fold, graph in zip(folds, parts, strict=True)])
    opposite = class_left_out(model.classes_, margin_total=1.0)
    return built(model, parts, score, class_outputs(model.classes_), "predict_proba", opposite=opposite)


def _calibrated(fold: Any, graph: Graph) -> Node:
    """One fold's probabilities: the positive class alone for two."""
    classes = len(fold.classes)
    method = "decision_function" if has_method(fold.estimator, "decision_function") else "predict_proba"
    raw = output_of(fold.estimator, graph, method)
    if fold.method == "temperature":
        if len(fold.estimator.classes_) < classes:
            raise UnsupportedModelError(
                f"A fold of CalibratedClassifierCV(method='temperature') must hold all {classes} classes; one holds "
                f"{len(fold.estimator.classes_)}, and scikit-learn then adds up probabilities of different classes. "
                "Fit it with folds that hold all classes (cv=StratifiedKFold(...)), or with ensemble=False."
            )
        return _tempered(fold.calibrators[0], raw, method, classes)
    if classes == 2:
        return _mapped(fold.calibrators[0], raw)
    # A fold may lack classes, which then get probability 0. One with two classes calibrates the score of the second as
    # if it were the first's, as scikit-learn does.
    parts: list[Node] = [Affine(raw, np.zeros((1, raw.width)), np.zeros(1))] * classes
    known = list(fold.classes)
    for k, (name, calibrator) in enumerate(zip(fold.estimator.classes_, fold.calibrators, strict=False)):
        parts[known.index(name)] = _mapped(calibrator, Select(raw, (k,)))
    return normalised(parts, otherwise=1.0 / classes)


def _mapped(calibrator: Any, node: Node) -> Node:
    """One score mapped by one calibrator."""
    kind = type(calibrator).__name__
    if kind == "_SigmoidCalibration":
        slope, shift = float(calibrator.a_), float(calibrator.b_)
        return Elementwise(Affine(node, np.array([[-slope]]), np.array([-shift])), "sigmoid")
    if kind == "IsotonicRegression":
        x, y = (np.asarray(v, np.float64) for v in (calibrator.X_thresholds_, calibrator.y_thresholds_))
        return PiecewiseLinear(node, x, y) if len(x) > 1 else Affine(node, np.zeros((1, 1)), y)
    raise UnsupportedModelError(f"The calibrator must be sigmoid, isotonic or temperature scaling; got a {kind}.")


def _tempered(calibrator: Any, raw: Node, method: str, classes: int) -> Node:
    """Temperature scaling: a softmax of the logits times one number."""
    beta = float(calibrator.beta_)
    if method == "predict_proba":
        every = probabilities(raw, classes)
        logits: Node = Elementwise(Affine(every, np.eye(classes), np.full(classes, _EPS)), "log")
    elif classes == 2:
        logits = Affine(raw, np.array([[-1.0], [1.0]]), np.zeros(2))
    else:
        logits = raw
    return positive(Softmax(Affine(logits, beta * np.eye(classes), np.zeros(classes))))
