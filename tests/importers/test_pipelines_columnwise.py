"""Steps that gigrad does not know: each column is asked for by itself, or the step is refused by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import gigrad as gig
from gigrad.testing import brute_force, check_importer

RNG = np.random.default_rng(5)
N = 160
X = pd.DataFrame(
    {
        "amount": RNG.normal(size=N).round(1),
        "purpose": RNG.choice(["car", "house", "boat"], N),
        "debt": RNG.exponential(size=N).round(1),
        "children": RNG.integers(0, 5, N),
    }
)
Y = ((X["amount"] > 0) ^ (X["purpose"] == "car") ^ (X["debt"] > 1)).to_numpy(int)


class Own(TransformerMixin, BaseEstimator):
    """A lender's own step: rates of labels, bands of a number, a threshold that stands in the code, and the rest."""

    def __init__(self, curve: bool = False) -> None:
        self.curve = curve

    def fit(self, X: Any, y: Any) -> Own:
        self.feature_names_in_, self.n_features_in_ = np.array(X.columns), X.shape[1]
        self.rates_ = {"purpose": {k: float(y[X["purpose"] == k].mean()) for k in sorted(set(X["purpose"]))}}
        self.edges_ = {"debt": [0.3, 1.0, 2.0]}
        return self

    def transform(self, X: Any) -> Any:
        out = X.copy()
        out["purpose"] = X["purpose"].map(self.rates_["purpose"]).astype(float).fillna(0.4)
        out["debt"] = np.digitize(X["debt"], self.edges_["debt"])
        out["family"] = (X["children"] > 1.5).astype(float)
        if self.curve:
            out["amount"] = np.sign(X["amount"]) * np.log1p(np.abs(X["amount"]))
        return out


def boosting() -> Any:
    return GradientBoostingClassifier(n_estimators=4, max_depth=3, random_state=0)


@pytest.mark.parametrize("last", [boosting(), LogisticRegression()], ids=["trees", "linear"])
def test_labels_bands_and_jumps_are_tabulated(last: Any) -> None:
    model = make_pipeline(Own(), last).fit(X, Y)
    check_importer(model, X)
    graph = gig.import_model(model)
    assert graph.columns[1].labels == ("boat", "car", "house")


def test_a_threshold_in_the_code_is_found_to_the_last_bit() -> None:
    model = make_pipeline(Own(), LogisticRegression()).fit(X, Y)
    edge, after = X.head(2).copy(), float(np.nextafter(1.5, 2.0))
    edge["children"] = [1.5, after]
    graph = gig.import_model(model)
    np.testing.assert_allclose(graph.predict(edge), model.predict_proba(edge)[:, 1], rtol=1e-12)


def test_a_curve_is_bisected_for_trees_and_refused_for_smooth_models() -> None:
    check_importer(make_pipeline(Own(curve=True), boosting()).fit(X, Y), X)
    with pytest.raises(gig.UnsupportedModelError, match=r"gradient of the step Own \(.*test_pipelines_columnwise\)"):
        gig.import_model(make_pipeline(Own(curve=True), LogisticRegression()).fit(X, Y))


def test_behind_another_step_and_on_arrays() -> None:
    class Bands(TransformerMixin, BaseEstimator):
        def fit(self, X: Any, y: Any = None) -> Bands:
            self.n_features_in_, self.edges_ = X.shape[1], np.quantile(X, [0.2, 0.5, 0.9], axis=0)
            return self

        def transform(self, X: Any) -> Any:
            return np.stack([np.digitize(x, e) for x, e in zip(X.T, self.edges_.T, strict=True)], axis=1)

    numbers = X[["amount", "debt"]].to_numpy(np.float64)
    for last in (boosting(), LogisticRegression()):
        check_importer(make_pipeline(StandardScaler(), Bands(), last).fit(numbers, Y), numbers)


class Refused(TransformerMixin, BaseEstimator):
    def __init__(self, kind: str) -> None:
        self.kind = kind

    def fit(self, X: Any, y: Any = None) -> Refused:
        self.n_features_in_ = X.shape[1]
        return self

    def transform(self, X: Any) -> Any:
        if self.kind == "several":
            return np.column_stack([X[:, 0] + X[:, 1], X[:, 1]])
        if self.kind == "product":  # nothing moves while the other column is zero
            return np.column_stack([X[:, 0] * (X[:, 1] > 1e6), X[:, 1]])
        if self.kind == "random":
            return X + np.random.default_rng().normal(size=X.shape)
        if self.kind == "rank":
            return X.argsort(axis=0).argsort(axis=0)
        if self.kind == "waves":
            return np.sin(X)
        if self.kind == "texts":
            return np.where(X > 0, "high", "low")
        raise ValueError("no")


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("several", r"makes a column from several \(x0, x1\)"),
        ("product", "makes a column from several"),
        ("random", "is random, or depends on other rows"),
        ("rank", "is random, or depends on other rows"),
        ("waves", "is not monotone in 'x0'"),
        ("texts", "makes texts of the numbers in 'x0'"),
        ("errors", "refuses the trial rows"),
    ],
)
def test_what_cannot_be_found_is_refused_by_name(kind: str, said: str) -> None:
    numbers = X[["amount", "debt"]].to_numpy(np.float64)
    model = make_pipeline(Refused("none"), boosting())
    model.steps[0] = ("own", Refused(kind).fit(numbers))
    model.steps[1] = ("trees", boosting().fit(numbers, Y))
    with pytest.raises(gig.UnsupportedModelError, match=rf"The step Refused \(.*columnwise\) cannot be.*{said}"):
        gig.import_model(model)


def test_any_function_of_a_function_transformer_that_is_monotone() -> None:
    numbers = X[["amount", "debt"]].to_numpy(np.float64)
    model = make_pipeline(FunctionTransformer(np.arctan), boosting()).fit(numbers, Y)
    check_importer(model, numbers)
    for start, end in ((3, 9), (40, 77)):
        explained = gig.explain_pairs(model, numbers[[start]], numbers[[end]])
        expected = brute_force(gig.import_model(model), numbers[start], numbers[end])[:, 0]
        np.testing.assert_allclose(explained.values[0], expected, atol=1e-12)
