"""Tables of small integers, half precision and foreign byte order: what NumPy makes of them is what is explained."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xgboost
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, PolynomialFeatures, StandardScaler
from sklearn.tree import DecisionTreeRegressor

import gigrad as gig

RNG = np.random.default_rng(0)
COUNTS = RNG.integers(0, 50, size=(60, 3))
Y = RNG.normal(size=60)


def tables(dtype: Any) -> list[Any]:
    array = COUNTS.astype(dtype)
    return [array, pd.DataFrame({name: array[:, j] for j, name in enumerate("abc")})]


@pytest.mark.parametrize("frame", [0, 1], ids=["array", "frame"])
@pytest.mark.parametrize("dtype", ["i2", "u2", "i4", "i8", "f4", ">f8", ">f4", ">i4", ">i2"])
@pytest.mark.parametrize("function", [np.log1p, np.sqrt, np.tanh], ids=lambda f: f.__name__)
def test_functions_of_narrow_columns_are_explained_to_single_precision(dtype: str, function: Any, frame: int) -> None:
    table = tables(dtype)[frame]
    for end in (LinearRegression(), DecisionTreeRegressor(max_depth=4, random_state=0)):
        model = make_pipeline(FunctionTransformer(function), end).fit(table, Y)
        explained = gig.explain(model, table[:8], table[8:20])
        np.testing.assert_allclose(explained.predictions, model.predict(table[:8]), rtol=1e-5, atol=1e-6)
        in_double = gig.explain(model, COUNTS[:8].astype(float), COUNTS[8:20].astype(float))
        np.testing.assert_allclose(explained.values, in_double.values, atol=1e-12)
        assert np.abs(explained.gap).max() < 1e-6


@pytest.mark.parametrize("frame", [0, 1], ids=["array", "frame"])
@pytest.mark.parametrize("dtype", ["i1", "u1", "?", "f2"])
def test_half_precision_is_said_where_it_makes_a_difference(dtype: str, frame: int) -> None:
    table = tables(dtype)[frame]
    model = make_pipeline(FunctionTransformer(np.log1p), LinearRegression()).fit(table, Y)
    with pytest.warns(gig.AccuracyWarning, match=r"LinearRegression computes in low precision.*up to \d"):
        explained = gig.explain(model, table[:8], table[8:20])
    np.testing.assert_allclose(explained.predictions, model.predict(table[:8]), rtol=1e-3, atol=1e-4)
    assert 1e-6 < np.abs(explained.gap).max() < 1e-3
    trees = make_pipeline(FunctionTransformer(np.log1p), DecisionTreeRegressor(max_depth=4, random_state=0))
    explained = gig.explain(trees.fit(table, Y), table[:8], table[8:20])  # no value changes side: nothing to say
    assert np.abs(explained.gap).max() < 1e-12


@pytest.mark.parametrize("frame", [0, 1], ids=["array", "frame"])
@pytest.mark.parametrize("dtype", ["i1", "u1"])
def test_overflow_is_refused(dtype: str, frame: int) -> None:
    table = tables(dtype)[frame]
    model = make_pipeline(FunctionTransformer(np.square), LinearRegression()).fit(table, Y)
    with pytest.raises(gig.InputError, match=r"must not overflow.*(a|x0)' behind them.*Convert the table to float64"):
        gig.explain(model, table[:8], table[8:20])


def test_a_value_that_rounding_moves_over_a_threshold_is_said() -> None:
    """The root of 2 is 1.41406 in half precision, in which NumPy takes it for int8, and 1.41421 in double."""
    model = make_pipeline(FunctionTransformer(np.sqrt), DecisionTreeRegressor(max_depth=1))
    model.fit(np.array([[0.0], [2.0]]), [0.0, 1.0])
    model[-1].tree_.threshold[0] = 1.4141
    table = np.array([[2], [9]], np.int8)
    assert model.predict(table).tolist() == [0.0, 1.0]
    with pytest.warns(gig.AccuracyWarning, match=r"low precision.*up to 1 \(row 0\)"):
        explained = gig.explain_pairs(model, table[:1], table[1:])
    assert explained.gap.tolist() == [1.0]
    assert gig.explain_pairs(model, table[:1].astype(float), table[1:].astype(float)).gap.tolist() == [0.0]


def test_trees_over_products_in_half_precision() -> None:
    """What trees read of several columns is compared in double precision, as the trees are."""
    table = COUNTS.astype("f2")
    model = make_pipeline(PolynomialFeatures(2), StandardScaler(), DecisionTreeRegressor(max_depth=3, random_state=0))
    model.fit(table, COUNTS[:, 0] * COUNTS[:, 1])
    explained = gig.explain(model, table[:8], table[8:20])
    in_double = gig.explain(model, table[:8].astype(float), table[8:20].astype(float))
    np.testing.assert_array_equal(explained.values, in_double.values)
    np.testing.assert_array_equal(explained.predictions, model.predict(table[:8]))


@pytest.mark.parametrize("dtype", [">f8", ">f4", ">i8", ">i2"])
def test_xgboost_gets_numbers_in_its_own_byte_order(dtype: str) -> None:
    model = xgboost.XGBRegressor(n_estimators=5, n_jobs=1).fit(COUNTS.astype(float), Y)
    native = gig.explain(model, COUNTS[:8].astype(float), COUNTS[8:20].astype(float))
    for table in tables(dtype):
        explained = gig.explain(model, table[:8], table[8:20])
        np.testing.assert_array_equal(explained.values, native.values)
        np.testing.assert_array_equal(explained.predictions, native.predictions)


def test_double_precision_is_asked_once() -> None:
    """Tables in double precision pay nothing for this: the steps see each row as often as before."""
    seen: list[int] = []

    class Counting(StandardScaler):
        def transform(self, X: Any, copy: bool | None = None) -> Any:
            seen.append(len(X))
            return super().transform(X, copy=copy)

    model = make_pipeline(Counting(), LinearRegression()).fit(COUNTS.astype(float), Y)
    seen.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gig.explain(model, COUNTS[:8].astype(float), COUNTS[8:20].astype(float))
    assert sorted(seen) == [8, 8, 12, 12]  # once for the prediction, once for its scale
