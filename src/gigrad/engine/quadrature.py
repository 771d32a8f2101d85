"""Quadrature as data: Gauss nodes, and the change between values at nodes and Legendre coefficients.

A function on a panel is kept as its Legendre coefficients in the panel's own coordinate u, from -1 to 1. The integral
of `w g` is then the sum of g's coefficients times w's moments, `moment[l] = integral of w P_l`, however rough w is: g
needs to be known at a few nodes only. This is product integration.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from ..graph import Array
from . import limits


@dataclass(frozen=True, eq=False)
class Rule:
    """Gauss's rule with `size` nodes on [-1, 1].

    Attributes
    ----------
    nodes, weights : (size,)
    to_coefficients : (size, size)
        `to_coefficients @ values` are the Legendre coefficients of the polynomial through values at the nodes. Its
        transpose turns moments into weights of the nodes.
    derivative : (size, size)
        Takes coefficients to those of the derivative.
    alias : (size, size + 1)
        The size of the coefficient of degree d, for a Legendre polynomial of degree size + l known at the nodes alone.
    """

    size: int
    nodes: Array
    weights: Array
    to_coefficients: Array
    derivative: Array
    alias: Array


@cache
def gauss(size: int) -> Rule:
    """Gauss's rule with `size` nodes."""
    nodes, weights = np.polynomial.legendre.leggauss(size)
    degree = np.arange(size)
    basis = np.polynomial.legendre.legvander(nodes, size - 1)
    derivative = np.zeros((size, size))
    for high in range(1, size):
        derivative[high - 1 :: -2, high] = 2 * degree[high - 1 :: -2] + 1
    alias = np.eye(size, size + 1, 1)[::-1]
    for table in (nodes, weights, derivative, alias):
        table.setflags(write=False)
    return Rule(size, nodes, weights, (degree[:, None] + 0.5) * (basis * weights[:, None]).T, derivative, alias)


@dataclass(frozen=True, eq=False)
class EndRule:
    """A polynomial of degree 5 from values, first and second derivatives at -1 and 1, in the order of these.

    Attributes
    ----------
    rule : Rule
        Gauss's rule for such polynomials, with the aliases of what is known at both ends.
    to_nodes : (6, 6)
        Takes the six to values at the nodes of the rule.
    even, odd : (3, 3)
        Coefficients of degrees 0, 2, 4 and 1, 3, 5, from sums and differences of the values at both ends, from
        differences and sums of the first derivatives, and from sums and differences of the second ones.
    products : (6, 6, 6)
        `products[i, j]` are the coefficients of the product of polynomials of degrees i and j, up to degree 5.
    """

    rule: Rule
    to_nodes: Array
    even: Array
    odd: Array
    products: Array


@cache
def by_ends() -> EndRule:
    """The rule for functions that are known at both ends of a panel, with two derivatives."""
    rule = gauss(6)
    known = np.array([_at_ends(degree) for degree in range(13)]).T  # of the polynomials of degree 0 .. 12
    to_coefficients = np.linalg.inv(known[:, :6])
    fine = gauss(8)
    basis = np.polynomial.legendre.legvander(fine.nodes, 5)
    products = np.einsum("dq,qi,qj->ijd", fine.to_coefficients[:6], basis, basis)
    return EndRule(
        replace(rule, alias=np.abs(to_coefficients @ known[:, 6:])),
        np.asarray(np.polynomial.legendre.legvander(rule.nodes, 5) @ to_coefficients),
        to_coefficients[0::2, 1::2],
        to_coefficients[1::2, 1::2],
        products,
    )


def _at_ends(degree: int) -> Array:
    """The values, first and second derivatives of a Legendre polynomial at -1 and 1."""
    basis, ends = np.polynomial.legendre.Legendre.basis(degree), np.array([-1.0, 1.0])
    return np.concatenate([(basis.deriv(order) if order else basis)(ends) for order in range(3)])


def legendre(u: Array, size: int) -> Array:
    """P_0 .. P_(size-1) at u (n,): (size, n)."""
    out = np.empty((size, len(u)))
    out[0] = 1.0
    if size > 1:
        out[1] = u
    for n in range(2, size):
        np.multiply(u, out[n - 1], out=out[n])
        out[n] *= (2 * n - 1) / n
        out[n] -= (n - 1) / n * out[n - 2]
    return out


def tails(last: Array, order: int, least_rate: float) -> Array:
    """What coefficients beyond the last may amount to, (order + 1, ...) for degrees order, order + 1, ..., 2 order.

    Parameters
    ----------
    last : (min(order, 4), ...)
        Absolute coefficients of the highest degrees, up to order - 1.
    least_rate : float
        The fastest decay from one degree to the next that is trusted; 1 where kinks may hide inside.

    The coefficients are continued geometrically, at the rate at which they have been falling. Pairs are compared, since
    the coefficients of even and of odd functions vanish in turn.
    """
    if order == 1:
        return np.zeros((2, *last.shape[1:]))
    pair, step = (2, 2) if order >= 4 else (1, order - 1)
    high, low = last[-pair:].max(axis=0), last[:-pair].max(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = np.where(low > 0, np.minimum(high / low, 1.0), 1.0)
    rate = np.sqrt(rate) if step == 2 else rate ** (1.0 / step)
    rate = np.where(rate > limits.SLOW_DECAY, 1.0, np.maximum(rate, least_rate))
    out = np.empty((order + 1, *rate.shape))
    out[0] = high * rate
    for degree in range(1, order + 1):
        np.multiply(out[degree - 1], rate, out=out[degree])
    return out
