"""The paths to explain, from starts to ends: a population or pair by pair, in blocks that fit in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from ..graph import Array, Input, Node, TreeEnsemble, topological, value_of
from . import limits

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

WHOLE = np.array([0.0, 1.0])
"""The edges of a path whose credit is not split by time."""


class KnownStarts(WeakKeyDictionary[Node, Array]):
    """What nodes give at the starts of some paths, as far as it was computed: an explainer's calls share it.

    One that is pickled begins anew.
    """

    def __reduce__(self) -> tuple[type[KnownStarts], tuple[()]]:
        return KnownStarts, ()


class Ends:
    """Scores and tree outputs at all starts and ends of some paths, computed once and shared."""

    starts: Array
    ends: Array

    @cached_property
    def at_starts(self) -> KnownStarts:
        """What nodes give at the starts."""
        return KnownStarts()

    def share_starts(self, known: KnownStarts) -> None:
        """Use, and add to, what is known of the same starts already."""
        self.__dict__["at_starts"] = known

    def known(self, output: Node, source: Input) -> tuple[dict[Node, Array], dict[Node, Array]]:
        """The rows of all starts and of all ends, and the outputs there of the trees below `output` that read them."""
        at_starts: dict[Node, Array] = {source: self.starts}
        at_ends: dict[Node, Array] = {source: self.ends}
        for tree in topological(output):
            if isinstance(tree, TreeEnsemble) and tree.source is source:
                if tree not in self.at_starts:
                    self.at_starts[tree] = tree.forward(self.starts)
                if tree not in self._at_ends:
                    self._at_ends[tree] = tree.forward(self.ends)
                at_starts[tree], at_ends[tree] = self.at_starts[tree], self._at_ends[tree]
        return at_starts, at_ends

    def scores(self, output: Node, source: Input) -> tuple[Array, Array]:
        """The graph's own score of all starts and of all ends, (m, k) and (n, k): computed once."""
        if output not in self._scores:
            starts, ends = (value_of(output, known) for known in self.known(output, source))
            self._scores[output] = starts, ends
        return self._scores[output]

    def tell(self, output: Node, starts: Array, ends: Array) -> None:
        """Store scores that are known already, so that `scores` does not compute them again."""
        self._scores[output] = starts, ends

    @cached_property
    def _scores(self) -> dict[Node, tuple[Array, Array]]:
        return {}

    @cached_property
    def _at_ends(self) -> dict[Node, Array]:
        return {}


@dataclass(frozen=True, eq=False)
class Population(Ends):
    """Every end against all starts: the mean credit, by weight.

    Attributes
    ----------
    starts : (m, p)
    weights : (m,)
        They sum to 1.
    ends : (n, p)
    """

    starts: Array
    weights: Array
    ends: Array

    def base(self, scores: Array) -> Array:
        """The base value of every end, (n, k): the weighted mean of the scores (m, k) of the starts."""
        return np.repeat((self.weights @ scores)[None], len(self.ends), axis=0)

    def rows(self, some: Ints) -> Population:
        """The paths to some of the ends."""
        return Population(self.starts, self.weights, self.ends[some])

    @property
    def count(self) -> int:
        """How many paths there are."""
        return len(self.ends) * len(self.starts)

    def blocks(self, size: int, categories: Bools) -> Iterator[Block]:
        """All paths, at most `size` at a time."""
        each = len(self.starts)
        for first in range(0, len(self.ends) * each, size):
            path = np.arange(first, min(first + size, len(self.ends) * each))
            row, start = path // each, path % each
            yield Block(self.starts[start], self.ends[row], start, row, self.weights[start], categories, each)


def distinct(starts: Array, weights: Array) -> tuple[Ints, Array] | None:
    """The first of each set of equal starts (m, p), in order, and the sum of their weights; None if most are distinct.

    The paths from equal starts are the same, so that the mean credit is the same too, up to rounding.
    """
    place: dict[bytes, int] = {}
    which = np.array([place.setdefault(row.tobytes(), len(place)) for row in starts + 0.0], np.int64)  # no -0.0
    if len(place) > limits.MERGED_SHARE * len(starts):
        return None
    first = np.unique(which, return_index=True)[1]
    return first, np.asarray(np.bincount(which, weights), np.float64)


@dataclass(frozen=True, eq=False)
class Pairs(Ends):
    """Every end against the start of the same row; both (n, p)."""

    starts: Array
    ends: Array

    def base(self, scores: Array) -> Array:
        """The base value of every end, (n, k): the score of its own start."""
        return scores

    def rows(self, some: Ints) -> Pairs:
        """The paths to some of the ends."""
        return Pairs(self.starts[some], self.ends[some])

    @property
    def count(self) -> int:
        """How many paths there are."""
        return len(self.ends)

    def blocks(self, size: int, categories: Bools) -> Iterator[Block]:
        """All paths, at most `size` at a time."""
        for first in range(0, len(self.ends), size):
            row = np.arange(first, min(first + size, len(self.ends)))
            yield Block(self.starts[row], self.ends[row], row, row, np.ones(len(row)), categories)


@dataclass(frozen=True, eq=False)
class Chosen(Ends):
    """A selection of paths; their credit is added to the rows at which they end.

    Attributes
    ----------
    starts : (n, p)
        One for each path.
    ends : (rows, p)
        The ends of all rows.
    row : (n,)
        The row of each path's end.
    weights : (n,)
    references : int
        The number of paths whose mean is the row's credit, picked or not.
    """

    starts: Array
    ends: Array
    row: Ints
    weights: Array
    references: int = 1

    @classmethod
    def of(cls, ends: Array, parts: Sequence[Block]) -> Chosen:
        """The paths of some blocks, to some of `ends`."""
        if not parts:
            return cls(ends[:0], ends, np.zeros(0, np.int64), np.zeros(0))
        starts, row, weight = (np.concatenate([getattr(b, f) for b in parts]) for f in ("starts", "row", "weight"))
        return cls(starts, ends, row, weight, parts[0].references)

    @property
    def count(self) -> int:
        """How many paths there are."""
        return len(self.row)

    def blocks(self, size: int, categories: Bools) -> Iterator[Block]:
        """All paths, at most `size` at a time."""
        for first in range(0, len(self.row), size):
            path = np.arange(first, min(first + size, len(self.row)))
            row = self.row[path]
            yield Block(self.starts[path], self.ends[row], path, row, self.weights[path], categories, self.references)


Paths = Population | Pairs


@dataclass(frozen=True, eq=False)
class Block:
    """Some paths worked on together.

    Attributes
    ----------
    starts, ends : (n, p)
    start, row : (n,)
        Where a path's start and end are in the lists of all starts and ends; its credit counts for the latter.
    weight : (n,)
        Its weight in that mean.
    categories : (p,)
        The columns that change at once.
    references : int
        The number of paths whose mean is the row's credit.
    """

    starts: Array
    ends: Array
    start: Ints
    row: Ints
    weight: Array
    categories: Bools
    references: int = 1

    def __len__(self) -> int:
        return len(self.row)

    def __getitem__(self, index: Ints) -> Block:
        return Block(
            self.starts[index],
            self.ends[index],
            self.start[index],
            self.row[index],
            self.weight[index],
            self.categories,
            self.references,
        )

    @cached_property
    def jumping(self) -> Bools:
        """Where a column changes at once, half-way, (n, p): categories, and where either end is not finite."""
        finite = np.isfinite(self.starts) & np.isfinite(self.ends)
        same = (self.starts == self.ends) | (np.isnan(self.starts) & np.isnan(self.ends))
        return np.asarray((self.categories | ~finite) & ~same)

    @cached_property
    def move(self) -> Array:
        """How far each column moves, (n, p); zero for those that jump."""
        finite = np.isfinite(self.starts) & np.isfinite(self.ends) & ~self.categories
        out = np.zeros_like(self.starts)
        np.subtract(self.ends, self.starts, out=out, where=finite)
        return out

    def at(self, path: Ints, time: Array, late: Bools) -> Array:
        """Rows (len(path), p) of paths at given times; jumping columns hold the end's value if `late`."""
        starts, ends = self.starts[path], self.ends[path]
        moving = starts + time[:, None] * self.move[path]
        moving = np.where((time == 1.0)[:, None], ends, moving)  # the end itself, not a rounding of it
        return np.where(self.jumping[path], np.where(late[:, None], ends, starts), moving)
