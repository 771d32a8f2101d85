"""Trees and continuous parts joined: closed forms, the definition, the axioms in rank space, theory, peers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sympy
import torch
from captum.attr import IntegratedGradients
from forests import graph_of, random_columns, random_forest, random_rows
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import gigrad as gig
from gigrad.engine.quadrature import gauss, legendre
from gigrad.graph import Affine, Column, Concat, Elementwise, Graph, Input, Node, Opaque, Select, Sum, Tree, assemble
from gigrad.testing import brute_force

seeds = st.integers(0, 2**32 - 1)
START, END = np.array([0.5, 1.0]), np.array([7.0, 3.0])
XY = (Column("x"), Column("y"))


def sine(source: Input) -> Node:
    def gradient(x: np.ndarray, cotangent: np.ndarray) -> np.ndarray:
        return np.repeat(cotangent * np.cos(x.sum(axis=1, keepdims=True)), 2, axis=1)

    return Opaque(source, 1, lambda x: np.sin(x.sum(axis=1, keepdims=True)), gradient)


def step(source: Input, column: int, threshold: float, height: float) -> Node:
    stump = Tree(
        np.array([column, -1, -1]), np.array([threshold, 0, 0]), np.array([1, -1, -1]), np.array([2, -1, -1]),
        np.zeros(3, bool), np.array([0.0, 0.0, height]),
    )  # fmt: skip
    return assemble(source, [stump], np.zeros(1))


def credit_of(score: Node, source: Input) -> np.ndarray:
    return gig.explain_pairs(graph_of(XY, source, score), START[None], END[None], tol=1e-11, discrete=()).values[0]


def test_a_sine_of_the_sum() -> None:
    source = Input(2)
    exact = (np.sin(10) - np.sin(1.5)) * np.array([6.5, 2.0]) / 8.5
    np.testing.assert_allclose(credit_of(sine(source), source), exact, atol=1e-11)
    np.testing.assert_allclose(exact, [-1.17881, -0.36271], atol=5e-6)


def test_a_sine_and_a_step_add() -> None:
    source = Input(2)
    both = credit_of(Sum((sine(source), step(source, 0, 3.0, 0.7), step(source, 1, 2.0, -0.2))), source)
    np.testing.assert_allclose(both, credit_of(sine(source), source) + np.array([0.7, -0.2]), atol=1e-11)


def test_a_sine_of_a_product_and_a_step_worked_out_by_sympy() -> None:
    """sin(x y / 4 + d), where d jumps by 0.9 when x passes 3."""
    source = Input(2)

    def value(z: np.ndarray) -> np.ndarray:
        return np.sin(z[:, :1] * z[:, 1:2] / 4 + z[:, 2:])

    def gradient(z: np.ndarray, cotangent: np.ndarray) -> np.ndarray:
        slope = cotangent * np.cos(z[:, :1] * z[:, 1:2] / 4 + z[:, 2:])
        return slope * np.column_stack([z[:, 1] / 4, z[:, 0] / 4, np.ones(len(z))])

    score = Opaque(Concat((source, step(source, 0, 3.0, 0.9))), 1, value, gradient)
    a = sympy.symbols("a")
    x, y = sympy.Rational(1, 2) + sympy.Rational(13, 2) * a, 1 + 2 * a
    crossing = sympy.Rational(5, 13)
    want = []
    for move, other in ((sympy.Rational(13, 2), y), (2, x)):
        pieces = (
            sympy.Integral(move * other / 4 * sympy.cos(x * y / 4 + d), (a, low, high)).evalf(20)
            for d, low, high in ((0, 0, crossing), (sympy.Rational(9, 10), crossing, 1))
        )
        want.append(float(sum(pieces)))
    at = (x * y / 4).subs(a, crossing)
    want[0] += float(sympy.sin(at + sympy.Rational(9, 10)) - sympy.sin(at))
    np.testing.assert_allclose(credit_of(score, source), want, atol=1e-10)


# ---------------------------------------------------------------- against the definition, and the axioms


def random_net(rng: np.random.Generator, source: Node, activation: str, width: int = 5) -> Node:
    hidden = source
    for _ in range(2):
        weight = rng.normal(size=(width, hidden.width)) / np.sqrt(hidden.width)
        hidden = Elementwise(Affine(hidden, weight, rng.normal(size=width) * 0.3), activation)
    return Affine(hidden, rng.normal(size=(1, width)), np.zeros(1))


def composition(rng: np.random.Generator, activation: str) -> Graph:
    """An ECDF of a net over a sigmoid of trees and a net: numbers only, so that the net may read every column."""
    columns = tuple(Column(f"x{j}", missing=False) for j in range(3))
    source = Input(3)
    trees = Elementwise(random_forest(rng, columns, source, trees=3, depth=3), "sigmoid")
    head = random_net(rng, Concat((trees, random_net(rng, source, activation))), "tanh", width=3)
    graph = graph_of(columns, source, head)
    return graph.then(gig.SmoothedECDF.fit(graph.predict(numbers(rng, 60)), knots=6))


def numbers(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.integers(0, 7, (n, 3)) / 2.0


# Where a kink of the net lies on a knot of the ECDF, the estimate of the error cannot get below some 1e-8, and says so.
@pytest.mark.filterwarnings("ignore::gigrad.errors.AccuracyWarning")
@given(seeds, st.sampled_from(["tanh", "relu"]))
@settings(max_examples=12, deadline=None)
def test_compositions_in_rank_space_equal_the_definition(seed: int, activation: str) -> None:
    rng = np.random.default_rng(seed)
    graph = composition(rng, activation)
    starts, ends = numbers(rng, 2), numbers(rng, 2)
    got = gig.explain_pairs(graph, starts, ends, tol=1e-10, discrete=())
    for i in range(2):
        off = np.abs(got.values[i] - brute_force(graph, starts[i], ends[i])[:, 0]).max()
        assert off <= 1e-8
        assert off <= got.error[i] + 1e-9  # what the definition's own bisection may be off by


@pytest.mark.parametrize("seed", [3, 64, 81, 102, 395])
def test_a_path_that_ends_on_a_knot_is_not_in_doubt(seed: int) -> None:
    """There the slope of a rank may be that on the other side, which was taken for a loss: 3e-6 where all was exact."""
    rng = np.random.default_rng(seed)
    graph = composition(rng, "tanh")
    starts, ends = numbers(rng, 3), numbers(rng, 3)
    starts[:, 1] = ends[:, 1]
    got = gig.explain_pairs(graph, starts, ends, tol=1e-9, discrete=())
    assert got.error.max() <= 1e-9
    for i in range(3):
        assert np.abs(got.values[i] - brute_force(graph, starts[i], ends[i])[:, 0]).max() <= 1e-9


@given(seeds)
@settings(max_examples=15, deadline=None)
def test_axioms_in_rank_space(seed: int) -> None:
    rng = np.random.default_rng(seed)
    graph = composition(rng, "tanh")
    starts, ends = numbers(rng, 3), numbers(rng, 3)
    starts[:, 1] = ends[:, 1]  # a variable that does not differ
    forth = gig.explain_pairs(graph, starts, ends, tol=1e-9)
    back = gig.explain_pairs(graph, ends, starts, tol=1e-9)
    np.testing.assert_allclose(forth.values.sum(axis=1), graph.predict(ends) - graph.predict(starts), atol=1e-8)
    np.testing.assert_allclose(forth.values, -back.values, atol=1e-8)
    assert (forth.values[:, 1] == 0).all()


def mixture(rng: np.random.Generator, rows: Node) -> Node:
    """tanh of a net over trees and a net, both of the first three columns of `rows`."""
    columns = tuple(Column(f"x{j}", missing=False) for j in range(3))
    joined = Concat((random_forest(rng, columns, rows, trees=3, depth=3), random_net(rng, rows, "tanh")))
    return Elementwise(random_net(rng, joined, "tanh", width=3), "tanh")


@given(seeds)
@settings(max_examples=10, deadline=None)
def test_mixtures_are_linear_blind_to_null_variables_and_strongly_symmetric(seed: int) -> None:
    rng = np.random.default_rng(seed)
    source = Input(4)
    columns = tuple(Column(f"x{j}", missing=False) for j in range(4))
    swap = np.array([1, 0, 2, 3])
    starts, ends = rng.integers(0, 7, (2, 3, 4)) / 2.0

    def credit(score: Node, order: Any = slice(None)) -> np.ndarray:
        graph = graph_of(columns, source, score)
        return gig.explain_pairs(graph, starts[:, order], ends[:, order], tol=1e-9).values

    f = mixture(np.random.default_rng(seed), Select(source, (0, 1, 2)))
    turned = mixture(np.random.default_rng(seed), Select(source, (1, 0, 2)))
    other = mixture(rng, Select(source, (0, 1, 2)))
    of_f = credit(f)
    assert (of_f[:, 3] == 0).all()
    np.testing.assert_allclose(credit(turned, swap), of_f[:, swap], rtol=0, atol=1e-8)
    both = Affine(Concat((f, other)), np.array([[2.0, -3.0]]), np.array([0.5]))
    np.testing.assert_allclose(credit(both), 2.0 * of_f - 3.0 * credit(other), rtol=0, atol=1e-8)


@pytest.mark.filterwarnings("error")
def test_an_output_that_is_nothing_at_both_ends_raises_no_warning() -> None:
    """No error is allowed for it, and what the other output reads is none of its business."""
    source = Input(2)
    score = Elementwise(Affine(source, np.array([[1.0, 1.0], [1.0, -1.0]]), np.zeros(2)), "tanh")
    e = gig.explain_pairs(graph_of(XY, source, score), [[1.0, -1.0]], [[-1.0, 1.0]])
    np.testing.assert_allclose(e.values[0, :, 1], -np.tanh(2.0), rtol=1e-6)
    assert np.abs(e.values[0, :, 0].sum()) < 1e-12


def test_an_affine_head_of_weight_one_changes_nothing() -> None:
    rng = np.random.default_rng(5)
    columns = random_columns(rng, 4)
    source = Input(4)
    trees = random_forest(rng, columns, source)
    starts, ends = random_rows(rng, columns, 6), random_rows(rng, columns, 6)
    alone = gig.explain_pairs(graph_of(columns, source, trees), starts, ends).values
    headed = gig.explain_pairs(graph_of(columns, source, Affine(trees, np.eye(1), np.zeros(1))), starts, ends).values
    np.testing.assert_allclose(headed, alone, atol=1e-13)


def test_nets_alone_agree_with_captum_at_many_steps() -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1), nn.Sigmoid()).double().eval()
    rng = np.random.default_rng(0)
    starts, ends = rng.normal(size=(3, 4)), rng.normal(size=(3, 4))
    found = IntegratedGradients(net).attribute(torch.tensor(ends), torch.tensor(starts), n_steps=200)
    got = gig.explain_pairs(net, starts, ends, tol=1e-11)
    np.testing.assert_allclose(got.values, found.detach().numpy(), atol=1e-9)


# ---------------------------------------------------------------- theory


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 12, 16])
def test_gauss_rules_are_exact_to_their_degree(size: int) -> None:
    rule = gauss(size)
    np.testing.assert_allclose(rule.weights.sum(), 2.0, rtol=1e-14)
    for degree in range(2 * size):
        want = 2.0 / (degree + 1) if degree % 2 == 0 else 0.0
        np.testing.assert_allclose(rule.weights @ rule.nodes**degree, want, atol=1e-14)
    coefficients = rule.to_coefficients @ rule.nodes ** (size - 1)
    u = np.linspace(-1, 1, 9)
    np.testing.assert_allclose(coefficients @ legendre(u, size), u ** (size - 1), atol=1e-13)


@pytest.mark.parametrize("size", [2, 3, 5])
def test_composite_rules_converge_at_their_order(size: int) -> None:
    rule = gauss(size)

    def integral(panels: int) -> float:
        edges = np.linspace(0, 1, panels + 1)
        middle, half = (edges[1:] + edges[:-1]) / 2, (edges[1:] - edges[:-1]) / 2
        return float((half[:, None] * rule.weights * np.exp(3 * (middle[:, None] + half[:, None] * rule.nodes))).sum())

    exact = (np.exp(3) - 1) / 3
    coarse, fine = abs(integral(2) - exact), abs(integral(4) - exact)
    assert np.log2(coarse / fine) == pytest.approx(2 * size, abs=0.35)


def test_piecewise_linear_nets_are_exact_and_say_so() -> None:
    rng = np.random.default_rng(1)
    columns, source = tuple(Column(f"x{j}") for j in range(3)), Input(3)
    graph = graph_of(columns, source, random_net(rng, source, "relu", width=12))
    starts, ends = rng.normal(size=(4, 3)), rng.normal(size=(4, 3))
    e = gig.explain_pairs(graph, starts, ends)
    for i in range(4):
        np.testing.assert_allclose(e.values[i], brute_force(graph, starts[i], ends[i])[:, 0], atol=1e-9)
    assert np.abs(e.gap).max() < 1e-12


def test_the_error_estimate_bounds_the_error_and_a_missed_tolerance_is_said() -> None:
    rng = np.random.default_rng(2)
    graph = composition(rng, "tanh")
    starts, ends = numbers(rng, 6), numbers(rng, 6)
    rough, fine = (gig.explain_pairs(graph, starts, ends, tol=tol) for tol in (1e-3, 1e-11))
    true = np.abs(rough.values - fine.values).max(axis=1)
    assert (true <= 4 * rough.error + 1e-12).all()
    scale = np.maximum(np.abs(rough.predictions), np.abs(rough.base_values))
    assert (rough.error <= 1e-3 * scale + 1e-15).all()


@pytest.mark.parametrize("slow", 10.0 ** -np.arange(0.0, 13.0, 3.0))
@pytest.mark.filterwarnings("ignore:The tolerance was not reached")
def test_the_error_covers_a_line_under_a_head_whose_parts_cancel(slow: float) -> None:
    """The credits of its columns are large parts of a small change, and have its rounding as many times over."""
    source = Input(2)
    line = Affine(source, np.array([[3.0, -3.0 * (1.0 - slow)]]), np.zeros(1))
    tanh = Elementwise(Sum((line, Elementwise(line, "sigmoid"))), "sigmoid")
    graph = Graph((Column("a"), Column("b")), source, tanh, tanh, ("y",))
    e = gig.explain_pairs(graph, np.zeros((1, 2)), np.ones((1, 2)), discrete=())
    change = 3.0 * slow * 0.5 * (np.polynomial.legendre.leggauss(30)[0] + 1.0)
    inner = 1.0 / (1.0 + np.exp(-change))
    outer = 1.0 / (1.0 + np.exp(-(change + inner)))
    slopes = outer * (1.0 - outer) * (1.0 + inner * (1.0 - inner))
    mean = 0.5 * float(np.polynomial.legendre.leggauss(30)[1] @ slopes)
    want = mean * np.array([3.0, -3.0 * (1.0 - slow)])
    assert np.abs(e.values[0] - want).max() <= e.error[0] + 1e-15
