"""LightGBM boosters and their scikit-learn wrappers, read from the model's own text.

LightGBM compares in float64 (`x <= t` goes left), takes numbers within 1e-35 of zero for zero, sends the categories of
a set left and everything else right, and adds up in float64. The initial score and dart's weights are in the leaves.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..._io.tables import Rows
from ...errors import CorruptModelError, NotFittedError
from ...graph import Column, Elementwise, Graph, Input, Node, Opposite, TreeEnsemble, Witness, assemble
from ..common.frames import as_matrix, as_pandas, has_labels
from ..common.links import (
    DOUBLE,
    LINKS,
    Link,
    bound,
    class_left_out,
    class_outputs,
    plain_outputs,
    scaled_sigmoid,
    signed_square,
    sum_error,
    times,
    unknown_objective,
    witness,
)
from .labels import labelled_columns
from .linear import linear_margin
from .trees import read_tree

_IDENTITY = {
    "regression", "regression_l1", "huber", "fair", "quantile", "mape", "lambdarank", "rank_xendcg", "custom", "",
}  # fmt: skip
_EXP = {"poisson", "gamma", "tweedie"}


def import_lightgbm(model: Any) -> Graph:
    """The graph of a lightgbm.Booster or of any of the scikit-learn wrappers (LGBMModel)."""
    booster = _booster(model)
    text = _Text.parse(booster.model_to_string())
    columns = _columns(text, booster.pandas_categorical)
    source = Input(len(columns))
    predict = _Predict(booster, columns, type(model).__name__)
    trees = [read_tree(t, columns) for t in text.trees]
    per_round = int(text.header["num_tree_per_iteration"])
    if any(t.linear for t in trees):
        margin, own_margin, error = linear_margin(source, trees, per_round, predict.margin, predict.label)
    else:
        margin = assemble(
            source, [replace(t.tree, output=i % per_round) for i, t in enumerate(trees)], np.zeros(per_round)
        )
        error = sum_error(margin, DOUBLE)
        own_margin = witness(margin, predict.margin, predict.label, DOUBLE, error)
    # A forest's raw score is the sum of its trees, its prediction is computed from their mean.
    rounds = len(trees) // per_round if "average_output" in text.header else 1
    link = _link(text.header.get("objective", ""), margin)
    score = link.apply(margin if rounds == 1 else times(1.0 / rounds, margin))
    witnesses = _witnesses(own_margin, score, predict, None if error is None else error / rounds, link)
    names = margin_names = plain_outputs(per_round)
    classes = _classes(model)
    if classes is not None and len(classes) == max(per_round, 2):
        names, margin_names = class_outputs(classes), class_outputs(classes)
    return Graph(
        columns=columns,
        input=source,
        score=score,
        margin=margin,
        output_names=names,
        margin_names=margin_names,
        witnesses=witnesses,
        named=_named(text.header["feature_names"].split(" ")),
        label=predict.label,
        opposite=_opposite(text.header.get("objective", ""), classes, score) if per_round == 1 else None,
    )


def _booster(model: Any) -> Any:
    """The Booster of a fitted model."""
    import lightgbm

    try:
        booster = model.booster_ if isinstance(model, lightgbm.LGBMModel) else model
    except ValueError:  # scikit-learn's NotFittedError is one
        booster = None
    if booster is None or booster.num_trees() == 0:
        raise NotFittedError(f"This {type(model).__name__} has not been fitted; fit or load it first.")
    return booster


def _classes(model: Any) -> Any:
    import lightgbm

    return model.classes_ if isinstance(model, lightgbm.LGBMClassifier) else None


def _opposite(objective: str, classes: Any, score: Node) -> Opposite | None:
    """The class that a single output leaves out; a Booster stores no labels, and its binary classes are 0 and 1."""
    if classes is None:
        classes = [0, 1] if objective.split(" ")[0] == "binary" else []
    probability = isinstance(score, Elementwise) and score.name == "sigmoid"
    return class_left_out(classes, 1.0 if probability else 0.0)


def _witnesses(
    own_margin: Witness, score: Node, predict: _Predict, error: float | None, link: Link
) -> tuple[Witness, ...]:
    """The model's own margin and, where the link is not the identity, its own score."""
    if score is own_margin.node or error is None:
        return (own_margin,)
    return own_margin, witness(score, predict.score, predict.label, DOUBLE, error, link)


# ---------------------------------------------------------------- the model's text


@dataclass(frozen=True)
class _Text:
    """A model's text: its header, one block of fields for every tree, and the columns trained as categories."""

    header: dict[str, str]
    trees: list[dict[str, str]]
    categorical: frozenset[int]

    @classmethod
    def parse(cls, text: str) -> _Text:
        """The fields of a model's text: header, trees, and which columns are categories."""
        body, _, tail = text.partition("end of trees")
        head, *blocks = body.split("\nTree=")
        trees = [_fields("number=" + block) for block in blocks]
        marked = _fields(head)["feature_infos"].split(" ")
        found = {j for j, info in enumerate(marked) if info != "none" and not info.startswith("[")}
        declared = tail.partition("[categorical_feature: ")[2].partition("]")[0]
        found |= {int(j) for j in declared.split(",") if j.strip().isdigit()}
        return cls(_fields(head), trees, frozenset(found))


def _fields(block: str) -> dict[str, str]:
    lines = (line.partition("=") for line in block.splitlines() if line)
    return {name: value for name, _, value in lines}


def _columns(text: _Text, pandas_categorical: list[list[Any]] | None) -> tuple[Column, ...]:
    """The columns, with the labels of those that pandas held as categories."""
    names = text.header["feature_names"].split(" ")
    if len(names) != int(text.header["max_feature_idx"]) + 1:
        raise CorruptModelError(
            f"The model must name all of its {int(text.header['max_feature_idx']) + 1} columns; it names {len(names)}."
        )
    lists = [tuple(labels) for labels in pandas_categorical or ()]
    labels = labelled_columns(lists, text.categorical, text.header["feature_infos"].split(" "), text.trees, names)
    return tuple(
        Column(name, "category" if j in text.categorical else "number", labels.get(j), unknown="missing")
        for j, name in enumerate(names)
    )


def _named(names: list[str]) -> bool:
    """Whether the names are the table's own, not the default ones of LightGBM for an array."""
    return names != [f"Column_{j}" for j in range(len(names))]


def _link(objective: str, margin: Node) -> Link:
    """The link of an objective with its options, such as "binary sigmoid:1"."""
    name, *options = objective.split(" ")
    values = dict(option.partition(":")[::2] for option in options)
    if name == "multiclass":
        return LINKS["softmax"]
    if name in ("binary", "multiclassova"):
        return scaled_sigmoid(float(values["sigmoid"]))
    if name == "cross_entropy":
        return LINKS["sigmoid"]
    if name == "cross_entropy_lambda":
        return LINKS["softplus"]
    if name in _EXP:
        return LINKS["exp"]
    if name in _IDENTITY and "sqrt" in values:
        return signed_square(bound(margin) if isinstance(margin, TreeEnsemble) else 0.0)
    if name in _IDENTITY:
        return LINKS["identity"]
    raise unknown_objective("LightGBM", name)


# ---------------------------------------------------------------- the model's own predictions


@dataclass(frozen=True)
class _Predict:
    """LightGBM's own predictions of the rows of an explanation, by the booster; wrappers predict the same."""

    booster: Any
    columns: tuple[Column, ...]
    label: str

    def margin(self, rows: Rows) -> Any:
        return self.booster.predict(self._data(rows), raw_score=True)

    def score(self, rows: Rows) -> Any:
        return self.booster.predict(self._data(rows))

    def _data(self, rows: Rows) -> Any:
        return as_pandas(rows, self.columns) if has_labels(self.columns) else as_matrix(rows)
