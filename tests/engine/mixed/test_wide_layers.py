"""A net's last layer is summed before it is explained: its units are no outputs of their own."""

from __future__ import annotations

import numpy as np
import pytest

import gigrad as gig
from gigrad.engine import mixed
from gigrad.graph import Affine, Column, Elementwise, Graph, Input, Sum
from gigrad.testing import brute_force


def wide_net(width: int) -> Graph:
    rng = np.random.default_rng(0)
    source = Input(3)
    hidden = Elementwise(Affine(source, rng.normal(size=(width, 3)), rng.normal(size=width)), "tanh")
    score = Sum(
        (Affine(hidden, rng.normal(size=(1, width)) / width, np.ones(1)), Affine(source, np.ones((1, 3)), np.zeros(1)))
    )
    return Graph(tuple(Column(n) for n in "abc"), source, score, score, ("y",))


def test_wide_layers_are_explained_as_one_output(monkeypatch: pytest.MonkeyPatch) -> None:
    widths: list[int] = []
    attribute = mixed.attribute

    def watched(term, *rest):
        widths.append(term.width)
        return attribute(term, *rest)

    monkeypatch.setattr(mixed, "attribute", watched)
    graph = wide_net(300)
    start, end = np.array([[0.2, -1.0, 0.5]]), np.array([[1.0, 0.7, -0.3]])
    e = gig.explain_pairs(graph, start, end, tol=1e-10, discrete=())
    np.testing.assert_allclose(e.values[0], brute_force(graph, start[0], end[0])[:, 0], atol=1e-9)
    assert max(widths) == 1
