"""Sums of decision trees, with every library's rule in one form: `x <= threshold` in float64 goes left.

A node is a numeric split, a category split (codes in a set go left) or a leaf. NaN takes the node's missing side.
Children have larger indices than their parent, so that cycles are impossible; two parents may share a child.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import kernels
from ..errors import CorruptModelError
from .node import Array, Bounds, Breaks, Columns, Input, Node, union

Ints = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class TreeEnsemble(Node):
    """`base + sum of trees` over the columns of `source`.

    Attributes
    ----------
    feature : (nodes,) int32
        Column of `source` that a split reads; -1 marks a leaf.
    threshold : (nodes,) float64
        Numeric splits: `x <= threshold` goes left, exactly, with the library's casts folded in. It decides sides only.
    equal_low, equal_high : (nodes,) float64
        Numeric splits: the least and the largest number of the column that the library cannot tell from the threshold
        it stores; both are that threshold where it reads float64.
    single : (nodes,) bool
        Whether the library reads the column in float32: times are then computed from shortest decimals.
    place : (nodes,) float64
        The number from which the time of a crossing is computed; NaN for a crossing at one half. See `places`.
    left, right : (nodes,) int32
        Children of a split, both with a larger index than their parent's.
    missing_left : (nodes,) bool
        The side that NaN takes.
    category_set : (nodes,) int32
        Category splits: which set of `set_words` goes left; -1 for numeric splits and leaves.
    set_start : (sets + 1,) int32
        Where each set begins in `set_words`.
    set_words : (words,) uint32
        Bit `c % 32` of word `c // 32` of a set says that code `c` belongs to it. Codes beyond it do not.
    value : (nodes,) int32
        Leaves: where the leaf's numbers begin in `values`; -1 for splits.
    values : (numbers,) float64
        Leaf values: one number a leaf for a tree with an output of its own, `outputs` numbers for a vector tree.
    roots : (trees,) int32
    tree_output : (trees,) int32
        The output column a tree adds to; -1 for trees with vector leaves.
    base : (outputs,) float64
    """

    source: Node
    feature: Ints
    threshold: Array
    equal_low: Array
    equal_high: Array
    single: NDArray[np.bool_]
    place: Array
    left: Ints
    right: Ints
    missing_left: NDArray[np.bool_]
    category_set: Ints
    set_start: Ints
    set_words: NDArray[np.uint32]
    value: Ints
    values: Array
    roots: Ints
    tree_output: Ints
    base: Array

    def __post_init__(self) -> None:
        _ = self.forest  # building it checks every index, so that no walk meets a bad one

    @cached_property
    def forest(self) -> Any:
        """The trees as an object of the native core, which checks them; each column is its own variable."""
        return self._native(np.zeros(0, np.int32))

    def grouped_forest(self, players: NDArray[np.int64] | None) -> Any:
        """The native form in which column j is part of the variable `players[j]`; the last one made is cached."""
        if players is None:
            return self.forest
        known = self._grouped
        if known.get("players") != players.tobytes():
            known.update(players=players.tobytes(), forest=self._native(players.astype(np.int32)))
        return known["forest"]

    @cached_property
    def _grouped(self) -> dict[str, Any]:
        return {}

    def where_finite(self, columns: NDArray[np.bool_]) -> TreeEnsemble:
        """The same trees for rows that have finite values in some columns (p,); the last ones made are cached.

        Splits on those that only separate missing values are left out.
        """
        known = self._finite
        if known.get("columns") != columns.tobytes():
            known.update(columns=columns.tobytes(), trees=self._without_tests_of_missing(columns))
        trees: TreeEnsemble = known["trees"]
        return trees

    @cached_property
    def _finite(self) -> dict[str, Any]:
        return {}

    def _without_tests_of_missing(self, columns: NDArray[np.bool_]) -> TreeEnsemble:
        """The trees without splits at an infinite threshold on these columns, which separate only missing values."""
        asks = (self.feature >= 0) & (self.category_set < 0) & np.isinf(self.threshold)
        asks &= columns[self.feature]
        if not asks.any():
            return self
        to = np.where(asks, np.where(self.threshold > 0.0, self.left, self.right), np.arange(len(asks), dtype=np.int32))
        while (to[to] != to).any():
            to = to[to]
        left, right = (np.where(child >= 0, to[child], child) for child in (self.left, self.right))
        met = np.zeros(len(asks), np.bool_)
        level = to[self.roots]
        while len(level):
            met[level] = True
            level = np.unique(np.concatenate([left[level], right[level]]))
            level = level[level >= 0]
        number = np.cumsum(met, dtype=np.int32) - 1
        names = ("feature", "threshold", "equal_low", "equal_high", "single", "place", "missing_left", "category_set",
                 "value")  # fmt: skip
        kept: dict[str, Any] = {name: getattr(self, name)[met] for name in names}
        left, right = (np.where(child >= 0, number[child], child).astype(np.int32)[met] for child in (left, right))
        return replace(self, **kept, left=left, right=right, roots=number[to[self.roots]])

    def _native(self, variable: Ints) -> Any:
        """The native forest; `variable` says which variable each column's credit goes to."""
        try:
            return kernels.Forest(
                self.source.width, self.feature, self.threshold, self.equal_low, self.equal_high, self.single,
                self.place, self.left, self.right, self.missing_left, self.category_set, self.set_start,
                self.set_words, self.value, self.values, self.roots, self.tree_output, self.base, variable,
            )  # fmt: skip
        except ValueError as error:
            raise CorruptModelError(f"These trees are invalid: {error}") from None

    @cached_property
    def columns_of_outputs(self) -> tuple[Ints, ...]:
        """The columns that the trees of each output split on: those of all trees where outputs share them."""
        if self.width == 1:
            return (_distinct(self.feature[self.feature >= 0]),)
        order = np.argsort(self.roots)
        tree = np.searchsorted(self.roots[order], np.arange(len(self.feature)), side="right") - 1
        output = self.tree_output[order][tree]  # of each node, where trees lie one after the other
        split = np.nonzero(self.feature >= 0)[0]
        apart = (output >= 0).all() and all((output[c[split]] == output[split]).all() for c in (self.left, self.right))
        if not apart:
            return (_distinct(self.feature[split]),) * self.width
        return tuple(_distinct(self.feature[split[output[split] == k]]) for k in range(self.width))

    @cached_property
    def category_columns(self) -> Ints:
        """The columns that some split reads as a category."""
        return _distinct(self.feature[(self.feature >= 0) & (self.category_set >= 0)])

    def columns_at_once(self, parents: Sequence[Columns]) -> set[int]:
        """Those of the rows themselves: a category of a computed number, such as a rank, is no column of theirs."""
        return set(self.category_columns.tolist()) if isinstance(self.source, Input) else set()

    @cached_property
    def breaks_of_source(self) -> Breaks | None:
        """The thresholds of each column that is split as a number."""
        numeric = (self.feature >= 0) & (self.category_set < 0)
        read = tuple(np.unique(self.feature[numeric]).tolist())
        return Breaks(tuple(np.unique(self.threshold[numeric & (self.feature == j)]) for j in read), read)

    def columns_behind(self, parents: Sequence[Columns]) -> Columns:
        return [union(parents[0][j] for j in columns) for columns in self.columns_of_outputs]

    @cached_property
    def bounds(self) -> Bounds:
        """The sums of the least and of the largest leaves of all trees."""
        low, high = self.base.copy(), self.base.copy()
        ends = np.append(self.roots[1:], len(self.feature))
        if (np.diff(self.roots) <= 0).any():
            return super().bounds
        for root, end, output in zip(self.roots, ends, self.tree_output, strict=True):
            at = self.value[root:end]
            at = at[self.feature[root:end] < 0]
            columns = np.arange(self.width) if output < 0 else np.array([output])
            numbers = self.values[at[:, None] + np.arange(len(columns))]
            low[columns] += numbers.min(axis=0)
            high[columns] += numbers.max(axis=0)
        return low, high

    @property
    def width(self) -> int:
        return len(self.base)

    def forward(self, *inputs: Array) -> Array:
        return kernels.predict(self.forest, inputs[0])

    def __getstate__(self) -> dict[str, Any]:
        """The state to pickle: all but the native form, which is rebuilt when it is needed."""
        return {name: value for name, value in self.__dict__.items() if name not in ("forest", "_grouped", "_finite")}

    def forget_native(self) -> None:
        """Free the native form, which is rebuilt when it is needed."""
        for name in ("forest", "_finite"):
            self.__dict__.pop(name, None)

    def scaled(self, factor: float) -> TreeEnsemble:
        """The same trees with every leaf and the base multiplied by `factor`."""
        return replace(self, values=self.values * factor, base=self.base * factor)


def _distinct(columns: Ints) -> Ints:
    """The columns that occur, in order: few of them in millions of nodes, so counted rather than sorted."""
    return np.flatnonzero(np.bincount(columns)).astype(np.int32)
