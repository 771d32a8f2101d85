"""Spark's own models over the numbers of their vector: trees, linear models and their links."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import CorruptModelError, UnsupportedModelError
from ...graph import Affine, Array, Column, Elementwise, Graph, Input, Node, Softmax, Tree, TreeEnsemble, assemble
from .. import import_model
from ..common.links import MEANS, class_left_out, class_outputs, plain_outputs, scaled_sigmoid
from .stages import Nodes, Stage


@dataclass(frozen=True, eq=False)
class Read:
    """The result of reading a model: its graph over the numbers of its vector.

    Attributes
    ----------
    graph : Graph
    nominal : dict of int to int
        The numbers that are codes of a category, and how many codes there are.
    """

    graph: Graph
    nominal: dict[int, int]


def _graph(
    stage: Stage, source: Input, score: Node, margin: Node, classes: Sequence[str] | None, missing: bool
) -> Graph:
    """The graph of a model with the names of its classes."""
    names = plain_outputs(score.width) if classes is None else class_outputs(list(classes))
    total = 1.0 if margin is score else 0.0
    opposite = None if classes is None else class_left_out(list(classes), 1.0, total)
    columns = tuple(Column(f"c{j}", missing=missing) for j in range(source.width))
    return Graph(columns, source, score, margin, names, label=stage.name, opposite=opposite)


# ---------------------------------------------------------------- trees


def decision_trees(stage: Stage, classes: Sequence[str]) -> Read:
    """One tree or the mean of several: fractions of the classes, or predictions."""
    trees = stage.data["trees"]
    source = Input(int(stage.data["numFeatures"]))
    if "numClasses" in stage.data:
        k = len(classes)
        values = [_fractions(nodes, k)[:, -1] if k == 2 else _fractions(nodes, k) for nodes in trees]
        outputs, named = (1 if k == 2 else k), classes
    else:
        values, outputs, named = [_predictions(nodes) for nodes in trees], 1, None
    score = _ensemble(source, trees, [v / len(trees) for v in values], outputs)
    return Read(_graph(stage, source, score, score, named, missing=True), _nominal(trees))


def boosted_trees(stage: Stage, classes: Sequence[str]) -> Read:
    """The weighted sum of trees; for classes, the logistic function of twice the sum."""
    trees, weights = stage.data["trees"], stage.data["treeWeights"]
    source = Input(int(stage.data["numFeatures"]))
    values = [w * _predictions(nodes) for nodes, w in zip(trees, weights.tolist(), strict=True)]
    margin = _ensemble(source, trees, values, 1)
    if stage.kind == "GBTRegressionModel":
        return Read(_graph(stage, source, margin, margin, None, missing=True), _nominal(trees))
    score = scaled_sigmoid(2.0).apply(margin)
    return Read(_graph(stage, source, score, margin, classes, missing=True), _nominal(trees))


def _predictions(nodes: Nodes) -> Array:
    return np.array([float(n["prediction"]) for n in nodes])


def _fractions(nodes: Nodes, classes: int) -> Array:
    """The share of each class in a node: (nodes, classes)."""
    counts = np.array([[float(v) for v in n["impurityStats"]] for n in nodes])
    leaf = np.array([n["leftChild"] < 0 for n in nodes])
    if counts.ndim != 2 or counts.shape[1] != classes:
        raise CorruptModelError(f"Every node of a Spark tree must count its {classes} classes; one does not.")
    total = counts.sum(axis=1, keepdims=True)
    if not (np.isfinite(counts).all() and (counts >= 0).all() and (total[leaf] > 0).all()):
        raise CorruptModelError("The leaves of a Spark tree must have positive counts of classes; one has not.")
    return counts / np.where(total > 0, total, 1.0)


def _ensemble(source: Input, trees: Sequence[Nodes], values: Sequence[Array], outputs: int) -> TreeEnsemble:
    made = (_tree(nodes, v, source.width, outputs) for nodes, v in zip(trees, values, strict=True))
    return assemble(source, made, np.zeros(outputs))


def _tree(nodes: Nodes, values: Array, width: int, outputs: int) -> Tree:
    """A tree with Spark's comparisons: `x <= threshold` goes left, so NaN goes right; category codes are doubles.

    Spark stores the smaller of the two sets of a split, and sends all other codes to the other side.
    """
    if [n["id"] for n in nodes] != list(range(len(nodes))):
        raise CorruptModelError("The nodes of a Spark tree must be numbered from 0 on, each once.")
    left, right = (np.array([int(n[f"{side}Child"]) for n in nodes]) for side in ("left", "right"))
    leaf = left < 0
    feature = np.array([-1 if end else int(n["split"]["featureIndex"]) for n, end in zip(nodes, leaf, strict=True)])
    if (feature[~leaf] < 0).any() or (feature >= width).any():
        raise CorruptModelError(f"A Spark tree must split on one of its {width} features; one does not.")
    threshold, sets = np.zeros(len(nodes)), dict[int, NDArray[Any]]()
    for i in np.nonzero(~leaf)[0].tolist():
        numbers = [float(v) for v in nodes[i]["split"]["leftCategoriesOrThreshold"]]
        categories = int(nodes[i]["split"]["numCategories"])
        if categories < 0:
            if len(numbers) != 1 or not np.isfinite(numbers[0]):
                raise CorruptModelError("A split of a Spark tree must have one finite threshold.")
            threshold[i] = numbers[0]
            continue
        if any(v != int(v) or not 0 <= v < categories for v in numbers):
            raise CorruptModelError(f"A split of a Spark tree must list categories from 0 to {categories - 1}.")
        sets[i] = np.array(sorted({int(v) for v in numbers}), np.int64)
        if len(numbers) > categories // 2:
            sets[i] = np.setdiff1d(np.arange(categories), sets[i])
            left[i], right[i] = right[i], left[i]
    return Tree(
        feature, threshold, left, right, np.zeros(len(nodes), bool), values, 0 if outputs == 1 else -1,
        categories=sets,
    )  # fmt: skip


def _nominal(trees: Sequence[Nodes]) -> dict[int, int]:
    """The columns that trees test as categories, with the largest number of these."""
    out: dict[int, int] = {}
    for split in _splits(trees):
        categories = int(split["numCategories"])
        if categories >= 0:
            out[int(split["featureIndex"])] = max(categories, out.get(int(split["featureIndex"]), 0))
    return out


def _splits(trees: Sequence[Nodes]) -> Iterator[Any]:
    return (n["split"] for nodes in trees for n in nodes if int(n["leftChild"]) >= 0)


# ---------------------------------------------------------------- linear models


def logistic_regression(stage: Stage, classes: Sequence[str]) -> Read:
    """One row of coefficients for two classes, or one for each class."""
    weight, bias = stage.data["coefficientMatrix"], stage.data["interceptVector"]
    source = Input(weight.shape[1])
    if len(weight) == 2:  # softmax of two is the logistic function of their difference
        weight, bias = weight[1:] - weight[:1], bias[1:] - bias[:1]
    margin = Affine(source, weight, bias)
    score: Node = Elementwise(margin, "sigmoid") if margin.width == 1 else Softmax(margin)
    return Read(_graph(stage, source, score, margin, classes, missing=False), {})


def linear_regression(stage: Stage, classes: Sequence[str]) -> Read:
    margin = _linear(stage)
    return Read(_graph(stage, _input(margin), margin, margin, None, missing=False), {})


def generalized_linear_regression(stage: Stage, classes: Sequence[str]) -> Read:
    margin = _linear(stage)
    return Read(_graph(stage, _input(margin), _mean(stage, margin), margin, None, missing=False), {})


def _linear(stage: Stage) -> Affine:
    """The linear score of the features and, if the model was fitted with one, an offset column."""
    weight = np.asarray(stage.data["coefficients"], np.float64)[None, :]
    if stage.params.get("offsetCol"):
        weight = np.append(weight, [[1.0]], axis=1)  # the offset is the last input
    return Affine(Input(weight.shape[1]), weight, np.array([float(stage.data["intercept"])]))


def _input(margin: Affine) -> Input:
    if not isinstance(margin.source, Input):
        raise TypeError("A linear model must read its vector directly.")
    return margin.source


_CANONICAL = {"gaussian": "identity", "binomial": "logit", "poisson": "log", "gamma": "inverse"}
_POWERS = {0.0: "log", 1.0: "identity", 0.5: "sqrt", -1.0: "inverse"}


def _mean(stage: Stage, margin: Node) -> Node:
    """The mean: the inverse link of the linear predictor."""
    family = str(stage.params["family"]).lower()
    if family == "tweedie":
        power = float(stage.params.get("linkPower", 1.0 - float(stage.params.get("variancePower", 0.0))))
        name = _POWERS.get(power, f"power of {power}")
    else:
        name = str(stage.params.get("link") or _CANONICAL.get(family, family)).lower()
    if name not in MEANS:
        raise UnsupportedModelError(
            f"GeneralizedLinearRegression with the link {name!r} is not imported; known are {', '.join(MEANS)}."
        )
    return MEANS[name](margin)


# ---------------------------------------------------------------- XGBoost


def xgboost(stage: Stage, classes: Sequence[str]) -> Read:
    """A model of XGBoost's Spark package, by the importer of its booster."""
    if stage.params.get("enable_sparse_data_optim"):
        raise UnsupportedModelError(
            f"{stage.name} with enable_sparse_data_optim treats the zeros of sparse vectors as missing values, and "
            "which vectors are sparse depends on the row. Train it with enable_sparse_data_optim=False."
        )
    if stage.params.get("base_margin_col"):
        raise UnsupportedModelError(f"{stage.name} with base_margin_col is not supported; train it without.")
    return Read(import_model(stage.data["model"]), {})


MODELS: dict[str, Callable[[Stage, Sequence[str]], Read]] = {
    "DecisionTreeClassificationModel": decision_trees, "DecisionTreeRegressionModel": decision_trees,
    "RandomForestClassificationModel": decision_trees, "RandomForestRegressionModel": decision_trees,
    "GBTClassificationModel": boosted_trees, "GBTRegressionModel": boosted_trees,
    "LogisticRegressionModel": logistic_regression, "LinearRegressionModel": linear_regression,
    "GeneralizedLinearRegressionModel": generalized_linear_regression,
    "SparkXGBClassifierModel": xgboost, "SparkXGBRegressorModel": xgboost, "SparkXGBRankerModel": xgboost,
}  # fmt: skip
"""The function for each model, by the name of its class."""
