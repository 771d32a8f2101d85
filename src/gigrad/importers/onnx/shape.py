"""The shape of a tensor with one axis for rows, for operators that only rearrange numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from .proto import unsupported


@dataclass(frozen=True)
class Shape:
    """The sizes of the axes before and after the axis of the rows.

    The numbers of one row are columns, numbered in the order of these axes, the last one fastest. Operators may join
    the rows with other axes: the axis then has `lead * rows * trail` entries, and `lead` and `trail` count as axes
    right before and after the rows.
    """

    before: tuple[int, ...] = ()
    after: tuple[int, ...] = ()
    lead: int = 1
    trail: int = 1

    @property
    def size(self) -> int:
        """The number of columns: numbers of one row."""
        return prod(self.before) * self.lead * self.trail * prod(self.after)

    @property
    def axis(self) -> int:
        """The axis of the rows."""
        return len(self.before)

    @property
    def rank(self) -> int:
        return len(self.before) + 1 + len(self.after)

    @property
    def joined(self) -> bool:
        return self.lead * self.trail != 1

    @property
    def plain(self) -> bool:
        """Whether this is a table: rows, then columns."""
        return not self.before and len(self.after) == 1 and not self.joined

    @property
    def sizes(self) -> tuple[int | None, ...]:
        """The axes with None for the rows."""
        return (*self.before, None, *self.after)

    def __str__(self) -> str:
        rows = "rows" if not self.joined else f"{self.lead * self.trail} rows"
        return "(" + ", ".join([*map(str, self.before), rows, *map(str, self.after)]) + ")"

    def place(self, operator: str, axis: int) -> int:
        """The index of an axis, which may be negative; raises if there is no such axis."""
        if not -self.rank <= axis < self.rank:
            raise unsupported(f"{operator} along axis {axis} of a tensor {self}")
        return axis % self.rank

    def numbered(self, operator: str) -> NDArray[np.int64]:
        """The numbers of the columns as a tensor, in which the axis of the rows has the size 1."""
        if self.joined:
            raise unsupported(f"{operator} of a tensor {self}, whose rows are joined with others,")
        return np.arange(self.size).reshape(*self.before, 1, *self.after)

    def reshaped(self, wanted: Sequence[int]) -> Shape:
        """The shape after Reshape: -1 is inferred, 0 keeps the size of an axis."""
        own = [*self.before, -1, *self.after]
        kept = [i for i, size in enumerate(wanted) if size == 0 and i < len(own)]
        sizes = [own[i] if i in kept else int(size) for i, size in enumerate(wanted)]
        found: Shape | None = None
        if self.axis in kept:
            found = self._around(sizes, self.axis)
        elif sizes.count(-1) == 1:
            found = self._split(sizes, sizes.index(-1))
        elif -1 not in sizes:  # a fixed number of rows: the axis that leaves all others as many
            fits = (i for i in range(len(sizes)) if prod(sizes[:i]) * prod(sizes[i + 1 :]) == self.size)
            found = next((s for i in fits if (s := self._split(sizes, i)) and not s.joined), None)
        if found is None or found.size != self.size:
            raise unsupported(f"Reshape of a tensor {self} to {list(wanted)}, which mixes rows,")
        return found

    def with_rows(self, sizes: Sequence[int | None]) -> Shape:
        """The shape with the given sizes, None for the axis of the rows; another size may be -1, inferred."""
        if list(sizes).count(None) != 1 or 0 in sizes:
            return self.reshaped([-1 if s is None else s for s in sizes])
        axis = list(sizes).index(None)
        found = self._around([-1 if s is None else s for s in sizes], axis)
        if self.joined and -1 not in sizes:  # the rows apart again
            apart = self._split([-1 if s is None else s for s in sizes], axis)
            found = apart if apart is not None and not apart.joined else found
        if found is None:
            raise unsupported(f"Reshape of a tensor {self} to {list(sizes)}, which mixes rows,")
        return found

    def _around(self, sizes: Sequence[int], axis: int) -> Shape | None:
        """The shape with the rows in `axis`, if that keeps them; one other size may be -1, inferred."""
        others = [s for i, s in enumerate(sizes) if i != axis]
        known = prod(s for s in others if s != -1) * self.lead * self.trail
        if others.count(-1) > 1 or not known or self.size % known:
            return None
        filled = [self.size // known if s == -1 else s for s in sizes]
        before, after = tuple(filled[:axis]), tuple(filled[axis + 1 :])
        return Shape(before, after, self.lead, self.trail) if prod(before) == prod(self.before) else None

    def _split(self, sizes: Sequence[int], axis: int) -> Shape | None:
        """The shape with the rows, joined with neighbouring axes, in the inferred axis, if that is possible."""
        before, after = tuple(sizes[:axis]), tuple(sizes[axis + 1 :])
        first, last = prod(self.before) * self.lead, self.trail * prod(self.after)
        if min((*before, *after), default=1) < 1 or first % prod(before) or last % prod(after):
            return None
        return Shape(before, after, first // prod(before), last // prod(after))
