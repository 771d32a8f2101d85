"""The fitted objects that teams have, on real tables with raw strings and missing values."""

from __future__ import annotations

import warnings
from typing import Any

import lightgbm
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from conformance.binning import quantile_bins
from real_tables import real_table
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    OneHotEncoder,
    OrdinalEncoder,
    PowerTransformer,
    QuantileTransformer,
    SplineTransformer,
    StandardScaler,
    TargetEncoder,
)

import gigrad as gig
from gigrad._io.tables import read_rows
from gigrad.testing import brute_force, check_importer

pytestmark = [pytest.mark.data, pytest.mark.filterwarnings("ignore::UserWarning:sklearn")]

NUMBERS = make_column_selector(dtype_include="number")
LABELS = make_column_selector(dtype_include=["category", "object", "string"])
TARGETS = {
    "adult": ("income", "split"),
    "german_credit": ("credit_risk",),
    "taiwan_credit_default": ("default_payment_next_month",),
    "lending_club_2007_2011": ("loan_status",),
}


def table(name: str, rows: int = 600) -> tuple[Any, Any]:
    """Some rows of a real table and a 0/1 target; dates are left out."""
    whole = real_table(name)
    some = whole.sample(min(rows, len(whole)), random_state=0).reset_index(drop=True)
    target, *others = TARGETS[name]
    y = some[target].astype(str)
    X = some.drop(columns=[target, *others]).select_dtypes(include=["number", "category"])
    return X, (y == y.max()).astype(int).to_numpy()


def numbers(*steps: Any) -> Any:
    return make_pipeline(SimpleImputer(strategy="median", add_indicator=True), *steps)


def columns(number_steps: Any, label_steps: Any, **options: Any) -> ColumnTransformer:
    return ColumnTransformer([("numbers", number_steps, NUMBERS), ("labels", label_steps, LABELS)], **options)


def dummies(**options: Any) -> OneHotEncoder:
    return OneHotEncoder(handle_unknown="ignore", min_frequency=15, **options)


def codes() -> OrdinalEncoder:
    return OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-2)


def boosted(**options: Any) -> Any:
    from xgboost import XGBClassifier

    return XGBClassifier(n_estimators=12, max_depth=3, n_jobs=1, **options)


def fitted(model: Any, X: Any, y: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y)


TREES = {
    "adult, sparse dummies into XGBoost": ("adult", lambda: make_pipeline(columns(numbers(), dummies()), boosted())),
    "adult, target means into boosting": (
        "adult",
        lambda: make_pipeline(
            columns(numbers(PowerTransformer()), TargetEncoder(cv=3)), GradientBoostingClassifier(n_estimators=10)
        ),
    ),
    "german, codes and quantiles into a forest": (
        "german_credit",
        lambda: make_pipeline(
            columns(numbers(QuantileTransformer(n_quantiles=60)), codes()),
            RandomForestClassifier(8, max_depth=5, random_state=0),
        ),
    ),
    "german, bins and the best dummies into boosting": (
        "german_credit",
        lambda: make_pipeline(
            columns(quantile_bins(4), dummies(drop="first")),
            SelectKBest(k=20),
            GradientBoostingClassifier(n_estimators=10),
        ),
    ),
    "lending club, roots and dummies into XGBoost": (
        "lending_club_2007_2011",
        lambda: make_pipeline(
            columns(numbers(FunctionTransformer(np.sqrt)), dummies(sparse_output=False), sparse_threshold=0), boosted()
        ),
    ),
    "taiwan, scaled into boosting": (
        "taiwan_credit_default",
        lambda: make_pipeline(StandardScaler(), HistGradientBoostingClassifier(max_iter=10)),
    ),
}


@pytest.mark.parametrize("name", TREES)
def test_trees_behind_real_column_transformers_are_exact(name):
    source, make = TREES[name]
    X, y = table(source)
    model = fitted(make(), X, y)
    report = check_importer(model, X.iloc[:150], pairs=3)
    assert report.rows > 150
    np.testing.assert_allclose(
        gig.import_model(model).predict(X), model.predict_proba(X)[:, 1], rtol=1e-6, atol=1e-7
    )  # XGBoost itself adds in float32


SMOOTH = {
    "adult, dummies into logistic regression": (
        "adult",
        lambda: make_pipeline(columns(numbers(StandardScaler()), dummies()), LogisticRegression(max_iter=500)),
    ),
    "german, splines and codes into a net": (
        "german_credit",
        lambda: make_pipeline(
            columns(numbers(StandardScaler(), SplineTransformer(n_knots=3)), dummies(sparse_output=False)),
            MLPClassifier((5,), activation="tanh", max_iter=30, random_state=0),
        ),
    ),
}


@pytest.mark.parametrize("name", SMOOTH)
def test_smooth_models_behind_real_column_transformers_are_exact(name):
    source, make = SMOOTH[name]
    X, y = table(source)
    model = fitted(make(), X, y)
    report = check_importer(model, X.iloc[:100], pairs=2, tol=1e-7)
    assert report.rows > 100


# ---------------------------------------------------------------- compositions of all of it


def parts() -> list[tuple[str, Any]]:
    """XGBoost on sparse dummies, a net on dense ones, and a calibrated forest on codes, each from the raw table."""
    net = MLPClassifier((5,), max_iter=40, random_state=0)
    forest = RandomForestClassifier(5, max_depth=4, random_state=0)
    return [
        ("xgboost", make_pipeline(columns(numbers(StandardScaler()), dummies()), boosted())),
        ("net", make_pipeline(columns(numbers(StandardScaler()), dummies(sparse_output=False)), net)),
        ("forest", CalibratedClassifierCV(make_pipeline(columns(numbers(), codes()), forest), method="isotonic", cv=2)),
    ]


@pytest.fixture(scope="module")
def adult() -> tuple[Any, Any]:
    X, y = table("adult", 900)
    X.loc[::9, "age"] = np.nan
    return X, y


@pytest.mark.parametrize(
    "head", [LogisticRegression(), GradientBoostingClassifier(n_estimators=6, max_depth=2)], ids=["linear", "boosting"]
)
def test_a_stack_of_three_worlds_over_strings_and_missing_values(adult, head):
    X, y = adult
    model = fitted(StackingClassifier(parts(), head, cv=2), X, y)
    explained = gig.explain(model, X.iloc[:4], X.iloc[400:408], tol=1e-8, n_threads=1)
    np.testing.assert_allclose(explained.predictions, model.predict_proba(X.iloc[:4])[:, 1], rtol=1e-12)
    assert explained.feature_names == tuple(X.columns)
    whole = explained.base_values + explained.values.sum(axis=1) + explained.gap
    np.testing.assert_allclose(whole, explained.predictions, rtol=1e-12)
    assert np.abs(explained.gap).max() < 1e-6  # XGBoost itself adds in float32


def test_a_stack_equals_the_definition(adult):
    X, y = adult
    model = fitted(StackingClassifier(parts(), LogisticRegression(), cv=2), X, y)
    graph = gig.import_model(model)
    end = X.iloc[[3]].reset_index(drop=True)
    start = end.copy()
    for name in ("age", "education", "hours_per_week", "occupation"):
        start[name] = X[name].iloc[[40]].to_numpy()
    got = gig.explain_pairs(model, start, end, tol=1e-9, discrete=()).values[0]
    encoded = [read_rows(t, graph, what="X").matrix[0] for t in (start, end)]
    want = brute_force(graph, *encoded)[:, 0]
    np.testing.assert_allclose(got, want, atol=1e-8)
    assert np.count_nonzero(np.abs(want) > 1e-5) >= 3


def test_a_calibrated_lightgbm_on_categories(adult):
    X, y = adult
    inside = lightgbm.LGBMClassifier(n_estimators=8, min_child_samples=5, verbose=-1, n_jobs=1)
    model = fitted(CalibratedClassifierCV(inside, method="isotonic", cv=2), X, y)
    report = check_importer(model, X.iloc[:120], pairs=3)
    assert report.rows > 120


def test_hist_gradient_boosting_takes_categories_from_the_frame(adult):
    X, y = adult
    steps = ColumnTransformer([("scaled", StandardScaler(), ["age", "capital_gain"])], remainder="passthrough")
    end = HistGradientBoostingClassifier(max_iter=8, categorical_features="from_dtype")
    model = fitted(make_pipeline(steps.set_output(transform="pandas"), end), X, y)
    report = check_importer(model, X.iloc[:120], pairs=3)
    assert report.rows > 120
    kinds = {c.name: c.kind for c in gig.import_model(model).columns}
    assert kinds["occupation"] == "category"
    assert kinds["age"] == "number"


def test_votes_over_pipelines_that_read_other_columns(adult):
    X, y = adult
    one = make_pipeline(ColumnTransformer([("n", StandardScaler(), ["capital_gain", "education_num"])]), boosted())
    two = make_pipeline(columns(numbers(StandardScaler()), dummies()), LogisticRegression(max_iter=300))
    model = fitted(VotingClassifier([("one", one), ("two", two)], voting="soft"), X, y)
    explained = gig.explain(model, X.iloc[:3], X.iloc[50:60])
    np.testing.assert_allclose(explained.predictions, model.predict_proba(X.iloc[:3])[:, 1], rtol=1e-6)
    assert explained.feature_names == tuple(X.columns)


# ---------------------------------------------------------------- tables of every kind


@pytest.fixture(scope="module")
def pipeline(adult) -> Any:
    X, y = adult
    return fitted(make_pipeline(columns(numbers(), dummies()), GradientBoostingClassifier(n_estimators=8)), X, y)


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow", "object", "nullable"])
def test_tables_in_another_order_with_more_columns_give_the_same(adult, pipeline, kind):
    X, _ = adult
    some = X.iloc[:12]
    reference = X.iloc[100:110]
    want = gig.explain(pipeline, some, reference)
    other = some[[*X.columns[::-1]]].assign(note="not of the model")
    if kind == "polars":
        other = pl.from_pandas(other)
    elif kind == "pyarrow":
        other = pa.Table.from_pandas(other)
    elif kind == "object":
        other = other.astype(object).where(other.notna(), None)
    elif kind == "nullable":
        other = other.astype({n: "string" for n in other.columns if other[n].dtype == "category"}).convert_dtypes()
    before = other.copy() if kind in ("pandas", "object", "nullable") else None
    got = gig.explain(pipeline, other, reference)
    if before is not None:
        pd.testing.assert_frame_equal(other, before)  # the user's table stays as it was
    np.testing.assert_array_equal(got.values, want.values)
    np.testing.assert_array_equal(got.predictions, pipeline.predict_proba(some)[:, 1])
    assert got.feature_names == want.feature_names


def test_columns_that_the_pipeline_drops_may_be_absent(adult):
    X, y = adult
    steps = ColumnTransformer([("numbers", numbers(), ["age", "education_num"])])
    model = fitted(make_pipeline(steps, GradientBoostingClassifier(n_estimators=4)), X.assign(y=y), y)
    explained = gig.explain(model, X[["education_num", "age"]].iloc[:3], X.iloc[10:20])
    assert explained.feature_names == ("age", "education_num")


def test_sparse_rows_are_refused_with_what_to_do(adult):
    from scipy.sparse import csr_matrix

    X, y = adult
    values = np.nan_to_num(X[["age", "education_num"]].to_numpy(float))
    model = make_pipeline(StandardScaler(with_mean=False), boosted()).fit(csr_matrix(values), y)
    with pytest.raises(gig.InputError, match=r"dense table.*toarray"):
        gig.explain(model, csr_matrix(values[:3]), values[:10])
