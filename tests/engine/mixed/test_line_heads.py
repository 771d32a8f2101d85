"""Heads that read lines alone: followed leg by leg by the native core, as Python integrates them panel by panel."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from forests import graph_of, random_forest

import gigrad as gig
from gigrad import kernels
from gigrad.engine import Settings, attribute
from gigrad.engine.mixed import line_heads
from gigrad.engine.paths import Pairs
from gigrad.graph import (
    Affine,
    Column,
    Concat,
    Elementwise,
    Input,
    Node,
    PiecewiseLinear,
    Product,
    Select,
    Softmax,
    Sum,
)
from gigrad.kernels.corner_games import path_corners
from gigrad.testing import brute_force

COLUMNS = tuple(Column(f"x{j}") for j in range(4))


def net(rng: np.random.Generator, source: Node, kind: str, scores: int) -> Node:
    """Scores of a net of two layers with kinks, of one without, or both at once."""
    straight = Affine(source, 0.5 * rng.normal(size=(scores, source.width)), rng.normal(size=scores))
    if kind == "straight":
        return straight
    units: Node = source
    for width in (19, 13):
        layer = Affine(units, rng.normal(size=(width, units.width)) / units.width**0.5, 0.3 * rng.normal(size=width))
        units = Elementwise(layer, "relu")
    kinked = Affine(units, 0.6 * rng.normal(size=(scores, units.width)), np.zeros(scores))
    return kinked if kind == "kinked" else Concat((straight, kinked))


def head(rng: np.random.Generator, joined: Node, kind: str) -> Node:
    if kind == "softmax":
        return Softmax(Affine(joined, rng.normal(size=(3, joined.width)), rng.normal(size=3)))
    if kind == "product":  # of a score and the trees: no step of it reads scores alone
        return Product(Select(joined, (0, joined.width - 1)), Select(joined, (joined.width - 1, 0)))
    mean = Affine(joined, np.full((1, joined.width), 0.5), np.zeros(1))
    if kind == "sigmoid":
        return Elementwise(mean, "sigmoid")
    x = np.sort(rng.normal(size=40))
    x[10:35] = x[10] + 1e-9 * np.arange(25)  # steep, and more than any step of a table of knots has
    return PiecewiseLinear(mean, x, np.cumsum(rng.random(40)))


def model(seed: int, lines: str, kind: str, scores: int = 1, nominal: tuple[int, ...] = ()) -> tuple[Input, Node]:
    rng = np.random.default_rng(seed)
    source = Input(4, nominal)
    trees = [random_forest(rng, COLUMNS, source, trees=5, depth=3) for _ in range(2)]
    over = Elementwise(trees[1], "sigmoid")
    below = net(rng, source, lines, scores)
    return source, head(rng, Concat((below, trees[0], over)), kind)


def paths(seed: int, count: int = 40) -> Pairs:
    rng = np.random.default_rng(seed)
    starts, ends = (rng.integers(-2, 3, (count, 4)) + 0.3 * rng.random((count, 4)) for _ in range(2))
    starts[:, 3], ends[:, 3] = rng.integers(0, 2, (2, count))
    return Pairs(starts, ends)


@pytest.mark.parametrize("nominal", [(), (3,)])
@pytest.mark.parametrize("kind", ["ecdf", "sigmoid", "softmax", "product"])
@pytest.mark.parametrize(("lines", "scores"), [("kinked", 1), ("straight", 1), ("kinked", 3), ("both", 1)])
def test_the_core_integrates_over_lines_as_python_does(
    monkeypatch: pytest.MonkeyPatch, lines: str, scores: int, kind: str, nominal: tuple[int, ...]
) -> None:
    source, output = model(len(lines) + scores, lines, kind, scores, nominal)  # a nominal column makes two legs
    followed: list[int] = []

    def follow(*given: Any) -> line_heads.LineHeadCredit:
        followed.append(1)
        return line_heads.credit_along_lines(*given)

    monkeypatch.setattr("gigrad.engine.mixed.between.credit_along_lines", follow)
    settings = Settings(tol=1e-8, quiet=True)
    native = attribute(output, source, paths(1), settings)
    assert followed
    plain = attribute(output, source, paths(1), replace(settings, native=False))
    bound = native.error + plain.error + 1e-11
    assert (np.abs(native.values - plain.values).max(axis=1) <= bound).all()
    assert (native.error <= 1e-6 * np.abs(plain.values).max()).all()


@pytest.mark.parametrize("lines", ["kinked", "straight"])
def test_threads_change_no_bit(lines: str) -> None:
    source, output = model(3, lines, "ecdf")
    one, three = (attribute(output, source, paths(2, 300), Settings(n_threads=n, quiet=True)) for n in (1, 3))
    np.testing.assert_array_equal(one.values, three.values)
    np.testing.assert_array_equal(one.error, three.error)


def test_corners_join_the_jumps_of_all_trees_and_columns_that_jump_half_way() -> None:
    source = Input(4)
    rng = np.random.default_rng(0)
    trees = [random_forest(rng, COLUMNS, source, trees=4, depth=3) for _ in range(3)]
    pairs, half = paths(3, 25), (np.array([2, 2, 7, 24]), np.array([1, 3, 0, 2]))
    starts, ends = pairs.starts, pairs.ends
    forests, first = [t.forest for t in trees], [t.forward(starts) for t in trees]
    found = path_corners(forests, first, starts, ends, half)
    listed = [kernels.jumps(f, starts, ends) for f in forests]
    for path in range(25):
        own = [slice(*j.offsets[path : path + 2]) for j in listed]
        entries = {
            (t, int(v))
            for j, at in zip(listed, own, strict=True)
            for t, v in zip(j.time[at], j.variable[at], strict=True)
        }
        entries |= {(0.5, int(column)) for p, column in zip(*half, strict=True) if p == path}
        corners = range(found.first[path], found.first[path + 1])
        times = sorted({t for t, _ in entries})
        assert found.time[corners].tolist() == times
        for corner, time in zip(corners, times, strict=True):
            columns = found.column[found.offsets[corner] : found.offsets[corner + 1]]
            assert columns.tolist() == sorted(v for t, v in entries if t == time)
            assert found.broken[corner] == (time == 0.5 and path in half[0])
            for tree, jumps, at, states in zip(trees, listed, own, found.states, strict=True):
                past = jumps.delta[at][jumps.time[at] <= time].sum(axis=0)
                np.testing.assert_allclose(states[corner + path + 1], tree.forward(starts)[path] + past, atol=1e-12)
        for tree, states in zip(trees, found.states, strict=True):
            np.testing.assert_allclose(states[found.first[path + 1] + path], tree.forward(ends)[path], atol=1e-12)


def test_corners_refuse_arrays_that_do_not_go_together() -> None:
    source = Input(4)
    tree = random_forest(np.random.default_rng(0), COLUMNS, source, trees=2, depth=2)
    rows, none = np.zeros((3, 4)), np.zeros(0, np.int64)
    for outputs, half in (
        (np.zeros((2, tree.width)), (none, none)),
        (np.zeros((3, tree.width)), (np.array([1, 0]), np.array([0, 0]))),
        (np.zeros((3, tree.width)), (np.array([3]), np.array([0]))),
    ):
        with pytest.raises(ValueError, match="corners need the outputs of all trees"):
            path_corners([tree.forest], [outputs], rows, rows, half)


def test_a_table_that_is_added_to_by_groups_refuses_other_entries() -> None:
    table = np.zeros((2, 3))
    kernels.add_grouped(table, np.array([0, 1, 3]), np.array([2, 0, 0]), np.array([[1.0], [2.0], [3.0]]))
    assert table.tolist() == [[0.0, 0.0, 1.0], [5.0, 0.0, 0.0]]
    with pytest.raises(ValueError, match="entries of all rows"):
        kernels.add_grouped(table, np.array([0, 1, 2]), np.array([2, 0, 0]), np.ones((3, 1)))


def test_a_line_whose_columns_cancel_on_the_whole_path() -> None:
    """The line moves by its rounding alone: the difference quotient would be rounding over rounding."""
    rng = np.random.default_rng(8)
    source = Input(3)
    line = Affine(source, np.array([[1.0, -2.0, 0.5]]), np.array([0.1]))
    columns = tuple(Column(f"x{j}") for j in range(3))
    score = Elementwise(Sum((line, random_forest(rng, columns, source, trees=3, depth=2))), "sigmoid")
    graph = graph_of(columns, source, score)
    starts = np.round(rng.normal(size=(20, 3)), 2)
    moves = np.round(rng.normal(size=(20, 3)), 2)
    moves[:, 0] = 2.0 * moves[:, 1] - 0.5 * moves[:, 2]
    assert np.abs(moves @ [1.0, -2.0, 0.5]).max() < 1e-14
    found = gig.explain_pairs(graph, starts, starts + moves, discrete=())
    for i in range(20):
        exact = brute_force(graph, starts[i], starts[i] + moves[i])[:, 0]
        assert np.abs(found.values[i] - exact).max() <= found.error[i].max() + 1e-9
        assert found.error[i].max() < 1e-9
