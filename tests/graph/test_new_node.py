"""A node that the library has never seen: its class alone lets every engine explain it, and portable files hold it.

This is what CONTRIBUTING promises under "A node of the graph"; a list of classes elsewhere would break it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from forests import random_forest
from numpy.testing import assert_allclose

import gigrad as gig
from gigrad.graph import Affine, Array, Column, Concat, Elementwise, Graph, Input, Node, Smooth
from gigrad.portable.nodes import NODES
from gigrad.testing import brute_force

COLUMNS = tuple(Column(name, missing=False) for name in "abc")
RNG = np.random.default_rng(0)
ROWS = np.round(RNG.normal(size=(6, 3)), 2)


@dataclass(frozen=True, eq=False)
class LogSumExp(Smooth):
    """A smooth maximum of the columns of a node."""

    source: Node

    @property
    def width(self) -> int:
        return 1

    def forward(self, *inputs: Array) -> Array:
        return np.asarray(np.logaddexp.reduce(inputs[0], axis=1, keepdims=True))

    def pullback(self, cotangent: Array, *inputs: Array) -> tuple[Array, ...]:
        return (cotangent * np.exp(inputs[0] - self.forward(*inputs)),)


def graph_of(source: Input, score: Node) -> Graph:
    return Graph(COLUMNS, source, score, score, ("y",), named=True)


def scores_below(kind: str) -> tuple[Input, Node]:
    """What the new node reads: lines, curves, trees, or trees beside lines."""
    source = Input(3)
    line = Affine(source, RNG.normal(size=(2, 3)), np.zeros(2))
    trees = random_forest(RNG, COLUMNS, source, outputs=2)
    below = {"lines": line, "curves": Elementwise(line, "tanh"), "trees": trees, "both": Concat((trees, line))}
    return source, below[kind]


@pytest.mark.parametrize("kind", ["lines", "curves", "trees", "both"])
def test_a_new_class_is_explained_like_the_nodes_it_could_be_made_of(kind: str) -> None:
    source, below = scores_below(kind)
    made = Elementwise(Affine(Elementwise(below, "exp"), np.ones((1, below.width)), np.zeros(1)), "log")
    new = gig.Explainer(graph_of(source, LogSumExp(below)), ROWS[3:], tol=1e-8)(ROWS[:3])
    old = gig.Explainer(graph_of(source, made), ROWS[3:], tol=1e-8)(ROWS[:3])
    assert_allclose(new.values, old.values, atol=2e-8)
    assert_allclose(new.predictions, old.predictions, atol=1e-12)


def test_a_tree_may_read_a_new_class_and_the_definition_agrees() -> None:
    source, below = scores_below("both")
    new = LogSumExp(below)
    score = random_forest(RNG, (Column("score", missing=False),), new)
    graph = graph_of(source, score)
    found = gig.Explainer(graph, ROWS[3:4], tol=1e-8)(ROWS[:1])
    want = brute_force(graph, ROWS[3], ROWS[0])[:, 0]
    assert_allclose(found.values[0], want, atol=1e-6)


def test_one_line_lets_portable_files_hold_a_new_class(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, below = scores_below("both")
    graph = graph_of(source, LogSumExp(below))
    with pytest.raises(gig.UnsupportedModelError, match="LogSumExp"):
        graph.save(tmp_path / "x.gig")
    monkeypatch.setitem(NODES, "LogSumExp", LogSumExp)  # an export of gigrad.graph does this
    graph.save(tmp_path / "x.gig")
    assert np.array_equal(Graph.load(tmp_path / "x.gig").predict(ROWS), graph.predict(ROWS))
