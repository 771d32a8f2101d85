"""Checks of arguments: each rule once, with one message for a violation."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError, kind_of


def is_whole(value: Any) -> bool:
    """Whether a value is an integer, Python's or NumPy's; booleans are not."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    """Whether a value is a real number, Python's or NumPy's; booleans are not."""
    return is_whole(value) or isinstance(value, (float, np.floating))


def whole(value: Any, name: str, least: int = 1) -> int:
    """A whole number that is not below `least`."""
    if not is_whole(value) or value < least:
        wanted = {0: "a whole number, 0 or more", 1: "a positive whole number"}
        raise InputError(f"{name} must be {wanted.get(least, f'a whole number, at least {least}')}; got {value!r}.")
    return int(value)


def seed(value: Any) -> int:
    """The seed of a random generator, checked."""
    if not is_whole(value) or not 0 <= value < 2**63:
        raise InputError(f"seed must be a whole number that is not negative; got {value!r}.")
    return int(value)


def inside(value: Any, name: str) -> float:
    """A number between 0 and 1, and neither of them."""
    if not is_number(value) or not 0 < value < 1:
        raise InputError(f"{name} must lie between 0 and 1; got {value!r}.")
    return float(value)


def target(value: Any, name: str) -> float:
    """A number below 1 that is not negative."""
    if not is_number(value) or not 0 <= value < 1:
        raise InputError(f"{name} must be 0 or lie between 0 and 1; got {value!r}.")
    return float(value)


def mapping(value: Any, name: str, example: str) -> Mapping[Any, Any]:
    """The value, if it is a mapping such as a dict; else an InputError."""
    if not isinstance(value, Mapping):
        raise InputError(f"{name} must be a dict such as {example}; got {kind_of(value)}.")
    return value


def weights(values: Any, count: int, each: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    """`count` weights, scaled to sum to 1; equal ones for None. `each` is the name of a weighted item in messages."""
    if values is None:
        return np.full(count, 1.0 / count)
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"weights must be numbers, one a {each}; got {values!r:.60}.") from None
    if array.shape != (count,):
        raise InputError(f"weights must have one number a {each}, {count}; their shape is {array.shape}.")
    with np.errstate(over="ignore"):
        total = array.sum()
    if not np.isfinite(total) or (array < 0).any() or total <= 0:
        raise InputError("weights must be finite, not negative, and not all zero, and so must their sum.")
    out: np.ndarray[Any, np.dtype[np.float64]] = array / total
    return out


def library(name: Any) -> str:
    """The name of a data frame library, checked: "pandas" or "polars"."""
    if name not in ("pandas", "polars"):
        raise InputError(f'library must be "pandas" or "polars"; got {name!r}.')
    return str(name)


def file_name(path: Any, what: str, *endings: str) -> Path:
    """The path of a file to write, if its name has one of the endings; else an InputError."""
    if not isinstance(path, (str, PathLike)):
        raise InputError(f"{what} goes to a file, whose path must be text or a Path; got {kind_of(path)}.")
    if Path(path).suffix.lower() not in endings:
        instead = " For a table write to_frame().to_csv(...)." if Path(path).suffix.lower() == ".csv" else ""
        raise InputError(f"The name of {what} must end in {endings[0]}; got {path}.{instead}")
    return Path(path)
