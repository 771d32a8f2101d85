"""The rows of scikit-learn's trees, forests and boosting in the conformance table."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import data
from .row import Fitted, Row

CLASSIFIERS = (
    "tree.DecisionTreeClassifier", "tree.ExtraTreeClassifier",
    "ensemble.RandomForestClassifier", "ensemble.ExtraTreesClassifier",
)  # fmt: skip
REGRESSORS = (
    "tree.DecisionTreeRegressor", "tree.ExtraTreeRegressor",
    "ensemble.RandomForestRegressor", "ensemble.ExtraTreesRegressor",
)  # fmt: skip
BOOSTED, HIST = "ensemble.GradientBoosting", "ensemble.HistGradientBoosting"


def make(path: str, **options: Any) -> Any:
    from importlib import import_module

    module, kind = path.split(".")
    settings: dict[str, Any] = {"random_state": 0}
    if "Hist" in kind:
        settings |= {"max_iter": 8, "max_leaf_nodes": 8, "min_samples_leaf": 5}
    elif "GradientBoosting" in kind:
        settings |= {"n_estimators": 8, "max_depth": 3}
    elif module == "ensemble":
        settings |= {"n_estimators": 6, "max_depth": 4}
    else:
        settings |= {"max_depth": 5}
    return getattr(import_module(f"sklearn.{module}"), kind)(**{**settings, **options})


def fit(path: str, X: Any, y: Any, **options: Any) -> Fitted:
    return make(path, **options).fit(X, y), X


def plain(path: str, task: str, options: str, y: Any, X: Any = data.numbers, **settings: Any) -> Row:
    return Row("scikit-learn", "sklearn", path.split(".")[1], task, options, lambda: fit(path, X(), y(), **settings))


def started(path: str, task: str, options: str, y: Any, init: str, **settings: Any) -> Row:
    """Boosting that starts from another model, built when the row is."""

    def build() -> Fitted:
        from sklearn.linear_model import LinearRegression, LogisticRegression

        starts = {"linear": LinearRegression, "logistic": LogisticRegression}
        first = starts[init]() if init in starts else make(init, max_depth=2)
        return fit(path, data.numbers(), y(), init=first, **settings)

    return Row("scikit-learn", "sklearn", path.split(".")[1], task, options, build)


def labels_by_column() -> Any:
    """A table whose categories are plain strings and integers, named to the model one by one."""
    table = data.frame().copy()
    table["purpose"] = table["purpose"].astype(object).where(table["purpose"].notna(), None)
    table["grade"] = table["grade"].astype(int)
    return table


ROWS = (
    *(plain(c, "binary", "missing values", data.binary, data.with_missing) for c in CLASSIFIERS),
    *(plain(c, "multiclass", "fitted on a pandas table", data.classes, data.named) for c in CLASSIFIERS),
    *(plain(c, "regression", "missing values", data.target, data.with_missing) for c in REGRESSORS),
    *(plain(c, "several targets", "", data.two_targets) for c in REGRESSORS),
    plain("ensemble.RandomForestClassifier", "several targets", "",
          lambda: np.stack([data.binary(), data.class_codes()], axis=1)),
    plain("ensemble.RandomForestClassifier", "binary", "monotone constraints", data.binary, monotonic_cst=[1, 0, 0, 0]),
    plain("tree.DecisionTreeClassifier", "binary", "one class only", lambda: np.zeros(data.N)),
    plain("tree.DecisionTreeRegressor", "regression", "a single leaf", lambda: np.full(data.N, 2.0)),
    plain("tree.DecisionTreeRegressor", "regression", "full depth", data.target, max_depth=None),
    plain(f"{BOOSTED}Classifier", "binary", "", data.classes_of_two, data.named),
    plain(f"{BOOSTED}Classifier", "binary", "exponential loss", data.binary, loss="exponential"),
    plain(f"{BOOSTED}Classifier", "binary", "init='zero'", data.binary, init="zero"),
    plain(f"{BOOSTED}Classifier", "multiclass", "", data.classes),
    *(plain(f"{BOOSTED}Regressor", "regression", loss, data.target, loss=loss)
      for loss in ("squared_error", "absolute_error", "huber", "quantile")),
    plain(f"{BOOSTED}Regressor", "regression", "early stopping", data.target, n_estimators=60, n_iter_no_change=2),
    started(f"{BOOSTED}Regressor", "regression", "init a forest", data.target, "ensemble.RandomForestRegressor"),
    started(f"{BOOSTED}Regressor", "regression", "init a linear model", data.target, "linear"),
    started(f"{BOOSTED}Classifier", "binary", "init a forest", data.binary, "ensemble.RandomForestClassifier"),
    started(f"{BOOSTED}Classifier", "binary", "init a logistic regression", data.binary, "logistic"),
    started(f"{BOOSTED}Classifier", "binary", "exponential loss, init a forest", data.binary,
            "ensemble.RandomForestClassifier", loss="exponential"),
    started(f"{BOOSTED}Classifier", "multiclass", "init a forest", data.classes, "ensemble.RandomForestClassifier"),
    plain(f"{HIST}Classifier", "binary", "missing values", data.binary, data.with_missing),
    plain(f"{HIST}Classifier", "multiclass", "early stopping", data.classes, data.with_missing, early_stopping=True),
    plain(f"{HIST}Classifier", "binary", "pandas categories", data.frame_target, data.frame,
          categorical_features="from_dtype"),
    plain(f"{HIST}Classifier", "binary", "categories by name", data.frame_target, labels_by_column,
          categorical_features=["grade", "purpose"]),
    plain(f"{HIST}Classifier", "binary", "category codes", data.coded_target, data.coded, categorical_features=[0]),
    plain(f"{HIST}Regressor", "regression", "monotone constraints", data.target, data.with_missing,
          monotonic_cst=[1, 0, -1, 0]),
    *(plain(f"{HIST}Regressor", "regression", loss, data.positive, data.with_missing, loss=loss,
            **({"quantile": 0.3} if loss == "quantile" else {}))
      for loss in ("squared_error", "absolute_error", "gamma", "poisson", "quantile")),
)  # fmt: skip
