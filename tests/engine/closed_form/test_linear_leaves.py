"""Trees with linear leaves in closed form: what the mixed engine gives, and the definition."""

from __future__ import annotations

import lightgbm as lgb
import numpy as np
import pytest
from plain_forest import every_simd

import gigrad as gig
from gigrad.engine.closed_form import leaves
from gigrad.graph import TreeEnsemble, topological
from gigrad.testing import brute_force


def table(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A grid of tenths, a count, a flag and a column with missing values, so that splits tie."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(rows, 5)), 1)
    X[:, 1], X[:, 2] = rng.integers(0, 4, rows), rng.integers(0, 2, rows)
    X[rng.random(rows) < 0.2, 3] = np.nan
    return X, X[:, 0] * X[:, 1] + np.nan_to_num(X[:, 3]) * X[:, 2] + 0.1 * X[:, 4]


def model(classes: int) -> lgb.LGBMModel:
    X, y = table(600, 0)
    options = {"n_estimators": 8, "num_leaves": 7, "linear_tree": True, "verbose": -1, "n_jobs": 1}
    if classes == 1:
        return lgb.LGBMRegressor(**options).fit(X, y)
    return lgb.LGBMClassifier(**options).fit(X, np.digitize(y, np.quantile(y, [0.3, 0.6])))


@pytest.mark.parametrize("classes", [1, 3])
@pytest.mark.parametrize("grouped", [False, True])
def test_linear_leaves_earn_what_the_mixed_engine_gives(
    classes: int, grouped: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    imported, rows = gig.import_model(model(classes)), table(40, 1)[0]
    groups = {"both": ["Column_0", "Column_4"]} if grouped else None
    output = "margin" if classes > 1 else None
    explainer = gig.Explainer(imported, rows[:25], output=output, groups=groups, tol=1e-10)
    closed = explainer(rows[25:])
    monkeypatch.setattr(leaves, "as_linear_leaves", lambda *_: None)
    walked = explainer(rows[25:])
    np.testing.assert_allclose(closed.values, walked.values, atol=1e-12)
    assert np.abs(closed.gap).max() < 1e-12


def test_linear_leaves_equal_the_definition() -> None:
    imported, rows = gig.import_model(model(1)), table(24, 2)[0]
    starts, ends = rows[:12], rows[12:]
    e = gig.explain_pairs(imported, starts, ends, discrete=())
    want = np.stack([brute_force(imported, s, t)[:, 0] for s, t in zip(starts, ends, strict=True)])
    np.testing.assert_allclose(e.values, want, atol=1e-8)


@pytest.mark.parametrize("classes", [1, 3])
def test_a_population_earns_the_mean_of_its_pairs(classes: int) -> None:
    """Lanes for every start with every end, node by node for pairs: two kernels, rows with missing values in both."""
    imported, rows = gig.import_model(model(classes)), table(700, 3)[0]
    starts, ends, weights = rows[:600], rows[600:612], np.random.default_rng(4).random(600)
    output = "margin" if classes > 1 else None
    explainer = gig.Explainer(imported, starts, weights=weights, output=output, discrete=())
    together = explainer(ends).values
    for end, value in zip(ends, together, strict=True):
        pairs = gig.explain_pairs(imported, starts, np.tile(end, (600, 1)), output=output, discrete=()).values
        np.testing.assert_allclose(value, np.average(pairs, axis=0, weights=weights), atol=1e-12)


def test_a_population_has_the_same_bits_for_any_threads_and_company() -> None:
    imported, rows = gig.import_model(model(1)), table(640, 3)[0]
    explain = [gig.Explainer(imported, rows[:600], n_threads=n) for n in (1, 3)]
    first = explain[0](rows[600:]).values
    for _ in every_simd():
        one, three = (e(rows[600:]).values for e in explain)
        np.testing.assert_array_equal(one, three)
        np.testing.assert_array_equal(explain[0](rows[610:611]).values[0], one[10])
        np.testing.assert_allclose(one, first, atol=1e-12)


def test_trees_for_finite_rows_ask_nothing_about_missing_values() -> None:
    graph = gig.import_model(model(1))
    trees = next(n for n in topological(graph.score) if isinstance(n, TreeEnsemble))
    finite = np.array([False, False, False, True, False])
    short = trees.where_finite(finite)
    rows = np.nan_to_num(table(500, 5)[0])
    np.testing.assert_array_equal(short.forward(rows), trees.forward(rows))
    assert np.isinf(trees.threshold[trees.feature == 3]).any()
    assert not np.isinf(short.threshold[short.feature == 3]).any()
    assert len(short.feature) < len(trees.feature)
    assert trees.where_finite(finite) is short
