"""Several sums of trees as one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..errors import InputError
from .assembly import moved, starts
from .trees import TreeEnsemble


def weighted_sum(parts: Sequence[TreeEnsemble], weights: Sequence[float]) -> TreeEnsemble:
    """`sum of weight * part` as one sum of trees; all parts read the same node and have the same outputs."""
    first = parts[0]
    if any(p.source is not first.source or p.width != first.width for p in parts):
        raise InputError("weighted_sum needs trees over one source with the same number of outputs.")
    nodes = starts([len(p.feature) for p in parts])
    numbers = starts([len(p.values) for p in parts])
    sets = starts([len(p.set_start) - 1 for p in parts])
    words = starts([len(p.set_words) for p in parts])
    return replace(
        first,
        feature=np.concatenate([p.feature for p in parts]),
        threshold=np.concatenate([p.threshold for p in parts]),
        left=moved([p.left for p in parts], nodes),
        right=moved([p.right for p in parts], nodes),
        missing_left=np.concatenate([p.missing_left for p in parts]),
        category_set=moved([p.category_set for p in parts], sets),
        set_start=np.concatenate(
            [[0], *(p.set_start[1:] + w for p, w in zip(parts, words.tolist(), strict=True))]
        ).astype(np.int32),
        set_words=np.concatenate([p.set_words for p in parts]),
        value=moved([p.value for p in parts], numbers),
        values=np.concatenate([w * p.values for p, w in zip(parts, weights, strict=True)]),
        roots=moved([p.roots for p in parts], nodes),
        tree_output=np.concatenate([p.tree_output for p in parts]),
        base=np.sum([w * p.base for p, w in zip(parts, weights, strict=True)], axis=0),
    )
