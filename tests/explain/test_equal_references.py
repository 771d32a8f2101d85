"""References that are equal are walked once, with the sum of their weights: the same credits in less time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from xgboost import XGBClassifier

import gigrad as gig


@pytest.fixture(scope="module")
def applicants() -> dict[str, Any]:
    """Flags, a count, a category and missing values: many of the 600 rows are equal."""
    rng = np.random.default_rng(0)
    n = 600
    X = pd.DataFrame({f"flag{i}": rng.integers(0, 2, n) for i in range(3)})
    X["count"] = rng.integers(0, 3, n).astype(float)
    X.loc[rng.random(n) < 0.2, "count"] = np.nan
    X["kind"] = pd.Categorical(rng.choice(["a", "b", "c"], n))
    y = (X["flag0"] + X["flag1"] * X["count"].fillna(2) + (X["kind"] == "b") + rng.normal(size=n)) > 1.5
    model = XGBClassifier(n_estimators=20, max_depth=3, enable_categorical=True, n_jobs=1).fit(X, y)
    return {"X": X, "model": model, "weights": rng.uniform(0.0, 2.0, n)}


@pytest.mark.parametrize("output", [None, "margin"])
@pytest.mark.parametrize("weighted", [True, False])
def test_equal_references_count_once(applicants: dict[str, Any], output: Any, weighted: bool) -> None:
    X, weights = applicants["X"], applicants["weights"] if weighted else None
    explainer = gig.Explainer(applicants["model"], X, weights=weights, output=output)
    merged = explainer._distinct
    assert merged is not None
    assert len(merged[0]) < 0.5 * len(X)
    assert merged[1].sum() == pytest.approx(1.0)
    found = explainer(X.head(20))
    explainer._distinct = None  # every reference by itself
    whole = explainer(X.head(20))
    np.testing.assert_allclose(found.values, whole.values, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.gap, 0.0, atol=1e-6)
    np.testing.assert_array_equal(found.base_values, whole.base_values)


def test_rows_that_differ_anywhere_are_kept_apart() -> None:
    rows = np.array([[0.0, np.nan], [0.0, np.nan], [-0.0, np.nan], [0.0, 1.0], [0.0, np.nan], [0.0, 1.0 + 1e-15]])
    from gigrad.engine import distinct

    found = distinct(rows, np.full(6, 1 / 6))
    assert found is not None
    assert found[0].tolist() == [0, 3, 5]
    np.testing.assert_allclose(found[1], [4 / 6, 1 / 6, 1 / 6])
    assert distinct(np.arange(8.0)[:, None], np.full(8, 1 / 8)) is None


def told_apart_of(explainer: gig.Explainer) -> Any:
    from gigrad.engine import told_apart

    return told_apart(explainer.scorer.node, explainer.scorer.graph.input, explainer.reference.matrix)


@pytest.fixture(scope="module")
def towns() -> dict[str, Any]:
    """Two categories of 40 and 7 levels, with missing ones, two flags, and an amount that no tree reads."""
    rng = np.random.default_rng(1)
    n = 900
    towns = np.array([f"t{i:02d}" for i in range(40)])
    X = pd.DataFrame({"flag": rng.integers(0, 2, n), "other": rng.integers(0, 2, n)})
    X["town"] = pd.Categorical(rng.choice(towns, n), categories=towns)
    X["job"] = pd.Categorical(rng.choice(list("abcdefg"), n))
    X.loc[rng.random(n) < 0.1, "job"] = None
    X["amount"] = rng.normal(size=n)
    y = (X["flag"] + (X["town"].cat.codes % 3 == 0) * 2 + X["job"].isin(["b", "d"]) + rng.normal(size=n) * 0.3) > 1.5
    model = XGBClassifier(
        n_estimators=12, max_depth=3, enable_categorical=True, n_jobs=1, max_cat_to_onehot=1, gamma=2.0
    ).fit(X.assign(amount=0.0), y)
    return {"X": X, "model": model, "weights": rng.uniform(0.1, 2.0, n)}


@pytest.mark.parametrize("output", [None, "margin"])
def test_references_on_the_same_sides_of_all_splits_count_once(towns: dict[str, Any], output: Any) -> None:
    X, m = towns["X"], len(towns["X"])
    explainer = gig.Explainer(towns["model"], X, weights=towns["weights"], output=output)
    assert len(np.unique(explainer.reference.matrix, axis=0)) == m  # no two are equal
    merged = explainer._distinct
    assert merged is not None
    assert len(merged[0]) < 0.5 * m
    found = explainer(X.head(25))
    explainer._distinct = None
    whole = explainer(X.head(25))
    np.testing.assert_allclose(found.values, whole.values, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(found.base_values, whole.base_values)


def test_rows_taken_for_one_give_the_same_credits_to_every_end(towns: dict[str, Any]) -> None:
    """Pair by pair: each reference against the first that is taken for it, to rows of all kinds."""
    explainer = gig.Explainer(towns["model"], towns["X"], output="margin")
    rows, told = towns["X"], told_apart_of(explainer)
    _, first, which = np.unique(told, axis=0, return_index=True, return_inverse=True)
    some = np.random.default_rng(0).choice(len(rows), 200, replace=False)
    ends = rows.iloc[np.random.default_rng(1).choice(len(rows), 200)]
    own = gig.explain_pairs(towns["model"], rows.iloc[some], ends, output="margin")
    other = gig.explain_pairs(towns["model"], rows.iloc[first[which.ravel()[some]]], ends, output="margin")
    np.testing.assert_allclose(own.values, other.values, rtol=0, atol=1e-12)


def test_numbers_with_values_in_between_stay_apart_whatever_their_sides() -> None:
    """The time at which a split is passed depends on where a path starts, on its side as well."""
    X = pd.DataFrame({"late": np.arange(12) % 6, "flag": np.arange(12) // 6})
    model = XGBClassifier(n_estimators=1, max_depth=1, n_jobs=1, min_child_weight=0).fit(X, X["late"] > 2)
    told = told_apart_of(gig.Explainer(model, X))
    assert np.unique(told[:, 0]).tolist() == [0, 1, 2, 3, 4, 5]
    assert len(np.unique(told[:, 1])) == 1  # no split reads it
    nominal = told_apart_of(gig.Explainer(model, X, nominal=["late"]))
    assert len(np.unique(nominal[:, 0])) == 2


def test_what_other_parts_read_stays_apart() -> None:
    from sklearn.linear_model import LogisticRegression

    X = np.random.default_rng(0).normal(size=(30, 2))
    explainer = gig.Explainer(LogisticRegression().fit(X, X[:, 0] > 0), X)
    assert told_apart_of(explainer) is explainer.reference.matrix


def test_columns_that_no_split_reads_are_not_looked_at_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (30, 4000)).astype(float)
    X[:, 1:][rng.random((30, 3999)) < 0.1] = np.nan
    X[:, 7] = np.nan
    model = XGBClassifier(n_estimators=2, max_depth=1, n_jobs=1).fit(X, X[:, 0])
    explainer = gig.Explainer(model, X)
    sorted_columns, unique = list[Any](), np.unique

    def counted(*arguments: Any, **options: Any) -> Any:
        sorted_columns.append(arguments)
        return unique(*arguments, **options)

    monkeypatch.setattr(np, "unique", counted)
    told = told_apart_of(explainer)
    monkeypatch.undo()
    assert len(sorted_columns) < 10
    assert set(told[:, 0]) == {0.0, 1.0}
    assert np.isnan(told[:, 7]).all()
    assert (told[:, 8:] == np.nanmin(X[:, 8:], axis=0)).all()
