"""Trees over computed numbers: new leaf values for a tree, step functions of a score, the argmax of some scores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import UnsupportedModelError
from ...graph import Affine, Array, Elementwise, Input, Node, Select, TreeEnsemble, assemble
from ...graph.growing import Branch, Edge, Part, grown, halved
from ..common.thresholds import at_most_in_float32, less_in_float32

# ---------------------------------------------------------------- functions of one tree's leaf


def leaves_of(node: Node) -> tuple[TreeEnsemble, Array] | None:
    """The tree that a node is a function of, and the node's numbers at each leaf, (leaves, width); None for others."""
    tree = _only_tree(node)
    if tree is None:
        return None
    leaf = np.flatnonzero(tree.feature < 0)
    output = int(tree.tree_output[0])
    numbers = np.tile(tree.base, (len(leaf), 1))
    if output < 0:
        numbers += tree.values[tree.value[leaf][:, None] + np.arange(tree.width)]
    else:
        numbers[:, output] += tree.values[tree.value[leaf]]
    known: dict[Node, Array] = {tree: numbers}

    def value(at: Node) -> Array:
        if at not in known:
            constant = isinstance(at, Affine) and not at.weight.any()
            below = [np.zeros((len(leaf), p.width)) if constant else value(p) for p in at.parents]
            known[at] = at.forward(*below)
        return known[at]

    return tree, value(node)


def _only_tree(node: Node) -> TreeEnsemble | None:
    """The single tree whose leaf determines all of a node's numbers; None if there is none."""
    waiting, seen, trees = [node], set[Node](), set[TreeEnsemble]()
    while waiting:
        at = waiting.pop()
        if at in seen or (isinstance(at, Affine) and not at.weight.any()):
            continue
        seen.add(at)
        if isinstance(at, TreeEnsemble):
            trees.add(at)
        elif isinstance(at, Input) or not at.parents:
            return None
        else:
            waiting += at.parents
    tree = next(iter(trees), None)
    return tree if tree is not None and len(trees) == 1 and len(tree.roots) == 1 else None


def with_leaves(tree: TreeEnsemble, numbers: Array) -> TreeEnsemble:
    """The same tree with new leaf values, (leaves, width)."""
    count, width = numbers.shape
    value = np.full(len(tree.feature), -1, np.int32)
    value[tree.feature < 0] = np.arange(count) * width
    output = np.array([-1 if width > 1 else 0], np.int32)
    return replace(tree, value=value, values=numbers.ravel(), tree_output=output, base=np.zeros(width))


def decided(node: Node, function: Callable[[NDArray[np.float32]], NDArray[Any]]) -> TreeEnsemble | None:
    """A tree for a function of a node that depends on one tree's leaf; None for other nodes."""
    found = leaves_of(node)
    if found is None:
        return None
    return with_leaves(found[0], np.asarray(function(found[1].astype(np.float32)), np.float64))


# ---------------------------------------------------------------- trees over scores


def steps_over(source: Node, edges: Array, numbers: Array) -> TreeEnsemble:
    """A tree over a node of one column: `numbers[i]` up to `edges[i]`, which increase, and the last ones beyond."""
    several = numbers.shape[1] > 1
    leaves: list[Part] = [row if several else float(row[0]) for row in numbers]
    root = halved(leaves, lambda k, left, right: Branch(0, left, right, Edge(float(edges[k]))))
    return assemble(source, [grown(root, -1 if several else 0)], np.zeros(numbers.shape[1]))


# ---------------------------------------------------------------- the largest, and the nearest


MOST_COMPARED = 8
"""The largest number of scores whose argmax is found by a tree, which has two to this power leaves."""


def tournament(node: Node, last: bool) -> TreeEnsemble:
    """The argmax of a few scores, as a tree over their differences."""
    count = node.width
    if count > MOST_COMPARED:
        raise UnsupportedModelError(f"ArgMax and ArgMin must compare at most {MOST_COMPARED} scores; got {count}.")
    pairs = [(i, j) for i in range(count) for j in range(i + 1, count)]
    apart = np.zeros((len(pairs), count))
    for k, (i, j) in enumerate(pairs):
        apart[k, i], apart[k, j] = 1.0, -1.0
    edge = float((at_most_in_float32 if last else less_in_float32)(np.zeros(1)).threshold[0])

    def build(best: int, other: int) -> Part:
        """The largest of all, where `best` is the largest of those before `other`."""
        if other == count:
            return float(best)
        return Branch(pairs.index((best, other)), build(other, other + 1), build(best, other + 1), Edge(edge))

    return assemble(Affine(node, apart, np.zeros(len(pairs))), [grown(build(0, 1))], np.zeros(1))


def nearest(node: Node) -> TreeEnsemble | None:
    """The index of the constant nearest to a score, of increasing constants: `argmin |score - constants|`; or None.

    The distances are float32: the score at which the next constant is nearer is found by bisection among them.
    """
    inner = node.source if isinstance(node, Elementwise) and node.name == "abs" else None
    if not isinstance(inner, Affine) or not isinstance(inner.source, Select) or len(set(inner.source.columns)) != 1:
        return None
    sign = np.diag(inner.weight)
    if not np.array_equal(np.diag(sign), inner.weight) or not (np.abs(sign) == 1.0).all():
        return None
    knots = np.asarray(-inner.bias / sign, np.float32)
    score = Select(inner.source.source, inner.source.columns[:1])
    if not (np.diff(knots) >= 0).all():
        return None
    low, first = np.unique(knots, return_index=True)
    if len(low) < 2:
        return None
    edges = _half_way(low[:-1], low[1:])
    reach = np.spacing((edges[1:] - low[:-2]).astype(np.float32))
    if (np.diff(low)[:-1] < 2.0 * reach).any() or score.bounds[1].max() > low[-1]:
        raise UnsupportedModelError(
            "ArgMin over distances to constants needs constants that float32 tells apart, and a score clipped to "
            "their range."
        )
    return steps_over(score, at_most_in_float32(edges).threshold, first[:, None].astype(np.float64))


def _half_way(low: NDArray[np.float32], high: NDArray[np.float32]) -> NDArray[np.float32]:
    """The largest float32 that is not nearer to `high` than to `low`, with distances computed in float32."""
    a, b = low.copy(), high.copy()  # a is one of them, b is none
    while True:
        middle = ((a.astype(np.float64) + b) / 2.0).astype(np.float32)
        open_ = (middle > a) & (middle < b)
        if not open_.any():
            return a
        near = (middle - low) <= (high - middle)
        a, b = np.where(open_ & near, middle, a), np.where(open_ & ~near, middle, b)
