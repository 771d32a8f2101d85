"""What holds for the whole process, whichever model is explained."""

from __future__ import annotations

from . import kernels
from .errors import InputError


class Config:
    """Settings of this process: `gigrad.config` is the only one.

    Examples
    --------
    >>> import gigrad as gig
    >>> used = gig.config.simd
    >>> gig.config.simd = "portable"
    >>> gig.config.simd
    'portable'
    >>> gig.config.simd = used
    """

    __slots__ = ("_progress",)

    def __init__(self) -> None:
        self._progress: bool | None = None

    @property
    def simd(self) -> str:
        """Which walk through the trees runs; at first the fastest one that this processor can.

        Set it to one of `simd_choices` to have another from the next call on, in every thread. Answers differ by
        rounding alone, so that the reason to set it is to compare.
        """
        return kernels.get_simd()

    @simd.setter
    def simd(self, name: str) -> None:
        if name not in self.simd_choices:
            raise InputError(
                f"config.simd must be one of those this processor can run ({', '.join(self.simd_choices)}); "
                f"it is {name!r}."
            )
        kernels.set_simd(name)

    @property
    def simd_choices(self) -> tuple[str, ...]:
        """The walks that this processor can run, the fastest first.

        "avx512" and "avx2" take 32 and 16 pairs through a tree at once, "lanes" does the same in plain C++, and
        "portable" goes node by node.
        """
        return tuple(kernels.simd_choices())

    @property
    def progress(self) -> bool | None:
        """Whether long work shows how far it is: True, False, or None for terminals and notebooks alone."""
        return self._progress

    @progress.setter
    def progress(self, show: bool | None) -> None:
        if show not in (None, True, False):
            raise InputError(f"config.progress must be True, False or None; got {show!r}.")
        self._progress = show

    def __repr__(self) -> str:
        return f"Config(simd={self.simd!r}, progress={self.progress!r})"


config = Config()
