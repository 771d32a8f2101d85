"""scikit-survival: Cox models, survival trees and forests, gradient boosting."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..._io.tables import Rows
from ...errors import UnsupportedModelError
from ...graph import Affine, Array, Elementwise, Graph, Input, Node, Times, Witness, assemble
from ..common.estimator import OwnPrediction, label_of, names_of, number_columns, require_fitted
from ..common.links import DOUBLE, plain_outputs, sum_error, witness
from ..common.rounding import NodeScale, sum_units
from ..sklearn.trees import read_tree, tree_columns
from .hazards import MARGIN, checked, names_of_times, survival

MOST_NUMBERS = 50_000_000  # in the leaves of a forest: one for each time and leaf, 400 MB


def import_cox(model: Any) -> Graph:
    """CoxPHSurvivalAnalysis, and CoxnetSurvivalAnalysis at its last alpha."""
    require_fitted(model)
    coefficients, shift = np.asarray(model.coef_, np.float64), 0.0
    if coefficients.ndim == 2:
        coefficients, shift = coefficients[:, -1], -float(np.ravel(model.offset_)[-1])
        baselines = model._baseline_models
        baseline = None if baselines is None else baselines[-1]
    else:
        baseline = model._baseline_model
    source = Input(len(coefficients))
    margin = Affine(source, coefficients[None, :], np.array([shift]))
    return _proportional(model, source, margin, baseline, 8.0 * sum_units(len(coefficients) + 1))


def import_componentwise(model: Any) -> Graph:
    """ComponentwiseGradientBoostingSurvivalAnalysis: a linear model."""
    require_fitted(model)
    weight = np.zeros(model.n_features_in_ + 1)
    for one in model.estimators_:
        weight[one.component] += model.learning_rate * float(one.coef_)
    source = Input(model.n_features_in_)
    margin = Affine(source, weight[None, 1:], weight[:1])
    units = 8.0 * sum_units(len(weight) + len(model.estimators_))
    return _boosted(model, source, margin, units)


def import_boosting(model: Any) -> Graph:
    """GradientBoostingSurvivalAnalysis: trees that add up to the log of the partial hazard, or of the time."""
    require_fitted(model)
    if model.init not in (None, "zero"):
        raise UnsupportedModelError(
            f"GradientBoostingSurvivalAnalysis with init={type(model.init).__name__} is not supported; use init=None "
            'or "zero".'
        )
    source = Input(model.n_features_in_)
    scale = getattr(model, "_scale", np.ones(len(model.estimators_)))  # of dropped trees
    trees = [
        read_tree(stage[0].tree_, stage[0].tree_.value[:, 0, 0] * (model.learning_rate * float(s)), output=0)
        for stage, s in zip(model.estimators_, scale, strict=True)
    ]
    base = np.ravel(model._raw_predict_init(np.zeros((1, model.n_features_in_), np.float32)))[:1]
    margin = assemble(source, trees, np.asarray(base, np.float64))
    return _boosted(model, source, margin, 8.0 * sum_units(len(trees) + 1))


def _boosted(model: Any, source: Input, margin: Node, units: float) -> Graph:
    """Boosted trees: a survival function under Cox's loss, else the time itself."""
    if type(model._loss).__name__ == "CoxPH":
        return _proportional(model, source, margin, model._baseline_model, units)
    score = Elementwise(margin, "exp")  # the time itself
    own = Witness(
        score,
        OwnPrediction(model, "predict"),
        label_of(model),
        rtol=units,
        atol=16.0 * DOUBLE,
        scale=NodeScale(source, score),
    )
    return _graph(model, source, score, margin, plain_outputs(1), (), (own,), None)


def _proportional(model: Any, source: Input, margin: Node, baseline: Any, units: float) -> Graph:
    """The graph of survival from the log of the partial hazard and the baseline; without one, of the margin alone."""
    label = label_of(model)
    scale = NodeScale(source, margin)
    risk = Witness(margin, OwnPrediction(model, "predict"), label, rtol=units, atol=16.0 * DOUBLE, scale=scale)
    if baseline is None:
        why = (
            f"This {label} has no baseline, so it has no survival probability; fit it with fit_baseline_model=True, or "
            'explain output="margin".'
        )
        graph = _graph(model, source, margin, margin, MARGIN, MARGIN, (risk,), None)
        return replace(graph, no_score=why)
    times, hazard = checked(baseline.cum_baseline_hazard_.x, baseline.cum_baseline_hazard_.y, label)
    score = survival(margin, hazard)
    own = Witness(score, _Survival(model), label, rtol=units, atol=16.0 * DOUBLE, scale=NodeScale(source, score))
    return _graph(model, source, score, margin, names_of_times(times), MARGIN, (own, risk), times)


def import_trees(model: Any) -> Graph:
    """A survival tree or a forest: the mean of the leaves' curves; the margin is `predict`, the expected events."""
    require_fitted(model)
    if model.low_memory:
        raise UnsupportedModelError(
            f"{label_of(model)} with low_memory=True stores no survival curves; fit it with low_memory=False."
        )
    members = getattr(model, "estimators_", None) or [model]
    times = np.asarray(model.unique_times_, np.float64)
    numbers = sum(m.tree_.node_count for m in members) * len(times)
    if numbers > MOST_NUMBERS:
        raise UnsupportedModelError(
            f"{label_of(model)} has {numbers} numbers in its leaves, one for each of its {len(times)} times; at most "
            f"{MOST_NUMBERS} are supported. Round the times that it is fitted on, say to months, or limit its trees."
        )
    source = Input(model.n_features_in_)
    share = 1.0 / len(members)
    curves = (read_tree(m.tree_, m.tree_.value[:, :, 1] * share) for m in members)
    score = assemble(source, curves, np.zeros(len(times)))
    risks = (read_tree(m.tree_, m.tree_.value[:, m.is_event_time_, 0].sum(axis=1)[:, None] * share) for m in members)
    margin = assemble(source, risks, np.zeros(1))
    label = label_of(model)
    witnesses = (
        witness(score, _Survival(model), label, DOUBLE, sum_error(score, DOUBLE)),
        witness(margin, OwnPrediction(model, "predict"), label, DOUBLE, sum_error(margin, DOUBLE) * (4.0 + len(times))),
    )
    graph = _graph(model, source, score, margin, names_of_times(times), ("expected events",), witnesses, times)
    takes_missing = bool(members[0]._support_missing_values(np.zeros((1, model.n_features_in_))))
    return replace(graph, columns=tree_columns(model, missing=takes_missing))


def _graph(
    model: Any, source: Input, score: Node, margin: Node, names: tuple[str, ...], margins: tuple[str, ...],
    witnesses: tuple[Witness, ...], times: Array | None,
) -> Graph:  # fmt: skip
    """The graph of a survival model, whose outputs may be times."""
    return Graph(
        number_columns(model), source, score, margin, names, margins, witnesses, named=names_of(model) is not None,
        label=label_of(model), times=None if times is None else Times(tuple(times.tolist()), "step"),
    )  # fmt: skip


@dataclass(frozen=True)
class _Survival:
    """The survival curves that the model itself gives, (n, times)."""

    model: Any

    def __call__(self, rows: Rows) -> Array:
        with warnings.catch_warnings():  # rows are plain numbers: names have been matched already
            warnings.filterwarnings("ignore", message="X does not have valid feature names")
            return np.asarray(self.model.predict_survival_function(rows.matrix, return_array=True), np.float64)
