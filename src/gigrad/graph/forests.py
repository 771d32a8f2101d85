"""Several sums of trees as one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .trees import TreeEnsemble


def weighted_sum(parts: Sequence[TreeEnsemble], weights: Sequence[float]) -> TreeEnsemble:
    """`sum of weight * part` as one sum of trees; all parts read the same node and have the same outputs."""
    first = parts[0]
    if any(p.source is not first.source or p.width != first.width for p in parts):
        raise InputError("weighted_sum needs trees over one source with the same number of outputs.")
    nodes = _starts([len(p.feature) for p in parts])
    numbers = _starts([len(p.values) for p in parts])
    sets = _starts([len(p.set_start) - 1 for p in parts])
    words = _starts([len(p.set_words) for p in parts])

    def moved(name: str, by: NDArray[Any]) -> NDArray[np.int32]:
        """The parts' numbers for `name`, counted on from part to part; negative ones mark that there is none."""
        own = [getattr(p, name) for p in parts]
        return np.concatenate([np.where(v < 0, v, v + b) for v, b in zip(own, by.tolist(), strict=True)]).astype(
            np.int32
        )

    return replace(
        first,
        feature=np.concatenate([p.feature for p in parts]),
        threshold=np.concatenate([p.threshold for p in parts]),
        left=moved("left", nodes),
        right=moved("right", nodes),
        missing_left=np.concatenate([p.missing_left for p in parts]),
        category_set=moved("category_set", sets),
        set_start=np.concatenate(
            [[0], *(p.set_start[1:] + w for p, w in zip(parts, words.tolist(), strict=True))]
        ).astype(np.int32),
        set_words=np.concatenate([p.set_words for p in parts]),
        value=moved("value", numbers),
        values=np.concatenate([w * p.values for p, w in zip(parts, weights, strict=True)]),
        roots=moved("roots", nodes),
        tree_output=np.concatenate([p.tree_output for p in parts]),
        base=np.sum([w * p.base for p, w in zip(parts, weights, strict=True)], axis=0),
    )


def _starts(sizes: Sequence[int]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
