"""Large corners of compositions: enumerated like the definition, sampled within a bound that holds."""

from __future__ import annotations

import warnings
from math import factorial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from forests import graph_of, random_forest
from scipy import stats

import gigrad as gig
from gigrad.engine import limits
from gigrad.engine.mixed import large_games
from gigrad.graph import (
    Affine,
    Array,
    Column,
    Concat,
    Elementwise,
    Fill,
    Graph,
    Input,
    IsMissing,
    Node,
    Select,
    Softmax,
)
from gigrad.testing import brute_force

KINDS = ["scores", "deep", "outputs", "trees over trees", "trees over a score", "points", "no smooth part"]


def composed(rng: np.random.Generator, columns: int, kind: str) -> Graph:
    """Two sums of trees, a net of half of the columns and a linear model of others, under a head.

    All columns are nominal: nothing moves but at one half, where all of them change.
    """
    names = tuple(Column(f"c{j}") for j in range(columns))
    source = Input(columns, nominal=tuple(range(columns)))
    deep = kind == "deep"
    first = random_forest(rng, names, source, trees=3 if deep else 12, depth=9 if deep else 4)
    second: Node = Elementwise(random_forest(rng, names, source, trees=8, depth=3, outputs=2), "sigmoid")
    filled = Fill(source, np.full(columns, 1.3))
    flags = IsMissing(Select(source, tuple(range(0, columns, 3))))
    half = np.arange(columns) < columns // 2
    net = Elementwise(Affine(filled, rng.normal(size=(3, columns)) * half / 2, rng.normal(size=3)), "tanh")
    line = Affine(Concat((filled, flags)), rng.normal(size=(1, columns + flags.width)) / 4, np.zeros(1))
    parts: list[Node] = [first, second, net, line]
    if kind == "trees over trees":
        inner = Concat((first, second))
        parts = [random_forest(rng, tuple(Column(f"z{j}") for j in range(3)), inner), second, net, line]
    elif kind == "trees over a score":
        inner = Concat((Affine(line, np.ones((1, 1)), np.zeros(1)), first))
        parts = [random_forest(rng, tuple(Column(f"z{j}") for j in range(2)), inner), second]
    elif kind == "points":
        parts[0] = Affine(first, np.full((1, 1), 20.0), np.full(1, 600.0))
        scaled = Elementwise(Affine(parts[0], np.full((1, 1), 1 / 40), np.full(1, -15.0)), "sigmoid")
        parts = [Affine(scaled, np.full((1, 1), 900.0), np.zeros(1)), Affine(net, np.full((1, 3), 60.0), np.zeros(1))]
        both = Concat(tuple(parts))
        squashed = Elementwise(Affine(both, np.array([[0.004, 0.003]]), np.zeros(1)), "sigmoid")
        return graph_of(names, source, Affine(squashed, np.full((1, 1), 900.0), np.zeros(1)))
    elif kind == "no smooth part":
        parts = [first, second]
    both = Concat(tuple(parts))
    hidden = Elementwise(Affine(both, rng.normal(size=(4, both.width)) / 2, rng.normal(size=4)), "tanh")
    top = Affine(hidden, rng.normal(size=(3 if kind == "outputs" else 1, 4)), np.zeros(3 if kind == "outputs" else 1))
    return graph_of(names, source, Softmax(top) if kind == "outputs" else Elementwise(top, "sigmoid"))


def all_differ(rng: np.random.Generator, columns: int, missing: bool) -> tuple[Array, Array]:
    """A start and an end that differ in every column, some of them missing at one of both."""
    start, end = (rng.integers(0, 7, columns) / 2.0 + shift for shift in (0.0, 0.25))
    if missing:
        start[rng.random(columns) < 0.15] = np.nan
        end[(rng.random(columns) < 0.15) & ~np.isnan(start)] = np.nan
    return start, end


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("columns", "grouped", "missing"), [(6, False, True), (9, True, True), (11, False, False)])
def test_enumeration_is_the_definition(kind: str, columns: int, grouped: bool, missing: bool) -> None:
    rng = np.random.default_rng([columns, *map(ord, kind)])
    graph = composed(rng, columns, kind)
    start, end = all_differ(rng, columns, missing)
    groups = {"pair": ["c1", "c3"], "three": ["c2", "c4", "c5"]} if grouped else None
    e = gig.explain_pairs(graph, start[None], end[None], groups=groups, nominal=[c.name for c in graph.columns])
    want = brute_force(graph, start, end, groups=groups)
    scale = max(1.0, float(np.abs(e.predictions).max()))
    np.testing.assert_allclose(e.values[0].reshape(want.shape), want, rtol=0, atol=1e-12 * scale)
    assert np.max(e.error) < 1e-11 * scale


def shapley(values: Array) -> Array:
    """The definition, for values (2^k,) of all coalitions, by weights of coalitions with and without each player."""
    k = len(values).bit_length() - 1
    place = np.arange(len(values))
    size = sum((place >> i & 1 for i in range(k)), np.zeros(len(values), np.int64))
    weight = np.array([factorial(a) * factorial(k - a - 1) / factorial(k) for a in range(k)])
    out = np.zeros(k)
    for i in range(k):
        without = place[(place >> i & 1) == 0]
        out[i] = (weight[size[without]] * (values[without | 1 << i] - values[without])).astype(np.longdouble).sum()
    return out


@pytest.mark.parametrize(("columns", "kind"), [(13, "scores"), (15, "deep"), (16, "points"), (20, "no smooth part")])
def test_up_to_twenty_players_equal_all_coalitions(columns: int, kind: str) -> None:
    rng = np.random.default_rng(columns)
    graph = composed(rng, columns, kind)
    start, end = all_differ(rng, columns, missing=True)
    e = gig.explain_pairs(graph, start[None], end[None], nominal=[c.name for c in graph.columns], corner_tol=0)
    past = np.arange(2**columns)[:, None] >> np.arange(columns) & 1 == 1
    want = shapley(np.concatenate([graph.predict(np.where(some, end, start)) for some in np.array_split(past, 64)]))
    scale = max(1.0, float(np.abs(e.predictions).max()))
    np.testing.assert_allclose(e.values[0], want, rtol=0, atol=1e-12 * scale)
    assert e.error[0] < 1e-11 * scale


def high_water() -> int:
    """The most memory that this process has had, in bytes."""
    (line,) = [x for x in Path("/proc/self/status").read_text().splitlines() if x.startswith("VmHWM")]
    return int(line.split()[1]) * 1024


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="counts memory as Linux does")
def test_all_coalitions_are_never_in_memory_at_once() -> None:
    """2^21 coalitions of six scores would be 100 MB; tables have 8 MB for each sum of trees, whatever the players."""
    columns = 21
    rng = np.random.default_rng(1)
    graph = composed(rng, columns, "scores")
    start, end = all_differ(rng, columns, missing=False)
    run: dict[str, Any] = {"nominal": [c.name for c in graph.columns], "corner_tol": 0, "n_threads": 1}
    gig.explain_pairs(graph, start[None], np.where(np.arange(columns) < 10, end, start)[None], **run)
    Path("/proc/self/clear_refs").write_text("5")  # begin to count anew
    before = high_water()
    e = gig.explain_pairs(graph, start[None], end[None], **run)
    assert e.error[0] < 1e-11
    assert high_water() - before < 48e6


# ---------------------------------------------------------------- sampled corners


def sampled_explanation(graph: Graph, rows: Array, reference: Array, **options: Any) -> gig.Explanation:
    nominal = [c.name for c in graph.columns]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gig.AccuracyWarning)
        return gig.explain(graph, rows, reference, nominal=nominal, **options)


@pytest.fixture
def only_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a pilot, so few players would be enumerated: it costs less than the fewest orders."""
    monkeypatch.setattr(large_games, "MAX_ENUMERATED", 0)


@pytest.mark.usefixtures("only_sampled")
@pytest.mark.parametrize("kind", ["scores", "outputs", "trees over trees"])
@pytest.mark.parametrize("grouped", [False, True])
def test_sampled_credits_are_within_their_error(kind: str, grouped: bool) -> None:
    columns = 17 if grouped else 15
    rng = np.random.default_rng([7, *map(ord, kind)])
    graph = composed(rng, columns, kind)
    reference, rows = (np.stack([all_differ(rng, columns, True)[side] for _ in range(3)]) for side in (0, 1))
    groups = {"three": ["c0", "c5", "c9"]} if grouped else None
    exact = sampled_explanation(graph, rows, reference, corner_tol=0, groups=groups)
    assert np.max(exact.error) < 1e-11
    e = sampled_explanation(graph, rows, reference, corner_tol=0.1, groups=groups)
    assert np.min(e.error) > 1e-9
    assert (np.abs(e.values - exact.values).max(axis=1) <= e.error).all()
    assert np.abs(e.gap).max() < 1e-11


@pytest.mark.usefixtures("only_sampled")
def test_more_jumping_columns_than_can_be_tabulated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Smooth parts are asked along the drawn orders then, with the same answer."""
    columns = 15
    rng = np.random.default_rng(8)
    graph = composed(rng, columns, "scores")
    reference, rows = (np.stack([all_differ(rng, columns, True)[side] for _ in range(2)]) for side in (0, 1))
    monkeypatch.setattr(limits, "CONTROL_VARIATES", 0)
    tabulated = sampled_explanation(graph, rows, reference, corner_tol=0.1)
    monkeypatch.setattr(limits, "STORED_COALITIONS", 1)
    asked = sampled_explanation(graph, rows, reference, corner_tol=0.1)
    assert np.min(asked.error) > 1e-9
    np.testing.assert_allclose(asked.values, tabulated.values, rtol=0, atol=1e-13)
    monkeypatch.undo()
    monkeypatch.setattr(limits, "STORED_COALITIONS", 1)
    exact = sampled_explanation(graph, rows, reference, corner_tol=0)
    assert np.max(exact.error) < 1e-11
    assert (np.abs(asked.values - exact.values).max(axis=1) <= asked.error).all()


def test_many_players_are_sampled_within_the_error_of_each_other() -> None:
    columns = 66
    rng = np.random.default_rng(9)
    graph = composed(rng, columns, "scores")
    start, end = all_differ(rng, columns, missing=True)
    one, other = (sampled_explanation(graph, end[None], start[None], corner_tol=0.5, seed=s) for s in (0, 1))
    assert one.error[0] > 0
    assert one.values.tobytes() != other.values.tobytes()
    assert np.abs(one.values - other.values).max() <= one.error[0] + other.error[0]
    assert np.abs(one.gap).max() < 1e-11


@pytest.mark.usefixtures("only_sampled")
def test_bits_depend_on_neither_threads_nor_order_nor_company() -> None:
    columns = 17
    rng = np.random.default_rng(10)
    graph = composed(rng, columns, "scores")
    reference, rows = (np.stack([all_differ(rng, columns, True)[side] for _ in range(3)]) for side in (0, 1))
    nominal = [c.name for c in graph.columns]

    def run(some: Array, **options: Any) -> Array:
        explainer = gig.Explainer(graph, reference, corner_tol=0.2, nominal=nominal, **options)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", gig.AccuracyWarning)
            found = explainer(some)
        assert (found.error > 1e-9).all()
        return found.values

    values = run(rows, n_threads=1)
    assert run(rows, n_threads=3).tobytes() == values.tobytes()
    order = rng.permutation(len(rows))
    assert run(rows[order]).tobytes() == values[order].tobytes()
    assert np.concatenate([run(rows[i : i + 1]) for i in range(len(rows))]).tobytes() == values.tobytes()
    assert run(rows, seed=1).tobytes() != values.tobytes()


def test_a_missed_target_is_named_with_what_helps() -> None:
    columns = 26
    rng = np.random.default_rng(11)
    graph = composed(rng, columns, "scores")
    start, end = all_differ(rng, columns, missing=False)
    nominal = [c.name for c in graph.columns]
    with pytest.warns(gig.AccuracyWarning, match=r"columns change at once.*groups=.*corner_tol=") as caught:
        e = gig.explain_pairs(graph, start[None], end[None], nominal=nominal, corner_tol=1e-6)
    assert f"{e.error[0]:.3g}" in str(caught[0].message)


def coverage(cases: int, seed: int) -> int:
    """How many rows of random compositions are farther off than their error, for corners whose truth is known."""
    rng, missed, each = np.random.default_rng(seed), 0, 20
    for _ in range(cases // each):
        columns, kind = int(rng.integers(14, 17)), str(rng.choice(["scores", "deep", "outputs", "no smooth part"]))
        graph = composed(rng, columns, kind)
        n = int(rng.integers(1, 5))
        reference, rows = (np.stack([all_differ(rng, columns, True)[side] for _ in range(n)]) for side in (0, 1))
        exact = sampled_explanation(graph, rows, reference, corner_tol=0)
        for number in range(each // n):
            target = float(rng.choice([0.03, 0.1, 0.3], p=[0.1, 0.45, 0.45]))  # the first costs five times the others
            e = sampled_explanation(graph, rows, reference, corner_tol=target, seed=number)
            off = np.abs(e.values - exact.values).max(axis=1) - 1e-12
            missed += int((off > e.error + exact.error).reshape(n, -1).any(axis=1).sum())
    return missed


def test_error_covers_the_truth() -> None:
    """Some rows and seeds; `PYTHONPATH=tests/helpers python tests/engine/mixed/test_large_games.py 20000` does more."""
    cases = 120
    assert stats.binom.sf(coverage(cases, 0) - 1, cases, 1e-3) > 1e-4


if __name__ == "__main__":
    import sys

    cases = int(sys.argv[1])
    missed = coverage(cases, 1)
    chance = stats.binom.sf(missed - 1, cases, 1e-3)
    print(f"{missed} of about {cases} rows were farther off than their error: p = {chance:.2g}")
