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
