"""Bootstrap weights, and credits pair by pair: what is needed to see how an answer depends on who was in the sample."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..engine import Pairs, Settings, attribute
from ..graph import Array, Input, Node, value_of

BLOCK = 16_384
"""Pairs explained at once: bounds memory at about this many rows of credits."""


def bootstrap_weights(weights: Array, replicates: int, random: np.random.Generator) -> Array:
    """Weights of `replicates` samples drawn with replacement, (replicates, rows), each summing to 1.

    Rows are drawn with equal chances and keep their weights, as a new sample from the same source would.
    """
    rows = len(weights)
    out: Array = random.multinomial(rows, np.full(rows, 1.0 / rows), size=replicates) * weights
    total = out.sum(axis=1, keepdims=True)
    # A draw that hits only rows of weight 0 says nothing; the whole sample stands in for it.
    return np.where(total > 0, out / np.where(total > 0, total, 1.0), weights)


class PairErrors(NamedTuple):
    """How far off the credits of pairs may be, (ends, starts): by quadrature, and by sampled corners."""

    plain: Array
    sampled: Array

    def of_means(self, weights: Array) -> Array:
        """The same for means over starts, (ends, times), by weights (times, starts)."""
        return self.plain @ weights.T + np.sqrt(CARE * (self.sampled**2 @ (weights**2).T))


CARE = 1.2
"""Samples of pairs are independent, so their errors add up in squares. What a bound has beside a quantile of the sample
does not; this covers it."""


def credits_by_start(
    node: Node, source: Input, starts: Array, ends: Array, settings: Settings
) -> Iterator[tuple[slice, Array, PairErrors]]:
    """Credits of every end against every start, some ends at a time; the error of their means is the caller's to judge.

    Yields
    ------
    slice of the ends
    credits : (ends in the slice, starts, columns)
    errors : PairErrors
    """
    size = max(1, BLOCK // len(starts))
    # What is sampled is a mean over all starts in the end, and its error that much smaller.
    settings = replace(settings, quiet=True, corner_tol=min(settings.corner_tol * len(starts) ** 0.5, 0.5))
    at_starts, at_ends = (value_of(node, {source: rows}) for rows in (starts, ends))
    for begin in range(0, len(ends), size):
        part = slice(begin, min(begin + size, len(ends)))
        count = part.stop - part.start
        pairs = Pairs(np.tile(starts, (count, 1)), np.repeat(ends[part], len(starts), axis=0))
        pairs.tell(node, np.tile(at_starts, (count, 1)), np.repeat(at_ends[part], len(starts), axis=0))
        credit = attribute(node, source, pairs, settings)
        shape = (count, len(starts))
        sampled = np.broadcast_to(credit.sampled, credit.error.shape)
        errors = PairErrors(*(e[:, 0].reshape(shape) for e in (credit.error - sampled, sampled)))
        yield part, credit.values[:, :, 0].reshape(*shape, -1), errors
