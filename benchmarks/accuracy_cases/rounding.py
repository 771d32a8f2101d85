"""Sums whose terms cancel, scores far larger inside of a path than at its ends, and players that cancel out."""

from __future__ import annotations

from math import comb

import numpy as np

import gigrad as gig
from gigrad.graph import Affine, Array, Elementwise, Graph, Input, Node, Product, Select, Tree, assemble

from .case import NOISE, Found, array, compared, explained, graph_over, matters_to, misstated, worst
from .crossings import step


@matters_to("SUM_ROUNDING")
def cancelling_sums() -> Found:
    """linear models and trees over twenty columns whose credits are up to 1e9 times the score: nothing is wrong"""
    found = []
    for size in (1e3, 1e6, 1e9):
        rng = np.random.default_rng(7)
        weights = rng.normal(size=(1, 20))
        ends = size * rng.normal(size=(1, 20))
        ends[0, -1] -= (weights @ ends[0])[0] / weights[0, -1]
        source = Input(20)
        want = weights * ends
        linear: Node = Affine(source, weights, np.zeros(1))
        trees = assemble(source, [step(j, 0.0, float(want[0, j])) for j in range(20)], np.zeros(1))
        for node, credits in ((linear, want), (trees, np.where(ends > 0.0, want, 0.0))):
            found.append(compared(graph_over(source, node), np.zeros((1, 20)), ends, credits, tol=1e-9))
    return worst(found)


@matters_to("SUM_ROUNDING")
def loss_beside_cancelling_sums() -> Found:
    """a wrong gradient of 1e-9 of credits that cancel to 1e-6 of their size is told"""

    def value(x: Array) -> Array:
        return np.asarray(1e6 * (x[:, 0] - x[:, 1]) + 1.0 + 1e-3 * np.sin(9.0 * x[:, 0]))

    graph = gig.function(value, lambda x: np.tile([1e6, -1e6], (len(x), 1)), 2)
    _, said = explained(graph, array([0.1, 0.1]), array([0.9, 0.9]), tol=1e-6)
    return Found(list(said), 0.0, misstated(said, "tolerance was not reached"))


def hill(source: Input, size: float) -> Node:
    """`size * x0 (1 - x1)`: far larger inside of a path from 0 to 1 than at its ends."""
    other = Affine(Select(source, (1,)), -np.eye(1), np.ones(1))
    return Affine(Product(Select(source, (0,)), other), np.full((1, 1), size), np.zeros(1))


@matters_to("FINEST_ERROR", "PANEL_ROUNDING")
def high_inside() -> Found:
    """scores that are up to 1e9 times as large inside of a path as at its ends, one of them under a tanh"""
    found = []
    for size in (1e3, 1e6, 1e9):
        source = Input(2)
        ends = array([1.0, 1.0 - 1.0 / size])
        node = hill(source, size)
        credits = array([size * (1.0 - 0.5 * ends[0, 1]), -size * 0.5 * ends[0, 1]])
        found.append(compared(graph_over(source, node), np.zeros((1, 2)), ends, credits, tol=1e-9))
    return worst(found)


@matters_to("FINEST_ERROR", "PANEL_ROUNDING")
def wave_inside() -> Found:
    """a wave of 10 periods and a height of 1e6 whose ends are 1: it is integrated to tol or its rounding"""
    found = []
    for height in (1.0, 1e3, 1e6):

        def value(x: Array, height: float = height) -> Array:
            return np.asarray(1.0 + height * np.sin(10.0 * np.pi * x.mean(axis=1)) ** 2 + x[:, 0])

        def slope(x: Array, height: float = height) -> Array:
            turn = height * 5.0 * np.pi * np.sin(20.0 * np.pi * x.mean(axis=1))
            return np.stack([turn * 2.0 * 0.5 + 1.0, turn * 2.0 * 0.5], axis=1)

        graph = gig.function(value, slope, 2)
        ends = array([1.0, 1.0])
        found.append(compared(graph, np.zeros((1, 2)), ends, array([1.0, 0.0]), noise=1e-15, tol=1e-9))
    return worst(found)


@matters_to("FINEST_ERROR")
def loss_inside() -> Found:
    """a gradient that is wrong by 1e-9 of values of 1e6 inside of a path from 0 to 1 is told"""

    def value(x: Array) -> Array:
        return np.asarray(1e6 * x[:, 0] * (1.0 - x[:, 1]) + x[:, 0])

    def slope(x: Array) -> Array:
        return np.stack([(1e6 + 1e-3) * (1.0 - x[:, 1]) + 1.0, -1e6 * x[:, 0]], axis=1)

    e, said = explained(gig.function(value, slope, 2), array([0.0, 0.0]), array([1.0, 1.0]), tol=1e-6)
    assert e is not None
    return Found([*e.values[0].tolist(), *said], 0.0, misstated(said, "tolerance was not reached"))


# ------------------------------------------------------------ corners of many players


def crowd(columns: int, idle: int, left: float, link: str) -> tuple[Graph, Array]:
    """Stumps that all cross at one time under a link, with the true credits; the last `idle` columns cancel but for a
    part `left` of theirs."""
    source = Input(columns)
    heights = np.where(np.arange(columns) < columns - idle, 1.0, 0.1)
    trees: list[Tree] = []
    for j, height in enumerate(heights.tolist()):
        if j < columns - idle:
            trees.append(step(j, 0.5, 0.25 * height))
        else:
            trees += [step(j, 0.5, 0.1), step(j, 0.5, 0.2), step(j, 0.5, -0.3 * (1.0 - left))]
    node = Elementwise(assemble(source, trees, np.full(1, -1.0)), link)
    graph = graph_over(source, node)
    real, small = columns - idle, 0.3 * left

    def f(score: float) -> float:
        return float(1.0 / (1.0 + np.exp(-score)))

    want = np.zeros(columns)
    for group, (own, mine, others, theirs) in enumerate(((0.25, real, idle, small), (small, idle, real, 0.25))):
        credit = 0.0
        for a in range(max(mine, 1)):
            for b in range(others + 1):
                size = a + b
                weight = comb(mine - 1, a) * comb(others, b) / (columns * comb(columns - 1, size)) if mine else 0.0
                at = -1.0 + a * own + b * theirs
                credit += weight * (f(at + own) - f(at))
        want[: columns - idle] = credit if group == 0 else want[: columns - idle]
        if group == 1 and idle:
            want[columns - idle :] = credit
    return graph, want[None]


@matters_to("TERM_ROUNDING")
def players_that_cancel() -> Found:
    """corners of 30 players of which 15 cancel to rounding: enumerated, so that nothing is sampled"""
    graph, want = crowd(30, 15, 0.0, "sigmoid")
    e, _ = explained(graph, np.zeros((1, 30)), np.ones((1, 30)))
    assert e is not None
    ratio = float(np.abs(e.values - want).max() / (float(e.error.max()) + 1e-12))
    return Found([*e.values.ravel().tolist(), *e.error.tolist()], ratio, "sampled" if e.error.max() > 1e-9 else "")


@matters_to("TERM_ROUNDING")
def players_that_nearly_cancel() -> Found:
    """corners of 18 players of which 5 cancel to 1e-3, 1e-6, 1e-9 and 1e-12 of their terms: they keep their credit"""
    found = []
    for left in (1e-3, 1e-6, 1e-9, 1e-12):
        graph, want = crowd(18, 5, left, "sigmoid")
        found.append(compared(graph, np.zeros((1, 18)), np.ones((1, 18)), want, noise=1e-14))
    return worst(found)


@matters_to("ALWAYS_ENUMERATED")
def corners_of_many() -> Found:
    """corners of 6 to 20 players whose credits are known"""
    found = []
    for players in (6, 9, 12, 13, 16, 20):
        graph, want = crowd(players, 0, 0.0, "sigmoid")
        found.append(compared(graph, np.zeros((1, players)), np.ones((1, players)), want))
    return worst(found)


# ------------------------------------------------------------ very small and very large columns


@matters_to("LEAST_WAY", "LARGEST_WAY")
def scaled_columns() -> Found:
    """trees over columns of 2^-140 to 2^140 times their size: the credits do not change by a bit"""
    found = []
    usual = _scaled(0)
    for power in (-140, -127, -120, -112, -100, -60, 60, 100, 112, 120, 127, 140):
        values = _scaled(power)
        off = float(np.abs(values - usual).max())
        found.append(Found(values.ravel().tolist(), off / NOISE if off == off else np.inf))
    return worst(found)


def _scaled(power: int) -> Array:
    """The credits of three rows against forty starts, all columns and thresholds times 2^power."""
    rng, size = np.random.default_rng(11), 2.0**power
    index = np.arange(7)
    trees = [
        Tree(
            feature=np.where(index < 3, rng.integers(0, 4, 7), -1),
            threshold=np.where(index < 3, rng.normal(size=7) * size, 0.0),
            left=np.where(index < 3, 2 * index + 1, -1),
            right=np.where(index < 3, 2 * index + 2, -1),
            missing_left=np.zeros(7, bool),
            values=np.where(index < 3, 0.0, rng.normal(size=7)),
        )
        for _ in range(30)
    ]
    source = Input(4)
    graph = graph_over(source, assemble(source, trees, np.zeros(1)))
    rows = rng.normal(size=(43, 4)) * size
    return np.asarray(gig.explain(graph, rows[:3], rows[3:], discrete=(), n_threads=1).values)
