"""The standard normal quantile by NumPy alone, so that a saved graph needs no SciPy: Wichura's algorithm AS 241 (1988).

Two rational functions, one of the distance from 1/2 and one of the logarithm of the tail; to rounding for tails down to
exp(-25), far below the 1e-7 at which normal scores are held.
"""

from __future__ import annotations

import numpy as np

from .node import Array

_HALF_WIDTH = 0.425  # of the middle
_MIDDLE = (
    (
        2.5090809287301226727e3, 3.3430575583588128105e4, 6.7265770927008700853e4, 4.5921953931549871457e4,
        1.3731693765509461125e4, 1.9715909503065514427e3, 1.3314166789178437745e2, 3.3871328727963666080e0,
    ),
    (
        5.2264952788528545610e3, 2.8729085735721942674e4, 3.9307895800092710610e4, 2.1213794301586595867e4,
        5.3941960214247511077e3, 6.8718700749205790830e2, 4.2313330701600911252e1, 1.0,
    ),
)  # fmt: skip
_TAILS = (
    (
        7.7454501427834140764e-4, 2.27238449892691845833e-2, 2.4178072517745061177e-1, 1.27045825245236838258e0,
        3.64784832476320460504e0, 5.76949722146069140550e0, 4.6303378461565452959e0, 1.42343711074968357734e0,
    ),
    (
        1.05075007164441684324e-9, 5.4759380849953449460e-4, 1.51986665636164571966e-2, 1.4810397642748007459e-1,
        6.8976733498510000455e-1, 1.6763848301838038494e0, 2.05319162663775882187e0, 1.0,
    ),
)  # fmt: skip


def normal_quantile(u: Array) -> Array:
    """The number below which a standard normal variable lies with probability `u`, from exp(-25) to 1 - exp(-25)."""
    u = np.asarray(u, np.float64)
    from_half = u - 0.5
    near = np.clip(from_half, -_HALF_WIDTH, _HALF_WIDTH)
    middle = near * _ratio(_MIDDLE, _HALF_WIDTH**2 - near * near)
    tail = _ratio(_TAILS, np.sqrt(-np.log(np.where(from_half < 0.0, u, 1.0 - u))) - 1.6)
    return np.where(np.abs(from_half) <= _HALF_WIDTH, middle, np.copysign(tail, from_half))


def _ratio(of: tuple[tuple[float, ...], tuple[float, ...]], x: Array) -> Array:
    above, below = of
    return np.asarray(np.polyval(above, x) / np.polyval(below, x))
