"""The rows of pipelines and column transformers in the conformance table: every transformer, before trees and nets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import data
from .binning import quantile_bins
from .row import Fitted, Row

NUMBERS, LABELS = ["amount", "children"], ["purpose", "grade", "owner"]


def parts() -> Any:
    """The names of scikit-learn that the rows use, imported when a row is built."""
    from types import SimpleNamespace

    from sklearn import (
        compose,
        decomposition,
        ensemble,
        feature_selection,
        impute,
        linear_model,
        pipeline,
        preprocessing,
    )

    found: dict[str, Any] = {}
    for module in (compose, decomposition, ensemble, feature_selection, impute, linear_model, pipeline, preprocessing):
        found |= {name: getattr(module, name) for name in module.__all__ if hasattr(module, name)}
    return SimpleNamespace(**found)


def forest(sk: Any) -> Any:
    return sk.GradientBoostingRegressor(n_estimators=6, max_depth=3, random_state=0)


def linear(sk: Any) -> Any:
    return sk.Ridge()


def on_numbers(*steps: Callable[[Any], Any], end: Callable[[Any], Any]) -> Fitted:
    """A pipeline of steps on a plain array, fitted to a number."""
    sk = parts()
    X = np.abs(data.numbers()) if positive in steps else data.numbers()
    return sk.make_pipeline(*(s(sk) for s in steps), end(sk)).fit(X, data.target()), X


def on_frame(
    numbers: Callable[[Any], Any], labels: Callable[[Any], Any], end: Callable[[Any], Any], read: list[str]
) -> Fitted:
    """A ColumnTransformer over a pandas table with text, categories, booleans and missing values."""
    sk = parts()
    blocks = [("numbers", numbers(sk), NUMBERS), ("labels", labels(sk), read)]
    model = sk.make_pipeline(sk.ColumnTransformer(blocks, sparse_threshold=0), end(sk))
    return model.fit(data.frame(), data.frame_target()), data.frame()


def row(options: str, task: str, build: Callable[[], Fitted], model: str = "Pipeline") -> Row:
    return Row("scikit-learn", "sklearn", model, task, options, build)


def step(name: str, make: Callable[[Any], Any], *, before: Callable[[Any], Any] | None = None) -> tuple[Row, Row]:
    """A transformer before trees and before a smooth model."""
    steps = (make,) if before is None else (before, make)
    return (
        row(f"{name}, then trees", "regression", lambda: on_numbers(*steps, end=forest)),
        row(f"{name}, then a linear model", "regression", lambda: on_numbers(*steps, end=linear)),
    )


def scaled(sk: Any) -> Any:
    return sk.StandardScaler()


def best(sk: Any) -> Any:
    return sk.SelectKBest(k=1)


def positive(sk: Any) -> Any:
    return sk.FunctionTransformer(np.log1p)


def filled(sk: Any) -> Any:
    return sk.make_pipeline(sk.SimpleImputer(strategy="median", add_indicator=True), sk.StandardScaler())


def one_hot(sk: Any) -> Any:
    return sk.OneHotEncoder(handle_unknown="ignore", drop="if_binary")


def boosted(sk: Any) -> Any:
    return sk.GradientBoostingClassifier(n_estimators=6, max_depth=3, random_state=0)


def logistic(sk: Any) -> Any:
    return sk.LogisticRegression()


def encoder(name: str, make: Callable[[Any], Any], read: list[str] = LABELS) -> tuple[Row, Row]:
    def before_trees() -> Fitted:
        return on_frame(filled, make, boosted, read)

    def before_linear() -> Fitted:
        return on_frame(filled, make, logistic, read)

    return (
        row(f"{name}, then trees", "binary", before_trees, "ColumnTransformer"),
        row(f"{name}, then a linear model", "binary", before_linear, "ColumnTransformer"),
    )


def rare(sk: Any) -> Any:
    return sk.OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=60, sparse_output=False)


def filled_labels(sk: Any) -> Any:
    return sk.make_pipeline(sk.SimpleImputer(strategy="most_frequent"), sk.OneHotEncoder(drop="first"))


def ordinal(sk: Any) -> Any:
    return sk.OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-2)


def target_mean(sk: Any) -> Any:
    return sk.TargetEncoder(cv=3)


def sparse_into_xgboost() -> Fitted:
    """The zeros of a sparse one-hot table are missing values to XGBoost."""
    import xgboost

    sk = parts()
    blocks = [("labels", sk.OneHotEncoder(handle_unknown="ignore"), LABELS), ("numbers", filled(sk), NUMBERS)]
    end = xgboost.XGBClassifier(n_estimators=6, max_depth=3, n_jobs=1)
    model = sk.make_pipeline(sk.ColumnTransformer(blocks, sparse_threshold=1.0), end)
    model.fit(data.frame(), data.frame_target())
    assert model[0].sparse_output_  # else the row tests nothing
    return model, data.frame()


def hist_from_dtype() -> Fitted:
    sk = parts()
    end = sk.HistGradientBoostingClassifier(max_iter=6, min_samples_leaf=5, categorical_features="from_dtype")
    blocks = [("scaled", sk.StandardScaler(), ["amount"])]
    steps = sk.ColumnTransformer(blocks, remainder="passthrough", verbose_feature_names_out=False)
    model = sk.make_pipeline(steps.set_output(transform="pandas"), end)
    return model.fit(data.frame(), data.frame_target()), data.frame()


def nested() -> Fitted:
    """Column transformers and unions inside of each other, columns by position, name and kind; a column dropped."""
    sk = parts()
    bins = quantile_bins(3, encode="onehot-dense")
    numbers = sk.FeatureUnion([("scaled", filled(sk)), ("bins", sk.make_pipeline(sk.SimpleImputer(), bins))])
    inner = sk.ColumnTransformer([("n", numbers, [0])], remainder="drop")
    blocks = [
        ("inner", inner, sk.make_column_selector(dtype_include="number")),
        ("labels", one_hot(sk), ["purpose", "owner"]),
        ("nothing", "drop", ["grade"]),
    ]
    model = sk.Pipeline(
        [("columns", sk.ColumnTransformer(blocks)), ("pass", "passthrough"), ("best", sk.SelectKBest(k=6)),
         ("end", sk.Pipeline([("scale", sk.MaxAbsScaler()), ("model", boosted(sk))]))]
    )  # fmt: skip
    return model.fit(data.frame(), data.frame_target()), data.frame()


ROWS = (
    *step("StandardScaler", scaled),
    *step("MinMaxScaler(clip)", lambda sk: sk.MinMaxScaler(clip=True)),
    *step("MaxAbsScaler", lambda sk: sk.MaxAbsScaler()),
    *step("RobustScaler", lambda sk: sk.RobustScaler()),
    *step("QuantileTransformer", lambda sk: sk.QuantileTransformer(n_quantiles=8), before=best),
    *step("QuantileTransformer(normal)", lambda sk: sk.QuantileTransformer(
        n_quantiles=6, output_distribution="normal"), before=best),
    *step("PowerTransformer", lambda sk: sk.PowerTransformer()),
    *step("FunctionTransformer(np.log1p)", positive),
    *step("FunctionTransformer(np.square)", lambda sk: sk.FunctionTransformer(np.square)),
    *step("KBinsDiscretizer", lambda sk: quantile_bins(4)),
    *step("KBinsDiscretizer(ordinal)", lambda sk: sk.KBinsDiscretizer(4, encode="ordinal", strategy="uniform"),
          before=scaled),
    *step("SimpleImputer(missing_values=0)", lambda sk: sk.SimpleImputer(missing_values=0, add_indicator=True)),
    *step("Binarizer", lambda sk: sk.Binarizer(threshold=0.3)),
    *step("SelectKBest", lambda sk: sk.SelectKBest(k=2), before=scaled),
    *step("VarianceThreshold", lambda sk: sk.VarianceThreshold()),
    *step("SplineTransformer(degree=0)", lambda sk: sk.SplineTransformer(degree=0, extrapolation="linear")),
    *encoder("OneHotEncoder", one_hot),
    *encoder("OneHotEncoder with infrequent labels", rare),
    *encoder("SimpleImputer and OneHotEncoder(drop)", filled_labels, ["purpose"]),
    *encoder("OrdinalEncoder", ordinal),
    *encoder("TargetEncoder", target_mean),
    row("a sparse table into XGBoost", "binary", sparse_into_xgboost, "ColumnTransformer"),
    row("HistGradientBoosting with categories from_dtype", "binary", hist_from_dtype, "ColumnTransformer"),
    row("nested, with FeatureUnion, drop and passthrough", "binary", nested, "ColumnTransformer"),
)  # fmt: skip
