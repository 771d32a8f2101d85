"""Another model for each segment: the right one is asked, credits are exact, and mistakes are said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conformance import data, rows_segments
from unchecked import unchecked

import gigrad as gig
from gigrad.errors import InputError
from gigrad.graph import Elementwise, Switch, TreeEnsemble

NUMBERS = rows_segments.NUMBERS


@pytest.fixture(scope="module")
def parts() -> dict[str, Any]:
    y = data.target()
    return {
        "first": rows_segments.trees("Regressor", NUMBERS, y),
        "second": rows_segments.trees("Regressor", NUMBERS, -y, 1),
        "line": rows_segments.linear(NUMBERS, y),
    }


def test_every_row_is_scored_by_the_model_of_its_segment(parts: dict[str, Any]) -> None:
    X = rows_segments.applicants()[NUMBERS]
    f = gig.switch("age", {(None, -0.5): parts["first"], (-0.5, 1.0): parts["line"]}, default=7.0)
    want = np.where(X["age"] < -0.5, parts["first"].predict(X), parts["line"].predict(X))
    np.testing.assert_allclose(f.predict(X), np.where(X["age"] >= 1.0, 7.0, want), rtol=1e-12)
    edge = X.iloc[[0, 0, 0]].assign(age=[np.nextafter(-0.5, -1), -0.5, 1.0])
    want = [parts["first"].predict(edge)[0], parts["line"].predict(edge)[1], 7.0]
    np.testing.assert_allclose(f.predict(edge), want, rtol=1e-12)


def test_the_credit_of_two_flat_segments_is_their_difference() -> None:
    """f = 1 below 10 and 3 + x above it: the deciding column jumps by 2 + x(10), the rest is the line's."""
    from sklearn.linear_model import LinearRegression

    line = LinearRegression().fit([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], [3.0, 4.0, 3.0])
    f = gig.switch(0, {(None, 10.0): 1.0, (10.0, None): line})
    e = gig.explain_pairs(f, [[5.0, 0.0]], [[15.0, 4.0]])
    np.testing.assert_allclose(e.values, [[17.0, 0.0]], atol=1e-12)
    np.testing.assert_allclose(e.gap, 0.0, atol=1e-12)


def test_segments_of_trees_are_one_sum_of_trees(parts: dict[str, Any]) -> None:
    f = gig.switch("age", {(None, 0.0): parts["first"], (0.0, None): parts["second"]})
    assert isinstance(f.score, TreeEnsemble)
    assert isinstance(gig.switch("age", {(None, 0.0): parts["first"]}, parts["line"]).score, Switch)
    y = data.binary()
    both = [rows_segments.trees("Classifier", NUMBERS, y, seed) for seed in (0, 1)]
    probability = gig.switch("age", {(None, 0.0): both[0]}, default=both[1])
    assert isinstance(probability.score, Elementwise)
    assert isinstance(probability.margin, TreeEnsemble)


def test_segments_in_margin_space(parts: dict[str, Any]) -> None:
    X, y = rows_segments.applicants()[NUMBERS], data.binary()
    both = [rows_segments.trees("Classifier", NUMBERS, y, seed, learning_rate=0.1 + seed) for seed in (0, 1)]
    f = gig.switch("age", {(None, 0.0): both[0]}, default=both[1])
    own = np.where(X["age"] < 0, *(m.decision_function(X) for m in both))
    np.testing.assert_allclose(f.predict(X, output="margin"), own, rtol=1e-12)
    assert np.abs(gig.explain(f, X[:4], X[4:40], output="margin").gap).max() < 1e-12


@pytest.mark.parametrize("build", [rows_segments.bands, rows_segments.thin_and_thick, rows_segments.labels])
def test_a_portable_file_gives_the_same_credits(build: Any, tmp_path: Path) -> None:
    f, X = build()
    explainer = gig.Explainer(f, X[:20])
    explainer.save(tmp_path / "segments.gig")
    found = gig.Explainer.load(tmp_path / "segments.gig")(X[20:26])
    np.testing.assert_array_equal(found.values, explainer(X[20:26]).values)


def test_a_batch_and_its_reasons(tmp_path: Path) -> None:
    import pandas as pd

    f, X = rows_segments.thin_and_thick()
    X = X[:60]
    X.assign(id=np.arange(len(X))).to_parquet(tmp_path / "rows.parquet")
    scores = f.predict(X)
    reference = gig.references.approved(X, scores, 0.5, higher_is_better=False)
    explainer = gig.Explainer(f, reference)
    gig.batch.run(explainer, tmp_path / "rows.parquet", tmp_path / "out.parquet", id_cols=["id"])
    got = pd.read_parquet(tmp_path / "out.parquet")[[f"credit_{name}" for name in f.feature_names]]
    refused = explainer(X[scores > 0.5])
    np.testing.assert_allclose(got.to_numpy()[scores > 0.5], refused.values, atol=1e-9)
    found = gig.reasons(refused, permitted=["age"])
    assert "bureau" in {reason.feature for applicant in found for reason in applicant.reasons}
    assert gig.verify_reasons(found.audit()[0], f, reference).ok


def test_a_model_that_refuses_missing_values_is_not_asked_about_them() -> None:
    f, X = rows_segments.thin_and_thick()
    thin = X[X["bureau"].isna()]
    e = gig.explain(f, thin[:5], X[X["bureau"].notna()][:20])
    assert np.isfinite(e.values).all()
    assert np.abs(e.gap).max() < 1e-9 * max(1.0, np.abs(e.predictions).max())
    with pytest.raises(InputError, match="'age'"):  # a column that the linear model reads in rows between the two
        gig.explain(f, thin[:5].assign(age=np.nan), X[X["bureau"].notna()][:20])


MISTAKES = {
    "must not overlap": lambda m: gig.switch("age", {(None, 1): m, (0, None): m}),
    "none holds those from 1 to 2": lambda m: gig.switch("age", {(None, 1): m, (2, None): m}),
    "none holds those from 3 to inf": lambda m: gig.switch("age", {(None, 3): m}),
    "low < high": lambda m: gig.switch("age", {(3, 3): m}, default=m),
    "all values or all bands": lambda m: gig.switch("age", {(None, 3): m, 5: m}, default=m),
    "a dict of values or bands": lambda m: gig.switch("age", unchecked([m])),
    "at least one model": lambda m: gig.switch("age", {1: 0.5}, default=0.2),
    "name of a column or its position": lambda m: gig.switch(unchecked(1.5), {1: m}),
    "column from 0 to 2": lambda m: gig.switch(7, {1: m}),
    "finite": lambda m: gig.switch("age", {1: np.inf}, default=m),
    "case None must lead to a model": lambda m: gig.switch("age", {None: m}, default=0.5),
    "low must be less than high": lambda m: gig.clip(m, 2, 1),
    "got neither": lambda m: gig.clip(m),
    "finite number or None": lambda m: gig.clip(m, low=unchecked("a")),
}


@pytest.mark.parametrize("words", MISTAKES)
def test_mistakes_are_said(words: str, parts: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=words):
        MISTAKES[words](parts["line"])


def test_a_value_without_a_case_is_refused_by_name(parts: dict[str, Any]) -> None:
    X = rows_segments.applicants()[[*NUMBERS, "home"]]
    f = gig.switch("home", {"own": parts["first"], "rent": parts["second"]})
    with pytest.raises(InputError, match="'free'"):
        f.predict(X)
    with pytest.raises(InputError, match="'home'"):
        f.predict(X[X["home"] != "free"].assign(home=None))


def test_models_with_other_outputs_do_not_fit(parts: dict[str, Any]) -> None:
    three = rows_segments.trees("Classifier", NUMBERS, data.class_codes())
    with pytest.raises(InputError, match="same outputs"):
        gig.switch("age", {(None, 0): three}, default=parts["first"])


def test_classes_of_several(parts: dict[str, Any]) -> None:
    X = rows_segments.applicants()[NUMBERS]
    both = [rows_segments.trees("Classifier", NUMBERS, data.class_codes(), seed, learning_rate=0.1 + seed)
            for seed in (0, 1)]  # fmt: skip
    f = gig.switch("age", {(None, 0): both[0]}, default=both[1])
    own = np.where((X["age"] < 0).to_numpy()[:, None], *(m.predict_proba(X) for m in both))
    np.testing.assert_allclose(f.predict(X), own, rtol=1e-12)
    assert np.abs(gig.explain(f, X[:4], X[4:40], target=1).gap).max() < 1e-12
