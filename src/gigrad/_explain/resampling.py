"""Bootstrap weights, and credits of every pair, from which intervals over resampled rows are computed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .._common.progress import part as stage
from ..engine import Pairs, Settings
from ..graph import Array

if TYPE_CHECKING:
    from .scorer import Scorer

BLOCK = 16_384
"""Pairs explained at once: bounds memory at about this many rows of credits."""


def bootstrap_weights(weights: Array, replicates: int, random: np.random.Generator) -> Array:
    """Weights of `replicates` samples drawn with replacement, (replicates, rows), each summing to 1.

    Rows are drawn with equal chances and keep their weights, as a new sample from the same source would.
    """
    rows = len(weights)
    out: Array = random.multinomial(rows, np.full(rows, 1.0 / rows), size=replicates) * weights
    total = out.sum(axis=1, keepdims=True)
    # A draw with only rows of weight 0 cannot be normalised; the original sample replaces it.
    return np.where(total > 0, out / np.where(total > 0, total, 1.0), weights)


class PairErrors(NamedTuple):
    """How far off the credits of pairs may be, (ends, starts): by quadrature, and by sampled corners."""

    plain: Array
    sampled: Array

    def of_means(self, weights: Array) -> Array:
        """The error of means over starts, (ends, samples), by weights (samples, starts)."""
        return self.plain @ weights.T + np.sqrt(CARE * (self.sampled**2 @ (weights**2).T))


CARE = 1.2
"""Pairs are sampled independently, so their errors add up in squares; a bound also has a part that is no quantile of a
sample and does not. This safety factor covers it."""


def credits_by_start(
    scorer: Scorer, starts: Array, ends: Array, settings: Settings
) -> Iterator[tuple[slice, Array, PairErrors]]:
    """Credits of every end against every start, in blocks of ends; the caller checks the error of their means.

    Yields
    ------
    slice of the ends
    credits : (ends in the slice, starts, columns)
    errors : PairErrors
    """
    size = max(1, BLOCK // len(starts))
    # The final result is a mean over all starts, so the error allowed for each pair is larger by sqrt(starts).
    settings = replace(settings, quiet=True, corner_tol=min(settings.corner_tol * len(starts) ** 0.5, 0.5))
    at_starts, at_ends = (scorer.evaluated(rows) for rows in (starts, ends))
    for begin in range(0, len(ends), size):
        part = slice(begin, min(begin + size, len(ends)))
        count = part.stop - part.start
        pairs = Pairs(np.tile(starts, (count, 1)), np.repeat(ends[part], len(starts), axis=0))
        pairs.tell(scorer.node, np.tile(at_starts, (count, 1)), np.repeat(at_ends[part], len(starts), axis=0))
        with stage(part.start / len(ends), part.stop / len(ends)):
            credit = scorer.credit(pairs, settings)
        shape = (count, len(starts))
        sampled = np.broadcast_to(credit.sampled, credit.error.shape)
        errors = PairErrors(*(e[:, 0].reshape(shape) for e in (credit.error - sampled, sampled)))
        yield part, credit.values[:, :, 0].reshape(*shape, -1), errors
