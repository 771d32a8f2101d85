"""Transformed columns as nodes over the raw rows: what smooth models behind a pipeline read.

Columns of one kind share a node: all that come from one category are one lookup, all step functions of numbers one sum
of small trees on the raw columns, and numeric columns that pass the same kinds of steps go through them together.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...errors import UnsupportedModelError
from ...graph import (
    Affine,
    Array,
    Column,
    Concat,
    Fill,
    Input,
    IsMissing,
    Lookup,
    Node,
    Select,
    Sum,
    Tree,
    TreeEnsemble,
    assemble,
    value_of,
)
from .edges import ONLY_MISSING, Edges, stands
from .pieces import LARGEST
from .raw import image_of_missing, images, marked_already
from .steps import Impute, Stairs, Step, Ufunc
from .table import Blend, Block, Constant, Derived, Feature, numbers


class Values:
    """Builds the node of any list of features over the rows `source`; blocks that several read are built once."""

    def __init__(self, source: Input, columns: Sequence[Column]) -> None:
        self.source = source
        self.columns = columns
        self._blocks: dict[Block, Node] = {}

    def node(self, features: Sequence[Feature]) -> Node:
        """A node whose columns are the features, in order."""
        features = [marked_already(f, self.columns[f.column]) if isinstance(f, Derived) else f for f in features]
        groups: dict[object, list[int]] = {}
        for i, feature in enumerate(features):
            groups.setdefault(self._group(feature), []).append(i)
        parts, order = [], []
        for members in groups.values():
            parts.append(self._part([features[i] for i in members]))
            order += members
        whole = parts[0] if len(parts) == 1 else Concat(tuple(parts))
        if order == list(range(len(order))):
            return whole
        return Select(whole, tuple(np.argsort(order).tolist()))

    def _group(self, feature: Feature) -> object:
        if isinstance(feature, Constant):
            return "constant"
        if isinstance(feature, Blend):
            return feature.block
        if self.columns[feature.column].kind == "category":
            return feature.column
        return "flat" if feature.flat else tuple(type(step) for step in feature.steps)

    def _part(self, features: Sequence[Feature]) -> Node:
        """One group's node."""
        one = features[0]
        if isinstance(one, Constant):
            values = np.array([f.value for f in features if isinstance(f, Constant)])
            finite = IsMissing(Select(self.source, (0,)))  # the raw column itself may be NaN, and so is zero times NaN
            return Affine(finite, np.zeros((len(values), 1)), values)
        if isinstance(one, Blend):
            if one.block not in self._blocks:
                self._blocks[one.block] = one.block.build(self.node(one.block.inputs))
            return Select(self._blocks[one.block], tuple(f.index for f in features if isinstance(f, Blend)))
        derived = [f for f in features if isinstance(f, Derived)]
        if self.columns[one.column].kind == "category":
            return self._lookup(derived)
        return self._stairs(derived) if one.flat else self._chain(derived)

    def _lookup(self, features: Sequence[Derived]) -> Node:
        column = self.columns[features[0].column]
        if column.labels is None:  # codes that the model reads as they are
            return Select(self.source, tuple(f.column for f in features))
        found = [images(f, column) for f in features]
        return Lookup(
            self.source,
            features[0].column,
            np.stack([table for table, _, _ in found], axis=1),
            np.array([unknown for _, unknown, _ in found]),
            np.array([missing for _, _, missing in found]),
        )

    def _chain(self, features: Sequence[Derived]) -> Node:
        """Continuous steps, one node for each level; what jumps in a step is a stair on the raw column beside it."""
        node: Node = Select(self.source, tuple(f.column for f in features))
        level = 0
        if any(self.columns[f.column].may_be_missing for f in features):
            node, level = self._filled(features, node)
        return self._levels(features, node, level, len(features[0].steps))

    def _filled(self, features: Sequence[Derived], raw: Node) -> tuple[Node, int]:
        """The chain up to and with an imputer that has other steps before it, and its length; 0 where there is none.

        A missing value must not travel through the steps as NaN: a linear layer would spread it over all columns. So
        it is replaced by some number that the steps take, and what they make of that number by the imputer's.
        """
        imputers = [k for k, step in enumerate(features[0].steps) if isinstance(step, Impute)]
        if not imputers or imputers[0] == 0:
            return raw, 0
        last = imputers[0]
        for f in features:
            f.steps[last].nodes([f.steps[last]], raw)  # refuses a number that stands for a missing value
        fill = np.array([float(step.fill) for f in features if isinstance(step := f.steps[last], Impute)])
        taken = [_pulled_back(f.steps[:last], v) for f, v in zip(features, fill.tolist(), strict=True)]
        node = self._levels(features, Fill(raw, np.array(taken)), 0, last)
        nothing = np.full((1, self.source.width), np.nan)
        change = fill - value_of(node, {self.source: nothing})[0]
        return Sum((node, Affine(IsMissing(raw), np.diag(change), np.zeros(len(change))))), last + 1

    def _levels(self, features: Sequence[Derived], node: Node, first: int, last: int) -> Node:
        """The steps from the level `first` up to `last` over the node before them."""
        for level in range(first, last):
            steps = [f.steps[level] for f in features]
            node = type(steps[0]).nodes(steps, node)
            jumps = [step.jumps() for step in steps]
            if any(j is not None for j in jumps):
                none = Stairs(np.zeros(0), np.zeros(1), 0.0)
                flights = [
                    Derived(f.column, (*f.steps[:level], j or none)) for f, j in zip(features, jumps, strict=True)
                ]
                node = Sum((node, self._stairs(flights)))
        return node

    def _stairs(self, features: Sequence[Derived]) -> TreeEnsemble:
        trees = [self._stair(feature, output) for output, feature in enumerate(features)]
        return assemble(self.source, trees, np.zeros(len(features)))

    def _stair(self, feature: Derived, output: int) -> Tree:
        """A step function of one number as a balanced tree, with a first split for missing values where they may be."""
        column = self.columns[feature.column]
        edges, values = stairs(feature.steps)
        if column.may_be_missing:
            return _balanced(feature.column, edges, values, output, image_of_missing(feature, column))
        return _balanced(feature.column, edges, values, output, None)


def _pulled_back(steps: Sequence[Step], fill: float) -> float:
    """The raw number of which some continuous steps make `fill`, or whatever is nearest to it.

    Near, so that the difference is small and its rounding no part of the fill, which may be a mean of scaled numbers:
    1e-17, and yet multiplied by 1e17 in a later step.
    """
    sizes = 10.0 ** np.arange(-6, 13)
    tried = np.array([*-sizes[::-1], 0.0, *sizes])
    for _ in range(6):
        off = np.abs(_where_not_steep(steps, tried) - fill)
        if not np.isfinite(off).any():
            raise UnsupportedModelError(
                "The steps before SimpleImputer must take some ordinary number, for missing values to be followed "
                "through them; they give none for any number tried. Put SimpleImputer first."
            )
        best = int(np.nanargmin(off))
        nearest = float(tried[best])
        tried = np.linspace(tried[max(best - 1, 0)], tried[min(best + 1, len(tried) - 1)], 1025)
    return nearest


def _where_not_steep(steps: Sequence[Step], z: Array) -> Array:
    """What the steps make of numbers; NaN where a square root is infinitely steep."""
    with np.errstate(all="ignore"):
        for step in steps:
            rooted = isinstance(step, Ufunc) and step.name == "sqrt"
            z = step(np.where(z == 0.0, np.nan, z) if rooted else z)
    return z


def stairs(steps: Sequence[Step]) -> tuple[Edges, Array]:
    """A flat chain of steps as raw edges, and the values up to each and beyond the last."""
    cuts = stands(steps).cuts
    values = numbers(steps)(np.append(cuts.threshold, LARGEST))
    differs = values[1:] != values[:-1]
    return cuts[differs], values[np.append(differs, True)]


def _balanced(column: int, edges: Edges, values: Array, output: int, missing: float | None) -> Tree:
    feature: list[int] = []
    edge: list[int] = []  # which of the edges a split is; the last is one that every number passes
    children: list[tuple[int, int]] = []
    leaves: list[float] = []

    def add(split: int, at: int, leaf: float) -> int:
        feature.append(split)
        edge.append(at)
        children.append((-1, -1))
        leaves.append(leaf)
        return len(feature) - 1

    if missing is not None:
        add(column, len(edges), 0.0)
    waiting = [(0, len(values) - 1, -1)]
    while waiting:
        low, high, parent = waiting.pop()
        middle = (low + high) // 2
        me = add(column, middle, 0.0) if low < high else add(-1, len(edges), float(values[low]))
        if parent >= 0:
            left, right = children[parent]
            children[parent] = (me, right) if left < 0 else (left, me)
        if low < high:
            waiting += [(middle + 1, high, me), (low, middle, me)]  # the last is taken first: the left child
    if missing is not None:
        children[0] = (1, add(-1, len(edges), missing))
    pairs = np.array(children)
    at = Edges.joined([edges, ONLY_MISSING])[np.array(edge)]
    return Tree(
        np.array(feature), at.threshold, pairs[:, 0], pairs[:, 1], np.zeros(len(feature), bool), np.array(leaves),
        output, equal=(at.equal_low, at.equal_high), single=at.single, place=at.place,
    )  # fmt: skip
