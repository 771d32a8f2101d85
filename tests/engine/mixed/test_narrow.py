"""Functions that are flat but for a small part of the path: narrow kernels, and functions with breaks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from forests import graph_of
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, Matern, RationalQuadratic
from sklearn.svm import SVR

import gigrad as gig
from gigrad.graph import Affine, Column, Elementwise, Factor, Input, KernelMachine, Node, Sum
from gigrad.testing.crossings import gradient

RNG = np.random.default_rng(0)
XY = (Column("x", missing=False), Column("y", missing=False))


def gaussian(source: Node, centres: np.ndarray, gamma: float, weights: np.ndarray) -> KernelMachine:
    factor = Factor("gaussian", np.full(source.width, np.sqrt(gamma)))
    return KernelMachine(source, centres, weights[None], np.ones(1), (factor,))


def passed_by(start: Any, end: Any, centres: np.ndarray, gamma: float, weights: np.ndarray) -> np.ndarray:
    """The credit of bumps that a path passes whole: the integral of `-2 gamma (x - c) v exp(-gamma |x - c|^2)`."""
    v = np.asarray(end) - start
    foot = (centres - start) @ v / (v @ v)
    beside = start + foot[:, None] * v - centres
    depth = np.exp(-gamma * (beside**2).sum(axis=1)) * np.sqrt(np.pi / gamma / (v @ v))
    return np.asarray((weights * depth) @ (-2.0 * gamma * beside * v))


@pytest.mark.parametrize("gamma", [1e3, 1e4, 1e5, 1e6, 1e8])
def test_bumps_that_a_path_passes_by(gamma: float) -> None:
    start, end = np.array([0.0, 0.0]), np.array([1.0, 0.7])
    v = end - start
    at, aside = np.array([0.31, 0.5, 0.501, 0.7123]), np.array([0.8, -0.5, 1.0, 0.1]) / np.sqrt(gamma)
    centres = start + at[:, None] * v + aside[:, None] * np.array([-v[1], v[0]]) / np.linalg.norm(v)
    weights = np.array([1.0, -2.0, 0.5, 3.0])
    source = Input(2)
    model = graph_of(XY, source, gaussian(source, centres, gamma, weights))
    e = gig.explain_pairs(model, start[None], end[None])
    want = passed_by(start, end, centres, gamma, weights)
    assert np.abs(want).max() > 0.1
    np.testing.assert_allclose(e.values[0], want, rtol=0, atol=min(e.error[0] + 1e-9, 1e-5))


@pytest.mark.parametrize("seed", [7, 171, 187, 385, 486])
def test_errors_of_kernels_with_a_root_of_the_distance(seed: int) -> None:
    """Their coefficients fall quickly, then slowly: the error was too small by 3 to 9 times in these cases."""
    rng = np.random.default_rng(seed)
    support, weight, (starts, ends) = rng.normal(size=(10, 2)), rng.normal(size=(1, 10)), rng.normal(size=(2, 20, 2))
    factor, source = Factor("matern32" if seed % 2 else "matern52", np.full(2, 0.3)), Input(2)
    model = graph_of(XY, source, KernelMachine(source, support, weight, np.zeros(1), (factor,)))
    e, exact = (gig.explain_pairs(model, starts, ends, tol=tol) for tol in (1e-6, 1e-13))
    assert (np.abs(e.values - exact.values).max(axis=1) <= e.error + 1e-12).all()


def test_a_bump_under_a_head_and_behind_a_bend() -> None:
    """A kernel over something curved, and one that is itself the head over a line and a bend."""
    gamma, source = 1e5, Input(2)
    bent = Elementwise(Affine(source, np.array([[1.0, 0.4], [0.3, -0.8]]), np.zeros(2)), "tanh")
    middle = np.tanh(np.array([[1.0, 0.4], [0.3, -0.8]]) @ np.array([0.4, 0.28]))
    model = graph_of(XY, source, gaussian(bent, middle[None] + 0.001, gamma, np.ones(1)))
    e = gig.explain_pairs(model, [[0.0, 0.0]], [[1.0, 0.7]])
    np.testing.assert_allclose(e.values[0], dense(model, [0.0, 0.0], [1.0, 0.7]), rtol=0, atol=1e-6)
    assert np.abs(e.values[0]).max() > 0.05
    step = Sum((bent, gig.graph.assemble(source, [stump(0.9)], np.zeros(2))))
    model = graph_of(XY, source, gaussian(step, middle[None] + 0.001, gamma, np.ones(1)))
    e = gig.explain_pairs(model, [[0.0, 0.0]], [[1.0, 0.7]])
    np.testing.assert_allclose(e.values[0], dense(model, [0.0, 0.0], [1.0, 0.7]), rtol=0, atol=1e-6)


def stump(threshold: float) -> Any:
    values = np.array([[0.0, 0.0], [0.0, 0.0], [0.0, 0.0]])
    return gig.graph.Tree(
        np.array([0, -1, -1]), np.array([threshold, 0, 0]), np.array([1, -1, -1]), np.array([2, -1, -1]),
        np.zeros(3, bool), values, -1,
    )  # fmt: skip


def dense(model: Any, start: Any, end: Any, steps: int = 50_000) -> np.ndarray:
    """Integrated gradients by so many midpoints that the narrowest bump here has hundreds of them."""
    graph = gig.import_model(model)
    start, end = np.asarray(start, float), np.asarray(end, float)
    total = np.zeros(len(start))
    for part in np.array_split((np.arange(steps) + 0.5) / steps, 20):
        total += gradient(graph.score, graph.input, start + part[:, None] * (end - start), 0).sum(axis=0)
    return np.asarray(total * (end - start) / steps)


@pytest.mark.parametrize(
    "model",
    [
        SVR(gamma=1e4, C=10.0, epsilon=0.01),
        SVR(gamma=1e5, C=10.0, epsilon=0.01),
        GaussianProcessRegressor(RBF(0.004), optimizer=None, alpha=1e-6, normalize_y=True),
        GaussianProcessRegressor(Matern(0.004, nu=0.5), optimizer=None, alpha=1e-6, normalize_y=True),
        GaussianProcessRegressor(Matern(0.004, nu=1.5), optimizer=None, alpha=1e-6, normalize_y=True),
        GaussianProcessRegressor(RationalQuadratic(0.004, 1.0), optimizer=None, alpha=1e-6, normalize_y=True),
    ],
    ids=lambda m: str(m)[:60],
)
def test_narrow_kernels_of_a_library(model: Any) -> None:
    X = RNG.random((40, 2))
    model = model.fit(X, 1.0 + np.sin(6 * X[:, 0]) * X[:, 1])
    aside = X[:2] + 0.002
    starts = aside - 0.3 * RNG.random((2, 2))
    e = gig.explain_pairs(model, starts, 2 * aside - starts)  # past two of the points it was fitted on
    for i in range(2):
        off = np.abs(e.values[i] - dense(model, starts[i], 2 * aside[i] - starts[i])).max()
        assert off <= e.error[i] + 1e-6
        assert off <= 2e-5


# ------------------------------------------------------------ what cannot be seen without a hint


def spike(x: np.ndarray) -> np.ndarray:
    """A tent of height y over the short stretch of x from 0.3 to 0.302."""
    return np.maximum(0.0, 1.0 - np.abs(x[:, 0] - 0.301) / 0.001) * x[:, 1]


def spike_gradient(x: np.ndarray) -> np.ndarray:
    inside = np.abs(x[:, 0] - 0.301) < 0.001
    by_x = np.where(inside, -np.sign(x[:, 0] - 0.301) / 0.001, 0.0) * x[:, 1]
    return np.column_stack([by_x, np.maximum(0.0, 1.0 - np.abs(x[:, 0] - 0.301) / 0.001)])


def test_breaks_show_a_spike_that_nobody_could_see() -> None:
    start, end = [[0.0, 1.0]], [[1.0, 3.0]]
    unseen = gig.explain_pairs(gig.function(spike, spike_gradient, ["x", "y"]), start, end)
    assert np.abs(unseen.values).max() < 1e-12  # which is what the documentation warns of
    cases: list[Any] = [{"x": [0.3, 0.301, 0.302]}, {0: [0.302, 0.3, 0.301]}]
    for breaks in cases:
        seen = gig.explain_pairs(gig.function(spike, spike_gradient, ["x", "y"], breaks=breaks), start, end)
        # y rises by 2 a unit of x: the tent's area goes to y, and as much is taken from x
        np.testing.assert_allclose(seen.values, [[-0.002, 0.002]], atol=1e-9)


def test_breaks_let_kinks_cost_nothing() -> None:
    calls: list[int] = []

    def value(x: np.ndarray) -> np.ndarray:
        calls.append(len(x))
        return np.abs(x[:, 0] - 0.37) * x[:, 1]

    def slope(x: np.ndarray) -> np.ndarray:
        return np.column_stack([np.sign(x[:, 0] - 0.37) * x[:, 1], np.abs(x[:, 0] - 0.37)])

    asked = []
    cases: list[Any] = [None, {"x": [0.37]}]
    for breaks in cases:
        calls.clear()
        model = gig.function(value, slope, ["x", "y"], breaks=breaks)
        e = gig.explain_pairs(model, [[0.0, 1.0]], [[1.0, 2.0]], tol=1e-8)
        asked.append(sum(calls))
        assert abs(e.gap[0]) < 1e-8
    assert asked[1] < asked[0]


def test_breaks_that_make_no_sense() -> None:
    def model(breaks: Any) -> Any:
        return gig.function(spike, spike_gradient, ["x", "y"], breaks=breaks)

    with pytest.raises(gig.InputError, match=r"breaks must name columns of the function \(x, y\); got 'z'"):
        model({"z": [1.0]})
    with pytest.raises(gig.InputError, match="breaks of column 'x' must be finite numbers"):
        model({"x": ["a"]})
    with pytest.raises(gig.InputError, match="breaks must be a dict such as"):
        model([0.3])
