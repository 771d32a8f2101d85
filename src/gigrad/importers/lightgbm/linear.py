"""LightGBM's linear trees: leaves that are linear in some columns, so that the model is `g(x, d(x))`.

The trees output the constant and the coefficients of a row's leaf; the margin is the constant plus the sum of products
with the row's own numbers. A leaf that reads a missing value gives a constant instead: one more split on missing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..._io.tables import Rows
from ...graph import Affine, Array, Concat, Fill, Input, Node, Product, Select, Tree, Witness, assemble
from ...graph.growing import Nodes
from ...graph.witness import Predict
from ..common.links import DOUBLE, bound
from .trees import LinearLeaf, TextTree


def linear_margin(
    source: Input, trees: Sequence[TextTree], outputs: int, predict: Predict, label: str
) -> tuple[Node, Witness, None]:
    """The margin of a model with linear leaves, and its witness.

    The rounding error depends on the rows, so there is no bound for all rows: the third value is None.
    """
    used = sorted({int(c) for t in trees for leaf in t.linear for c in leaf.columns})
    place = {column: j for j, column in enumerate(used)}
    width = outputs * (1 + len(used))
    leaves = assemble(
        source, [_vector_tree(t, i % outputs, outputs, place) for i, t in enumerate(trees)], np.zeros(width)
    )
    margin: Node = Select(leaves, tuple(range(outputs)))
    if used:
        numbers = Select(Fill(source, np.zeros(source.width)), tuple(used) * outputs)
        slopes = Select(leaves, tuple(range(outputs, width)))
        terms = Concat((margin, Product(slopes, numbers)))
        weight = np.hstack([np.eye(outputs), np.kron(np.eye(outputs), np.ones(len(used)))])
        margin = Affine(terms, weight, np.zeros(outputs))
    most = bound(leaves)

    def scale(rows: Rows) -> Array:
        with np.errstate(over="ignore"):
            total: Array = most * (1.0 + np.nan_to_num(np.abs(rows.matrix[:, used])).sum(axis=1))
        return np.repeat(total[:, None], outputs, axis=1)

    rounding = DOUBLE * (16.0 + 4.0 * float(np.sqrt(len(trees) * (1 + len(used)))))
    return margin, Witness(margin, predict, label, rtol=rounding, scale=scale), None


def _vector_tree(read: TextTree, output: int, outputs: int, place: dict[int, int]) -> Tree:
    """A tree whose leaves hold constants for all outputs, then the coefficients of all outputs' used columns."""
    nodes, width = Nodes.of(read.tree), outputs * (1 + len(place))
    for i, node in enumerate(list(nodes.values)):  # the leaves, in their order
        if not read.linear:
            nodes.leaf(_row(width, output, float(read.tree.values[node])), at=node)
            continue
        leaf = read.linear[i]
        row = _row(width, output, leaf.constant)
        at = [outputs + output * len(place) + place[int(c)] for c in leaf.columns]
        np.add.at(row, at, leaf.coefficients)
        _split_on_missing(nodes, node, leaf, row, _row(width, output, leaf.fallback))
    return nodes.tree(-1)


def _row(width: int, output: int, constant: float) -> Array:
    row = np.zeros(width)
    row[output] = constant
    return row


def _split_on_missing(nodes: Nodes, node: int, leaf: LinearLeaf, linear: Array, fallback: Array) -> None:
    """Turn a leaf into a chain of splits: to the fallback if any of its columns is missing, else to the linear leaf."""
    if not len(leaf.columns):
        nodes.leaf(linear, at=node)
        return
    missing = nodes.leaf(fallback)
    target = nodes.leaf(linear)
    first, *others = leaf.columns.tolist()
    for column in reversed(others):
        target = nodes.split(column, target, missing)
    nodes.split(first, target, missing, at=node)
