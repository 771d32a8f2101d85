"""Trees whose leaves are linear in some columns, such as LightGBM's `linear_tree`, in closed form.

The trees output a constant and coefficients, and the score is linear in both, so every leaf is computed by itself
(`kernels/smooth/linear_leaves.hpp`). Paths on which a column that leaves multiply changes at once are not straight; the
mixed engine walks those.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ... import kernels
from ...graph import Array, Fill, Input, Node, Product, Select, TreeEnsemble, value_of
from .. import limits
from ..paths import Bools, Chosen, Ints, Paths, Population
from ..settings import Credits, Settings
from .deferred import DeferredPaths, RowTotals


@dataclass(frozen=True, eq=False)
class LinearLeaves:
    """Numbers of leaves, each alone or times a column of `numbers`.

    Attributes
    ----------
    trees : TreeEnsemble
    product : Product
        Of coefficients with columns.
    numbers : Node
        The rows, or the rows with missing values filled.
    column, target, weight : (width of the trees,)
        The column that a number is multiplied by (-1: none), the output that it is added to, and its weight there.
    matrices : tuple
        Of the terms `trees` and `product`.
    """

    trees: TreeEnsemble
    product: Product
    numbers: Node
    column: Ints
    target: Ints
    weight: Array
    matrices: tuple[Array, Array]


def as_linear_leaves(terms: list[tuple[Array, Node]], source: Input) -> LinearLeaves | None:
    """The first product of outputs of trees with columns of the rows among some terms, and the same trees alone."""
    matrices = {term: matrix for matrix, term in terms}
    for product in (t for t in matrices if isinstance(t, Product)):
        if product.left.width != product.right.width:
            continue
        for side, other in ((product.left, product.right), (product.right, product.left)):
            (trees, output), (numbers, column) = _selected(side), _selected(other)
            plain = numbers is source or (isinstance(numbers, Fill) and numbers.source is source)
            if isinstance(trees, TreeEnsemble) and trees.source is source and trees.width > 1 and plain:
                alone = matrices.get(trees, np.zeros((len(matrices[product]), trees.width)))
                return _joined(trees, product, numbers, output, column, (alone, matrices[product]))
    return None


def _selected(node: Node) -> tuple[Node, Ints]:
    """The node that `node` takes its columns from, and which ones."""
    column = np.arange(node.width)
    while isinstance(node, Select):
        column = np.array(node.columns, np.int64)[column]
        node = node.source
    return node, column


def _joined(
    trees: TreeEnsemble, product: Product, numbers: Node, output: Ints, column: Ints, matrices: tuple[Array, Array]
) -> LinearLeaves | None:
    """The leaves, if each of their numbers is added to one output, by itself or times one column; else None."""
    alone, multiplied = matrices
    uses = (alone != 0.0).sum(axis=0)
    np.add.at(uses, output, (multiplied != 0.0).sum(axis=0))
    if (uses > 1).any():
        return None
    columns, target, weight = np.full(trees.width, -1), np.zeros(trees.width, np.int64), np.zeros(trees.width)
    for places, matrix in ((np.arange(trees.width), alone), (output, multiplied)):
        k, j = np.nonzero(matrix)
        target[places[j]], weight[places[j]] = k, matrix[k, j]
        if matrix is multiplied:
            columns[places[j]] = column[j]
    return LinearLeaves(trees, product, numbers, columns, target, weight, matrices)


def credits(
    linear: LinearLeaves, source: Input, paths: Paths, categories: Bools, allowed: Array, settings: Settings
) -> Credits:
    """Credit of every end for trees with linear leaves; arguments as of `mixed.attribute`."""
    k = len(linear.matrices[0])
    players = np.arange(source.width) if settings.players is None else settings.players
    totals = RowTotals.zero(len(paths.ends), players, k)
    read = np.zeros(source.width, np.bool_)
    read[linear.column[linear.column >= 0]] = True
    last = linear.trees.forward(paths.ends) * linear.weight  # the leaves at the ends
    plain = _plain(linear, source, paths, categories, read)
    starts, ends = (np.nonzero(p)[0] for p in plain)
    if isinstance(paths, Population) and len(starts) and len(ends):
        rows = (paths.starts[starts], paths.ends[ends])
        pruned = replace(linear, trees=linear.trees.where_finite(read))
        totals.values[ends] = _credit(pruned, source, rows, paths.weights[starts], last[ends], players, settings)
        if plain[0].all() and plain[1].all():
            return totals.credits()
    left_over = DeferredPaths(paths.ends)
    for block in paths.blocks(limits.LEAF_PAIRS, categories):
        numbers = [value_of(linear.numbers, {source: rows}) for rows in (block.starts, block.ends)]
        finite = np.isfinite(numbers[0]) & np.isfinite(numbers[1])
        done = plain[0][block.start] & plain[1][block.row]
        rest = np.asarray(((block.jumping | ~finite) & read).any(axis=1)) & ~done
        some = np.nonzero(~rest & ~done)[0]
        if len(some):
            one = block[some]
            part = _credit(linear, source, (one.starts, one.ends), None, last[one.row], players, settings)
            np.add.at(totals.values, one.row, part * one.weight[:, None, None])
        _add_walked(totals, linear, source, left_over.add(block, rest), categories, allowed, settings)
    _add_walked(totals, linear, source, left_over.last(), categories, allowed, settings)
    return totals.credits()


def _plain(linear: LinearLeaves, source: Input, paths: Paths, categories: Bools, some: Bools) -> tuple[Bools, Bools]:
    """Starts and ends of a population between which no path jumps in `some` columns; of pairs none."""
    if not isinstance(paths, Population) or (categories & some).any():
        return np.zeros(len(paths.starts), np.bool_), np.zeros(len(paths.ends), np.bool_)
    tables = [(rows[:, some], value_of(linear.numbers, {source: rows})[:, some]) for rows in (paths.starts, paths.ends)]
    starts, ends = (np.asarray((np.isfinite(raw) & np.isfinite(read)).all(axis=1)) for raw, read in tables)
    return starts, ends


def _add_walked(
    totals: RowTotals,
    linear: LinearLeaves,
    source: Input,
    chosen: Chosen,
    categories: Bools,
    allowed: Array,
    settings: Settings,
) -> None:
    """Add the credit of paths that are not straight, by the mixed engine."""
    from .. import mixed, terms

    for matrix, term in zip(linear.matrices, (linear.trees, linear.product), strict=True):
        if not matrix.any() or not len(chosen.row):
            continue
        walked = mixed.attribute(term, source, chosen, categories, terms.share(allowed, matrix) / 2.0, settings)
        size = np.abs(matrix).T
        error, finest, sampled = (
            np.broadcast_to(v, walked.error.shape) @ size for v in (walked.error, walked.finest, walked.sampled)
        )
        totals.add(Credits(walked.values @ matrix.T, error, finest, sampled, walked.players))


def _credit(
    linear: LinearLeaves, source: Input, rows: tuple[Array, Array], weights: Array | None, last: Array, players: Ints,
    settings: Settings,
) -> Array:  # fmt: skip
    """Credit (ends, players, k) of paths on which no column that leaves multiply jumps.

    Every start with every end, summed by `weights`, or start i with end i where that is None; `last` (ends, width) are
    the leaves at the ends.
    """
    first, to = (value_of(linear.numbers, {source: some}) for some in rows)
    out = kernels.linear_credits(
        linear.trees.grouped_forest(settings.players), rows, weights, (first, to),
        (linear.column, linear.target, linear.weight), players, len(linear.matrices[0]),
        kernels.threads(settings.n_threads),
    )  # fmt: skip
    way = to - first if weights is None else weights.sum() * to - weights @ first
    for o in np.nonzero((linear.column >= 0) & (linear.weight != 0.0))[0].tolist():
        j = linear.column[o]
        out[:, players[j], linear.target[o]] += last[:, o] * way[:, j]
    return out
