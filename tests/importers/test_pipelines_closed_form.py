"""Pipelines whose answer is known: behind per-column steps a linear model gives each column its own term's change."""

from __future__ import annotations

import numpy as np
import pytest
from conformance import data
from sklearn.linear_model import Ridge
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PowerTransformer, QuantileTransformer, SplineTransformer

import gigrad as gig
from gigrad.testing import brute_force

STEPS = {
    "normal scores of tied ranks": QuantileTransformer(n_quantiles=6, output_distribution="normal"),
    "normal scores": QuantileTransformer(n_quantiles=60, output_distribution="normal"),
    "Yeo-Johnson": PowerTransformer(),
    "splines": SplineTransformer(n_knots=4, extrapolation="linear"),
}


def pairs(count: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = data.numbers()
    return X[rng.integers(0, len(X), count)], X[rng.integers(0, len(X), count)]


@pytest.mark.parametrize("name", STEPS)
def test_each_column_earns_the_change_of_its_own_term(name):
    """The normal score of a rank is so steep at its ends that an integral of its slope would lose digits there."""
    model = make_pipeline(STEPS[name], Ridge()).fit(data.numbers(), data.target())
    start, end = pairs(300)
    want = np.zeros_like(start)
    for j in range(start.shape[1]):
        moved = start.copy()
        moved[:, j] = end[:, j]
        want[:, j] = model.predict(moved) - model.predict(start)
    got = gig.explain_pairs(model, start, end)
    np.testing.assert_allclose(got.values, want, rtol=0, atol=1e-13)
    assert np.abs(brute_force(model, start[1], end[1])[:, 0] - want[1]).max() < 1e-9


@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_a_net_behind_normal_scores_adds_up(activation):
    """Paths that end where a rank leaves its bound: the kink there lies within rounding of the end of a segment."""
    net = MLPRegressor(hidden_layer_sizes=(8,), activation=activation, max_iter=60, random_state=0)
    steps = QuantileTransformer(n_quantiles=6, output_distribution="normal")
    model = make_pipeline(steps, net).fit(data.numbers(), data.target())
    start, end = pairs(60)
    got = gig.explain_pairs(model, start, end)
    assert np.abs(got.gap).max() < 1e-6 * np.abs(got.predictions).max()
    assert (np.abs(got.gap) <= got.error).all()
