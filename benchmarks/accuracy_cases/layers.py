"""Wide layers of units with kinks at loose tolerances, beside the same nets followed from kink to kink."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import numpy as np

from gigrad.engine import limits
from gigrad.graph import Affine, Array, Concat, Elementwise, Graph, Input, Node, PiecewiseLinear, assemble

from .case import Found, compared, explained, graph_over, matters_to, worst
from .crossings import step, weighted

KINDS = {"net": ("relu", "relu", "tanh"), "deep": ("relu", "relu", "relu", "relu"), "ranked": ("relu", "relu")}


def layered(kind: str) -> tuple[Graph, Array, Array]:
    """A net of layers of 120 units: alone, deep, or averaged with trees and ranked by an ECDF of close knots."""
    rng, source = np.random.default_rng(len(kind)), Input(8)
    node: Node = source
    for name in KINDS[kind]:
        weight = rng.normal(size=(120, node.width)) * (2.0 / node.width) ** 0.5
        node = Elementwise(Affine(node, weight, 0.1 * rng.normal(size=120)), name)
    score: Node = Elementwise(Affine(node, rng.normal(size=(1, 120)) * 120**-0.5, np.zeros(1)), "sigmoid")
    starts, ends = rng.normal(size=(2, 12, 8))
    if kind != "ranked":
        return graph_over(source, score), starts, ends
    cuts = [step(j % 8, float(rng.normal()), 0.1 * float(rng.normal())) for j in range(40)]
    trees = assemble(source, cuts, np.zeros(1))
    mean = weighted(Concat((score, trees)), 0.5, 0.5)
    knots = np.sort(rng.normal(0.25, 0.2, 60))
    return graph_over(source, PiecewiseLinear(mean, knots, np.linspace(0.0, 1.0, 60))), starts, ends


@contextmanager
def wide() -> Iterator[None]:
    """Layers of 120 units count as wide."""
    kept = limits.TRACED_WEIGHTS, limits.SAMPLED_UNITS
    limits.TRACED_WEIGHTS, limits.SAMPLED_UNITS = 16, 4
    try:
        yield
    finally:
        limits.TRACED_WEIGHTS, limits.SAMPLED_UNITS = kept


@cache
def _followed(kind: str) -> tuple[Graph, Array, Array, Array]:
    graph, starts, ends = layered(kind)
    e, _ = explained(graph, starts, ends, tol=1e-9)
    assert e is not None
    return graph, starts, ends, e.values


def at_loose(kind: str, tols: tuple[float, ...] = (3e-2, 1e-2, 3e-3, 1e-3)) -> Found:
    graph, starts, ends, want = _followed(kind)
    with wide():
        found = [compared(graph, starts, ends, want, None, tol=tol) for tol in tols]
    return worst(found)


EVERY = ("SAMPLED_CAUTION", "SAMPLED_SHARE", "SAMPLED_STEADY", "SAMPLED_EACH", "SAMPLED_LAYERS")


@matters_to(*EVERY)
def loose_net() -> Found:
    """a net of three layers of 120 units, at tol 3e-2 to 1e-3"""
    return at_loose("net")


@matters_to(*EVERY)
def loose_deep() -> Found:
    """a net of four layers of 120 ReLUs, at tol 3e-2 to 1e-3"""
    return at_loose("deep")


@matters_to(*EVERY)
def loose_ranked() -> Found:
    """the mean of a net and of trees, ranked by 60 close knots, at tol 3e-2 to 1e-3"""
    return at_loose("ranked")
