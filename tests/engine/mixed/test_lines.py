"""Piecewise-linear layers followed from kink to kink, and terms that read one column alone."""

from __future__ import annotations

import numpy as np
import pytest
from forests import graph_of

import gigrad as gig
from gigrad import kernels
from gigrad.engine import limits
from gigrad.graph import Affine, Column, Concat, Elementwise, Graph, Input, Node, Product, Sum
from gigrad.testing import brute_force

COLUMNS = tuple(Column(f"x{j}") for j in range(3))


def layer(rng: np.random.Generator, source: Node, width: int, activation: str, parameter: float = 0.0) -> Node:
    weight = rng.normal(size=(width, source.width)) * np.sqrt(2.0 / source.width)
    return Elementwise(Affine(source, weight, rng.normal(size=width) * 0.3), activation, parameter)


def chain(rng: np.random.Generator, source: Node, activation: str) -> Node:
    for _ in range(3):
        source = layer(rng, source, 8, activation, 0.1)
    return source


def branches(rng: np.random.Generator, source: Node) -> Node:
    """Units that a layer and something else read, and layers of different depth that meet again."""
    first = layer(rng, source, 6, "relu")
    deep = Affine(layer(rng, first, 6, "relu"), rng.normal(size=(6, 6)), np.zeros(6))
    return Concat((Sum((deep, first)), layer(rng, source, 4, "abs"), source))


def compare(graph: Graph, rng: np.random.Generator, pairs: int = 1) -> None:
    starts, ends = rng.normal(size=(pairs, 3)), rng.normal(size=(pairs, 3))
    e = gig.explain_pairs(graph, starts, ends, tol=1e-10, discrete=())
    for i in range(pairs):
        np.testing.assert_allclose(e.values[i], brute_force(graph, starts[i], ends[i])[:, 0], atol=1e-9)


@pytest.mark.parametrize("shape", ["relu", "leaky_relu", "abs", "branches"])
@pytest.mark.parametrize("top", ["linear", "tanh"])
def test_nets_with_kinks_equal_the_definition(shape: str, top: str) -> None:
    rng = np.random.default_rng(len(shape) + len(top))
    source = Input(3)
    lines = branches(rng, source) if shape == "branches" else chain(rng, source, shape)
    score: Node = Affine(lines, rng.normal(size=(1, lines.width)) / 4, np.zeros(1))
    compare(graph_of(COLUMNS, source, score if top == "linear" else Elementwise(score, "tanh")), rng)


def test_a_unit_that_starts_on_its_kink_but_for_rounding() -> None:
    source = Input(3)
    weight = np.array([[-0.1, -0.1, -0.1], [1.0, 0.0, 0.5]])
    hidden = Elementwise(Affine(source, weight, np.array([0.3, -0.4])), "relu")
    start, end = np.ones(3), np.array([0.2, -0.5, -1.0])
    below = (start @ weight.T + np.array([0.3, -0.4]))[0]
    assert -1e-15 < below < 0.0, "rounding puts it on the wrong side"
    top = Elementwise(Affine(hidden, np.array([[1.0, 2.0], [0.5, -1.0]]), np.array([0.0, 0.1])), "tanh")
    graph = graph_of(COLUMNS, source, Affine(top, np.ones((1, 2)), np.zeros(1)))
    e = gig.explain_pairs(graph, start[None], end[None], tol=1e-10, discrete=())
    np.testing.assert_allclose(e.values[0], brute_force(graph, start, end)[:, 0], atol=1e-9)


def test_bent_rows_are_those_of_the_layer_itself() -> None:
    """One path, cut at the kinks of four units: the walk gives what the matrix gives."""
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(4, 7))
    z0, z1 = np.array([1.0, -1.0, 0.5, 2.0]), np.array([-1.0, 3.0, -2.0, 1.0])
    kinks = np.sort(z0[:3] / (z0[:3] - z1[:3]))
    unit = np.argsort(z0[:3] / (z0[:3] - z1[:3]))
    time = np.concatenate([[0.0], kinks, [1.0]])
    at, part = np.array([0, 0, 0, 0, 1]), np.concatenate([[0.0], kinks, [0.0]])
    step = np.where(z1[unit] > z0[unit], 1.0, -1.0)
    coarse = np.maximum([z0, z1], 0.0) @ rows
    got = kernels.bend_rows(coarse, at, part, time, np.array([1, 2, 3]), step * (z1 - z0)[unit], unit, rows)
    z = z0 + time[:, None] * (z1 - z0)
    np.testing.assert_allclose(got, np.maximum(z, 0.0) @ rows, atol=1e-14)


def test_suffix_products_are_sums_of_later_pieces() -> None:
    rng = np.random.default_rng(4)
    sums, rows = rng.normal(size=(6, 5)), rng.normal(size=(3, 5))
    begin, end, unit = np.array([1, 2, 4, 5]), np.array([3, 3, 6, 6]), np.array([2, 0, 1, 2])
    want = [sums[b:e].sum(axis=0) @ rows[u] for b, e, u in zip(begin, end, unit, strict=True)]
    np.testing.assert_allclose(kernels.suffix_products(sums, begin, end, unit, rows), want, atol=1e-14)


def test_kernels_refuse_points_outside() -> None:
    two = np.zeros((2, 3))
    with pytest.raises(ValueError, match="lies beyond"):
        kernels.between_rows(two, np.array([1]), np.array([0.5]))
    with pytest.raises(ValueError, match="must lie below"):
        kernels.suffix_products(two, np.array([0]), np.array([1]), np.array([2]), two)
    none = np.zeros(0, np.int64)
    with pytest.raises(ValueError, match="does not lie between"):
        kernels.bend_rows(two, np.array([1]), np.array([0.5]), np.array([0.5]), none, np.zeros(0), none, two)


# ---------------------------------------------------------------- one column alone


def test_terms_of_one_column_give_it_their_difference() -> None:
    source = Input(3)
    scaled = Affine(source, np.diag([2.0, 1.0, 0.5]), np.zeros(3))
    bumps = Product(Elementwise(scaled, "tanh"), Elementwise(Elementwise(source, "exp"), "sigmoid"))
    graph = graph_of(COLUMNS, source, Affine(bumps, np.array([[1.0, -2.0, 0.5]]), np.ones(1)))
    rng = np.random.default_rng(6)
    reference, rows = rng.normal(size=(20, 3)), rng.normal(size=(4, 3))
    e = gig.explain(graph, rows, reference)

    def terms(x: np.ndarray) -> np.ndarray:
        return np.tanh(x * np.array([2.0, 1.0, 0.5])) / (1 + np.exp(-np.exp(x))) * np.array([1.0, -2.0, 0.5])

    np.testing.assert_allclose(e.values, terms(rows) - terms(reference).mean(axis=0), atol=1e-14)
    assert (e.error == 0.0).all()


def test_units_with_kinks_that_are_the_output_itself_equal_the_definition() -> None:
    """A net's margin may be read off as many units as it has outputs: then no layer above them is asked."""
    rng = np.random.default_rng(5)
    source = Input(3)
    units = layer(rng, source, 3, "relu")
    output = Affine(units, rng.normal(size=(3, 3)), np.zeros(3))
    graph = Graph(COLUMNS, source, output, output, ("a", "b", "c"))
    starts, ends = rng.normal(size=(5, 3)), rng.normal(size=(5, 3))
    e = gig.explain_pairs(graph, starts, ends, tol=1e-10, discrete=())
    assert np.abs(e.gap).max() < 1e-12
    for i in range(5):
        np.testing.assert_allclose(e.values[i], brute_force(graph, starts[i], ends[i]), atol=1e-9)


@pytest.mark.parametrize("activation", ["relu", "leaky_relu"])
def test_layers_multiplied_by_blas_give_the_credit_of_the_core(
    activation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng, source = np.random.default_rng(4), Input(3)
    top: Node = source
    for width in (9, 8, 7):
        layer = Affine(top, rng.normal(size=(width, top.width)) * np.sqrt(2 / top.width), rng.normal(size=width) / 3)
        top = Elementwise(layer, activation, 0.1)
    score = Elementwise(Affine(top, rng.normal(size=(1, 7)) / 3, np.zeros(1)), "tanh")
    graph = graph_of(tuple(Column(n) for n in "abc"), source, score)
    starts, ends = rng.normal(size=(8, 3)) * 2, rng.normal(size=(8, 3)) * 2
    want = gig.explain_pairs(graph, starts, ends, tol=1e-10, discrete=()).values
    monkeypatch.setattr(limits, "TRACED_WEIGHTS", 0)
    got = gig.explain_pairs(graph, starts, ends, tol=1e-10, discrete=()).values
    np.testing.assert_allclose(got, want, atol=1e-13)
    np.testing.assert_allclose(got[0], brute_force(graph, starts[0], ends[0])[:, 0], atol=1e-9)
