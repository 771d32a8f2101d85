"""Operators that make step functions of computed numbers: comparisons, ArgMax, table lookups.

The result is a tree over the numbers they read. If those are already a function of one tree's leaf, the leaf values are
replaced, which is exact to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ...errors import UnsupportedModelError
from ...graph import Affine, Array, Concat, Node, Product, Select, Sum, Switch, assemble
from ...graph.growing import stump
from ..common.thresholds import at_most_in_float32, less_in_float32
from .column_steps import MIRRORED, largest, looked_up_shape
from .columns import CASTS
from .common import Side, aligned, any_shape, like, node_of, placed, scaled
from .proto import Operator, unsupported
from .score_trees import decided, nearest, steps_over, tournament
from .shape import Shape
from .values import Fixed, Labels, Numbers, Value, shape_of, side_by_side


def _cut(side: Side, edges: Array, numbers: Array) -> Node:
    """A step function for each column of a side: edges (columns, k), numbers (columns, k + 1)."""
    node = side.wide()
    if isinstance(node, Select) and len(set(node.columns)) == 1:  # one number compared with several constants
        every = np.unique(edges)
        inside = np.append(every, np.inf)
        table = np.stack([n[np.searchsorted(e, inside, side="left")] for e, n in zip(edges, numbers, strict=True)], 1)
        return steps_over(Select(node.source, node.columns[:1]), every, table)
    trees = [
        stump(j, float(e), n[i], n[i + 1], j) if i == 0 else stump(j, float(e), 0.0, n[i + 1] - n[i], j)
        for j, (row, n) in enumerate(zip(edges, numbers, strict=True))
        for i, e in enumerate(row)
    ]
    return assemble(node, trees, np.zeros(node.width))


def _edges(kind: str, t: Array) -> tuple[Array, Array]:
    """Edges, (columns, k), and numbers between them of a comparison with constants, in float32."""
    below, up_to = less_in_float32(t).threshold, at_most_in_float32(t).threshold
    if kind == "Equal":
        return np.stack([below, up_to], 1), np.tile([0.0, 1.0, 0.0], (len(t), 1))
    edges = (below if kind in ("Less", "GreaterOrEqual") else up_to)[:, None]
    first = float(kind in ("Less", "LessOrEqual"))
    return edges, np.tile([first, 1.0 - first], (len(t), 1))


_COMPARE: dict[str, Callable[..., NDArray[np.bool_]]] = {
    "Less": np.less, "Greater": np.greater, "LessOrEqual": np.less_equal, "GreaterOrEqual": np.greater_equal,
    "Equal": np.equal,
}  # fmt: skip


def compared(operator: Operator, values: Sequence[Value]) -> Value:
    """A comparison: 1 where it holds, 0 elsewhere."""
    kind = operator.kind
    first, second = values
    if isinstance(first, Fixed):
        first, second, kind = second, first, MIRRORED[kind]
    if isinstance(first, Numbers) and first.truncated:
        return _truncated(operator, first, second)
    (a, b), shape = aligned(operator, [first, second])
    if b.node is None:
        constants = b.constants.astype(np.float32)
        found: Node | None = decided(a.wide(), lambda x: _COMPARE[kind](x, constants))
        if found is None and (always := _always(a.wide(), kind, constants.astype(np.float64))) is not None:
            return Fixed(np.array([[always] * len(constants)]).reshape(1, *shape.after), repeated=True)
        return placed(_cut(a, *_edges(kind, constants.astype(np.float64))) if found is None else found, shape)
    width = len(a.places)
    found = decided(Concat((a.wide(), b.wide())), lambda x: _COMPARE[kind](x[:, :width], x[:, width:]))
    if found is None:
        less = Sum((a.wide(), scaled(b.wide(), -np.ones(1), np.zeros(1))))
        found = _cut(Side(less, tuple(range(width)), np.zeros(0)), *_edges(kind, np.zeros(width)))
    return placed(found, shape)


def _always(node: Node, kind: str, t: Array) -> bool | None:
    """The result of a comparison if the range of the numbers determines it; else None."""
    low, high = node.bounds
    below, above = bool((high < t).all()), bool((low > t).all())
    if not (below or above):
        return None
    return kind in ("Less", "LessOrEqual") if below else kind in ("Greater", "GreaterOrEqual")


def _truncated(operator: Operator, value: Numbers, other: Value) -> Value:
    """A comparison of a truncated number with an integer, as a comparison of the number itself."""
    if not isinstance(other, Fixed) or other.array.size != 1 or operator.kind != "Equal":
        raise unsupported(f"{operator.kind} of numbers truncated to integers")
    t = float(other.numbers().ravel()[0])
    low, high = t - float(t <= 0.0), t + float(t >= 0.0)
    bare = Numbers(value.node, None, value.shape)
    kinds = ("Greater" if t <= 0.0 else "GreaterOrEqual", "Less" if t >= 0.0 else "LessOrEqual")
    both = [
        compared(Operator(k, (), (), {}), [bare, Fixed(np.array(v, np.float32))])
        for k, v in zip(kinds, (low, high), strict=True)
    ]
    return logical(Operator("And", (), (), {}), both)


# ---------------------------------------------------------------- operators


def logical(operator: Operator, values: Sequence[Value]) -> Value:
    """Not, And, Or of numbers that are 0 or 1."""
    if operator.kind == "Not":
        value = any_shape(operator, values[0])
        return like(value, scaled(value.node, -np.ones(1), np.ones(1)))
    join = np.logical_and if operator.kind == "And" else np.logical_or
    if all(isinstance(v, Fixed) for v in values):
        both = [v for v in values if isinstance(v, Fixed)]
        return Fixed(join(*(v.array for v in both)), any(v.repeated for v in both))
    sides, shape = aligned(operator, values)
    constant = next((s.constants for s in sides if s.node is None), None)
    nodes = [s.wide() for s in sides if s.node is not None]
    if constant is not None:  # 0 and 1 again, or what one of them makes of every number
        one = (constant != 0.0).astype(np.float64)
        kept = one if operator.kind == "And" else 1.0 - one
        return placed(scaled(nodes[0], kept, np.zeros(1) if operator.kind == "And" else one), shape)
    product: Node = Product(nodes[0], nodes[1])
    if operator.kind == "Or":
        product = Sum((*nodes, scaled(product, -np.ones(1), np.zeros(1))))
    return placed(product, shape)


def cast(operator: Operator, values: Sequence[Value]) -> Value:
    """Cast: numbers stay numbers, are truncated, or become 1 if they are not zero."""
    to = CASTS[int(operator.get("to", 0))]
    value = any_shape(operator, values[0])
    if to in ("float32", "float64"):
        return value
    if to == "string":
        raise unsupported("Cast of computed numbers to text")
    if to != "bool":
        whole = decided(value.node, np.trunc)
        return Numbers(value.node, None, value.shape, truncated=True) if whole is None else like(value, whole)
    found: Node | None = decided(value.node, lambda x: (x != 0.0).astype(np.float64))
    low, high = value.node.bounds
    if found is None and ((low > 0.0) | (high < 0.0)).all() and not shape_of(value).before:
        return Fixed(np.ones((1, *shape_of(value).after), bool), repeated=True)
    if found is None:
        side = Side(value.node, tuple(range(value.node.width)), np.zeros(0))
        edges, numbers = _edges("Equal", np.zeros(value.node.width))
        found = _cut(side, edges, 1.0 - numbers)
    return like(value, found)


def where(operator: Operator, values: Sequence[Value]) -> Value:
    """Where: one of two numbers, column by column."""
    if isinstance(values[0], Fixed):
        raise UnsupportedModelError("The condition of Where must be computed from the row; it is constant.")
    (condition, yes, no), shape = aligned(operator, values)
    chosen = condition.wide()
    if yes.node is None and no.node is None:
        a, b = yes.constants, no.constants
        found = decided(chosen, lambda x: np.where(x != 0.0, a, b))
        return placed(scaled(chosen, a - b, b) if found is None else found, shape)
    either = [_numbers_of(side, chosen) for side in (no, yes)]
    if set(condition.places) == {0}:
        return placed(Switch(Select(chosen, (0,)), (either[0], either[1])), shape)
    columns = range(chosen.width)
    return placed(side_by_side([Switch(*_column(j, chosen, either)) for j in columns]), shape)


def _numbers_of(side: Side, like_this: Node) -> Node:
    """A side as a node, which constants are too."""
    if side.node is not None:
        return side.wide()
    return Affine(like_this, np.zeros((len(side.constants), like_this.width)), side.constants)


def _column(j: int, chosen: Node, either: Sequence[Node]) -> tuple[Node, tuple[Node, Node]]:
    first, second = (Select(node, (j,)) for node in either)
    return Select(chosen, (j,)), (first, second)


def class_number(labels: Labels) -> Value:
    """A predicted class as a number, where classes are numbers: the one with the largest score."""
    scores, classes = labels.scores, labels.classes
    if scores is None or len(classes) != scores.node.width or not all(isinstance(c, int) for c in classes):
        raise UnsupportedModelError("Predicted classes cannot be explained: what reads them is not imported.")
    place = place_of_largest(Operator("ArgMax", (), (), {"axis": 1, "keepdims": 0}), [scores])
    numbers = np.array(classes, np.float64)
    node = decided(any_shape(Operator("Cast", (), (), {}), place).node, lambda x: numbers[x.astype(np.int64)])
    if node is None:
        raise UnsupportedModelError("Predicted classes cannot be explained: what reads them is not imported.")
    return placed(node, Shape())


def place_of_largest(operator: Operator, values: Sequence[Value]) -> Value:
    """ArgMax and ArgMin over the columns."""
    node = node_of(operator, values[0])
    if int(operator.get("axis", 0)) not in (1, -1):
        raise unsupported(f"{operator.kind} along other axes than the columns")
    least, last = operator.kind == "ArgMin", bool(operator.get("select_last_index", 0))
    found = decided(node, lambda x: largest(x.astype(np.float64), least, last)[:, None])
    if found is None and least and not last:
        found = nearest(node)
    if found is None:
        found = tournament(node if not least else scaled(node, -np.ones(1), np.zeros(1)), last)
    return placed(found, Shape((), (1,)) if int(operator.get("keepdims", 1)) else Shape())


def one_hot(operator: Operator, values: Sequence[Value]) -> Value:
    """OneHotEncoder of a computed integer."""
    value = any_shape(operator, values[0])
    labels = np.array(operator.get("cats_int64s") or [], np.float64)
    found = decided(value.node, lambda x: (x[:, :, None] == labels).reshape(len(x), -1).astype(np.float64))
    if found is None or not len(labels) or not int(operator.get("zeros", 1)):
        raise UnsupportedModelError("OneHotEncoder must read a column of the table, or the place of the largest score.")
    own = shape_of(value)
    return placed(found, replace(own, after=(*own.after, len(labels))))


def looked_up(operator: Operator, values: Sequence[Value]) -> Value:
    """Constants at a computed index."""
    table, index = values
    place = any_shape(operator, index)
    if not isinstance(table, Fixed) or place.node.width != 1:
        raise UnsupportedModelError(
            f"{operator.kind} at a computed index must take one constant a row; this one does not."
        )
    entries, shape = looked_up_shape(operator, table, shape_of(place))
    found = decided(place.node, lambda x: entries.T[np.clip(x[:, 0].astype(np.int64), 0, entries.shape[1] - 1)])
    if found is None:
        raise UnsupportedModelError(
            f"{operator.kind} must have a constant index, or that of the largest or least score."
        )
    return placed(found, shape)


SCORE_STEPS = {
    **dict.fromkeys(_COMPARE, compared), **dict.fromkeys(("Not", "And", "Or"), logical), "Cast": cast, "Where": where,
    "ArgMax": place_of_largest, "ArgMin": place_of_largest, "OneHotEncoder": one_hot, "Gather": looked_up,
    "ArrayFeatureExtractor": looked_up,
}  # fmt: skip
"""The function for each operator that makes step functions of numbers."""
