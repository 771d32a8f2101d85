"""Sets of category codes as bits: bit `c % 32` of word `c // 32` is set if code `c` is in the set."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def pack(codes: NDArray[Any]) -> NDArray[np.uint32]:
    """The words of the set of `codes`, none of them negative."""
    codes = np.asarray(codes, np.int64)
    out = np.zeros(int(codes.max(initial=-1)) // 32 + 1, np.uint32)
    np.bitwise_or.at(out, codes // 32, np.uint32(1) << (codes % 32).astype(np.uint32))
    return out


def unpack(words: NDArray[np.uint32]) -> NDArray[np.int64]:
    """The codes of a set, in ascending order."""
    return np.flatnonzero(np.unpackbits(np.ascontiguousarray(words).view(np.uint8), bitorder="little"))


def contains(words: NDArray[np.uint32], codes: NDArray[Any]) -> NDArray[np.bool_]:
    """Whether each code belongs to the set; negative codes and those beyond its words do not."""
    codes = np.asarray(codes, np.int64)
    inside = (codes >= 0) & (codes < 32 * len(words))
    out = np.zeros(codes.shape, bool)
    known = codes[inside]
    out[inside] = (words[known // 32] >> (known % 32).astype(np.uint32)) & np.uint32(1) == 1
    return out
