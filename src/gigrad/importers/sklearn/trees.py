"""scikit-learn's decision trees, their forests and its classic gradient boosting, read from `tree_`.

They round x to float32 before comparing it with a float64 threshold (`x <= t` goes left). A forest is the mean of its
trees, each of which gives the fractions of the classes; its margin is its score.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..._io.tables import Rows
from ...errors import UnsupportedModelError
from ...graph import (
    Affine,
    Array,
    Column,
    Elementwise,
    Graph,
    Input,
    Node,
    Opposite,
    PiecewiseLinear,
    Sum,
    Tree,
    TreeEnsemble,
    Witness,
    assemble,
    merge,
)
from ..common.estimator import OwnPrediction, label_of, names_of, number_columns, require_fitted
from ..common.links import (
    DOUBLE,
    LINKS,
    Link,
    class_left_out,
    class_outputs,
    plain_outputs,
    scaled_sigmoid,
    sum_error,
    witness,
)
from ..common.thresholds import at_most_in_float32

_SURE_STRATEGIES = ("prior", "most_frequent", "constant", "mean", "median", "quantile")


def read_tree(tree: Any, values: Array, output: int = -1) -> Tree:
    """A fitted `tree_` with the given numbers in its nodes: (nodes,), or (nodes, outputs) for vector leaves."""
    leaf = tree.children_left < 0
    folded = at_most_in_float32(np.where(leaf, 0.0, tree.threshold))
    return Tree(
        feature=np.where(leaf, -1, tree.feature),
        threshold=folded.threshold,
        left=tree.children_left,
        right=tree.children_right,
        missing_left=tree.missing_go_to_left.astype(bool),
        values=values,
        output=output,
        equal=folded.equal,
        single=True,
        midpoints=True,
    )


def tree_columns(model: Any, missing: bool) -> tuple[Column, ...]:
    """The columns of a model of trees."""
    return tuple(replace(c, missing=missing) for c in number_columns(model))


# ---------------------------------------------------------------- one tree, and forests


def import_trees(model: Any) -> Graph:
    """A decision tree or a forest, for classes or numbers, of one target or several."""
    require_fitted(model)
    kinds = {cls.__name__ for cls in type(model).__mro__}
    members = model.estimators_ if "BaseForest" in kinds else [model]
    takes_missing = members[0]._support_missing_values(np.zeros((1, model.n_features_in_)))
    source = Input(model.n_features_in_)
    outputs = _Outputs.of(model, "ClassifierMixin" in kinds)
    trees = (read_tree(m.tree_, outputs.leaf_values(m.tree_.value) / len(members)) for m in members)
    score = assemble(source, trees, np.zeros(len(outputs.names)))
    own = witness(score, outputs.own(model), label_of(model), DOUBLE, sum_error(score, DOUBLE))
    return Graph(
        columns=tree_columns(model, missing=takes_missing),
        input=source,
        score=score,
        margin=score,
        output_names=outputs.names,
        opposite=Opposite(outputs.left_out, 1.0, 1.0) if any(outputs.left_out) else None,
        witnesses=(own,),
        named=names_of(model) is not None,
        label=label_of(model),
    )


@dataclass(frozen=True)
class _Outputs:
    """The explained numbers of a leaf, as `(target, class)` pairs of `tree_.value`, and their names."""

    classifier: bool
    parts: tuple[tuple[int, int], ...]
    names: tuple[str, ...]
    left_out: tuple[str, ...] = ()

    @classmethod
    def of(cls, model: Any, classifier: bool) -> _Outputs:
        """The outputs of a forest: targets or classes, of two classes the second."""
        targets = int(model.n_outputs_)
        if not classifier:
            return cls(False, tuple((t, 0) for t in range(targets)), plain_outputs(targets))
        classes = [model.classes_] if targets == 1 else model.classes_
        parts, names, left_out = [], [], []
        for target, known in enumerate(classes):
            kept = class_outputs(known)
            parts += [(target, len(known) - len(kept) + i) for i in range(len(kept))]
            prefix = "" if targets == 1 else f"{target}: "
            names += [prefix + name for name in kept]
            left_out += [prefix + str(known[0]) if len(known) == 2 else ""] * len(kept)
        return cls(True, tuple(parts), tuple(names), tuple(left_out))

    def leaf_values(self, value: Array) -> Array:
        """(nodes, outputs) of a tree's value, (nodes, targets, classes)."""
        return np.stack([value[:, target, which] for target, which in self.parts], axis=1)

    def own(self, model: Any) -> Any:
        """The model's own prediction of these outputs."""
        if not self.classifier:
            return OwnPrediction(model, "predict")
        if all(target == 0 for target, _ in self.parts):
            return OwnPrediction(model, "predict_proba", positive=True)

        def several(rows: Rows) -> Array:
            asked = model.predict_proba(rows.matrix)
            return np.stack([asked[target][:, which] for target, which in self.parts], axis=1)

        return several


# ---------------------------------------------------------------- gradient boosting


def import_gradient_boosting(model: Any) -> Graph:
    """GradientBoostingClassifier and GradientBoostingRegressor, with any `init` that can itself be imported."""
    require_fitted(model)
    source = Input(model.n_features_in_)
    link = loss_link(model)
    start = _constant_start(model)
    rate = model.learning_rate
    trees = assemble(
        source,
        (
            read_tree(t.tree_, rate * t.tree_.value[:, 0, 0], k)
            for stage in model.estimators_
            for k, t in enumerate(stage)
        ),
        np.zeros(model.estimators_.shape[1]) if start is None else start,
    )
    graph = boosted_graph(model, tree_columns(model, missing=False), source, trees, link)
    return graph if start is not None else _with_start(model, graph, sum_error(trees, DOUBLE))


def loss_link(model: Any) -> Link:
    """The link from a boosted model's raw prediction to its score, by its loss."""
    name = type(model._loss.link).__name__
    links = {
        "IdentityLink": LINKS["identity"],
        "LogLink": LINKS["exp"],
        "LogitLink": LINKS["sigmoid"],
        "HalfLogitLink": scaled_sigmoid(2.0),
        "MultinomialLogit": LINKS["softmax"],
    }
    if name not in links:
        raise UnsupportedModelError(
            f"{label_of(model)} models with the loss {model.loss!r} cannot be imported: its link {name} is unknown."
        )
    return links[name]


def boosted_graph(
    model: Any,
    columns: tuple[Column, ...],
    source: Input,
    trees: TreeEnsemble,
    link: Link,
    predict: type[OwnPrediction] = OwnPrediction,
) -> Graph:
    """The graph of boosted trees, with witnesses for both the raw prediction and the score.

    `predict` is the class for the model's own prediction, for models that do not take a plain matrix.
    """
    classifier = "ClassifierMixin" in {cls.__name__ for cls in type(model).__mro__}
    error = sum_error(trees, DOUBLE)
    label = label_of(model)
    score = link.apply(trees)
    raw = "decision_function" if classifier else "predict" if score is trees else "_raw_predict"
    witnesses = [witness(trees, predict(model, raw), label, DOUBLE, error)]
    if score is not trees:
        own = predict(model, "predict_proba", positive=True) if classifier else predict(model, "predict")
        witnesses.append(witness(score, own, label, DOUBLE, error, link))
    return Graph(
        columns=columns,
        input=source,
        score=score,
        margin=trees,
        output_names=class_outputs(model.classes_) if classifier else plain_outputs(1),
        opposite=class_left_out(model.classes_) if classifier else None,
        witnesses=tuple(witnesses),
        named=names_of(model) is not None,
        label=label,
    )


def _constant_start(model: Any) -> Array | None:
    """The raw prediction before the first tree if it is the same for all rows; None if `init` is a model."""
    kinds = {cls.__name__ for cls in type(model.init_).__mro__}
    if isinstance(model.init_, str) or kinds & {"DummyClassifier", "DummyRegressor"}:
        if not isinstance(model.init_, str) and model.init_.strategy not in _SURE_STRATEGIES:
            raise UnsupportedModelError(
                f"{label_of(model)} with init={model.init_!r} cannot be explained: it starts from a random number."
            )
        return np.asarray(model._raw_predict_init(np.zeros((1, model.n_features_in_), np.float32))[0], np.float64)
    return None


def _with_start(model: Any, graph: Graph, error: float) -> Graph:
    """Trees that start from another model's prediction: the sum of the two, in the raw space of the loss."""
    from .. import import_model

    try:
        start = import_model(model.init_)
    except UnsupportedModelError as reason:
        raise UnsupportedModelError(
            f"{label_of(model)} starts from an init model that cannot be imported: {reason}"
        ) from None
    own = {w.node: w.predict for w in graph.witnesses}
    trees_margin, trees_score = graph.margin, graph.score
    graph, start = merge([graph, start])
    margin = Sum((_raw_start(start.score, type(model._loss.link).__name__), graph.margin))
    score = loss_link(model).apply(margin)
    exact = _FromStart(model)
    # scikit-learn passes x to the init model in float32; the graph is compared with its prediction in float64.
    witnesses = [Witness(margin, own[trees_margin], graph.label, atol=error, exact=exact.raw)]
    if score is not margin:
        witnesses.append(Witness(score, own[trees_score], graph.label, atol=error, exact=exact.score))
    return replace(graph, score=score, margin=margin, witnesses=tuple(witnesses))


def _raw_start(score: Node, link: str) -> Node:
    """An init model's prediction in the raw space of the loss."""
    if link == "IdentityLink":
        return score
    eps = float(np.finfo(np.float64).eps)
    edges = np.array([eps, 1.0 - eps])
    inside = PiecewiseLinear(score, edges, edges)
    if link == "MultinomialLogit":
        k = score.width
        return Affine(Elementwise(inside, "log"), np.eye(k) - 1.0 / k, np.zeros(k))
    raw = Elementwise(inside, "logit")
    return raw if link == "LogitLink" else Affine(raw, np.array([[0.5]]), np.zeros(1))


@dataclass(frozen=True)
class _FromStart:
    """Gradient boosting's prediction with an init model that reads x in float64."""

    model: Any

    def raw(self, rows: Rows) -> Array:
        """The margin of boosted trees that start from a model of their own."""
        from sklearn.ensemble._gb import _init_raw_predictions

        model = self.model
        single = rows.matrix.astype(np.float32)
        trees = model._raw_predict(single) - model._raw_predict_init(single)
        classifier = "ClassifierMixin" in {cls.__name__ for cls in type(model).__mro__}
        return np.asarray(trees + _init_raw_predictions(rows.matrix, model.init_, model._loss, classifier))

    def score(self, rows: Rows) -> Array:
        raw = self.raw(rows)
        out = self.model._loss.predict_proba(raw if raw.shape[1] > 1 else raw.ravel())
        return np.asarray(out if raw.shape[1] > 1 else out[:, 1:])
