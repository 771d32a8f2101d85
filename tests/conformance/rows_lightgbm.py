"""LightGBM's rows of the conformance table."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import data
from .row import Fitted, Row

CLASSIFIER, REGRESSOR, BOOSTER = "LGBMClassifier", "LGBMRegressor", "Booster"
SETTINGS = {"n_estimators": 8, "num_leaves": 8, "min_child_samples": 5, "n_jobs": 1, "verbose": -1, "random_state": 0}
FOREST = {"boosting_type": "rf", "subsample": 0.5, "subsample_freq": 1}
CATEGORIES: dict[str, Any] = {"min_data_per_group": 1, "cat_smooth": 1.0, "max_cat_to_onehot": 1}


def fit(kind: str, X: Any, y: Any, fitting: dict[str, Any] | None = None, **options: Any) -> Fitted:
    import lightgbm

    return getattr(lightgbm, kind)(**{**SETTINGS, **options}).fit(X, y, **(fitting or {})), X


def early_stopped() -> Fitted:
    import lightgbm

    X, y = data.with_missing(), np.random.default_rng(1).permutation(data.binary())
    train = lightgbm.Dataset(X[:120], y[:120])
    valid = train.create_valid(X[120:], y[120:])
    settings = {"objective": "binary", "num_leaves": 8, "min_data_in_leaf": 5, "num_threads": 1, "verbose": -1}
    stop = lightgbm.early_stopping(3, verbose=False)
    # Kept for more training, a Booster also keeps the trees after its best iteration.
    model = lightgbm.train(settings, train, 60, [valid], callbacks=[stop], keep_training_booster=True)
    assert 0 < model.best_iteration < model.current_iteration()  # else the row tests nothing
    return model, X


def from_text() -> Fitted:
    import lightgbm

    model, X = fit(CLASSIFIER, data.frame(), data.frame_target(), **CATEGORIES)
    return lightgbm.Booster(model_str=model.booster_.model_to_string()), X


def with_zeros() -> Any:
    """Numbers of either sign with many zeros in every column, so that splits on both sides of zero meet them."""
    X = data.with_missing().copy()
    X[np.random.default_rng(2).random(X.shape) < 0.3] = 0.0
    return X


def own_loss(y: Any, raw: Any) -> Any:
    return raw - y, np.ones_like(raw)


def row(model: str, task: str, options: str, build: Any) -> Row:
    return Row("LightGBM", "lightgbm", model, task, options, build)


def plain(kind: str, task: str, options: str, y: Any, X: Any = data.with_missing, **settings: Any) -> Row:
    return row(kind, task, options, lambda: fit(kind, X(), y(), **settings))


def objective(name: str, y: Any = data.target, **options: Any) -> Row:
    return plain(REGRESSOR, "regression", name, y, objective=name, **options)


ROWS = (
    plain(CLASSIFIER, "binary", "missing values", data.binary),
    plain(CLASSIFIER, "binary", "fitted on a pandas table", data.classes_of_two, data.named),
    plain(CLASSIFIER, "binary", "dart", data.binary, boosting_type="dart", drop_rate=0.5),
    plain(CLASSIFIER, "binary", "random forest", data.binary, **FOREST),
    plain(CLASSIFIER, "binary", "sigmoid", data.binary, sigmoid=3.0),
    plain(CLASSIFIER, "binary", "monotone constraints", data.binary, monotone_constraints=[1, 0, -1, 0]),
    plain(CLASSIFIER, "binary", "pandas categories", data.frame_target, data.frame, **CATEGORIES),
    row(CLASSIFIER, "binary", "category codes", lambda: fit(CLASSIFIER, data.coded(), data.coded_target(),
                                                            {"categorical_feature": [0]}, **CATEGORIES)),
    row(BOOSTER, "binary", "read from its text, with pandas categories", from_text),
    row(BOOSTER, "binary", "early stopping", early_stopped),
    plain(CLASSIFIER, "binary", "own objective", data.binary, objective=own_loss),
    plain(CLASSIFIER, "binary", "linear trees", data.binary, linear_tree=True),
    plain(CLASSIFIER, "multiclass", "", data.classes),
    plain(CLASSIFIER, "multiclass", "multiclassova", data.classes, objective="multiclassova", sigmoid=2.0),
    plain(CLASSIFIER, "multiclass", "random forest", data.classes, **FOREST),
    plain(CLASSIFIER, "multiclass", "linear trees", data.classes, linear_tree=True, n_estimators=3),
    plain(REGRESSOR, "regression", "", data.target),
    plain(REGRESSOR, "regression", "zero_as_missing", data.target, with_zeros, zero_as_missing=True),
    plain(REGRESSOR, "regression", "zero_as_missing, all of one sign", data.target, lambda: np.abs(with_zeros()),
          zero_as_missing=True),
    plain(REGRESSOR, "regression", "use_missing=False", data.target, use_missing=False),
    plain(REGRESSOR, "regression", "random forest", data.target, **FOREST),
    plain(REGRESSOR, "regression", "linear trees", data.target, data.numbers, linear_tree=True),
    plain(REGRESSOR, "regression", "linear trees with missing values", data.target, linear_tree=True),
    plain(REGRESSOR, "regression", "reg_sqrt", lambda: 5 * data.target(), reg_sqrt=True),
    plain(REGRESSOR, "regression", "own objective", data.target, objective=own_loss),
    plain(REGRESSOR, "regression", "constant target", lambda: np.full(data.N, 3.0)),
    plain(REGRESSOR, "regression", "stumps", data.target, num_leaves=2),
    objective("regression_l1"),
    objective("huber"),
    objective("fair"),
    objective("quantile", alpha=0.3),
    objective("mape"),
    objective("poisson", data.positive),
    objective("gamma", data.positive),
    objective("tweedie", data.positive),
    objective("cross_entropy", data.binary),
    objective("cross_entropy_lambda", data.binary),
    row("LGBMRanker", "ranking", "lambdarank", lambda: fit("LGBMRanker", data.with_missing(), data.class_codes(),
                                                           {"group": [100, data.N - 100]})),
    row("LGBMRanker", "ranking", "rank_xendcg", lambda: fit("LGBMRanker", data.with_missing(), data.class_codes(),
                                                            {"group": [100, data.N - 100]}, objective="rank_xendcg")),
)  # fmt: skip
