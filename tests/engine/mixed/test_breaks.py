"""Kinks of functions known by their values and gradients alone: found where the gradient jumps, and at what cost."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from unwritten import with_nan

import gigrad as gig

nn = torch.nn
Module: Any = nn.Module
GRADIENTS: list[int] = []
"""How many gradients were asked for in each call."""


class Behind(Module):
    """A module that says nothing of what is inside of it."""

    def __init__(self, inside: Any) -> None:
        super().__init__()
        self.inside = inside
        self.eval()

    def forward(self, x: Any) -> Any:
        GRADIENTS.append(len(x) * x.requires_grad)
        return self.inside(x * 1.0)


def relu_net(columns: int, units: int, outputs: int = 1, *, links: tuple[Any, ...] = ()) -> Any:
    torch.manual_seed(columns)
    layers = (nn.Linear(columns, units), nn.ReLU(), nn.Linear(units, units), nn.ReLU(), nn.Linear(units, outputs))
    return nn.Sequential(*layers, *links).double().eval()


def pairs(columns: int, n: int = 4) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(columns)
    return rng.normal(size=(n, columns)), rng.normal(size=(n, columns))


@pytest.mark.parametrize("tol", [1e-3, 1e-6, 1e-9])
@pytest.mark.parametrize("columns", [1, 2, 12])
def test_kinks_are_found_in_a_net_that_is_not_looked_into(columns: int, tol: float) -> None:
    """The native engine knows every kink of the same net: its credits are exact."""
    net = relu_net(columns, 24)
    starts, ends = pairs(columns)
    want = gig.explain_pairs(net, starts, ends).values
    GRADIENTS.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        e = gig.explain_pairs(Behind(net), starts, ends, tol=tol)
    assert (np.abs(e.values - want).max(axis=1) <= e.error + 1e-13).all()
    assert (e.error <= tol * np.maximum(np.abs(e.predictions), np.abs(e.base_values)) + 1e-13).all()
    assert sum(GRADIENTS) < 1600 * len(ends)  # about 30 kinks a path; halving panels around each takes 10 times that


@pytest.mark.parametrize("tol", [1e-3, 1e-9])
def test_the_search_does_not_read_memory_that_was_not_written(tol: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Points without a neighbour once took a rate from an unwritten row of a table."""
    net = Behind(relu_net(12, 24))
    starts, ends = pairs(12)
    want = gig.explain_pairs(net, starts, ends, tol=tol)
    with_nan(monkeypatch)
    got = gig.explain_pairs(net, starts, ends, tol=tol)
    np.testing.assert_array_equal(got.values, want.values)
    np.testing.assert_array_equal(got.error, want.error)


@pytest.mark.parametrize("link", [nn.Sigmoid(), nn.Tanh()])
def test_kinks_below_a_link_and_of_several_outputs(link: Any) -> None:
    starts, ends = pairs(5)
    for outputs in (1, 3):
        net = relu_net(5, 16, outputs, links=(link,))
        want = gig.explain_pairs(net, starts, ends, tol=1e-10)
        e = gig.explain_pairs(Behind(net), starts, ends)
        assert (np.abs(e.values - want.values).max(axis=1) <= e.error + want.error).all()
        assert e.error.max() <= 1e-6


def test_kinks_under_a_head_of_trees() -> None:
    """A head asks more of the place of a kink: there it is found to the last digits."""
    from forests import random_forest

    from gigrad.graph import Affine, Column, Elementwise, Graph, Input, Opaque, Product

    rng = np.random.default_rng(0)
    source = Input(3)
    weight = rng.normal(size=(6, 3))

    def value(x: np.ndarray) -> np.ndarray:
        return np.maximum(x @ weight.T, 0.0).sum(axis=1, keepdims=True)

    def gradient(x: np.ndarray, cotangent: np.ndarray) -> np.ndarray:
        return cotangent * ((x @ weight.T > 0.0) @ weight)

    columns = tuple(Column(f"x{j}", missing=False) for j in range(3))
    trees = random_forest(rng, columns, source, trees=3, depth=2)
    known = Affine(Elementwise(Affine(source, weight, np.zeros(6)), "relu"), np.ones((1, 6)), np.zeros(1))
    starts, ends = pairs(3)
    found = []
    for part in (known, Opaque(source, 1, value, gradient)):
        node = Elementwise(Product(part, trees), "sigmoid")
        found.append(gig.explain_pairs(Graph(columns, source, node, node, ("y",)), starts, ends, discrete=()))
    assert (np.abs(found[0].values - found[1].values).max(axis=1) <= found[0].error + found[1].error + 1e-13).all()
    assert found[1].error.max() <= 1e-6


def kinks_close_together(x: np.ndarray) -> np.ndarray:
    return np.abs(x[:, 0] - 0.5) + np.abs(x[:, 0] - 0.5 - 1e-7) + 1e-3 * np.abs(x[:, 1] - 0.300001)


def their_slopes(x: np.ndarray) -> np.ndarray:
    first = np.sign(x[:, 0] - 0.5) + np.sign(x[:, 0] - 0.5 - 1e-7)
    return np.column_stack([first, 1e-3 * np.sign(x[:, 1] - 0.300001)])


def wave(x: np.ndarray) -> np.ndarray:
    return np.abs(np.sin(40.0 * x[:, 0])) + x[:, 1] ** 2


def slopes_of_the_wave(x: np.ndarray) -> np.ndarray:
    return np.column_stack([40.0 * np.cos(40.0 * x[:, 0]) * np.sign(np.sin(40.0 * x[:, 0])), 2.0 * x[:, 1]])


@pytest.mark.parametrize(("value", "slopes"), [(kinks_close_together, their_slopes), (wave, slopes_of_the_wave)])
def test_kinks_that_are_hard_to_tell_apart(value: Callable[..., Any], slopes: Callable[..., Any]) -> None:
    """Each column has a part of its own: its credit is the part's change."""
    start, end = np.array([[0.0, 1.0]]), np.array([[1.0, 0.0]])
    model = gig.function(value, slopes, ["x", "y"])
    mixed = np.array([[end[0, 0], start[0, 1]]])
    want = [value(mixed)[0] - value(start)[0], value(end)[0] - value(mixed)[0]]
    for tol in (1e-3, 1e-6, 1e-9):
        e = gig.explain_pairs(model, start, end, tol=tol)
        assert np.abs(e.values[0] - want).max() <= e.error[0] + 1e-13
        assert e.error[0] <= max(tol * 3.0, 1e-12)
