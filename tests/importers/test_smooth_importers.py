"""scikit-learn's smooth models: names, margins, and what is refused. The conformance table holds their predictions."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn import discriminant_analysis, linear_model, naive_bayes, neural_network, svm
from sklearn.cross_decomposition import PLSRegression
from sklearn.dummy import DummyRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as gp
from sklearn.isotonic import IsotonicRegression
from sklearn.kernel_ridge import KernelRidge

import gigrad as gig
from gigrad._io.tables import read_rows
from gigrad.graph import Graph, own_values

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 4))
FAR = np.concatenate([X, 1.5 * X[::-1]])  # rows as fitted, and further out
TWO = (X[:, 0] + X[:, 1] ** 2 + 0.3 * RNG.normal(size=120) > 0.5).astype(int)
THREE = np.array(["low", "mid", "top"])[np.digitize(X[:, 0] + 0.5 * TWO, [-0.3, 0.8])]
REAL = np.sin(X[:, 0]) + X[:, 1] + 0.1 * X[:, 2]

Fit = Callable[[], Any]


def compare(graph: Graph, table: Any) -> None:
    rows = read_rows(table, graph, what="X")
    for node in {graph.score, graph.margin}:
        own_values(node, graph.witnesses, graph.input, rows)


def test_names_of_columns_and_outputs() -> None:
    table = pd.DataFrame(X, columns=list("abcd"))
    model = linear_model.LogisticRegression().fit(table, THREE)
    graph = gig.import_model(model)
    assert graph.named
    assert graph.feature_names == ("a", "b", "c", "d")
    assert graph.output_names == ("low", "mid", "top")
    np.testing.assert_allclose(graph.predict(table[list("dcba")]), model.predict_proba(table), rtol=1e-12)
    two = gig.import_model(linear_model.LogisticRegression().fit(X, np.where(TWO, "good", "bad")))
    assert (two.output_names, two.feature_names, two.named) == (("good",), ("x0", "x1", "x2", "x3"), False)
    pairs = gig.import_model(svm.SVC(decision_function_shape="ovo").fit(X, THREE))
    assert pairs.output_names == ("low against mid", "low against top", "mid against top")


def test_margins_are_decision_functions() -> None:
    for model in (linear_model.LogisticRegression(), discriminant_analysis.QuadraticDiscriminantAnalysis()):
        for y in (TWO, THREE):
            model.fit(X, y)
            got = gig.import_model(model).predict(X, output="margin")
            np.testing.assert_allclose(got, model.decision_function(X), rtol=1e-9, atol=1e-12)


def test_missing_values_are_refused_by_models_that_cannot_take_them() -> None:
    broken = X[:3].copy()
    broken[1, 2] = np.nan
    with pytest.raises(gig.InputError, match="no missing value in column 'x2'"):
        gig.import_model(linear_model.LogisticRegression().fit(X, TWO)).predict(broken)


REFUSED: dict[str, tuple[Fit, str]] = {
    "kernel callable": (lambda: svm.SVC(kernel=lambda a, b: a @ b.T).fit(X, TWO), "has a callable"),
    "ridge kernel": (lambda: KernelRidge(kernel="laplacian").fit(X, REAL), "this one has laplacian"),
    "matern": (lambda: GaussianProcessRegressor(gp.Matern(nu=0.7), optimizer=None).fit(X, REAL), "nu 0.5, 1.5, 2.5"),
    "other kernels": (
        lambda: GaussianProcessRegressor(gp.PairwiseKernel(metric="rbf"), optimizer=None).fit(X, REAL),
        "this one has a PairwiseKernel",
    ),
    "power": (lambda: GaussianProcessRegressor(gp.RBF() ** 0.5, optimizer=None).fit(X, REAL), "whole powers"),
    "noise alone": (lambda: GaussianProcessRegressor(gp.WhiteKernel(), optimizer=None).fit(X, REAL), "is constant"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_imported_says_why(name: str) -> None:
    fit, message = REFUSED[name]
    with pytest.raises(gig.UnsupportedModelError, match=message):
        gig.import_model(fit())


def test_models_with_margins_only() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        platt = svm.SVC(probability=True, random_state=0).fit(X, THREE)
    huber = linear_model.SGDClassifier(loss="modified_huber", random_state=0).fit(X, THREE)
    for model, message in ((platt, "an error of up to 0.005"), (huber, "a jump that no single variable makes")):
        graph = gig.import_model(model)
        with pytest.raises(gig.UnsupportedModelError, match=message):
            graph.predict(X)
        np.testing.assert_allclose(graph.predict(X, output="margin"), model.decision_function(X), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    "model",
    [
        linear_model.LinearRegression(), linear_model.LogisticRegression(), svm.SVC(), neural_network.MLPClassifier(),
        GaussianProcessRegressor(), IsotonicRegression(), KernelRidge(), naive_bayes.GaussianNB(),
        linear_model.PoissonRegressor(),
    ],
    ids=lambda m: type(m).__name__,
)  # fmt: skip
def test_models_that_are_not_fitted_are_refused(model: Any) -> None:
    with pytest.raises(gig.NotFittedError, match=r"has not been fitted|must be fitted"):
        gig.import_model(model)


def test_isotonic_regression() -> None:
    x, wide = X[:, 0], np.linspace(-9, 9, 50)[:, None]
    clip = IsotonicRegression(out_of_bounds="clip").fit(x, TWO)
    graph = gig.import_model(clip)
    compare(graph, wide)
    np.testing.assert_allclose(graph.predict(wide), clip.predict(wide), rtol=1e-13, atol=1e-15)
    compare(gig.import_model(IsotonicRegression(out_of_bounds="clip").fit(x.astype(np.float32), TWO)), wide)
    compare(gig.import_model(IsotonicRegression().fit(x, np.ones(120))), x[:, None])
    falling = IsotonicRegression(increasing=False, out_of_bounds="clip").fit(x, -x)
    compare(gig.import_model(falling), wide)
    for rule in ("nan", "raise"):
        strict = gig.import_model(IsotonicRegression(out_of_bounds=rule).fit(x, TWO))
        compare(strict, x[:, None])
        with pytest.raises(gig.InputError, match=f"out_of_bounds='{rule}'.*Fit it with out_of_bounds='clip'"):
            compare(strict, wide)


def test_a_changed_model_is_noticed() -> None:
    model = linear_model.Ridge().fit(X, REAL)
    graph = gig.import_model(model)
    model.coef_ = model.coef_ * (1 + 1e-12)
    with pytest.raises(gig.ModelMismatchError, match="imported from Ridge"):
        compare(graph, X)


def test_partial_least_squares_as_before_scikit_learn_1_5() -> None:
    """Its `coef_` was for columns divided by their deviation, which `predict` divided."""
    wide = X * [1.0, 5.0, 0.1, 30.0]
    model = PLSRegression().fit(wide, REAL)
    want = model.predict(wide).ravel()
    model.coef_ = (model.x_rotations_ @ model.y_loadings_.T * model._y_std).T
    model.predict = lambda rows: ((rows - model._x_mean) / model._x_std @ model.coef_.T + model.intercept_)[:, 0]
    np.testing.assert_allclose(model.predict(wide), want, rtol=1e-12)
    compare(gig.import_model(model), wide)


def test_a_constant_model_must_know_its_columns() -> None:
    model = DummyRegressor().fit(X, REAL)
    vars(model).pop("n_features_in_", None)  # scikit-learn 1.4 does not store it
    with pytest.raises(gig.UnsupportedModelError, match=r"got none.*model\.n_features_in_ = X\.shape\[1\]"):
        gig.import_model(model)
    model.n_features_in_ = X.shape[1]
    compare(gig.import_model(model), X)
