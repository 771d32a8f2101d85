"""Corners of many variables: exact as far as all coalitions are asked, and within `error` above that."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from math import factorial
from typing import Any

import numpy as np
import pytest
from flag_trees import flag_trees, many_flags
from forests import graph_of
from unchecked import unchecked

import gigrad as gig
from gigrad import kernels
from gigrad.graph import Column, Elementwise, Graph, Input, Tree, TreeEnsemble, assemble
from gigrad.kernels import Stage
from gigrad.kernels.corner_games import CornerLeaves

SIGMOID = [Stage("sigmoid")]


def shapley(values: np.ndarray) -> np.ndarray:
    """The definition, for values (2^k, outputs) of all coalitions: (k, outputs)."""
    n = len(values)
    k = n.bit_length() - 1
    place = np.arange(n)
    size = np.zeros(n, np.int64)
    for i in range(k):
        size += place >> i & 1
    weight = np.array([factorial(a) * factorial(k - a - 1) / factorial(k) for a in range(k)])
    gains = values - values[0]
    out = np.zeros((k, values.shape[1]))
    for i in range(k):
        without = place[(place >> i & 1) == 0]
        each = weight[size[without], None] * (gains[without | 1 << i] - gains[without])
        out[i] = each.astype(np.longdouble).sum(axis=0)
    return out


def coalitions(start: np.ndarray, end: np.ndarray, players: list[list[int]]) -> np.ndarray:
    """The rows of all coalitions: each player's columns from the end where its bit is set."""
    rows = np.repeat(start[None], 2 ** len(players), axis=0)
    place = np.arange(len(rows))
    for i, columns in enumerate(players):
        rows[np.ix_(place >> i & 1 == 1, columns)] = end[columns]
    return rows


def logistic(m: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-m))


def softmax(m: np.ndarray) -> np.ndarray:
    shifted = np.exp(m - m.max(axis=1, keepdims=True))
    return shifted / shifted.sum(axis=1, keepdims=True)


SIZES = [(2, 5, 3), (7, 20, 4), (9, 20, 4), (13, 30, 6), (17, 40, 5), (20, 60, 4)]


@pytest.mark.parametrize(("k", "trees", "depth"), SIZES)
def test_enumeration_is_the_definition(k: int, trees: int, depth: int) -> None:
    forest = flag_trees(k, trees, depth, seed=k).forest
    start, end = np.zeros(k), np.ones(k)
    got = kernels.linked_credits_pairs(forest, SIGMOID, start[None], end[None])
    want = shapley(logistic(kernels.predict(forest, coalitions(start, end, [[j] for j in range(k)]))))
    np.testing.assert_allclose(got.values[0], want, rtol=0, atol=1e-13)
    assert not len(got.large.end)


def test_deep_leaves_are_enumerated_from_both_sides() -> None:
    """Leaves of depth 14 that need most players out would have 2^13 coefficients each."""
    k = 14
    forest = flag_trees(k, 3, 11, seed=1, size=0.5).forest
    start, end = np.zeros(k), np.ones(k)
    for s, e in ((start, end), (end, start)):
        got = kernels.linked_credits_pairs(forest, SIGMOID, s[None], e[None]).values[0]
        want = shapley(logistic(kernels.predict(forest, coalitions(s, e, [[j] for j in range(k)]))))
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-13)


def test_several_outputs() -> None:
    k = 12
    forest = flag_trees(k, 30, 4, seed=3, outputs=3, size=1.0).forest
    start, end = np.zeros(k), np.ones(k)
    got = kernels.linked_credits_pairs(forest, [Stage("softmax")], start[None], end[None]).values[0]
    want = shapley(softmax(kernels.predict(forest, coalitions(start, end, [[j] for j in range(k)]))))
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-13)


def test_more_scores_than_one_table_holds_are_done_in_parts() -> None:
    """2^18 coalitions of 9 scores are 19 MB; a thread has tables of 8."""
    k, outputs = 18, 9
    forest = flag_trees(k, 27, 4, seed=4, outputs=outputs, size=1.0).forest
    start, end = np.zeros(k), np.ones(k)
    got = kernels.linked_credits_pairs(forest, [Stage("softmax")], start[None], end[None]).values[0]
    want = shapley(softmax(kernels.predict(forest, coalitions(start, end, [[j] for j in range(k)]))))
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-12)


def test_points_near_six_hundred_lose_no_digits() -> None:
    k = 16
    trees = flag_trees(k, 40, 5, seed=5, size=20.0)
    points = replace(trees, base=np.array([600.0]))
    link = [affine(1 / 40.0, -15.0), Stage("sigmoid"), affine(900.0, 0.0)]
    start, end = np.zeros(k), np.ones(k)
    got = kernels.linked_credits_pairs(points.forest, link, start[None], end[None]).values[0]
    scores = 900 * logistic(kernels.predict(points.forest, coalitions(start, end, [[j] for j in range(k)])) / 40 - 15)
    np.testing.assert_allclose(got, shapley(scores), rtol=0, atol=2e-12 * np.abs(scores).max() / 900)


def affine(weight: float, bias: float) -> Stage:
    return Stage("affine", np.array([[weight]]), np.array([bias]))


def probability(trees: TreeEnsemble) -> Graph:
    score = Elementwise(trees, "sigmoid")
    columns = tuple(Column(f"c{j}") for j in range(trees.source.width))
    source = trees.source
    assert isinstance(source, Input)
    return graph_of(columns, source, score)


def test_missing_values_and_groups_are_players_too() -> None:
    k = 11
    trees = flag_trees(k, 30, 5, seed=6, missing=True)
    graph = probability(trees)
    start, end = np.zeros(k), np.ones(k)
    start[2], end[5] = np.nan, np.nan
    groups = {"first": ["c0", "c1", "c2"], "last": ["c9", "c10"]}
    players = [[0, 1, 2], [9, 10], *[[j] for j in range(3, 9)]]
    e = gig.explain_pairs(graph, start[None], end[None], groups=groups)
    want = shapley(graph.predict(coalitions(start, end, players))[:, None])[:, 0]
    got = dict(zip(e.feature_names, e.values[0], strict=True))
    names = ["first", "last", *(f"c{j}" for j in range(3, 9))]
    np.testing.assert_allclose([got[n] for n in names], want, rtol=0, atol=1e-13)
    assert e.error[0] == 0


# ---------------------------------------------------------------- sampled corners


def test_a_row_of_many_references_reaches_its_target_and_says_how_far_off_it_is() -> None:
    columns = 30
    trees = many_flags(columns)
    graph = probability(trees)
    rng = np.random.default_rng(1)
    reference = (rng.random((20, columns)) < 0.3).astype(float)
    rows = (rng.random((3, columns)) < 0.7).astype(float)
    with warnings.catch_warnings():
        warnings.simplefilter("error", gig.AccuracyWarning)
        e = gig.explain(graph, rows, reference, corner_tol=1e-2)
    exact = gig.explain(graph, rows, reference, corner_tol=0)
    largest = np.abs(e.values).max(axis=1)
    assert (e.error > 0).all()
    assert (e.error <= 1e-2 * largest).all()
    assert (np.abs(e.values - exact.values).max(axis=1) <= e.error + exact.error).all()
    assert np.abs(e.gap).max() < 1e-12


@pytest.mark.filterwarnings("ignore::gigrad.AccuracyWarning")
def test_bits_depend_on_neither_threads_nor_order_nor_company() -> None:
    columns = 40
    graph = probability(many_flags(columns, seed=2))
    rng = np.random.default_rng(3)
    reference = np.where(rng.random((12, columns)) < 0.1, np.nan, (rng.random((12, columns)) < 0.3).astype(float))
    rows = (rng.random((5, columns)) < 0.7).astype(float)

    def run(some: np.ndarray, **options: Any) -> tuple[np.ndarray, np.ndarray]:
        explainer = gig.Explainer(graph, reference, corner_tol=0.02, **options)
        found = explainer(some)
        return found.values, found.error

    values, error = run(rows, n_threads=1)
    assert (error > 0).all()
    order = rng.permutation(len(rows))
    for again, back in (run(rows, n_threads=3), order * 0 + np.arange(len(rows))), (run(rows[order]), order):
        assert again[0].tobytes() == values[back].tobytes()
        assert again[1].tobytes() == error[back].tobytes()
    alone = [run(rows[i : i + 1]) for i in range(len(rows))]
    assert np.concatenate([a[0] for a in alone]).tobytes() == values.tobytes()
    other = run(rows, seed=1)
    assert other[0].tobytes() != values.tobytes()
    assert (np.abs(other[0] - values).max(axis=1) <= other[1] + error).all()


def test_equal_references_are_one_with_the_sum_of_their_weights() -> None:
    columns = 34
    graph = probability(many_flags(columns, seed=4))
    rng = np.random.default_rng(5)
    reference = (rng.random((3, columns)) < 0.2).astype(float)
    row = np.ones((1, columns))
    twice = gig.explain(graph, row, np.concatenate([reference, reference[:2]]), corner_tol=0.02)
    once = gig.explain(graph, row, reference, weights=[2, 2, 1], corner_tol=0.02)
    np.testing.assert_allclose(twice.values, once.values, rtol=0, atol=1e-13)
    np.testing.assert_allclose(twice.error, once.error, rtol=1e-9)


def test_a_target_that_is_missed_is_named_with_what_helps() -> None:
    columns = 40
    graph = probability(many_flags(columns, seed=6, size=2.0))
    with pytest.warns(
        gig.AccuracyWarning, match=r"columns change at once.*probability space.*'margin'.*corner_tol="
    ) as caught:
        e = gig.explain_pairs(graph, np.zeros((1, columns)), np.ones((1, columns)), corner_tol=1e-6)
    assert f"{e.error[0]:.3g}" in str(caught[0].message)


def test_corner_tol_is_checked_and_recorded() -> None:
    graph = probability(many_flags(6))
    for wrong in (-0.1, 1.0, "0.1", True):
        with pytest.raises(gig.InputError, match="corner_tol must be 0 or lie between 0 and 1; got"):
            gig.explain(graph, np.ones((1, 6)), np.zeros((1, 6)), corner_tol=unchecked(wrong))
    explainer = gig.Explainer(graph, np.zeros((1, 6)), corner_tol=0.05)
    assert explainer.provenance["settings"]["corner_tol"] == 0.05


def test_players_without_effect_do_not_make_a_corner_large() -> None:
    """Both sides of every split on the last 20 of 26 columns are the same subtree."""
    rng = np.random.default_rng(7)
    grown = []
    for j in range(6, 26):
        first, second = rng.choice(6, 2, replace=False)
        values = rng.normal(size=4)
        grown.append(
            Tree(
                np.array([j, first, first, second, -1, second, -1, -1, -1, -1, -1]),
                np.array([0.5, 0.5, 0.5, 0.5, 0, 0.5, 0, 0, 0, 0, 0]),
                np.array([1, 3, 5, 7, -1, 9, -1, -1, -1, -1, -1]),
                np.array([2, 4, 6, 8, -1, 10, -1, -1, -1, -1, -1]),
                np.zeros(11, bool),
                np.array([0, 0, 0, 0, values[0], 0, values[0], *values[1:3], *values[1:3]]),
            )
        )
    trees = assemble(Input(26), grown, np.zeros(1))
    e = gig.explain_pairs(probability(trees), np.zeros((1, 26)), np.ones((1, 26)))
    assert e.error[0] == 0
    assert e.values[0, :6].all()
    assert not e.values[0, 6:].any()


def test_all_coalitions_are_asked_where_orders_would_cost_more() -> None:
    """Of 20 references only two make a large corner, one of them of great effect."""
    columns = 20
    graph = probability(many_flags(columns, seed=8, size=2.0))
    rng = np.random.default_rng(9)
    row = np.ones((1, columns))
    reference = np.repeat(row, 20, axis=0)
    reference[:, 0] = 0.0
    reference[:2] = (rng.random((2, columns)) < 0.05).astype(float)
    exact = gig.explain(graph, row, reference, corner_tol=0)
    loose, tight = (gig.explain(graph, row, reference, corner_tol=t) for t in (0.1, 1e-4))
    assert loose.error[0] > 0
    assert tight.error[0] == 0
    np.testing.assert_allclose(tight.values, exact.values, rtol=0, atol=1e-13)


def test_leaves_taken_apart_give_the_scores_of_all_coalitions() -> None:
    """What is sampled follows the margins of coalitions prefix by prefix, whatever the depth of the leaves."""
    for depth in (3, 6, 9):
        k = 13
        forest = flag_trees(k, 12, depth, seed=depth).forest
        start, end = np.zeros((1, k)), np.ones((1, k))
        leaves = CornerLeaves(forest, start, end, 0.5)
        order = np.random.default_rng(depth).permutation(k).astype(np.int32)
        leaves.set_players(np.arange(k, dtype=np.int32))
        leaves.set_order(order, 5)
        joins = np.stack([np.arange(8), np.arange(8)[::-1]])
        got = leaves.follow(joins)
        for i, t, part in ((0, 3, 11), (1, 8, 0), (1, 0, 31), (0, 5, 22)):
            row = start.copy()
            row[0, order[:5][(part >> np.arange(5)) & 1 == 1]] = 1.0
            row[0, order[5:][joins[i, :t]]] = 1.0
            np.testing.assert_allclose(got[i, t, part], kernels.predict(forest, row)[0], rtol=0, atol=1e-13)


def sampled(forest: Any, link: list[Stage], columns: int, groups: int) -> tuple[np.ndarray, ...]:
    """Credit and standard error of the corner from all zeros to all ones, from some groups of orders."""
    one = np.zeros(1, np.int64)
    corners = kernels.SampledCorners(
        one, one, one, np.full(1, 0.5), np.ones(1), np.full(1, groups), np.ones(1, np.uint64)
    )
    found = kernels.sample_corners(forest, link, np.zeros((1, columns)), np.ones((1, columns)), corners, 1, 1)
    assert found[-1][0] == groups
    return found[0][0, :, 0], np.sqrt(found[2][0, :, 0])


LINKS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "sigmoid": logistic, "square": np.square, "tanh": np.tanh, "softplus": lambda m: np.logaddexp(0, m),
}  # fmt: skip


@pytest.mark.parametrize("name", LINKS)
@pytest.mark.parametrize(("trees", "depth", "size"), [(40, 3, 0.1), (60, 5, 0.3), (6, 11, 0.3), (40, 4, 2.0)])
def test_what_is_left_out_of_the_orders_comes_back(name: str, trees: int, depth: int, size: float) -> None:
    """Were Shapley's value of the game close to the link's wrong, it would show as a bias of many standard errors."""
    k = 15
    forest = flag_trees(k, trees, depth, seed=depth, size=size).forest
    start, end = np.zeros(k), np.ones(k)
    want = shapley(LINKS[name](kernels.predict(forest, coalitions(start, end, [[j] for j in range(k)]))))[:, 0]
    got, error = sampled(forest, [Stage(name)], k, 100)
    assert (np.abs(got - want) <= 5.0 * error + 1e-13 * np.abs(want).max()).all()
    assert abs((got - want).sum()) <= 1e-12 * np.abs(want).max()


def test_weak_players_that_add_up_leave_nothing_to_be_sampled() -> None:
    """A square of stumps is a cubic in what the weak players add, whatever the strong ones do."""
    k = 17
    forest = flag_trees(k, 80, 1, seed=1).forest
    start, end = np.zeros(k), np.ones(k)
    want = shapley(np.square(kernels.predict(forest, coalitions(start, end, [[j] for j in range(k)]))))[:, 0]
    got, error = sampled(forest, [Stage("square")], k, 2)
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-13)
    assert error.max() < 1e-14
