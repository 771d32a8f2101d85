"""Trees built by importers split by split: nodes that are added one by one, or nested branches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .assembly import Tree
from .node import Array


class Edge(NamedTuple):
    """A number that a split compares with; the fields are those of a `Tree`, for one node."""

    threshold: float
    equal: tuple[float, float] | None = None
    single: bool = False
    place: float = np.nan

    @classmethod
    def below(cls, number: float) -> Edge:
        """The edge of `x < number`, as one of `x <= threshold`: the number itself goes right."""
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
_NO_EDGE = Edge(0.0)  # of leaves and of splits by category


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


class Nodes:
    """The nodes of a tree, added one by one.

    Children are given by their numbers and may be added before or after their parents. A node may have several parents.
    """

    def __init__(self) -> None:
        self.column: list[int] = []  # -1 for a leaf
        self.edge: list[Edge] = []
        self.children: list[tuple[int, int]] = []
        self.missing_left: list[bool] = []
        self.codes: dict[int, Sequence[int] | NDArray[np.int64]] = {}
        self.values: dict[int, ArrayLike] = {}

    @classmethod
    def of(cls, tree: Tree) -> Nodes:
        """The nodes of a tree, under their numbers, to add others to."""
        out, size = cls(), len(tree.feature)
        low, high = (tree.threshold, tree.threshold) if tree.equal is None else tree.equal
        place = np.full(size, np.nan) if tree.place is None else tree.place
        arrays = (tree.threshold, low, high, np.broadcast_to(tree.single, size), place)
        out.edge = [Edge(t, (a, b), *rest) for t, a, b, *rest in zip(*(a.tolist() for a in arrays), strict=True)]
        out.column, out.missing_left = tree.feature.tolist(), tree.missing_left.tolist()
        out.children = list(zip(tree.left.tolist(), tree.right.tolist(), strict=True))
        out.codes = dict(tree.categories or {})
        out.values = {i: tree.values[i] for i in np.flatnonzero(tree.feature < 0).tolist()}
        return out

    def __len__(self) -> int:
        return len(self.column)

    def leaf(self, value: ArrayLike, at: int | None = None) -> int:
        """Add a leaf, or give the leaf `at` another value; returns its number."""
        node = self._put(at, -1, _NO_EDGE, (-1, -1), False)
        self.values[node] = value
        return node

    def split(
        self,
        column: int,
        left: int,
        right: int,
        edge: Edge = EVERY_NUMBER,
        codes: Sequence[int] | NDArray[np.int64] | None = None,
        missing_left: bool = False,
        at: int | None = None,
    ) -> int:
        """Add a split with the fields of a `Branch`, or replace the node `at` by it; returns its number."""
        node = self._put(at, column, edge if codes is None else _NO_EDGE, (left, right), missing_left)
        self.values.pop(node, None)
        if codes is not None:
            self.codes[node] = codes
        return node

    def _put(self, at: int | None, column: int, edge: Edge, children: tuple[int, int], missing_left: bool) -> int:
        """Append a split, or write it at the number `at` that was reserved for it; returns its number."""
        if at is None:
            self.column.append(column)
            self.edge.append(edge)
            self.children.append(children)
            self.missing_left.append(missing_left)
            return len(self.column) - 1
        self.column[at], self.edge[at], self.children[at] = column, edge, children
        self.missing_left[at] = missing_left
        return at

    def tree(self, output: int = 0, root: int | None = None) -> Tree:
        """The tree, whose root is the first node.

        `output` is the output that it adds to, -1 where leaves have a value for each. If all nodes were added after
        their children, `root` is the number of the root: nodes are then numbered from there down to the first one.
        """
        order = range(len(self)) if root is None else range(root, -1, -1)
        number = {node: i for i, node in enumerate(order)}
        edges = [self.edge[node] for node in order]
        equal = np.array([edge.equal or (edge.threshold, edge.threshold) for edge in edges])
        children = np.array([[number.get(c, -1) for c in self.children[node]] for node in order])
        leaves = {number[node]: value for node, value in self.values.items() if node in number}
        values = np.zeros((len(order), *np.shape(next(iter(leaves.values())))))
        values[list(leaves)] = list(leaves.values())
        codes = {number[node]: each for node, each in self.codes.items() if node in number}
        return Tree(
            feature=np.array([self.column[node] for node in order]),
            threshold=np.array([edge.threshold for edge in edges]),
            left=children[:, 0],
            right=children[:, 1],
            missing_left=np.array([self.missing_left[node] for node in order]),
            values=values,
            output=output,
            categories={node: np.asarray(codes[node], np.int64) for node in sorted(codes)},
            equal=(equal[:, 0], equal[:, 1]),
            single=np.array([edge.single for edge in edges]),
            place=np.array([edge.place for edge in edges]),
        )


def grown(root: Part, output: int = 0) -> Tree:
    """The tree below a split, with nodes in preorder; `output` as in `Nodes.tree`."""
    parts: list[Part] = []
    children: list[list[int]] = []
    waiting: list[tuple[Part, int]] = [(root, -1)]
    while waiting:
        part, parent = waiting.pop()
        if parent >= 0:
            children[parent].append(len(parts))
        parts.append(part)
        children.append([])
        if isinstance(part, Branch):
            waiting += [(part.right, len(children) - 1), (part.left, len(children) - 1)]  # the left part is taken first
    nodes = Nodes()
    for part, below in zip(parts, children, strict=True):
        if isinstance(part, Branch):
            nodes.split(part.column, below[0], below[1], part.edge, part.codes, part.missing_left)
        else:
            nodes.leaf(part)
    return nodes.tree(output)


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
