"""A path through a model by the definition: which splits it crosses and when, and the model's values in every cell.

Every split is on the side of the start or on that of the end, by the time at which it is crossed; the trees are
traversed with these sides. Smooth parts read the straight path, on which missing values, categories and nominal columns
change at one half. This is plain NumPy: nothing is shared with the kernels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..graph import Array, Graph, Node, TreeEnsemble, needed, topological
from ..graph.rewire import columns_of
from .times import HALF, UNITS, Stand, discrete_place

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Choice:
    """Which columns are discrete or nominal, by position.

    Attributes
    ----------
    discrete : mapping or None
        For each discrete column its support, None for the whole numbers: the places of its splits are computed here.
        All other splits have the places of the graph, and so do all if this is None instead of a mapping.
    nominal : set of int
    """

    discrete: Mapping[int, Sequence[float] | None] | None = None
    nominal: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Sides:
    """Sides and crossing times of a path at the splits of one ensemble; only for splits that read columns of the rows.

    Attributes
    ----------
    column : (nodes,) int
        The column of the rows; -1 where a split reads something else, and for leaves.
    start_left, end_left : (nodes,) bool
        The sides of the two ends of the path.
    time : (nodes,) int
        When the split is crossed, in units of 2^-30; only where the sides differ.
    """

    column: Ints
    start_left: Bools
    end_left: Bools
    time: Ints

    @property
    def crossed(self) -> Bools:
        return np.asarray((self.column >= 0) & (self.start_left != self.end_left))


@dataclass(frozen=True)
class Cells:
    """The n cells in which the model is evaluated.

    Attributes
    ----------
    time : (n,)
        The point of the straight path, in units of 2^-30.
    side : (n,)
        Splits crossed before this time are on the end's side, later ones on the start's, in the same units.
    past : (n, p) bool
        The columns that are past their crossings at the time `side` itself.
    met : bool
        Whether a score that equals a threshold up to rounding counts as equal, which goes left. This is so at corners,
        where a score that crosses a threshold at that very time equals it.
    """

    time: Array
    side: Array
    past: Bools
    met: bool = False

    def gone(self, time: Any, column: Any, row: Any) -> Bools:
        """Whether the crossings of columns at given times have happened in the given rows of these cells."""
        return np.asarray((time < self.side[row]) | ((time == self.side[row]) & self.past[row, column]))


class Path:
    """The path from `start` to `end`, both encoded rows (p,), as seen by `node` of a graph."""

    def __init__(self, graph: Graph, node: Node, start: Array, end: Array, choice: Choice | None = None) -> None:
        self.graph, self.start, self.end = graph, start, end
        self._orders: dict[tuple[Node, frozenset[Node]], list[Node]] = {}
        self.choice = choice or Choice(nominal=frozenset(getattr(graph.input, "nominal", ())))
        self.jumping = jumping_columns(graph, start, end, self.choice.nominal)
        self.move = np.where(self.jumping, 0.0, end - start)
        self.sides = {tree: self._sides(tree) for tree in topological(node) if isinstance(tree, TreeEnsemble)}

    def corners(self) -> dict[int, list[int]]:
        """The columns that cross or change at each time, times in order."""
        found: dict[int, set[int]] = {}
        same = (self.start == self.end) | (np.isnan(self.start) & np.isnan(self.end))
        for column in np.nonzero(self.jumping & ~same)[0].tolist():
            found.setdefault(HALF, set()).add(column)
        for sides in self.sides.values():
            for split in np.nonzero(sides.crossed)[0].tolist():
                found.setdefault(int(sides.time[split]), set()).add(int(sides.column[split]))
        return {time: sorted(found[time]) for time in sorted(found)}

    def cells(self, time: float, past: Bools) -> Cells:
        """The cells around the corner at `time`, one for each coalition (n, p) of columns that are past it."""
        times = np.full(len(past), float(time))
        return Cells(times, times, past, met=True)

    def between(self, times: Array, inside: Any) -> Cells:
        """The path at some times, with the sides that splits have at the times `inside`, at which nothing jumps."""
        nobody = np.zeros((len(times), len(self.start)), np.bool_)
        return Cells(times, np.broadcast_to(np.asarray(inside, np.float64), len(times)), nobody)

    @property
    def ends(self) -> Cells:
        """The start and the end."""
        nobody = np.zeros((2, len(self.start)), np.bool_)
        return Cells(np.array([0.0, UNITS]), np.array([-1.0, UNITS + 1.0]), nobody)

    def rows(self, at: Cells) -> Array:
        """The rows that smooth parts read: the straight path, with jumping columns as they are in the cells."""
        moving = self.start + at.time[:, None] / UNITS * self.move  # columns that jump are replaced below
        moving = np.clip(moving, np.fmin(self.start, self.end), np.fmax(self.start, self.end))
        late = at.gone(HALF, np.arange(len(self.start))[None], np.arange(len(at.time))[:, None])
        return np.where(self.jumping, np.where(late, self.end, self.start), moving)

    def values(self, node: Node, at: Cells, given: Mapping[Node, Array] | None = None) -> dict[Node, Array]:
        """The values of `node` and of all it needs; `given` are values that replace those of some nodes."""
        known: dict[Node, Array] = {self.graph.input: self.rows(at), **(given or {})}
        for one in self.order(node, frozenset(known)):
            inputs = [known[p] for p in one.parents]
            known[one] = self._walk(one, inputs[0], at) if isinstance(one, TreeEnsemble) else one.forward(*inputs)
        return known

    def order(self, node: Node, known: frozenset[Node]) -> list[Node]:
        """The nodes to compute for `node`, parents first, when the values of `known` are given; cached."""
        if (node, known) not in self._orders:
            self._orders[node, known] = needed((node,), set(known))
        return self._orders[node, known]

    def _sides(self, tree: TreeEnsemble) -> Sides:
        """For every split of a tree, its side at the start and at the end, and the time of its crossing."""
        base = columns_of(tree.source)
        read = np.array([c if node is self.graph.input else -1 for node, c in base], np.int64)
        column = np.where(tree.feature >= 0, read[np.maximum(tree.feature, 0)], -1)
        splits = np.arange(len(column))
        left = [np.zeros(len(column), np.bool_) for _ in range(2)]
        direct = column >= 0
        for side, row in zip(left, (self.start, self.end), strict=True):
            side[direct] = goes_left(tree, splits[direct], row[column[direct]])
        sides = Sides(column, left[0], left[1], np.full(len(column), HALF))
        for split in np.nonzero(sides.crossed & ~self.jumping[column])[0].tolist():
            if tree.category_set[split] < 0:
                j = column[split]
                stand = stand_of(tree, split, int(j), self.choice)
                sides.time[split] = stand.time(float(self.start[j]), float(self.end[j]))
        return sides

    def _walk(self, tree: TreeEnsemble, source: Array, at: Cells) -> Array:
        """The outputs of a tree at some cells of the path, given what it reads there."""
        sides = self.sides[tree]
        here = np.tile(tree.roots, (len(source), 1))
        while True:
            row, place = np.nonzero(tree.feature[here] >= 0)
            if not len(row):
                break
            split = here[row, place]
            gone = at.gone(sides.time[split], sides.column[split], row)
            left = np.where(gone, sides.end_left[split], sides.start_left[split])
            other = sides.column[split] < 0  # splits on the outputs of other models
            scores = source[row[other], tree.feature[split[other]]]
            if at.met:  # only for scores, not for codes
                scores = np.where(tree.category_set[split[other]] < 0, lowered(scores, scores), scores)
            left[other] = goes_left(tree, split[other], scores)
            here[row, place] = np.where(left, tree.left[split], tree.right[split])
        out = np.tile(tree.base, (len(source), 1))
        for number, output in enumerate(tree.tree_output.tolist()):
            first = tree.value[here[:, number]]
            if output >= 0:
                out[:, output] += tree.values[first]
            else:
                out += tree.values[first[:, None] + np.arange(tree.width)]
        return out


def stand_of(tree: TreeEnsemble, split: int, column: int, choice: Choice) -> Stand:
    """The place of a numeric split: that of the graph, or computed from the choice of columns."""
    low, high, single = float(tree.equal_low[split]), float(tree.equal_high[split]), bool(tree.single[split])
    threshold, place = float(tree.threshold[split]), float(tree.place[split])
    if choice.discrete is not None and column in choice.discrete:
        place = discrete_place(threshold, place, choice.discrete[column])
    with np.errstate(over="ignore"):  # a threshold of float32 itself lies between two of its numbers
        direct = bool(np.float32(threshold) != np.float32(np.nextafter(threshold, np.inf)))
    return Stand(place, low, high, single, direct)


def goes_left(tree: TreeEnsemble, splits: NDArray[Any], values: Array) -> Bools:
    """The side of each value (n,) at each split (n,): exact, as the library decides."""
    missing = np.isnan(values)
    left = values <= tree.threshold[splits]
    for i in np.nonzero((tree.category_set[splits] >= 0) & ~missing)[0].tolist():
        which = tree.category_set[splits[i]]
        words = tree.set_words[tree.set_start[which] : tree.set_start[which + 1]]
        code = int(values[i]) if np.isfinite(values[i]) else -1
        left[i] = 0 <= code < 32 * len(words) and bool(int(words[code // 32]) >> code % 32 & 1)
    return np.asarray(np.where(missing, tree.missing_left[splits], left), np.bool_)


def lowered(values: Array, sizes: Array) -> Array:
    """Values less a bound on the rounding of numbers of these sizes."""
    return np.asarray(values - 2e-12 * np.abs(sizes))


def jumping_columns(
    graph: Graph, start: Array, end: Array, nominal: frozenset[int] | Sequence[int] | None = None
) -> Bools:
    """The columns that change at once, half-way: categories, nominal ones, and those not finite at either end."""
    if nominal is None:
        nominal = getattr(graph.input, "nominal", ())
    at_once = np.array([c.kind == "category" or j in nominal for j, c in enumerate(graph.columns)], np.bool_)
    return np.asarray(at_once | ~np.isfinite(start) | ~np.isfinite(end))
