"""Kernels that are far narrower than a path, beside integrals in closed form or by adaptive quadrature."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from math import erf, exp, pi, sqrt

import numpy as np
from scipy.integrate import quad

from gigrad.graph import Affine, Array, Elementwise, Factor, Input, KernelMachine, Node
from gigrad.graph.kernel_machine import PROFILES

from .case import Found, array, compared, graph_over, matters_to, worst

END = array([0.8, 0.6])
ACROSS = array(-0.6, 0.8)
AT = 0.43  # the time at which the path is closest to the support vector


def machine(source: Node, profile: str, scale: float, support: Array) -> KernelMachine:
    factor = Factor(profile, np.full(2, scale), 0.0, 1.5)
    return KernelMachine(source, support[None], np.ones((1, 1)), np.zeros(1), (factor,))


def gaussian(scale: float) -> tuple[Array, Array]:
    """The support vector, and the credits: x - s is (t - AT) END + 0.5 / scale ACROSS."""
    off = -0.5 / scale * ACROSS
    support = AT * END[0] - off

    def value(t: float) -> float:
        return exp(-((scale * (t - AT)) ** 2) - 0.25)

    mass = exp(-0.25) * sqrt(pi) / (2.0 * scale) * (erf(scale * (1.0 - AT)) + erf(scale * AT))
    return support, END[0] ** 2 * (value(1.0) - value(0.0)) - 2.0 * scale**2 * END[0] * off * mass


@matters_to("SAME_EDGE")
def narrower_and_narrower() -> Found:
    """Gaussian kernels of a width of 1e-1 to 1e-8 of a path"""
    found = []
    for scale in 10.0 ** np.arange(1.0, 9.0):
        source = Input(2)
        support, want = gaussian(scale)
        graph = graph_over(source, machine(source, "gaussian", scale, support))
        noise = 1e-15 * scale  # the support vector's own rounding
        found.append(compared(graph, np.zeros((1, 2)), END, want[None], None, noise=noise + 1e-13))
    return worst(found)


@cache
def _integrated(profile: str, scale: float) -> tuple[Array, Array]:
    """The support vector, and the credits by adaptive quadrature."""
    off = -0.5 / scale * ACROSS
    one = machine(Input(2), profile, scale, AT * END[0] - off)

    def slope(t: float, j: int) -> float:
        q = np.array([[(scale * (t - AT)) ** 2 + 0.25]])
        value = PROFILES[profile].value(q, 1.5)
        back = 2.0 * scale**2 * ((t - AT) * END[0, j] + off[j]) * END[0, j]
        return float(PROFILES[profile].slope(q, value, 1.5)[0, 0] * back)

    beside = (AT + k / scale for k in (-30, -10, -3, -1, 0, 1, 3, 10, 30))
    edges = [0.0, *(t for t in beside if 0.0 < t < 1.0), 1.0]
    parts = [
        sum(quad(slope, a, b, args=(j,), epsabs=1e-14, epsrel=1e-13, limit=500)[0] for a, b in pairwise(edges))
        for j in range(2)
    ]
    return one.support[0], np.array(parts)


@matters_to("KERNEL_REACH", "KERNEL_CELL")
def every_profile() -> Found:
    """kernels of every radial profile, of a width of 1e-1 to 1e-3 of a path, at two tolerances"""
    found = []
    for profile in ("gaussian", "exponential", "matern32", "matern52", "rational"):
        for scale in (10.0, 100.0, 1000.0):
            support, want = _integrated(profile, scale)
            source = Input(2)
            graph = graph_over(source, machine(source, profile, scale, support))
            for tol in (1e-3, 1e-6):
                found.append(compared(graph, np.zeros((1, 2)), END, want[None], None, noise=1e-11, tol=tol))
    return worst(found)


@matters_to("KERNEL_STRETCHES")
def of_curves() -> Found:
    """Gaussian kernels of a width of 1e-1 to 1e-3 over a tanh of each of two columns"""
    found = []
    for scale in (10.0, 100.0, 1000.0):
        source = Input(2)
        want = _of_curves(scale)
        inner = Elementwise(Affine(source, np.diag([4.0, 3.0]), np.full(2, -1.5)), "tanh")
        at = np.tanh(array(4.0, 3.0) * AT * END[0] - 1.5) + 0.3 / scale * ACROSS
        graph = graph_over(source, machine(inner, "gaussian", scale, at))
        found.append(compared(graph, np.zeros((1, 2)), END, want[None], None, noise=1e-11))
    return worst(found)


@cache
def _of_curves(scale: float) -> Array:
    weight = array(4.0, 3.0)
    at = np.tanh(weight * AT * END[0] - 1.5) + 0.3 / scale * ACROSS

    def slope(t: float, j: int) -> float:
        x = np.tanh(weight * t * END[0] - 1.5)
        away = x - at
        return float(
            exp(-(scale**2) * (away @ away)) * -2.0 * scale**2 * away[j] * (1 - x[j] ** 2) * weight[j] * END[0, j]
        )

    edges = [0.0, *(e for k in range(-8, 9) if 0 < (e := AT + k / scale) < 1), 1.0]
    parts = [
        sum(quad(slope, a, b, args=(j,), epsabs=1e-14, epsrel=1e-13, limit=500)[0] for a, b in pairwise(edges))
        for j in range(2)
    ]
    return np.array(parts)
