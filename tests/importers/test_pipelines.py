"""Pipelines on made-up tables: no row changes side at any threshold, and every shape of pipeline is read."""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xgboost
from conformance.binning import quantile_bins
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    BaggingClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    VotingClassifier,
)
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    StandardScaler,
)

import gigrad as gig
from gigrad.errors import InputError
from gigrad.testing import check_importer, thresholds

RNG = np.random.default_rng(0)
X = np.column_stack([RNG.lognormal(0, 1, 1500), RNG.normal(5, 2, 1500), RNG.gamma(2, 2, 1500).round(1)])
Y = np.sin(3 * X[:, 0]) + X[:, 1] * np.cos(X[:, 2])

STEPS = {
    "standard": StandardScaler(),
    "quantiles": QuantileTransformer(n_quantiles=200),
    "normal quantiles": QuantileTransformer(n_quantiles=200, output_distribution="normal"),
    "yeo-johnson": PowerTransformer(),
    "box-cox": make_pipeline(MinMaxScaler((1, 3)), PowerTransformer("box-cox")),
    "log1p": FunctionTransformer(np.log1p),
    "exp of scaled": make_pipeline(StandardScaler(), FunctionTransformer(np.exp)),
    "root of absolute": make_pipeline(FunctionTransformer(np.abs), FunctionTransformer(np.sqrt)),
    "squares": make_pipeline(StandardScaler(), FunctionTransformer(np.square)),
    "bins": quantile_bins(6, encode="onehot-dense"),
    "single bins of scaled": make_pipeline(StandardScaler(), KBinsDiscretizer(9, encode="ordinal", dtype=np.float32)),
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::FutureWarning")
@pytest.mark.parametrize("name", STEPS)
def test_no_row_changes_side_at_any_threshold_or_beside_it(name):
    """Every threshold of boosted trees behind the step, and the three floats on either side of it."""
    model = make_pipeline(STEPS[name], HistGradientBoostingRegressor(max_iter=25)).fit(X, Y)
    graph = gig.import_model(model)
    asked = 0
    for column, edges in thresholds(graph, graph.score).items():
        edges = edges[np.abs(edges) < 1e6]
        values, low, high = [edges], edges, edges
        for _ in range(3):
            low, high = np.nextafter(low, -np.inf), np.nextafter(high, np.inf)
            values += [low, high]
        at = np.concatenate(values)
        rows = X[RNG.integers(0, len(X), len(at))]
        rows[:, column] = at
        np.testing.assert_allclose(graph.predict(rows), model.predict(rows), rtol=1e-12, atol=1e-12)
        asked += len(at)
    assert asked > 100


# ---------------------------------------------------------------- shapes of pipelines


def frame(rows: int = 200) -> tuple[pd.DataFrame, Any]:
    rng = np.random.default_rng(1)
    table = pd.DataFrame(
        {
            "age": rng.integers(18, 80, rows).astype(float),
            "job": rng.choice(["clerk", "cook", "driver"], rows).astype(object),
            "dependents": rng.integers(0, 4, rows),
            "owner": rng.random(rows) > 0.5,
        }
    )
    table.loc[::7, "age"] = np.nan
    y = ((table["job"] == "cook") ^ (table["dependents"] > 1) ^ table["owner"]).astype(int)
    return table, y.to_numpy()


def boosting() -> GradientBoostingClassifier:
    return GradientBoostingClassifier(n_estimators=6, max_depth=3, random_state=0)


def test_a_column_read_as_a_number_and_as_a_label_is_a_number():
    table, y = frame()
    dummies = OneHotEncoder(handle_unknown="ignore")
    steps = ColumnTransformer([("d", dummies, ["dependents", "job"]), ("as it is", "passthrough", ["dependents"])])
    model = make_pipeline(steps, boosting()).fit(table, y)
    assert {c.name: c.kind for c in gig.import_model(model).columns} == {"job": "category", "dependents": "number"}
    check_importer(model, table)


def test_text_read_as_a_number_elsewhere_is_refused():
    table, y = frame()
    table["code"] = np.where(table["owner"], "1", "2")
    steps = ColumnTransformer([("dummies", OneHotEncoder(), ["code"]), ("scaled", StandardScaler(), ["code"])])
    model = make_pipeline(steps, boosting()).fit(table, y)
    with pytest.raises(gig.UnsupportedModelError, match="'code' is read as a number by one step and as text"):
        gig.import_model(model)


def test_an_array_of_objects_is_read_by_position():
    table, y = frame()
    values = table.drop(columns="owner").to_numpy(object)
    codes = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    steps = ColumnTransformer([("n", SimpleImputer(), [0, 2]), ("c", codes, [1])])
    model = make_pipeline(steps, boosting()).fit(values, y)
    graph = gig.import_model(model)
    assert [c.kind for c in graph.columns] == ["number", "category", "number"]
    explained = gig.explain(model, values[:4], values[50:70])
    np.testing.assert_allclose(explained.predictions, model.predict_proba(values[:4])[:, 1])


def test_columns_find_each_other_by_name_inside_of_pandas_pipelines():
    """The votes inside read some of the columns that the steps before them give."""
    table, y = frame()
    blocks = [("job", OrdinalEncoder(), ["job"]), ("age", SimpleImputer(), ["age"])]
    first = ColumnTransformer(blocks, remainder="passthrough", verbose_feature_names_out=False)
    one = make_pipeline(ColumnTransformer([("s", StandardScaler(), ["age", "dependents"])]), LogisticRegression())
    two = make_pipeline(ColumnTransformer([("s", "passthrough", ["job", "owner"])]), boosting())
    votes = VotingClassifier([("one", one), ("two", two)], voting="soft")
    model = make_pipeline(first.set_output(transform="pandas"), votes).fit(table, y)
    graph = gig.import_model(model)
    assert graph.feature_names == tuple(table.columns)
    report = check_importer(model, table, tol=1e-8)
    assert report.rows > len(table)


@pytest.mark.parametrize("library", ["lightgbm", "catboost", "xgboost"])
def test_categories_pass_through_a_pandas_pipeline(library):
    package = import_module(library)
    if library == "xgboost":
        pytest.importorskip("xgboost", "3.1", reason="before 3.1 XGBoost kept no labels of categories in its models")
    table, y = frame()
    table["job"] = table["job"].astype("category")
    blocks = [("scaled", StandardScaler(), ["age"])]
    steps = ColumnTransformer(blocks, remainder="passthrough", verbose_feature_names_out=False)
    end = {
        "lightgbm": lambda: package.LGBMClassifier(n_estimators=6, min_child_samples=5, verbose=-1, n_jobs=1),
        "catboost": lambda: package.CatBoostClassifier(
            iterations=6, depth=3, verbose=0, cat_features=["job"], max_ctr_complexity=1, allow_writing_files=False,
            thread_count=1,
        ),
        "xgboost": lambda: package.XGBClassifier(n_estimators=6, max_depth=3, n_jobs=1, enable_categorical=True),
    }[library]()  # fmt: skip
    model = make_pipeline(steps.set_output(transform="pandas"), end).fit(table, y)
    graph = gig.import_model(model)
    assert {c.name: c.kind for c in graph.columns}["job"] == "category"
    report = check_importer(model, table)
    assert report.rows > len(table)


def test_single_precision_rows_are_asked_in_double():
    model = make_pipeline(StandardScaler(), Ridge()).fit(X, Y)
    single = X[:5].astype(np.float32)
    explained = gig.explain(model, single, X[10:20])
    np.testing.assert_allclose(explained.predictions, model.predict(single.astype(np.float64)), rtol=1e-14)


def test_a_sentinel_of_xgboost_behind_steps():
    """missing=-1 of XGBoost meets what the steps make of the raw numbers, and raw columns that pass untouched."""
    table, y = frame()
    table["age"] = table["age"].fillna(40.0)
    table.loc[::5, "dependents"] = -1
    steps = ColumnTransformer([("scaled", MinMaxScaler((-1, 1)), ["age"]), ("as it is", "passthrough", ["dependents"])])
    model = make_pipeline(steps, xgboost.XGBClassifier(n_estimators=6, max_depth=3, n_jobs=1, missing=-1.0))
    model.fit(table, y)
    columns = {c.name: c for c in gig.import_model(model).columns}
    assert columns["dependents"].missing_value == -1.0
    assert columns["age"].missing_value is None
    report = check_importer(model, table)
    assert report.rows > len(table)


def test_a_saved_pipeline_explains_without_scikit_learn(tmp_path):
    table, y = frame()
    steps = ColumnTransformer(
        [("n", make_pipeline(SimpleImputer(add_indicator=True), QuantileTransformer(n_quantiles=20)), ["age"]),
         ("c", OneHotEncoder(handle_unknown="ignore"), ["job", "owner"])]
    )  # fmt: skip
    model = make_pipeline(steps, LogisticRegression()).fit(table, y)
    explainer = gig.Explainer(model, table.iloc[:20])
    explainer.save(tmp_path / "pipeline.gig")
    again = gig.Explainer.load(tmp_path / "pipeline.gig")(table.iloc[30:34])
    np.testing.assert_allclose(again.values, explainer(table.iloc[30:34]).values, atol=1e-12)


def test_deep_trees_on_dummies_of_bins_stay_within_bounds():
    """A chain of splits in place of every dummy would multiply; the dummies stay nodes, and the answer is the same."""
    wide = np.random.default_rng(2).normal(size=(1500, 12))
    y = (np.sin(3 * wide).sum(axis=1) + np.random.default_rng(3).normal(size=1500) > 0).astype(int)
    bins = quantile_bins(12)
    model = make_pipeline(bins, RandomForestClassifier(3, max_features=3, random_state=0)).fit(wide, y)
    graph = gig.import_model(model)
    assert graph.input not in graph.score.parents  # else the forest was not deep enough to test anything
    report = check_importer(model, wide[:100], pairs=3)
    assert report.rows > 100


# ---------------------------------------------------------------- refusals that say what to do


def test_steps_that_mix_columns_fit_before_trees_and_before_smooth_models():
    for step in (PCA(2), PolynomialFeatures(2)):
        for end in (GradientBoostingRegressor(n_estimators=3), Ridge()):
            model = make_pipeline(StandardScaler(), step, end).fit(X, Y)
            explained = gig.explain(model, X[:3], X[10:20])
            assert np.abs(explained.gap).max() < 1e-12


def test_models_that_cannot_be_explained_say_why():
    from sklearn.neighbors import KNeighborsRegressor
    from sklearn.svm import SVC, LinearSVC

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table, y = frame()
        numbers = table[["dependents", "owner"]].astype(float)
        cases = [
            (KNeighborsRegressor().fit(X, Y), "nearest training rows.*support vector"),
            (VotingClassifier([("a", boosting())], voting="hard").fit(numbers, y), "soft"),
            (BaggingClassifier(LinearSVC(), n_estimators=2).fit(numbers, y), "predict_proba"),
            (make_pipeline(StandardScaler(), "passthrough").fit(numbers, y), "must end in a model"),
            (BaggingClassifier(SVC(), n_estimators=2).fit(numbers, y), "predict_proba"),
        ]
    for model, said in cases:
        with pytest.raises(gig.UnsupportedModelError, match=said):
            gig.import_model(model)
    with pytest.raises(gig.NotFittedError):
        gig.import_model(make_pipeline(StandardScaler(), Ridge()))


def test_a_sparse_table_into_xgboost_inside_of_another_model_is_refused():
    table, y = frame()
    steps = ColumnTransformer([("c", OneHotEncoder(), ["job"])], sparse_threshold=1.0)
    inside = xgboost.XGBClassifier(n_estimators=2, n_jobs=1)
    model = make_pipeline(steps, VotingClassifier([("x", inside)], voting="soft")).fit(table, y)
    with pytest.raises(gig.UnsupportedModelError, match="sparse_output=False"):
        gig.import_model(model)


def test_what_a_selector_leaves_out_is_refused_where_the_steps_before_it_refuse_it():
    """A dropped column earns nothing, and yet the pipeline fails on what its encoder or its selector does not take."""
    y = frame()[1]
    noise = np.random.default_rng(1).normal(size=len(y))
    X = pd.DataFrame({"noise": noise, "signal": y + 0.3 * noise, "shape": ["round", "flat"] * (len(y) // 2)})
    steps = ColumnTransformer(
        [("n", "passthrough", ["noise", "signal"]), ("l", OneHotEncoder(drop="first"), ["shape"])]
    )
    model = make_pipeline(steps, SelectKBest(k=1), boosting()).fit(X, y)
    assert model[1].get_support().tolist() == [False, True, False]
    assert not gig.explain_pairs(model, X.head(2), X.tail(2)).values[:, [0, 2]].any()
    for column, value in (("noise", np.nan), ("shape", "square")):
        with pytest.raises(InputError, match=f"column '{column}'"):
            gig.explain_pairs(model, X.head(2), X.tail(2).assign(**{column: value}))
