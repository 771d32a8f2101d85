"""Missing values behind steps that pass them on: no step may turn one column's NaN into another's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    SplineTransformer,
    StandardScaler,
)

import gigrad as gig

RNG = np.random.default_rng(0)
X = RNG.lognormal(0, 1, size=(60, 3))
X[::7, 1] = X[::9, 0] = np.nan
Y = RNG.normal(size=60)
ENDS, STARTS = X[:10], X[10:30]

PASS_MISSING_ON = {
    "nothing": [],
    "standard": [StandardScaler()],
    "standard and clipped": [StandardScaler(), MinMaxScaler(clip=True)],
    "largest": [MaxAbsScaler()],
    "robust": [RobustScaler()],
    "power": [PowerTransformer()],
    "box-cox": [PowerTransformer("box-cox")],
    "quantiles": [QuantileTransformer(n_quantiles=10)],
    "normal quantiles": [QuantileTransformer(n_quantiles=10, output_distribution="normal")],
    "tanh": [FunctionTransformer(np.tanh)],
    "square root": [FunctionTransformer(np.sqrt)],
    "log of large numbers": [MinMaxScaler((1e3, 2e3)), FunctionTransformer(np.log)],
}


@pytest.mark.parametrize("before", PASS_MISSING_ON.values(), ids=PASS_MISSING_ON)
def test_a_linear_model_behind_an_imputer_gives_each_column_its_own_difference(before: list[Any]) -> None:
    model = make_pipeline(*before, SimpleImputer(), Ridge()).fit(X, Y)
    explained = gig.explain(model, ENDS, STARTS)
    moved = model[:-1].transform(ENDS) - model[:-1].transform(STARTS).mean(axis=0)
    np.testing.assert_allclose(explained.values, moved * model[-1].coef_, atol=1e-9)
    np.testing.assert_array_equal(explained.predictions, model.predict(ENDS))


@pytest.mark.parametrize("before", PASS_MISSING_ON.values(), ids=PASS_MISSING_ON)
@pytest.mark.parametrize(
    "behind",
    [
        [PolynomialFeatures()],
        [PolynomialFeatures(1)],
        [PolynomialFeatures(2, interaction_only=True), StandardScaler()],
        [SplineTransformer(n_knots=4)],
    ],
    ids=["squares", "bias", "products", "splines"],
)
def test_what_follows_an_imputer_adds_up(before: list[Any], behind: list[Any]) -> None:
    model = make_pipeline(*before, SimpleImputer(add_indicator=True), *behind, Ridge()).fit(X, Y)
    explained = gig.explain(model, ENDS, STARTS)
    assert np.abs(explained.gap).max() < 1e-6
    assert np.isfinite(explained.values).all()


def test_a_fill_at_which_a_step_is_infinitely_steep() -> None:
    zero = SimpleImputer(strategy="constant", fill_value=0.0)
    model = make_pipeline(FunctionTransformer(np.sqrt), zero, PolynomialFeatures(), Ridge()).fit(X, Y)
    explained = gig.explain(model, ENDS, STARTS)
    assert np.abs(explained.gap).max() < 1e-6


def test_a_missing_value_changes_at_once() -> None:
    """From missing to 2 the product of two columns jumps from fill * b to 2 b where b is half-way."""
    table = np.array([[1.0, 0.0], [3.0, 1.0], [np.nan, 2.0], [np.nan, 4.0]])
    model = make_pipeline(
        StandardScaler(with_mean=False, with_std=False), SimpleImputer(), PolynomialFeatures(2), Ridge(1e-12)
    ).fit(table, [0.0, 3.0, 4.0, 8.0])  # a missing first column is read as 2, and y is the product of both
    model[-1].coef_, model[-1].intercept_ = np.array([0.0, 0.0, 0.0, 0.0, 1.0, 0.0]), 0.0
    explained = gig.explain_pairs(model, [[np.nan, 1.0]], [[5.0, 3.0]])
    # b goes from 1 to 3: the jump is (5 - 2) * 2 at the middle; b's own share is 2 * 1 before it and 5 * 1 after it
    np.testing.assert_allclose(explained.values, [[6.0, 7.0]], atol=1e-6)


def test_constants_beside_missing_values_in_a_net_and_in_a_file(tmp_path: Any) -> None:
    net = MLPRegressor(hidden_layer_sizes=(4,), activation="tanh", max_iter=20, random_state=0)
    model = make_pipeline(SimpleImputer(), PolynomialFeatures(), StandardScaler(), net).fit(X, Y)
    explainer = gig.Explainer(model, STARTS)
    explained = explainer(ENDS)
    assert np.abs(explained.gap).max() < 1e-6
    explainer.save(tmp_path / "model.gig")
    np.testing.assert_array_equal(gig.Explainer.load(tmp_path / "model.gig")(ENDS).values, explained.values)


def test_steps_that_take_no_number_are_refused() -> None:
    steps = [FunctionTransformer(np.tanh), MinMaxScaler((-3, -2)), FunctionTransformer(np.tanh)]
    model = make_pipeline(*steps, FunctionTransformer(np.sqrt), SimpleImputer(keep_empty_features=True), Ridge())
    with np.errstate(invalid="ignore"):
        model.fit(X, Y)
    with pytest.raises(gig.UnsupportedModelError, match="Put SimpleImputer first"):
        gig.import_model(model)


def test_a_missing_label_beside_a_number_has_a_credit_in_the_margin() -> None:
    """The number is read as it is, in a term of all columns, of which the label is one with weight zero."""
    import pandas as pd
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    X = pd.DataFrame(
        {"home": ["own", "rent", np.nan, "own", "rent", np.nan], "age": [20.0, 30.0, 40.0, 50.0, 60.0, 70.0]}
    )
    encode = make_column_transformer((OneHotEncoder(), ["home"]), remainder="passthrough")
    model = make_pipeline(encode, LogisticRegression()).fit(X, [0, 1, 0, 1, 0, 1])
    explained = gig.explain_pairs(model, X[:3], X[2:5], output="margin")
    own, rent, gone, age = model[-1].coef_[0]
    expected = [[gone - own, 20 * age], [own - rent, 20 * age], [rent - gone, 20 * age]]
    np.testing.assert_allclose(explained.values, expected, rtol=1e-12)
