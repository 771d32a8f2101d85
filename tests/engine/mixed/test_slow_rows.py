"""Wide layers multiplied in float32 between a few rows in float64."""

from __future__ import annotations

import numpy as np
import pytest

import gigrad as gig
from gigrad.engine import limits
from gigrad.engine.mixed import slow_rows
from gigrad.engine.mixed.lines import Lines
from gigrad.engine.roles import ByUnit
from gigrad.graph import Affine, Column, Elementwise, Graph, Input, Node


def turning(n: int, width: int) -> np.ndarray:
    """Rows that turn slowly, a third of whose columns is always 0, and some of which begin at 0 half-way."""
    rng = np.random.default_rng(0)
    time = np.linspace(0.0, 1.0, n)[:, None]
    rows = np.sin(rng.uniform(0.0, 3.0, width) * time + rng.normal(size=width)) + 1e-3 * rng.normal(size=(n, width))
    rows[:, ::3] = 0.0
    rows[: n // 2, 1::7] = 0.0
    return rows


@pytest.mark.parametrize("n", [2, 3, 129, 300])
def test_products_are_off_by_no_more_than_is_measured(n: int) -> None:
    rng = np.random.default_rng(1)
    matrix = rng.normal(size=(90, 70))
    weights, rows = ByUnit(matrix, matrix.astype(np.float32)), turning(n, 90)
    slopes = (rows != 0.0).astype(float)
    for found, exact in (
        (slow_rows.forward(rows, weights), rows @ matrix),
        (slow_rows.backward(rows[:, :70], slopes, weights), rows[:, :70] @ matrix.T * slopes),
    ):
        off = np.sqrt(np.square(found.values - exact).sum())
        assert off <= 1e-6 * np.sqrt(np.square(exact).sum())
        if n > 100:  # the measure is a mean over rows
            assert found.off / 3.0 < off < 3.0 * found.off
        elif n == 2:  # both rows in float64
            assert off <= 1e-13 * np.abs(exact).max()


def test_rows_between_parallel_anchors_and_rows_of_zeros() -> None:
    matrix = np.random.default_rng(2).normal(size=(20, 10))
    weights = ByUnit(matrix, matrix.astype(np.float32))
    rows = np.outer([1.0, 2.0, 4.0, 0.0, 3.0, 0.0, 0.0], np.arange(20.0))
    found = slow_rows.forward(rows, weights)
    np.testing.assert_allclose(found.values, rows @ matrix, rtol=1e-6, atol=1e-12)
    assert not slow_rows.forward(np.zeros((5, 20)), weights).values.any()


def deep_net(columns: int, width: int) -> Graph:
    rng = np.random.default_rng(4)
    source = Input(columns)
    node: Node = source
    for name in ("relu", "relu", "tanh"):
        weight = rng.normal(size=(width, node.width)) * np.sqrt(2.0 / node.width)
        if node is source:  # two columns against each other: the parts of the speed are larger than the speed
            weight[:, 1] = 0.1 * weight[:, 1] - weight[:, 0]
        node = Elementwise(Affine(node, weight, 0.1 * rng.normal(size=width)), name)
    score = Affine(node, rng.normal(size=(1, width)) / np.sqrt(width), np.zeros(1))
    return Graph(tuple(Column(f"c{j}") for j in range(columns)), source, score, score, ("y",))


def test_credits_in_both_precisions_are_within_their_error(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, rng = deep_net(6, 560), np.random.default_rng(5)
    starts, ends = rng.normal(size=(6, 6)), rng.normal(size=(6, 6))
    ends[:, 1] = starts[:, 1] + (ends - starts)[:, 0]
    roundings: list[float] = []
    slowly = Lines._slowly

    def watched(self, *rest):
        out = slowly(self, *rest)
        roundings.append(self.rounding[-1])
        return out

    monkeypatch.setattr(Lines, "_slowly", watched)
    found = gig.explain_pairs(graph, starts, ends, tol=1e-8)
    assert len(roundings) == 5  # one path has too few kinks
    exact = gig.explain_pairs(graph, starts, ends, tol=0.5 * limits.SINGLE_TOL)
    assert len(roundings) == 5  # in float64 alone
    off = np.abs(found.values - exact.values).reshape(6, -1).max(axis=1)
    assert (off > 1e-12).sum() == 5
    assert (off <= max(roundings)).all()
    assert (off <= found.error.ravel() + exact.error.ravel()).all()
    assert max(roundings) < 1e-8 * np.abs(exact.predictions).max()
    np.testing.assert_array_equal(found.values, gig.explain_pairs(graph, starts, ends, tol=1e-8, n_threads=2).values)
    alone = gig.explain_pairs(graph, starts[4:], ends[4:], tol=1e-8)
    np.testing.assert_array_equal(found.values[4:], alone.values)  # no other row changes a bit


def test_at_loose_tolerances_no_other_row_changes_a_credit_either() -> None:
    graph, rng = deep_net(6, 560), np.random.default_rng(6)
    rows = rng.normal(size=(3, 6))
    explainer = gig.Explainer(graph, rng.normal(size=(8, 6)), tol=1e-2)
    alone = np.concatenate([explainer(rows[i : i + 1]).values for i in range(3)])
    together = explainer(rows).values
    assert np.abs(together - alone).max() < 1e-14 * np.abs(alone).max()
