"""Trees of a head over scores and raw columns: replacing a raw column by its place must change no prediction."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import gigrad as gig
from gigrad.graph import (
    Affine,
    Array,
    Column,
    Concat,
    Graph,
    Input,
    Lookup,
    Node,
    Select,
    Tree,
    TreeEnsemble,
    assemble,
    attach,
    evaluate,
    rewire,
    topological,
)

COLUMNS = (Column("number"), Column("labelled", "category", ("u", "v", "w")), Column("coded", "category"))
THRESHOLDS = np.array([-1.0, 0.0, 0.25, 2.0])


def random_tree(rng: np.random.Generator, width: int, categories: tuple[int, ...], depth: int = 4) -> Tree:
    """A full tree with random splits: numbers at a few thresholds, categories by random sets."""
    splits = 2**depth - 1
    size = 2 * splits + 1
    feature = np.full(size, -1)
    feature[:splits] = rng.integers(0, width, splits)
    index = np.arange(size)
    sets = {i: np.nonzero(rng.random(40) < 0.5)[0] for i in range(splits) if feature[i] in categories}
    return Tree(
        feature=feature,
        threshold=rng.choice(THRESHOLDS, size),
        left=np.where(index < splits, 2 * index + 1, -1),
        right=np.where(index < splits, 2 * index + 2, -1),
        missing_left=rng.random(size) < 0.5,
        values=rng.normal(size=size),
        categories=sets,
    )


def rows(rng: np.random.Generator) -> Array:
    near = np.concatenate([THRESHOLDS, np.nextafter(THRESHOLDS, np.inf), np.nextafter(THRESHOLDS, -np.inf)])
    number = np.where(rng.random(300) < 0.2, np.nan, rng.choice(np.append(near, [-9.0, 9.0]), 300))
    labelled = rng.choice([0.0, 1.0, 2.0, -1.0, np.nan], 300)
    coded = rng.choice([*np.arange(45.0), -1.0, np.nan], 300)
    return np.column_stack([number, labelled, coded])


@pytest.mark.parametrize("seed", range(5))
def test_predictions_stay_the_same(seed: int) -> None:
    rng = np.random.default_rng(seed)
    source = Input(3)
    score = Affine(Select(source, (0,)), np.array([[0.5]]), np.zeros(1))
    recoded = Lookup(source, 1, np.array([[2.0], [-3.0], [0.1]]), np.array([5.0]), np.array([np.nan]))
    below: Node = Concat((score, Concat((Select(source, (2, 0)), recoded)), Select(source, (1,))))
    over = Graph(COLUMNS, source, score, score, ("y",), named=True)
    own = Input(5)  # a score, then coded, number, recoded and labelled
    trees = assemble(own, [random_tree(rng, 5, (1, 4)) for _ in range(4)], np.zeros(1))
    head = Graph(tuple(Column(f"z{j}") for j in range(5)), own, trees, trees, ("y",))
    got = attach(head, over, below)
    want = rewire((trees,), {own: below})[trees]
    x = rows(rng)
    np.testing.assert_array_equal(evaluate((got.score,), {source: x})[got.score], evaluate((want,), {source: x})[want])
    places = [n for n in topological(got.score) if isinstance(n, TreeEnsemble) and n.source is source]
    assert len(places) == 1
    assert isinstance(got.score, TreeEnsemble)
    assert isinstance(got.score.source, Concat)
    assert got.score.source.sources == (score, places[0]), "no raw column is read but through its place"


def test_trees_over_scores_alone_are_left_alone() -> None:
    rng = np.random.default_rng(0)
    source = Input(2)
    score = Affine(source, np.ones((1, 2)), np.zeros(1))
    over = Graph((Column("a"), Column("b")), source, score, score, ("y",))
    own = Input(1)
    trees = assemble(own, [random_tree(rng, 1, ())], np.zeros(1))
    head = Graph((Column("z"),), own, trees, trees, ("y",))
    got = attach(head, over, score).score
    assert isinstance(got, TreeEnsemble)
    assert got.source is score


def test_every_threshold_is_crossed_at_its_own_place() -> None:
    """One threshold with two places, and two so close that they are crossed in the other order than they lie in."""
    source = Input(2)
    place = np.array([0.2, 0.2 + 3e-8, 0.2, 0.5])
    threshold = np.array([0.2 + 1e-8, 0.2 + 1e-8, 0.2 + 2e-8, 0.5])
    order = np.arange(7)
    rng = np.random.default_rng(0)

    def full(first: int) -> Tree:
        """A full tree of depth 2 on the first column, the second, and the first again at another of its edges."""
        edges = np.array([first, 3, (first + 1) % 3, 0, 0, 0, 0])
        return Tree(
            feature=np.array([1, 2, 1, -1, -1, -1, -1]),
            threshold=threshold[edges],
            left=np.where(order < 3, 2 * order + 1, -1),
            right=np.where(order < 3, 2 * order + 2, -1),
            missing_left=np.zeros(7, bool),
            values=rng.normal(size=7),
            place=place[edges],
        )

    own = Input(3)  # a score that no split reads, then both columns
    trees = assemble(own, [full(first) for first in range(3)], np.zeros(1))
    score = Affine(source, np.ones((1, 2)), np.zeros(1))
    columns = (Column("a"), Column("b"))
    head = Graph(tuple(Column(f"z{j}") for j in range(3)), own, trees, trees, ("y",))
    ranked = attach(head, Graph(columns, source, score, score, ("y",), named=True), Concat((score, source)))
    plain = replace(trees, source=source, feature=np.where(trees.feature > 0, trees.feature - 1, -1).astype(np.int32))
    direct = Graph(columns, source, plain, plain, ("y",), named=True)
    start = np.array([[0.2 - 1e-7, 0.5 - 1e-7], [0.2 + 1e-7, 0.0], [0.1, 0.4], [0.3, 0.6]])
    end = np.array([[0.2 + 1e-7, 0.5 + 2e-7], [0.2 - 2e-7, 1.0], [0.3, 0.6], [0.1, 0.4 + 1e-8]])
    want = gig.explain_pairs(direct, start, end, discrete=())
    got = gig.explain_pairs(ranked, start, end, discrete=())
    np.testing.assert_allclose(got.values, want.values, rtol=0, atol=1e-12)
    assert np.abs(want.values).max() > 0.1


def test_a_missing_value_that_no_split_of_the_head_reads_is_no_score() -> None:
    """The head may read x and split on scores alone: its error was NaN where some x was missing."""
    source = Input(2)
    columns = (Column("a"), Column("b"))

    def stump(column: int, threshold: float, height: float) -> Tree:
        return Tree(
            np.array([column, -1, -1]), np.array([threshold, 0, 0]), np.array([1, -1, -1]), np.array([2, -1, -1]),
            np.zeros(3, bool), np.array([0.0, 0.0, height]),
        )  # fmt: skip

    below = assemble(source, [stump(0, 0.4, 1.0), stump(1, 2.0, 0.1)], np.zeros(1))
    over = Graph(columns, source, below, below, ("y",))
    top = Input(3)
    head = assemble(top, [stump(0, 0.6, 1.0)], np.zeros(1))
    graph = attach(Graph((Column("score"), *columns), top, head, head, ("y",)), over, Concat((below, source)))
    e = gig.explain_pairs(graph, [[0.0, np.nan]], [[1.0, 3.0]])
    np.testing.assert_array_equal(e.values, [[1.0, 0.0]])
    assert e.error.max() < 1e-12
