"""The smoothed distribution of scores."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
import xgboost
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.linear_model import LinearRegression

import gigrad as gig


@settings(deadline=None)  # the first call imports what it needs
@given(arrays(np.float64, st.integers(2, 300), elements=st.integers(-20, 20).map(float)), st.integers(2, 50))
def test_it_is_strictly_increasing_from_0_to_1_and_inverts_itself(scores: np.ndarray, knots: int) -> None:
    if len(np.unique(scores)) < 2:
        with pytest.raises(gig.InputError, match="two distinct values"):
            gig.SmoothedECDF.fit(scores, knots)
        return
    ecdf = gig.SmoothedECDF.fit(scores, knots)
    assert (np.diff(ecdf.x) > 0).all()
    assert (np.diff(ecdf.u) > 0).all()
    assert len(ecdf.x) <= max(knots, 2)
    assert [float(ecdf(end)) for end in (scores.min(), scores.max())] == [0.0, 1.0]
    u = np.linspace(0, 1, 33)
    np.testing.assert_allclose(ecdf(ecdf.inverse(u)), u, atol=1e-12)


def test_it_follows_the_empirical_distribution() -> None:
    scores = np.random.default_rng(0).normal(size=10_000)
    ecdf = gig.SmoothedECDF.fit(scores)
    ranks = np.searchsorted(np.sort(scores), scores) / len(scores)
    assert np.abs(ecdf(scores) - ranks).max() < 0.011  # about one of a hundred knots
    np.testing.assert_array_equal(ecdf([-100.0, 100.0]), [0.0, 1.0])


@pytest.mark.parametrize(
    ("scores", "message"),
    [([1.0, np.nan], "finite"), ([1.0, np.inf], "finite"), ([2.0, 2.0], "two distinct"), ([], "two distinct")],
)
def test_scores_that_cannot_be_ranked_are_refused(scores: list[float], message: str) -> None:
    with pytest.raises(gig.InputError, match=message):
        gig.SmoothedECDF.fit(scores)


def test_a_rank_outside_of_the_unit_interval_has_no_score() -> None:
    with pytest.raises(gig.InputError, match=r"ranks must lie in \[0, 1\]"):
        gig.SmoothedECDF.fit([1.0, 2.0]).inverse(1.5)


def test_it_survives_a_file_to_the_bit(tmp_path: Path) -> None:
    ecdf = gig.SmoothedECDF.fit(np.random.default_rng(1).normal(size=500))
    ecdf.save(tmp_path / "ecdf.json")
    again = gig.SmoothedECDF.load(tmp_path / "ecdf.json")
    assert np.array_equal(again.x, ecdf.x)
    assert np.array_equal(again.u, ecdf.u)
    for text in ("", "[]", "{}", '{"format": "gigrad-ecdf-1", "x": [1, 1], "u": [0, 1]}'):
        (tmp_path / "bad.json").write_text(text)
        with pytest.raises(gig.GigradError):
            gig.SmoothedECDF.load(tmp_path / "bad.json")


# ------------------------------------------------------------ scores that differ by rounding alone


def test_sums_of_the_same_numbers_in_another_order_are_tied() -> None:
    numbers = np.array([0.1, 0.2, 0.3, 0.4, 0.6, 0.7])
    orders = np.random.default_rng(0).permuted(np.tile(numbers, (200, 1)), axis=1)
    sums = orders.cumsum(axis=1)[:, -1]  # one after the other, where sum() of Python 3.12 compensates
    assert len(np.unique(sums)) > 1
    scores = np.concatenate([sums, sums + 1.0, [0.0, 5.0]])
    ecdf = gig.SmoothedECDF.fit(scores)
    np.testing.assert_allclose(ecdf.x, [0.0, 2.3, 3.3, 5.0])
    assert np.ptp(ecdf(sums)) < 1e-12
    np.testing.assert_allclose(ecdf(sums), (1 + 200) / 2 / 401)


def test_small_probabilities_are_not_tied_for_being_small() -> None:
    scores = 10.0 ** -np.arange(1.0, 30.0)
    assert len(gig.SmoothedECDF.fit(scores).x) == len(scores)


def test_the_rounding_of_float32_is_wider() -> None:
    base = np.float32(0.3)
    near = np.array([base, np.nextafter(base, np.float32(1)), 0.5, 0.75], np.float32)
    assert len(gig.SmoothedECDF.fit(near).x) == 3
    assert len(gig.SmoothedECDF.fit(np.append(near.astype(np.float64), 0.1)).x) == 5  # 0.1 is no float32


@pytest.mark.parametrize("seed", range(5))
def test_a_models_own_sum_and_ours_fall_on_the_same_side_of_every_knot(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 4, size=(300, 6)).astype(float)  # counts, as the users have them: most scores are tied
    model = LinearRegression().fit(X, X[:, 0])
    model.coef_, model.intercept_ = rng.choice([0.1, 0.2, 0.3, -0.1, 0.7], 6), -0.9
    rank = gig.SmoothedECDF.fit(model.predict(X))
    e = gig.explain(model, X[:40], X[40:80], output=rank)
    assert np.abs(e.gap).max() < 1e-9
    forest = xgboost.XGBRegressor(n_estimators=20, max_depth=3).fit(X, X @ model.coef_)
    rank = gig.SmoothedECDF.fit(forest.predict(X))
    e = gig.explain(forest, X[:40], X[40:80], output=rank)
    assert (np.abs(e.gap) <= np.maximum(e.error, 1e-6)).all()
    assert np.abs(e.gap).max() < 0.01


def test_knots_one_rounding_apart_show_in_the_error() -> None:
    model = LinearRegression().fit(np.eye(3), np.zeros(3))
    model.coef_, model.intercept_ = np.array([0.1, 0.2, 0.3]), 0.0
    row = np.array([[1.0, 1.0, 1.0]])
    own = float(model.predict(row)[0])
    steep = gig.SmoothedECDF([0.0, np.nextafter(own, -1), np.nextafter(own, 2), 1.0], [0.0, 0.1, 0.9, 1.0])
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        e = gig.explain_pairs(model, [[0.0, 0.0, 0.0]], row, output=steep)
    assert abs(e.gap[0]) <= e.error[0] + 1e-12
    assert e.error[0] > 0.05
    assert any(issubclass(w.category, gig.AccuracyWarning) for w in said)


def test_means_of_leaves_that_differ_by_rounding_are_tied() -> None:
    """0 and 2.8e-17 are one score of a forest, but two of a sigmoid."""
    assert gig.SmoothedECDF.fit([0.0, 2.8e-17, 0.25, 1.0]).x.tolist() == [0.0, 0.25, 1.0]
    assert gig.SmoothedECDF.fit([1e-20, 2.8e-17, 0.25, 0.9]).x.tolist() == [1e-20, 2.8e-17, 0.25, 0.9]
