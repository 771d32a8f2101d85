"""Corners of many variables under any head: enumerated, or sampled within `error`; players without effect left out."""

from __future__ import annotations

import numpy as np
import pytest
from forests import graph_of

import gigrad as gig
from gigrad.engine import corners
from gigrad.engine.mixed import games
from gigrad.graph import Affine, Column, Concat, Elementwise, Graph, Input, Lookup, Node, Tree, assemble


def game_of(values: np.ndarray) -> corners.FunctionGame:
    """A game given on all subsets, (2^players,)."""
    players = len(values).bit_length() - 1

    def ask(past: np.ndarray) -> np.ndarray:
        return values[(past * 2 ** np.arange(players)).sum(axis=1)][:, None]

    return corners.FunctionGame(players, 1, 1, ask)


def random_game(players: int, interactions: int, seed: int) -> np.ndarray:
    """Values on all subsets of sums of products of a few indicators, and a smooth function of a weighted count."""
    rng = np.random.default_rng(seed)
    member = corners.subsets(players).astype(float)
    out = np.zeros(2**players)
    for _ in range(12):
        out += rng.normal() * member[:, rng.choice(players, interactions, replace=False)].prod(axis=1)
    return out if interactions < 3 else out + np.tanh(member @ rng.normal(size=players))


@pytest.mark.parametrize("players", [1, 5, 8, 9, 13, 15])
def test_enumerated_games_have_shapleys_value(players: int) -> None:
    values = random_game(players, min(4, players), players)
    found, error = corners.solve(game_of(values), seed=0, miss=1e-3)
    np.testing.assert_allclose(found[:, 0], corners.weights(players) @ values, rtol=0, atol=1e-12)
    assert error[0] == 0


@pytest.mark.parametrize("players", [11, 14])
def test_sampled_games_are_within_what_their_groups_differ_by(players: int) -> None:
    values = random_game(players, 4, players)
    want = corners.weights(players) @ values
    count = 40
    found, again = (corners.sample(game_of(values), count, seed=3) for _ in range(2))
    assert (found.mean == again.mean).all(), "the seed fixes them"
    spread = np.sqrt(found.squares[:, 0] / (count * (count - 1)))
    assert 0 < spread.max() < 0.1
    assert (np.abs(found.mean[:, 0] - want) < 5 * spread + 1e-12).all()
    np.testing.assert_allclose(found.mean[:, 0].sum(), values[-1] - values[0], atol=1e-12)


def test_means_of_samples_have_no_bias_and_the_variance_that_they_claim() -> None:
    values = random_game(12, 4, 5)
    want = corners.weights(12) @ values
    count, means, variances = 4, [], []
    for seed in range(200):
        found = corners.sample(game_of(values), count, seed=seed)
        means.append(found.mean[:, 0])
        variances.append(found.squares[:, 0] / (count * (count - 1)))
    off = np.mean(means, axis=0) - want
    varies = np.mean(variances, axis=0)
    assert (np.abs(off) < 4.5 * np.sqrt(varies / 200) + 1e-12).all()
    np.testing.assert_allclose(np.var(means, axis=0), varies, rtol=0.5, atol=1e-12)


def test_reversed_orders_are_exact_for_interactions_of_two() -> None:
    values = random_game(13, 2, 3)
    found = corners.sample(game_of(values), 2, seed=0)
    np.testing.assert_allclose(found.mean[:, 0], corners.weights(13) @ values, atol=1e-12)
    assert found.squares.max() < 1e-20


def categories(columns: int, effect: int) -> Graph:
    """A sigmoid over categories, of which the first `effect` matter, and over a tree and a product of two of them."""
    rng = np.random.default_rng(columns)
    source = Input(columns)
    codes = [
        Lookup(source, j, np.array([[0.0], [rng.normal()]]) * (j < effect), *np.zeros((2, 1))) for j in range(columns)
    ]
    stump = Tree(np.array([0, -1, -1]), np.array([0.5, 0, 0]), np.array([1, -1, -1]), np.array([2, -1, -1]),
                 np.zeros(3, bool), np.array([0.0, 0.0, 1.0]))  # fmt: skip
    hidden: Node = Elementwise(Affine(Concat(tuple(codes)), rng.normal(size=(3, columns)), np.zeros(3)), "tanh")
    both = Concat((hidden, assemble(source, [stump], np.zeros(1))))
    names = tuple(Column(f"c{j}", "number" if j == 0 else "category") for j in range(columns))
    score = Elementwise(Affine(both, rng.normal(size=(1, 4)), np.zeros(1)), "sigmoid")
    return graph_of(names, source, score)


def exact_credit(graph: Graph, players: list[int], columns: int) -> np.ndarray:
    """All variables change at the middle of the path; the first moves, but nothing but the stump reads it then."""
    rows = np.zeros((2 ** len(players), columns))
    rows[:, players] = corners.subsets(len(players))
    out = np.zeros(columns)
    out[players] = corners.weights(len(players)) @ graph.predict(rows)
    return out


def test_columns_without_effect_are_no_players(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    real = games.exact

    def watched(game: corners.Game) -> np.ndarray:
        sizes.append(game.players)
        return real(game)

    monkeypatch.setattr(games, "exact", watched)
    graph = categories(20, effect=9)
    e = gig.explain_pairs(graph, np.zeros((1, 20)), np.ones((1, 20)))
    np.testing.assert_allclose(e.values[0], exact_credit(graph, list(range(9)), 20), atol=1e-12)
    assert max(sizes) == 9
    assert e.error[0] < 1e-12


@pytest.mark.parametrize("columns", [7, 10, 13, 16])
def test_a_model_of_many_categories_is_enumerated(columns: int) -> None:
    graph = categories(columns, effect=columns)
    e = gig.explain_pairs(graph, np.zeros((1, columns)), np.ones((1, columns)))
    np.testing.assert_allclose(e.values[0], exact_credit(graph, list(range(columns)), columns), atol=1e-12)
    assert e.error[0] < 1e-12


def stack(columns: int, seed: int) -> Graph:
    """Trees, a net and a linear model, all over the same flags, joined by a net."""
    rng = np.random.default_rng(seed)
    source = Input(columns, nominal=tuple(range(columns)))
    trees = []
    for number in range(20):
        a, b, c = rng.choice(columns, 3, replace=False)
        trees.append(
            Tree(np.array([a, b, c, -1, -1, -1, -1]), np.full(7, 0.5), np.array([1, 3, 5, -1, -1, -1, -1]),
                 np.array([2, 4, 6, -1, -1, -1, -1]), np.zeros(7, bool), rng.normal(size=7) / 2, output=number % 2)
        )  # fmt: skip
    boosted = Elementwise(assemble(source, trees, np.zeros(2)), "sigmoid")
    half = columns // 2
    weight = rng.normal(size=(4, columns)) * (np.arange(columns) < half)
    net = Elementwise(Affine(source, weight, np.zeros(4)), "tanh")
    linear = Affine(source, rng.normal(size=(1, columns)) * (np.arange(columns) >= half - 2), np.zeros(1))
    joined = Elementwise(Affine(Concat((boosted, net, linear)), rng.normal(size=(3, 7)), np.zeros(3)), "tanh")
    score = Elementwise(Affine(joined, rng.normal(size=(1, 3)), np.zeros(1)), "sigmoid")
    return graph_of(tuple(Column(f"c{j}") for j in range(columns)), source, score)


def all_coalitions(players: list[list[int]], columns: int) -> np.ndarray:
    rows = np.zeros((2 ** len(players), columns))
    for i, mine in enumerate(players):
        rows[:, mine] = corners.subsets(len(players))[:, i : i + 1]
    return rows


@pytest.mark.parametrize(("columns", "grouped"), [(6, 0), (11, 0), (14, 0), (14, 4)])
def test_a_stack_of_trees_nets_and_linear_parts_is_enumerated(columns: int, grouped: int) -> None:
    graph = stack(columns, seed=columns)
    players = [list(range(columns - grouped, columns)), *[[j] for j in range(columns - grouped)]][not grouped :]
    groups = {"together": [f"c{j}" for j in players[0]]} if grouped else None
    e = gig.explain_pairs(graph, np.zeros((1, columns)), np.ones((1, columns)), groups=groups)
    want = corners.weights(len(players)) @ graph.predict(all_coalitions(players, columns))
    got = dict(zip(e.feature_names, e.values[0], strict=True))
    names = ["together" if len(mine) > 1 else f"c{mine[0]}" for mine in players]
    np.testing.assert_allclose([got[n] for n in names], want, rtol=0, atol=1e-12)
    assert e.error[0] < 1e-11


@pytest.mark.filterwarnings("ignore::gigrad.AccuracyWarning")
def test_sampled_stacks_are_within_their_error_wherever_they_are_explained() -> None:
    columns = 15
    graph = stack(columns, seed=1)
    rng = np.random.default_rng(2)
    reference, rows = np.zeros((3, columns)), np.ones((4, columns))
    reference[1:, 0] = 1.0
    rows[:, -1] = rng.random(4) < 0.5
    exact = gig.explain(graph, rows, reference)
    assert exact.error.max() < 1e-11
    e = gig.explain(graph, rows, reference, corner_tol=0.5)  # so loose that nothing of this size is enumerated
    assert (e.error > 1e-9).all()
    assert (np.abs(e.values - exact.values).max(axis=1) <= e.error).all()
    assert np.abs(e.gap).max() < 1e-11
    alone = [gig.explain(graph, rows[i : i + 1], reference, corner_tol=0.5, n_threads=1) for i in range(4)]
    assert np.concatenate([a.values for a in alone]).tobytes() == e.values.tobytes()
    # The gap of an enumerated path is in it, and products of matrices round by their number of rows.
    np.testing.assert_allclose(np.concatenate([a.error for a in alone]), e.error, rtol=1e-9)
    other = gig.explain(graph, rows, reference, corner_tol=0.5, seed=1)
    assert other.values.tobytes() != e.values.tobytes()


@pytest.mark.filterwarnings("ignore::gigrad.AccuracyWarning")
def test_more_categories_than_can_be_enumerated() -> None:
    columns = 27
    graph = categories(columns, effect=columns)
    e = gig.explain_pairs(graph, np.zeros((1, columns)), np.ones((1, columns)), corner_tol=0.02)
    again = gig.explain_pairs(graph, np.zeros((1, columns)), np.ones((1, columns)), corner_tol=0.02, seed=1)
    assert 0 < e.error[0] < 0.02
    assert np.abs(e.values - again.values).max() <= e.error[0] + again.error[0]
    assert abs(e.gap[0]) < 1e-12
