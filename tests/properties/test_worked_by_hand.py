"""The rules of the definition one by one, on models so small that the answer is worked out by hand.

Two variables pass one threshold each, of heights 1 and 2, under an exponential: who passes first earns less, and who
passes together shares as Shapley says. The fused walk and the mixed engine must both know it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from forests import graph_of, random_forest, random_rows
from hypothesis import given, settings
from hypothesis import strategies as st
from small_graphs import E1, E2, E3, FIRST, NAN, NUMBERS, SECOND, TOGETHER, exponential, lookup, stump

import gigrad as gig
from gigrad.graph import Column, Elementwise, Fill, Graph, Input, Product, Select, Tree, assemble


def both_ways(graph: Graph, start: Any, end: Any) -> np.ndarray:
    """The credits of a path, which are those of the way back with the other sign."""
    there, back = (gig.explain_pairs(graph, [a], [b], discrete=()) for a, b in ((start, end), (end, start)))
    np.testing.assert_allclose(back.values, -there.values, rtol=0, atol=1e-12)
    assert np.abs(there.gap).max() < 1e-12
    return there.values[0]


@pytest.mark.parametrize("engine", ["fused", "mixed"])
@pytest.mark.parametrize(
    ("start", "end", "thresholds", "want"),
    [
        # the earlier crossing comes first, by (T - s) / (e - s) and not by T
        ([0, 0], [1, 1], (0.3, 0.6), FIRST),
        ([0, 0], [1, 1], (0.6, 0.3), SECOND),
        ([0, 0], [10, 1], (5.0, 0.6), FIRST),
        ([0, 0], [10, 1], (5.0, 0.4), SECOND),
        ([-9, 0], [1, 1], (0.0, 0.4), SECOND),
        # times are rounded to multiples of 2^-30, and equal ones are one corner
        ([0, 0], [1, 1], (0.5, 0.5), TOGETHER),
        ([0, 0], [1, 1], (0.25 - 2.0**-32, 0.25 + 2.0**-32), TOGETHER),
        ([0, 0], [1, 1], (0.25, 0.25 + 2.0**-31), TOGETHER),  # half-way between two of them, and the even one is nearer
        ([0, 0], [1, 1], (0.25 - 2.0**-30, 0.25 - 2.0**-31), FIRST),
        ([0, 0], [1, 1], (0.3, 0.3 + 5e-9), FIRST),
        ([0, 0], [1, 1], (0.3 + 5e-9, 0.3), SECOND),
        # who starts on a threshold and leaves its side passes it at 0, alone or with others
        ([0, 0], [1, 1], (0.0, 1e-6), FIRST),
        ([0, 0], [1, 1], (0.0, 0.0), TOGETHER),
        # a missing value comes at one half
        ([0, NAN], [1, 1], (0.3, 0.5), FIRST),
        ([0, NAN], [1, 1], (0.7, 0.5), SECOND),
        ([0, NAN], [1, 1], (0.5, 0.5), TOGETHER),
        ([NAN, NAN], [1, 1], (0.1, 0.9), TOGETHER),
        # whoever ends on the side where it began crosses nothing
        ([0, 0], [0.3, 1], (0.3, 0.6), [0.0, E2 - 1]),
        ([0, 0.6], [1, 0.6], (0.3, 0.6), [E1 - 1, 0.0]),
        ([NAN, 0], [0.3, 1], (0.3, 0.6), [0.0, E2 - 1]),
    ],
)
def test_who_crosses_first(engine: str, start: Any, end: Any, thresholds: Any, want: Any) -> None:
    graph = exponential([stump(0, thresholds[0], 1.0), stump(1, thresholds[1], 2.0)], NUMBERS, engine)
    np.testing.assert_allclose(both_ways(graph, [*start, 0.0], [*end, 0.0]), [*want, 0.0], rtol=0, atol=1e-12)


@pytest.mark.parametrize("engine", ["fused", "mixed"])
def test_who_ends_on_a_threshold_passes_it_last(engine: str) -> None:
    """Downwards the side changes at the threshold itself, at the end of the path."""
    graph = exponential([stump(0, 0.0, 1.0), stump(1, 1e-6, 2.0)], NUMBERS, engine)
    values = both_ways(graph, [1.0, 1.0, 0.0], [0.0, 0.0, 0.0])
    np.testing.assert_allclose(values, [1 - E1, E1 - E3, 0.0], rtol=0, atol=1e-12)


@pytest.mark.parametrize("engine", ["fused", "mixed"])
@pytest.mark.parametrize(("threshold", "want"), [(0.3, FIRST), (0.7, SECOND), (0.5, TOGETHER)])
def test_a_category_changes_at_one_half(engine: str, threshold: float, want: Any) -> None:
    by_set = replace(stump(1, 0.0, 2.0), categories={0: np.array([1])})
    columns = (Column("a"), Column("b", "category"), Column("c"))
    graph = exponential([stump(0, threshold, 1.0), by_set], columns, engine)
    low, high = sorted((0.0, 1.0), key=lambda code: float(graph.predict(np.array([[0.0, code, 0.0]]))[0]))
    np.testing.assert_allclose(both_ways(graph, [0, low, 0], [1, high, 0]), [*want, 0.0], rtol=0, atol=1e-12)


def test_a_corner_is_valued_where_the_path_is() -> None:
    """c times (a and b beyond one half): at the corner c is 3, and from there on it earns what it moves."""
    both = Tree(
        np.array([0, -1, 1, -1, -1]), np.array([0.5, 0, 0.5, 0, 0]), np.array([1, -1, 3, -1, -1]),
        np.array([2, -1, 4, -1, -1]), np.zeros(5, bool), np.array([0.0, 0.0, 0.0, 0.0, 1.0]),
    )  # fmt: skip
    source = Input(3)
    score = Product(assemble(source, [both], np.zeros(1)), Select(source, (2,)))
    values = both_ways(graph_of(NUMBERS, source, score), [0, 0, 1], [1, 1, 5])
    np.testing.assert_allclose(values, [1.5, 1.5, 2.0], rtol=0, atol=1e-12)


def test_a_category_also_changes_inside_the_rows() -> None:
    """L(a) c, where L goes from 2 to 6 half-way, when c is 3."""
    source = Input(3)
    score = Product(lookup(source, 0, 2.0, 6.0), Select(source, (2,)))
    columns = (Column("a", "category"), Column("b"), Column("c"))
    values = both_ways(graph_of(columns, source, score), [0, 0, 1], [1, 0, 5])
    np.testing.assert_allclose(values, [12.0, 0.0, 16.0], rtol=0, atol=1e-12)


def test_two_categories_share_what_they_change_together() -> None:
    source = Input(3)
    score = Product(lookup(source, 0, 2.0, 6.0), lookup(source, 1, 1.0, 3.0))
    columns = (Column("a", "category"), Column("b", "category"), Column("c"))
    values = both_ways(graph_of(columns, source, score), [0, 0, 0], [1, 1, 0])
    np.testing.assert_allclose(values, [8.0, 8.0, 0.0], rtol=0, atol=1e-12)


def test_a_filled_value_changes_at_one_half() -> None:
    """a c, where a missing a counts as 10: from 10 to 4 half-way, when c is 3."""
    source = Input(3)
    filled = Fill(source, np.array([10.0, 0.0, 0.0]))
    score = Product(Select(filled, (0,)), Select(source, (2,)))
    values = both_ways(graph_of(NUMBERS, source, score), [NAN, 0, 1], [4, 0, 5])
    np.testing.assert_allclose(values, [-18.0, 0.0, 28.0], rtol=0, atol=1e-12)


@given(st.integers(0, 2**32 - 1), st.booleans(), st.booleans())
@settings(max_examples=60, deadline=None)
def test_strongly_symmetric(seed: int, linked: bool, with_rows: bool) -> None:
    """Two functions that differ by a swap of two variables: with the variables' values swapped too, or alike, the
    one's credit in the first function is the other's in the second."""
    rng = np.random.default_rng(seed)
    columns = tuple(Column(f"x{j}") for j in range(4))
    source = Input(4)
    trees = random_forest(rng, columns, source)
    swap = np.array([1, 0, 2, 3])
    swapped = replace(trees, feature=np.where(trees.feature >= 0, swap[trees.feature], -1).astype(np.int32))
    f, g = (graph_of(columns, source, Elementwise(t, "sigmoid") if linked else t) for t in (trees, swapped))
    starts, ends = random_rows(rng, columns, 6), random_rows(rng, columns, 6)
    if not with_rows:
        starts[:, 1], ends[:, 1] = starts[:, 0], ends[:, 0]
    of_f = gig.explain_pairs(f, starts, ends).values
    of_g = gig.explain_pairs(g, starts[:, swap], ends[:, swap]).values
    np.testing.assert_allclose(of_g, of_f[:, swap], rtol=0, atol=1e-12)
