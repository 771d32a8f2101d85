"""Small models of every library whose credits are known: interactions that two columns complete together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from rewritten import Put, rewritten

import gigrad as gig


def xgboost(**options: Any) -> Any:
    import xgboost

    return xgboost.XGBRegressor(
        n_estimators=1, learning_rate=1.0, reg_lambda=0.0, min_child_weight=0, base_score=0.0, max_depth=2, n_jobs=1,
        **options,
    )  # fmt: skip


def lightgbm(**options: Any) -> Any:
    import lightgbm

    return lightgbm.LGBMRegressor(
        n_estimators=1, learning_rate=1.0, reg_lambda=0.0, min_child_samples=1, min_child_weight=0, num_leaves=4,
        min_data_per_group=1, cat_smooth=0, cat_l2=0, boost_from_average=False, verbose=-1, n_jobs=1, **options,
    )  # fmt: skip


def catboost(**options: Any) -> Any:
    import catboost

    return catboost.CatBoostRegressor(
        iterations=1, learning_rate=1.0, l2_leaf_reg=0.0, depth=2, boost_from_average=False, verbose=0,
        allow_writing_files=False, thread_count=1, random_strength=0, bootstrap_type="No", one_hot_max_size=10,
        **options,
    )  # fmt: skip


def histogram_boosting(**options: Any) -> Any:
    from sklearn.ensemble import HistGradientBoostingRegressor

    return HistGradientBoostingRegressor(
        max_iter=1, learning_rate=1.0, min_samples_leaf=1, max_leaf_nodes=4, early_stopping=False, **options
    )


def tree(**options: Any) -> Any:
    from sklearn.tree import DecisionTreeRegressor

    return DecisionTreeRegressor(random_state=0, **options)


NUMERIC: dict[str, Any] = {
    "xgboost": xgboost, "lightgbm": lightgbm, "catboost": catboost, "histogram boosting": histogram_boosting,
    "tree": tree,
}  # fmt: skip

# ---------------------------------------------------------------- a flag and a category


def flag_and_region(library: str) -> tuple[Any, Any]:
    """y = 100 if flag and region = B: a model that knows it exactly, and the table of the four rows."""
    cells = pd.DataFrame({"flag": [0.0, 0.0, 1.0, 1.0] * 10, "region": ["A", "B", "A", "B"] * 10})
    y = 100.0 * ((cells["flag"] == 1) & (cells["region"] == "B"))
    if library != "catboost":
        cells["region"] = cells["region"].astype("category")
    options: dict[str, dict[str, Any]] = {
        "xgboost": {"enable_categorical": True},
        "catboost": {"cat_features": ["region"]},
        "histogram boosting": {"categorical_features": "from_dtype"},
    }
    return NUMERIC[library](**options.get(library, {})).fit(cells, y), cells.iloc[:4]


@pytest.mark.parametrize("library", ["xgboost", "lightgbm", "catboost", "histogram boosting"])
def test_a_flag_and_a_category_share_what_they_complete_together(library: str) -> None:
    model, cells = flag_and_region(library)
    np.testing.assert_allclose(model.predict(cells), [0, 0, 0, 100], atol=1e-4)
    for e in (
        gig.explain(model, cells.iloc[[3]], cells.iloc[[0]]),
        gig.explain_pairs(model, cells.iloc[[0]], cells.iloc[[3]]),
        gig.explain_pairs(model, cells.iloc[[0]], cells.iloc[[3]], discrete=["flag"]),
    ):
        np.testing.assert_allclose(e.values, [[50, 50]], atol=1e-4)


# ---------------------------------------------------------------- corners of numbers


def test_the_tree_on_whole_numbers_of_different_spans() -> None:
    model = tree().fit([[0, 0], [0, 3], [1, 0], [1, 3]], [0, 0, 0, 1])
    for discrete in (None, (), ["x0", "x1"]):
        e = gig.explain_pairs(model, np.array([[0.0, 0.0]]), np.array([[1.0, 3.0]]), discrete=discrete)
        np.testing.assert_allclose(e.values, [[0.5, 0.5]], rtol=0, atol=1e-15)


# Two columns, each from one number to another, and a threshold on each that both pass at the same part of their way.
MEETINGS = [
    ((2, 4), (4, 2), (3, 3)),
    ((0, 4), (8, 0), (1, 6)),
    ((0, 3), (0, 9), (1, 3)),
    ((5, -7), (-1, 2), (1, 0)),
    ((0.1, 0.3), (0.3, 0.1), (0.2, 0.2)),
    ((0.1, 0.5), (1.0, 0.2), (0.2, 0.8)),
    ((0.0, 0.9), (2.1, 0.3), (0.3, 1.5)),
    ((0.7, 1.6), (0.4, -0.5), (1.0, 0.1)),
    ((0.01, 0.09), (1.07, 1.03), (0.03, 1.06)),
    ((12.34, 12.94), (-0.5, 0.25), (12.46, -0.35)),
    ((0.29, 0.57), (57.9, 29.9), (0.36, 50.9)),
]


def both_beyond(library: str, ends: Any, places: Any) -> Any:
    """100 where both columns are on the side of their ends, with the splits at the given numbers."""
    low_high = [sorted(pair) for pair in ends]
    cells = np.array([[a, b] for a in low_high[0] for b in low_high[1]] * 10, float)
    y = 100.0 * ((cells[:, 0] == ends[0][1]) & (cells[:, 1] == ends[1][1]))
    return rewritten(NUMERIC[library]().fit(cells, y), Put.at(dict(enumerate(places))))


@pytest.mark.parametrize("library", NUMERIC)
@pytest.mark.parametrize(("first", "second", "places"), MEETINGS)
def test_numbers_meet_at_corners(library: str, first: Any, second: Any, places: Any) -> None:
    """In either direction, over different spans, with the numbers of both ends in float64 or in float32."""
    ends = (first, second)
    model = both_beyond(library, ends, places)
    start, end = (np.array([[first[i], second[i]]], float) for i in (0, 1))
    e = gig.explain_pairs(model, start, end, discrete=())
    np.testing.assert_allclose(e.values, [[50, 50]], rtol=0, atol=1e-4)
    back = gig.explain_pairs(model, end, start, discrete=())
    np.testing.assert_allclose(back.values, -e.values, rtol=0, atol=1e-9)
    if library not in ("lightgbm", "histogram boosting"):  # these read float64: 0.1 in float32 is another number
        single = gig.explain_pairs(model, start.astype(np.float32), end.astype(np.float32), discrete=())
        np.testing.assert_allclose(single.values, e.values, rtol=0, atol=1e-9)


def behind(scaler: str, model: Any) -> Any:
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MinMaxScaler, StandardScaler

    with_mean = "LGBM" not in type(model).__name__  # it splits negative numbers from positive ones at zero itself
    return make_pipeline(
        StandardScaler(with_mean=with_mean) if scaler == "standard" else MinMaxScaler((0.3, 2.9)), model
    )


def four_cells(first: Any, second: Any) -> tuple[Any, Any]:
    """Rows of two numbers each in two columns, and 100 where both are where the path ends."""
    cells = np.array([[a, b] for a in sorted(first) for b in sorted(second)] * 10, float)
    cells = np.concatenate([cells, cells[:7]])  # so that means are no round numbers
    return cells, 100.0 * ((cells[:, 0] == first[1]) & (cells[:, 1] == second[1]))


@pytest.mark.parametrize("scaler", ["standard", "min max"])
@pytest.mark.parametrize("library", NUMERIC)
def test_numbers_meet_at_corners_behind_scalers(library: str, scaler: str) -> None:
    """The libraries put their thresholds in the middle themselves, of the numbers that the scaler gives."""
    known: dict[str, dict[str, Any]] = {"xgboost": {"tree_method": "exact"}, "lightgbm": {"min_data_in_bin": 1}}
    options = known.get(library, {})
    for first, second, _ in MEETINGS:
        if library == "lightgbm" and scaler == "standard" and min(*first, *second) <= 0:
            continue
        model = behind(scaler, NUMERIC[library](**options)).fit(*four_cells(first, second))
        start, end = (np.array([[first[i], second[i]]], float) for i in (0, 1))
        e = gig.explain_pairs(model, start, end, discrete=())
        np.testing.assert_allclose(e.values, [[50, 50]], rtol=0, atol=1e-4, err_msg=f"{first} {second}")


@pytest.mark.parametrize("scaler", ["standard", "min max"])
@pytest.mark.parametrize("library", NUMERIC)
def test_flags_change_at_one_half_behind_scalers(library: str, scaler: str) -> None:
    """With the thresholds that libraries choose: XGBoost's is the scaled one itself."""
    for first, second in (((0, 1), (0, 1)), ((0, 1), (1, 0)), ((1, 0), (3, 2)), ((0, 1), (-7, -6))):
        cells, y = four_cells(first, second)
        model = behind(scaler, NUMERIC[library]()).fit(cells, y)
        start, end = (np.array([[first[i], second[i]]], float) for i in (0, 1))
        for reference, discrete in ((start.astype(int), None), (start, ["x0", "x1"])):
            e = gig.explain(model, end, reference, discrete=discrete)
            np.testing.assert_allclose(e.values, [[50, 50]], rtol=0, atol=1e-4, err_msg=f"{first} {second}")
