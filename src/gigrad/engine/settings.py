"""The settings and the result of the engine."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .. import kernels
from ..graph import Array

RECORDED = ("tol", "seed", "corner_tol")
"""The settings that can change a credit: what provenance, portable files and audit records keep."""


@dataclass(frozen=True)
class Settings:
    """How to compute.

    Attributes
    ----------
    tol : float
        Largest error of a credit, relative to the larger of |prediction| and |base|; not below rounding.
    n_threads : int or None
        None uses every core this process may run on.
    corner_tol : float
        Largest error of a row's credits from corners of so many variables that orders are sampled, relative to the
        row's largest credit. 0 enumerates every corner that can be.
    seed : int
        For those corners.
    miss : float
        The probability that a row's credits are off by more than its `error`, where corners are sampled.
    block : int
        Pairs that the mixed engine handles at once: what bounds its memory.
    players : (p,) int array or None
        The player that each column belongs to, 0, 1, ...; None makes every column a player of its own.
    quiet : bool
        No warning where the tolerance is missed: for callers that average the rows and judge the mean's error.
    careful : bool
        All terms use the mixed engine, and curves are also evaluated at the ends of panels: slow, for rows whose
        credits did not add up.
    native : bool
        Whether heads that the native core implements are integrated there; if not, in Python, for tests of the core.
    """

    tol: float = 1e-6
    n_threads: int | None = None
    corner_tol: float = kernels.DEFAULT_TARGET
    seed: int = 0
    miss: float = 1e-3
    block: int = 256
    players: NDArray[np.int64] | None = None
    quiet: bool = False
    careful: bool = False
    native: bool = True


@dataclass(frozen=True, eq=False)
class Credits:
    """Credits and bounds on their errors.

    Attributes
    ----------
    values : (n, players, outputs)
    error : (n, outputs)
        Estimated largest error of each row's credits.
    finest : (n, outputs) or 0
        The error that rounding alone may cause: the score may be far larger inside a path than at its ends.
    sampled : (n, outputs) or 0
        The part of `error` that is due to sampled corners.
    players : (n,) or 0
        How many variables change at once at the largest corner that was sampled for a row; 0 where none was.
    """

    values: Array
    error: Array
    finest: Array | float = 0.0
    sampled: Array | float = 0.0
    players: NDArray[np.int64] | int = 0
