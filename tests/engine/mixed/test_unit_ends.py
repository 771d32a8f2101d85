"""Wide layers of smooth units known at the ends of panels: what the polynomials of degree 5 from there must give."""

from __future__ import annotations

import numpy as np
import pytest

from gigrad import kernels
from gigrad.engine.quadrature import by_ends
from gigrad.graph.functions import FUNCTIONS

Legendre = np.polynomial.legendre.Legendre


def at_ends(function: Legendre) -> list[float]:
    """The value, the first and the second derivative at -1 and at 1, in the order of the rule."""
    return [float((function.deriv(k) if k else function)(end)) for k in range(3) for end in (-1.0, 1.0)]


def test_a_polynomial_of_degree_five_follows_from_its_ends() -> None:
    rule, function = by_ends(), Legendre(np.random.default_rng(0).normal(size=6))
    known = np.array(at_ends(function))
    np.testing.assert_allclose(rule.to_nodes @ known, function(rule.rule.nodes), rtol=1e-12)
    first, last = known[0::2], known[1::2]
    same = np.array([1.0, -1.0, 1.0])  # the slopes of an even polynomial have opposite signs at both ends
    np.testing.assert_allclose(rule.even @ (last + same * first), np.asarray(function.coef, float)[0::2], rtol=1e-12)
    np.testing.assert_allclose(rule.odd @ (last - same * first), np.asarray(function.coef, float)[1::2], rtol=1e-12)


@pytest.mark.parametrize("degree", range(6, 13))
def test_higher_degrees_are_mistaken_for_what_the_rule_says(degree: int) -> None:
    rule = by_ends()
    found = rule.rule.to_coefficients @ rule.to_nodes @ at_ends(Legendre.basis(degree))
    np.testing.assert_allclose(rule.rule.alias[:, degree - 6], np.abs(found), rtol=1e-9, atol=1e-9)


def test_products_of_polynomials_are_numpys() -> None:
    products = by_ends().products
    for i in range(6):
        for j in range(6):
            exact = np.zeros(11)
            exact[: i + j + 1] = (Legendre.basis(i) * Legendre.basis(j)).coef
            np.testing.assert_allclose(products[i, j], exact[:6], atol=1e-13)


@pytest.mark.parametrize("name", ["tanh", "sigmoid"])
def test_units_are_interpolated_from_both_ends(name: str) -> None:
    """On short panels a polynomial of degree 5 is the unit's slope to 1e-10, wherever it is compared."""
    rng = np.random.default_rng(3)
    panels, units, outputs, rule = 5, 16, 3, by_ends()
    lines = rng.normal(size=(panels + 1, units))
    left = np.arange(panels)
    # The panels are fiftieths of the pieces between the lines' points, in their middles.
    start, part = np.full(panels, 0.49), np.full(panels, 0.01)
    at, share = np.repeat(left, 2), np.stack([start, start + 2 * part], axis=1).ravel()
    values = kernels.units_between(lines, at, share, name == "sigmoid")
    every, matrix = np.arange(2 * panels), rng.normal(size=(outputs, units))
    quadratic = FUNCTIONS[name].quadratic_slope
    assert quadratic is not None
    layer = kernels.UnitLayer(values, quadratic, matrix, every[0::2], every[1::2], lines, left, part)

    u = rule.rule.nodes
    shares = start[:, None] + part[:, None] * (1.0 + u)
    moves = part[:, None] * np.diff(lines, axis=0)  # by the panels' own coordinate
    inputs = lines[left][:, None] + shares[:, :, None] * np.diff(lines, axis=0)[:, None]
    slopes = FUNCTIONS[name].slope(inputs, 0.0)  # (panels, nodes, units)

    weight = rng.normal(size=(2, panels, outputs, len(u)))
    sums = layer.pull_back(np.einsum("kpoq,qf->kpof", weight, rule.to_nodes))
    np.testing.assert_allclose(sums, np.einsum("kpoq,ou,pqu->kpu", weight, matrix, slopes), atol=1e-10)

    speed, sizes = layer.speeds(rule.even, rule.odd)
    parts = np.einsum("ou,pqu,pu->poqu", matrix, slopes, moves)
    np.testing.assert_allclose(np.einsum("qf,pof->poq", rule.to_nodes, speed), parts.sum(axis=3), atol=1e-11)
    coefficients = np.einsum("dq,poqu->podu", rule.rule.to_coefficients, parts)
    np.testing.assert_allclose(sizes, np.sqrt(np.square(coefficients).sum(axis=3)), atol=1e-10)


def test_a_point_must_lie_between_two_rows() -> None:
    rows, at = np.zeros((2, 8)), np.array([1])
    np.testing.assert_array_equal(kernels.units_between(rows, at, np.zeros(1), False), np.zeros((1, 8)))
    with pytest.raises(ValueError, match="a point must lie between two rows"):
        kernels.units_between(rows, at, np.array([0.5]), False)
