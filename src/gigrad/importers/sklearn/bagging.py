"""Ensembles that fit their parts on arrays: bagging, AdaBoost, isolation forests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...errors import UnsupportedModelError
from ...graph import (
    Affine,
    Array,
    Column,
    Elementwise,
    Graph,
    Input,
    Node,
    Select,
    Softmax,
    TreeEnsemble,
    WeightedMedian,
    assemble,
    merge,
)
from ...graph.assembly import DTYPES, join
from .. import import_model
from ..common.estimator import label_of, names_of, require_fitted, takes_missing
from ..common.links import class_left_out, class_outputs, plain_outputs
from ..common.meta import built, has_method, is_classifier, joined, mean, probabilities, side_by_side
from .trees import read_tree, tree_columns

# ---------------------------------------------------------------- bagging


def import_bagging(model: Any) -> Graph:
    """BaggingClassifier and BaggingRegressor: the mean of models that each read some of the columns."""
    require_fitted(model)
    classifier = is_classifier(model)
    if classifier and not all(has_method(e, "predict_proba") for e in model.estimators_):
        raise UnsupportedModelError(
            "BaggingClassifier over models without predict_proba counts their predicted classes, whose boundaries "
            "cannot be credited. Use models with predict_proba."
        )
    names = names_of(model) or tuple(f"x{j}" for j in range(model.n_features_in_))
    seen = [
        import_model(e).with_columns([names[j] for j in columns])
        for e, columns in zip(model.estimators_, _features(model), strict=True)
    ]
    _, *parts = merge([_all_columns(names), *seen])
    if names_of(model) is None:
        parts = [replace(g, named=False) for g in parts]
    if not classifier:
        score = mean([g.output(None)[0] for g in parts])
        return built(model, parts, score, plain_outputs(score.width), "predict")
    every = [_all_classes(e, g, model.n_classes_) for e, g in zip(model.estimators_, parts, strict=True)]
    return built(
        model, parts, mean(every), class_outputs(model.classes_), "predict_proba",
        opposite=class_left_out(model.classes_, margin_total=1.0),
    )  # fmt: skip


def _features(model: Any) -> list[list[int]]:
    return [[int(j) for j in columns] for columns in model.estimators_features_]


def _all_columns(names: tuple[str, ...]) -> Graph:
    """A graph that ignores its columns, used to fix the order of the merged columns."""
    source = Input(len(names))
    columns = tuple(Column(n, kind="unused") for n in names)
    return Graph(columns, source, source, source, names, named=True)


def _all_classes(estimator: Any, graph: Graph, classes: int) -> Node:
    """A part's probabilities of all classes (the positive one for two), 0 for classes that it was not trained on."""
    own = graph.output(None)[0]
    if len(estimator.classes_) == classes:
        return own
    every = probabilities(own, len(estimator.classes_)) if len(estimator.classes_) > 1 else own
    place = np.zeros((classes, len(estimator.classes_)))
    place[[int(c) for c in estimator.classes_], range(len(estimator.classes_))] = 1.0
    spread = Affine(every, place, np.zeros(classes))
    return Select(spread, (1,)) if classes == 2 else spread


# ---------------------------------------------------------------- AdaBoost


def import_ada_boost(model: Any) -> Graph:
    """AdaBoostClassifier over trees: their predicted classes, weighted; each leaf predicts one class.

    Versions before 1.6 may have been fitted with "SAMME.R", which adds up logarithms of the leaves' probabilities.
    """
    require_fitted(model)
    kinds = {cls.__name__ for e in model.estimators_ for cls in type(e).__mro__}
    if "DecisionTreeClassifier" not in kinds or any(type(e).__name__ not in _TREES for e in model.estimators_):
        raise UnsupportedModelError(
            f"AdaBoostClassifier is supported over decision trees; {label_of(model.estimators_[0])} predicts classes "
            "at boundaries that are not splits on one column."
        )
    source = Input(model.n_features_in_)
    weights = model.estimator_weights_[: len(model.estimators_)] / model.estimator_weights_.sum()
    classes = model.n_classes_
    votes = _logarithms if model.get_params(deep=False).get("algorithm") == "SAMME.R" else _votes
    trees = [
        read_tree(e.tree_, weight * votes(e, model.classes_))
        for e, weight in zip(model.estimators_, weights.tolist(), strict=True)
    ]
    margin = assemble(source, trees, np.zeros(trees[0].values.shape[1]))
    if classes == 2:
        score: Node = Elementwise(margin, "sigmoid")
    else:
        score = Softmax(margin.scaled(1.0 / (classes - 1)))
    names = class_outputs(model.classes_)
    graph = Graph(
        columns=tree_columns(model, missing=False), input=source, score=margin, margin=margin, output_names=names,
        named=names_of(model) is not None,
    )  # fmt: skip
    return built(
        model, [graph], score, names, "predict_proba", margin=margin, margin_names=names,
        margin_method="decision_function", opposite=class_left_out(model.classes_),
    )  # fmt: skip


_TREES = ("DecisionTreeClassifier", "ExtraTreeClassifier")


def _votes(estimator: Any, classes: Array) -> Array:
    """The contribution of each node's predicted class to the decision: (nodes, classes), or (nodes, 1) for two."""
    winner = estimator.classes_[estimator.tree_.value[:, 0, :].argmax(axis=1)]
    votes = np.where(winner[:, None] == classes, 1.0, -1.0 / (len(classes) - 1))
    return 2.0 * votes[:, 1:] if len(classes) == 2 else votes


def _logarithms(estimator: Any, classes: Array) -> Array:
    """The contribution of each node to the decision for "SAMME.R", from the logarithms of its probabilities."""
    logs = np.log(np.maximum(estimator.tree_.value[:, 0, :], np.finfo(np.float64).eps))
    votes: Array = (len(classes) - 1) * (logs - logs.mean(axis=1, keepdims=True))
    return 2.0 * votes[:, 1:] if len(classes) == 2 else votes


def import_ada_boost_regressor(model: Any) -> Graph:
    """AdaBoostRegressor: the weighted median of its models."""
    require_fitted(model)
    parts = joined(model, model.estimators_)
    score = WeightedMedian(_side_by_side(parts), np.asarray(model.estimator_weights_[: len(parts)], np.float64))
    graph = built(model, parts, score, plain_outputs(1), "predict")
    columns = tuple(replace(c, missing=c.missing and takes_missing(model)) for c in graph.columns)
    return replace(graph, columns=columns)


def _side_by_side(parts: Sequence[Graph]) -> Node:
    """A node with one column for each model; tree ensembles become one ensemble with several outputs."""
    nodes = [g.output(None)[0] for g in parts]
    trees = [n for n in nodes if isinstance(n, TreeEnsemble) and n.source is parts[0].input]
    if len(trees) < len(nodes):
        return side_by_side(nodes)
    arrays = join([{name: getattr(t, name) for name in DTYPES} for t in trees])
    output = np.repeat(np.arange(len(trees)), [len(t.roots) for t in trees])
    arrays["tree_output"] = output.astype(DTYPES["tree_output"])
    return TreeEnsemble(source=parts[0].input, **arrays, base=np.concatenate([t.base for t in trees]))


# ---------------------------------------------------------------- isolation forest


def import_isolation_forest(model: Any) -> Graph:
    """IsolationForest: `score_samples`, the higher the more normal; its margin is the mean depth in its trees.

    `decision_function` is the same less a constant, so its credits are the same.
    """
    require_fitted(model)
    source = Input(model.n_features_in_)
    lengths = zip(model._decision_path_lengths, model._average_path_length_per_tree, strict=True)
    count = len(model.estimators_)
    trees = []
    for estimator, columns, (path, rest) in zip(model.estimators_, model.estimators_features_, lengths, strict=True):
        tree = read_tree(estimator.tree_, (path + rest - 1.0) / count, 0)
        feature = np.where(tree.feature < 0, -1, np.asarray(columns)[np.maximum(tree.feature, 0)])
        trees.append(replace(tree, feature=feature))
    depth = assemble(source, trees, np.zeros(1))
    scale = _usual_depth(int(model._max_samples))
    rate = -np.log(2.0) / scale if scale > 0 else 0.0
    away = Elementwise(depth.scaled(rate), "exp") if scale > 0 else Affine(depth, np.zeros((1, 1)), np.full(1, 0.5))
    score = Affine(away, -np.ones((1, 1)), np.zeros(1))
    graph = Graph(
        columns=tree_columns(model, missing=takes_missing(model)), input=source, score=depth, margin=depth,
        output_names=("score",), named=names_of(model) is not None,
    )  # fmt: skip
    return built(model, [graph], score, ("score",), "score_samples", margin=depth, margin_names=("depth",))


def _usual_depth(rows: int) -> float:
    """The mean depth at which random splits separate that many rows."""
    if rows <= 2:
        return float(max(rows - 1, 0))
    return float(2.0 * (np.log(rows - 1.0) + np.euler_gamma) - 2.0 * (rows - 1.0) / rows)
