"""Ordered pandas categories of LightGBM models: read where the model file leaves one choice, else refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pandas as pd
import pytest

import gigrad as gig
from gigrad.importers.lightgbm.labels import labelled_columns
from gigrad.testing import check_importer

SIZES = ["small", "middle", "large"]
RNG = np.random.default_rng(0)
ROWS = 300


def table(**more: Any) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "income": RNG.normal(size=ROWS),
            "colour": pd.Categorical(RNG.choice(list("rgb"), ROWS), categories=list("bgr")),
            "size": pd.Categorical(RNG.choice(SIZES, ROWS), categories=SIZES, ordered=True),
            **more,
        }
    )


def fitted(X: pd.DataFrame, **options: Any) -> Any:
    code = X["size"].cat.codes
    y = X["income"] * (code + 1) + 2.0 * (X["colour"] == "r") + code
    return lightgbm.LGBMRegressor(n_estimators=8, verbose=-1, min_child_samples=5, n_jobs=1).fit(X, y, **options)


def test_an_ordered_category_is_explained_as_its_code() -> None:
    X = table()
    X.loc[X.index % 11 == 0, "size"] = np.nan
    model = fitted(X)
    explained = gig.explain(model, X[:20], X[20:50])
    np.testing.assert_allclose(explained.predictions, model.predict(X[:20]), rtol=1e-12)
    assert np.abs(explained.gap).max() < 1e-12
    codes = X.assign(size=X["size"].cat.codes.replace(-1, np.nan))
    as_numbers = gig.explain(fitted_like(codes, model), codes[:20], codes[20:50])
    np.testing.assert_allclose(explained.values, as_numbers.values, atol=1e-12)
    assert explained.provenance["reference"]["typical"]["size"] in SIZES
    assert check_importer(model, X).rows > len(X)


def test_a_split_that_only_tells_missing_values_apart_is_no_threshold_between_codes() -> None:
    X = table()
    X.loc[X.index % 5 == 0, "size"] = np.nan
    y = 3.0 * X["size"].isna() + X["income"]
    model = lightgbm.LGBMRegressor(n_estimators=8, verbose=-1, min_child_samples=5, n_jobs=1).fit(X, y)
    lines = model.booster_.model_to_string().splitlines()
    thresholds = [float(t) for line in lines if line.startswith("threshold=") for t in line[10:].split()]
    assert max(thresholds) > 1e300
    explained = gig.explain(model, X[:20], X[20:50])
    np.testing.assert_allclose(explained.predictions, model.predict(X[:20]), rtol=1e-12)
    assert np.abs(explained.gap).max() < 1e-12


def fitted_like(codes: pd.DataFrame, model: Any) -> Any:
    """The same trees, trained on the codes as numbers."""
    return lightgbm.LGBMRegressor(**model.get_params()).fit(codes, _target(codes))


def _target(codes: pd.DataFrame) -> Any:
    code = codes["size"].fillna(-1)
    return codes["income"] * (code + 1) + 2.0 * (codes["colour"] == "r") + code


def test_another_order_in_the_table_and_plain_text_mean_the_same(tmp_path: Path) -> None:
    X = table()
    model = fitted(X)
    explainer = gig.Explainer(model, X[20:50])
    credits = explainer(X[:20]).values
    shuffled = X.assign(size=X["size"].cat.reorder_categories(["large", "small", "middle"], ordered=True))
    np.testing.assert_array_equal(explainer(shuffled[:20]).values, credits)
    np.testing.assert_array_equal(explainer(X.assign(size=X["size"].astype(object))[:20]).values, credits)
    explainer.save(tmp_path / "model.gig")
    np.testing.assert_array_equal(gig.Explainer.load(tmp_path / "model.gig")(X[:20]).values, credits)


def test_a_flag_beside_it_is_told_apart_by_its_range() -> None:
    X = table(flag=RNG.integers(0, 2, ROWS), count=RNG.integers(0, 9, ROWS))
    explained = gig.explain(fitted(X), X[:20], X[20:50])
    assert np.abs(explained.gap).max() < 1e-12
    assert {c.name for c in gig.import_model(fitted(X)).columns if c.labels} == {"colour", "size"}


def test_two_that_may_be_it_are_both_named() -> None:
    X = table(rooms=RNG.integers(0, 3, ROWS))
    with pytest.raises(gig.UnsupportedModelError, match=r"they may be 'size' or 'rooms'\. Train ordered categories as"):
        gig.import_model(fitted(X))


def test_a_wrong_choice_is_loud() -> None:
    """An ordered category of numbers, and integers declared to be categories: as many lists as categories."""
    X = table(kind=RNG.integers(0, 3, ROWS)).drop(columns="colour")
    X["size"] = pd.Categorical(X["size"].cat.codes + 1, categories=[1, 2, 3], ordered=True)
    y = X["income"] * X["size"].astype(int)
    model = lightgbm.LGBMRegressor(n_estimators=8, verbose=-1, n_jobs=1).fit(X, y, categorical_feature=["kind"])
    with pytest.raises(gig.GigradError):
        gig.explain(model, X[:20], X[20:50])


@pytest.mark.parametrize(
    ("lists", "categorical", "infos", "found"),
    [
        ([("a", "b")], {1}, ["[0:1]", "-1:0:1"], {1: ("a", "b")}),
        ([("a", "b"), ("c", "d")], {1}, ["[0:1]", "-1:0:1"], {0: ("a", "b"), 1: ("c", "d")}),
        ([("a", "b"), ("c", "d", "e")], {0}, ["-1:0:1", "[0:1]", "[0:2]"], {0: ("a", "b"), 2: ("c", "d", "e")}),
        ([("c", "d", "e")], set(), ["[0.5:2]", "[0:1]", "[-1:2]"], {1: ("c", "d", "e")}),
    ],
)
def test_lists_find_their_columns(lists: Any, categorical: set[int], infos: list[str], found: Any) -> None:
    names = [f"x{j}" for j in range(len(infos))]
    assert labelled_columns(lists, frozenset(categorical), infos, [], names) == found
