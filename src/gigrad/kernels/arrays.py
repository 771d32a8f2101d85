"""What every call of the native core needs: arrays as it reads them, and a number of threads."""

from __future__ import annotations

import os

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Ints = NDArray[np.int64]


def threads(n_threads: int | None) -> int:
    """The number of threads to use: the given one, or every core this process may run on."""
    if n_threads is not None:
        return n_threads
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def numbers(x: Array) -> Array:
    """The array as contiguous float64, as the native core reads it; copied only where it is not."""
    return np.ascontiguousarray(x, dtype=np.float64)


def integers(x: Ints) -> Ints:
    """The array as contiguous int64, as the native core reads it; copied only where it is not."""
    return np.ascontiguousarray(x, dtype=np.int64)
