"""The rows of interpret's explainable boosting machines in the conformance table."""

from __future__ import annotations

import warnings
from typing import Any

from . import data
from .row import Fitted, Row

CLASSIFIER, REGRESSOR = "ExplainableBoostingClassifier", "ExplainableBoostingRegressor"
SETTINGS = {"max_rounds": 20, "outer_bags": 2, "n_jobs": 1, "random_state": 0, "max_bins": 16}


def labelled() -> Any:
    """Numbers and labels, some missing; labels that are numbers; a flag."""
    table = data.frame().copy()
    table["purpose"] = table["purpose"].astype(object)
    table["grade"] = table["grade"].astype(int)
    return table


def row(kind: str, task: str, options: str, X: Any, y: Any, **settings: Any) -> Row:
    def build() -> Fitted:
        from interpret import glassbox

        with warnings.catch_warnings():  # that its pictures do not show missing values
            warnings.simplefilter("ignore")
            return getattr(glassbox, kind)(**{**SETTINGS, **settings}).fit(X(), y()), X()

    return Row("interpret", "interpret", kind, task, options, build)


TYPES = ["continuous", "nominal", "nominal", "nominal", "continuous"]
ROWS = (
    row(CLASSIFIER, "binary", "missing values, pairs", data.with_missing, data.binary, interactions=3),
    row(CLASSIFIER, "binary", "main effects alone", data.named, data.classes_of_two, interactions=0),
    row(CLASSIFIER, "binary", "labels, labels that are numbers, pairs of them", labelled, data.frame_target,
        interactions=4, feature_types=TYPES),
    row(CLASSIFIER, "multiclass", "", data.with_missing, data.classes, interactions=0),
    row(REGRESSOR, "regression", "pairs and triples", data.with_missing, data.target,
        interactions=[(0, 1), (1, 2, 3)]),
    row(REGRESSOR, "regression", "poisson_deviance", data.numbers, data.positive, objective="poisson_deviance"),
)  # fmt: skip
