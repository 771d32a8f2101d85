"""Wide heads over few numbers, tabulated or not: beside the heads themselves."""

from __future__ import annotations

from functools import cache

import numpy as np

from gigrad.engine.mixed.table import Table
from gigrad.graph import Affine, Array, Concat, Elementwise, Graph, Input, Node, assemble

from .case import Found, compared, explained, graph_over, matters_to, worst
from .crossings import step

SCALES = (0.15, 1.0, 2.0, 4.0)


def ensemble(scale: float) -> tuple[Graph, Array, Array]:
    """Trees and a net under a head of 80 units whose weights are of this size, and many pairs."""
    rng, source = np.random.default_rng(5), Input(3)

    def dense(node: Node, width: int, size: float = 1.0) -> Affine:
        weight = rng.normal(size=(width, node.width)) * size / np.sqrt(node.width)
        return Affine(node, weight, rng.normal(size=width))

    net = Elementwise(dense(Elementwise(dense(source, 10), "tanh"), 1), "sigmoid")
    cuts = [step(int(j), float(at), float(jump)) for j, at, jump in zip(
        rng.integers(0, 3, 60), rng.uniform(0.0, 3.0, 60), rng.normal(size=60), strict=True)]  # fmt: skip
    trees = Elementwise(assemble(source, cuts, np.zeros(1)), "sigmoid")
    hidden = Elementwise(dense(Concat((trees, net)), 80, scale), "tanh")
    graph = graph_over(source, Elementwise(dense(hidden, 1), "sigmoid"))
    return graph, rng.uniform(-0.5, 3.5, (300, 3)), rng.uniform(-0.5, 3.5, (300, 3))


@cache
def _by_the_head(scale: float) -> Array:
    of = Table.of
    Table.of = staticmethod(lambda *_: None)  # type: ignore[method-assign]
    try:
        e, _ = explained(*ensemble(scale), tol=1e-11)
    finally:
        Table.of = of  # type: ignore[method-assign]
    assert e is not None
    return e.values


@matters_to("TABLE_CONVERGED", "TABLE_TESTED")
def tabulated() -> Found:
    """four heads of 80 units, from one that 12 nodes of an axis describe to one that no table does"""
    found = []
    for scale in SCALES:
        want = _by_the_head(scale)
        for tol in (1e-6, 1e-9):
            found.append(compared(*ensemble(scale), want, None, noise=1e-13, tol=tol))
    return worst(found)
