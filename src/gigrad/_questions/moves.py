"""The moves that one column of a row may make, and the breakpoints of the score along it.

Trees decide by `x <= threshold`, exactly, so a score that reads a column through trees alone is constant between two
neighbouring thresholds, the upper one included. One move into each such piece, to its nearest allowed value, represents
all of it. A column that a smooth part reads is tried at every allowed value if they are few, else at sampled points.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._explain.explainer import Explainer
from .._io.tables import Rows
from ..engine import categories_read
from ..errors import InputError
from ..graph import Array, Column, Input, Node, TreeEnsemble, topological
from ..graph.node import Columns, union
from ..references.nearest import mid_rank
from .rules import Grid, Rule

MOST_VALUES = 5000
"""A column that a smooth part reads is tried at all allowed values if there are at most this many."""
SAMPLED = 200
"""The number of points at which such a column is tried if it has more."""
DECIMALS = 4
"""A column whose reference values have at most this many decimals changes in steps of the last decimal."""


@dataclass(frozen=True, eq=False)
class Moves:
    """What one column may be changed to, the cheapest first.

    Attributes
    ----------
    column : int
    values : (m,)
        Encoded: numbers, or codes of categories.
    cost : (m,)
    far : (m,)
        How far each is in units of the reference's range; settles ties of cost.
    complete : bool
        Whether every allowed value has the score of one of these moves that costs no more.
    grid : Grid or None
        Of a number.
    """

    column: int
    values: Array
    cost: Array
    far: Array
    complete: bool
    grid: Grid | None

    def __len__(self) -> int:
        return len(self.values)

    def take(self, some: NDArray[Any]) -> Moves:
        """Some of the moves."""
        return Moves(self.column, self.values[some], self.cost[some], self.far[some], self.complete, self.grid)


def smooth_columns(node: Node, source: Input) -> NDArray[np.bool_]:
    """Which columns `node` reads other than through trees over the input columns, (p,)."""
    read: dict[Node, Columns] = {source: [{j} for j in range(source.width)]}
    for one in topological(node):
        if one in read:
            continue
        if isinstance(one, TreeEnsemble) and one.source is source:
            read[one] = [set() for _ in range(one.width)]
        else:
            read[one] = one.columns_behind([read[p] for p in one.parents])
    out = np.zeros(source.width, np.bool_)
    out[sorted(union(read[node]))] = True
    return out


def thresholds(node: Node, source: Input, column: int) -> Array:
    """All thresholds of trees on one column, in order."""
    found = [np.zeros(0)]
    for tree in topological(node):
        if isinstance(tree, TreeEnsemble) and tree.source is source:
            mine = (tree.feature == column) & (tree.category_set < 0)
            found.append(tree.threshold[mine])
    every: Array = np.unique(np.concatenate(found))
    return every[np.isfinite(every)]


@dataclass(frozen=True, eq=False)
class Field:
    """The moves that are possible from one row, and their costs relative to the reference."""

    explainer: Explainer
    given: Rows
    prices: dict[str, float]

    @property
    def row(self) -> Array:
        """The row, encoded, (p,)."""
        return np.asarray(self.given.matrix[0])

    @property
    def node(self) -> Node:
        return self.explainer.scorer.node

    @property
    def source(self) -> Input:
        return self.explainer.scorer.source

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.explainer.scorer.columns

    def is_category(self, column: int) -> bool:
        """Whether a column changes all at once."""
        return self.columns[column].kind == "category" or bool(self._categories[column])

    @cached_property
    def _categories(self) -> NDArray[np.bool_]:
        return categories_read(self.node, self.source)

    @cached_property
    def smooth(self) -> NDArray[np.bool_]:
        """Which columns a smooth part of the model reads, (p,)."""
        return smooth_columns(self.node, self.source)

    def held(self, column: int) -> Array:
        """The reference's values of a column, without missing ones."""
        values = self.explainer.reference.matrix[:, column]
        return values[np.isfinite(values)]

    def moves(self, column: int, rule: Rule) -> Moves:
        """The moves of a column under a rule."""
        if rule.direction == "frozen" or self.columns[column].kind == "unused" or not len(self.held(column)):
            return self._moves(column, np.zeros(0), True, None)
        if self.is_category(column):
            return self._moves(column, self._labels(column, rule), True, None)
        grid = self.grid(column, rule)
        edges = thresholds(self.node, self.source, column)
        few = grid.finite and grid.count() <= MOST_VALUES
        if not self.smooth[column]:
            values, complete = self._into_pieces(column, grid, edges, rule), True
        elif few:
            values, complete = grid.all(), True
        else:
            values, complete = self._sampled(grid, edges), False
        now = self.row[column]
        if not np.isnan(now):
            allowed = {"up": values > now, "down": values < now}.get(rule.direction, values != now)
            values = values[allowed]
        return self._moves(column, values, complete, grid)

    def grid(self, column: int, rule: Rule) -> Grid:
        """The numbers that a column may take, by default within the reference's range.

        They are those of its rule; else the values of a discrete column, the whole numbers, or all decimals with as
        many places as the reference's values have.
        """
        held = self.held(column)
        now = self.row[column]
        name = self.explainer.reference.names[column]
        if rule.values is not None:
            held = np.unique(np.asarray(rule.values, np.float64))
        low = float(held.min(initial=np.inf)) if rule.low is None else rule.low
        high = float(held.max(initial=-np.inf)) if rule.high is None else rule.high
        if rule.values is not None:
            return Grid(None, held, low, high)
        if rule.step is not None:
            return Grid(rule.step, None, low, high)
        choice = self.explainer.choice.discrete
        support = choice.get(name)
        if support is not None:
            return Grid(None, np.array(support), low, high)
        if name in choice:
            return Grid(1.0, None, low, high)
        for places in range(DECIMALS + 1):
            if (np.round(held, places) == held).all() and (np.isnan(now) or round(now, places) == now):
                return Grid(10.0**-places, None, low, high)
        return Grid(None, None, low, high)

    def _labels(self, column: int, rule: Rule) -> Array:
        """The codes of the categories that a column may become: those of the reference, or the listed ones."""
        seen: Array = np.unique(self.held(column))
        seen = seen[seen >= 0]
        if rule.values is not None:
            known = self.columns[column]
            wanted = known.codes(rule.values) if known.labels is not None else np.asarray(rule.values, np.float64)
            if (wanted < 0).any():
                odd = rule.values[int(np.flatnonzero(wanted < 0)[0])]
                raise InputError(f"values of {known.name!r} must be labels that the model knows; got {odd!r}.")
            seen = np.unique(wanted)
        return np.asarray(seen[seen != self.row[column]])

    def _into_pieces(self, column: int, grid: Grid, edges: Array, rule: Rule) -> Array:
        """The allowed value nearest to the row's in every other piece between thresholds that holds one."""
        now = self.row[column]
        bounds = np.concatenate([[-np.inf], edges, [np.inf]])
        found: list[float | None] = []
        for low, high in pairwise(bounds.tolist()):
            if np.isnan(now) or now <= low:
                found.append(grid.first_above(low, high))
            elif now > high:
                found.append(grid.last_upto(high, low))
        return np.array([v for v in found if v is not None])

    def _sampled(self, grid: Grid, edges: Array) -> Array:
        """Points across the range, and both sides of every threshold in it."""
        inside = edges[(edges >= grid.low) & (edges < grid.high)]
        sides = [v for edge in inside for v in (grid.last_upto(edge, -np.inf), grid.first_above(edge, np.inf))]
        spread = np.linspace(grid.low, grid.high, SAMPLED)
        if grid.finite:
            spread = np.array([v for s in spread if (v := grid.last_upto(s, -np.inf)) is not None])
        return np.unique(np.concatenate([spread, [v for v in sides if v is not None]]))

    def _moves(self, column: int, values: Array, complete: bool, grid: Grid | None) -> Moves:
        cost, far = self.cost(column, values)
        order = np.lexsort((far, cost))
        return Moves(column, values[order], cost[order], far[order], complete, grid)

    def cost(self, column: int, values: Array) -> tuple[Array, Array]:
        """What changing a column to each of some values costs, and how far they are; (m,) each.

        By default the share of the reference between the old value and the new one, which does not depend on units; 1
        for another category and from a missing value. With a price, the number of units times the price.
        """
        now, held = self.row[column], self.held(column)
        if self.is_category(column) or np.isnan(now):
            price = self.prices.get(self.explainer.reference.names[column], 1.0)
            return _rounded(np.full(len(values), price)), np.ones(len(values))
        apart = np.abs(values - now)
        far = apart / (np.ptp(held) or 1.0) if len(held) else apart
        price_of_unit = self.prices.get(self.explainer.reference.names[column])
        if price_of_unit is not None:
            return _rounded(price_of_unit * apart), far
        matrix, weights = self.explainer.reference.matrix[:, column], self.explainer.weights
        return _rounded(np.abs(mid_rank(matrix, weights, values) - mid_rank(matrix, weights, now))), far


def _rounded(cost: Array) -> Array:
    """Costs as multiples of 2^-30, so that sums of them are exact and slices of rising cost miss none."""
    return np.asarray(np.rint(cost * 2.0**30) * 2.0**-30)
