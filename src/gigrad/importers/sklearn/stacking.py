"""StackingClassifier and StackingRegressor: a final model over the scores of others and, with passthrough, over x."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ...errors import UnsupportedModelError
from ...graph import Graph, Input, Node, attach, merge
from .. import import_model
from ..common.estimator import names_of, require_fitted
from ..common.links import class_left_out, class_outputs, plain_outputs
from ..common.meta import built, has_method, is_classifier, joined, output_of, side_by_side


def import_stacking(model: Any) -> Graph:
    """StackingClassifier and StackingRegressor; of two probabilities of a part the first is dropped, as in sklearn."""
    require_fitted(model)
    classifier = is_classifier(model)
    if classifier and isinstance(model.classes_, list):
        raise UnsupportedModelError("StackingClassifier is supported for one target; this one has several.")
    head = import_model(model.final_estimator_)
    parts: Sequence[Graph] = joined(model, model.estimators_)
    scores = sum(n.width for n in _answers(model, parts))
    if model.passthrough:
        *parts, rows = merge([*parts, _rows(model, head, scores)])
        source = side_by_side([*_answers(model, parts), rows.score])
    else:
        source = side_by_side(_answers(model, parts))
    if source.width != head.input.width:
        raise UnsupportedModelError(
            f"The final estimator of the stack must read the {source.width} columns of its parts; it reads "
            f"{head.input.width}. Fit them together."
        )
    above = attach(head, parts[0], source)
    names = class_outputs(model.classes_) if classifier else plain_outputs(head.score.width)
    two = head.margin is not head.score
    return built(
        model,
        parts,
        above.score,
        names,
        "predict_proba" if classifier else "predict",
        margin=above.margin if two else None,
        margin_names=names if head.margin.width == len(names) else head.margin_names,
        margin_method="decision_function" if two and has_method(model, "decision_function") else "",
        opposite=class_left_out(model.classes_, margin_total=0.0 if two else 1.0) if classifier else None,
    )


def _answers(model: Any, parts: Sequence[Graph]) -> list[Node]:
    methods = [m for m in model.stack_method_ if m is not None]
    return [output_of(e, g, m) for e, g, m in zip(model.estimators_, parts, methods, strict=True)]


def _rows(model: Any, head: Graph, skip: int) -> Graph:
    """The columns of x that the final model reads after the scores, as a graph of their own."""
    names = names_of(model) or tuple(f"x{j}" for j in range(len(head.columns) - skip))
    columns = tuple(replace(c, name=n) for c, n in zip(head.columns[skip:], names, strict=True))
    if any(c.kind == "category" for c in columns):
        raise UnsupportedModelError(
            "A stack with passthrough is supported where its final estimator reads x as numbers; it reads a category."
        )
    source = Input(len(columns))
    return Graph(columns, source, source, source, names, named=names_of(model) is not None, label="x")
