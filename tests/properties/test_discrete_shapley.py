"""Where only flags, categories and missing values change, credits are baseline Shapley values."""

from __future__ import annotations

from functools import cache
from math import factorial
from typing import Any

import numpy as np
import pandas as pd
import pytest

import gigrad as gig

FLAGS = ("owns_home", "has_phone", "first_loan", "guarantor")
REGIONS = ("north", "south", "west")
N = 400


@cache
def flags(missing: bool = False) -> Any:
    rng = np.random.default_rng(3)
    X = rng.integers(0, 2, (N, len(FLAGS))).astype(float)
    if missing:
        X[rng.random(X.shape) < 0.15] = np.nan
    return pd.DataFrame(X, columns=list(FLAGS))


@cache
def with_regions(missing: bool = False) -> Any:
    region = pd.Categorical.from_codes(np.random.default_rng(4).integers(0, 3, N), list(REGIONS))
    return flags(missing).assign(region=region)


def labels(X: Any) -> Any:
    a, b, c, d = np.nan_to_num(X[list(FLAGS)].to_numpy(float), nan=0.4).T
    region = X["region"].cat.codes.to_numpy() if "region" in X else np.zeros(len(X))
    score = 2 * a * b - 1.5 * c * d + a * d * (region == 1) - b * (region == 2)
    return (score + np.random.default_rng(5).normal(size=len(X)) * 0.4 > 0.3).astype(int)


def enumerated(score: Any, row: Any, references: Any) -> Any:
    """Baseline Shapley values of one row, the mean over the references, each of the 2^k mixed rows asked for."""
    names, k = list(row.columns), row.shape[1]
    subsets = range(2**k)
    mixed = pd.concat([references] * 2**k, ignore_index=True)
    for j, name in enumerate(names):
        take = np.repeat([bool(s >> j & 1) for s in subsets], len(references))
        mixed[name] = mixed[name].mask(take, row[name].iloc[0])
    value = np.asarray(score(mixed), float).reshape(2**k, len(references)).mean(axis=1)
    out = np.zeros(k)
    for s in subsets:
        size = s.bit_count()
        for j in range(k):
            if not s >> j & 1:
                out[j] += factorial(size) * factorial(k - size - 1) / factorial(k) * (value[s | 1 << j] - value[s])
    return out


def model_of(library: str, X: Any) -> Any:
    y = labels(X)
    if library == "xgboost":
        import xgboost

        return xgboost.XGBClassifier(n_estimators=15, max_depth=4, enable_categorical=True, n_jobs=1).fit(X, y)
    if library == "lightgbm":
        import lightgbm

        return lightgbm.LGBMClassifier(n_estimators=15, min_child_samples=5, verbose=-1, n_jobs=1).fit(X, y)
    if library == "catboost":
        import catboost

        table = X.assign(region=X["region"].astype(str)) if "region" in X else X
        return catboost.CatBoostClassifier(
            iterations=15, depth=4, verbose=0, allow_writing_files=False, thread_count=1, one_hot_max_size=10,
            cat_features=["region"] if "region" in X else [],
        ).fit(table, y)  # fmt: skip
    from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier

    if library == "histogram boosting":
        options: dict[str, Any] = {"categorical_features": "from_dtype"} if "region" in X else {}
        return HistGradientBoostingClassifier(max_iter=15, **options).fit(X, y)
    return ExtraTreesClassifier(10, max_depth=4, random_state=0).fit(X, y)


def as_read(library: str, X: Any) -> Any:
    return X.assign(region=X["region"].astype(str)) if library == "catboost" and "region" in X else X


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("library", ["xgboost", "lightgbm", "catboost", "histogram boosting", "extra trees"])
def test_trees_under_a_link(library: str, missing: bool) -> None:
    X = flags(missing) if library == "extra trees" else with_regions(missing)
    model, X = model_of(library, X), as_read(library, X)
    graph = gig.import_model(model)
    rows, references = X.iloc[:4], X.iloc[100:125]
    for output in ("margin", None):
        target = 1 if graph.output(output)[0].width == 2 else None
        e = gig.explain(model, rows, references, output=output, target=target, discrete=FLAGS)

        def score(table: Any, output: Any = output, target: Any = target) -> Any:
            values = graph.predict(table, output)
            return values if target is None else values[:, target]

        want = np.stack([enumerated(score, rows.iloc[[i]], references) for i in range(len(rows))])
        np.testing.assert_allclose(e.values, want, rtol=0, atol=1e-9 * np.abs(want).max())


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
@pytest.mark.parametrize("library", ["xgboost", "lightgbm", "forest"])
def test_shaps_interventional_values(library: str) -> None:
    """Of sums of trees: under a link shap rescales what each background row gives, which is another answer."""
    import shap
    from sklearn.ensemble import RandomForestClassifier

    X = flags()
    if library == "forest":
        model: Any = RandomForestClassifier(15, max_depth=4, random_state=0).fit(X, labels(X))
    else:
        model = model_of(library, X)
    rows, references = X.iloc[:6], X.iloc[100:140]
    peer = shap.TreeExplainer(model, references, feature_perturbation="interventional", model_output="raw")
    want = np.asarray(peer.shap_values(rows))
    e = gig.explain(model, rows, references, output="margin", target=1 if library == "forest" else None)
    want = want[:, :, 1] if library == "forest" else want
    np.testing.assert_allclose(e.values, want, rtol=0, atol=1e-6 * np.abs(want).max())


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kind", ["net", "net and trees", "logistic regression"])
def test_nets_over_nominal_flags(kind: str) -> None:
    """A net reads the values between 0 and 1, unless all flags are declared to have none."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier

    X = flags()
    net: Any = MLPClassifier((8,), max_iter=400, random_state=0, activation="tanh")
    net = (LogisticRegression() if kind == "logistic regression" else net).fit(X, labels(X))
    model: Any = gig.stack([net, model_of("lightgbm", X)], [0.6, 0.4]) if kind == "net and trees" else net
    if kind == "net and trees":
        model = model.then(gig.SmoothedECDF([-0.5, 0.3, 1.5], [0.0, 0.7, 1.0]))
    graph = gig.import_model(model)
    rows, references = X.iloc[:4], X.iloc[100:120]
    want = np.stack([enumerated(graph.predict, rows.iloc[[i]], references) for i in range(len(rows))])
    e = gig.explain(model, rows, references, nominal=FLAGS)
    np.testing.assert_allclose(e.values, want, rtol=0, atol=1e-9)
    straight = gig.explain(model, rows, references)
    assert np.abs(straight.values - want).max() > 1e-4  # the straight path is another question
