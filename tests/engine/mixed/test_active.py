"""Products that leave out the units that rest: equal to the whole products, on matrices and along paths."""

from __future__ import annotations

import numpy as np
import pytest
from forests import graph_of
from hypothesis import given
from hypothesis import strategies as st

import gigrad as gig
from gigrad import kernels
from gigrad.engine import limits
from gigrad.engine.mixed.active import ActiveRows, side_by_side
from gigrad.graph import Affine, Column, Elementwise, Input, Node
from gigrad.testing import brute_force

seeds = st.integers(0, 2**32 - 1)


@given(seeds, st.integers(1, 6), st.integers(1, 30))
def test_units_used_at_a_time_lie_side_by_side(seed: int, times: int, units: int) -> None:
    used = np.random.default_rng(seed).random((times, units)) < 0.4
    order, begin, stop = side_by_side(used)
    assert sorted(order.tolist()) == np.nonzero(used.any(axis=0))[0].tolist()
    for t in range(times):
        among = order[begin[t] : stop[t]]
        assert set(np.nonzero(used[t])[0]) <= set(among.tolist())
        assert not (~used[: t + 1, among].any(axis=0) & used[-1, among]).any(), "units that begin later and stay"
        assert not (~used[t:, among].any(axis=0) & used[0, among]).any(), "units that have ended"


@given(seeds)
def test_products_are_those_of_the_whole_matrix(seed: int) -> None:
    rng = np.random.default_rng(seed)
    offsets = np.array([0, 7, 9, 400])
    z = np.cumsum(rng.normal(size=(400, 23)), axis=0)
    rows, values = rng.normal(size=(23, 5)), np.maximum(z, 0.0)
    inside = np.delete(np.arange(400), offsets[1:] - 1)
    slope = (0.5 * (z[inside] + z[inside + 1]) > 0).astype(float)
    some = ActiveRows(rows, offsets, values, slope)
    assert len(some.stretches) > 3
    np.testing.assert_allclose(some.forward(values), values @ rows, atol=1e-12)
    cotangent = rng.normal(size=(len(inside), 5))
    np.testing.assert_allclose(some.back(cotangent, slope), cotangent @ rows.T * slope, atol=1e-12)


@pytest.mark.parametrize("activation", ["relu", "leaky_relu"])
def test_nets_followed_without_their_resting_units_equal_the_definition(
    activation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng, source = np.random.default_rng(4), Input(3)
    top: Node = source
    for width in (9, 8, 7):
        layer = Affine(top, rng.normal(size=(width, top.width)) * np.sqrt(2 / top.width), rng.normal(size=width) / 3)
        top = Elementwise(layer, activation, 0.1)
    score = Elementwise(Affine(top, rng.normal(size=(1, 7)) / 3, np.zeros(1)), "tanh")
    graph = graph_of(tuple(Column(n) for n in "abc"), source, score)
    starts, ends = rng.normal(size=(8, 3)) * 2, rng.normal(size=(8, 3)) * 2
    want = gig.explain_pairs(graph, starts, ends, tol=1e-10, discrete=()).values
    made: list[int] = []
    monkeypatch.setattr(limits, "TRACED_WEIGHTS", 0)  # narrow nets are traced by the core
    monkeypatch.setattr(limits, "ACTIVE_WIDTH", 2)
    monkeypatch.setattr(limits, "ACTIVE_STRETCH", 2)
    monkeypatch.setattr(ActiveRows, "back", _counted(ActiveRows.back, made))
    got = gig.explain_pairs(graph, starts, ends, tol=1e-10, discrete=()).values
    assert made
    np.testing.assert_allclose(got, want, atol=1e-13)
    np.testing.assert_allclose(got[0], brute_force(graph, starts[0], ends[0])[:, 0], atol=1e-9)


def _counted(method, made: list[int]):
    def counted(self: ActiveRows, cotangent: np.ndarray, slope: np.ndarray) -> np.ndarray:
        made.append(len(self.stretches))
        return method(self, cotangent, slope)

    return counted


def test_rows_are_added_in_place() -> None:
    rng = np.random.default_rng(0)
    table, values, row = rng.normal(size=(4, 9)), rng.normal(size=(6, 9)), np.array([3, 0, 0, 2, 3, 3])
    want = table.copy()
    np.add.at(want, row, values)
    kernels.add_rows(table, row, values)
    np.testing.assert_allclose(table, want, atol=1e-14)
    with pytest.raises(ValueError, match="must lie below 4"):
        kernels.add_rows(table, np.array([4]), values[:1])
    with pytest.raises(ValueError, match="columns of the table"):
        kernels.add_rows(table, row, values[:, :4])
