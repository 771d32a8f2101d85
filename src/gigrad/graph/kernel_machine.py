"""Kernel expansions: support vector machines and the means of Gaussian processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from ..errors import InputError
from ..kernels.stopping import check_stopped
from .node import Array, Node, Smooth

_CELLS = 1 << 21  # kernel values held at once: 16 MB, whatever the number of rows


@dataclass(frozen=True)
class Profile:
    """A kernel as a function of one number `q`: the squared distance to a support vector, or the product with it.

    `value(q, parameter)`; `slope(q, value, parameter)` is its derivative by q. `rooted` kernels are functions of the
    root of q, which is singular at 0.
    """

    value: Callable[[Array, float], Array]
    slope: Callable[[Array, Array, float], Array]
    radial: bool
    rough: bool = False  # its slope has no bound at distance 0, so distances must be exact there
    rooted: bool = False


def _exponential_slope(q: Array, value: Array, _: float) -> Array:
    root = np.sqrt(q)
    return np.divide(-0.5 * value, root, out=np.zeros_like(root), where=root > 0)  # a cusp: no slope to either side


def _matern32(q: Array, _: float) -> Array:
    r = np.sqrt(3.0 * q)
    return np.asarray((1.0 + r) * np.exp(-r))


def _matern52(q: Array, _: float) -> Array:
    r = np.sqrt(5.0 * q)
    return np.asarray((1.0 + r + r * r / 3.0) * np.exp(-r))


def _matern52_slope(q: Array, _value: Array, _: float) -> Array:
    r = np.sqrt(5.0 * q)
    return np.asarray(-5.0 / 6.0 * (1.0 + r) * np.exp(-r))


def _rational(q: Array, alpha: float) -> Array:
    return np.asarray((1.0 + q / (2.0 * alpha)) ** -alpha)


# The parameter is the degree of the polynomial, or the rational quadratic's alpha; the others ignore it.
PROFILES: dict[str, Profile] = {
    "gaussian": Profile(lambda q, _: np.exp(-q), lambda q, v, _: -v, radial=True),
    "exponential": Profile(lambda q, _: np.exp(-np.sqrt(q)), _exponential_slope, radial=True, rough=True, rooted=True),
    "matern32": Profile(_matern32, lambda q, v, _: -1.5 * np.exp(-np.sqrt(3.0 * q)), radial=True, rooted=True),
    "matern52": Profile(_matern52, _matern52_slope, radial=True, rooted=True),
    "rational": Profile(_rational, lambda q, v, a: np.asarray(-0.5 * v / (1.0 + q / (2.0 * a))), radial=True),
    "linear": Profile(lambda q, _: q, lambda q, v, _: np.ones_like(q), radial=False),
    "polynomial": Profile(lambda q, d: q**d, lambda q, v, d: d * q ** (d - 1.0), radial=False),
    "tanh": Profile(lambda q, _: np.tanh(q), lambda q, v, _: 1.0 - v * v, radial=False),
}


@dataclass(frozen=True, eq=False)
class Factor:
    """One factor of a kernel: a profile of `sum (scale_j (x_j - s_j))^2`, or of `offset + sum scale_j x_j s_j`."""

    profile: str
    scale: Array  # (columns,)
    offset: float = 0.0
    parameter: float = 0.0

    def __post_init__(self) -> None:
        if self.profile not in PROFILES:
            raise InputError(f"A kernel factor must be one of {', '.join(PROFILES)}; got {self.profile!r}.")

    @property
    def analytic(self) -> bool:
        """Whether it has no root: polynomials may have a degree that is not whole."""
        profile = PROFILES[self.profile]
        return not (profile.rooted or (self.profile == "polynomial" and self.parameter % 1.0 != 0.0))

    def argument(self, x: Array, support: Array) -> Array:
        """What the profile is a function of, for every row and support vector: (n, m)."""
        if not PROFILES[self.profile].radial:
            out: Array = (x * self.scale) @ support.T
            out += self.offset
            return out
        centre = support.mean(axis=0)  # near the data, against cancellation when squares are subtracted
        a, b = (x - centre) * self.scale, (support - centre) * self.scale
        if PROFILES[self.profile].rough:
            return sum(((a[:, j, None] - b[:, j]) ** 2 for j in range(a.shape[1])), np.zeros((len(a), len(b))))
        out = a @ (-2.0 * b.T)
        out += (a * a).sum(axis=1)[:, None]
        out += (b * b).sum(axis=1)
        return np.maximum(out, 0.0, out=out)

    def pullback(self, cotangent: Array, x: Array, support: Array) -> Array:
        """d/dx (n, columns) of the arguments, weighted by `cotangent` (n, m)."""
        if not PROFILES[self.profile].radial:
            return np.asarray((cotangent @ support) * self.scale)
        return np.asarray((x * cotangent.sum(axis=1)[:, None] - cotangent @ support) * (2.0 * self.scale**2))


@dataclass(frozen=True, eq=False)
class KernelMachine(Smooth):
    """`bias + sum over support vectors of weight * kernel(x, s)`, the kernel a product of factors."""

    source: Node
    support: Array  # (m, source width)
    weight: Array  # (width, m)
    bias: Array  # (width,)
    factors: tuple[Factor, ...]

    def __post_init__(self) -> None:
        if self.support.shape[1] != self.source.width or self.weight.shape != (len(self.bias), len(self.support)):
            raise InputError(
                f"KernelMachine needs support vectors of {self.source.width} numbers and one weight for each and each "
                f"output; their shapes are {self.support.shape} and {self.weight.shape}."
            )

    @property
    def width(self) -> int:
        return len(self.bias)

    @property
    def analytic(self) -> bool:
        return all(factor.analytic for factor in self.factors)

    def forward(self, *inputs: Array) -> Array:
        out = np.empty((len(inputs[0]), self.width))
        for rows in self._blocks(len(out)):
            check_stopped()
            kernel = np.ones((1, len(self.support)))
            for factor in self.factors:
                q = factor.argument(inputs[0][rows], self.support)
                kernel = kernel * PROFILES[factor.profile].value(q, factor.parameter)
            out[rows] = kernel @ self.weight.T + self.bias
        return out

    def pullback(self, cotangent: Array, *inputs: Array) -> tuple[Array, ...]:
        out = np.zeros_like(inputs[0])
        for rows in self._blocks(len(out)):
            check_stopped()
            x = inputs[0][rows]
            arguments = [f.argument(x, self.support) for f in self.factors]
            values = [PROFILES[f.profile].value(q, f.parameter) for f, q in zip(self.factors, arguments, strict=True)]
            spread = cotangent[rows] @ self.weight
            for i, factor in enumerate(self.factors):
                part = spread * PROFILES[factor.profile].slope(arguments[i], values[i], factor.parameter)
                for other in values[:i] + values[i + 1 :]:
                    part *= other
                out[rows] += factor.pullback(part, x, self.support)
        return (out,)

    def _blocks(self, rows: int) -> Iterator[slice]:
        step = max(1, _CELLS // max(1, len(self.support)))
        return (slice(a, min(a + step, rows)) for a in range(0, rows, step))
