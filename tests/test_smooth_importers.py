"""scikit-learn's smooth models: each graph must give what the model itself gives, and refuse what it cannot."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn import discriminant_analysis, linear_model, naive_bayes, neural_network, svm
from sklearn.cross_decomposition import PLSRegression
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as gp
from sklearn.isotonic import IsotonicRegression
from sklearn.kernel_ridge import KernelRidge

import gigrad as gig
from gigrad.graph import Graph, own_values
from gigrad.tables import read_rows

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 4))
FAR = np.concatenate([X, 1.5 * X[::-1]])  # rows as fitted, and further out
TWO = (X[:, 0] + X[:, 1] ** 2 + 0.3 * RNG.normal(size=120) > 0.5).astype(int)
THREE = np.array(["low", "mid", "top"])[np.digitize(X[:, 0] + 0.5 * TWO, [-0.3, 0.8])]
REAL = np.sin(X[:, 0]) + X[:, 1] + 0.1 * X[:, 2]
POSITIVE = np.abs(REAL) + 0.1

Fit = Callable[[], Any]
MODELS: dict[str, Fit] = {}


def add(model: Any, y: Any, x: Any = X, note: str = "") -> None:
    target = {id(TWO): "two", id(THREE): "three", id(REAL): "", id(POSITIVE): ""}.get(id(y), "several")
    name = " ".join(filter(None, [type(model).__name__, target if y is not None else "", note]))
    assert name not in MODELS
    MODELS[name] = lambda: model.fit(x) if y is None else model.fit(x, y)


REGRESSORS = """
    ARDRegression BayesianRidge ElasticNet ElasticNetCV HuberRegressor Lars LarsCV Lasso LassoCV LassoLars LassoLarsCV
    LassoLarsIC LinearRegression OrthogonalMatchingPursuit OrthogonalMatchingPursuitCV QuantileRegressor Ridge RidgeCV
    SGDRegressor TheilSenRegressor
"""
for name in REGRESSORS.split():
    add(getattr(linear_model, name)(), REAL)
for name in [
    "LinearRegression",
    "MultiTaskElasticNet",
    "MultiTaskElasticNetCV",
    "MultiTaskLasso",
    "MultiTaskLassoCV",
    "Ridge",
]:
    add(getattr(linear_model, name)(), np.c_[REAL, POSITIVE])
add(svm.LinearSVR(), REAL)
add(PLSRegression(2), REAL, X * 3 + 7)
add(linear_model.PoissonRegressor(), POSITIVE)
add(linear_model.GammaRegressor(), POSITIVE)
add(linear_model.TweedieRegressor(power=1.5), POSITIVE, note="log")
add(linear_model.TweedieRegressor(power=0), POSITIVE, note="identity")
add(linear_model.TweedieRegressor(power=0, link="log"), POSITIVE, note="log asked for")
for y in (TWO, THREE):
    add(linear_model.LogisticRegression(), y)
    add(linear_model.LogisticRegressionCV(Cs=2, l1_ratios=(0.0,), use_legacy_attributes=False), y)
    add(linear_model.SGDClassifier(loss="log_loss", random_state=0), y, note="log loss")
    add(linear_model.SGDClassifier(random_state=0), y, note="hinge")
    for kind in ("RidgeClassifier", "RidgeClassifierCV", "Perceptron"):
        add(getattr(linear_model, kind)(), y)
    add(svm.LinearSVC(), y)
    add(discriminant_analysis.LinearDiscriminantAnalysis(), y)
    add(discriminant_analysis.QuadraticDiscriminantAnalysis(), y)
    add(naive_bayes.GaussianNB(), y)
    add(naive_bayes.MultinomialNB(), y, np.abs(X))
    for activation in ("relu", "tanh", "logistic", "identity"):
        net = neural_network.MLPClassifier((6, 5), activation=activation, max_iter=20, random_state=0)
        add(net, y, note=activation)
    for kernel in ("linear", "poly", "rbf", "sigmoid"):
        add(svm.SVC(kernel=kernel, coef0=0.5, decision_function_shape="ovo"), y, note=kernel)
    add(svm.NuSVC(nu=0.1, decision_function_shape="ovo"), y)
with warnings.catch_warnings():  # about to leave scikit-learn
    warnings.simplefilter("ignore", FutureWarning)
    for name, y in (("PassiveAggressiveClassifier", TWO), ("PassiveAggressiveRegressor", REAL)):
        if name in linear_model.__all__:
            add(getattr(linear_model, name)(), y)
add(linear_model.LogisticRegression(solver="liblinear"), TWO, note="liblinear")
add(linear_model.SGDClassifier(loss="modified_huber", random_state=0), TWO, note="modified Huber")
add(linear_model.SGDOneClassSVM(), None)
add(neural_network.MLPClassifier((6,), max_iter=20, random_state=0), np.c_[TWO, 1 - TWO], note="labels")
add(neural_network.MLPRegressor(hidden_layer_sizes=(6,), max_iter=20, random_state=0), REAL)
add(neural_network.MLPRegressor(hidden_layer_sizes=(6,), max_iter=20, random_state=0), np.c_[REAL, POSITIVE])
add(neural_network.MLPRegressor(loss="poisson", hidden_layer_sizes=(6,), max_iter=20), POSITIVE, note="poisson")
for kernel in ("linear", "poly", "rbf", "sigmoid"):
    add(svm.SVR(kernel=kernel), REAL, note=kernel)
    add(svm.OneClassSVM(kernel=kernel), None, note=kernel)
    add(KernelRidge(kernel=kernel), REAL, note=kernel)
add(svm.NuSVR(), REAL)
add(KernelRidge(kernel="rbf", gamma=0.3), np.c_[REAL, POSITIVE])
GP_KERNELS = {
    "rbf": gp.RBF(),
    "scaled rbf and noise": gp.ConstantKernel(2.0) * gp.RBF([1.0, 2.0, 3.0, 0.5]) + gp.WhiteKernel(0.1),
    "matern 1/2": gp.Matern(nu=0.5),
    "matern 3/2": gp.Matern(nu=1.5),
    "matern 5/2 times rbf": gp.Matern(nu=2.5) * gp.RBF(2.0),
    "matern inf": gp.Matern(nu=np.inf),
    "rational quadratic": gp.RationalQuadratic(alpha=0.7),
    "dot product": gp.DotProduct() + gp.WhiteKernel(0.1),
    "power": gp.DotProduct(0.5) ** 2 * gp.RBF() + gp.ConstantKernel(0.5),
}
for note, kernel in GP_KERNELS.items():
    add(GaussianProcessRegressor(kernel, alpha=1e-2, optimizer=None, normalize_y=True), REAL, note=note)
add(GaussianProcessRegressor(gp.RBF(), alpha=1e-2, optimizer=None), np.c_[REAL, POSITIVE])


def fitted(name: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", FutureWarning)
        warnings.simplefilter("ignore", UserWarning)
        return MODELS[name]()


def compare(graph: Graph, table: Any) -> None:
    rows = read_rows(table, graph, what="X")
    for node in {graph.score, graph.margin}:
        own_values(node, graph.witnesses, graph.input, rows)


@pytest.mark.parametrize("name", MODELS)
def test_graphs_give_what_the_models_give(name: str) -> None:
    model = fitted(name)
    graph = gig.import_model(model)
    far = np.abs(FAR) if "MultinomialNB" in name else FAR
    compare(graph, far)
    method = "predict_proba" if graph.score is not graph.margin and "classes_" in dir(model) else None
    if method is None:
        return
    own = model.predict_proba(far)
    np.testing.assert_allclose(
        graph.predict(far), own[:, 1] if own.shape[1] == 2 and graph.score.width == 1 else own, rtol=1e-9, atol=1e-12
    )


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
    "votes": (lambda: svm.SVC().fit(X, THREE), "counts votes"),
    "kernel callable": (lambda: svm.SVC(kernel=lambda a, b: a @ b.T).fit(X, TWO), "has a callable"),
    "ridge kernel": (lambda: KernelRidge(kernel="laplacian").fit(X, REAL), "this one has laplacian"),
    "matern": (lambda: GaussianProcessRegressor(gp.Matern(nu=0.7), optimizer=None).fit(X, REAL), "nu 0.5, 1.5, 2.5"),
    "other kernels": (
        lambda: GaussianProcessRegressor(gp.PairwiseKernel(metric="rbf"), optimizer=None).fit(X, REAL),
        "this one has a PairwiseKernel",
    ),
    "power": (lambda: GaussianProcessRegressor(gp.RBF() ** 0.5, optimizer=None).fit(X, REAL), "whole powers"),
    "noise alone": (lambda: GaussianProcessRegressor(gp.WhiteKernel(), optimizer=None).fit(X, REAL), "constant mean"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_imported_says_why(name: str) -> None:
    fit, message = REFUSED[name]
    with pytest.raises(gig.UnsupportedModelError, match=message):
        gig.import_model(fit())


def test_models_with_margins_only() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        platt = svm.SVC(probability=True, random_state=0).fit(X, TWO)
    huber = linear_model.SGDClassifier(loss="modified_huber", random_state=0).fit(X, THREE)
    for model, message in ((platt, "stops up to 0.005 short"), (huber, "a jump that no single variable makes")):
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
        with pytest.raises(gig.InputError, match=f"out_of_bounds='{rule}'.*fit it with out_of_bounds='clip'"):
            compare(strict, wide)


def test_a_changed_model_is_noticed() -> None:
    model = linear_model.Ridge().fit(X, REAL)
    graph = gig.import_model(model)
    model.coef_ = model.coef_ * (1 + 1e-12)
    with pytest.raises(gig.ModelMismatchError, match="imported from Ridge"):
        compare(graph, X)
