"""Wide heads over few scores are tabulated: the table tells what the head itself tells, or is not used."""

from __future__ import annotations

import numpy as np
import pytest
from forests import graph_of, random_forest

import gigrad as gig
from gigrad.engine import limits
from gigrad.engine.mixed import between
from gigrad.engine.mixed.between import Inputs, Totals
from gigrad.engine.mixed.panels import Panels
from gigrad.engine.mixed.table import Table, TabulatedPart
from gigrad.engine.roles import Roles
from gigrad.graph import Affine, Column, Concat, Elementwise, Graph, Input, Node, PiecewiseLinear, Softmax
from gigrad.testing import brute_force

COLUMNS = tuple(Column(f"x{j}") for j in range(3))


def dense(rng: np.random.Generator, source: Node, width: int, scale: float = 1.0) -> Affine:
    weight = rng.normal(size=(width, source.width)) * scale / np.sqrt(source.width)
    return Affine(source, weight, rng.normal(size=width))


def ensemble(seed: int, activation: str = "tanh", forests: int = 1, scale: float = 1.0, outputs: int = 1) -> Graph:
    """A net with kinks and some forests under a head of 80 units, ranked."""
    rng, source = np.random.default_rng(seed), Input(3)
    units = Elementwise(dense(rng, source, 10), "relu")
    net = Elementwise(dense(rng, units, 1), "sigmoid")
    trees = [Elementwise(random_forest(rng, COLUMNS, source, trees=40, depth=4), "sigmoid") for _ in range(forests)]
    hidden = Elementwise(dense(rng, Concat((*trees, net)), 80, scale), activation)
    top = dense(rng, hidden, outputs)
    if outputs > 1:
        return Graph(COLUMNS, source, Softmax(top), top, tuple("abc"))
    ranked = PiecewiseLinear(Elementwise(top, "sigmoid"), np.linspace(0, 1, 11), np.linspace(0, 1, 11) ** 2)
    return graph_of(COLUMNS, source, ranked)


def pairs(count: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    return rng.uniform(-0.5, 3.5, (count, 3)), rng.uniform(-0.5, 3.5, (count, 3))


@pytest.fixture
def tables(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each patch that was asked about could be told by a table."""
    used: list[bool] = []
    covers = Table.covers

    def watched(self: Table, low: np.ndarray, high: np.ndarray) -> bool:
        used.append(covers(self, low, high))
        return used[-1]

    monkeypatch.setattr(Table, "covers", watched)
    return used


@pytest.mark.parametrize("forests", [1, 2])
@pytest.mark.parametrize("outputs", [1, 3])
def test_a_tabulated_head_gives_the_credit_of_the_head_itself(
    forests: int, outputs: int, tables: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = ensemble(forests, forests=forests, outputs=outputs, scale=0.15)
    starts, ends = pairs(600)
    got = gig.explain_pairs(graph, starts, ends, tol=1e-10)
    assert tables[-1]  # the first block may not be worth one yet
    monkeypatch.setattr(Table, "of", lambda *_: None)
    want = gig.explain_pairs(graph, starts, ends, tol=1e-10)
    np.testing.assert_allclose(got.values, want.values, atol=2e-12)


def test_a_tabulated_head_equals_the_definition(tables: list[bool]) -> None:
    graph = ensemble(5)
    starts, ends = pairs(120)
    e = gig.explain_pairs(graph, starts, ends, tol=1e-10, discrete=())
    assert any(tables)
    for i in range(2):
        np.testing.assert_allclose(e.values[i], brute_force(graph, starts[i], ends[i])[:, 0], atol=1e-9)


def test_heads_too_rough_for_a_table_are_asked_themselves(tables: list[bool]) -> None:
    graph = ensemble(2, scale=300.0)
    starts, ends = pairs(40)
    e = gig.explain_pairs(graph, starts, ends)
    assert tables
    assert not any(tables)
    assert np.abs(e.gap).max() < 1e-6


def test_a_table_that_fails_on_a_large_batch_leaves_it_to_the_head_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = ensemble(3)
    starts, ends = pairs(10)
    want = gig.explain_pairs(graph, starts, ends, tol=1e-10).values
    sizes: list[int] = []
    integrate = between.integrate

    def watched(inputs: Inputs, totals: Totals, some: Panels, order: int, most: int) -> Panels:
        sizes.append(len(some))
        return integrate(inputs, totals, some, order, most)

    monkeypatch.setattr(between, "integrate", watched)
    monkeypatch.setattr(limits, "BATCH_NUMBERS", 1 << 12)
    monkeypatch.setattr(Table, "made", True)
    monkeypatch.setattr(Table, "covers", lambda *_: False)
    np.testing.assert_allclose(gig.explain_pairs(graph, starts, ends, tol=1e-10).values, want, atol=1e-11)
    assert max(sizes) > 2 * min(sizes)


def test_few_questions_are_no_reason_for_a_table(tables: list[bool]) -> None:
    starts, ends = pairs(1)
    rng, source = np.random.default_rng(0), Input(3)
    forest = random_forest(rng, COLUMNS, source, trees=1, depth=2)
    net = Elementwise(dense(rng, source, 1), "sigmoid")
    hidden = Elementwise(dense(rng, Concat((forest, net)), 80), "tanh")
    gig.explain_pairs(graph_of(COLUMNS, source, Elementwise(dense(rng, hidden, 1), "sigmoid")), starts, ends)
    assert tables
    assert not any(tables)


def test_parts_that_cannot_be_tabulated_are_left_alone() -> None:
    def narrow(graph: Graph) -> TabulatedPart | None:
        return TabulatedPart.of(Roles.of(graph.score, graph.input))

    assert narrow(ensemble(0)) is not None
    assert narrow(ensemble(0, activation="relu")) is None, "kinks inside"
    assert narrow(ensemble(0, forests=3)) is None, "four numbers"
    rng, source = np.random.default_rng(0), Input(3)
    net = Elementwise(dense(rng, source, 1), "sigmoid")
    forest = random_forest(rng, COLUMNS, source)
    hidden = Elementwise(dense(rng, Concat((forest, net)), 80), "tanh")
    around = Elementwise(dense(rng, Concat((hidden, net)), 1), "abs")
    part = narrow(graph_of(COLUMNS, source, around))
    assert part is not None
    assert part.node is around.source, "what goes around the units is part of it"
    many = Elementwise(dense(rng, Concat((forest, Elementwise(dense(rng, source, 2), "tanh"))), 80), "tanh")
    assert narrow(graph_of(COLUMNS, source, dense(rng, many, 1))) is None, "two continuous scores"
