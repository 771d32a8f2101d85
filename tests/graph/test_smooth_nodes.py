"""Every smooth node: its value by hand, and its pullback against finite differences."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from node_table import SCALE, smooth_nodes

import gigrad as gig
from gigrad.graph import (
    Affine,
    Array,
    ChainedFill,
    Elementwise,
    Factor,
    Fill,
    Input,
    IsMissing,
    KernelMachine,
    Lookup,
    Opaque,
    PiecewiseLinear,
    Smooth,
    Softmax,
    evaluate,
)
from gigrad.graph.erf import erf
from gigrad.graph.functions import FUNCTIONS
from gigrad.graph.kernel_machine import PROFILES

RNG = np.random.default_rng(0)
X, Y = Input(3), Input(3)
NODES: dict[str, Smooth] = smooth_nodes(X, Y) | {
    "opaque": Opaque(X, 1, lambda x: (x**2).sum(axis=1, keepdims=True), lambda x, c: 2 * x * c)
}


def inputs_of(node: Smooth, rows: int = 5) -> list[Array]:
    return [RNG.normal(size=(rows, p.width)) for p in node.parents]


@pytest.mark.parametrize("name", NODES)
def test_pullbacks_agree_with_finite_differences(name: str) -> None:
    node = NODES[name]
    inputs = inputs_of(node)
    cotangent = RNG.normal(size=node.forward(*inputs).shape)
    pulled = node.pullback(cotangent, *inputs)
    for i, value in enumerate(inputs):
        assert pulled[i].shape == value.shape
        direction, h = RNG.normal(size=value.shape), 1e-5
        ends = [node.forward(*inputs[:i], value + s * h * direction, *inputs[i + 1 :]) for s in (1.0, -1.0)]
        slope = ((ends[0] - ends[1]) / (2 * h) * cotangent).sum(axis=1)
        np.testing.assert_allclose((pulled[i] * direction).sum(axis=1), slope, rtol=1e-6, atol=1e-8)


X_IN_2, Y_IN_2 = (PiecewiseLinear(source, np.array([-2.0, 2.0]), np.array([-2.0, 2.0])) for source in (X, Y))
BOUNDED: dict[str, Smooth] = smooth_nodes(X_IN_2, Y_IN_2) | {f: Elementwise(X_IN_2, f, 0.3) for f in FUNCTIONS}


@pytest.mark.parametrize("name", BOUNDED)
def test_values_lie_within_the_bounds_of_a_node(name: str) -> None:
    node = BOUNDED[name]
    with np.errstate(all="ignore"):
        value = evaluate((node,), {source: RNG.uniform(-2.0, 2.0, (500, 3)) for source in (X_IN_2, Y_IN_2)})[node]
    low, high = node.bounds
    assert low.shape == high.shape == (node.width,)
    assert not (value < low - 1e-12).any()
    assert not (value > high + 1e-12).any()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_slopes_of_scalar_functions_agree_with_finite_differences(name: str) -> None:
    function, parameter, h = FUNCTIONS[name], 0.3, 1e-6
    x = np.linspace(0.05, 0.95, 19)
    if name not in ("log", "sqrt", "logit", "box_cox"):
        x = np.concatenate([x, -x if name != "log1p" else -0.9 * x, [4.0, 9.0, -0.5]])
    difference = (function.value(x + h, parameter) - function.value(x - h, parameter)) / (2 * h)
    np.testing.assert_allclose(function.slope(x, parameter), difference, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("parameter", [-1.0, 0.3, 2.0])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_that_claim_to_be_monotone_never_fall(name: str, parameter: float) -> None:
    function = FUNCTIONS[name]
    with np.errstate(all="ignore"):
        values = function.value(np.linspace(-3.0, 3.0, 601), parameter)
    values = values[np.isfinite(values)]
    assert (np.diff(values) >= 0.0).all() or not function.monotone(parameter)
    assert values.min() >= function.least


@pytest.mark.parametrize("name", FUNCTIONS)
def test_slopes_jump_at_the_named_kinks_only(name: str) -> None:
    function, h = FUNCTIONS[name], 1e-7
    low = 0.2 if name in ("log", "log_or_zero", "sqrt", "logit", "reciprocal", "box_cox") else -0.9
    x = np.append(np.linspace(low, 0.9, 96), [k for k in (-0.5, 0.0, 0.5) if k > low])
    jump = np.abs(function.slope(x + h, 0.3) - function.slope(x - h, 0.3))
    away = np.abs(x[:, None] - np.array([*function.kinks, np.inf])).min(axis=1) > 2 * h
    assert jump[away].max() < 1e-3
    if name in ("relu", "leaky_relu", "elu", "abs"):
        assert jump[~away].max() > 0.1


def test_erf_is_exact_to_1e_15() -> None:
    x = np.concatenate([RNG.uniform(-6.5, 6.5, 200_000), np.linspace(-6, 6, 4001), [0.0, np.inf, -np.inf, 1e-300]])
    assert np.abs(erf(x) - np.array([math.erf(v) for v in x])).max() <= 1e-15
    assert np.isnan(erf(np.array([np.nan]))[0])


def test_functions_do_not_overflow() -> None:
    far = np.array([-1e4, -800.0, 800.0, 1e4])
    with np.errstate(over="raise", invalid="raise"):
        for name in ("sigmoid", "softplus", "silu", "gelu", "gelu_tanh", "tanh", "elu"):
            assert np.isfinite(FUNCTIONS[name].value(far, 1.0)).all()
            assert np.isfinite(FUNCTIONS[name].slope(far, 1.0)).all()
        assert np.isfinite(Softmax(X).forward(np.array([[1e4, 0.0, -1e4]]))).all()


def test_kernels_by_hand() -> None:
    x = RNG.normal(size=(4, 3))
    kernels = {name: node for name in PROFILES if isinstance(node := NODES[f"kernel_{name}"], KernelMachine)}
    support = kernels["gaussian"].support
    distance = np.sqrt((((x[:, None] - support) * SCALE) ** 2).sum(axis=2))
    product = 0.3 + (x * SCALE) @ support.T
    r3, r5 = np.sqrt(3) * distance, np.sqrt(5) * distance
    by_hand = {
        "gaussian": np.exp(-(distance**2)),
        "exponential": np.exp(-distance),
        "matern32": (1 + r3) * np.exp(-r3),
        "matern52": (1 + r5 + r5**2 / 3) * np.exp(-r5),
        "rational": (1 + distance**2 / 6) ** -3.0,
        "linear": product,
        "polynomial": product**3,
        "tanh": np.tanh(product),
    }
    assert set(by_hand) == set(PROFILES)
    for name, values in by_hand.items():
        node = kernels[name]
        np.testing.assert_allclose(node.forward(x), values @ node.weight.T + node.bias, rtol=1e-12, atol=1e-13)


def test_kernels_at_and_near_their_support_far_from_the_origin() -> None:
    support = 1e4 + RNG.normal(size=(7, 3))
    for name in ("gaussian", "exponential", "matern32"):
        node = KernelMachine(X, support, np.eye(7)[:1], np.zeros(1), (Factor(name, np.ones(3)),))
        np.testing.assert_allclose(node.forward(support[:1]), 1.0, rtol=1e-12)
        assert np.isfinite(node.pullback(np.ones((7, 1)), support)[0]).all()


def test_a_kernel_machine_gives_the_same_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    node, x = NODES["product_of_kernels"], RNG.normal(size=(11, 3))
    whole = node.forward(x), node.pullback(np.ones((11, 2)), x)[0]
    monkeypatch.setattr("gigrad.graph.kernel_machine._CELLS", 15)
    np.testing.assert_allclose(node.forward(x), whole[0], rtol=1e-13)
    np.testing.assert_allclose(node.pullback(np.ones((11, 2)), x)[0], whole[1], rtol=1e-13)


def test_piecewise_linear_slopes_lie_between_knots() -> None:
    node = NODES["piecewise"]
    x = np.array([[-2.0, -0.5, 0.7], [1.5, -1.0, 0.2]])
    np.testing.assert_allclose(
        node.pullback(np.ones((2, 3)), x)[0], [[0.0, 2 / 1.2, -1 / 0.8], [0.0, 2 / 1.2, -1 / 0.8]]
    )


def test_encoders_pass_nothing_back_from_missing_values() -> None:
    x = np.array([[np.nan, 1.0, 2.0]])
    assert Fill(X, np.array([7.0, 8.0, 9.0])).forward(x).tolist() == [[7.0, 1.0, 2.0]]
    assert Fill(X, np.zeros(3)).pullback(np.ones((1, 3)), x)[0].tolist() == [[0.0, 1.0, 1.0]]
    assert IsMissing(X).forward(x).tolist() == [[1.0, 0.0, 0.0]]
    looked = Lookup(X, 0, np.array([[5.0], [6.0]]), np.array([-1.0]), np.array([0.5]))
    codes = np.array([[0.0, 0, 0], [1, 0, 0], [2, 0, 0], [-1, 0, 0], [np.nan, 0, 0]])
    assert looked.forward(codes)[:, 0].tolist() == [5.0, 6.0, -1.0, -1.0, 0.5]
    assert not looked.pullback(np.ones((5, 1)), codes)[0].any()


def wrong_nodes() -> dict[str, Any]:
    return {
        "Affine needs a weight of shape": lambda: Affine(X, np.ones((2, 2)), np.ones(2)),
        "The function of Elementwise must be one of": lambda: Elementwise(X, "swoosh"),
        "at least two knots": lambda: PiecewiseLinear(X, np.array([0.0, 0.0]), np.array([0.0, 1.0])),
        "A kernel factor must be one of": lambda: Factor("swoosh", SCALE),
        "KernelMachine needs": lambda: KernelMachine(X, np.ones((2, 2)), np.ones((1, 2)), np.ones(1), ()),
        "must give an array of shape": lambda: Opaque(X, 2, lambda x: x, lambda x, c: x).forward(np.ones((1, 3))),
        "must have the shape of its input": lambda: Opaque(X, 3, lambda x: x, lambda x, c: x[:, :1]).pullback(
            np.ones((1, 3)), np.ones((1, 3))
        ),
    }


@pytest.mark.parametrize("message", wrong_nodes())
def test_nodes_that_cannot_be(message: str) -> None:
    with pytest.raises(gig.InputError, match=message):
        wrong_nodes()[message]()


def test_values_are_filled_round_after_round_and_their_gradient_follows() -> None:
    """Columns 0 and 2 are missing: 2 is filled from 0's first guess, 0 from that, and 2 again."""
    rng = np.random.default_rng(1)
    column, weight = np.array([2, 0, 2]), rng.normal(size=(3, 3))
    weight[np.arange(3), column] = 0.0
    node = ChainedFill(X, np.array([1.0, 2.0, 3.0]), column, weight, np.array([0.1, 0.2, 0.3]))
    row = np.array([[np.nan, 0.7, np.nan]])
    x0, x1 = 1.0, 0.7
    x2 = weight[0] @ [x0, x1, 3.0] + 0.1
    x0 = weight[1] @ [x0, x1, x2] + 0.2
    x2 = weight[2] @ [x0, x1, x2] + 0.3
    np.testing.assert_allclose(node.forward(row), [[x0, x1, x2]], rtol=1e-15)
    h = np.array([[0.0, 1e-6, 0.0]])
    want = (node.forward(row + h) - node.forward(row - h)) / 2e-6
    got = [node.pullback(np.eye(3)[k : k + 1], row)[0][0] for k in range(3)]
    np.testing.assert_allclose([g[1] for g in got], want[0], atol=1e-9)
    assert not np.array(got)[:, [0, 2]].any()
