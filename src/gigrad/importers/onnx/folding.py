"""Operators on constants alone, computed when the model is read, in the type of the constants."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .proto import Operator, unsupported
from .reshaping import ints
from .values import Fixed

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide, "Sqrt": np.sqrt, "Exp": np.exp,
    "Log": np.log, "Neg": np.negative, "Abs": np.abs, "Reciprocal": np.reciprocal, "Pow": np.power,
    "Not": np.logical_not, "And": np.logical_and, "Or": np.logical_or, "Less": np.less, "Greater": np.greater,
    "LessOrEqual": np.less_equal, "GreaterOrEqual": np.greater_equal, "Equal": np.equal, "Where": np.where,
    "MatMul": np.matmul,
}  # fmt: skip
_REDUCED: dict[str, Callable[..., Any]] = {
    "ReduceSum": np.sum, "ReduceMean": np.mean, "ReduceProd": np.prod, "ReduceMax": np.max, "ReduceMin": np.min,
}  # fmt: skip
FOLDED = {*_FUNCTIONS, *_REDUCED}
"""The operators that are computed where all that they read is constant."""


def folded(operator: Operator, values: Sequence[Fixed]) -> Fixed:
    """The result of an operator on constants."""
    repeated = any(v.repeated for v in values)
    with np.errstate(all="ignore"):
        if operator.kind in _FUNCTIONS:
            return Fixed(np.asarray(_FUNCTIONS[operator.kind](*(v.array for v in values))), repeated)
        array = values[0].array
        axes = tuple(a % array.ndim for a in ints(operator, values, 1, "axes")) or None
        if repeated and (axes is None or 0 in axes):
            raise unsupported(f"{operator.kind} over the rows")
        keep = bool(operator.get("keepdims", 1))
        return Fixed(np.asarray(_REDUCED[operator.kind](array, axis=axes, keepdims=keep)), repeated)
