"""The rows of steps that make columns from several, before trees and before a linear model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import gigrad as gig

from . import data
from .row import Fitted, Row
from .rows_sklearn_meta import made


def before(name: str, make: Callable[[], Any], X: Callable[[], Any] = data.numbers, y: Any = data.target) -> list[Row]:
    """A step before boosted trees, and before a linear model."""
    ends = {
        "trees": lambda: made("ensemble.GradientBoostingRegressor", n_estimators=4, max_depth=2, random_state=0),
        "a linear model": lambda: made("linear_model.Ridge"),
    }

    def build(end: Callable[[], Any]) -> Callable[[], Fitted]:
        return lambda: (pipeline(make(), end()).fit(X(), y()), X())

    return [
        Row("scikit-learn", "sklearn", "Pipeline", "regression", f"{name}, then {what}", build(end))
        for what, end in ends.items()
    ]


def pipeline(*steps: Any) -> Any:
    from sklearn.pipeline import make_pipeline

    return make_pipeline(made("preprocessing.FunctionTransformer"), *steps)


def positive() -> Any:
    return np.abs(data.numbers())


def counts() -> Any:
    """Counts with many zeros, none of whose rows is all zero."""
    X = np.abs(data.numbers()).round()
    return np.column_stack([X, 1.0 + np.arange(len(X)) % 3])


def shares() -> Any:
    return np.clip(positive() / 4.0, 0.0, 1.0)


def never_zero() -> Any:
    return data.numbers() + 0.05


def ratios(x: Any) -> Any:
    return np.stack([x[:, 0] / (1.0 + x[:, 1] ** 2), x[:, 2] * x[:, 3]], axis=1)


def slopes(x: Any) -> Any:
    out = np.zeros((len(x), 2, 4))
    below = 1.0 + x[:, 1] ** 2
    out[:, 0, 0], out[:, 0, 1] = 1.0 / below, -2.0 * x[:, 0] * x[:, 1] / below**2
    out[:, 1, 2], out[:, 1, 3] = x[:, 3], x[:, 2]
    return out


def by_class(kind: str, **options: Any) -> Callable[[], Any]:
    return lambda: made(kind, **options)


def iterative(**options: Any) -> Any:
    from sklearn.experimental import enable_iterative_imputer
    from sklearn.impute import IterativeImputer

    assert enable_iterative_imputer is not None  # importing it is what counts
    return IterativeImputer(max_iter=3, **options)


def pair_of(kind: str, **options: Any) -> Any:
    parts = [("tree", made("tree.DecisionTreeRegressor", max_depth=2)), ("linear", made("linear_model.Ridge"))]
    return made(f"ensemble.{kind}", parts, **options)


def votes_of_classes() -> Any:
    parts = [
        ("tree", made("tree.DecisionTreeClassifier", max_depth=2)),
        ("linear", made("linear_model.LogisticRegression")),
    ]
    return made("ensemble.VotingClassifier", parts, voting="soft")


def on_a_frame(end: Any) -> Fitted:
    """Counts, flags, missing values and categories: components of the numbers beside dummies of the labels."""
    from sklearn.pipeline import make_pipeline

    numbers = make_pipeline(
        made("impute.SimpleImputer", add_indicator=True), made("preprocessing.StandardScaler"),
        made("decomposition.PCA", 2),
    )  # fmt: skip
    labels = made("preprocessing.OneHotEncoder", handle_unknown="ignore", sparse_output=False)
    blocks = [("numbers", numbers, ["amount", "children"]), ("labels", labels, ["purpose", "grade", "owner"])]
    model = make_pipeline(made("compose.ColumnTransformer", blocks), end)
    return model.fit(data.frame(), data.frame_target()), data.frame()


def xgboost() -> Any:
    import xgboost

    return xgboost.XGBClassifier(n_estimators=6, max_depth=3, n_jobs=1)


def boosted() -> Any:
    return made("ensemble.GradientBoostingClassifier", n_estimators=6, max_depth=3, random_state=0)


def forest() -> Any:
    return made("ensemble.RandomForestClassifier", 8, max_depth=4, random_state=0)


def framed(what: str, end: Callable[[], Any]) -> Row:
    return Row(
        "scikit-learn", "sklearn", "ColumnTransformer", "binary", f"PCA beside OneHotEncoder, then {what}",
        lambda: on_a_frame(end()),
    )  # fmt: skip


DECOMPOSED, APPROXIMATED, PROJECTED = "decomposition.", "kernel_approximation.", "random_projection."

ROWS = (
    *before("SplineTransformer", by_class("preprocessing.SplineTransformer", n_knots=4)),
    *before("SplineTransformer(periodic)", by_class("preprocessing.SplineTransformer", extrapolation="periodic")),
    *before("SplineTransformer(degree=1, linear)",
            by_class("preprocessing.SplineTransformer", degree=1, extrapolation="linear")),
    *before("PolynomialFeatures", by_class("preprocessing.PolynomialFeatures", degree=2)),
    *before("PCA", by_class(DECOMPOSED + "PCA", n_components=2, whiten=True)),
    *before("IncrementalPCA", by_class(DECOMPOSED + "IncrementalPCA", n_components=2)),
    *before("TruncatedSVD", by_class(DECOMPOSED + "TruncatedSVD", n_components=2)),
    *before("FastICA", by_class(DECOMPOSED + "FastICA", n_components=2, random_state=0, whiten="unit-variance")),
    *before("FactorAnalysis", by_class(DECOMPOSED + "FactorAnalysis", n_components=2)),
    *before("SparsePCA", by_class(DECOMPOSED + "SparsePCA", n_components=2, random_state=0, max_iter=20)),
    *before("MiniBatchSparsePCA", by_class(
        DECOMPOSED + "MiniBatchSparsePCA", n_components=2, random_state=0, max_iter=20)),
    *before("KernelPCA", by_class(DECOMPOSED + "KernelPCA", n_components=3, kernel="rbf", gamma=0.3)),
    *before("GaussianRandomProjection", by_class(
        PROJECTED + "GaussianRandomProjection", n_components=2, random_state=0)),
    *before("SparseRandomProjection", by_class(
        PROJECTED + "SparseRandomProjection", n_components=3, random_state=0, density=0.5)),
    *before("NeighborhoodComponentsAnalysis", by_class(
        "neighbors.NeighborhoodComponentsAnalysis", n_components=2, max_iter=5), y=data.class_codes),
    *before("LinearDiscriminantAnalysis", by_class(
        "discriminant_analysis.LinearDiscriminantAnalysis", n_components=2), y=data.class_codes),
    *before("FeatureAgglomeration", by_class("cluster.FeatureAgglomeration", n_clusters=2)),
    *before("RBFSampler", by_class(APPROXIMATED + "RBFSampler", n_components=5, random_state=0, gamma=0.3)),
    *before("Nystroem", by_class(APPROXIMATED + "Nystroem", n_components=5, random_state=0, gamma=0.3)),
    *before("SkewedChi2Sampler", by_class(APPROXIMATED + "SkewedChi2Sampler", n_components=4, random_state=0),
            positive),
    *before("AdditiveChi2Sampler", by_class(APPROXIMATED + "AdditiveChi2Sampler"), positive),
    *before("Normalizer", by_class("preprocessing.Normalizer"), never_zero),
    *before("Normalizer(l1)", by_class("preprocessing.Normalizer", norm="l1"), never_zero),
    *before("TfidfTransformer on dense counts", by_class("feature_extraction.text.TfidfTransformer"), counts),
    *before("KMeans", by_class("cluster.KMeans", n_clusters=3, n_init=1, random_state=0)),
    *before("MiniBatchKMeans", by_class("cluster.MiniBatchKMeans", n_clusters=2, n_init=1, random_state=0)),
    *before("BisectingKMeans", by_class("cluster.BisectingKMeans", n_clusters=2, random_state=0)),
    *before("Birch", by_class("cluster.Birch", n_clusters=None, threshold=1.5)),
    *before("BernoulliRBM", by_class("neural_network.BernoulliRBM", n_components=3, n_iter=2, random_state=0), shares),
    *before("IterativeImputer", iterative, data.with_missing),
    *before("IterativeImputer(add_indicator)", lambda: iterative(add_indicator=True), data.with_missing),
    *before("StackingRegressor as a step", lambda: pair_of("StackingRegressor", cv=2)),
    *before("StackingRegressor as a step, passthrough", lambda: pair_of("StackingRegressor", cv=2, passthrough=True)),
    *before("VotingRegressor as a step", lambda: pair_of("VotingRegressor")),
    *before("VotingClassifier as a step", votes_of_classes, y=data.class_codes),
    *before("RandomTreesEmbedding", by_class(
        "ensemble.RandomTreesEmbedding", n_estimators=3, max_depth=2, random_state=0)),
    *before("FunctionTransformer with a gradient", lambda: made(
        "preprocessing.FunctionTransformer", gig.function(ratios, slopes, columns=4, outputs=2))),
    *before("PCA and KBinsDiscretizer", lambda: pipeline(
        made(DECOMPOSED + "PCA", 2),
        made("preprocessing.KBinsDiscretizer", 3, encode="onehot-dense", quantile_method="averaged_inverted_cdf"))),
    framed("GradientBoosting", boosted),
    framed("a forest", forest),
    framed("XGBoost", xgboost),
)  # fmt: skip
