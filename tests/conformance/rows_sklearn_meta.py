"""The rows of scikit-learn's models made of models in the conformance table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import data
from .row import Fitted, Row


def trees(task: str = "binary") -> Any:
    from sklearn import ensemble

    kind = ensemble.GradientBoostingRegressor if task == "regression" else ensemble.GradientBoostingClassifier
    return kind(n_estimators=4, max_depth=2, random_state=0)


def forest(task: str = "binary") -> Any:
    from sklearn import ensemble

    kind = ensemble.RandomForestRegressor if task == "regression" else ensemble.RandomForestClassifier
    return kind(n_estimators=4, max_depth=3, random_state=0)


def linear(task: str = "binary") -> Any:
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), Ridge() if task == "regression" else LogisticRegression())


def boosted() -> Any:
    from xgboost import XGBClassifier

    return XGBClassifier(n_estimators=4, max_depth=2, n_jobs=1)


def made(path: str, *inside: Any, **options: Any) -> Any:
    from importlib import import_module

    module, kind = path.rsplit(".", 1)
    return getattr(import_module(f"sklearn.{module}"), kind)(*inside, **options)


TARGETS: dict[str, Any] = {"binary": data.binary, "multiclass": data.classes, "regression": data.target}


def row(
    path: str,
    task: str,
    options: str,
    build: Callable[[], Any],
    y: Any = None,
    X: Any = data.numbers,
) -> Row:
    """A meta-model on the shared numbers; `build` makes it unfitted."""

    def fitted() -> Fitted:
        return build().fit(X(), (y or TARGETS[task])()), X()

    return Row("scikit-learn", "sklearn", path.rsplit(".", 1)[-1], task, options, fitted)


def voting(task: str) -> Any:
    parts = [("forest", forest(task)), ("linear", linear(task)), ("out", "drop")]
    if task == "regression":
        return made("ensemble.VotingRegressor", parts, weights=[2.0, 1.0, 1.0])
    return made("ensemble.VotingClassifier", parts, voting="soft", weights=[2.0, 1.0, 1.0])


def stack(task: str, head: Any, *extra: Any, passthrough: bool = False) -> Any:
    kind = "ensemble.StackingRegressor" if task == "regression" else "ensemble.StackingClassifier"
    parts = [("trees", trees(task)), ("linear", linear(task)), *extra]
    return made(kind, parts, head, cv=2, passthrough=passthrough)


def calibrated(inside: Any, method: str, **options: Any) -> Any:
    return made("calibration.CalibratedClassifierCV", inside, method=method, cv=2, **options)


def frozen() -> Any:
    from sklearn.frozen import FrozenEstimator

    return calibrated(FrozenEstimator(forest().fit(data.numbers(), data.binary())), "isotonic")


def by_class() -> Any:
    """The numbers in the order of their classes, so that parts of the table lack one."""
    return data.numbers()[np.argsort(data.classes(), kind="stable")]


def sorted_classes() -> Any:
    return np.sort(data.classes())


def missing_a_class() -> Any:
    """Each fold has seen two classes of three, and some rows are given no chance for any of them: all get a third."""
    from sklearn.model_selection import KFold

    return made("calibration.CalibratedClassifierCV", forest(), method="isotonic", cv=KFold(3))


def two_labels() -> Any:
    return np.stack([data.binary(), data.target() > 1.0], axis=1).astype(int)


CALIBRATED = "calibration.CalibratedClassifierCV"
STACK, STACK_R = "ensemble.StackingClassifier", "ensemble.StackingRegressor"
BAGGING = "ensemble.Bagging"

ROWS = (
    row("model_selection.GridSearchCV", "binary", "its best estimator",
        lambda: made("model_selection.GridSearchCV", trees(), {"max_depth": [1, 2]}, cv=2)),
    row("model_selection.RandomizedSearchCV", "regression", "a pipeline",
        lambda: made("model_selection.RandomizedSearchCV", linear("regression"), {"ridge__alpha": [1.0]}, n_iter=1,
                     cv=2)),
    row("model_selection.TunedThresholdClassifierCV", "binary", "",
        lambda: made("model_selection.TunedThresholdClassifierCV", trees(), cv=2)),
    row("model_selection.FixedThresholdClassifier", "binary", "",
        lambda: made("model_selection.FixedThresholdClassifier", trees(), threshold=0.3)),
    row("semi_supervised.SelfTrainingClassifier", "binary", "", lambda: made(
        "semi_supervised.SelfTrainingClassifier", trees(), max_iter=2),
        y=lambda: np.where(np.arange(data.N) % 5 == 0, -1, data.binary())),
    row("frozen.FrozenEstimator", "regression", "", lambda: made(
        "frozen.FrozenEstimator", trees("regression").fit(data.numbers(), data.target()))),
    row("ensemble.VotingClassifier", "binary", "soft, weighted", lambda: voting("binary")),
    row("ensemble.VotingClassifier", "multiclass", "soft, weighted", lambda: voting("multiclass")),
    row("ensemble.VotingRegressor", "regression", "weighted", lambda: voting("regression")),
    row(STACK, "binary", "predict_proba and decision_function",
        lambda: stack("binary", linear(), ("forest", forest()), ("xgboost", boosted()))),
    row(STACK, "binary", "passthrough", lambda: stack("binary", linear(), passthrough=True), X=data.named),
    row(STACK, "multiclass", "", lambda: stack("multiclass", linear())),
    row(STACK, "binary", "boosting over trees, passthrough", lambda: made(
        STACK, [("trees", trees()), ("forest", forest())], trees(), cv=2, passthrough=True)),
    row(STACK, "binary", "boosting over smooth scores", lambda: stack("binary", trees())),
    row(STACK_R, "regression", "passthrough", lambda: stack("regression", linear("regression"), passthrough=True)),
    row(CALIBRATED, "binary", "sigmoid", lambda: calibrated(trees(), "sigmoid")),
    row(CALIBRATED, "binary", "isotonic", lambda: calibrated(forest(), "isotonic"), X=data.named),
    row(CALIBRATED, "binary", "isotonic over XGBoost", lambda: calibrated(boosted(), "isotonic")),
    row(CALIBRATED, "binary", "temperature", lambda: calibrated(trees(), "temperature")),
    row(CALIBRATED, "binary", "temperature over probabilities", lambda: calibrated(forest(), "temperature")),
    row(CALIBRATED, "binary", "sigmoid, ensemble=False", lambda: calibrated(linear(), "sigmoid", ensemble=False)),
    row(CALIBRATED, "binary", "isotonic, frozen", frozen),
    row(CALIBRATED, "multiclass", "sigmoid", lambda: calibrated(trees(), "sigmoid")),
    row(CALIBRATED, "multiclass", "isotonic", lambda: calibrated(forest(), "isotonic")),
    row(CALIBRATED, "multiclass", "isotonic, folds that miss a class", missing_a_class, X=by_class, y=sorted_classes),
    row(CALIBRATED, "multiclass", "temperature", lambda: calibrated(linear(), "temperature")),
    row(BAGGING + "Classifier", "binary", "some columns each", lambda: made(
        BAGGING + "Classifier", n_estimators=4, max_features=2, random_state=0), X=data.named),
    row(BAGGING + "Classifier", "binary", "linear models on some columns", lambda: made(
        BAGGING + "Classifier", linear(), n_estimators=3, max_features=2, random_state=0)),
    row(BAGGING + "Classifier", "multiclass", "parts that miss classes", lambda: made(
        BAGGING + "Classifier", n_estimators=5, max_samples=4, random_state=0)),
    row(BAGGING + "Regressor", "regression", "", lambda: made(
        BAGGING + "Regressor", trees("regression"), n_estimators=3, random_state=0)),
    row("ensemble.AdaBoostClassifier", "binary", "", lambda: made(
        "ensemble.AdaBoostClassifier", n_estimators=8, random_state=0)),
    row("ensemble.AdaBoostClassifier", "multiclass", "deeper trees", lambda: made(
        "ensemble.AdaBoostClassifier", made("tree.DecisionTreeClassifier", max_depth=2), n_estimators=6)),
    row("ensemble.IsolationForest", "outliers", "", lambda: made(
        "ensemble.IsolationForest", n_estimators=10, random_state=0), y=data.target),
    row("ensemble.IsolationForest", "outliers", "some columns each, missing values", lambda: made(
        "ensemble.IsolationForest", n_estimators=10, max_features=2, random_state=0), y=data.target,
        X=data.with_missing),
    row("multiclass.OneVsRestClassifier", "multiclass", "", lambda: made(
        "multiclass.OneVsRestClassifier", trees())),
    row("multiclass.OneVsRestClassifier", "several targets", "", lambda: made(
        "multiclass.OneVsRestClassifier", forest()),
        y=lambda: np.stack([data.binary(), data.target() > 1.0], axis=1).astype(int)),
    row("multioutput.MultiOutputRegressor", "several targets", "", lambda: made(
        "multioutput.MultiOutputRegressor", trees("regression")), y=data.two_targets),
    row("multioutput.MultiOutputClassifier", "several targets", "", lambda: made(
        "multioutput.MultiOutputClassifier", forest()),
        y=lambda: np.stack([data.binary(), data.class_codes()], axis=1)),
    row("compose.TransformedTargetRegressor", "regression", "np.log1p and back", lambda: made(
        "compose.TransformedTargetRegressor", trees("regression"), func=np.log1p, inverse_func=np.expm1),
        y=data.positive),
    row("compose.TransformedTargetRegressor", "regression", "StandardScaler", lambda: made(
        "compose.TransformedTargetRegressor", linear("regression"),
        transformer=made("preprocessing.StandardScaler"))),
    row("ensemble.AdaBoostRegressor", "regression", "", lambda: made(
        "ensemble.AdaBoostRegressor", n_estimators=7, random_state=0)),
    row("ensemble.AdaBoostRegressor", "regression", "linear models", lambda: made(
        "ensemble.AdaBoostRegressor", made("linear_model.Ridge"), n_estimators=4, random_state=0)),
    row("linear_model.RANSACRegressor", "regression", "", lambda: made(
        "linear_model.RANSACRegressor", random_state=0)),
    row("multiclass.OneVsOneClassifier", "multiclass", "linear models", lambda: made(
        "multiclass.OneVsOneClassifier", linear())),
    row("multiclass.OneVsOneClassifier", "multiclass", "forests", lambda: made(
        "multiclass.OneVsOneClassifier", forest())),
    row("multiclass.OneVsOneClassifier", "binary", "", lambda: made("multiclass.OneVsOneClassifier", linear())),
    row("multioutput.RegressorChain", "several targets", "trees", lambda: made(
        "multioutput.RegressorChain", trees("regression"), order=[1, 0]), y=data.two_targets),
    row("multioutput.RegressorChain", "several targets", "linear models", lambda: made(
        "multioutput.RegressorChain", made("linear_model.Ridge")), y=data.two_targets),
    row("multioutput.ClassifierChain", "several labels", "probabilities handed on", lambda: made(
        "multioutput.ClassifierChain", made("linear_model.LogisticRegression"), chain_method="predict_proba",
        order=[1, 0]), y=two_labels),
    row("multioutput.ClassifierChain", "several labels", "classes handed on", lambda: made(
        "multioutput.ClassifierChain", made("linear_model.LogisticRegression")), y=two_labels),
    row("multioutput.ClassifierChain", "several labels", "forests", lambda: made(
        "multioutput.ClassifierChain", forest()), y=two_labels),
)  # fmt: skip
