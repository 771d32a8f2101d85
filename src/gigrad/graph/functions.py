"""The scalar functions a model may apply to every number: value, slope and the places where the slope jumps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .. import kernels
from .erf import erf
from .node import Array
from .normal_quantile import normal_quantile

_SQRT_HALF = np.sqrt(0.5)
_SQRT_2_PI = np.sqrt(2.0 / np.pi)
POSITIVE = float(np.finfo(np.float32).tiny)
"""A lower bound of probabilities that are never zero but by underflow, which float32 has below this."""


def _never(parameter: float) -> bool:
    return False


def _always(parameter: float) -> bool:
    return True


@dataclass(frozen=True)
class Function:
    """A scalar function: `value(x, parameter)`, `slope(x, parameter)`, and what is known about them.

    Attributes
    ----------
    kinks : tuple of float
        Where the slope jumps.
    piecewise_linear : bool
        Whether the function is linear between its kinks.
    bends_over_one : bool
        Whether its curvature has a length scale of about one, so that the distance its input travels determines the
        number of quadrature nodes.
    slope_of_value : callable, optional
        The slope from the value, where that saves computing the function again.
    quadratic_slope : tuple of three floats, optional
        The coefficients of the slope as a polynomial in the value, from the constant one on.
    monotone : callable
        Whether the function never falls, given its parameter.
    least : float
        A lower bound of its values.
    """

    value: Callable[[Array, float], Array]
    slope: Callable[[Array, float], Array]
    kinks: tuple[float, ...] = ()
    piecewise_linear: bool = False
    bends_over_one: bool = False
    slope_of_value: Callable[[Array], Array] | None = None
    quadratic_slope: tuple[float, float, float] | None = None
    monotone: Callable[[float], bool] = _never
    least: float = -np.inf


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x)) without overflow at either end."""
    return kernels.sigmoid(x)


def _normal(x: Array) -> Array:
    """The standard normal distribution function."""
    return np.asarray(0.5 * (1.0 + erf(x * _SQRT_HALF)))


def _gelu_slope(x: Array, _: float) -> Array:
    return np.asarray(_normal(x) + x * np.exp(-0.5 * x * x) / np.sqrt(2.0 * np.pi))


def _gelu_bend(x: Array) -> Array:
    """The argument of tanh in the tanh form of GELU."""
    return np.asarray(_SQRT_2_PI * (x + 0.044715 * x * x * x))


def _gelu_tanh_slope(x: Array, _: float) -> Array:
    t = np.tanh(_gelu_bend(x))
    return np.asarray(0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * _SQRT_2_PI * (1.0 + 3.0 * 0.044715 * x * x))


def _logit_slope(x: Array, _: float) -> Array:
    return np.asarray(1.0 / (x * (1.0 - x)))


def _silu_slope(x: Array, _: float) -> Array:
    s = sigmoid(x)
    return np.asarray(s * (1.0 + x * (1.0 - s)))


def _box_cox(x: Array, power: float) -> Array:
    return np.log(x) if power == 0.0 else np.asarray(np.expm1(power * np.log(x)) / power)


def _yeo_johnson(x: Array, power: float) -> Array:
    """Box-Cox of 1 + x above zero, and of 1 - x with the power 2 - `power`, mirrored, below."""
    far = 1.0 + np.abs(x)
    return np.where(x >= 0, _box_cox(far, power), -_box_cox(far, 2.0 - power))


def _yeo_johnson_slope(x: Array, power: float) -> Array:
    return np.asarray((1.0 + np.abs(x)) ** np.where(x >= 0, power - 1.0, 1.0 - power))


def _log_or_zero(x: Array, _: float) -> Array:
    """The logarithm, and 0 where it is undefined: for products with a factor that is zero there."""
    return np.log(np.where(x > 0, x, 1.0))


_LEAST = 1e-7 - np.spacing(1.0)  # ranks closer to 0 or 1 have the normal score of this one, as in scikit-learn


def _normal_score(u: Array, _: float) -> Array:
    """The standard normal quantile of u, constant outside [1e-7, 1 - 1e-7]."""
    return normal_quantile(np.clip(u, _LEAST, 1.0 - _LEAST))


def _normal_score_slope(u: Array, _: float) -> Array:
    z = _normal_score(u, 0.0)
    inside = (u > _LEAST) & (u < 1.0 - _LEAST)
    return np.where(inside, np.sqrt(2.0 * np.pi) * np.exp(0.5 * z * z), 0.0)


def _tanh_slope(y: Array) -> Array:
    slope = y * y
    return np.subtract(1.0, slope, out=slope)  # in place: layers are wide


# The parameter is a power, the leaky slope or ELU's alpha; the others ignore it.
FUNCTIONS: dict[str, Function] = {
    "identity": Function(lambda x, _: x, lambda x, _: np.ones_like(x), piecewise_linear=True, monotone=_always),
    "relu": Function(
        lambda x, _: np.maximum(x, 0.0), lambda x, _: (x > 0).astype(np.float64), (0.0,), True, monotone=_always
    ),
    "leaky_relu": Function(
        lambda x, a: np.where(x > 0, x, a * x),
        lambda x, a: np.where(x > 0, 1.0, a),
        (0.0,),
        True,
        monotone=lambda slope: slope >= 0.0,
    ),
    "elu": Function(
        lambda x, a: np.where(x > 0, x, a * np.expm1(np.minimum(x, 0.0))),
        lambda x, a: np.where(x > 0, 1.0, a * np.exp(np.minimum(x, 0.0))),
        (0.0,),
        bends_over_one=True,
        monotone=lambda alpha: alpha >= 0.0,
    ),
    "tanh": Function(
        lambda x, _: kernels.tanh(x),
        lambda x, _: 1.0 - kernels.tanh(x) ** 2,
        bends_over_one=True,
        slope_of_value=_tanh_slope,
        quadratic_slope=(1.0, 0.0, -1.0),
        monotone=_always,
    ),
    "sigmoid": Function(
        lambda x, _: sigmoid(x),
        lambda x, _: sigmoid(x) * sigmoid(-x),
        bends_over_one=True,
        slope_of_value=lambda y: y * (1.0 - y),
        quadratic_slope=(0.0, 1.0, -1.0),
        monotone=_always,
        least=POSITIVE,
    ),
    "softplus": Function(
        lambda x, _: np.logaddexp(0.0, x),
        lambda x, _: sigmoid(x),
        bends_over_one=True,
        monotone=_always,
        least=POSITIVE,
    ),
    "normal_cdf": Function(
        lambda x, _: _normal(x),
        lambda x, _: np.asarray(np.exp(-0.5 * x * x) / np.sqrt(2.0 * np.pi)),
        bends_over_one=True,
    ),
    "gelu": Function(lambda x, _: np.asarray(x * _normal(x)), _gelu_slope, bends_over_one=True),
    "gelu_tanh": Function(
        lambda x, _: np.asarray(0.5 * x * (1.0 + np.tanh(_gelu_bend(x)))), _gelu_tanh_slope, bends_over_one=True
    ),
    "silu": Function(lambda x, _: np.asarray(x * sigmoid(x)), _silu_slope, bends_over_one=True),
    "exp": Function(
        lambda x, _: np.exp(x),
        lambda x, _: np.exp(x),
        bends_over_one=True,
        slope_of_value=lambda y: y,
        monotone=_always,
        least=POSITIVE,
    ),
    "log": Function(lambda x, _: np.log(x), lambda x, _: np.asarray(1.0 / x), monotone=_always),
    "log1p": Function(lambda x, _: np.log1p(x), lambda x, _: np.asarray(1.0 / (1.0 + x)), monotone=_always),
    "expm1": Function(lambda x, _: np.expm1(x), lambda x, _: np.exp(x), bends_over_one=True, monotone=_always),
    "sqrt": Function(lambda x, _: np.sqrt(x), lambda x, _: np.asarray(0.5 / np.sqrt(x)), monotone=_always),
    "log_or_zero": Function(_log_or_zero, lambda x, _: np.where(x > 0, 1.0 / np.where(x > 0, x, 1.0), 0.0), (0.0,)),
    "sqrt_or_zero": Function(
        lambda x, _: np.sqrt(np.maximum(x, 0.0)),
        lambda x, _: np.where(x > 0, 0.5 / np.sqrt(np.where(x > 0, x, 1.0)), 0.0),
        (0.0,),
    ),
    "cos": Function(lambda x, _: np.cos(x), lambda x, _: -np.sin(x), bends_over_one=True),
    "square": Function(lambda x, _: x * x, lambda x, _: 2.0 * x, least=0.0),
    "signed_square": Function(lambda x, _: np.sign(x) * x * x, lambda x, _: 2.0 * np.abs(x), (0.0,)),
    "reciprocal": Function(lambda x, _: np.asarray(1.0 / x), lambda x, _: np.asarray(-1.0 / (x * x))),
    "abs": Function(lambda x, _: np.abs(x), lambda x, _: np.sign(x), (0.0,), True, least=0.0),
    "box_cox": Function(_box_cox, lambda x, a: np.asarray(x ** (a - 1.0))),
    "yeo_johnson": Function(_yeo_johnson, _yeo_johnson_slope, (0.0,)),
    "normal_score": Function(_normal_score, _normal_score_slope, (_LEAST, 1.0 - _LEAST)),
    "logit": Function(lambda x, _: np.asarray(np.log(x) - np.log1p(-x)), _logit_slope, monotone=_always),
}
