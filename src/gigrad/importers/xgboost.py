"""XGBoost boosters and their scikit-learn wrappers, read from the model's own JSON.

XGBoost compares in float32 (`x < t` goes left), sends the categories of a set right, adds up in float32, and stores
`base_score` on the scale of the predictions. Layouts from 2.0 on are read, recognised by their fields, not by version.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._io.tables import Rows, decoded_rows
from ..errors import NotFittedError, UnsupportedModelError
from ..graph import Affine, Array, Column, Fill, Graph, Input, Node, Select, Tree, Witness, assemble
from .common.frames import as_matrix, as_pandas, has_labels
from .common.links import (
    LINKS,
    SINGLE,
    class_left_out,
    class_outputs,
    plain_outputs,
    sum_error,
    unknown_objective,
    witness,
)
from .common.thresholds import less_in_float32


@dataclass(frozen=True)
class Objective:
    """The link of an objective, and the scale on which it stores `base_score`."""

    link: str = "identity"
    margin_of_base: Callable[[Array], Array] = lambda base: base


def _logit(base: Array) -> Array:
    return np.asarray(np.log(base) - np.log1p(-base))


_LOGISTIC, _LOG = Objective("sigmoid", _logit), Objective("exp", np.log)
_OBJECTIVES = {
    "binary:logistic": _LOGISTIC,
    "reg:logistic": _LOGISTIC,
    "binary:logitraw": Objective(),
    "binary:hinge": Objective(),
    "multi:softprob": Objective("softmax"),
    "multi:softmax": Objective("softmax"),
    "count:poisson": _LOG,
    "reg:gamma": _LOG,
    "reg:tweedie": _LOG,
    "survival:cox": _LOG,
    "survival:aft": _LOG,
}
_HINGE = (
    "A binary:hinge model predicts a class, a step function of its margin, which cannot be explained; explain its "
    'margin with output="margin".'
)


def import_xgboost(model: Any) -> Graph:
    """The graph of an xgboost.Booster or of any of the scikit-learn wrappers (XGBModel)."""
    learner = _learner(model)
    columns = _columns(model, learner)
    name = learner["objective"]["name"]
    objective = _OBJECTIVES.get(name)
    if objective is None:
        if not name.startswith(("reg:", "rank:")):
            raise unknown_objective("XGBoost", name)
        objective = Objective()
    source = Input(len(columns))
    base = objective.margin_of_base(_base_score(learner))
    predict = _Predict(model, columns, outputs=len(base))
    margin, own_margin, error = _margin(predict, learner, source, base)
    link = LINKS[objective.link]
    score = link.apply(margin)
    witnesses = [own_margin]
    if error is not None and score is not margin and (predict.classifier or name != "multi:softmax"):
        witnesses.append(witness(score, predict.score, predict.label, SINGLE, error, link))
    names = margin_names = plain_outputs(margin.width)
    if predict.classifier and objective.link == "softmax":
        names, margin_names = class_outputs(model.classes_), tuple(str(c) for c in model.classes_)
        if len(names) < margin.width:  # two classes trained as many: the positive one alone
            score = Select(score, (1,))
    elif predict.classifier and margin.width == 1:
        names = margin_names = class_outputs(model.classes_)
    classes = model.classes_ if predict.classifier else [0, 1] if name.startswith("binary:") else []
    return Graph(
        columns=columns,
        input=source,
        score=score,
        margin=margin,
        output_names=names,
        margin_names=margin_names,
        witnesses=tuple(witnesses),
        named=bool(learner["feature_names"]),
        label=predict.label,
        no_score=_HINGE if name == "binary:hinge" else "",
        opposite=class_left_out(classes, 0.0 if score is margin else 1.0) if len(names) == 1 else None,
    )


# ---------------------------------------------------------------- the parts of the model's JSON


def _learner(model: Any) -> dict[str, Any]:
    """The model in XGBoost's JSON."""
    import xgboost

    try:
        booster = model.get_booster() if isinstance(model, xgboost.XGBModel) else model
        raw = booster.save_raw("json")
    except (xgboost.core.XGBoostError, ValueError):  # scikit-learn's NotFittedError is a ValueError
        raise NotFittedError(f"This {type(model).__name__} has not been fitted; fit or load it first.") from None
    learner: dict[str, Any] = json.loads(bytes(raw))["learner"]
    return learner


def _columns(model: Any, learner: dict[str, Any]) -> tuple[Column, ...]:
    """The columns, with the labels of categories and the number that stands for missing values."""
    size = int(learner["learner_model_param"]["num_feature"])
    names = learner["feature_names"] or [f"f{j}" for j in range(size)]
    types = learner["feature_types"] or ["float"] * size
    labels = _labels(learner)
    missing = _missing_value(model)
    # XGBoost 3.2 treats an unknown label as the one that sorts next, or raises: so unknown labels are refused.
    return tuple(
        Column(name, "category" if kind == "c" else "number", labels.get(j), unknown="refuse", missing_value=missing)
        for j, (name, kind) in enumerate(zip(names, types, strict=True))
    )


def _labels(learner: dict[str, Any]) -> dict[int, tuple[Any, ...]]:
    """The labels of pandas categories, which XGBoost keeps from 3.1 on."""
    booster = learner["gradient_booster"]
    model = booster["gbtree"]["model"] if "gbtree" in booster else booster["model"]
    found: dict[int, tuple[Any, ...]] = {}
    for j, part in enumerate(model.get("cats", {}).get("enc", [])):
        if part.get("offsets"):
            text = bytes(v & 0xFF for v in part["values"])
            if not text.isascii():  # 3.2 counts characters instead of bytes, and so loses the end of the labels
                raise UnsupportedModelError(
                    "XGBoost damages the labels of a category column when one of them is not plain ASCII, as in column "
                    f"{j} of this model; train on ASCII labels, or on integer codes with feature_types."
                )
            found[j] = tuple(text[a:b].decode() for a, b in pairwise(part["offsets"]))
        elif part["values"]:
            found[j] = tuple(part["values"])
    return found


def _missing_value(model: Any) -> float | None:
    """The number that a wrapper treats as a missing value (`missing=`); None for a Booster."""
    import xgboost

    if not isinstance(model, xgboost.XGBModel) or math.isnan(model.missing):
        return None
    return float(model.missing)


def _base_score(learner: dict[str, Any]) -> Array:
    """`base_score` of every output, (outputs,): a number up to 3.0, a list from 3.1 on."""
    parameters = learner["learner_model_param"]
    outputs = max(int(parameters["num_class"]), int(parameters.get("num_target", "1")), 1)
    stored = np.array(json.loads(parameters["base_score"]), dtype=np.float64).ravel()
    return np.broadcast_to(stored, (outputs,)).copy()


# ---------------------------------------------------------------- the margin


def _margin(
    predict: _Predict, learner: dict[str, Any], source: Input, base: Array
) -> tuple[Node, Witness, float | None]:
    """The margin, its witness, and a bound on the model's rounding of it (None if that depends on rows)."""
    booster = learner["gradient_booster"]
    if booster["name"] == "gblinear":
        return *_linear(predict, booster["model"]["weights"], source), None
    trees = assemble(source, _trees(predict.model, booster), base)
    error = sum_error(trees, SINGLE)
    return trees, witness(trees, predict.margin, predict.label, SINGLE, error), error


def _linear(predict: _Predict, dump: list[float], source: Input) -> tuple[Node, Witness]:
    """The margin of a linear booster and its witness; it skips missing values, which is the same as reading 0."""
    size = source.width
    weight = np.asarray(dump, np.float64).reshape(size + 1, predict.outputs)[:-1]
    # 3.2 adds the first class's base_score to every class, so the intercept is predicted, not computed.
    nothing = np.zeros((1, size))
    intercept = np.asarray(predict.margin(Rows(nothing, nothing, ())), np.float64).ravel()
    margin = Affine(Fill(source, nothing[0]), weight.T.copy(), intercept)
    own = Witness(
        margin,
        predict.margin,
        predict.label,
        rtol=SINGLE * (16.0 + 4.0 * math.sqrt(size)),
        scale=lambda rows: np.nan_to_num(np.abs(rows.matrix)) @ np.abs(weight) + np.abs(intercept),
    )
    return margin, own


def _trees(model: Any, booster: dict[str, Any]) -> list[Tree]:
    """The trees that predictions use, with dart's weights."""
    inner = booster["gbtree"]["model"] if "gbtree" in booster else booster["model"]
    drop = booster.get("weight_drop") or inner.get("weight_drop")  # dart: beside the trees, or from 3.3 on among them
    dumps, output = inner["trees"], inner["tree_info"]
    used = _used_trees(model, inner)
    weights = np.ones(len(dumps)) if not drop else np.asarray(drop, np.float32).astype(np.float64)
    return [_tree(dumps[i], int(output[i]), float(weights[i])) for i in range(used)]


def _used_trees(model: Any, inner: dict[str, Any]) -> int:
    """The number of trees used for predictions: a wrapper stops at its best iteration, a Booster uses all."""
    import xgboost

    total = len(inner["trees"])
    if not isinstance(model, xgboost.XGBModel):
        return total
    try:
        rounds = model.best_iteration + 1
    except AttributeError:  # no early stopping
        return total
    ends = inner.get("iteration_indptr")
    if ends is None:
        per_round = total // model.get_booster().num_boosted_rounds()
        return int(rounds * per_round)
    return int(ends[rounds])


def _tree(dump: dict[str, Any], output: int, weight: float) -> Tree:
    """One tree of the model's JSON, with its leaves times `weight`."""
    left, right = np.asarray(dump["left_children"], np.int64), np.asarray(dump["right_children"], np.int64)
    condition = np.asarray(dump["split_conditions"], np.float32)
    default_left = np.asarray(dump["default_left"]).astype(bool)
    leaf = left == -1
    vector = int(dump["tree_param"]["size_leaf_vector"])
    if vector > 1:
        output, values = -1, _vector_leaves(dump, right, leaf, vector) * weight
    else:
        values = condition.astype(np.float64) * weight
    categories = _categories(dump)
    if categories:  # the categories of a set go right: swap the children of these splits
        turned = np.zeros(len(left), bool)
        turned[list(categories)] = True
        left, right = np.where(turned, right, left), np.where(turned, left, right)
        default_left = default_left ^ turned
    folded = less_in_float32(condition)
    return Tree(
        feature=np.where(leaf, -1, np.asarray(dump["split_indices"], np.int64)),
        threshold=folded.threshold,
        left=left,
        right=right,
        missing_left=default_left,
        values=values,
        output=output,
        categories=categories,
        equal=folded.equal,
        single=True,
    )


def _vector_leaves(dump: dict[str, Any], right: NDArray[Any], leaf: NDArray[Any], size: int) -> Array:
    """(nodes, size); up to 3.0 every node has its weights, later the leaves alone, found through `right_children`."""
    nodes = len(leaf)
    if "leaf_weights" not in dump:
        return np.asarray(dump["base_weights"], np.float32).astype(np.float64).reshape(nodes, size)
    weights = np.asarray(dump["leaf_weights"], np.float32).astype(np.float64).reshape(-1, size)
    out = np.zeros((nodes, size))
    out[leaf] = weights[right[leaf]]
    return out


def _categories(dump: dict[str, Any]) -> dict[int, Any]:
    codes = np.asarray(dump["categories"], np.int64)
    parts = zip(dump["categories_nodes"], dump["categories_segments"], dump["categories_sizes"], strict=True)
    return {int(node): codes[begin : begin + size] for node, begin, size in parts}


# ---------------------------------------------------------------- the model's own predictions


@dataclass(frozen=True)
class _Predict:
    """XGBoost's own predictions of the rows of an explanation."""

    model: Any
    columns: tuple[Column, ...]
    outputs: int

    @property
    def label(self) -> str:
        return type(self.model).__name__

    @property
    def wrapped(self) -> bool:
        import xgboost

        return isinstance(self.model, xgboost.XGBModel)

    @property
    def classifier(self) -> bool:
        import xgboost

        return isinstance(self.model, xgboost.XGBClassifier)

    def margin(self, rows: Rows) -> Any:
        return self.model.predict(self._data(rows), output_margin=True)

    def score(self, rows: Rows) -> Any:
        """The model's own prediction; of two classes, the second one's probability."""
        if not self.classifier:
            return self.model.predict(self._data(rows))
        own = self.model.predict_proba(self._data(rows))
        return own[:, 1] if self.outputs == 1 else own

    def _data(self, rows: Rows) -> Any:
        """Rows in the form that the model takes. A frame of one row and 29 categories takes XGBoost 10 ms, an array of
        the labels' codes 0.5 ms: one row is predicted that way, after checking that the codes are the labels'."""
        if not has_labels(self.columns):
            return self._numbers(as_matrix(rows))
        if rows.cells is not None and self._codes_are_labels:
            return self._numbers(rows.matrix)
        return self._labels(rows)

    def _numbers(self, matrix: Array) -> Any:
        """Rows of numbers in the form that the model takes."""
        import xgboost

        if self.wrapped:
            return matrix
        return xgboost.DMatrix(matrix, feature_names=self.model.feature_names, feature_types=self.model.feature_types)

    def _labels(self, rows: Rows) -> Any:
        """Rows with labels in the form that the model takes."""
        import xgboost

        frame = as_pandas(rows, self.columns)
        return frame if self.wrapped else xgboost.DMatrix(frame, enable_categorical=True)

    @cached_property
    def _codes_are_labels(self) -> bool:
        """Whether the model itself predicts the same, to the bit, for every label and for our code of it."""
        sizes = [len(c.labels or ()) for c in self.columns]
        codes = np.arange(max(sizes))[:, None] % np.maximum(sizes, 1)
        rows = decoded_rows(codes.astype(np.float64), self.columns)
        asked = (self._numbers(rows.matrix), self._labels(rows))
        by_code, by_label = (self.model.predict(data, output_margin=True) for data in asked)
        return bool((by_code == by_label).all())
