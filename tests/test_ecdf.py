"""The smoothed distribution of scores."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import gigrad as gig


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
    assert (ecdf(scores.min()), ecdf(scores.max())) == (0.0, 1.0)
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
