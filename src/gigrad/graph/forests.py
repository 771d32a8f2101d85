"""Several sums of trees as one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import InputError
from .assembly import DTYPES, join
from .trees import TreeEnsemble


def weighted_sum(parts: Sequence[TreeEnsemble], weights: Sequence[float]) -> TreeEnsemble:
    """`sum of weight * part` as one sum of trees; all parts read the same node and have the same outputs."""
    first = parts[0]
    if any(p.source is not first.source or p.width != first.width for p in parts):
        raise InputError("weighted_sum needs trees over one source with the same number of outputs.")
    pairs = list(zip(parts, weights, strict=True))
    arrays = join([{name: getattr(p, name) for name in DTYPES} | {"values": w * p.values} for p, w in pairs])
    return TreeEnsemble(source=first.source, **arrays, base=np.sum([w * p.base for p, w in pairs], axis=0))
