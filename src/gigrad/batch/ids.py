"""Missing and duplicate ids, detected before anything is written."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..errors import IdWarning, InputError, warn
from .sources import Piece, Source

IdPolicy = Literal["warn", "fail", "allow"]
"""What to do about missing or duplicate ids: warn once, refuse the table, or do not check."""


@dataclass(frozen=True)
class Ids:
    """Counts of missing and duplicate ids of a table.

    Attributes
    ----------
    missing : int
        Rows with an empty id.
    repeated : int
        Rows whose id an earlier row has, too.
    examples : tuple of str
        One of each, for a message: the row's number, never the id itself.
    """

    missing: int = 0
    repeated: int = 0
    examples: tuple[str, ...] = ()


@dataclass
class IdWatch:
    """Collects hashes of the ids of pieces, 16 bytes a row, to find duplicates."""

    columns: Sequence[str]
    missing: int = 0
    first_missing: int = -1
    hashes: list[NDArray[np.uint64]] = field(default_factory=list)
    numbers: list[NDArray[np.int64]] = field(default_factory=list)

    def see(self, piece: Piece) -> None:
        """Add the ids of a piece."""
        cells = [piece.table.column(name).to_pylist() for name in self.columns]
        digests = bytearray()
        numbers = np.asarray(piece.numbers, np.int64)
        present = np.ones(len(numbers), bool)
        for i, row in enumerate(zip(*cells, strict=True)):
            if any(_is_missing(v) for v in row):
                present[i] = False
                continue
            digests += hashlib.blake2b(repr(row).encode("utf-8", "surrogatepass"), digest_size=16).digest()
        empty = int((~present).sum())
        if empty and self.first_missing < 0:
            self.first_missing = int(numbers[int(np.argmin(present))])
        self.missing += empty
        self.hashes.append(np.frombuffer(bytes(digests), np.uint64).reshape(-1, 2))
        self.numbers.append(numbers[present])

    def found(self) -> Ids:
        """The counts of missing and duplicate ids over all pieces."""
        examples = [f"row {self.first_missing} has none"] if self.missing else []
        repeated = 0
        if self.hashes:
            hashes, numbers = np.concatenate(self.hashes), np.concatenate(self.numbers)
            order = np.lexsort((numbers, hashes[:, 1], hashes[:, 0]))
            same = (hashes[order][1:] == hashes[order][:-1]).all(axis=1)
            repeated = int(same.sum())
            if repeated:
                at = np.flatnonzero(same)
                first = at[np.argmin(numbers[order[at + 1]])]
                examples.append(f"row {numbers[order[first + 1]]} has that of row {numbers[order[first]]}")
        return Ids(self.missing, repeated, tuple(examples))


def look_at_ids(source: Source, columns: Sequence[str], rows: int) -> Ids:
    """The counts of missing and duplicate ids, from a pass over the id columns alone."""
    watch = IdWatch(columns)
    for piece in source.pieces(list(dict.fromkeys(columns)), rows):
        watch.see(piece)
    return watch.found()


def act_on(found: Ids, policy: IdPolicy, path: Any) -> None:
    """Refuse the table or warn, as the policy says."""
    if not found.missing and not found.repeated:
        return
    where = f" ({', '.join(found.examples)})" if found.examples else ""
    said = (
        f"The ids of {path} must name each row once: {found.missing:,} rows have none and {found.repeated:,} repeat "
        f"an earlier one{where}."
    )
    if policy == "fail":
        raise InputError(f"{said} Correct the table, or permit it with ids warn or allow (--ids).")
    warn(f"{said} With ids fail (--ids) this is an error, with ids allow it is permitted.", IdWarning)


def checked_policy(asked: Any) -> IdPolicy:
    """What to do about ids that repeat or are missing: an InputError unless it is known."""
    if asked not in ("warn", "fail", "allow"):
        raise InputError(f'ids must be "warn", "fail" or "allow"; got {asked!r}.')
    policy: IdPolicy = asked
    return policy


def _is_missing(value: Any) -> bool:
    return value is None or value == "" or value != value
