"""Operations on tree ensembles: a weighted sum as one ensemble, and splits replaced by sets of codes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .assembly import DTYPES, join
from .sets import pack
from .trees import TreeEnsemble


def weighted_sum(parts: Sequence[TreeEnsemble], weights: Sequence[float]) -> TreeEnsemble:
    """`sum of weight * part` as one sum of trees; all parts read the same node and have the same outputs."""
    first = parts[0]
    if any(p.source is not first.source or p.width != first.width for p in parts):
        raise InputError("weighted_sum needs trees that read the same node and have the same number of outputs.")
    pairs = list(zip(parts, weights, strict=True))
    arrays = join([{name: getattr(p, name) for name in DTYPES} | {"values": w * p.values} for p, w in pairs])
    return TreeEnsemble(source=first.source, **arrays, base=np.sum([w * p.base for p, w in pairs], axis=0))


def words_of(trees: TreeEnsemble, category_set: int) -> NDArray[np.uint32]:
    """The bits of one category set."""
    return trees.set_words[trees.set_start[category_set] : trees.set_start[category_set + 1]]


def more_sets(trees: TreeEnsemble, codes: Sequence[NDArray[np.int64]]) -> dict[str, NDArray[Any]]:
    """The category sets of trees and, after these, one for each entry of `codes`, as attributes of a TreeEnsemble."""
    words = [pack(each) for each in codes]
    ends = trees.set_start[-1] + np.cumsum([len(w) for w in words], dtype=np.int64)
    starts = np.concatenate([trees.set_start, ends]).astype(np.int32)
    return {"set_start": starts, "set_words": np.concatenate([trees.set_words, *words])}


def with_sets(trees: TreeEnsemble, left: Mapping[int, NDArray[np.bool_]], **changes: Any) -> TreeEnsemble:
    """The same trees with category splits at some nodes: `left[node]` marks the codes that go left there.

    `changes` are other attributes to replace.
    """
    if not left:
        return replace(trees, **changes)
    nodes = np.array(list(left), np.int64)
    blank = {"threshold": 0.0, "equal_low": np.nan, "equal_high": np.nan, "single": False, "place": np.nan}
    arrays: dict[str, Any] = {name: getattr(trees, name).copy() for name in (*blank, "category_set")}
    for name, value in blank.items():
        arrays[name][nodes] = value
    arrays |= more_sets(trees, [np.nonzero(marks)[0] for marks in left.values()])
    arrays["category_set"][nodes] = len(trees.set_start) - 1 + np.arange(len(nodes))
    return replace(trees, **arrays, **changes)
