"""Shared code for meta-models: one table for all parts, the parts' outputs as nodes, and the witnesses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..._io.tables import Rows
from ...errors import UnsupportedModelError
from ...graph import (
    Affine,
    Array,
    Column,
    Concat,
    Graph,
    Input,
    Node,
    Opposite,
    Select,
    Shares,
    Sum,
    TreeEnsemble,
    Witness,
    assemble,
    merge,
)
from ...graph.forests import weighted_sum
from ...graph.growing import stump
from .. import import_model
from ..pipeline.fitted_form import as_fitted, reads_categories
from .estimator import OwnPrediction, label_of, names_of


def joined(model: Any, estimators: Sequence[Any]) -> tuple[Graph, ...]:
    """The graphs of a model's parts, merged onto one table with the columns in the model's order."""
    once = {id(e): e for e in estimators}
    imported = {key: import_model(e) for key, e in once.items()}
    graphs = [imported[id(e)] for e in estimators]
    names = names_of(model)
    if names is None or not all(g.named for g in graphs):
        return merge(graphs)
    used = {n for g in graphs for n in g.feature_names}
    order = tuple(Column(n, kind="unused") for n in names if n in used)
    source = Input(len(order))
    first = Graph(order, source, source, source, tuple(c.name for c in order), named=True)
    return merge([first, *graphs])[1:]


@dataclass(frozen=True)
class OwnTablePrediction(OwnPrediction):
    """The estimator's own prediction for rows in the form in which it was fitted: a frame, or an array.

    `several`: it returns one array for each target, of which the positive class is kept if there are two.
    """

    columns: tuple[Column, ...] = ()
    named: bool = False
    several: bool = False

    def __call__(self, rows: Rows) -> Array:
        if not self.several:
            return super().__call__(rows)
        parts = getattr(self.model, self.method)(self.data(rows))
        return np.concatenate([p[:, 1:] if p.shape[1] == 2 else p for p in parts], axis=1)

    def data(self, rows: Rows) -> Any:
        return as_fitted(rows, self.columns, self.named, reads_categories(self.model))


def built(
    model: Any,
    parts: Sequence[Graph],
    score: Node,
    names: tuple[str, ...],
    method: str,
    *,
    margin: Node | None = None,
    margin_names: tuple[str, ...] = (),
    margin_method: str = "",
    several: bool = False,
    opposite: Opposite | None = None,
) -> Graph:
    """The graph of a model over the merged graphs of its parts, with a witness of its own beside theirs."""
    over = parts[0]
    label = label_of(model)
    below = tuple(w for g in dict.fromkeys(parts) for w in g.witnesses)
    # Some meta-models compute in the precision of their input.
    rtol = max([1e-9, *(w.rtol for w in below)])
    witnesses = [*below]
    for node, name in ((score, method), (margin, margin_method)):
        if node is not None and name:
            own = OwnTablePrediction(model, name, node.width == 1, over.columns, over.named, several)
            witnesses.append(Witness(node, own, label, rtol=rtol, atol=rtol * 1e-3, lower=True))
    return replace(
        over,
        score=score,
        margin=score if margin is None else margin,
        output_names=names,
        margin_names=margin_names or (names if margin is None else ()),
        witnesses=tuple(witnesses),
        label=label,
        no_score="",
        opposite=opposite,
    )


# ---------------------------------------------------------------- outputs of parts


def output_of(estimator: Any, graph: Graph, method: str) -> Node:
    """The node for the output of a part's `method`; for two classes, predict_proba is the positive one alone."""
    if method == "decision_function":
        return graph.output("margin")[0]
    if method == "predict" and is_classifier(estimator):
        raise UnsupportedModelError(
            f"{label_of(estimator)} is used through its predicted classes, whose boundaries are not splits on one "
            "column, which GIG needs. Use a classifier with predict_proba or decision_function there."
        )
    return graph.output(None)[0]


def is_classifier(estimator: Any) -> bool:
    from sklearn.base import is_classifier as classifies

    return bool(classifies(estimator))


def has_method(estimator: Any, method: str) -> bool:
    """Whether an estimator has a method, which for many depends on their settings."""
    return getattr(estimator, method, None) is not None


def probabilities(node: Node, classes: int) -> Node:
    """The probabilities of all classes, from a graph's output, which for two classes is the positive one alone."""
    if node.width == classes:
        return node
    return Affine(node, np.array([[-1.0], [1.0]]), np.array([1.0, 0.0]))


# ---------------------------------------------------------------- small sums


def side_by_side(nodes: Sequence[Node]) -> Node:
    return nodes[0] if len(nodes) == 1 else Concat(tuple(nodes))


def mean(nodes: Sequence[Node], weights: Array | None = None) -> Node:
    """The weighted mean of nodes of one width; sums of trees over the same rows become one sum of trees."""
    share = np.full(len(nodes), 1.0 / len(nodes)) if weights is None else np.asarray(weights, np.float64)
    share = share / share.sum()
    groups: dict[Node, list[tuple[TreeEnsemble, float]]] = {}
    parts: list[Node] = []
    for node, weight in zip(nodes, share.tolist(), strict=True):
        if isinstance(node, TreeEnsemble):
            groups.setdefault(node.source, []).append((node, weight))
        else:
            parts.append(Affine(node, weight * np.eye(node.width), np.zeros(node.width)))
    parts += [weighted_sum([t for t, _ in g], [w for _, w in g]) for g in groups.values()]
    return parts[0] if len(parts) == 1 else Sum(tuple(parts))


NOTHING = 1e-12
"""Probabilities with a sum up to this count as all zero: it may be rounding of the scores below them."""


def normalised(parts: Sequence[Node], otherwise: float) -> Node:
    """Probabilities, one column each, divided by their sum; `otherwise` for each where all of them are zero."""
    node = side_by_side(parts)
    if not all((p.bounds[0] <= 0.0).any() for p in parts):  # one of them is never zero
        return Shares(node, Affine(node, np.zeros((1, node.width)), np.zeros(1)))
    # 1 where all are zero: the score jumps there, so it is modelled as a split on the sum
    split = stump(0, NOTHING, 1.0, 0.0, output=0)
    empty = assemble(Affine(node, np.ones((1, node.width)), np.zeros(1)), [split], np.zeros(1))
    shares = Shares(node, empty)
    if otherwise == 0.0:
        return shares
    return Sum((shares, Affine(empty, np.full((node.width, 1), otherwise), np.zeros(node.width))))


def positive(node: Node) -> Node:
    """The second of two columns; all columns if there are not two."""
    return Select(node, (1,)) if node.width == 2 else node
