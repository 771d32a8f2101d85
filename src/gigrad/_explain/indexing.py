"""Indexing of an explanation: rows, features or outputs, by number, name, slice, list or mask."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from .._common import display
from .._io.tables import listed
from ..errors import InputError

Ints = NDArray[np.int64]


def is_all(key: Any) -> bool:
    return isinstance(key, slice) and key == slice(None)


def positions(key: Any, names: Sequence[Any], what: str) -> Ints:
    """The positions that an index of one axis selects: a number, name, slice, list or mask."""
    size = len(names)
    if isinstance(key, slice):
        return np.arange(size)[key]
    single = isinstance(key, (str, int, np.integer)) and not isinstance(key, bool)
    ways = "number" if isinstance(names, range) else "number, name"
    refused = InputError(f"A {what} is picked by {ways}, slice, list or mask; got {key!r}.")
    try:
        array = np.asarray([key] if single else key)
    except ValueError:  # lists of several lengths
        raise refused from None
    if array.ndim != 1 or key is None:
        raise refused
    if array.dtype == bool:
        if len(array) != size:
            raise InputError(f"A mask of {what}s must have {size} entries; it has {len(array)}.")
        return np.flatnonzero(array)
    if array.dtype.kind in "UO" and not isinstance(names, range):
        return np.array([_named(name, names, what) for name in array.tolist()], dtype=np.int64)
    if array.dtype.kind not in "iu" and array.size:
        raise refused
    index = array.astype(np.int64)
    outside = index[(index < -size) | (index >= size)]
    if len(outside):
        raise InputError(f"There are {size} {what}s, so {what} {outside[0]} does not exist.")
    return np.where(index < 0, index + size, index)


def _named(name: Any, names: Sequence[str], what: str) -> int:
    """The position of one name (or number) among `names`; an InputError if none or several have it."""
    if isinstance(name, (int, np.integer)):
        return int(positions(int(name), names, what)[0])
    found = [i for i, known in enumerate(names) if known == name]
    if len(found) != 1:
        hint = "" if found else display.near(name, names)
        raise InputError(
            f"{name!r} must be the name of one {what}; {len(found)} have it.{hint} There are {listed(names)}."
        )
    return found[0]


def table_rows(data: Any, index: Ints) -> Any:
    """Some rows of a raw table, in its own library."""
    if data is None or isinstance(data, np.ndarray):
        return None if data is None else data[index]
    return nw.from_native(data, eager_only=True)[index.tolist()].to_native()


def table_columns(data: Any, index: Ints) -> Any:
    """Some columns of a raw table, in its own library."""
    if data is None or isinstance(data, np.ndarray):
        return None if data is None else data[:, index]
    frame = nw.from_native(data, eager_only=True)
    return frame.select([frame.columns[i] for i in index]).to_native()
