"""Loose tolerances over wide layers with kinks: layers asked at a few times, and an `error` that holds all the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesClassifier

import gigrad as gig
from gigrad import kernels
from gigrad.engine import limits
from gigrad.engine.mixed import loosely
from gigrad.graph import Affine, Column, Elementwise, Graph, Input

KINDS = (("relu", "relu", "tanh"), ("leaky_relu", "relu", "sigmoid"), ("relu", "relu"), ("relu", "abs", "relu", "tanh"))


def table(rng: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    """Normal columns, some flags and a count."""
    X = rng.normal(size=(rows, columns))
    X[:, : columns // 3] = X[:, : columns // 3] > 0
    X[:, columns // 3] = rng.poisson(3, size=rows)
    return X


def net(rng: np.random.Generator, columns: int, functions: tuple[str, ...], widths: list[int]) -> Graph:
    """A net with random weights of He's scale, and a sigmoid on top."""
    source = Input(columns)
    node: Any = source
    for name, width in zip(functions, widths, strict=True):
        weight = rng.normal(size=(width, node.width)) * (2 / node.width) ** 0.5
        node = Elementwise(Affine(node, weight, 0.1 * rng.normal(size=width)), name, 0.1)
    score = Affine(node, rng.normal(size=(1, node.width)) * node.width**-0.5, np.zeros(1))
    output = Elementwise(score, "sigmoid")
    return Graph(tuple(Column(f"c{i}") for i in range(columns)), source, output, output, ("y",))


def ensemble(rng: np.random.Generator, X: np.ndarray, graph: Graph, kind: int) -> Any:
    """The net alone, under a head with trees, or ranked."""
    if kind == 0:
        return graph
    y = (X @ rng.normal(size=X.shape[1]) + rng.normal(size=len(X)) > 1).astype(int)
    forest = ExtraTreesClassifier(20, max_depth=6, random_state=0).fit(X, y)
    if kind == 1:
        return gig.stack([forest, graph], head=net(rng, 2, ("tanh",), [80]))
    mean = gig.average([forest, graph])
    return mean.then(gig.SmoothedECDF.fit(mean.predict(X)))


class Asked:
    """How many intervals were compared, and how many paths were followed from kink to kink instead."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.intervals: list[int] = []
        self.followed = 0
        compared, walk = loosely._compared, loosely.walk

        def watched(plan: Any, block: Any, allowed: Any, chain: Any, intervals: int) -> Any:
            self.intervals.append(intervals)
            return compared(plan, block, allowed, chain, intervals)

        def walked(plan: Any, block: Any, allowed: Any, careful: bool, trace: Any = None) -> Any:
            self.followed += trace is None
            return walk(plan, block, allowed, careful, trace)

        monkeypatch.setattr(loosely, "_compared", watched)
        monkeypatch.setattr(loosely, "walk", walked)


@pytest.fixture
def sampled(monkeypatch: pytest.MonkeyPatch) -> Asked:
    """Layers of a few hundred units count as wide."""
    monkeypatch.setattr(limits, "TRACED_WEIGHTS", 16)
    monkeypatch.setattr(limits, "SAMPLED_UNITS", 4)
    return Asked(monkeypatch)


def test_kinks_inside_of_intervals() -> None:
    rng = np.random.default_rng(0)
    below, units, points = 12, 40, 5
    bias, move = rng.normal(size=(2, below))
    weight = rng.normal(size=(units, below))
    shift = -weight @ np.maximum(bias + 0.4 * move, 0.0) + 0.05 * rng.normal(size=units)
    time = np.linspace(0.0, 1.0, points)

    def read(t: np.ndarray) -> np.ndarray:
        return np.maximum(bias + move * t[:, None], 0.0) @ weight.T + shift

    left = np.arange(points - 1)
    first = bias + move * time[:, None]
    kinks = kernels.interval_kinks(
        first, left, time, kernels.IntervalKinks.none(len(left)), np.zeros(0), np.zeros((0, below))
    )
    passes = -bias / move
    inside = (passes > 0) & (passes < 1)
    np.testing.assert_allclose(kinks.time, np.sort(passes[inside]))
    np.testing.assert_array_equal(kinks.unit, np.nonzero(inside)[0][np.argsort(passes[inside])])
    above = kernels.interval_kinks(read(time), left, time, kinks, np.abs(kinks.rate), np.ascontiguousarray(weight.T))
    fine = np.linspace(0.0, 1.0, 200_001)
    values = read(fine)
    at, unit = np.nonzero((values[1:] > 0) != (values[:-1] > 0))
    assert len(above.unit) == len(unit) > units / 2
    assert len(np.unique(unit)) < len(unit)  # some pass zero twice
    np.testing.assert_array_equal(above.unit, unit)
    np.testing.assert_allclose(above.time, fine[at], atol=1e-5)
    np.testing.assert_array_equal(np.searchsorted(above.time, time), above.first)


def test_late_products() -> None:
    rng = np.random.default_rng(1)
    kinks, above = (
        kernels.IntervalKinks(np.array([0, n, n]), rng.integers(0, 3, n), np.sort(rng.random(n)), np.ones(n))
        for n in (4, 5)
    )
    slope, rows, step = rng.normal(size=(2, 3)), rng.normal(size=(3, 3)), rng.normal(size=5)
    found = kernels.late_products(slope, rows, kinks, 1 - kinks.time, above, 1 - above.time, step)
    for i, (unit, time) in enumerate(zip(kinks.unit, kinks.time, strict=True)):
        late = slope[0] * (1 - time)
        np.add.at(late, above.unit, step * (1 - np.maximum(above.time, time)))
        assert found[i] == pytest.approx(rows[unit] @ late)
    with pytest.raises(ValueError, match="units that exist"):
        kernels.late_products(slope, rows[:1], kinks, 1 - kinks.time, above, 1 - above.time, step)


def test_a_net_of_two_layers_with_kinks_is_exact(sampled: Asked) -> None:
    """All kinks are found, and derivatives by the last sum do not change: nothing is lost, however few the times."""
    rng = np.random.default_rng(2)
    graph = net(rng, 9, ("relu", "relu"), [150, 120])
    score = graph.score.parents[0]
    line = Graph(graph.columns, graph.input, score, score, ("y",))
    X = table(rng, 30, 9)
    X[0] = 0.0  # units that stand on their kinks at the start
    exact = gig.explain_pairs(line, X[:10], X[10:20], tol=1e-10)
    assert not sampled.intervals
    e = gig.explain_pairs(line, X[:10], X[10:20], tol=1e-2)
    assert sampled.intervals == [8]
    np.testing.assert_allclose(e.values, exact.values, atol=1e-12)


@pytest.mark.parametrize("kind", [0, 1, 2])
def test_error_holds(sampled: Asked, kind: int) -> None:
    ratio, total = [], 0
    for case in range(6):
        rng = np.random.default_rng(100 * kind + case)
        functions = KINDS[case % len(KINDS)]
        columns = int(rng.integers(4, 30))
        X = table(rng, 300, columns)
        widths = rng.integers(50, 300, size=len(functions)).tolist()
        f = ensemble(rng, X, net(rng, columns, functions, widths), kind)
        truth = gig.explain_pairs(f, X[:10], X[10:20], tol=1e-9).values
        for tol in (1e-2, 1e-3, 1e-4):
            e = gig.explain_pairs(f, X[:10], X[10:20], tol=tol)
            off = np.abs(e.values - truth).max(axis=1)
            total += len(off)
            ratio += (off / np.maximum(e.error, 1e-13)).tolist()
            allowed = tol * np.maximum(np.abs(e.predictions), np.abs(e.base_values))
            assert (e.error <= 1.0001 * allowed).all()
    assert sampled.intervals
    assert max(ratio) < 3
    assert sum(r > 1 for r in ratio) <= 0.01 * total


def test_rows_of_many_references_need_fewer_times(sampled: Asked) -> None:
    rng = np.random.default_rng(5)
    X = table(rng, 200, 12)
    f = ensemble(rng, X, net(rng, 12, KINDS[0], [300, 250, 200]), 1)
    exact = gig.Explainer(f, X[:64], tol=1e-9, discrete=())(X[100:103])
    assert not sampled.intervals
    e = gig.Explainer(f, X[:64], tol=1e-3, discrete=())(X[100:103])
    many = sampled.intervals.copy()
    assert (np.abs(e.values - exact.values).max(axis=1) < e.error).all()
    sampled.intervals.clear()
    gig.explain_pairs(f, X[:8], X[100:108], tol=1e-3)
    assert max(many) < max(sampled.intervals)


def test_columns_that_jump_break_paths(sampled: Asked) -> None:
    rng = np.random.default_rng(6)
    X = table(rng, 40, 8)
    graph = net(rng, 8, KINDS[0], [200, 200, 100])
    nominal = ["c1", "c5"]
    exact = gig.explain_pairs(graph, X[:8], X[8:16], tol=1e-10, nominal=nominal).values
    e = gig.explain_pairs(graph, X[:8], X[8:16], tol=1e-3, nominal=nominal)
    assert sampled.intervals
    assert (np.abs(e.values - exact).max(axis=1) <= e.error).all()


def test_a_tight_tolerance_follows_kinks(sampled: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(7)
    X = table(rng, 40, 8)
    graph = net(rng, 8, KINDS[0], [200, 200, 100])
    exact = gig.explain_pairs(graph, X[:4], X[4:8], tol=1e-8).values
    assert not sampled.intervals
    monkeypatch.setattr(limits, "SAMPLED_CAUTION", 1e6)  # what cannot be met by sampling is followed
    e = gig.explain_pairs(graph, X[:4], X[4:8], tol=1e-2)
    assert sampled.followed == 4
    np.testing.assert_allclose(e.values, exact, atol=1e-6)


def test_threads_give_the_same_bits(sampled: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LOOSE_PATHS", 16)
    rng = np.random.default_rng(8)
    X = table(rng, 200, 8)
    f = ensemble(rng, X, net(rng, 8, KINDS[0], [200, 200, 100]), 2)
    one, two = (gig.explain_pairs(f, X[:60], X[100:160], tol=1e-2, n_threads=n) for n in (1, 2))
    assert len(sampled.intervals) >= 8
    np.testing.assert_array_equal(one.values, two.values)
    np.testing.assert_array_equal(one.error, two.error)


def test_large_corners_are_followed(sampled: Asked) -> None:
    rng = np.random.default_rng(9)
    X = (rng.random(size=(300, 30)) > 0.5).astype(float)
    f = ensemble(rng, X, net(rng, 30, KINDS[0], [200, 200, 100]), 2)
    flags = [f"x{i}" for i in range(30)]
    e = gig.explain_pairs(f, X[:2], 1 - X[:2], tol=1e-2, discrete=flags, corner_tol=0.2)
    assert sampled.followed == 2
    assert np.isfinite(e.values).all()
