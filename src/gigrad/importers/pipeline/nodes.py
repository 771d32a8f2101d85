"""Transformed columns as nodes over the raw rows: the inputs of smooth models at the end of a pipeline.

Columns of one kind share a node: all columns from one category are one lookup, all step functions of numbers one sum of
small trees on the raw columns, and numeric columns with the same kinds of steps share the nodes of these steps.
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
from ...graph.growing import Branch, edges_of, grown, halved
from .edges import Edges, stands
from .pieces import LARGEST
from .raw import image_of_missing, images, marked_already
from .steps import Impute, Stairs, Step, Ufunc
from .table import Blend, Block, Constant, Derived, Feature, ModelBlock, numbers


class Values:
    """Builds the node of any list of features over the rows `source`; shared blocks are built once."""

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
        """Features with the same key become one node."""
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
                self._blocks[one.block] = self._block(one.block)
            return Select(self._blocks[one.block], tuple(f.index for f in features if isinstance(f, Blend)))
        derived = [f for f in features if isinstance(f, Derived)]
        if self.columns[one.column].kind == "category":
            return self._lookup(derived)
        return self._stairs(derived) if one.flat else self._chain(derived)

    def _block(self, block: Block) -> Node:
        """The node of a block: of a model's outputs, or built from its inputs."""
        if isinstance(block, ModelBlock):
            from .importer import moved  # circular: it uses this class

            return moved(block.graph, block.node, block.inputs, self)
        return block.build(self.node(block.inputs))

    def _lookup(self, features: Sequence[Derived]) -> Node:
        """Numbers that stand for the labels of one column: all of them looked up at once."""
        column = self.columns[features[0].column]
        if column.labels is None:  # codes that the model reads directly
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
        """Chains of continuous steps, one node for each level; jumps of a step are added as trees on the raw column."""
        node: Node = Select(self.source, tuple(f.column for f in features))
        level = 0
        if any(self.columns[f.column].may_be_missing for f in features):
            node, level = self._filled(features, node)
        return self._levels(features, node, level, len(features[0].steps))

    def _filled(self, features: Sequence[Derived], raw: Node) -> tuple[Node, int]:
        """The chain up to and including an imputer with other steps before it, and its length; 0 if there is none.

        NaN must not pass through the steps: a linear layer would spread it over all columns. So a missing value is
        replaced by some number that the steps accept, and their output for it by the imputer's number.
        """
        imputers = [k for k, step in enumerate(features[0].steps) if isinstance(step, Impute)]
        if not imputers or imputers[0] == 0:
            return raw, 0
        last = imputers[0]
        for f in features:
            f.steps[last].nodes([f.steps[last]], raw)  # raises for a number that means a missing value
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


def flights(source: Node, steps: Sequence[Step]) -> TreeEnsemble:
    """Step functions of the columns of a node, one for each column, as trees over these columns."""
    trees = []
    for column, step in enumerate(steps):
        cuts = step.cuts()
        values = np.asarray(step(np.append(cuts, LARGEST)), np.float64)
        differs = values[1:] != values[:-1]
        at = Edges.at(cuts[differs])
        trees.append(_balanced(column, at, values[np.append(differs, True)], column, None))
    return assemble(source, trees, np.zeros(len(trees)))


def _pulled_back(steps: Sequence[Step], fill: float) -> float:
    """The raw number that some continuous steps map to `fill`, or nearest to it.

    Near, so that the rounding of the difference does not affect the fill, which may be a mean of scaled numbers: 1e-17,
    and yet multiplied by 1e17 in a later step.
    """
    sizes = 10.0 ** np.arange(-6, 13)
    tried = np.array([*-sizes[::-1], 0.0, *sizes])
    for _ in range(6):
        off = np.abs(_where_not_steep(steps, tried) - fill)
        if not np.isfinite(off).any():
            raise UnsupportedModelError(
                "The steps before SimpleImputer must accept some ordinary number, for missing values to be passed "
                "through them; they give no number for any tried. Put SimpleImputer first."
            )
        best = int(np.nanargmin(off))
        nearest = float(tried[best])
        tried = np.linspace(tried[max(best - 1, 0)], tried[min(best + 1, len(tried) - 1)], 1025)
    return nearest


def _where_not_steep(steps: Sequence[Step], z: Array) -> Array:
    """The output of the steps for numbers; NaN where a square root is infinitely steep."""
    with np.errstate(all="ignore"):
        for step in steps:
            rooted = isinstance(step, Ufunc) and step.name == "sqrt"
            z = step(np.where(z == 0.0, np.nan, z) if rooted else z)
    return z


def stairs(steps: Sequence[Step]) -> tuple[Edges, Array]:
    """The step function of a flat chain of steps: raw edges, and the values up to each and beyond the last."""
    cuts = stands(steps).cuts
    values = numbers(steps)(np.append(cuts.threshold, LARGEST))
    differs = values[1:] != values[:-1]
    return cuts[differs], values[np.append(differs, True)]


def _balanced(column: int, edges: Edges, values: Array, output: int, missing: float | None) -> Tree:
    """A balanced tree with the value of each interval between edges, and of a missing value if given."""
    each = edges_of(edges)
    root = halved(values.tolist(), lambda k, low, high: Branch(column, low, high, each[k]))
    return grown(root if missing is None else Branch(column, root, missing), output)
