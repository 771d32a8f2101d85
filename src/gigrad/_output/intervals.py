"""Bootstrap intervals of the figures of an explanation, over rows or over references."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._common import checks
from ..errors import InputError

if TYPE_CHECKING:
    from .._explain.explanation import Explanation

Array = NDArray[np.float64]
OVER = ("rows", "references", "both")


@dataclass(frozen=True)
class Resampled:
    """The parameters of a bootstrap: what is resampled, how often, and the level of the intervals."""

    over: str
    level: float = 0.95
    draws: int = 200
    seed: int = 0

    @classmethod
    def asked(cls, e: Explanation, over: str | None, level: float = 0.95, draws: int = 200, seed: int = 0) -> Resampled:
        """The checked parameters; `over` None means rows, and references too if credits against parts were kept."""
        if over not in (None, *OVER):
            raise InputError(f"over must be one of {', '.join(map(repr, OVER))}; got {over!r}.")
        known = e.reference_parts is not None
        if over in ("references", "both") and not known:
            raise InputError(
                "Intervals over references need the credits against parts of it, and this explanation has none; "
                "explain(..., reference_parts=50) keeps them."
            )
        level, draws = checks.inside(level, "level"), checks.whole(draws, "bootstrap", least=0)
        return cls(over or ("both" if known else "rows"), level, draws, checks.seed(seed))

    def of_importance(self, e: Explanation) -> tuple[Array, Array]:
        """The interval of each mean |credit|, low and high, (p,) or (p, k); NaN where nothing can be resampled."""
        sizes = self._replicates(e, np.abs(e.values)) if len(e) and self.draws else np.zeros((0, *e.values.shape[1:]))
        return self._percentiles(sizes)

    def of_row(self, e: Explanation) -> tuple[Array, Array]:
        """The interval over references of each credit of the only row, (p,) or (p, k)."""
        moved = [shift[0] for shift in self._shifted(e)] if self.over != "rows" else []
        return self._percentiles(np.array(moved).reshape(len(moved), *e.values.shape[1:]))

    @property
    def said(self) -> str:
        """A description of the intervals, for a plot."""
        over = {"rows": "rows", "references": "references", "both": "rows and references"}[self.over]
        return f"lines: {self.level:.0%} of samples of other {over}"

    def _percentiles(self, samples: Array) -> tuple[Array, Array]:
        """The ends of the interval of the given level, of each number over all samples."""
        if not len(samples):
            nothing = np.full(samples.shape[1:], np.nan)
            return nothing, nothing
        low, high = np.quantile(samples, [(1 - self.level) / 2, (1 + self.level) / 2], axis=0)
        return low, high

    def _replicates(self, e: Explanation, size: Array) -> Array:
        """The mean |credit| in every sample, (draws, p) or (draws, p, k)."""
        n = len(e)
        random = np.random.default_rng([self.seed, 0])
        moved = self._shifted(e) if self.over != "rows" else None
        out = np.empty((self.draws, *size.shape[1:]))
        for b in range(self.draws):
            now = size if moved is None else np.abs(next(moved))
            if self.over == "references":
                out[b] = now.mean(axis=0)
            else:
                share = np.bincount(random.integers(0, n, n), minlength=n) / n
                out[b] = np.tensordot(share, now, axes=1)
        return out

    def _shifted(self, e: Explanation) -> Any:
        """Iterate over the credits (n, p) or (n, p, k) against every resampled reference."""
        parts = e.reference_parts
        if parts is not None:
            for weights in parts.drawn(self.draws, np.random.default_rng([self.seed, 1])):
                yield np.tensordot(weights, parts.credit, axes=1)
