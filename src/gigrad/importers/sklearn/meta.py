"""scikit-learn's simple meta-models: searches, votes, transformed targets, several targets, one against the rest."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import UnsupportedModelError
from ...graph import Affine, Elementwise, Graph, Node, Opposite, PiecewiseLinear, Select
from .. import import_model
from ..common.estimator import label_of, require_fitted
from ..common.links import class_left_out, class_outputs, plain_outputs
from ..common.meta import built, has_method, is_classifier, joined, mean, normalised, output_of, side_by_side
from ..common.votes import counted


def import_search(model: Any) -> Graph:
    """GridSearchCV and the other searches: the best estimator they found, fitted on all rows."""
    require_fitted(model)
    if not model.refit:
        raise UnsupportedModelError(
            f"{label_of(model)}(refit=False) holds no fitted model; explain the estimator you fit with its best "
            "parameters."
        )
    return import_model(model.best_estimator_)


def import_wrapped(model: Any) -> Graph:
    """FrozenEstimator: the model inside."""
    return import_model(model.estimator)


def import_tuned(model: Any) -> Graph:
    """Classifiers with a decision threshold of their own, and self-training: the scores of the model inside."""
    require_fitted(model)
    inside = "estimator_" if hasattr(model, "estimator_") else "base_estimator_"  # of self-training before 1.6
    return import_model(getattr(model, inside))


# ---------------------------------------------------------------- votes


def import_voting(model: Any) -> Graph:
    """VotingRegressor, and VotingClassifier(voting="soft"): the weighted mean of the models' own scores."""
    require_fitted(model)
    classifier = is_classifier(model)
    if classifier and model.voting == "hard":
        raise UnsupportedModelError(
            'VotingClassifier(voting="hard") counts predicted classes, which change at boundaries that are not splits '
            'on one column and cannot be credited. Use voting="soft".'
        )
    weights = model._weights_not_none
    parts = joined(model, model.estimators_)
    score = mean([g.output(None)[0] for g in parts], weights)
    if classifier:
        opposite = class_left_out(model.classes_, margin_total=1.0)
        return built(model, parts, score, class_outputs(model.classes_), "predict_proba", opposite=opposite)
    return built(model, parts, score, plain_outputs(1), "predict")


# ---------------------------------------------------------------- a target transformed

_INVERSE = ("exp", "expm1", "square", "sqrt", "log", "log1p")


def import_transformed_target(model: Any) -> Graph:
    """TransformedTargetRegressor: the regressor's prediction, its margin, mapped back to the target's own scale."""
    require_fitted(model)
    parts = joined(model, [model.regressor_])
    margin, names = parts[0].output(None)
    score = _mapped_back(model.transformer_, margin)
    return built(model, parts, score, names, "predict", margin=margin, margin_names=names)


def _mapped_back(transformer: Any, node: Node) -> Node:
    """The node of a prediction after `inverse_transform`."""
    kind = type(transformer).__name__
    if kind == "FunctionTransformer":
        function = transformer.inverse_func
        if function is None:
            return node
        name = next((n for n in _INVERSE if getattr(np, n) is function), None)
        if name is not None and not transformer.inv_kw_args:
            return Elementwise(node, name)
        raise UnsupportedModelError(
            f"The inverse_func of TransformedTargetRegressor must be one of NumPy's {', '.join(_INVERSE)}; "
            f"got {getattr(function, '__name__', function)!r}."
        )
    if kind == "StandardScaler":
        return _line(
            node,
            transformer.scale_ if transformer.with_std else None,
            transformer.mean_ if transformer.with_mean else None,
        )
    if kind == "RobustScaler":
        return _line(
            node,
            transformer.scale_ if transformer.with_scaling else None,
            transformer.center_ if transformer.with_centering else None,
        )
    if kind == "MaxAbsScaler":
        return _line(node, transformer.scale_, None)
    if kind == "MinMaxScaler":
        return _line(node, 1.0 / transformer.scale_, -transformer.min_ / transformer.scale_)
    if kind == "QuantileTransformer" and transformer.output_distribution == "uniform" and node.width == 1:
        return PiecewiseLinear(node, np.asarray(transformer.references_), np.asarray(transformer.quantiles_[:, 0]))
    raise UnsupportedModelError(
        f"TransformedTargetRegressor with a {kind} cannot be imported; supported are functions by name, "
        "StandardScaler, RobustScaler, MinMaxScaler, MaxAbsScaler and a uniform QuantileTransformer."
    )


def _line(node: Node, slope: Any, shift: Any) -> Node:
    slopes = np.ones(node.width) if slope is None else np.asarray(slope, np.float64)
    return Affine(node, np.diag(slopes), np.zeros(node.width) if shift is None else np.asarray(shift, np.float64))


# ---------------------------------------------------------------- several targets, and one class against the rest


def import_multi_output(model: Any) -> Graph:
    """MultiOutputRegressor and MultiOutputClassifier: the models of all targets side by side."""
    require_fitted(model)
    parts = joined(model, model.estimators_)
    score = side_by_side([g.output(None)[0] for g in parts])
    names = tuple(
        str(k) if g.output(None)[0].width == 1 and not is_classifier(model) else f"{k}: {name}"
        for k, g in enumerate(parts)
        for name in g.output_names
    )
    if is_classifier(model):
        left_out = tuple(
            f"{k}: {g.opposite.names[0]}" if g.opposite is not None else ""
            for k, g in enumerate(parts)
            for _ in g.output_names
        )
        opposite = Opposite(left_out, 1.0, 1.0) if any(left_out) else None
        return built(model, parts, score, names, "predict_proba", several=True, opposite=opposite)
    return built(model, parts, score, names, "predict")


def import_one_vs_rest(model: Any) -> Graph:
    """OneVsRestClassifier: each class's own probability, divided by their sum unless it is multilabel."""
    require_fitted(model)
    if not all(is_classifier(e) for e in model.estimators_):
        raise UnsupportedModelError(
            "Every part of a OneVsRestClassifier must be a classifier trained on both classes; one of its parts is a "
            f"{next(label_of(e) for e in model.estimators_ if not is_classifier(e))}."
        )
    parts = joined(model, model.estimators_)
    classes = class_outputs(model.classes_) if not model.multilabel_ else tuple(str(c) for c in model.classes_)
    margin = margin_method = None
    if has_method(model.estimators_[0], "decision_function"):
        margin = side_by_side(
            [output_of(e, g, "decision_function") for e, g in zip(model.estimators_, parts, strict=True)]
        )
        margin_method = "decision_function"
    if not has_method(model.estimators_[0], "predict_proba"):
        if margin is None:
            raise UnsupportedModelError("OneVsRestClassifier needs parts with predict_proba or decision_function.")
        return built(model, parts, margin, classes, "decision_function", opposite=_left_out(model, 0.0, 0.0))
    own = [output_of(e, g, "predict_proba") for e, g in zip(model.estimators_, parts, strict=True)]
    score = side_by_side(own) if len(parts) == 1 or model.multilabel_ else normalised(own, otherwise=0.0)
    return built(
        model, parts, score, classes, "predict_proba", margin=margin, margin_names=classes if margin else (),
        margin_method=margin_method or "", opposite=_left_out(model, 1.0, 1.0 if margin is None else 0.0),
    )  # fmt: skip


def import_one_vs_one(model: Any) -> Graph:
    """OneVsOneClassifier: the votes of the models for each two classes, plus the scaled sum of their confidences."""
    require_fitted(model)
    if model.pairwise_indices_ is not None:
        raise UnsupportedModelError("OneVsOneClassifier over precomputed kernels cannot be imported; give it columns.")
    parts = joined(model, model.estimators_)
    decide = has_method(model.estimators_[0], "decision_function")
    method = "decision_function" if decide else "predict_proba"
    confidences = side_by_side([output_of(e, g, method) for e, g in zip(model.estimators_, parts, strict=True)])
    score = counted(confidences, len(model.classes_), 0.0 if decide else 0.5)
    if len(model.classes_) == 2:
        score = Select(score, (1,))
    opposite = class_left_out(model.classes_, 1.0, 1.0)  # one vote, and confidences that cancel
    return built(model, parts, score, class_outputs(model.classes_), "decision_function", opposite=opposite)


def _left_out(model: Any, score_total: float, margin_total: float) -> Opposite | None:
    return None if model.multilabel_ else class_left_out(model.classes_, score_total, margin_total)
