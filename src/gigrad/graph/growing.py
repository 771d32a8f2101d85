"""Trees built by importers split by split: for bins, points of a scorecard, tables, votes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .assembly import Tree
from .node import Array


@dataclass(frozen=True, eq=False)
class Edge:
    """A number that a split compares with; the fields are those of a `Tree`, for one node."""

    threshold: float
    equal: tuple[float, float] | None = None
    single: bool = False
    place: float = np.nan

    @classmethod
    def below(cls, number: float) -> Edge:
        """The edge of `x < number`: the number itself goes right."""
        return cls(float(np.nextafter(number, -np.inf)), (number, number))


class Described(Protocol):
    """Splits described by arrays, as in a `TreeEnsemble`."""

    @property
    def threshold(self) -> Array: ...
    @property
    def equal_low(self) -> Array: ...
    @property
    def equal_high(self) -> Array: ...
    @property
    def single(self) -> NDArray[np.bool_]: ...
    @property
    def place(self) -> Array: ...


def edges_of(splits: Described, which: NDArray[np.int64] | slice = slice(None)) -> list[Edge]:
    """Some splits on numbers, one edge each."""
    arrays = (splits.threshold, splits.equal_low, splits.equal_high, splits.single, splits.place)
    each = zip(*(a[which].tolist() for a in arrays), strict=True)
    return [Edge(threshold, (low, high), single, place) for threshold, low, high, single, place in each]


EVERY_NUMBER = Edge(np.inf, place=np.inf)
"""An edge with all numbers on its left, infinite ones too: only missing values go right."""


@dataclass(frozen=True, eq=False)
class Branch:
    """A split: numbers up to its edge go left, or, where `codes` are given, these codes of a category."""

    column: int
    left: Part
    right: Part
    edge: Edge = EVERY_NUMBER
    codes: Sequence[int] | NDArray[np.int64] | None = None
    missing_left: bool = False


Part: TypeAlias = "Branch | ArrayLike"
"""A split with what is below it, or the value of a leaf: one number, or one for each output."""


def grown(root: Part, output: int = 0) -> Tree:
    """The tree below a split, with nodes in preorder.

    `output` is the output that it adds to, -1 where leaves have a value for each.
    """
    nodes: list[Part] = []
    children: list[list[int]] = []
    waiting: list[tuple[Part, int]] = [(root, -1)]
    while waiting:
        part, parent = waiting.pop()
        if parent >= 0:
            children[parent].append(len(nodes))
        nodes.append(part)
        children.append([])
        if isinstance(part, Branch):
            waiting += [(part.right, len(children) - 1), (part.left, len(children) - 1)]  # the left part is taken first
    edges = [part.edge if isinstance(part, Branch) and part.codes is None else Edge(0.0) for part in nodes]
    leaves = [part for part in nodes if not isinstance(part, Branch)]
    values = np.zeros((len(nodes), *np.shape(leaves[0])))
    values[[not isinstance(part, Branch) for part in nodes]] = leaves
    left, right = np.array([pair or [-1, -1] for pair in children]).T
    equal = np.array([edge.equal or (edge.threshold, edge.threshold) for edge in edges])
    return Tree(
        feature=np.array([part.column if isinstance(part, Branch) else -1 for part in nodes]),
        threshold=np.array([edge.threshold for edge in edges]),
        left=left,
        right=right,
        missing_left=np.array([isinstance(part, Branch) and part.missing_left for part in nodes]),
        values=values,
        output=output,
        categories={
            i: np.asarray(part.codes, np.int64)
            for i, part in enumerate(nodes)
            if isinstance(part, Branch) and part.codes is not None
        },
        equal=(equal[:, 0], equal[:, 1]),
        single=np.array([edge.single for edge in edges]),
        place=np.array([edge.place for edge in edges]),
    )


def halved(parts: Sequence[Part], split: Callable[[int, Part, Part], Part]) -> Part:
    """A balanced tree over parts in order; `split(k, left, right)` joins those up to part k with those beyond.

    Neighbours that are one and the same object are not split from each other.
    """

    def between(low: int, high: int) -> Part:
        if all(part is parts[low] for part in parts[low + 1 : high + 1]):
            return parts[low]
        middle = (low + high) // 2
        return split(middle, between(low, middle), between(middle + 1, high))

    return between(0, len(parts) - 1)


def chained(parts: Sequence[Part], split: Callable[[int, Part, Part], Part]) -> Part:
    """A chain over parts in order: `split(k, part, rest)` joins part k with those beyond."""
    numbered = list(enumerate(parts[:-1]))
    return reduce(lambda rest, one: split(one[0], one[1], rest), reversed(numbered), parts[-1])


def stump(column: int, threshold: float, low: ArrayLike, high: ArrayLike, output: int = -1) -> Tree:
    """A tree of one split: `low` up to the threshold, `high` beyond it."""
    return grown(Branch(column, low, high, Edge(threshold)), output)
