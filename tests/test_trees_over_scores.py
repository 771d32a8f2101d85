"""Trees over continuous scores, where thresholds are met at the very ends of paths and at round times along them."""

from __future__ import annotations

import numpy as np
import pytest

import gigrad as gig
from gigrad.graph import Affine, Column, Elementwise, Graph, Input, Node, Tree, assemble

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
    explained = gig.explain_pairs(graph, start, end)
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
