"""Settings of the whole process, for all models."""

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
        """The kernel that walks the trees; initially the fastest one that this processor supports.

        Set it to one of `simd_choices` to use another from the next call on, in every thread. Results differ by
        rounding alone, so that the only reason to set it is a comparison.
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

        "avx512" takes 32 pairs through a tree at once, "avx2" and, on ARM, "neon" take 16, "lanes" does the same in
        plain C++, and "portable" goes node by node.
        """
        return tuple(kernels.simd_choices())

    @property
    def progress(self) -> bool | None:
        """Whether long work shows its progress: True, False, or None for terminals and notebooks only."""
        return self._progress

    @progress.setter
    def progress(self, show: bool | None) -> None:
        if show not in (None, True, False):
            raise InputError(f"config.progress must be True, False or None; got {show!r}.")
        self._progress = show

    def __repr__(self) -> str:
        return f"Config(simd={self.simd!r}, progress={self.progress!r})"


config = Config()
