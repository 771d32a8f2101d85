"""XGBoost's rows of the conformance table."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import data
from .row import Fitted, Row

CLASSIFIER, REGRESSOR, BOOSTER = "XGBClassifier", "XGBRegressor", "Booster"


def fit(kind: str, X: Any, y: Any, fitting: dict[str, Any] | None = None, **options: Any) -> Fitted:
    import xgboost

    settings = {"n_estimators": 8, "n_jobs": 1, "random_state": 0, **options}
    if options.get("booster") != "gblinear":
        settings.setdefault("max_depth", 3)
    return getattr(xgboost, kind)(**settings).fit(X, y, **(fitting or {})), X


def train(objective: str, y: Any = None, rounds: int = 8, **options: Any) -> Fitted:
    """A Booster on numbers with missing values."""
    import xgboost

    X = data.with_missing()
    table = xgboost.DMatrix(X, label=data.target() if y is None else y)
    if objective.startswith("rank"):
        table.set_group([100, data.N - 100])
    if objective == "survival:aft":
        for side in ("label_lower_bound", "label_upper_bound"):
            table.set_float_info(side, data.positive())
    settings = {"objective": objective, "max_depth": 3, "nthread": 1, "seed": 0, **options}
    return xgboost.train(settings, table, rounds), X


def early_stopped() -> Fitted:
    X, y = data.with_missing(), np.random.default_rng(1).permutation(data.binary())
    stop = {"eval_set": [(X[120:], y[120:])], "verbose": False}
    model, _ = fit(CLASSIFIER, X[:120], y[:120], stop, n_estimators=60, early_stopping_rounds=3)
    assert model.get_booster().num_boosted_rounds() > model.best_iteration + 1  # else the row tests nothing
    return model, X


def booster_of_wrapper() -> Fitted:
    model, X = early_stopped()
    return model.get_booster(), X


def marked_missing() -> Fitted:
    X = np.where(np.isnan(data.with_missing()), -999.0, data.with_missing())
    return fit(CLASSIFIER, X, data.binary(), missing=-999.0)


def row(model: str, task: str, options: str, build: Any) -> Row:
    return Row("XGBoost", "xgboost", model, task, options, build)


def plain(kind: str, task: str, options: str, y: Any, X: Any = data.with_missing, **settings: Any) -> Row:
    return row(kind, task, options, lambda: fit(kind, X(), y(), **settings))


def objective(name: str, task: str, y: Any = data.target, **options: Any) -> Row:
    return row(BOOSTER, task, name, lambda: train(name, y(), **options))


CATEGORIES: dict[str, Any] = {"enable_categorical": True, "tree_method": "hist", "max_cat_to_onehot": 1}

ROWS = (
    plain(CLASSIFIER, "binary", "missing values", data.binary),
    plain(CLASSIFIER, "binary", "fitted on a pandas table", data.binary, data.named),
    plain(CLASSIFIER, "binary", "dart", data.binary, booster="dart", rate_drop=0.4),
    plain(CLASSIFIER, "binary", "linear booster", data.binary, booster="gblinear"),
    plain(CLASSIFIER, "binary", "base_score", data.binary, base_score=0.1),
    plain(CLASSIFIER, "binary", "monotone constraints", data.binary, monotone_constraints=(1, 0, -1, 0)),
    plain(CLASSIFIER, "binary", "pandas categories", data.frame_target, data.frame, **CATEGORIES),
    plain(CLASSIFIER, "binary", "category codes", data.coded_target, data.coded, feature_types=["c", "q", "q"],
          **CATEGORIES),
    plain(CLASSIFIER, "binary", "one-hot category splits", data.coded_target, data.coded, feature_types=["c", "q", "q"],
          enable_categorical=True, max_cat_to_onehot=100),
    plain(CLASSIFIER, "binary", "trained as two classes", data.binary, objective="multi:softprob", num_class=2),
    plain(CLASSIFIER, "several labels", "", lambda: np.stack([data.binary(), data.class_codes() > 1], axis=1)),
    row(CLASSIFIER, "binary", "early stopping", early_stopped),
    row(BOOSTER, "binary", "all rounds of an early stopped wrapper", booster_of_wrapper),
    row(CLASSIFIER, "binary", "missing=-999", marked_missing),
    plain("XGBRFClassifier", "binary", "random forest", data.binary),
    plain("XGBRFRegressor", "regression", "random forest", data.target),
    plain(CLASSIFIER, "multiclass", "", data.class_codes),
    plain(CLASSIFIER, "multiclass", "multi:softmax", data.class_codes, objective="multi:softmax", num_class=3),
    plain(CLASSIFIER, "multiclass", "dart", data.class_codes, booster="dart", rate_drop=0.4),
    plain(CLASSIFIER, "multiclass", "linear booster", data.class_codes, booster="gblinear"),
    plain(CLASSIFIER, "multiclass", "vector leaves", data.class_codes, multi_strategy="multi_output_tree"),
    plain(REGRESSOR, "regression", "", data.target),
    plain(REGRESSOR, "regression", "large base_score", lambda: 1e4 * data.target(), base_score=1e5),
    plain(REGRESSOR, "regression", "constant target", lambda: np.zeros(data.N)),
    plain(REGRESSOR, "regression", "stumps", data.target, max_depth=1),
    plain(REGRESSOR, "regression", "linear booster", data.target, booster="gblinear"),
    plain(REGRESSOR, "several targets", "", data.two_targets),
    plain(REGRESSOR, "several targets", "vector leaves", data.two_targets, multi_strategy="multi_output_tree"),
    row("XGBRanker", "ranking", "", lambda: fit("XGBRanker", data.with_missing(), data.class_codes(),
                                                {"group": [100, data.N - 100]})),
    objective("binary:logistic", "binary", data.binary),
    objective("binary:logitraw", "binary", data.binary),
    objective("binary:hinge", "binary", data.binary),
    objective("multi:softprob", "multiclass", data.class_codes, num_class=3),
    objective("multi:softmax", "multiclass", data.class_codes, num_class=3),
    objective("reg:squarederror", "regression"),
    objective("reg:absoluteerror", "regression"),
    objective("reg:pseudohubererror", "regression"),
    objective("reg:squaredlogerror", "regression", data.positive),
    objective("reg:quantileerror", "several targets", quantile_alpha=[0.1, 0.5]),
    objective("reg:logistic", "regression", data.binary),
    objective("reg:gamma", "regression", data.positive),
    objective("reg:tweedie", "regression", data.positive, base_score=2.0),
    objective("count:poisson", "regression", data.class_codes, base_score=3.0),
    objective("survival:cox", "survival", data.positive),
    objective("survival:aft", "survival", data.positive),
    objective("rank:ndcg", "ranking", data.class_codes),
    objective("rank:pairwise", "ranking", data.class_codes),
)  # fmt: skip
