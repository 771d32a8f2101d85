"""Sums, steps and elementary functions of the native core; smooth units over lines with kinks."""

from __future__ import annotations

import math
from dataclasses import fields

import numpy as np
import pytest
from forests import graph_of, random_forest

import gigrad as gig
from gigrad import kernels
from gigrad.engine.mixed.slopes import SpeedParts
from gigrad.engine.quadrature import gauss
from gigrad.graph import Affine, Column, Concat, Elementwise, Graph, Input, Node, Softmax
from gigrad.testing import brute_force

COLUMNS = tuple(Column(f"x{j}") for j in range(3))


def test_sums_of_groups_are_those_of_numpy() -> None:
    rows = np.random.default_rng(0).normal(size=(9, 11))
    first = np.array([0, 1, 4, 8])
    np.testing.assert_allclose(kernels.sum_groups(rows, first), np.add.reduceat(rows, first, axis=0), atol=1e-14)


def test_powers_are_those_of_the_c_library() -> None:
    rng = np.random.default_rng(1)
    base, exponent = rng.gamma(2.0, 2.0, 5000), rng.normal(size=5000)
    python = [math.pow(b, e) for b, e in zip(base, exponent, strict=True)]
    assert np.array_equal(kernels.power(base, exponent, single=False), python)
    base, exponent = (v.astype(np.float32).astype(np.float64) for v in (base, exponent))
    rounded = kernels.power(base, exponent, single=True)
    assert np.array_equal(rounded, rounded.astype(np.float32))
    assert np.max(np.abs(rounded - base**exponent) / np.spacing(rounded.astype(np.float32))) < 0.6


@pytest.mark.parametrize("name", ["tanh", "sigmoid"])
def test_functions_are_right_to_the_last_digits(name: str) -> None:
    x = np.concatenate([np.linspace(-40, 40, 20_001), np.geomspace(1e-300, 1, 500), [np.inf, -np.inf]])
    wide = x.astype(np.longdouble)
    exact = np.tanh(wide) if name == "tanh" else 1 / (1 + np.exp(-wide))
    got = kernels.tanh(x) if name == "tanh" else kernels.sigmoid(x)
    assert (np.abs(got - exact) <= 2 * np.spacing(np.abs(exact).astype(float))).all()
    assert np.isnan(kernels.tanh(np.array([np.nan])) + kernels.sigmoid(np.array([np.nan]))).all()


def test_the_sigmoid_is_right_far_out_and_symmetric_in_the_middle() -> None:
    """Below -708 it is zero; both tails keep their relative accuracy."""
    rng = np.random.default_rng(2)
    x = np.concatenate([rng.uniform(-707.9, 50, 60_000), rng.normal(size=60_000) * 5])
    exact = 1 / (1 + np.exp(-x.astype(np.longdouble)))
    off = np.abs(kernels.sigmoid(x) - exact) / np.spacing(exact.astype(float))
    assert off.max() < 2.1
    assert kernels.sigmoid(np.array([-1e9, -708.5, -0.0, 0.0, 709.0, 1e300])).tolist() == [0, 0, 0.5, 0.5, 1, 1]
    small = np.geomspace(1e-17, 1e-3, 200)
    np.testing.assert_allclose(kernels.sigmoid(small) + kernels.sigmoid(-small), 1.0, rtol=0, atol=3e-16)


def test_groups_that_are_empty_are_refused() -> None:
    with pytest.raises(ValueError, match="none may be empty"):
        kernels.sum_groups(np.zeros((2, 3)), np.array([0, 0]))


# ---------------------------------------------------------------- in the engine


def dense(rng: np.random.Generator, source: Node, width: int) -> Affine:
    return Affine(source, rng.normal(size=(width, source.width)) / np.sqrt(source.width), rng.normal(size=width) / 2)


def net(seed: int, name: str, outputs: int = 1, trees: bool = False) -> Graph:
    rng, source = np.random.default_rng(seed), Input(3)
    lines = Elementwise(dense(rng, Elementwise(dense(rng, source, 12), "relu"), 12), "relu")
    sums = dense(rng, Elementwise(dense(rng, lines, 21), name), outputs)
    if outputs > 1:
        return Graph(COLUMNS, source, Softmax(sums), sums, ("a", "b", "c"))
    score: Node = Elementwise(sums, "sigmoid")
    if trees:
        score = Elementwise(dense(rng, Concat((random_forest(rng, COLUMNS, source), score)), 1), "tanh")
    return graph_of(COLUMNS, source, score)


@pytest.mark.parametrize("name", ["tanh", "sigmoid"])
@pytest.mark.parametrize(("outputs", "trees"), [(1, False), (1, True), (3, False)])
def test_smooth_units_over_lines_with_kinks_equal_the_definition(name: str, outputs: int, trees: bool) -> None:
    graph = net(outputs, name, outputs, trees)
    rng = np.random.default_rng(7)
    starts, ends = rng.normal(size=(6, 3)) * 2, rng.normal(size=(6, 3)) * 2
    got = gig.explain_pairs(graph, starts, ends, tol=1e-9, discrete=())
    np.testing.assert_allclose(got.values[0].T, brute_force(graph, starts[0], ends[0]).T.squeeze(), atol=1e-8)


def test_rows_that_pass_a_level_are_those_of_numpy() -> None:
    rng = np.random.default_rng(2)
    rows = rng.integers(-2, 3, (9, 150)).astype(float)  # many lie on the level itself
    rows[3, 5] = np.nan
    left = np.array([0, 1, 2, 4, 7])
    for level in (0.0, 1.0, 0.5):
        before, after = rows[left], rows[left + 1]
        want = np.nonzero(((before > level) & (after < level)) | ((before < level) & (after > level)))
        np.testing.assert_array_equal(kernels.passed_rows(rows, left, level), want)
    with pytest.raises(ValueError, match="beyond the rows"):
        kernels.passed_rows(rows, np.array([8]), 0.0)


def test_rows_are_added_in_place() -> None:
    rng = np.random.default_rng(0)
    table, values, row = rng.normal(size=(4, 9)), rng.normal(size=(6, 9)), np.array([3, 0, 0, 2, 3, 3])
    want = table.copy()
    np.add.at(want, row, values)
    kernels.add_rows(table, row, values)
    np.testing.assert_allclose(table, want, atol=1e-14)
    with pytest.raises(ValueError, match="must lie below 4"):
        kernels.add_rows(table, np.array([4]), values[:1])
    with pytest.raises(ValueError, match="columns of the table"):
        kernels.add_rows(table, row, values[:, :4])


@pytest.mark.parametrize("columns", [1, 8, 21])
def test_largest_steps_are_those_of_numpy(columns: int) -> None:
    rows, left = np.random.default_rng(3).normal(size=(6, columns)), np.array([0, 2, 4])
    np.testing.assert_array_equal(kernels.largest_steps(rows, left), np.abs(rows[left + 1] - rows[left]).max(axis=1))


@pytest.mark.parametrize(("nodes", "columns"), [(1, 1), (2, 3), (3, 0), (6, 9), (12, 30)])
def test_parts_of_a_speed_are_those_that_numpy_finds(nodes: int, columns: int) -> None:
    rng, rule = np.random.default_rng(nodes), gauss(nodes)
    rows = rng.normal(size=(5, nodes, columns))
    coefficients = np.matmul(rule.to_coefficients, rows).transpose(1, 0, 2)
    want = SpeedParts.of(coefficients, coefficients.sum(axis=2))
    found = SpeedParts.at_nodes(rows, rule.to_coefficients)
    for field in fields(SpeedParts):
        np.testing.assert_allclose(getattr(found, field.name), getattr(want, field.name), atol=1e-13)
