"""Layers of units with kinks traced by the native core: what Python's own lines give, forward and on the way back."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pytest
from forests import graph_of

import gigrad as gig
from gigrad import kernels
from gigrad.engine import limits
from gigrad.engine.mixed.lines import Legs, Lines
from gigrad.engine.mixed.traced import TracedLines
from gigrad.engine.paths import Block
from gigrad.engine.roles import Roles
from gigrad.graph import Affine, Array, Column, Concat, Elementwise, Input, Node, PiecewiseLinear, Select, Smooth, Sum
from gigrad.testing import brute_force


def layer(rng: np.random.Generator, source: Node, width: int, activation: str) -> Node:
    weight = rng.normal(size=(width, source.width)) * np.sqrt(2.0 / source.width)
    return Elementwise(Affine(source, weight, rng.normal(size=width) * 0.3), activation, 0.1)


def deep(rng: np.random.Generator, source: Input, activation: str) -> Node:
    units: Node = source
    for width in (20, 11, 9):
        units = layer(rng, units, width, activation)
    return Affine(units, rng.normal(size=(2, 9)), np.zeros(2))


def branches(rng: np.random.Generator, source: Input) -> Node:
    """Units that a layer and something else read, layers of different depth that meet again, and what is straight."""
    first = layer(rng, source, 6, "relu")
    deeper = Affine(layer(rng, first, 6, "leaky_relu"), rng.normal(size=(6, 6)), np.zeros(6))
    other = Select(layer(rng, source, 4, "abs"), (3, 0, 0))
    return Concat((Sum((deeper, first)), other, Affine(source, rng.normal(size=(1, 5)), np.zeros(1))))


def ending_in_units(rng: np.random.Generator, source: Input) -> Node:
    return layer(rng, layer(rng, source, 8, "relu"), 3, "relu")


def traced(node: Node, source: Input, starts: Array, ends: Array) -> tuple[Lines, TracedLines]:
    """The lines of paths, by Python and by the core; every other path has a leg of its own for each half."""
    roles, n = Roles.of(Elementwise(node, "tanh"), source), len(starts)
    whole = np.arange(n)
    block = Block(starts, ends, whole, whole, np.ones(n), np.zeros(source.width, np.bool_))
    legs = Legs.of(n, whole % 2 == 1, np.array([0.0, 1.0]))
    assert roles.line_program is not None
    return Lines.trace(roles, block, legs), TracedLines.by_core(roles, block, legs, roles.line_program, 2)


NETS = {
    "relu": lambda rng, source: deep(rng, source, "relu"),
    "leaky": lambda rng, source: deep(rng, source, "leaky_relu"),
    "abs": lambda rng, source: deep(rng, source, "abs"),
    "branches": branches,
    "units": ending_in_units,
}


@pytest.mark.parametrize("kind", NETS)
def test_the_core_gives_the_lines_and_the_way_back_of_python(kind: str) -> None:
    rng = np.random.default_rng(len(kind))
    source = Input(5)
    node = NETS[kind](rng, source)
    plain, core = traced(node, source, rng.normal(size=(12, 5)), rng.normal(size=(12, 5)))
    grid = core.grid
    assert len(grid.time) > 3 * len(core.legs), "there are kinks"
    # every kink that Python finds is a point of the core's grid, and the other way round
    assert len(grid.time) == len(plain.grid.time)
    np.testing.assert_allclose(grid.time, plain.grid.time, atol=1e-12)
    for line, values in plain.ends.items():
        np.testing.assert_allclose(core.ends[line], values, atol=1e-11)
    cotangents = {line: rng.normal(size=(len(grid.left), line.width)) for line in core.roles.line_ends}
    np.testing.assert_allclose(core.pull_back(cotangents), plain.pull_back(cotangents), atol=1e-10)


@dataclass(frozen=True, eq=False)
class Ramp(Smooth):
    """A unit that no part of the engine names: twice its input above zero."""

    source: Node

    @property
    def width(self) -> int:
        return self.source.width

    @property
    def piecewise_linear(self) -> bool:
        return True

    @property
    def kinks(self) -> tuple[float, ...]:
        return (0.0,)

    @cached_property
    def unit_slopes(self) -> tuple[float, float, float]:
        return 0.0, 0.0, 2.0

    def forward(self, *inputs: Array) -> Array:
        return 2.0 * np.maximum(inputs[0], 0.0)

    def pullback(self, cotangent: Array, *inputs: Array) -> tuple[Array, ...]:
        return (np.where(inputs[0] > 0.0, 2.0, 0.0) * cotangent,)


@pytest.mark.parametrize("widest", [0, 1 << 13])
def test_a_new_unit_needs_only_its_own_description(widest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng, source = np.random.default_rng(3), Input(3)
    first = Ramp(Affine(source, rng.normal(size=(6, 3)), rng.normal(size=6)))
    second = Ramp(Affine(first, rng.normal(size=(5, 6)), rng.normal(size=5)))
    score = Elementwise(Affine(second, rng.normal(size=(1, 5)) / 5, np.zeros(1)), "tanh")
    assert Roles.of(score, source).line_program is not None
    monkeypatch.setattr(limits, "TRACED_WEIGHTS", widest)  # at 0 by Python's own lines
    assert (Roles.of(score, source).line_program is None) == (widest == 0)
    graph = graph_of(tuple(Column(n) for n in "abc"), source, score)
    start, end = rng.normal(size=(2, 1, 3)) * 2
    e = gig.explain_pairs(graph, start, end, tol=1e-10, discrete=())
    np.testing.assert_allclose(e.values[0], brute_force(graph, start[0], end[0])[:, 0], atol=1e-9)


def test_units_that_rest_on_their_kink_or_start_on_it() -> None:
    """Whole numbers put units on zero at both ends, at one, and throughout."""
    source, rng = Input(3), np.random.default_rng(0)
    weight = np.array([[1.0, -1.0, 0.0], [1.0, 1.0, 1.0], [0.0, 0.0, 1.0], [1.0, 0.0, -1.0]])
    units = Elementwise(Affine(source, weight, np.zeros(4)), "relu")
    node = Affine(Elementwise(Affine(units, rng.normal(size=(5, 4)), np.zeros(5)), "abs"), np.ones((1, 5)), np.zeros(1))
    starts, ends = (rng.integers(-1, 2, size=(40, 3)).astype(float) for _ in range(2))
    plain, core = traced(node, source, starts, ends)
    for line in core.roles.line_ends:
        at = np.searchsorted(plain.grid.leg * 4.0 + plain.grid.time, core.grid.leg * 4.0 + core.grid.time - 1e-12)
        np.testing.assert_allclose(core.ends[line], plain.ends[line][at], atol=1e-12)
    length = np.diff(core.grid.time)[core.grid.left][:, None]
    had = np.diff(plain.grid.time)[plain.grid.left][:, None]
    (line,) = core.roles.line_ends
    np.testing.assert_allclose(core.pull_back({line: length}), plain.pull_back({line: had}), atol=1e-12)


def test_any_number_of_threads_gives_the_same_bits() -> None:
    rng, source = np.random.default_rng(1), Input(5)
    _, core = traced(deep(rng, source, "relu"), source, rng.normal(size=(40, 5)), rng.normal(size=(40, 5)))
    assert core.program.read
    rows = np.concatenate([core.values[n] for n in core.program.read], axis=1)
    found = [kernels.trace_lines(core.program.native, core.legs.low, core.legs.high, rows, n) for n in (1, 3)]
    assert found[0].time.tobytes() == found[1].time.tobytes()
    assert found[0].ends.tobytes() == found[1].ends.tobytes()
    cotangent = rng.normal(size=(len(core.grid.left), 2))
    assert found[0].pull_back(cotangent, 1).tobytes() == found[1].pull_back(cotangent, 3).tobytes()


def test_nets_that_the_core_does_not_know_are_left_to_python() -> None:
    rng, source = np.random.default_rng(2), Input(5)
    steps = PiecewiseLinear(layer(rng, source, 3, "relu"), np.array([0.0, 1.0, 2.0]), np.array([0.0, 2.0, 1.0]))
    assert Roles.of(Elementwise(steps, "tanh"), source).line_program is None
    assert Roles.of(Elementwise(Affine(source, np.ones((2, 5)), np.zeros(2)), "tanh"), source).line_program is None


def test_arrays_that_do_not_go_together_are_refused() -> None:
    no: tuple[Any, ...] = (np.zeros((0, 0)), np.zeros(0), [], [])
    with pytest.raises(ValueError, match="earlier steps"):
        kernels.LineNet([("straight", 2, [], *no), ("sum", 3, [0], *no)], [1])
    with pytest.raises(ValueError, match="no step named"):
        kernels.LineNet([("curve", 2, [], *no)], [0])
    net = kernels.LineNet([("straight", 2, [], *no)], [0])
    with pytest.raises(ValueError, match="two rows"):
        kernels.trace_lines(net, np.zeros(2), np.ones(2), np.zeros((3, 2)), 1)
    legs = kernels.trace_lines(net, np.zeros(2), np.ones(2), np.zeros((4, 2)), 1)
    with pytest.raises(ValueError, match="each piece"):
        legs.pull_back(np.zeros((3, 2)), 1)
