"""Memory is bounded by a block of paths: more references or more rows do not need more of it."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from forests import graph_of

import gigrad as gig
from gigrad.engine import limits
from gigrad.graph import Affine, Column, Elementwise, Graph, Input, Node

COLUMNS = 20


@pytest.fixture(scope="module")
def wide_net() -> Graph:
    """1000-1000-1000 units, ReLU, ReLU and tanh, under a sigmoid."""
    rng = np.random.default_rng(0)
    source = Input(COLUMNS)
    hidden: Node = source
    for activation in ("relu", "relu", "tanh"):
        weight = rng.normal(size=(1000, hidden.width)) * np.sqrt(2.0 / hidden.width)
        hidden = Elementwise(Affine(hidden, weight, np.zeros(1000)), activation)
    score = Elementwise(Affine(hidden, rng.normal(size=(1, 1000)) / 30, np.zeros(1)), "sigmoid")
    return graph_of(tuple(Column(f"x{j}") for j in range(COLUMNS)), source, score)


def peak(graph: Graph, rows: int, references: int, length: float) -> int:
    """The most memory that is in use at once during an explanation, beyond what was in use before."""
    rng = np.random.default_rng(1)
    start = rng.normal(size=COLUMNS)
    reference, X = (start + length * rng.normal(size=(n, COLUMNS)) for n in (references, rows))
    explainer = gig.Explainer(graph, reference, n_threads=1)
    explainer(X[:1])  # what is worked out once
    tracemalloc.start()
    try:
        explainer(X)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_does_not_grow_with_references_or_rows(wide_net: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    # Without this, blocks of this net hold about 1,000 paths: 51 MB for 1,280 references, 56 MB for 5,120.
    for limit in ("SCORED_NUMBERS", "BATCH_NUMBERS", "BLOCK_NUMBERS"):
        monkeypatch.setattr(limits, limit, getattr(limits, limit) // 64)
    few = peak(wide_net, rows=1, references=40, length=0.01)
    assert peak(wide_net, rows=1, references=160, length=0.01) < 1.3 * few
    assert peak(wide_net, rows=4, references=40, length=0.01) < 1.3 * few


def test_memory_does_not_grow_with_paths_of_a_thousand_kinks(wide_net: Graph) -> None:
    few = peak(wide_net, rows=1, references=5, length=1.0)
    many = peak(wide_net, rows=1, references=12, length=1.0)
    assert many < 1.7 * few, "paths differ in how many kinks they have, but their number does not matter"
    assert many < 3e8
