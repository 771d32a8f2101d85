"""Trees over straight scores in closed form: what the mixed engine gives, and the definition."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor, HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import gigrad as gig
from gigrad.engine.closed_form import oblique
from gigrad.graph.unranked import unranked
from gigrad.testing import brute_force


def table(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Tenths, a count, flags, and a column with missing values: columns and components meet at one time."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(rows, 6)), 1)
    X[:, 1], X[:, 2], X[:, 5] = rng.integers(0, 4, rows), rng.integers(0, 2, rows), rng.integers(0, 3, rows)
    y = X[:, 0] * X[:, 1] + X[:, 3] * X[:, 2] + 0.3 * (X[:, 5] == 1) > 0.2
    X[rng.random(rows) < 0.1, 4] = np.nan
    return X, y.astype(int)


def model(end: Any) -> Any:
    numbers = make_pipeline(SimpleImputer(), StandardScaler(), PCA(3))
    steps = make_column_transformer(
        (numbers, [0, 1, 2, 3, 4]), ("passthrough", [1, 2]), (OneHotEncoder(sparse_output=False), [5])
    )
    return make_pipeline(steps, end).fit(*table(300, 0))


@pytest.fixture(scope="module")
def boosted() -> Any:
    return gig.import_model(model(GradientBoostingClassifier(n_estimators=8, random_state=0)))


@pytest.mark.parametrize("output", [None, "margin"])
@pytest.mark.parametrize("grouped", [False, True])
def test_straight_scores_earn_what_the_mixed_engine_gives(
    boosted: Any, output: str | None, grouped: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = table(24, 1)[0]
    groups = {"both": ["x0", "x2"]} if grouped else None
    explainer = gig.Explainer(boosted, rows[:16], output=output, groups=groups, tol=1e-10)
    assert oblique.as_oblique(boosted.output(output)[0], boosted.input) is not None
    closed = explainer(rows[16:])
    monkeypatch.setattr(oblique, "as_oblique", lambda *_: None)
    walked = explainer(rows[16:])
    np.testing.assert_allclose(closed.values, walked.values, atol=1e-11)
    assert np.abs(closed.gap).max() < 1e-12
    assert closed.error.max() < 1e-11


def test_straight_scores_equal_the_definition(boosted: Any) -> None:
    rows = np.nan_to_num(table(16, 2)[0])
    starts, ends = rows[:8], rows[8:]
    e = gig.explain_pairs(boosted, starts, ends, output="margin", discrete=())
    encoded = [boosted_rows(boosted, part) for part in (starts, ends)]
    want = np.stack([brute_force(boosted, s, t, output="margin")[:, 0] for s, t in zip(*encoded, strict=True)])
    np.testing.assert_allclose(e.values, want, atol=1e-10)
    assert np.abs(want).max() > 0.1


def boosted_rows(graph: Any, X: np.ndarray) -> np.ndarray:
    from gigrad._io.tables import read_rows

    return read_rows(X, graph, what="X").matrix


def test_trees_over_places_become_trees_over_columns_again(boosted: Any) -> None:
    """On rows with their scores behind them they give the same, with missing values and unknown categories too."""
    trees = boosted.margin
    plain = unranked(trees, boosted.input)
    assert plain is not None
    assert len(plain.scores) == 3
    rows = boosted_rows(boosted, table(80, 3)[0])
    rows[::7, 5] = 99.0
    (node,) = {node for node, _ in plain.scores}
    from gigrad.graph import value_of

    scores = value_of(node, {boosted.input: rows})[:, [k for _, k in plain.scores]]
    got = plain.trees.forward(np.concatenate([rows, scores], axis=1))
    np.testing.assert_array_equal(got, value_of(trees, {boosted.input: rows}))


def test_rounding_that_moves_a_score_over_a_threshold_is_said() -> None:
    """Bins of rounded components may lie within rounding: such rows are predicted by the model's own arithmetic."""
    fitted = model(HistGradientBoostingClassifier(max_iter=6, min_samples_leaf=5))
    X = table(300, 0)[0]
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        e = gig.explain(fitted, X[:10], X[20:60], output="margin")
    np.testing.assert_array_less(np.abs(e.gap), e.error + 1e-9)
    missed = (np.abs(e.gap) > 1e-6 * np.abs(e.predictions)).any()  # whether there are such rows is up to the BLAS
    assert missed == any(issubclass(w.category, gig.AccuracyWarning) for w in said)


def test_a_sum_of_trees_below_trees_is_not_straight() -> None:
    """It moves in steps: taken for a straight score it would earn nothing, without a gap where jumps cancel."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 5, size=(400, 4)).astype(float)
    y = X[:, 0] * X[:, 1] - X[:, 2] * X[:, 3]
    parts = [GradientBoostingRegressor(n_estimators=5, random_state=k).fit(X, y + k * X[:, k]) for k in range(2)]
    mean = gig.average(parts)
    head = GradientBoostingRegressor(n_estimators=5, random_state=0).fit(mean.predict(X)[:, None], np.abs(y))
    graph = gig.stack([mean], head=head)
    e = gig.explain_pairs(graph, X[:20], X[20:40])
    want = np.stack([brute_force(graph, s, t)[:, 0] for s, t in zip(X[:20], X[20:40], strict=True)])
    np.testing.assert_allclose(e.values, want, atol=1e-9)
