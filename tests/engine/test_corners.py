"""Corners of many variables: asked in full up to twelve, sampled above; who has no effect is left out first."""

from __future__ import annotations

import numpy as np
import pytest
from forests import graph_of

import gigrad as gig
from gigrad.engine import corners, games
from gigrad.graph import Affine, Column, Concat, Elementwise, Graph, Input, Lookup, Node, Tree, assemble


def game_of(values: np.ndarray) -> corners.Game:
    """A game given on all subsets, (2^players,)."""

    def game(corner: np.ndarray, past: np.ndarray) -> np.ndarray:
        return values[(past * 2 ** np.arange(past.shape[1])).sum(axis=1)][:, None]

    return game


def random_game(players: int, interactions: int, seed: int) -> np.ndarray:
    """Values on all subsets of sums of products of a few indicators, and a smooth function of a weighted count."""
    rng = np.random.default_rng(seed)
    member = corners.subsets(players).astype(float)
    out = np.zeros(2**players)
    for _ in range(12):
        out += rng.normal() * member[:, rng.choice(players, interactions, replace=False)].prod(axis=1)
    return out if interactions < 3 else out + np.tanh(member @ rng.normal(size=players))


@pytest.mark.parametrize("players", [13, 14])
def test_sampled_corners_are_within_their_standard_error_of_the_exact_value(players: int) -> None:
    values = random_game(players, 4, players)
    exact = corners.weights(players) @ values
    found, error = corners.shapley(game_of(values), np.zeros(1, np.int64), players, 1, seed=0)
    again, _ = corners.shapley(game_of(values), np.zeros(1, np.int64), players, 1, seed=0)
    assert (found == again).all(), "the seed fixes them"
    off = np.abs(found[0, :, 0] - exact)
    assert 0 < error[0, 0] < 0.1
    assert off.max() < 4 * error[0, 0]
    np.testing.assert_allclose(found[0, :, 0].sum(), values[-1] - values[0], atol=1e-12)


def test_the_standard_error_is_as_large_as_the_errors_of_many_seeds() -> None:
    values = random_game(13, 4, 5)
    exact = corners.weights(13) @ values
    off, error = [], []
    for seed in range(30):
        found, spread = corners.shapley(game_of(values), np.zeros(1, np.int64), 13, 1, seed=seed)
        off.append(found[0, :, 0] - exact)
        error.append(spread[0, 0])
    assert np.sqrt(np.square(off).mean(axis=0)).max() == pytest.approx(np.mean(error), rel=0.4)


def test_antithetic_pairs_are_exact_for_interactions_of_two() -> None:
    values = random_game(13, 2, 3)
    found, error = corners.shapley(game_of(values), np.zeros(1, np.int64), 13, 1, seed=0)
    np.testing.assert_allclose(found[0, :, 0], corners.weights(13) @ values, atol=1e-12)
    assert error[0, 0] < 1e-12


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


def watched_sizes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    sizes: list[int] = []
    real = corners.shapley

    def shapley(game, some, players, outputs, seed):
        sizes.append(players)
        return real(game, some, players, outputs, seed)

    monkeypatch.setattr(games, "shapley", shapley)
    return sizes


def test_columns_without_effect_are_no_players(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = watched_sizes(monkeypatch)
    graph = categories(20, effect=9)
    e = gig.explain_pairs(graph, np.zeros((1, 20)), np.ones((1, 20)))
    np.testing.assert_allclose(e.values[0], exact_credit(graph, list(range(9)), 20), atol=1e-12)
    assert max(sizes) == 9
    assert e.error[0] < 1e-12


@pytest.mark.parametrize("columns", [13, 14])
def test_a_model_with_more_categories_than_can_be_asked_in_full(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = watched_sizes(monkeypatch)
    graph = categories(columns, effect=columns)
    with pytest.warns(gig.AccuracyWarning):
        e = gig.explain_pairs(graph, np.zeros((1, columns)), np.ones((1, columns)))
    exact = exact_credit(graph, list(range(columns)), columns)
    assert max(sizes) == columns
    assert np.abs(e.values[0] - exact).max() < 4 * e.error[0]
    assert 0 < e.error[0] < 0.05
    assert abs(e.gap[0]) < 1e-12
