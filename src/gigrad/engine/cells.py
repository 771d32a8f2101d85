"""Rows that are equal for trees: on the same side of every split, in columns that change at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..graph import Array, Input, Node, TreeEnsemble, topological
from ..graph.forests import words_of
from .paths import Ints


def told_apart(node: Node, source: Input, rows: Array) -> Array:
    """Rows (m, p) with one value in place of all values of a column that give the same credits, whatever the end is.

    Such values lie on the same side of every split of the column, and every split is passed half-way, whatever they
    are: splits by categories and of nominal columns. Of a column that no split reads, all values are such. The rows
    are left as they are where anything else than trees reads them.
    """
    readers = [n for n in topological(node) if source in n.parents]
    trees = [n for n in readers if isinstance(n, TreeEnsemble)]
    if len(trees) < len(readers) or not trees:
        return rows
    out = rows.copy()
    read, passed = np.zeros((2, rows.shape[1]), np.bool_)
    for tree in trees:
        splits = np.flatnonzero(tree.feature >= 0)
        read[tree.feature[splits]] = True
        passed[tree.feature[splits[~_at_once(tree, splits)]]] = True
    if not read.all() and len(rows):
        out[:, ~read] = np.fmin.reduce(rows[:, ~read], axis=0)  # missing only where all values are
    for column in np.flatnonzero(read & ~passed).tolist():
        numbers = [np.flatnonzero(t.feature == column) for t in trees]
        values, place = np.unique(rows[:, column], return_inverse=True)  # missing ones count as equal
        sides = np.concatenate([_sides(t, some, values) for t, some in zip(trees, numbers, strict=True)], axis=1)
        _, first, cell = np.unique(sides, axis=0, return_index=True, return_inverse=True)
        out[:, column] = values[first[cell.ravel()]][place]
    return out


def _at_once(trees: TreeEnsemble, splits: Ints) -> NDArray[np.bool_]:
    return np.asarray((trees.category_set[splits] >= 0) | np.isnan(trees.place[splits]))


def _sides(trees: TreeEnsemble, splits: Ints, values: Array) -> NDArray[np.bool_]:
    """Whether each value goes left at each split, (values, splits); each set of categories is looked at once."""
    left = values[:, None] <= trees.threshold[splits]
    sets = trees.category_set[splits]
    for each in np.unique(sets[sets >= 0]).tolist():
        words = words_of(trees, each)
        inside = (values > -1.0) & (values < 32.0 * len(words))
        code = np.where(inside, values, 0.0).astype(np.int64)
        bits = np.append(words, np.uint32(0))[code // 32] >> (code % 32).astype(np.uint32) & np.uint32(1)
        left[:, sets == each] = (inside & (bits == 1))[:, None]
    return np.where(np.isnan(values)[:, None], trees.missing_left[splits], left)
