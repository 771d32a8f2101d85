"""Paths that a closed form does not cover, such as those on which a column changes at once, for the mixed engine."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...graph import Array
from ..paths import Block, Bools, Chosen, Ints
from ..settings import Credits


class DeferredPaths:
    """Paths left over from blocks, collected until all of a row are known, and then computed together."""

    def __init__(self, ends: Array) -> None:
        self.ends = ends
        self._waiting: list[Block] = []

    def add(self, block: Block, rest: Bools) -> Chosen:
        """Set some paths of a block aside; returns all paths set aside for rows that are complete with this block."""
        waiting = [part for part in (*self._waiting, block[np.nonzero(rest)[0]]) if len(part)]
        goes_on = block.row[-1]
        self._waiting = [part[np.nonzero(part.row == goes_on)[0]] for part in waiting]
        return Chosen.of(self.ends, [part[np.nonzero(part.row != goes_on)[0]] for part in waiting])

    def last(self) -> Chosen:
        """The remaining paths, after the last block."""
        return Chosen.of(self.ends, self._waiting)


@dataclass(frozen=True, eq=False)
class RowTotals:
    """Credits of every end, to which those of closed forms and of walks are added in place; fields as of `Credits`."""

    values: Array
    error: Array
    finest: Array
    sampled: Array
    players: Ints

    @classmethod
    def zero(cls, ends: int, players: Ints, outputs: int) -> RowTotals:
        values = np.zeros((ends, int(players.max(initial=-1)) + 1, outputs))
        error, finest, sampled = (np.zeros((ends, outputs)) for _ in range(3))
        return cls(values, error, finest, sampled, np.zeros(ends, np.int64))

    def add(self, more: Credits) -> None:
        """Add credits that the mixed engine computed for some of the paths."""
        self.values[...] += more.values
        self.error[...] += more.error
        self.finest[...] += more.finest
        self.sampled[...] += more.sampled
        np.maximum(self.players, more.players, out=self.players)

    def credits(self) -> Credits:
        return Credits(self.values, self.error, self.finest, self.sampled, self.players)
