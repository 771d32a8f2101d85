"""The brute-force definition, against answers worked out by hand, enumeration, and rows in the cells themselves."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from forests import graph_of, random_columns, random_forest, random_rows
from small_graphs import E1, E2, E3, FIRST, NUMBERS, SECOND, TOGETHER, exponential, lookup, stump

import gigrad as gig
from gigrad import kernels
from gigrad.graph import (
    Column,
    Elementwise,
    Graph,
    Input,
    Product,
    Select,
    Sum,
    TreeEnsemble,
    assemble,
    evaluate,
    rewire,
    topological,
)
from gigrad.graph.places import between, in_support
from gigrad.importers.common.thresholds import at_most_in_float32, less_in_float32
from gigrad.testing import brute_force, find_corners
from gigrad.testing.times import (
    HALF,
    UNITS,
    Stand,
    decimal_of_float32,
    discrete_place,
    shortest_decimal,
)

NAN, INF = np.nan, np.inf


def at(place: float, equal: tuple[float, float] | None = None, single: bool = False) -> Stand:
    low, high = equal or (place, place)
    return Stand(place, low, high, single)


# ---------------------------------------------------------------- times


@pytest.mark.parametrize(
    ("stand", "start", "end", "time"),
    [
        (at(0.25), 0.0, 1.0, UNITS // 4),
        (at(0.25), 1.0, 0.0, 3 * UNITS // 4),
        (at(0.0), 0.0, 1.0, 0),
        (at(1.0), 0.0, 1.0, UNITS),
        (at(-5.0), 0.0, 1.0, 0),  # a place beyond the ends is clipped: the side has changed all the same
        (at(7.0), 0.0, 1.0, UNITS),
        (at(INF), 0.0, 1.0, UNITS),
        (at(INF), 1.0, 0.0, 0),
        (at(NAN), 0.0, 1.0, HALF),
        (at(0.25), NAN, 1.0, HALF),
        (at(0.25), 0.0, NAN, HALF),
        (at(0.25), 0.0, INF, HALF),
        (at(1 / 3), 0.0, 1.0, 357913941),
        (at(2.5 / UNITS), 0.0, 1.0, 2),  # halves to even
        (at(3.5 / UNITS), 0.0, 1.0, 4),
        (at(0.0), -1.7e308, 1.7e308, HALF),  # the difference of the ends is no float64 number
        # shortest decimals: 0.15 is half-way from 0.1 to 0.2, whether they are held in float32 or in float64
        (at(0.15, single=True), float(np.float32(0.1)), float(np.float32(0.2)), HALF),
        (at(0.15, single=True), 0.1, float(np.float32(0.2)), HALF),
        # a float64 threshold between two neighbours in float32 is equal to none of them, or to the one of its decimal
        (Stand(0.15, 0.14999998, 0.15000002, True, True), 0.15, 0.3, 0),
        (Stand(0.15, 0.14999998, 0.15000002, True, True), float(np.float32(0.15)), float(np.float32(0.3)), 0),
        # what the library cannot tell from its threshold crosses at exactly 0 or 1, in either direction
        (at(0.5, (0.4999, 0.5001)), 0.49995, 1.0, 0),
        (at(0.5, (0.4999, 0.5001)), 1.0, 0.49995, UNITS),
        (at(0.5, (0.4999, 0.5001)), 0.0, 0.50005, UNITS),
        (at(0.5, (0.4999, 0.5001)), 0.49995, 0.50005, HALF),
        # half-way in the gap of a discrete column, the stored threshold is a value like any other
        (at(0.5, (1.0, 1.0)), 0.0, 1.0, HALF),
        (at(0.5, (1.0, 1.0)), 1.0, 0.0, HALF),
        (at(0.5, (1.0, 1.0)), 0.0, 2.0, UNITS // 4),
        (at(1e30, single=True), 0.0, 4e30, UNITS // 4),
        (at(1e299, single=True), 0.0, 4e299, UNITS // 4),  # beyond float32 as they are
    ],
)
def test_times(stand: Stand, start: float, end: float, time: int) -> None:
    assert stand.time(start, end) == time
    assert stand.time(end, start) == UNITS - time


def test_grids_of_tenths_and_hundredths_meet() -> None:
    """From a to b and from b to a, and over twice the span: whoever stands in the middle crosses at one half."""
    for unit in (10, 100):
        for a, b in ((1, 3), (12, 18), (29, 57), (7, 91)):
            low, high = np.float32(a / unit), np.float32(b / unit)
            middle = at((a + b) / 2 / unit, single=True)
            assert middle.time(float(low), float(high)) == HALF
            quarter = at((3 * a + b) / 4 / unit, single=True)
            assert quarter.time(float(low), float(high)) == HALF // 2
            assert quarter.time(float(high), float(low)) == UNITS - HALF // 2


def floats32(n: int = 20_000) -> Any:
    """Random float32 numbers of every size, and round ones."""
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2**32, n, dtype=np.uint64).astype(np.uint32).view(np.float32)
    grid = np.concatenate([np.arange(-500, 500) / k for k in (1, 2, 10, 100, 1000)]).astype(np.float32)
    powers = np.float32(2.0) ** np.arange(-60, 60, dtype=np.float32)
    return np.concatenate([bits[np.isfinite(bits)], grid, powers, -powers])


def test_decimals_of_float32_are_the_kernels() -> None:
    x = floats32().astype(np.float64)
    np.testing.assert_array_equal(kernels.decimals_of_float32(x), [decimal_of_float32(v) for v in x])


@pytest.mark.parametrize("fold", [less_in_float32, at_most_in_float32])
def test_a_threshold_in_float32_stands_where_its_own_value_is_read(fold: Any) -> None:
    """Powers of two, whose neighbours below are half as far as those above, included."""
    t = np.concatenate([2.0 ** np.arange(-40, 40), np.arange(-999, 999) / 100]).astype(np.float32).astype(np.float64)
    low, high = fold(t).equal
    place = between(low, high, np.ones(len(t), np.bool_))
    np.testing.assert_array_equal(place, kernels.decimals_of_float32(t))


def test_shortest_decimals_are_the_kernels() -> None:
    rng = np.random.default_rng(1)
    middle = np.concatenate([rng.normal(size=2000) * 10.0 ** rng.integers(-8, 9, 2000), np.arange(1, 1000) / 100])
    low = middle - np.abs(middle) * 10.0 ** rng.uniform(-9, -1, len(middle))
    high = middle + np.abs(middle) * 10.0 ** rng.uniform(-9, -1, len(middle))
    want = [shortest_decimal(a, b) for a, b in zip(low.tolist(), high.tolist(), strict=True)]
    np.testing.assert_array_equal(kernels.shortest_decimals(low, high), want)
    assert shortest_decimal(0.1999999, 0.2000001) == 0.2
    assert shortest_decimal(-0.34, -0.26) == -0.3
    assert shortest_decimal(-1.0, 2.0) == 0.0


# ---------------------------------------------------------------- places


@pytest.mark.parametrize(
    ("threshold", "support", "want"),
    [
        (0.0, None, 0.5), (0.5, None, 0.5), (np.nextafter(1.0, 0.0), None, 0.5), (1.0, None, 1.5), (1e-35, None, 0.5),
        (-1e-35, None, -0.5), (-2.3, None, -2.5), (24.0, (12, 24, 36), 30.0), (18.0, (12, 24, 36), 18.0),
        (23.9, (12, 24, 36), 18.0), (0.25, (0.1, 0.3), 0.2),
    ],
)  # fmt: skip
def test_places_on_discrete_columns(threshold: float, support: Any, want: float) -> None:
    assert discrete_place(threshold, NAN, support) == want


@pytest.mark.parametrize(
    ("threshold", "support"), [(INF, None), (-INF, None), (1e300, None), (36.0, (12, 24, 36)), (11.0, (12, 24, 36))]
)
def test_splits_that_tell_only_missing_values_apart_stay(threshold: float, support: Any) -> None:
    assert discrete_place(threshold, 99.0, support) == 99.0


def test_places_are_the_graphs() -> None:
    rng = np.random.default_rng(2)
    threshold = np.concatenate(
        [rng.normal(size=200) * 5, np.arange(-9, 9) / 2, np.nextafter(np.arange(-9.0, 9.0), -99)]
    )
    for support in (None, (-3.0, 0.5, 2.0, 4.0)):
        got = in_support(threshold, None if support is None else np.array(support))
        outside = np.isnan(got) | (got == threshold)
        want = [discrete_place(t, NAN, support) for t in threshold.tolist()]
        np.testing.assert_array_equal(got[~outside], np.array(want)[~outside])
    low, high = np.array([0.1, 0.21, -INF, 1.0, -2.0]), np.array([0.1, 0.32, 4.0, INF, -1.0])
    np.testing.assert_allclose(between(low, high, np.zeros(5, np.bool_)), [0.1, 0.265, 4.0, 1.0, -1.5], rtol=1e-15)
    np.testing.assert_allclose(between(low, high, np.ones(5, np.bool_)), [0.1, 0.3, 4.0, 1.0, -2.0], rtol=1e-15)


# ---------------------------------------------------------------- credits


def pair(graph: Graph, start: Any, end: Any, **options: Any) -> Any:
    """Credits of a pair, which are those of the way back with the other sign."""
    there, back = brute_force(graph, start, end, **options), brute_force(graph, end, start, **options)
    np.testing.assert_allclose(back, -there, rtol=0, atol=1e-12)
    return there[:, 0]


@pytest.mark.parametrize("engine", ["fused", "mixed"])
@pytest.mark.parametrize(
    ("start", "end", "thresholds", "discrete", "want"),
    [
        ([0, 0], [1, 1], (0.3, 0.6), {}, FIRST),
        ([0, 0], [1, 1], (0.6, 0.3), {}, SECOND),
        ([0, 0], [1, 1], (0.3, 0.3 + 2.0**-33), {}, TOGETHER),
        ([0, 0], [1, 1], (0.3, 0.3 + 2.0**-29), {}, FIRST),
        ([0, 0], [1, 1], (0.3, 0.6), {"a": None, "b": None}, TOGETHER),  # flags, wherever their thresholds are
        ([0, 0], [1, 1], (0.3, 0.6), {"a": None}, FIRST),  # at 0.5 and at 0.6
        ([0, 0], [1, 1], (0.6, 0.5), {"a": None}, TOGETHER),
        ([0, 0], [3, 1], (2.9, 0.8), {"a": None}, SECOND),  # 2.5 of 3 is later than 0.8
        ([0, 0], [3, 1], (2.0, 0.85), {"a": None}, FIRST),
        ([12, 0], [36, 1], (24.0, 0.5), {}, TOGETHER),
        ([12, 0], [36, 1], (24.0, 0.5), {"a": (12, 24, 36)}, SECOND),
        ([12, 0], [36, 1], (18.0, 0.5), {"a": (12, 24, 36)}, FIRST),
        ([12, 0], [36, 1], (23.0, 0.26), {"a": (12, 24, 36)}, FIRST),
        ([0.5, 0], [1, 1], (0.9, 0.1), {"a": None}, FIRST),  # an imputed mean: beyond its place already, so at 0
        ([NAN, 0], [1, 1], (0.9, 0.5), {"a": None, "b": None}, TOGETHER),
        ([NAN, 0], [1, 1], (0.9, 0.6), {"a": None}, FIRST),
    ],
)
def test_who_crosses_first(engine: str, start: Any, end: Any, thresholds: Any, discrete: Any, want: Any) -> None:
    graph = exponential([stump(0, thresholds[0], 1.0), stump(1, thresholds[1], 2.0)], NUMBERS, engine)
    got = pair(graph, [*start, 0.0], [*end, 0.0], discrete=discrete)
    np.testing.assert_allclose(got, [*want, 0.0], rtol=0, atol=1e-12)


@pytest.mark.parametrize("engine", ["fused", "mixed"])
def test_places_of_the_graph_are_taken_where_no_choice_is_given(engine: str) -> None:
    graph = exponential([stump(0, 0.3, 1.0), stump(1, 0.6, 2.0)], NUMBERS, engine)
    (trees,) = [n for n in topological(graph.score) if isinstance(n, TreeEnsemble)]
    for place, want in ((0.5, TOGETHER), (0.7, SECOND), (NAN, TOGETHER)):
        moved = replace(trees, place=np.where(trees.feature == 0, place, np.where(trees.feature == 1, 0.5, NAN)))
        score = rewire((graph.score,), {trees: moved})[graph.score]
        got = pair(replace(graph, score=score, margin=score), [0.0, 0.0, 0.0], [1.0, 1.0, 0.0])
        np.testing.assert_allclose(got, [*want, 0.0], rtol=0, atol=1e-12)


def test_smooth_parts_read_the_straight_path_of_a_discrete_column() -> None:
    """exp(step(a) + a): half-way the step of height 1 is worth e^1.5 - e^0.5, and a earns the rest as it moves."""
    source = Input(3)
    score = Elementwise(Sum((assemble(source, [stump(0, 0.9, 1.0)], np.zeros(1)), Select(source, (0,)))), "exp")
    graph = graph_of(NUMBERS, source, score)
    corner = next(iter(find_corners(graph, score, np.zeros(3), np.array([1.0, 0, 0]))))
    assert corner.time == pytest.approx(0.9)
    got = pair(graph, [0.0, 0, 0], [1.0, 0, 0], discrete={"a": None})
    np.testing.assert_allclose(got, [E2 - 1, 0, 0], rtol=0, atol=1e-9)
    # with b in the smooth part: it moves from 0 to 1 beside a's step, and earns e^b before and e^(1 + b) after one half
    score = Elementwise(Sum((assemble(source, [stump(0, 0.9, 1.0)], np.zeros(1)), Select(source, (1,)))), "exp")
    half = np.exp(0.5)
    want_b = (half - 1) + math.e * (math.e - half)
    got = pair(graph_of(NUMBERS, source, score), [0.0, 0, 0], [1.0, 1.0, 0], discrete={"a": None})
    np.testing.assert_allclose(got, [half * (math.e - 1), want_b, 0], rtol=0, atol=1e-9)


def test_a_nominal_column_jumps_in_smooth_parts_too() -> None:
    """a b, with a from 2 to 6 while b goes from 1 to 5: all of a's change at one half, when b is 3."""
    source = Input(3)
    score = Product(Select(source, (0,)), Select(source, (1,)))
    graph = graph_of(NUMBERS, source, score)
    np.testing.assert_allclose(pair(graph, [2, 1, 0], [6, 5, 0], discrete={}), [12, 16, 0], atol=1e-9)
    got = pair(graph, [2, 1, 0], [6, 5, 0], discrete={}, nominal=["a"])
    np.testing.assert_allclose(got, [12, 16, 0], rtol=0, atol=1e-9)
    score = Product(Product(Select(source, (0,)), Select(source, (0,))), Select(source, (1,)))
    got = pair(graph_of(NUMBERS, source, score), [2, 1, 0], [6, 5, 0], discrete={}, nominal=["a"])
    np.testing.assert_allclose(got, [32 * 3, 2 * 4 + 2 * 36, 0], rtol=0, atol=1e-9)


def test_nominal_columns_and_categories_share_a_corner() -> None:
    """L(a) b, both changing at one half: 2 to 6 and 1 to 3."""
    source = Input(3)
    columns = (Column("a", "category"), Column("b"), Column("c"))
    graph = graph_of(columns, source, Product(lookup(source, 0, 2.0, 6.0), Select(source, (1,))))
    got = pair(graph, [0, 1, 0], [1, 3, 0], discrete={}, nominal=["b"])
    np.testing.assert_allclose(got, [8, 8, 0], rtol=0, atol=1e-12)


def test_a_group_is_one_player() -> None:
    graph = exponential([stump(0, 0.5, 1.0), stump(1, 0.5, 2.0), stump(2, 0.5, 3.0)], NUMBERS, "fused")
    got = brute_force(graph, np.zeros(3), np.ones(3), groups={"ac": ["a", "c"]})[:, 0]
    e4, e6 = np.exp([4.0, 6.0])
    np.testing.assert_allclose(got, [(e4 - 1 + e6 - E2) / 2, (E2 - 1 + e6 - e4) / 2], rtol=1e-14)
    got = pair(graph, np.zeros(3), np.ones(3), groups={"all": ["a", "b", "c"]})
    np.testing.assert_allclose(got, [e6 - 1], rtol=1e-14)
    # members that cross at different times earn together what they earn alone
    apart = exponential([stump(0, 0.2, 1.0), stump(1, 0.5, 2.0), stump(2, 0.8, 3.0)], NUMBERS, "fused")
    alone = brute_force(apart, np.zeros(3), np.ones(3))[:, 0]
    got = brute_force(apart, np.zeros(3), np.ones(3), groups={"ac": ["a", "c"]})[:, 0]
    np.testing.assert_allclose(got, [alone[0] + alone[2], alone[1]], rtol=1e-14)
    assert alone.sum() == pytest.approx(e6 - 1)
    assert alone[0] == pytest.approx(E1 - 1)
    assert alone[1] == pytest.approx(E3 - E1)


@pytest.mark.parametrize("discrete", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_asking_the_model_as_a_black_box_is_the_same(seed: int, discrete: bool) -> None:
    """The trees walked with the sides of each cell, and the forward pass of a row that lies in it."""
    rng = np.random.default_rng(seed)
    columns = random_columns(rng, 4)
    source = Input(4)
    trees = random_forest(rng, columns, source)
    graph = graph_of(columns, source, Elementwise(trees, "sigmoid"))
    choice = {c.name: None for c in columns if c.kind == "number"} if discrete else {}
    for start, end in zip(random_rows(rng, columns, 4), random_rows(rng, columns, 4), strict=True):
        want = brute_force(graph, start, end, discrete=choice)
        got = brute_force(graph, start, end, discrete=choice, score=lambda rows: scores(graph, rows))
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-13)


@pytest.mark.parametrize("seed", range(12))
def test_flags_alone_have_baseline_shapley_values(seed: int) -> None:
    """Averages over all orders in which the columns take their new values."""
    rng = np.random.default_rng(100 + seed)
    columns = random_columns(rng, 4)
    source = Input(4)
    graph = graph_of(columns, source, Elementwise(random_forest(rng, columns, source), "exp"))
    start, end = (
        np.where([c.kind == "category" for c in columns], rng.integers(0, 4, 4), rng.integers(0, 2, 4)) for _ in "se"
    )
    start, end = start.astype(float), end.astype(float)
    start[rng.random(4) < 0.2] = NAN
    want, orders = np.zeros(4), list(permutations(range(4)))
    for order in orders:
        row = start.copy()
        for j in order:
            before = scores(graph, row[None])[0]
            row[j] = end[j]
            want[j] += (scores(graph, row[None])[0] - before) / len(orders)
    got = pair(graph, start, end, discrete={c.name: None for c in columns if c.kind == "number"})
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-12 * max(1, np.abs(want).max()))


def scores(graph: Graph, rows: Any) -> Any:
    """What encoded rows are given, by the forward pass."""
    return evaluate((graph.score,), {graph.input: np.asarray(rows)})[graph.score][:, 0]


def test_neighbours_of_a_scaled_threshold_cross_the_same_way_back() -> None:
    """Behind a scaler both may be the stored threshold to the library, on either side of it: one half, both ways."""
    middle = replace(stump(0, 0.5, 1.0), equal=(np.full(3, 0.4999), np.full(3, 0.5001)))
    for engine in ("fused", "mixed"):
        graph = exponential([middle, stump(1, 0.3, 2.0)], NUMBERS, engine)
        start, end = np.array([0.49995, 0.0, 0.0]), np.array([0.50005, 1.0, 0.0])
        want = pair(graph, start, end)
        np.testing.assert_allclose(want, [*SECOND, 0.0], rtol=0, atol=1e-12)
        for a, b, sign in ((start, end, 1), (end, start, -1)):
            got = gig.explain_pairs(graph, [a], [b], discrete=()).values[0]
            np.testing.assert_allclose(got, sign * want, rtol=0, atol=1e-12)
            got = gig.explain(graph, np.repeat(b[None], 20, 0), np.repeat(a[None], 20, 0), discrete=()).values
            np.testing.assert_allclose(got, np.repeat(sign * want[None], 20, 0), rtol=0, atol=1e-12)
