"""Paths that a closed form cannot do, such as those on which a column changes at once: the mixed engine walks them."""

from __future__ import annotations

import numpy as np

from ...graph import Array
from ..paths import Block, Bools, Chosen


class Rest:
    """Paths left over from blocks, collected until all of a row are known, and then computed together."""

    def __init__(self, ends: Array) -> None:
        self.ends = ends
        self._waiting: list[Block] = []

    def add(self, block: Block, rest: Bools) -> Chosen:
        """Leave over some paths of a block; gives those of all rows that the next block does not go on with."""
        waiting = [part for part in (*self._waiting, block[np.nonzero(rest)[0]]) if len(part)]
        goes_on = block.row[-1]
        self._waiting = [part[np.nonzero(part.row == goes_on)[0]] for part in waiting]
        return Chosen.of(self.ends, [part[np.nonzero(part.row != goes_on)[0]] for part in waiting])

    def last(self) -> Chosen:
        """The paths that still wait, when there are no more blocks."""
        return Chosen.of(self.ends, self._waiting)
