"""Trees over continuous scores: slow scores at thresholds, parts that cancel, ties, scores that turn.

Where a score crosses a threshold, a column's credit is the jump times its part of the score's speed; each case has it
in closed form.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from gigrad.graph import Affine, Input, Node, Product, Select, Sum, Tree, assemble
from gigrad.testing import brute_force

from .case import Found, array, compared, explained, graph_over, matters_to, worst


def step(column: int, threshold: float, jump: float = 1.0) -> Tree:
    """A tree that jumps where a column rises above a threshold."""
    index = np.arange(3)
    return Tree(
        feature=np.where(index == 0, column, -1),
        threshold=np.where(index == 0, threshold, 0.0),
        left=np.where(index == 0, 1, -1),
        right=np.where(index == 0, 2, -1),
        missing_left=np.zeros(3, bool),
        values=np.array([0.0, 0.0, jump]),
    )


def stepped(score: Node, threshold: float) -> Node:
    return assemble(score, [step(0, threshold)], np.zeros(1))


def weighted(source: Node, *weights: float) -> Affine:
    return Affine(source, array(weights), np.zeros(1))


def product(source: Input, *columns: int) -> Node:
    out: Node = Select(source, (columns[0],))
    for j in columns[1:]:
        out = Product(out, Select(source, (j,)))
    return out


@matters_to("SPEED_NOISE", "STILL")
def cancelling() -> Found:
    """a line whose two parts cancel to 1e-2 to 1e-9 of their size"""
    found = []
    for slow in 10.0 ** -np.arange(2, 14):
        for seed in range(4):
            rng, source = np.random.default_rng(seed), Input(2)
            weights = [1.0 + 0.1 * float(rng.random()), -1.0 - 0.1 * float(rng.random())]
            end = array([1.0 + 0.01 * rng.random(), 0.0])
            end[0, 1] = -end[0, 0] * weights[0] / weights[1] * (1.0 - slow)
            exact = [Fraction(w) * Fraction(e) for w, e in zip(weights, end[0].tolist(), strict=True)]
            want = array([float(part / sum(exact)) for part in exact])
            node = stepped(weighted(source, *weights), 0.37 * float(sum(exact)))
            says = "" if slow > 1e-4 else None
            found.append(compared(graph_over(source, node), np.zeros((1, 2)), end, want, says, noise=1e-15))
    return worst(found)


@matters_to("STILL", "REST_REACH", "REST_AGREES")
def from_rest() -> Found:
    """a product of two columns that starts at the threshold with no speed: half each"""
    found = []
    for size in (1.0, 1e-6, 1e3):
        source = Input(2)
        node = stepped(product(source, 0, 1), 0.0)
        want = array([0.5, 0.5])
        found.append(compared(graph_over(source, node), np.zeros((1, 2)), size * array([0.7, 1.9]), want))
    return worst(found)


@matters_to("REST_LOSS", "REST_REACH", "REST_AGREES")
def bent_from_rest() -> Found:
    """the same with a term of third order, up to 1e3 times as large at the end: half each at the threshold"""
    found = []
    for large in (10.0, 30.0, 300.0, 1e3):
        source = Input(2)
        node = stepped(Sum((product(source, 0, 1), product(source, 0, 0, 1))), 0.0)
        ends = array([large, 1.0])
        found.append(compared(graph_over(source, node), np.zeros((1, 2)), ends, array([0.5, 0.5]), None, noise=1e-15))
    return worst(found)


@matters_to("REST_AGREES", "STILL")
def cancelling_from_rest() -> Found:
    """parts that cancel at the threshold: no limit, so that the error must be the jump, with a warning"""
    source = Input(3)
    node = stepped(Sum((weighted(source, 1.0, -1.0, 0.0), product(source, 0, 2))), 0.0)
    e, said = explained(graph_over(source, node), np.zeros((1, 3)), np.ones((1, 3)))
    assert e is not None
    wrong = "" if any("not reached" in s for s in said) else "no warning"
    return Found([*e.values.ravel().tolist(), *e.error.tolist()], 1.0 / max(float(e.error.min()), 1e-300), wrong)


@matters_to("STILL", "SPEED_NOISE")
def nearly_at_rest() -> Found:
    """a product that meets a threshold of 1e-2 to 1e-14 when it is slow"""
    found = []
    for level in 10.0 ** -np.arange(2.0, 15.0, 2.0):
        source = Input(2)
        start, move = -0.3 * level**0.5, 0.8 + 0.3 * level**0.5
        a, b = 1.1 * move, 1.1 * start
        time = 2.0 * level / (b + (b * b + 4.0 * a * level) ** 0.5)
        parts = array([a * time, 1.1 * (start + move * time)])
        graph = graph_over(source, stepped(product(source, 0, 1), level))
        found.append(compared(graph, array([start, 0.0]), array([0.8, 1.1]), parts / parts.sum(), None, noise=1e-15))
    return worst(found)


@matters_to("TIMES")
def close_crossings() -> Found:
    """scores that cross thresholds of two ensembles 0 to 3 units of 2^-30 apart: shared if the times are equal"""
    found = []
    for apart in (0.0, 0.2, 0.45, 0.55, 0.9, 1.4, 1.6, 2.4, 3.0):
        source = Input(2)
        score = Affine(source, array([1.0, 0.5], [0.5, 1.0]), np.zeros(2))
        levels = (0.45, 1.5 * (0.3 + apart * 2.0**-30))
        node = Product(*(assemble(score, [step(j, level)], np.zeros(1)) for j, level in enumerate(levels)))
        graph = graph_over(source, node)
        want = brute_force(graph, np.zeros(2), np.ones(2)).T
        found.append(compared(graph, np.zeros((1, 2)), np.ones((1, 2)), want))
    return worst(found)


@matters_to("TURNING_SHARE")
def turning_between_jumps() -> Found:
    """a score that turns above a threshold inside of one of 20, 200 or 1000 intervals between other jumps"""
    found = []
    for jumps in (20, 200, 1000):
        source, top = Input(2), 0.4567  # no edge of a panel
        score = Product(Select(source, (0,)), Affine(Select(source, (1,)), -np.eye(1), np.full(1, 2.0 * top)))
        thresholds = top + (np.arange(jumps) - jumps // 2 + 0.5) / (2.3 * jumps)
        other = assemble(source, [step(0, at, 1e-3) for at in thresholds.tolist()], np.zeros(1))
        before = top - 0.31 / (2.3 * jumps)
        node = Sum((stepped(score, before * (2.0 * top - before)), other))
        want = np.array([jumps * 1e-3, 0.0])
        for t, sign in ((before, 1.0), (2.0 * top - before, -1.0)):
            want += sign * np.array([2.0 * top - t, -t]) / (2.0 * (top - t))
        found.append(compared(graph_over(source, node), np.zeros((1, 2)), np.ones((1, 2)), want[None], None))
    return worst(found)
