"""The probability of SVC(probability=True) for two classes: Platt's sigmoid, then libsvm's coupling of pairs.

libsvm couples the one probability r = 1 / (1 + exp(A f + B)) as if there were many (`multiclass_probability`): it
starts at (1/2, 1/2) and improves one class after the other until both are within 0.0025 of a fixed point. With
p = r + u for the first class, u = 1/2 - r at the start, one round is

    u <- u^2 w / (w^2 - w u + u^2),   w = 1 - r,
    u <- -u^2 r / (r^2 + r u + u^2),

and it ends when |u| max(p, 1 - p) < 0.0025, after no round, one, or two. So the probability is a smooth function of r
on each of seven intervals, and jumps by 0.002 to 0.005 between them; the intervals are the same for every model. Held
against libsvm's loop at 4 million values of r, the closed form is off by 4e-16.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from ...graph import Affine, Array, Concat, Elementwise, Node, PiecewiseLinear, Product, Sum, assemble
from ...graph.growing import Branch, Edge, Part, grown

_TOLERANCE = 0.005 / 2
_LEAST = 1e-7  # libsvm keeps probabilities between this and 1 less this
_FARTHEST = float(np.log((1.0 - _LEAST) / _LEAST))
_MOST_ROUNDS = 2


def coupled_probability(decision: Node, slope: float, shift: float) -> Node:
    """The probability of the second class, from scikit-learn's decision function and libsvm's A and B."""
    log_odds = Affine(decision, np.array([[slope]]), np.array([-shift]))  # of the first class: libsvm's f is -decision
    ends = np.array([-_FARTHEST, _FARTHEST])
    first = Elementwise(PiecewiseLinear(log_odds, ends, ends), "sigmoid")
    second = _line(first, -1.0, 1.0)
    after: list[Node] = [_line(first, -1.0, 0.5)]
    for _ in range(_MOST_ROUNDS):
        after.append(_round(after[-1], first, second))
    short = Product(_rounds_made(log_odds), Concat(tuple(after)))
    return Sum((second, Affine(short, np.full((1, len(after)), -1.0), np.zeros(1))))


def _line(node: Node, slope: float, shift: float) -> Node:
    return Affine(node, np.array([[slope]]), np.array([shift]))


def _round(u: Node, first: Node, second: Node) -> Node:
    """The distance from r after one round."""
    for w, sign in ((second, 1.0), (first, -1.0)):
        square = Elementwise(u, "square")
        below = Sum((Elementwise(w, "square"), _line(Product(w, u), -sign, 0.0), square))
        u = _line(Product(Product(square, w), Elementwise(below, "reciprocal")), sign, 0.0)
    return u


def _rounds_made(log_odds: Node) -> Node:
    """One column for each number of rounds: 1 in the one that libsvm makes, 0 in the others."""
    edges, counts = intervals()
    leaves = list(np.eye(_MOST_ROUNDS + 1)[list(counts)])
    part: Part = leaves[-1]
    for edge, leaf in zip(reversed(edges), reversed(leaves[:-1]), strict=True):
        part = Branch(0, leaf, part, Edge(edge))
    return assemble(log_odds, [grown(part, output=-1)], np.zeros(_MOST_ROUNDS + 1))


@cache
def intervals() -> tuple[tuple[float, ...], tuple[int, ...]]:
    """The log odds up to which libsvm makes the same number of rounds, each, and these numbers."""
    grid = np.linspace(-_FARTHEST, _FARTHEST, 20_001)  # the narrowest interval has 25 of these steps
    counts = rounds(grid)
    at = np.nonzero(np.diff(counts))[0]
    low, high, before = grid[at], grid[at + 1], counts[at]
    while (np.nextafter(low, np.inf) < high).any():
        middle = (low + high) / 2.0
        same = rounds(middle) == before
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    return tuple(low.tolist()), (*before.tolist(), int(counts[-1]))


def rounds(log_odds: Array) -> NDArray[np.int64]:
    """How many rounds libsvm makes, by its own arithmetic."""
    r = np.clip(1.0 / (1.0 + np.exp(-log_odds)), _LEAST, 1.0 - _LEAST)
    matrix = np.array([[(1.0 - r) ** 2, -(1.0 - r) * r], [-(1.0 - r) * r, r**2]])
    p, made, going = np.full((2, len(r)), 0.5), np.zeros(len(r), np.int64), np.ones(len(r), bool)
    for _ in range(100):
        gradient = (matrix * p[None]).sum(axis=1)
        value = (p * gradient).sum(axis=0)
        going = going & ~(np.abs(gradient - value).max(axis=0) < _TOLERANCE)
        if not going.any():
            break
        made += going
        for t in range(2):
            step = (value - gradient[t]) / matrix[t, t]
            p = np.where(going, p + step * (np.arange(2)[:, None] == t), p)
            value = (value + step * (step * matrix[t, t] + 2.0 * gradient[t])) / (1.0 + step) ** 2
            gradient = (gradient + step * matrix[t]) / (1.0 + step)
            p = np.where(going, p / (1.0 + step), p)
    return made
