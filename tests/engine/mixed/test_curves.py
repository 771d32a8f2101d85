"""Curves on panels by the native core: what Python gives at the nodes, on the way back, and as the terms of errors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from forests import graph_of, random_forest

import gigrad as gig
from gigrad import kernels
from gigrad.engine import Settings
from gigrad.engine.mixed.line_parts import LineParts
from gigrad.engine.mixed.lines import Legs, Lines
from gigrad.engine.mixed.moments import Moments
from gigrad.engine.mixed.native_curves import CurveProgram, usable
from gigrad.engine.mixed.panel_credit import _from_moments
from gigrad.engine.mixed.panels import Panels
from gigrad.engine.mixed.patch import PanelCurves
from gigrad.engine.mixed.slopes import pulled
from gigrad.engine.paths import Block
from gigrad.engine.roles import Roles
from gigrad.graph import Affine, Array, Column, Concat, Elementwise, Input, Node, Product, Select, Softmax, Sum
from gigrad.testing import brute_force


def layer(rng: np.random.Generator, source: Node, width: int) -> Affine:
    weight = rng.normal(size=(width, source.width)) / np.sqrt(source.width)
    return Affine(source, weight, 0.3 * rng.normal(size=width))


def curves(rng: np.random.Generator, source: Input, kind: str) -> tuple[Node, Node]:
    """Two curve ends: one of two columns, and one that does not follow it in a program."""
    if kind == "kinks":  # more lines than are transformed together
        below: Node = layer(rng, Elementwise(layer(rng, source, 9), "relu"), 70)
    else:
        below = layer(rng, source, source.width + 3)
    units = Elementwise(below, "sigmoid" if kind == "kinks" else "tanh")
    if kind == "functions":
        parts = [Elementwise(layer(rng, units, 2), n) for n in ("tanh", "softplus", "silu", "exp", "square", "sqrt")]
        parts[-1] = Elementwise(Elementwise(layer(rng, units, 2), "softplus"), "sqrt")
        joined = Sum((Softmax(Concat(tuple(parts[:3]))), Concat(tuple(parts[3:]))))
        first: Node = Product(Select(joined, (0, 2)), Select(joined, (5,)))
        return first, Elementwise(Select(joined, (3,)), "sigmoid")
    first = layer(rng, units, 2)
    return first, Elementwise(layer(rng, Elementwise(layer(rng, units, 5), "tanh"), 1), "sigmoid")


def patches(kind: str, order: int) -> tuple[PanelCurves, PanelCurves]:
    """The same panels by the core and by Python."""
    rng = np.random.default_rng(order)
    columns = 70 if kind == "wide rows" else 4
    source = Input(columns)
    trees = random_forest(rng, tuple(Column(f"x{j}") for j in range(columns)), source, trees=2, depth=2)
    first, second = curves(rng, source, kind)
    output = layer(rng, Concat((trees, first, second)), 2)
    roles, n = Roles.of(output, source), 6
    assert {first, second} == set(roles.curve_ends)
    whole = np.arange(n)
    starts, ends = rng.normal(size=(n, columns)), rng.normal(size=(n, columns))
    block = Block(starts, ends, whole, whole, np.ones(n), np.zeros(columns, np.bool_))
    lines = Lines.trace(roles, block, Legs.of(n, whole % 2 == 1, np.array([0.0, 1.0])))
    assert lines.straight == (kind != "kinks")
    grid = lines.grid
    piece = np.repeat(np.arange(len(grid.left)), 3)
    edge = np.linspace(0.0, 1.0, 4)
    start, length = grid.time[grid.left], grid.time[grid.left + 1] - grid.time[grid.left]
    low, high = ((start[:, None] + length[:, None] * e).ravel() for e in (edge[:-1], edge[1:]))
    none = np.zeros(len(piece), np.int64)
    panels = Panels(grid.leg[grid.left[piece]], piece, low, high, none, none, np.full(len(piece), order))
    settings = Settings(n_threads=2)
    assert usable(roles, lines, settings) is not None
    core, plain = (
        PanelCurves.of(roles, lines, panels, order, 0.1, True, replace(settings, native=native))
        for native in (True, False)
    )
    assert core.run is not None
    assert plain.run is None
    return core, plain


def moments(rng: np.random.Generator, patch: PanelCurves) -> Moments:
    """Random moments of a head with two outputs."""
    panels, order, k = len(patch.panels), patch.rule.size, 2
    return Moments(
        rng.normal(size=(panels, order + 2, 3, k)), {}, rng.random((panels, k)), np.zeros((panels, k)),
        rng.random((4, panels, k)),
        rng.random((panels, 3, k)), rng.random((8, panels, 3, k)),
    )  # fmt: skip


def same(found: Array, expected: Array) -> None:
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12 * max(1.0, float(np.abs(expected).max())))


KINDS = ("net", "kinks", "functions", "wide rows")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("order", [1, 2, 3, 4, 8, 12])
def test_the_core_gives_the_curves_of_python_and_their_derivatives(kind: str, order: int) -> None:
    core, plain = patches(kind, order)
    same(core.ends, plain.ends)
    same(core.coefficients, plain.coefficients)
    half = core.half[:, None, None]  # of a short panel slopes are small differences over a small time
    same(core.steepness * half, plain.steepness * half)
    same(core.doubt, plain.doubt)
    same(core.astray, plain.astray)
    weight = np.random.default_rng(0).normal(size=(2, len(core.panels), order))
    for curve in core.roles.curve_ends:
        for column in range(curve.width):
            for line, slope in plain.gradient(curve, column).items():
                same(core.gradient(curve, column)[line], slope)
            (sums, parts), (plain_sums, plain_parts) = (pulled(p, curve, column, weight) for p in (core, plain))
            for line, table in plain_sums.items():
                same(sums[line], table)
            for name in ("last", "largest", "total", "largest_turn", "total_turn", "largest_seen"):
                same(getattr(parts, name), getattr(plain_parts, name))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("order", [1, 2, 3, 4, 8, 12])
def test_the_core_gives_the_credit_of_moments_and_its_errors(kind: str, order: int) -> None:
    core, plain = patches(kind, order)
    given = moments(np.random.default_rng(1), core)
    (sums, error, losses), (plain_sums, plain_error, plain_losses) = (
        _from_moments(p, LineParts(p.lines), given) for p in (core, plain)
    )
    for line, table in plain_sums.items():
        same(sums[line], table)
    np.testing.assert_allclose(error, plain_error, rtol=1e-9, atol=1e-10)  # rounding over the length of short panels
    same(losses.of(given), plain_losses.of(given))
    same(losses.moved, plain_losses.moved)


def test_curves_that_are_not_finite_have_no_error_bound() -> None:
    core, _ = patches("net", 4)
    given = moments(np.random.default_rng(1), core)
    given.curves[0, 1, 0, 0] = np.inf
    _, error, _ = _from_moments(core, LineParts(core.lines), given)
    assert not np.isfinite(error[0, 0])
    assert np.isfinite(error[1:]).all()


def test_curves_with_kinks_of_their_own_and_lines_with_changing_slopes_stay_in_python() -> None:
    source = Input(3)
    rng = np.random.default_rng(2)
    smooth = Elementwise(layer(rng, source, 5), "tanh")
    assert CurveProgram.of(Roles.of(layer(rng, Elementwise(layer(rng, smooth, 4), "relu"), 1), source)) is None
    units = layer(rng, Elementwise(layer(rng, source, 4), "relu"), 4)
    program = CurveProgram.of(Roles.of(layer(rng, Elementwise(units, "tanh"), 1), source))
    assert program is not None
    assert program.matrix is None


def test_arrays_that_do_not_go_together_are_refused() -> None:
    core, _ = patches("net", 3)
    assert core.run is not None
    program, rule, n = core.run.program, core.rule, len(core.panels)
    rows = core.lines.joined(program.read)
    assert program.matrix is not None
    zeros, ones, path = np.zeros(n), np.ones(n), np.zeros(n, np.int64)

    def values(times: list[Array], left: np.ndarray, matrix: Array) -> None:
        kernels.curve_values(
            program.native, times, left, rows, (rule.nodes, rule.to_coefficients), matrix, core.lines.block.move, path,
            (0.0, 0.7), 1,
        )  # fmt: skip

    times = [zeros, ones, zeros, ones]
    values(times, path, program.matrix)
    for bad in ((times[:3], path, program.matrix), (times, path[1:], program.matrix), (times, path, rows[:, 1:])):
        with pytest.raises(ValueError, match="must go together"):
            values(*bad)
    with pytest.raises(ValueError, match="panel 0 lies beyond"):
        values(times, path + len(rows), program.matrix)
    with pytest.raises(ValueError, match="weight for each node"):
        kernels.weigh_nodes(core.run.found.gradient[0], np.ones((1, n, 4)))
    short = moments(np.random.default_rng(0), core)
    with pytest.raises(ValueError, match="must go together"):
        core.run.credit(core.astray[1:], core.panels.length, short)


@pytest.mark.parametrize("below", ["line", "relu"])
def test_a_wide_layer_of_smooth_units_at_the_bottom_of_a_net(below: str) -> None:
    """Its sums are taken in one pass where lines have kinks, and node by node where they are straight."""
    rng = np.random.default_rng(4)
    source = Input(3)
    line = layer(rng, source, 128)
    if below == "relu":
        line = layer(rng, Elementwise(layer(rng, source, 4), "relu"), 128)
    score = layer(rng, Elementwise(line, "tanh"), 1)
    trees = random_forest(rng, (Column("s"),), score, trees=3, depth=3)
    for output in (score, Sum((trees, score))):
        graph = graph_of(tuple(Column(f"x{j}", missing=False) for j in range(3)), source, output)
        starts, ends = 2.0 * rng.normal(size=(12, 3)), 2.0 * rng.normal(size=(12, 3))
        found = gig.explain_pairs(graph, starts, ends)
        for i in range(2):
            exact = brute_force(graph, starts[i], ends[i])
            assert np.abs(found.values[i] - exact.ravel()).max() <= found.error[i] + 1e-9
