"""Quadrature as data: Gauss nodes, and the change between values at nodes and Legendre coefficients.

A function on a panel is kept as its Legendre coefficients in the panel's own coordinate u, from -1 to 1. The integral
of `w g` is then the sum of g's coefficients times w's moments, `moment[l] = integral of w P_l`, however rough w is: g
needs to be known at a few nodes only. This is product integration.
"""

from __future__ import annotations

from dataclasses import dataclass
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
    """

    size: int
    nodes: Array
    weights: Array
    to_coefficients: Array
    derivative: Array


@cache
def gauss(size: int) -> Rule:
    """Gauss's rule with `size` nodes."""
    nodes, weights = np.polynomial.legendre.leggauss(size)
    degree = np.arange(size)
    basis = np.polynomial.legendre.legvander(nodes, size - 1)
    derivative = np.zeros((size, size))
    for high in range(1, size):
        derivative[high - 1 :: -2, high] = 2 * degree[high - 1 :: -2] + 1
    for table in (nodes, weights, derivative):
        table.setflags(write=False)
    return Rule(size, nodes, weights, (degree[:, None] + 0.5) * (basis * weights[:, None]).T, derivative)


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
