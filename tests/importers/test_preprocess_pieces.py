"""Raw thresholds behind a function are found to the last bit."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gigrad.importers.pipeline.edges import cuts
from gigrad.importers.pipeline.pieces import LARGEST, changes
from gigrad.importers.pipeline.steps import Linear, Power, Stairs, Step
from gigrad.importers.pipeline.table import numbers

NONE = np.zeros(0)
number = st.floats(-1e6, 1e6, allow_nan=False, width=64)


def flips(function, at, thresholds):
    thresholds = np.asarray(thresholds, float)
    return changes(function, np.asarray(at, float), lambda z, which: z <= thresholds[which], len(thresholds))


def neighbours(x: float) -> np.ndarray:
    """A float and the sixteen on either side of it."""
    low = high = x
    out = [x]
    for _ in range(16):
        low, high = np.nextafter(low, -np.inf), np.nextafter(high, np.inf)
        out += [low, high]
    return np.clip(np.array(out), -LARGEST, LARGEST)


def answer(found, test: int, x: np.ndarray) -> np.ndarray:
    passed = np.searchsorted(found.of(test), x, side="left")
    return found.first[test] ^ (passed % 2 == 1)


@settings(max_examples=200, deadline=None)
@given(minus=number, over=st.floats(1e-6, 1e6), times=number, plus=number, thresholds=st.lists(number, max_size=4))
def test_a_scaled_threshold_flips_where_the_scaler_says(minus, over, times, plus, thresholds):
    step = Linear(minus=minus, over=over, times=times, plus=plus)
    found = flips(step, NONE, thresholds)
    for i, threshold in enumerate(thresholds):
        for edge in found.of(i):
            x = neighbours(edge)
            np.testing.assert_array_equal(answer(found, i, x), step(x) <= threshold)
        assert len(found.of(i)) <= 1


@settings(max_examples=100, deadline=None)
@given(
    edges=st.lists(number, min_size=1, max_size=6, unique=True),
    values=st.lists(st.integers(-2, 2), min_size=7, max_size=7),
    minus=number,
    thresholds=st.lists(st.integers(-3, 3), min_size=1, max_size=3),
)
def test_stairs_behind_a_scaler_flip_at_the_right_floats(edges, values, minus, thresholds):
    edges = np.sort(np.array(edges))
    steps: list[Step] = [Linear(minus=minus, over=3.0), Stairs(edges, np.array(values[: len(edges) + 1], float))]
    function, pieces = numbers(steps), cuts(steps)
    found = flips(function, pieces, thresholds)
    for i, threshold in enumerate(thresholds):
        x = np.concatenate([neighbours(e) for e in pieces])
        np.testing.assert_array_equal(answer(found, i, x), function(x) <= threshold)


def test_an_even_power_flips_on_both_sides_of_zero():
    step = Power(2)
    found = flips(step, step.cuts(), [4.0, -1.0, 2.0])
    np.testing.assert_array_equal(found.of(0), [np.nextafter(-2.0, -3.0), 2.0])
    assert not found.first[0]
    assert len(found.of(1)) == 0
    assert not found.first[1]
    x = np.concatenate([neighbours(e) for e in found.of(2)])
    np.testing.assert_array_equal(answer(found, 2, x), x * x <= 2.0)


def test_answers_alternate_between_increasing_edges():
    found = flips(np.sin, np.arange(-20.5, 20.0) * np.pi, [0.3])
    inside = found.of(0)[np.abs(found.of(0)) < 60]
    assert all(a < b for a, b in pairwise(inside))
    x = np.linspace(-50, 50, 10_001)
    np.testing.assert_array_equal(answer(found, 0, x), np.sin(x) <= 0.3)


@pytest.mark.parametrize("threshold", [0.0, -0.0, 5e-324, -5e-324])
def test_both_zeros_are_one_number(threshold):
    found = flips(lambda z: z, NONE, [threshold])
    np.testing.assert_array_equal(found.of(0), [threshold])
