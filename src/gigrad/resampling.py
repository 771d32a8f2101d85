"""Bootstrap weights, and credits pair by pair: what is needed to see how an answer depends on who was in the sample."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from .engine import Pairs, Settings, attribute
from .graph import Array, Input, Node, value_of

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


def credits_by_start(
    node: Node, source: Input, starts: Array, ends: Array, settings: Settings
) -> Iterator[tuple[slice, Array, Array]]:
    """Credits of every end against every start, some ends at a time; the error of their means is the caller's to judge.

    Yields
    ------
    slice of the ends
    credits : (ends in the slice, starts, columns)
    error : (ends in the slice, starts)
    """
    size = max(1, BLOCK // len(starts))
    settings = replace(settings, quiet=True)
    at_starts, at_ends = (value_of(node, {source: rows}) for rows in (starts, ends))
    for begin in range(0, len(ends), size):
        part = slice(begin, min(begin + size, len(ends)))
        count = part.stop - part.start
        pairs = Pairs(np.tile(starts, (count, 1)), np.repeat(ends[part], len(starts), axis=0))
        pairs.tell(node, np.tile(at_starts, (count, 1)), np.repeat(at_ends[part], len(starts), axis=0))
        credit = attribute(node, source, pairs, settings)
        shape = (count, len(starts))
        yield part, credit.values[:, :, 0].reshape(*shape, -1), credit.error[:, 0].reshape(shape)
