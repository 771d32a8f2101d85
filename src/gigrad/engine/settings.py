"""What the engine may be told, and what it gives back."""

from __future__ import annotations

from dataclasses import dataclass

from ..graph import Array


@dataclass(frozen=True)
class Settings:
    """How to compute.

    Attributes
    ----------
    tol : float
        Largest error of a credit, relative to the larger of |prediction| and |base|.
    n_threads : int or None
        None uses every core this process may run on.
    seed : int
        For corners of so many variables that permutations are sampled.
    block : int
        Pairs that the mixed engine handles at once: what bounds its memory.
    """

    tol: float = 1e-6
    n_threads: int | None = None
    seed: int = 0
    block: int = 256


@dataclass(frozen=True, eq=False)
class Credits:
    """Credits (n, columns, outputs) and the estimated largest error of each row's, (n, outputs)."""

    values: Array
    error: Array
