"""Recomputation of inaccurate paths with tighter settings."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...graph import Array
from .. import limits
from .walk import PathCredits, Plan, walk


def improve(plan: Plan, walked: PathCredits, allowed: Array) -> PathCredits:
    """The credits with the worst paths of inaccurate rows recomputed with tighter settings, where that is better.

    `allowed` (rows, k) is the error that each row's credits may have. Corners that are sampled later are the same in
    every computation.
    """
    block, credit, error = walked.block, walked.credit.copy(), walked.error.copy()
    for turn in range(1, limits.RETRIES + 1):
        mean, share = np.zeros_like(allowed), np.zeros((len(allowed), 1))
        np.add.at(mean, block.row, error * block.weight[:, None])
        np.add.at(share, block.row, block.weight[:, None])
        over = np.asarray((mean > allowed * share).any(axis=1))
        worth = error > np.maximum(0.5 * allowed[block.row], limits.FINEST_ERROR * walked.tallest)
        again = np.nonzero(over[block.row] & worth.any(axis=1))[0]
        if not len(again):
            break
        some = block[again]
        new = walk(plan, some, allowed[some.row] * 8.0**-turn, careful=True)
        had, has = error[again].max(axis=1), new.error.max(axis=1)
        better = has < had
        credit[again[better]], error[again[better]] = new.credit[better], new.error[better]
        if not (has < 0.5 * had).any():  # finer panels do not help, for example where close crossings are merged
            break
    return replace(walked, credit=credit, error=error)
