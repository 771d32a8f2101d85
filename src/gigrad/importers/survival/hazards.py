"""Proportional hazards: S(t | x) = exp(-H(t) exp(m(x))), with the baseline's cumulative hazard H."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import UnsupportedModelError
from ...graph import Affine, Array, Elementwise, Node


def survival(margin: Node, hazard: Array) -> Node:
    """The probability to survive up to each time, (times,), from the log of the partial hazard."""
    risk = Elementwise(margin, "exp")
    return Elementwise(Affine(risk, -np.asarray(hazard, np.float64)[:, None], np.zeros(len(hazard))), "exp")


def names_of_times(times: Sequence[float] | Array) -> tuple[str, ...]:
    """Times as short text: 12 for 12.0."""
    return tuple(str(int(t)) if float(t).is_integer() else repr(float(t)) for t in times)


MARGIN = ("log partial hazard",)


def checked(times: Any, hazard: Any, label: str) -> tuple[Array, Array]:
    """The times and the baseline hazard at each, as finite arrays."""
    at, y = np.asarray(times, np.float64), np.asarray(hazard, np.float64)
    if not len(at) or at.shape != y.shape or not (np.isfinite(at).all() and np.isfinite(y).all()):
        raise UnsupportedModelError(f"The baseline of this {label} must have a finite hazard at each of its times.")
    return at, y
