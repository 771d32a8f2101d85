"""Chains of models, each of which also reads the predictions of those before it: ClassifierChain, RegressorChain."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ...errors import UnsupportedModelError
from ...graph import Concat, Graph, Input, Node, assemble, attach
from ...graph.growing import stump
from .. import import_model
from ..common.estimator import label_of, names_of, number_columns, require_fitted
from ..common.links import plain_outputs
from ..common.meta import built, has_method, is_classifier, side_by_side


def import_chain(model: Any) -> Graph:
    """ClassifierChain and RegressorChain: every target, in the order of the columns of y."""
    require_fitted(model)
    classifier = is_classifier(model)
    method = getattr(model, "chain_method_", "predict")
    base = _rows(model)
    said: list[Node] = []
    answers: list[Node] = []
    for estimator in model.estimators_:
        head = import_model(estimator)
        if classifier and len(estimator.classes_) != 2:
            raise UnsupportedModelError("ClassifierChain is supported for targets of two classes each.")
        above = attach(head, replace(base, witnesses=()), Concat((base.input, *said)) if said else base.input)
        answers.append(above.output(None)[0])
        said.append(_handed_on(estimator, above, method) if classifier else above.output(None)[0])
    place = np.argsort(np.asarray(model.order_))
    score = side_by_side([answers[int(i)] for i in place])
    return built(model, [base], score, plain_outputs(score.width), "predict_proba" if classifier else "predict")


def _rows(model: Any) -> Graph:
    """The graph whose outputs are the columns themselves, which members of a chain read."""
    source = Input(model.n_features_in_)
    columns = number_columns(model)
    names = tuple(c.name for c in columns)
    return Graph(columns, source, source, source, names, named=names_of(model) is not None, label=label_of(model))


def _handed_on(estimator: Any, graph: Graph, method: str) -> Node:
    """The output of a classifier that later models of the chain read: probability, decision or predicted class."""
    if method == "predict_proba":
        return graph.output(None)[0]
    if method == "decision_function":
        return graph.output("margin")[0]
    if method != "predict":
        raise UnsupportedModelError(
            f"ClassifierChain(chain_method={method!r}) cannot be imported; use 'predict_proba', 'decision_function' or "
            "'predict'."
        )
    low, high = (float(c) for c in estimator.classes_)
    by_decision = has_method(estimator, "decision_function")
    node = graph.output("margin" if by_decision else None)[0]
    return assemble(node, [stump(0, 0.0 if by_decision else 0.5, low, high, 0)], np.zeros(1))
