"""CatBoost's rows of the conformance table."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from . import data
from .row import Fitted, Row

CLASSIFIER, REGRESSOR = "CatBoostClassifier", "CatBoostRegressor"
SETTINGS = {
    "iterations": 8,
    "depth": 3,
    "verbose": 0,
    "thread_count": 1,
    "allow_writing_files": False,
    "random_seed": 0,
}
CATEGORIES: dict[str, Any] = {"cat_features": ["purpose", "grade"], "max_ctr_complexity": 1}
COMBINED = {
    "cat_features": ["purpose", "grade"],
    "max_ctr_complexity": 4,
    "one_hot_max_size": 1,
    "iterations": 20,
    "depth": 4,
    "learning_rate": 0.3,
}


def fit(kind: str, X: Any, y: Any, fitting: dict[str, Any] | None = None, **options: Any) -> Fitted:
    import catboost

    return getattr(catboost, kind)(**{**SETTINGS, **options}).fit(X, y, **(fitting or {})), X


def labels() -> Any:
    """The table with plain labels and no missing category, which CatBoost refuses."""
    table = data.frame().copy()
    table["purpose"] = table["purpose"].astype(object).where(table["purpose"].notna(), "unknown")
    table["grade"] = table["grade"].astype(int)
    return table


def combined(kind: str, y: Any, **options: Any) -> Fitted:
    """A model some of whose statistics are about several columns at once."""
    model, X = fit(kind, labels(), y, **{**COMBINED, **options})
    assert any(len(ctr["elements"]) > 1 for ctr in statistics_of(model))  # else the row tests nothing
    return model, X


def statistics_of(model: Any) -> list[Any]:
    """The statistics of a model as its JSON lists them."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        model.save_model(str(path), format="json")
        found: list[Any] = json.loads(path.read_text())["features_info"]["ctrs"]
    return found


def together() -> Any:
    """A number that depends on two categories, and on a category and a number, only together."""
    table = labels()
    pair = table["purpose"].isin(["car", "boat"]) ^ (table["grade"] % 20 == 0)
    return pair + 2.0 * ((table["purpose"] == "house") & (data.numbers()[:, 0] > 0)) + 0.3 * data.target()


def best_of_sixty() -> Fitted:
    X, y = data.with_missing(), np.random.default_rng(1).permutation(data.binary())
    model, _ = fit(CLASSIFIER, X[:120], y[:120], {"eval_set": (X[120:], y[120:])}, iterations=60)
    assert model.tree_count_ < 60  # else the row tests nothing
    return model, X


def plain_model() -> Fitted:
    import catboost

    model = catboost.CatBoost({**SETTINGS, "loss_function": "Logloss"})
    return model.fit(data.with_missing(), data.binary()), data.with_missing()


def row(model: str, task: str, options: str, build: Any) -> Row:
    return Row("CatBoost", "catboost", model, task, options, build)


def plain(kind: str, task: str, options: str, y: Any, X: Any = data.with_missing, **settings: Any) -> Row:
    return row(kind, task, options, lambda: fit(kind, X(), y(), **settings))


def loss(name: str, y: Any = data.target, task: str = "regression") -> Row:
    return plain(REGRESSOR, task, name, y, loss_function=name)


ROWS = (
    plain(CLASSIFIER, "binary", "missing values", data.binary),
    plain(CLASSIFIER, "binary", "nan_mode Max", data.binary, nan_mode="Max"),
    plain(CLASSIFIER, "binary", "fitted on a pandas table", data.classes_of_two, data.named),
    plain(CLASSIFIER, "binary", "Lossguide", data.binary, grow_policy="Lossguide"),
    plain(CLASSIFIER, "binary", "Depthwise", data.binary, grow_policy="Depthwise"),
    plain(CLASSIFIER, "binary", "CrossEntropy", lambda: 0.2 + 0.5 * data.binary(), loss_function="CrossEntropy"),
    plain(CLASSIFIER, "binary", "one-hot categories", data.frame_target, labels, one_hot_max_size=20, **CATEGORIES),
    plain(CLASSIFIER, "binary", "statistics of categories", data.frame_target, labels, **CATEGORIES),
    plain(CLASSIFIER, "binary", "statistics of categories, Lossguide", data.frame_target, labels,
          grow_policy="Lossguide", **CATEGORIES),
    *(plain(CLASSIFIER, "multiclass", f"{kind} of categories", data.class_codes, labels, simple_ctr=[kind],
            **CATEGORIES)
      for kind in ("Borders", "Buckets", "Counter", "BinarizedTargetMeanValue")),
    row(CLASSIFIER, "binary", "statistics of combined columns", lambda: combined(CLASSIFIER, together() > 1.0)),
    *(row(CLASSIFIER, "multiclass", f"{kind} of combined columns",
          lambda kind=kind: combined(CLASSIFIER, np.digitize(together(), [0.5, 1.5]), combinations_ctr=[kind]))
      for kind in ("Borders", "Buckets", "Counter", "BinarizedTargetMeanValue")),
    row(REGRESSOR, "regression", "statistics of combined columns", lambda: combined(REGRESSOR, together())),
    row(CLASSIFIER, "binary", "best iteration", best_of_sixty),
    row("CatBoost", "binary", "raw scores", plain_model),
    plain(CLASSIFIER, "multiclass", "", data.classes),
    plain(CLASSIFIER, "multiclass", "Depthwise", data.classes, grow_policy="Depthwise"),
    plain(CLASSIFIER, "multiclass", "MultiClassOneVsAll", data.classes, loss_function="MultiClassOneVsAll"),
    plain(CLASSIFIER, "several labels", "MultiLogloss",
          lambda: np.stack([data.binary(), data.class_codes() > 1], axis=1).astype(int), loss_function="MultiLogloss"),
    plain(REGRESSOR, "regression", "statistics of categories", data.target, labels, **CATEGORIES),
    loss("RMSE"),
    loss("MAE"),
    loss("Quantile:alpha=0.2"),
    loss("Poisson", data.positive),
    loss("Tweedie:variance_power=1.5", data.positive),
    loss("RMSEWithUncertainty", task="mean and variance"),
    loss("MultiQuantile:alpha=0.1,0.5", task="several targets"),
    loss("MultiRMSE", data.two_targets, "several targets"),
    row("CatBoostRanker", "ranking", "", lambda: fit("CatBoostRanker", data.with_missing(), data.class_codes(),
                                                     {"group_id": np.arange(data.N) // 40})),
)  # fmt: skip
