"""Heads over lines and curves: close kinks, inputs that turn, parts that cancel, steep functions.

Where both columns' parts of a curve's speed keep one ratio along a path, so do their credits, whatever the head does:
that is the closed form of most cases.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from gigrad.graph import (
    Affine,
    Array,
    Concat,
    Elementwise,
    Graph,
    Input,
    Node,
    PiecewiseLinear,
    Product,
    Select,
    Sum,
    assemble,
)
from gigrad.testing import brute_force

from .case import Found, array, compared, graph_over, matters_to, worst
from .crossings import product, step, weighted

TWO_TO_ONE = np.array([2.0, 1.0, 0.0]) / 3.0  # the parts of x0 x0 x1 from 0


def beside_a_tree(source: Input, curve: Node, jump: float = 0.1) -> Node:
    """A curve plus a tree that jumps half-way with the third column: what reads the sum is a head."""
    return Sum((curve, assemble(source, [step(2, 0.5, jump)], np.zeros(1))))


@matters_to("SHORTEST_SEGMENT")
def close_knots_of_a_head() -> Found:
    """a rank with two knots 1e-1 to 1e-15 apart, over a curve and trees"""
    found = []
    for width in 10.0 ** -np.arange(1.0, 16.0, 2.0):
        source = Input(3)
        knots = array(0.0, 0.3, 0.3 + width, 1.0)
        node = PiecewiseLinear(beside_a_tree(source, product(source, 0, 0, 1)), knots, array(0.0, 0.0, 1.0, 1.0))
        found.append(compared(graph_over(source, node), np.zeros((1, 3)), np.ones((1, 3)), TWO_TO_ONE[None], None))
    return worst(found)


@matters_to("CLOSEST_KINKS")
def close_kinks_of_lines() -> Found:
    """two ReLUs of opposite sign whose kinks are 1e-3 to 1e-15 of a path apart, and a ramp in between"""
    found = []
    for width in 10.0 ** -np.arange(3.0, 16.0):
        source = Input(2)
        line = Affine(source, array([0.7, 0.3], [0.7, 0.3]), array(-0.5, -0.5 - width))
        height = 1.0 / ((0.5 + width) - 0.5)
        node = Affine(Elementwise(line, "relu"), array([height, -height]), np.zeros(1))
        want = array([0.7, 0.3])
        found.append(
            compared(graph_over(source, node), np.zeros((1, 2)), np.ones((1, 2)), want, None, noise=4e-16 / width)
        )
    return worst(found)


@matters_to("SHORTEST_PANEL")
def steep_curve() -> Found:
    """a sigmoid of a curve that is 1e2 to 1e12 times as steep as the curve"""
    found = []
    for steep in 10.0 ** np.arange(2.0, 13.0, 2.0):
        source = Input(3)
        node = Elementwise(
            Affine(product(source, 0, 0, 1), np.full((1, 1), steep), np.full(1, -0.3 * steep)), "sigmoid"
        )
        found.append(compared(graph_over(source, node), np.zeros((1, 3)), np.ones((1, 3)), TWO_TO_ONE[None], None))
    return worst(found)


@matters_to("TURNING_SHARE")
def turning_head() -> Found:
    """a curve that turns just above the kink of a head, inside of one of 20, 200 or 1000 intervals between jumps"""
    found = []
    for jumps in (20, 200, 1000):
        source, top = Input(3), 0.4567
        other = Affine(Select(source, (1,)), -np.eye(1), np.full(1, 2.0 * top))
        curve = Product(Select(source, (0,)), other)
        thresholds = top + (np.arange(jumps) - jumps // 2 + 0.5) / (2.3 * jumps)
        trees = assemble(source, [step(2, at, 1e-30) for at in thresholds.tolist()], np.zeros(1))
        width = 0.62 / (2.3 * jumps)
        level = top * top - 0.25 * width * width
        node = Elementwise(Affine(Sum((curve, trees)), np.eye(1), np.full(1, -level)), "relu")
        want = array([top * width, -top * width, 0.0])
        found.append(compared(graph_over(source, node), np.zeros((1, 3)), np.ones((1, 3)), want, None, noise=1e-9))
    return worst(found)


@matters_to("SLOWEST_JOINT", "SEEN_NOISE")
def slow_line_under_a_head() -> Found:
    """a line whose two parts cancel to 1 to 1e-12 of their size, beside a tree under a sigmoid, at three tolerances"""
    found, (nodes, weights) = [], np.polynomial.legendre.leggauss(30)
    for slow in 10.0 ** -np.arange(0.0, 13.0):
        source = Input(3)
        line = Affine(source, array([3.0, -3.0 * (1.0 - slow), 0.0]), np.zeros(1))
        node = Elementwise(beside_a_tree(source, line, 0.7), "sigmoid")
        mean = 0.0
        for low, jump in ((0.0, 0.0), (0.5, 0.7)):
            y = 1.0 / (1.0 + np.exp(-(3.0 * slow * (low + 0.25 * (nodes + 1.0)) + jump)))
            mean += 0.25 * float(weights @ (y * (1.0 - y)))
        at = 1.0 / (1.0 + np.exp(-(1.5 * slow + array(0.0, 0.7))))
        want = array([3.0 * mean, -3.0 * (1.0 - slow) * mean, at[1] - at[0]])
        for tol in (1e-3, 1e-6, 1e-9):
            says = "" if slow > 1e-3 * 1e-6 / tol else None  # rounding is more than the tolerance
            graph = graph_over(source, node)
            found.append(compared(graph, np.zeros((1, 3)), np.ones((1, 3)), want, says, tol=tol, noise=1e-14))
    return worst(found)


@matters_to("SLOWEST_JOINT")
def slow_curve_under_a_head() -> Found:
    """a curve whose two parts cancel to 1 to 1e-8 of their size, beside a tree under a sigmoid, at two tolerances"""
    found = []
    for number in range(5):
        graph, want = _slow_curve(10.0 ** (-2.0 * number))
        for tol in (1e-3, 1e-6):
            found.append(compared(graph, np.zeros((1, 3)), np.ones((1, 3)), want, tol=tol, noise=1e-10))
    return worst(found)


@cache
def _slow_curve(slow: float) -> tuple[Graph, Array]:
    source = Input(3)
    curves = Elementwise(Affine(source, array([2.0, 0.0, 0.0], [0.0, 2.0, 0.0]), array(-0.7, -0.7)), "tanh")
    node = Elementwise(beside_a_tree(source, weighted(curves, 3.0, -3.0 * (1.0 - slow)), 0.7), "sigmoid")
    graph = graph_over(source, node)
    return graph, brute_force(graph, np.zeros(3), np.ones(3)).T


@matters_to("JOINT_SHARE")
def shared_corners() -> Found:
    """corners of two players under a product of trees and curves, at three tolerances"""
    graph, starts, ends, want = _shared()
    return worst([compared(graph, starts, ends, want, tol=tol, noise=1e-10) for tol in (1e-2, 1e-4, 1e-6, 1e-9)])


@cache
def _shared() -> tuple[Graph, Array, Array, Array]:
    rng, source = np.random.default_rng(4), Input(3)
    hidden = Elementwise(Affine(source, 2.0 * rng.normal(size=(4, 3)), rng.normal(size=4)), "tanh")
    curve = Affine(hidden, rng.normal(size=(1, 4)), np.zeros(1))
    trees = [step(j, at, float(rng.normal())) for at in (0.125, 0.25, 0.5, 0.875) for j in range(3)]
    node = Elementwise(
        weighted(Concat((assemble(source, trees, np.zeros(1)), Elementwise(curve, "sigmoid"))), 1.0, 3.0), "sigmoid"
    )
    graph = graph_over(source, node)
    starts, ends = np.zeros((1, 3)), np.ones((1, 3))
    return graph, starts, ends, brute_force(graph, starts[0], ends[0]).T
