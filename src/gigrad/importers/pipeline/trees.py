"""Trees over transformed columns, rewritten as trees on the raw columns.

A split `z <= T` on z = F(x) becomes the raw thresholds at which its side flips (one for a monotone F); on a category it
becomes the set of labels that go left. A missing raw value goes to the side of its transformed value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import UnsupportedModelError
from ...graph import Array, Column, Node, TreeEnsemble
from ...graph.assembly import DTYPES
from ...graph.forests import more_sets, words_of
from ...graph.sets import contains
from .edges import NO_EDGES, ONLY_MISSING, Edges, pulled_back, stands
from .pieces import changes
from .raw import image_of_missing, images, marked_already
from .table import Blend, Constant, Derived, Feature, numbers

Ints = NDArray[np.int64]
MOST_WAYS = 1 << 24  # paths from a root to the leaves, when chains of splits share their children


class TooManyWaysError(Exception):
    """Deep trees on step functions with many edges: their chains of splits would create too many paths."""


Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Splits:
    """Distinct splits on one transformed column: `z <= threshold`, or z's code in a set; NaN by `missing_left`."""

    edges: Edges
    category_set: NDArray[np.int32]
    missing_left: Bools
    trees: TreeEnsemble

    @classmethod
    def of(cls, trees: TreeEnsemble, nodes: NDArray[np.intp], missing_left: Bools) -> tuple[Splits, NDArray[np.intp]]:
        """The distinct splits among the nodes of trees, and which of them each node is."""
        own = [getattr(trees, f.name)[nodes] for f in fields(Edges)]
        # the place of a category is NaN, which is not equal to itself
        keys = np.stack([*(np.nan_to_num(v) for v in own), trees.category_set[nodes], missing_left], axis=1)
        _, first, which = np.unique(keys, axis=0, return_index=True, return_inverse=True)
        edges = Edges(*(v[first] for v in own))
        return cls(edges, trees.category_set[nodes[first]], missing_left[first], trees), which.ravel()

    def __len__(self) -> int:
        return len(self.edges)

    def goes_left(self, z: Array, which: NDArray[np.intp]) -> Bools:
        """On which side of the splits `which` the values z lie."""
        answer: Bools = z <= self.edges.threshold[which]
        for one in np.unique(self.category_set[which]):
            if one >= 0:
                chosen = self.category_set[which] == one
                answer[chosen] = contains(words_of(self.trees, one), np.nan_to_num(z[chosen], nan=-1.0))
        return np.where(np.isnan(z), self.missing_left[which], answer)


@dataclass(frozen=True, eq=False)
class Answer:
    """A split on a raw column: side `first` up to the first edge, the other side up to the next, and so on.

    For a category, `labels` are the codes on side `first` and all others are on the other side (edges is empty).
    """

    first: bool
    edges: Edges
    missing: bool
    labels: Ints | None = None

    @property
    def constant(self) -> bool:
        return self.labels is None and not len(self.edges) and self.missing == self.first


_LABELS = Edges(*(np.array([v]) for v in (0.0, np.nan, np.nan, False, np.nan)))


def on_raw(
    trees: TreeEnsemble,
    source: Node,
    places: Sequence[int | Feature],
    takes_missing: Sequence[bool],
    columns: Sequence[Column],
    first: int,
) -> TreeEnsemble:
    """The same trees over `source`.

    Parameters
    ----------
    places : one entry for each column the trees read now
        Its new position in `source`, or the feature that it is.
    takes_missing : one entry for each of them
        Whether the model accepts a missing value there.
    columns : the raw columns
    first : int
        Where the raw columns begin in `source`.
    """
    answers: list[Answer] = []
    answer = np.full(len(trees.feature), -1)  # which answer replaces a split; -1 keeps it
    feature = trees.feature.astype(np.int64)
    for old in np.unique(trees.feature[trees.feature >= 0]).tolist():
        nodes = np.nonzero(trees.feature == old)[0]
        place = places[old]
        if isinstance(place, int):
            feature[nodes] = place
            continue
        if isinstance(place, Blend):
            raise UnsupportedModelError(
                f"Trees after {place.block.name} split on numbers that it makes from several columns or by a curve, so "
                "their boundaries are not splits on one raw column, which GIG needs. Leave it out before trees, or use "
                "a smooth model after it."
            )
        feature[nodes] = 0 if isinstance(place, Constant) else first + place.column
        if isinstance(place, Derived) and not place.steps:
            continue
        # If the model refuses missing values, numbers with undefined output (the logarithm of a negative one) do not
        # occur: they take the side of the smallest defined ones, so that no edge is made for them.
        missing_left = trees.missing_left[nodes] | (not takes_missing[old])
        splits, which = Splits.of(trees, nodes, missing_left)
        answer[nodes] = len(answers) + which
        answers += _answers(splits, place, columns)
    return _rebuilt(trees, source, feature, answer, answers)


def _answers(splits: Splits, place: Derived | Constant, columns: Sequence[Column]) -> list[Answer]:
    """For each split on a transformed column, the equivalent split on the raw one."""
    which = np.arange(len(splits))
    if isinstance(place, Constant):
        side = splits.goes_left(np.full(len(splits), place.value), which)
        return [Answer(bool(s), NO_EDGES, bool(s)) for s in side]
    column = columns[place.column]
    if column.kind == "category":
        table, unknown, missing = images(place, column)
        grid = np.repeat(which, len(table))
        left = splits.goes_left(np.tile(table, len(splits)), grid).reshape(len(splits), len(table))
        other = splits.goes_left(np.full(len(splits), unknown), which)
        nan = splits.goes_left(np.full(len(splits), missing), which)
        return [_of_labels(left[i], bool(other[i]), bool(nan[i]), column) for i in range(len(splits))]
    place = marked_already(place, column)
    known = stands(place.steps)
    found = changes(numbers(place.steps), known.cuts.threshold, splits.goes_left, len(splits))
    edges = pulled_back(place.steps, known, splits.edges, found.owners, found.edges, place.flat)
    nan = splits.goes_left(np.full(len(splits), image_of_missing(place, column)), which)
    gone = nan if column.may_be_missing else found.first
    return [
        Answer(bool(found.first[i]), edges[found.offsets[i] : found.offsets[i + 1]], bool(gone[i]))
        for i in range(len(splits))
    ]


def _of_labels(left: Bools, unknown: bool, missing: bool, column: Column) -> Answer:
    """A split of labels: those that go another way than unknown ones, and where missing ones go."""
    if column.unknown != "other":
        unknown = bool(left.all())
    codes = np.nonzero(left != unknown)[0]
    if not column.missing:
        missing = unknown
    if not len(codes) and missing == unknown:
        return Answer(unknown, NO_EDGES, unknown)
    return Answer(not unknown, NO_EDGES, missing, codes)


def _rebuilt(
    trees: TreeEnsemble, source: Node, feature: Ints, answer: NDArray[np.intp], answers: Sequence[Answer]
) -> TreeEnsemble:
    """The trees with every answered split replaced by a chain of splits that share its two children."""
    kept = Answer(True, Edges.at(np.zeros(1)), True)  # stands for the splits and leaves that stay: index -1
    every = [*answers, kept]
    constant = np.array([a.constant for a in every])[answer]
    first = np.array([a.first for a in every])[answer]
    missing = np.where(answer < 0, trees.missing_left, np.array([a.missing for a in every])[answer])
    count = np.where(constant, 0, np.array([max(len(a.edges), 1) for a in every])[answer])
    begin = np.cumsum(count) - count
    target = _targets(trees, constant, first)
    owner = np.repeat(np.arange(len(count)), count)
    place = np.arange(len(owner)) - begin[owner]
    leaf = trees.feature[owner] < 0
    left, right = (begin[target[np.where(leaf, 0, child[owner])]] for child in (trees.left, trees.right))
    here = first[owner] ^ (place % 2 == 1)  # the side up to this link's edge: True is the old left child
    beyond = np.where(here, right, left)
    last = place == count[owner] - 1
    named = np.array([a.labels is not None for a in every])
    sets = np.where(named, len(trees.set_start) - 1 + np.cumsum(named) - 1, -1)[answer]
    arrays = {
        "feature": np.where(leaf, -1, feature[owner]),
        **_edges(trees, owner, place, answer[owner], every),
        "left": np.where(here, left, right),
        "right": np.where(last, beyond, np.arange(len(owner)) + 1),
        "missing_left": ~leaf & np.where(place == 0, missing[owner] == here, place == 1),
        "category_set": np.where(answer < 0, trees.category_set, sets)[owner],
        "value": trees.value[owner],
    }
    arrays, roots = _reached(arrays, leaf, begin[target[trees.roots]])
    if (count > 1).any() and _most_ways(arrays, roots) > MOST_WAYS:
        raise TooManyWaysError
    more = more_sets(trees, [a.labels for a in every if a.labels is not None])
    return replace(trees, source=source, roots=roots, **more, **arrays)


def _targets(trees: TreeEnsemble, constant: Bools, first: Bools) -> Ints:
    """The new target of a link to each node, skipping splits that always go one way."""
    target = np.arange(len(constant))
    for node in np.nonzero(constant)[0][::-1].tolist():  # children come after their parents
        target[node] = target[trees.left[node] if first[node] else trees.right[node]]
    return target


def _edges(
    trees: TreeEnsemble, owner: Ints, place: Ints, answer: NDArray[np.intp], every: Sequence[Answer]
) -> dict[str, NDArray[Any]]:
    """The threshold and the place of each link of the chains."""
    pool = [a.edges if len(a.edges) else ONLY_MISSING if a.labels is None else _LABELS for a in every]
    starts = np.cumsum([0, *(len(p) for p in pool)])
    kept = answer < 0
    found = Edges.joined(pool)[starts[np.where(kept, len(every) - 1, answer)] + np.where(kept, 0, place)]
    return {f.name: np.where(kept, getattr(trees, f.name)[owner], getattr(found, f.name)) for f in fields(Edges)}


def _reached(arrays: dict[str, Any], leaf: Bools, roots: Ints) -> tuple[dict[str, Any], NDArray[np.int32]]:
    """Only the nodes that the roots lead to, renumbered in their order."""
    reached = np.zeros(len(leaf), bool)
    level = roots
    while len(level):
        reached[level] = True
        split = level[~leaf[level]]
        level = np.unique(np.concatenate([arrays["left"][split], arrays["right"][split]]))
        level = level[~reached[level]]
    number = np.cumsum(reached) - 1
    for side in ("left", "right"):
        arrays[side] = np.where(leaf, -1, number[np.where(leaf, 0, arrays[side])])
    types = {name: DTYPES[name] for name in arrays}
    kept = {name: values[reached].astype(types[name]) for name, values in arrays.items()}
    return kept, number[roots].astype(np.int32)


def _most_ways(arrays: dict[str, Any], roots: NDArray[np.int32]) -> float:
    """The largest number of paths from root to leaves of any tree."""
    left, right = arrays["left"].tolist(), arrays["right"].tolist()
    ways = [1.0] * len(left)
    for node in range(len(left) - 1, -1, -1):
        if left[node] >= 0:
            ways[node] = ways[left[node]] + ways[right[node]]
    return float(max(ways[root] for root in roots.tolist()))
