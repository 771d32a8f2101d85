"""Heads integrated by the native core: the same as Python's own integration, at corners, kinks and turns."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from forests import random_forest

from gigrad import kernels
from gigrad.engine import Settings, attribute
from gigrad.engine.mixed import plan
from gigrad.engine.mixed.program import _fields, head_program, with_narrow_curves
from gigrad.engine.paths import Pairs
from gigrad.engine.roles import Roles
from gigrad.graph import (
    Affine,
    Column,
    Concat,
    Elementwise,
    Input,
    LogSoftmax,
    Node,
    PiecewiseLinear,
    Product,
    Select,
    Softmax,
    Sum,
)

COLUMNS = tuple(Column(f"x{j}") for j in range(3))
HEADS = ("ecdf", "softmax", "log_softmax", "product", "relu", "smooth", "powers")


def layer(rng: np.random.Generator, source: Node, width: int, scale: float = 1.0) -> Affine:
    return Affine(source, scale * rng.normal(size=(width, source.width)), 0.3 * rng.normal(size=width))


def scores(rng: np.random.Generator, source: Input, kind: str) -> Node:
    """Two scores of a net: smooth, with kinks, or straight."""
    if kind == "line":
        return layer(rng, source, 2, 0.5)
    units = Elementwise(layer(rng, source, 9), "tanh" if kind == "tanh" else "relu")
    return Elementwise(layer(rng, units, 2, 0.4), "sigmoid")


def head(rng: np.random.Generator, joined: Node, kind: str) -> Node:
    """A head over all scores, of every step that a program knows."""
    score = layer(rng, joined, 1, 0.5)
    if kind == "ecdf":
        x = np.sort(rng.normal(size=12))
        return PiecewiseLinear(score, x, np.cumsum(rng.random(12)))
    if kind in ("softmax", "log_softmax"):
        top = layer(rng, joined, 3)
        return Softmax(top) if kind == "softmax" else LogSoftmax(top)
    if kind == "product":
        return Product(Select(joined, (0, 2)), Sum((Select(joined, (1, 1)), Select(joined, (2, 0)))))
    if kind == "relu":
        hidden = layer(rng, joined, 7)
        parts = [Elementwise(Select(hidden, (j,)), n, 0.1) for j, n in enumerate(("relu", "abs", "leaky_relu", "elu"))]
        return layer(rng, Concat((*parts, joined)), 1)
    if kind == "powers":
        positive = Elementwise(layer(rng, joined, 6, 0.3), "softplus")
        names = ("log", "sqrt", "square", "reciprocal", "log1p", "expm1")
        return layer(rng, Concat(tuple(Elementwise(Select(positive, (j,)), n) for j, n in enumerate(names))), 1)
    inside = Elementwise(Elementwise(score, "sigmoid"), "logit")
    curved = [Elementwise(layer(rng, joined, 2), n) for n in ("tanh", "silu", "exp", "identity")]
    return Elementwise(layer(rng, Concat((inside, *curved)), 1, 0.3), "sigmoid")


def model(seed: int, net: str, kind: str) -> tuple[Input, Node]:
    rng = np.random.default_rng(seed)
    source = Input(3)
    trees = random_forest(rng, COLUMNS, source, trees=6, depth=3)
    return source, head(rng, Concat((trees, scores(rng, source, net))), kind)


def paths(seed: int) -> Pairs:
    rng = np.random.default_rng(seed)
    return Pairs(*(rng.integers(-1, 9, (30, 3)) / 2.0 + 0.25 * rng.random((30, 3)) for _ in range(2)))


@pytest.mark.parametrize("kind", HEADS)
@pytest.mark.parametrize("net", ["tanh", "relu", "line"])
@pytest.mark.parametrize("tol", [1e-4, 1e-9])
def test_the_core_integrates_a_head_as_python_does(net: str, kind: str, tol: float) -> None:
    source, output = model(len(net) * 10 + HEADS.index(kind), net, kind)
    roles = with_narrow_curves(Roles.of(output, source))
    assert head_program(roles) is not None
    settings = Settings(tol=tol, quiet=True)
    native = attribute(output, source, paths(1), settings)
    plain = attribute(output, source, paths(1), replace(settings, native=False))
    bound = native.error + plain.error + 1e-11
    assert (np.abs(native.values - plain.values).max(axis=1) <= bound).all()
    gain = native.values.sum(axis=1) - plain.values.sum(axis=1)
    assert (np.abs(gain) <= bound).all()


def test_threads_change_no_bit() -> None:
    source, output = model(5, "tanh", "ecdf")
    rng = np.random.default_rng(0)
    many = Pairs(*(4.0 * rng.random((700, 3)) for _ in range(2)))
    one, three = (attribute(output, source, many, Settings(n_threads=n, quiet=True)) for n in (1, 3))
    np.testing.assert_array_equal(one.values, three.values)
    np.testing.assert_array_equal(one.error, three.error)


def test_roles_are_kept_with_a_model_and_left_out_of_its_pickle() -> None:
    source, output = model(5, "relu", "ecdf")
    settings = Settings(quiet=True)
    credit = attribute(output, source, paths(1), settings)  # makes programs of the core, which cannot be pickled
    roles = plan(output, source, settings)
    assert plan(output, source, settings) is roles
    assert plan(output, source, replace(settings, native=False)) is not roles
    source, output = pickle.loads(pickle.dumps((source, output)))
    assert plan(output, source, settings).output is output
    np.testing.assert_array_equal(attribute(output, source, paths(1), settings).values, credit.values)


def test_every_native_function_is_that_of_the_graph() -> None:
    source = Input(1)
    for name in kernels.PROGRAM_FUNCTIONS:
        node = Elementwise(source, name, 0.1)
        assert _fields(node, {source: 0}) is not None  # raises for a name that the graph does not know
    assert _fields(Elementwise(source, "gelu"), {source: 0}) is None


@pytest.mark.parametrize(
    "step",
    [
        ("affine", 2, [0], [2], np.ones(3), np.ones(2), "", 0.0, True),
        ("affine", 1, [2], [2], np.ones(2), np.ones(1), "", 0.0, True),
        ("softmax", 3, [0], [2], np.zeros(0), np.zeros(0), "", 0.0, True),
        ("gather", 2, [0, 9], [1, 1], np.zeros(0), np.zeros(0), "", 0.0, True),
        ("knots", 2, [0], [2], np.ones(1), np.ones(1), "", 0.0, True),
        ("function", 2, [0], [2], np.zeros(0), np.zeros(0), "gelu", 0.0, True),
        ("loop", 2, [0], [2], np.zeros(0), np.zeros(0), "", 0.0, True),
    ],
)
def test_a_program_refuses_steps_that_read_beyond_their_arrays(step: Any) -> None:
    with pytest.raises(ValueError, match=r"program|knots"):
        kernels.Program(2, 1, [step], 3, 1)
