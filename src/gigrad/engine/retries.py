"""Paths whose credits may be too far off are walked again, with more care."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..graph import Array
from .jumps import EndValues

if TYPE_CHECKING:
    from .walk import Walk

FINEST = 1e-12
"""No error is asked to be below this share of the largest score on a path."""

RETRIES = 2
"""How often paths that were not accurate enough are walked again."""


def improve(walk: Walk, ends: EndValues, allowed: Array, credit: Array, lost: Array) -> None:
    """Walk the worst paths of rows that may be too far off once more, with more care; keeps what became better.

    Updates `credit` (paths, pieces, players, k) and `lost` (paths, k). Corners that are left to be sampled are the same
    in every walk.
    """
    block = walk.block
    for turn in range(1, RETRIES + 1):
        mean, share = np.zeros_like(allowed), np.zeros((len(allowed), 1))
        np.add.at(mean, block.row, lost * block.weight[:, None])
        np.add.at(share, block.row, block.weight[:, None])
        over = np.asarray((mean > allowed * share).any(axis=1))
        worth = lost > np.maximum(0.5 * allowed[block.row], FINEST * walk.tallest)
        again = np.nonzero(over[block.row] & worth.any(axis=1))[0]
        if not len(again):
            return
        some = block[again]
        new, left = walk.again(some, ends, allowed[some.row] * 8.0**-turn).credits()
        had, has = lost[again].max(axis=1), left.max(axis=1)
        better = has < had
        credit[again[better]], lost[again[better]] = new[better], left[better]
        if not (has < 0.5 * had).any():  # what is left is no matter of panels, such as crossings taken as one
            return
