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

ORDERS = (1, 2, 3, 5, 8, 12, 16)
"""How many nodes a panel may have."""


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


def tails(sizes: Array, rough: bool) -> Array:
    """What coefficients beyond the last may amount to, (q + 1, ...) for degrees q, q + 1, ..., 2q.

    Parameters
    ----------
    sizes : (q, ...)
        Absolute coefficients of degrees 0 .. q - 1.
    rough : bool
        Whether kinks may hide inside: then no decay is trusted.

    The last coefficients are continued geometrically, at the rate at which they have been falling. Pairs are compared,
    since the coefficients of even and of odd functions vanish in turn.
    """
    q = len(sizes)
    if q == 1:
        return np.zeros((2, *sizes.shape[1:]))
    pair = 1 if q < 4 else 2
    last = sizes[q - pair :].max(axis=0)
    earlier = sizes[: q - pair].max(axis=0) if q < 4 else sizes[q - 4 : q - 2].max(axis=0)
    step = q - 1 if q < 4 else 2
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = np.where(earlier > 0, np.minimum(last / earlier, 1.0), 1.0) ** (1.0 / step)
    rate = np.where((rate > 0.6) | rough, 1.0, rate)
    powers = rate ** np.arange(1, q + 2).reshape(-1, *(1,) * (sizes.ndim - 1))
    return np.asarray(last * powers)
