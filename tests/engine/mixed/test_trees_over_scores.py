"""Trees over continuous scores, where thresholds are met at the very ends of paths and at round times along them."""

from __future__ import annotations

import warnings
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesClassifier, GradientBoostingClassifier
from sklearn.neural_network import MLPClassifier

import gigrad as gig
from gigrad.graph import (
    Affine,
    Column,
    Concat,
    Elementwise,
    Graph,
    Input,
    Node,
    Product,
    Select,
    Sum,
    Tree,
    assemble,
)
from gigrad.importers.common.votes import stump
from gigrad.testing import brute_force, check_importer, reads_scores

COLUMNS = (Column("a"), Column("b"), Column("c"))


def random_tree(rng: np.random.Generator, width: int, depth: int = 3) -> Tree:
    """A full tree whose thresholds are quarters, which round data meets often."""
    splits = 2**depth - 1
    index = np.arange(2 * splits + 1)
    return Tree(
        feature=np.where(index < splits, rng.integers(0, width, len(index)), -1),
        threshold=rng.integers(-8, 9, len(index)) / 4.0,
        left=np.where(index < splits, 2 * index + 1, -1),
        right=np.where(index < splits, 2 * index + 2, -1),
        missing_left=np.zeros(len(index), bool),
        values=rng.integers(-8, 9, len(index)) / 8.0,
    )


def over(weight: np.ndarray, rng: np.random.Generator, link: str | None = None) -> Graph:
    source = Input(3)
    score: Node = Affine(source, weight, np.zeros(len(weight)))
    node: Node = assemble(score, [random_tree(rng, len(weight)) for _ in range(3)], np.zeros(1))
    node = node if link is None else Elementwise(node, link)
    return Graph(COLUMNS, source, node, node, ("y",))


def round_pairs(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    return rng.integers(-4, 5, (40, 3)) / 2.0, rng.integers(-4, 5, (40, 3)) / 2.0


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("link", [None, "tanh"])
def test_over_one_linear_score_credit_goes_along_it(seed: int, link: str | None) -> None:
    rng = np.random.default_rng(seed)
    weight = np.array([[1.0, 0.5, -1.0]])
    graph = over(weight, rng, link)
    start, end = round_pairs(rng)
    explained = gig.explain_pairs(graph, start, end, discrete=())
    change = explained.predictions - explained.base_values
    share = (end - start) * weight[0]
    moved = share.sum(axis=1, keepdims=True)
    want = np.where(moved == 0, 0.0, change[:, None] * share / np.where(moved == 0, 1.0, moved))
    np.testing.assert_allclose(explained.values, want, atol=1e-10)
    np.testing.assert_allclose(explained.gap, 0.0, atol=1e-10)
    assert (np.abs(change) > 0.1).sum() > 10, "most pairs cross something"


@pytest.mark.parametrize("seed", range(4))
def test_over_two_linear_scores_credits_add_up_both_ways(seed: int) -> None:
    rng = np.random.default_rng(100 + seed)
    graph = over(np.array([[1.0, 1.0, 0.0], [0.0, 1.0, -1.0]]), rng)
    start, end = round_pairs(rng)
    there, back = gig.explain_pairs(graph, start, end), gig.explain_pairs(graph, end, start)
    np.testing.assert_allclose(there.gap, 0.0, atol=1e-10)
    np.testing.assert_allclose(back.values, -there.values, atol=1e-10)


# ---------------------------------------------------------------- against the definition


def stacked(rng: np.random.Generator, top: str) -> Graph:
    """Trees over a net's two scores and a mean of trees, with or without something smooth above and beside them."""
    source = Input(3)
    hidden = Elementwise(Affine(source, rng.normal(size=(4, 3)), rng.normal(size=4) * 0.3), "tanh")
    scores = Affine(hidden, rng.normal(size=(2, 4)), rng.normal(size=2) * 0.2)
    inner = assemble(source, [random_tree(rng, 3) for _ in range(2)], np.zeros(1))
    mixed = Elementwise(Affine(Concat((scores, inner)), np.array([[1.0, 0.5, 0.7]]), np.zeros(1)), "sigmoid")
    trees = [random_tree(rng, 4, 2) for _ in range(4)]
    node: Node = assemble(Concat((scores, mixed, inner)), trees, np.zeros(1))
    if top == "joined":
        node = Elementwise(Affine(Concat((node, scores)), np.array([[0.8, 0.3, -0.4]]), np.zeros(1)), "sigmoid")
    return Graph(COLUMNS, source, node, node, ("y",))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("top", ["alone", "joined"])
def test_boosted_heads_over_smooth_scores_equal_the_definition(seed: int, top: str) -> None:
    rng = np.random.default_rng(200 + seed)
    graph = stacked(rng, top)
    assert reads_scores(graph, graph.score)
    starts, ends = rng.normal(size=(3, 3)) * 1.5, rng.normal(size=(3, 3)) * 1.5
    e = gig.explain_pairs(graph, starts, ends, tol=1e-9, discrete=())
    want = np.stack([brute_force(graph, s, t)[:, 0] for s, t in zip(starts, ends, strict=True)])
    np.testing.assert_allclose(e.values, want, atol=1e-8)
    assert np.abs(want).max() > 0.05, "something happens"


def curved(rng: np.random.Generator) -> Graph:
    """Trees over one score of a net, and nothing else: all credit is that of jumps."""
    source = Input(3)
    hidden = Elementwise(Affine(source, rng.normal(size=(4, 3)), rng.normal(size=4) * 0.3), "tanh")
    score = Affine(hidden, rng.normal(size=(1, 4)), np.zeros(1))
    node = assemble(score, [random_tree(rng, 1) for _ in range(3)], np.zeros(1))
    return Graph(COLUMNS, source, node, node, ("y",))


@pytest.mark.parametrize("seed", range(3))
def test_jumps_over_a_curved_score_are_shared_out_whole(seed: int) -> None:
    """Whatever the tolerance: the speed of the score is taken from the gradients that the jump is shared by."""
    rng = np.random.default_rng(300 + seed)
    graph = curved(rng)
    starts, ends = rng.normal(size=(60, 3)) * 1.5, rng.normal(size=(60, 3)) * 1.5
    e = gig.explain_pairs(graph, starts, ends, tol=1e-4, discrete=())
    np.testing.assert_allclose(e.gap, 0.0, atol=1e-13)
    assert (np.abs(e.predictions - e.base_values) > 0.1).sum() > 10, "most pairs cross something"


@pytest.mark.filterwarnings("ignore::gigrad.errors.AccuracyWarning")
@pytest.mark.parametrize("seed", range(3))
def test_a_tolerance_below_rounding_makes_nothing_worse(seed: int) -> None:
    rng = np.random.default_rng(400 + seed)
    graph = curved(rng)
    starts, ends = rng.normal(size=(60, 3)) * 1.5, rng.normal(size=(60, 3)) * 1.5
    fine, finest = (gig.explain_pairs(graph, starts, ends, tol=tol, discrete=()) for tol in (1e-9, 1e-16))
    np.testing.assert_allclose(finest.values, fine.values, atol=1e-8)
    assert (finest.error <= 1e-8).all()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_real_boosted_head_over_a_net_equals_the_definition() -> None:
    rng = np.random.default_rng(7)
    X = rng.normal(size=(400, 3))
    y = (X[:, 0] * X[:, 1] + X[:, 2] > 0).astype(int)
    net = MLPClassifier((8,), activation="tanh", max_iter=60, random_state=0).fit(X, y)
    forest = ExtraTreesClassifier(5, max_depth=3, random_state=0).fit(X, y)
    scores = np.column_stack([m.predict_proba(X)[:, 1] for m in (net, forest)])
    head = GradientBoostingClassifier(n_estimators=8, max_depth=2, random_state=0).fit(scores, y)
    report = check_importer(gig.stack([net, forest], head=head), X[:60], pairs=3, changes=3, tol=1e-8)
    assert report.largest_difference < 1e-8


def test_a_score_that_meets_its_threshold_at_a_corner_is_on_the_side_of_equality_there() -> None:
    """The score passes its threshold at the very time at which another variable jumps: it does so after the jump."""
    source = Input(3)
    score = Affine(source, np.array([[1.0, 1.0, 0.0]]), np.zeros(1))
    rank = stump(2, 0.5, 0.0, 1.0)
    inner = Concat((score, assemble(source, [replace(rank, output=0)], np.zeros(1))))
    late = Tree(np.array([1, -1, 0, -1, -1]), np.array([0.5, 0.0, 1.0, 0.0, 0.0]), np.array([1, -1, 3, -1, -1]),
                np.array([2, -1, 4, -1, -1]), np.zeros(5, bool), np.array([0.0, 0.0, 0.0, 0.0, 1.0]))  # fmt: skip
    node = assemble(inner, [late], np.zeros(1))
    graph = Graph(COLUMNS, source, node, node, ("y",))
    got = gig.explain_pairs(graph, np.zeros((1, 3)), np.ones((1, 3)), discrete=()).values[0]
    np.testing.assert_allclose(got, [0.5, 0.5, 0.0], atol=1e-12)
    np.testing.assert_allclose(got, brute_force(graph, np.zeros(3), np.ones(3))[:, 0], atol=1e-12)


# ---------------------------------------------------------------- scores that start from rest


def product_graph(threshold: float) -> Graph:
    source = Input(3)
    product = Product(Select(source, (0,)), Select(source, (1,)))
    node = assemble(product, [stump(0, threshold, 0.0, 1.0, 0)], np.zeros(1))
    return Graph(COLUMNS, source, node, node, ("y",))


@pytest.mark.parametrize("threshold", [0.0, 1e-35])
def test_a_product_that_leaves_zero_is_shared_by_its_factors(threshold: float) -> None:
    """Its speed is zero where it crosses, and so are both factors' parts: the limit of their shares is one half."""
    starts, ends = np.zeros((3, 3)), np.array([[1.0, 1.0, 0.0], [2.0, 5.0, 1.0], [-1.0, -3.0, 0.0]])
    e = gig.explain_pairs(product_graph(threshold), starts, ends, discrete=())
    np.testing.assert_allclose(e.values, [[0.5, 0.5, 0.0]] * 3, atol=1e-8)
    assert (np.abs(e.values - [0.5, 0.5, 0.0]).max(axis=1) <= e.error.ravel() + 1e-15).all()
    assert e.error.max() < 1e-5


def test_parts_that_cancel_at_a_threshold_earn_nothing_and_say_so() -> None:
    """The product (1 + a)(1 - a) leaves 1 at rest, though both factors move: it has no direction there."""
    source = Input(3)
    product = Product(Select(source, (0,)), Select(source, (1,)))
    node = assemble(product, [stump(0, float(np.nextafter(1.0, 0.0)), 0.0, 1.0, 0)], np.zeros(1))
    graph = Graph(COLUMNS, source, node, node, ("y",))
    with pytest.warns(gig.errors.AccuracyWarning):
        e = gig.explain_pairs(graph, np.ones((1, 3)), np.array([[2.0, 0.0, 1.0]]), discrete=())
    assert e.error.max() >= 0.99
    assert abs(float(e.gap.ravel()[0])) <= float(e.error.ravel()[0]) + 1e-12


# ---------------------------------------------------------------- crossings at one time, slow and turning scores


def step(column: int, threshold: float) -> Tree:
    """A tree that is 1 where one column is above a threshold, and 0 elsewhere."""
    index = np.arange(3)
    return Tree(
        feature=np.where(index == 0, column, -1),
        threshold=np.where(index == 0, threshold, 0.0),
        left=np.where(index == 0, 1, -1),
        right=np.where(index == 0, 2, -1),
        missing_left=np.zeros(3, bool),
        values=np.array([0.0, 0.0, 1.0]),
    )


def over_two_columns(node: Node, source: Input) -> Graph:
    return Graph(COLUMNS[:2], source, node, node, ("y",))


@pytest.mark.parametrize("apart", [0.0, 0.2, 0.45, 0.9, 1.6])
@pytest.mark.parametrize("kind", ["linear", "apart", "curved"])
def test_ensembles_over_scores_that_cross_at_one_time_share_the_jump(apart: float, kind: str) -> None:
    """Two ensembles whose thresholds are met at the same multiple of 2^-30, or not: as in the definition."""
    source, weight = Input(2), np.array([[1.0, 0.5], [0.5, 1.0]])
    first: Node = Affine(source, weight, np.zeros(2))
    second: Node = Affine(source, weight, np.zeros(2)) if kind == "apart" else first
    levels = np.array([0.45, 1.5 * (0.3 + apart * 2.0**-30)])
    if kind == "curved":
        first = second = Elementwise(first, "tanh")
        levels = np.tanh(levels)
    trees = (assemble(s, [step(j, levels[j])], np.zeros(1)) for j, s in enumerate((first, second)))
    graph = over_two_columns(Product(*trees), source)
    e = gig.explain_pairs(graph, np.zeros((1, 2)), np.ones((1, 2)), discrete=())
    want = brute_force(graph, np.zeros(2), np.ones(2))[:, 0]
    np.testing.assert_allclose(e.values[0], want, atol=1e-12)
    np.testing.assert_allclose(want, [0.5, 0.5] if apart < 0.3 else [1 / 3, 2 / 3], atol=1e-12)


@pytest.mark.parametrize("slow", 10.0 ** -np.arange(1, 13))
def test_the_error_covers_scores_whose_parts_cancel(slow: float) -> None:
    """The speed of the score is a small difference, whose rounding is divided by it; the truth in exact fractions."""
    rng, source = np.random.default_rng(3), Input(2)
    weight, end = np.array([1.07, -1.03]), np.array([[1.0 + 0.01 * rng.random(), 0.0]])
    end[0, 1] = -end[0, 0] * weight[0] / weight[1] * (1.0 - slow)
    parts = [Fraction(float(w)) * Fraction(float(e)) for w, e in zip(weight, end[0], strict=True)]
    score = Affine(source, weight[None], np.zeros(1))
    graph = over_two_columns(assemble(score, [step(0, 0.37 * float(sum(parts)))], np.zeros(1)), source)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        e = gig.explain_pairs(graph, np.zeros((1, 2)), end, discrete=())
    off = max(abs(Fraction(float(v)) - part / sum(parts)) for v, part in zip(e.values[0], parts, strict=True))
    assert float(off) <= e.error[0] + 1e-15
    assert e.error[0] <= 2e-14 / slow**2, "and is no larger than rounding explains"
    assert bool(said) == (e.error[0] > 1e-6 * max(1.0, float(np.abs(e.predictions[0]))))


@pytest.mark.parametrize("jumps", [20, 200])
def test_the_error_covers_a_score_that_turns_just_above_a_threshold(jumps: int) -> None:
    """x0 (1 - x1) = t (1 - t) crosses the threshold twice, slowly, between two of the jumps of other trees."""
    source, before = Input(2), 0.5 - 0.31 / jumps
    score = Product(Select(source, (0,)), Affine(Select(source, (1,)), -np.eye(1), np.ones(1)))
    other = assemble(source, [step(0, (i + 0.5) / jumps) for i in range(jumps)], np.zeros(1))
    node = Sum((assemble(score, [step(0, before * (1.0 - before))], np.zeros(1)), other))
    e = gig.explain_pairs(over_two_columns(node, source), np.zeros((1, 2)), np.ones((1, 2)), discrete=())
    want = np.array([jumps, 0.0])
    for t, sign in ((before, 1.0), (1.0 - before, -1.0)):
        want += sign * np.array([1.0 - t, -t]) / (1.0 - 2.0 * t)
    assert np.abs(want).max() > 10.0
    assert np.abs(e.values[0] - want).max() <= e.error[0] + 1e-12 * np.abs(want).max()
    assert e.error[0] < 1e-5


@pytest.mark.parametrize("level", 10.0 ** -np.arange(2.0, 15.0, 2.0))
def test_the_error_covers_a_score_that_is_nearly_at_rest_at_a_threshold(level: float) -> None:
    """x0 x1 from just below 0: the shares turn quickly with the time of the crossing."""
    source = Input(2)
    graph = over_two_columns(
        assemble(Product(Select(source, (0,)), Select(source, (1,))), [step(0, level)], np.zeros(1)), source
    )
    start, move = -0.3 * level**0.5, 0.8 + 0.3 * level**0.5
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        e = gig.explain_pairs(graph, [[start, 0.0]], [[0.8, 1.1]], discrete=())
    a, b = 1.1 * move, 1.1 * start
    time = 2.0 * level / (b + (b * b + 4.0 * a * level) ** 0.5)  # of move * 1.1 t^2 + start * 1.1 t = level
    parts = np.array([move * 1.1 * time, 1.1 * (start + move * time)])
    assert np.abs(e.values[0] - parts / parts.sum()).max() <= e.error[0] + 1e-15
    assert e.error[0] <= 2e-15 / level
    assert bool(said) == (e.error[0] > 1e-6)
