"""The weighted median of some scores, which skl2onnx writes for AdaBoostRegressor in a dozen operators, as one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import UnsupportedModelError
from ...graph import WeightedMedian
from .common import node_of
from .proto import Operator
from .values import Numbers, Value

PICKING = ("TopK", "CumSum", "GatherElements")
"""The operators that are imported only as parts of a median."""

_WEIGHTS = "weights of the median"


def with_medians(operators: Sequence[Operator], constants: Mapping[str, NDArray[Any]]) -> list[Operator]:
    """The operators with each weighted median as one GatherElements, which holds its weights."""
    made = {name: o for o in operators for name in o.outputs}
    out, gone = list[Operator](), set[int]()
    for operator in operators:
        found = _median(operator, made, constants) if operator.kind == "GatherElements" else None
        if found is None:
            out.append(operator)
            continue
        scores, weights, inner = found
        gone |= {id(o) for o in inner}
        out.append(Operator("GatherElements", (scores,), operator.outputs, {_WEIGHTS: weights}))
    left = [o for o in out if id(o) not in gone]
    if any(o.kind in PICKING and _WEIGHTS not in o.attributes for o in left):
        raise UnsupportedModelError(
            f"{', '.join(PICKING)} are imported only as parts of a weighted median of scores, as skl2onnx writes it "
            "for AdaBoostRegressor."
        )
    return left


def _median(
    last: Operator, made: Mapping[str, Operator], constants: Mapping[str, NDArray[Any]]
) -> tuple[str, NDArray[Any], list[Operator]] | None:
    """The scores, their weights and the operators of the median that ends in `last`; None if it is no median.

    skl2onnx sorts the scores as the largest of their negatives (TopK), takes the cumulative sum of the weights in that
    order, and picks the first score at which it is at least half of the total.
    """
    inner: list[Operator] = []

    def maker(name: str, kind: str) -> Operator | None:
        operator = made.get(name)
        if operator is None or operator.kind != kind:
            return None
        inner.append(operator)
        return operator

    def chain(name: str, *kinds: str) -> Operator | None:
        """The last of operators that read each other, each by its first input."""
        operator = None
        for kind in kinds:
            operator = maker(name, kind)
            if operator is None:
                return None
            name = operator.inputs[0]
        return operator

    scores = last.inputs[0]
    place = maker(last.inputs[1], "GatherElements")
    less = chain(place.inputs[1], "ArgMin", "Cast", "Less") if place is not None else None
    taken = chain(less.inputs[0], "CumSum", "Reshape", "ArrayFeatureExtractor") if less is not None else None
    half = maker(less.inputs[1], "Mul") if less is not None else None
    end = maker(half.inputs[0], "ArrayFeatureExtractor") if half is not None else None
    order = maker(place.inputs[0], "TopK") if place is not None else None
    turned = maker(order.inputs[0], "Mul") if order is not None else None
    if place is None or less is None or taken is None or half is None or end is None or turned is None or order is None:
        return None
    weights = np.asarray(constants.get(taken.inputs[0], np.zeros(0)), np.float64).ravel()

    def number(name: str) -> float:
        return float(np.asarray(constants.get(name, np.nan)).ravel()[0])

    fits = (
        len(order.outputs) == 2
        and taken.inputs[1] == place.inputs[0] == order.outputs[1]
        and end.inputs[0] == less.inputs[0]
        and (number(half.inputs[1]), number(turned.inputs[1])) == (0.5, -1.0)
        and turned.inputs[0] == scores
        and (number(order.inputs[1]), number(end.inputs[1])) == (len(weights), len(weights) - 1)
        and not any(o.get(k) for o in inner for k in ("exclusive", "reverse", "select_last_index"))
        and all(int(o.get("axis", 1)) in (1, -1) for o in (*inner, last))
        and int(order.get("largest", 1)) == 1
    )
    return (scores, weights, inner) if fits else None


def median(operator: Operator, values: Sequence[Value]) -> Numbers:
    """The weighted median of the scores, which `with_medians` has put in place of its operators."""
    weights = np.asarray(operator.get(_WEIGHTS))
    node = node_of(operator, values[0])
    if len(weights) != node.width or (weights < 0.0).any() or not weights.sum() > 0.0:
        raise UnsupportedModelError("A weighted median must have one weight for each score, none negative.")
    return Numbers(WeightedMedian(node, weights))
