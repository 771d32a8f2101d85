"""Credit gathered in pieces of a path: each against the definition up to its ends, and all against the whole."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from forests import graph_of, random_forest

from gigrad.engine import Population, Settings, attribute, categories_read, progress, scores_along
from gigrad.engine.progress import _listed, _walked
from gigrad.graph import (
    Affine,
    Array,
    Choice,
    Column,
    Concat,
    Elementwise,
    Fill,
    Graph,
    Input,
    Lookup,
    Node,
    PiecewiseLinear,
    Select,
    Sum,
    under,
)
from gigrad.testing import brute_force

NAMES = ("flag", "other", "count", "kind", "code", "amount", "rate")
COLUMNS = tuple(Column(name, "category" if name == "kind" else "number") for name in NAMES)
DISCRETE: dict[str, Any] = {"flag": None, "other": None, "count": [0.0, 1.0, 3.0]}
NOMINAL = ("code",)
GROUPS = np.array([0, 1, 0, 2, 3, 3, 4])
EDGES = np.array([0.0, 0.11, 0.25, 0.5, 0.5001, 0.8, 1.0])
"""Some at times of corners: halves and quarters, on values that are multiples of one half."""


def some_rows(rng: np.random.Generator, n: int) -> Array:
    """Flags, counts, categories and codes, amounts on a grid that thresholds share, rates anywhere; some missing."""
    X = rng.integers(0, 7, (n, len(NAMES))) / 2.0
    X[:, :2] = rng.integers(0, 2, (n, 2))
    X[:, 2] = rng.choice([0.0, 1.0, 3.0, 2.0], n)  # 2 is none of the values that the column is said to take
    X[:, 3:5] = rng.integers(0, 4, (n, 2))
    X[:, 6] = rng.normal(1.5, 1.0, n)
    X[rng.random(X.shape) < 0.08] = np.nan
    return X


def trees(rng: np.random.Generator, source: Node, outputs: int = 1) -> Node:
    return random_forest(rng, COLUMNS, source, trees=4, depth=4, outputs=outputs)


def numbers(rng: np.random.Generator, source: Node) -> Node:
    """What nets and linear models read: numbers with missing ones filled, and a category encoded."""
    kind = Lookup(source, 3, rng.normal(size=(4, 2)), np.zeros(2), np.ones(2))
    return Concat((Fill(Select(source, (0, 2, 4, 5, 6)), rng.normal(size=5)), kind))


def net(rng: np.random.Generator, source: Node, activation: str = "tanh") -> Node:
    read = numbers(rng, source) if isinstance(source, Input) else source
    hidden = Elementwise(Affine(read, rng.normal(size=(4, read.width)) * 0.6, rng.normal(size=4)), activation)
    return Affine(hidden, rng.normal(size=(1, 4)), np.zeros(1))


def rank(node: Node) -> Node:
    return PiecewiseLinear(node, np.array([-2.0, -0.4, 0.3, 1.0, 2.5]), np.array([0.0, 0.2, 0.6, 0.7, 1.0]))


def score_of(kind: str, rng: np.random.Generator, source: Input) -> Node:
    if kind == "margin":
        return trees(rng, source)
    if kind == "probability":
        return Elementwise(trees(rng, source), "sigmoid")
    if kind == "several outputs":
        return Elementwise(Affine(trees(rng, source, 3), rng.normal(size=(2, 3)), np.zeros(2)), "sigmoid")
    if kind == "rank":
        return rank(trees(rng, source))
    if kind == "blend":  # terms of every kind: trees, a link over trees, a net, a straight score, columns on their own
        parts = (trees(rng, source), Elementwise(trees(rng, source), "sigmoid"), net(rng, source, "relu"))
        straight = Elementwise(Affine(numbers(rng, source), rng.normal(size=(1, 7)), np.zeros(1)), "sigmoid")
        own = Elementwise(Fill(Select(source, (6,)), np.ones(1)), "tanh")
        return Sum((*parts, straight, own, Affine(numbers(rng, source), rng.normal(size=(1, 7)), np.zeros(1))))
    if kind == "stack":  # of two sums of trees
        both = Concat((Elementwise(trees(rng, source), "sigmoid"), trees(rng, source)))
        return Elementwise(net(rng, both), "sigmoid")
    if kind == "trees over trees":
        return random_forest(rng, (Column("a"), Column("b")), Concat((trees(rng, source), trees(rng, source))), depth=3)
    if kind == "trees over a net":
        below = Affine(net(rng, source), np.array([[0.8]]), np.array([1.5]))
        return Sum((random_forest(rng, (Column("a"),), below, depth=3), trees(rng, source)))
    assert kind == "mixture"  # trees and a net under a head, in ranks
    return rank(net(rng, Concat((trees(rng, source), net(rng, source, "relu" if rng.random() < 0.5 else "tanh")))))


KINDS = (
    "margin", "probability", "several outputs", "rank", "blend", "stack", "mixture", "trees over trees",
    "trees over a net",
)  # fmt: skip
EXACT = ("margin", "probability", "several outputs", "rank")
"""Trees and links over them: nothing is integrated."""


def placed(kind: str, seed: int) -> tuple[np.random.Generator, Graph, Graph, Node]:
    """A random model, as it is imported and with the places of its discrete columns."""
    rng = np.random.default_rng(seed)
    source = Input(len(NAMES))
    graph = graph_of(COLUMNS, source, score_of(kind, rng, source))
    choice = Choice(DISCRETE, NOMINAL, dict.fromkeys(DISCRETE, "given"))
    chosen, (node,) = under(graph, choice, NAMES, graph.score)
    return rng, graph, chosen, node


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_every_piece_is_what_the_definition_gives_up_to_its_ends(kind: str, seed: int) -> None:
    rng, graph, chosen, node = placed(kind, seed)
    start, end = some_rows(rng, 2)
    gained, jumps = progress(
        node, chosen.input, Population(start[None], np.ones(1), end[None]), EDGES, Settings(tol=1e-11)
    )
    so_far = [brute_force(graph, start, end, discrete=DISCRETE, nominal=NOMINAL, until=t) for t in EDGES[1:]]
    want = np.diff([np.zeros_like(so_far[0]), *so_far], axis=0)
    np.testing.assert_allclose(gained, want, rtol=0, atol=1e-12 if kind in EXACT else 1e-9)
    assert (np.diff(np.unique(jumps.time)) >= 2.0**-30).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("seed", range(3, 6))
def test_the_pieces_add_up_to_the_credit_and_end_at_the_score(kind: str, grouped: bool, seed: int) -> None:
    rng, _, chosen, node = placed(kind, seed)
    starts, ends = some_rows(rng, 12), some_rows(rng, 2)
    settings = Settings(tol=1e-11, players=GROUPS if grouped else None, quiet=True)
    weights = rng.dirichlet(np.ones(len(starts)))
    times = np.linspace(0.0, 1.0, 42)
    for end in ends:
        paths = Population(starts, weights, end[None])
        gained, jumps = progress(node, chosen.input, paths, times, settings)
        whole = attribute(node, chosen.input, paths, settings)
        exact = 1e-12 if kind in EXACT else 1e-9
        np.testing.assert_allclose(gained.sum(axis=0), whole.values[0], rtol=0, atol=exact)
        at_starts, at_ends = paths.scores(node, chosen.input)
        score = scores_along(node, chosen.input, paths, times, None)
        np.testing.assert_allclose(score[[0, -1]], [weights @ at_starts, at_ends[0]], rtol=0, atol=1e-12)
        np.testing.assert_allclose(score - score[0], np.cumsum([0 * score[0], *gained.sum(axis=1)], axis=0), atol=exact)
        if kind in EXACT:  # nothing happens but at jumps
            np.testing.assert_allclose(jumps.size.sum(axis=0), at_ends[0] - weights @ at_starts, atol=1e-12)


@pytest.mark.parametrize("kind", EXACT)
@pytest.mark.parametrize("seed", range(6, 12))
def test_listed_jumps_and_a_walk_of_the_whole_agree(kind: str, seed: int) -> None:
    """Links over trees have a list of jumps of their own; the mixed engine knows another way."""
    rng, _, chosen, node = placed(kind, seed)
    paths = Population(some_rows(rng, 10), np.full(10, 0.1), some_rows(rng, 1))
    settings, categories = Settings(), categories_read(node, chosen.input)
    listed = list(_listed(node, chosen.input, paths, EDGES, settings))
    walked = list(_walked(node, chosen.input, paths, EDGES, categories, np.full((1, node.width), 1e-9), settings))
    of_list, of_walk = (np.sum([credit for credit, _ in parts], axis=0) for parts in (listed, walked))
    np.testing.assert_allclose(of_list, of_walk, atol=1e-12)
    times = [np.concatenate([jumps.time for _, jumps in parts]) for parts in (listed, walked)]
    assert set(times[0]) == set(times[1])


@pytest.mark.parametrize("flags", [11, 15, 30])
def test_corners_that_were_sampled_for_the_row_earn_what_the_row_says(flags: int) -> None:
    """Flags alone, which all change half-way, and a count that may cross with them: too many to try all orders."""
    rng = np.random.default_rng(flags)
    columns = tuple(Column(f"x{j}") for j in range(flags + 1))
    source = Input(len(columns))
    margin = random_forest(rng, columns, source, trees=40, depth=6)
    graph = graph_of(columns, source, Elementwise(margin, "sigmoid"))
    choice = Choice({c.name: None for c in columns}, (), {c.name: "given" for c in columns})
    chosen, (node,) = under(graph, choice, [c.name for c in columns], graph.score)
    X = rng.integers(0, 2, (5, len(columns))).astype(float)
    X[:, -1] = 3 * X[:, 0]
    paths = Population(1.0 - X, np.full(5, 0.2), X[:1])  # from rows of which the first is opposite in every column
    settings = Settings(quiet=True)
    whole = attribute(node, chosen.input, paths, settings)
    assert (whole.error > 0).any() == (flags == 30)
    gained, jumps = progress(node, chosen.input, paths, np.array([0.0, 0.4, 0.5, 1.0]), settings)
    np.testing.assert_allclose(gained.sum(axis=0), whole.values[0], rtol=0, atol=1e-12)
    assert (gained[0, :-1] == 0).all()  # flags jump half-way alone
    assert (gained[2, :-1] == 0).all()
    assert set(jumps.time) <= {rounded(1 / 6), 0.5, rounded(5 / 6)}


def rounded(time: float) -> float:
    return float(np.rint(time * 2.0**30) / 2.0**30)
