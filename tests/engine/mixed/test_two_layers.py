"""Two wide layers with kinks, followed from kink to kink: against the plain lines, and against other precisions."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import gigrad as gig
from gigrad.engine import limits
from gigrad.engine.mixed.lines import Legs, Lines
from gigrad.engine.mixed.two_layers import KeptProducts, TwoLayers
from gigrad.engine.paths import Block
from gigrad.engine.roles import Roles
from gigrad.graph import Affine, Array, Column, Elementwise, Graph, Input, Node


def units(rng: np.random.Generator, source: Node, width: int, activation: str) -> Node:
    weight = rng.normal(size=(width, source.width)) * np.sqrt(2.0 / source.width)
    return Elementwise(Affine(source, weight, rng.normal(size=width) * 0.3), activation, 0.1)


def dense(rng: np.random.Generator, source: Input, activation: str) -> Node:
    return units(rng, units(rng, source, 30, activation), 25, activation)


def deep(rng: np.random.Generator, source: Input) -> Node:
    """A third layer over the sums, whose kinks cut what the two give."""
    return units(rng, dense(rng, source, "relu"), 12, "relu")


def together(rng: np.random.Generator, source: Input) -> Node:
    """Upper units that turn exactly where a lower unit does, on either side of it: they read one or two of these."""
    lower = units(rng, source, 12, "leaky_relu")
    weight = np.zeros((24, 12))
    weight[np.arange(12), np.arange(12)] = rng.normal(size=12)
    weight[np.arange(12, 24), np.arange(12)] = 1.0
    weight[np.arange(12, 23), np.arange(1, 12)] = rng.normal(size=11)
    bias = np.where(np.arange(24) < 12, 0.0, 0.1)
    return Elementwise(Affine(lower, weight, bias), "relu")


def lines_of(node: Node, source: Input, path: tuple[Array, Array], references: int, two: bool, broken: bool) -> Lines:
    """The lines of one path; where it is broken, it has a leg for each half."""
    roles, only = Roles.of(Elementwise(node, "tanh"), source), np.zeros(1, np.int64)
    at_once = np.arange(source.width) == (1 if broken else -1)
    block = Block(path[0][None], path[1][None], only, only, np.ones(1), at_once, references)
    return Lines.trace(roles, block, Legs.of(1, np.array([broken]), np.array([0.0, 1.0])), two_layers=two)


NETS = {
    "relu": lambda rng, source: dense(rng, source, "relu"),
    "leaky": lambda rng, source: dense(rng, source, "leaky_relu"),
    "abs": lambda rng, source: dense(rng, source, "abs"),
    "deep": deep,
    "together": together,
}


@pytest.mark.parametrize("kind", NETS)
@pytest.mark.parametrize("references", [1, 100])
@pytest.mark.parametrize("broken", [False, True])
def test_values_and_the_way_back_are_those_of_the_plain_lines(kind: str, references: int, broken: bool) -> None:
    for seed in range(12):
        rng = np.random.default_rng([seed, len(kind)])
        source = Input(5)
        top = NETS[kind](rng, source)
        node = Affine(top, rng.normal(size=(7, top.width)), rng.normal(size=7))
        path = rng.normal(size=5), rng.normal(size=5)
        plain, two = (lines_of(node, source, path, references, way, broken) for way in (False, True))
        assert not plain.stacked
        assert len(two.stacked) == 1
        np.testing.assert_allclose(two.grid.time, plain.grid.time, atol=1e-12)
        np.testing.assert_allclose(two.ends[node], plain.ends[node], atol=1e-12)
        cotangent = rng.normal(size=(len(plain.grid.left), 7))
        np.testing.assert_allclose(two.pull_back({node: cotangent}), plain.pull_back({node: cotangent}), atol=1e-10)


def test_units_that_turn_together_have_no_kink_of_their_own() -> None:
    rng = np.random.default_rng(0)
    source = Input(5)
    node = Affine(together(rng, source), rng.normal(size=(7, 24)), np.zeros(7))
    lines = lines_of(node, source, (rng.normal(size=5), rng.normal(size=5)), 1, True, False)
    two = lines.stacked[node]
    own = lines.hinges[node.source]
    assert len(two.upper.point) > len(own.point)
    extra = np.setdiff1d(two.upper.point, own.point)
    assert np.isin(extra, two.lower_point).all()


def wide_net(columns: int, width: int) -> Graph:
    rng = np.random.default_rng(4)
    source = Input(columns)
    node: Node = source
    for name in ("relu", "relu", "tanh"):
        weight = rng.normal(size=(width, node.width)) * np.sqrt(2.0 / node.width)
        if node is source:  # two columns against each other: the parts of the speed are larger than the speed
            weight[:, 1] = 0.1 * weight[:, 1] - weight[:, 0]
        node = Elementwise(Affine(node, weight, 0.1 * rng.normal(size=width)), name)
    score = Affine(node, rng.normal(size=(1, width)) / np.sqrt(width), np.zeros(1))
    return Graph(tuple(Column(f"c{j}") for j in range(columns)), source, score, score, ("y",))


def test_credits_of_wide_layers_are_within_their_error(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, rng = wide_net(6, 400), np.random.default_rng(5)
    starts, ends = rng.normal(size=(6, 6)), rng.normal(size=(6, 6))
    ends[:, 1] = starts[:, 1] + (ends - starts)[:, 0]
    used: list[TwoLayers | None] = []
    of = TwoLayers.of

    def watched(*rest):
        used.append(of(*rest))
        return used[-1]

    monkeypatch.setattr(TwoLayers, "of", watched)
    found = gig.explain_pairs(graph, starts, ends, tol=1e-8)
    assert sum(two is not None for two in used) == 6
    np.testing.assert_array_equal(found.values, gig.explain_pairs(graph, starts, ends, tol=1e-8, n_threads=2).values)
    alone = gig.explain_pairs(graph, starts[4:], ends[4:], tol=1e-8)
    np.testing.assert_array_equal(found.values[4:], alone.values)  # no other row changes a bit
    monkeypatch.setattr(TwoLayers, "of", lambda *rest: None)
    exact = gig.explain_pairs(graph, starts, ends, tol=1e-11)
    off = np.abs(found.values - exact.values).reshape(6, -1).max(axis=1)
    assert (off <= found.error.ravel() + exact.error.ravel()).all()
    assert off.max() < 1e-8 * np.abs(exact.predictions).max()


@pytest.mark.parametrize("tol", [1e-2, 1e-8])
def test_no_other_row_changes_a_credit(tol: float) -> None:
    graph, rng = wide_net(6, 400), np.random.default_rng(6)
    rows = rng.normal(size=(3, 6))
    explainer = gig.Explainer(graph, rng.normal(size=(12, 6)), tol=tol)
    alone = np.concatenate([explainer(rows[i : i + 1]).values for i in range(3)])
    together = explainer(rows).values
    assert np.abs(together - alone).max() < 1e-14 * np.abs(alone).max()


def test_products_are_kept_for_a_few_rows_and_shared_by_threads() -> None:
    rng, kept = np.random.default_rng(7), KeptProducts()
    source = Input(3)
    below = Affine(source, rng.normal(size=(20, 3)), np.zeros(20))
    node = Affine(Elementwise(below, "relu"), rng.normal(size=(4, 20)), np.zeros(4))
    slopes = [(rng.uniform(size=20) < 0.5).astype(float) for _ in range(5)]
    weights, found = node.weight.T, dict[int, Array]()

    def ask(i: int) -> None:
        found[i] = kept.of(node, below, slopes[i % 5], weights)

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i, product in found.items():
        np.testing.assert_allclose(product, below.weight.T @ (slopes[i % 5][:, None] * weights), atol=1e-12)
    assert len(kept.kept) == limits.KEPT_PRODUCTS
