"""The rows of scikit-learn's linear models, nets, kernel machines and Bayes classifiers in the conformance table."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import numpy as np

from . import data
from .row import Fitted, Row

LINEAR = (
    "ARDRegression", "BayesianRidge", "ElasticNet", "ElasticNetCV", "HuberRegressor", "Lars", "LarsCV", "Lasso",
    "LassoCV", "LassoLars", "LassoLarsCV", "LassoLarsIC", "LinearRegression", "OrthogonalMatchingPursuit",
    "OrthogonalMatchingPursuitCV", "QuantileRegressor", "Ridge", "RidgeCV", "SGDRegressor", "TheilSenRegressor",
)  # fmt: skip
SEVERAL = ("LinearRegression", "MultiTaskElasticNet", "MultiTaskElasticNetCV", "MultiTaskLasso", "MultiTaskLassoCV")
DECISIONS = ("RidgeClassifier", "RidgeClassifierCV", "Perceptron", "SGDClassifier")
SVM_KERNELS = ("linear", "poly", "rbf", "sigmoid")
SMALL_NET = {"hidden_layer_sizes": (4, 3), "max_iter": 30, "random_state": 0}


def named(path: str) -> Any:
    module, name = path.rsplit(".", 1)
    return getattr(import_module(f"sklearn.{module}"), name)


def row(path: str, task: str, options: str, y: Callable[[], Any] | None, X: Any = data.numbers, **settings: Any) -> Row:
    def build() -> Fitted:
        with warnings.catch_warnings():  # few iterations will do; some classes are about to leave scikit-learn
            warnings.simplefilter("ignore")
            model = named(path)(**settings)
            return model.fit(X()) if y is None else model.fit(X(), y()), X()

    return Row("scikit-learn", "sklearn", path.rsplit(".", 1)[1], task, options, build)


def gaussian_process(options: str, kernel: Callable[[Any], Any], y: Any = data.target, **settings: Any) -> Row:
    """A process on a few rows, with fixed hyperparameters: how they were found does not matter here."""

    def build() -> Fitted:
        from sklearn.gaussian_process import GaussianProcessRegressor, kernels

        model = GaussianProcessRegressor(kernel(kernels), alpha=0.1, optimizer=None, **settings)
        X = data.numbers()[:60]
        return model.fit(X, y()[:60]), X

    task = "several targets" if y is data.two_targets else "regression"
    return Row("scikit-learn", "sklearn", "GaussianProcessRegressor", task, options, build)


def gaussian_classes(task: str, y: Callable[[], Any]) -> Row:
    def build() -> Fitted:
        from sklearn.gaussian_process import GaussianProcessClassifier, kernels

        model = GaussianProcessClassifier(kernels.ConstantKernel(2.0) * kernels.RBF(1.5), optimizer=None)
        X = data.numbers()[:50]
        return model.fit(X, y()[:50]), X

    return Row("scikit-learn", "sklearn", "GaussianProcessClassifier", task, "scaled RBF", build)


def flags() -> Any:
    return (data.numbers() > 0.0).astype(float)


def codes() -> Any:
    """Three columns of category codes."""
    place = np.arange(data.N)
    return np.stack([place % 3, place // 3 % 4, (data.numbers()[:, 1] > 0).astype(int)], axis=1)


def positive_numbers() -> Any:
    return np.abs(data.numbers())


def one_column() -> Any:
    return data.numbers()[:, :1]


def classifiers(task: str, y: Callable[[], Any], X: Any) -> Iterator[Row]:
    """What comes with two classes and with three."""
    yield row("linear_model.LogisticRegression", task, "", y, X)
    yield row("linear_model.LogisticRegressionCV", task, "", y, X, Cs=2, cv=2)
    yield row("linear_model.SGDClassifier", task, "log loss", y, X, loss="log_loss", random_state=0)
    for name in DECISIONS:
        yield row(f"linear_model.{name}", task, "decision function", y, X)
    yield row("svm.LinearSVC", task, "decision function", y, X)
    yield row("discriminant_analysis.LinearDiscriminantAnalysis", task, "", y, X)
    yield row("discriminant_analysis.QuadraticDiscriminantAnalysis", task, "", y, X)
    yield row("naive_bayes.GaussianNB", task, "", y, X)
    yield row("naive_bayes.MultinomialNB", task, "", y, positive_numbers)
    yield row("naive_bayes.ComplementNB", task, "", y, positive_numbers)
    yield row("naive_bayes.BernoulliNB", task, "numbers beyond a threshold", y, X, binarize=0.3)
    yield row("naive_bayes.BernoulliNB", task, "flags", y, flags, binarize=None)
    yield row("naive_bayes.CategoricalNB", task, "", y, codes)
    yield gaussian_classes(task, y)
    yield row("dummy.DummyClassifier", task, "", y, X)
    for activation in ("relu", "tanh", "logistic", "identity"):
        yield row("neural_network.MLPClassifier", task, activation, y, X, activation=activation, **SMALL_NET)
    for kernel in SVM_KERNELS:
        options = f"{kernel}, decision function" + (", one against one" if task == "multiclass" else "")
        yield row("svm.SVC", task, options, y, X, kernel=kernel, coef0=0.5, decision_function_shape="ovo")
    yield row("svm.NuSVC", task, "decision function", y, X, nu=0.1, decision_function_shape="ovo")


ROWS = (
    *(row(f"linear_model.{name}", "regression", "", data.target) for name in LINEAR),
    *(row(f"linear_model.{name}", "several targets", "", data.two_targets) for name in SEVERAL),
    row("linear_model.Ridge", "regression", "fitted on a pandas table", data.target, data.named),
    row("linear_model.PassiveAggressiveRegressor", "regression", "", data.target),
    row("linear_model.PassiveAggressiveClassifier", "binary", "decision function", data.binary),
    row("svm.LinearSVR", "regression", "", data.target),
    row("linear_model.PoissonRegressor", "regression", "", data.positive),
    row("linear_model.GammaRegressor", "regression", "", data.positive),
    row("linear_model.TweedieRegressor", "regression", "log link", data.positive, power=1.5),
    row("linear_model.TweedieRegressor", "regression", "identity link", data.positive, power=0),
    row("svm.SVC", "multiclass", "votes of one against one", data.classes),
    row("svm.NuSVC", "multiclass", "votes of one against one", data.classes, nu=0.1),
    row("svm.SVC", "binary", "probability=True", data.classes_of_two, data.named, probability=True, random_state=0),
    row("svm.NuSVC", "binary", "probability=True", data.binary, nu=0.1, probability=True, random_state=0),
    row("cross_decomposition.PLSRegression", "regression", "", data.target),
    row("cross_decomposition.PLSRegression", "several targets", "", data.two_targets),
    row("cross_decomposition.PLSCanonical", "several targets", "", data.two_targets),
    row("cross_decomposition.CCA", "several targets", "", data.two_targets),
    row("dummy.DummyRegressor", "regression", "", data.target),
    *classifiers("binary", data.classes_of_two, data.named),
    *classifiers("multiclass", data.classes, data.numbers),
    row("linear_model.LogisticRegression", "binary", "liblinear", data.binary, solver="liblinear"),
    row("linear_model.SGDClassifier", "binary", "modified Huber loss", data.binary, loss="modified_huber",
        random_state=0),
    row("linear_model.SGDOneClassSVM", "outliers", "", None),
    row("neural_network.MLPClassifier", "several labels", "",
        lambda: np.stack([data.binary(), 1 - data.binary()], axis=1), **SMALL_NET),
    row("neural_network.MLPRegressor", "regression", "", data.target, **SMALL_NET),
    row("neural_network.MLPRegressor", "regression", "poisson loss", data.positive, loss="poisson", **SMALL_NET),
    row("neural_network.MLPRegressor", "several targets", "", data.two_targets, **SMALL_NET),
    *(row("svm.SVR", "regression", kernel, data.target, kernel=kernel) for kernel in SVM_KERNELS),
    *(row("svm.OneClassSVM", "outliers", kernel, None, kernel=kernel) for kernel in SVM_KERNELS),
    *(row("kernel_ridge.KernelRidge", "regression", kernel, data.target, kernel=kernel) for kernel in SVM_KERNELS),
    row("kernel_ridge.KernelRidge", "several targets", "rbf", data.two_targets, kernel="rbf", gamma=0.3),
    row("svm.NuSVR", "regression", "rbf", data.target),
    gaussian_process("RBF", lambda k: k.RBF()),
    gaussian_process("scaled RBF and noise", lambda k: k.ConstantKernel(2.0) * k.RBF([1, 2, 3, 0.5]) + k.WhiteKernel()),
    gaussian_process("Matern 1/2", lambda k: k.Matern(nu=0.5)),
    gaussian_process("Matern 3/2", lambda k: k.Matern(nu=1.5), normalize_y=True),
    gaussian_process("Matern 5/2 times RBF", lambda k: k.Matern(nu=2.5) * k.RBF(2.0)),
    gaussian_process("Matern without end", lambda k: k.Matern(nu=np.inf)),
    gaussian_process("rational quadratic", lambda k: k.RationalQuadratic(alpha=0.7)),
    gaussian_process("dot product", lambda k: k.DotProduct() + k.WhiteKernel(0.1)),
    gaussian_process("powers and sums", lambda k: k.DotProduct(0.5) ** 2 * k.RBF() + k.ConstantKernel(0.5)),
    gaussian_process("RBF", lambda k: k.RBF(), data.two_targets, normalize_y=True),
    row("isotonic.IsotonicRegression", "calibration", "clipped", data.binary, one_column, out_of_bounds="clip"),
    row("isotonic.IsotonicRegression", "calibration", "falling", data.target, one_column, increasing=False),
)  # fmt: skip
