"""The trees of a CatBoost model's JSON as plain splits on the columns of the table.

Symmetric trees ask the same question on a whole level; others are nested. A question is about a number (`x > border`
goes right), about one label (that label goes right), or about a statistic of a label (those above a border go right).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import CorruptModelError, UnsupportedModelError
from ...graph import Array, Tree
from ..common.thresholds import at_most_in_float32

_MASK = (1 << 64) - 1
_MIX = 0x4906BA494954CB65  # CatBoost's multiplier of hashes; odd, so that mixing can be undone
_UNMIX = pow(_MIX * _MIX, -1, 1 << 64)
_EMPTY = _MASK  # marks an empty place of a hash map
_COUNTERS = ("Counter", "FeatureFreq")
_MEANS = ("BinarizedTargetMeanValue", "FloatTargetMeanValue")


@dataclass(frozen=True, eq=False)
class Question:
    """A split: the column it reads and who goes left.

    Attributes
    ----------
    column : int
    threshold : float
        Numbers up to it go left; unused for categories.
    equal : (float, float)
        The least and the largest number that CatBoost cannot tell from the border.
    missing_left : bool
    left : (codes,) or None
        Categories: the codes that go left, or right where `turned` (the side that unknown labels do not take).
    turned : bool
    """

    column: int
    threshold: float = 0.0
    equal: tuple[float, float] = (0.0, 0.0)
    missing_left: bool = False
    left: NDArray[np.int64] | None = None
    turned: bool = False


def read_trees(dump: dict[str, Any], hashes: dict[int, tuple[int, ...]], outputs: int) -> list[Tree]:
    """Every tree of a model, with leaves of `outputs` numbers."""
    questions = _Questions(dump, hashes)
    if "oblivious_trees" in dump:
        return [_symmetric(t, questions, outputs) for t in dump["oblivious_trees"]]
    return [_nested(t, questions, outputs) for t in dump["trees"]]


def known_hashes(dump: dict[str, Any]) -> dict[int, tuple[int, ...]]:
    """For every category the hashes of the labels the model knows, by its place among the categories."""
    info = dump["features_info"]
    found: dict[int, dict[int, None]] = {}
    for feature in info.get("categorical_features", ()):
        values = found.setdefault(feature["feature_index"], {})
        values.update(dict.fromkeys(v & 0xFFFFFFFF for v in feature.get("values", ())))
    for ctr in info.get("ctrs", ()):
        feature_index = _only_category(ctr)
        if feature_index is not None:
            found.setdefault(feature_index, {}).update(dict.fromkeys(_buckets(dump, ctr)))
    return {feature: tuple(values) for feature, values in found.items()}


# ---------------------------------------------------------------- questions


class _Questions:
    """The questions of a model by number: all borders of numbers, then all asked labels, then all borders of CTRs."""

    def __init__(self, dump: dict[str, Any], hashes: dict[int, tuple[int, ...]]) -> None:
        info = dump["features_info"]
        column = {f["feature_index"]: f["flat_feature_index"] for f in info.get("categorical_features", ())}
        self._made: dict[int, Question] = {}
        self._makers: list[Callable[[], Question]] = []
        for f in info.get("float_features", ()):
            self._makers += [_number(f, border) for border in f["borders"] or ()]
        for f in info.get("categorical_features", ()):
            codes = {h: i for i, h in enumerate(hashes.get(f["feature_index"], ()))}
            self._makers += [_label(column[f["feature_index"]], codes[v & 0xFFFFFFFF]) for v in f.get("values", ())]
        for ctr in info.get("ctrs", ()):
            self._makers += [_statistic(dump, ctr, column, hashes, border) for border in ctr["borders"]]

    def __getitem__(self, split: Any) -> Question:
        index = split["split_index"]
        if not 0 <= index < len(self._makers):
            raise CorruptModelError(f"A split asks question {index}; the model has {len(self._makers)}.")
        if index not in self._made:
            self._made[index] = self._makers[index]()
        return self._made[index]


def _number(feature: dict[str, Any], border: float) -> Callable[[], Question]:
    def make() -> Question:
        folded = at_most_in_float32(np.array([np.float32(border)], np.float64))
        low, high = folded.equal
        return Question(
            feature["flat_feature_index"],
            float(folded.threshold[0]),
            (float(low[0]), float(high[0])),
            feature["nan_value_treatment"] != "AsTrue",
        )

    return make


def _label(column: int, code: int) -> Callable[[], Question]:
    return lambda: Question(column, left=np.array([code]), turned=True)


def _statistic(
    dump: dict[str, Any], ctr: dict[str, Any], column: dict[int, int], hashes: dict[int, tuple[int, ...]], border: float
) -> Callable[[], Question]:
    def make() -> Question:
        feature = _only_category(ctr)
        if feature is None:
            raise UnsupportedModelError(
                "This CatBoost model uses statistics of combinations of columns, which are not tests on one variable; "
                "train it with max_ctr_complexity=1 (or a one_hot_max_size above the number of categories)."
            )
        values, unknown = _ctr_values(dump, ctr)
        above = np.array([values.get(h, unknown) > np.float32(border) for h in hashes[feature]], bool)
        turned = not unknown > np.float32(border)  # a label that is not in the set goes right
        return Question(column[feature], left=np.flatnonzero(above if turned else ~above), turned=turned)

    return make


# ---------------------------------------------------------------- statistics of labels


def _only_category(ctr: dict[str, Any]) -> int | None:
    """The one category a statistic is about; None for a combination."""
    elements = ctr["elements"]
    if len(elements) != 1 or elements[0]["combination_element"] != "cat_feature_value":
        return None
    return int(elements[0]["cat_feature_index"])


def _buckets(dump: dict[str, Any], ctr: dict[str, Any]) -> dict[int, list[Any]]:
    """What was counted for each label, by its hash."""
    table = dump["ctr_data"][ctr["identifier"]]
    flat, stride = table["hash_map"], int(table["hash_stride"])
    if stride < 2 or len(flat) % stride:
        raise CorruptModelError("A CatBoost hash map does not have whole rows.")
    out: dict[int, list[Any]] = {}
    for begin in range(0, len(flat), stride):
        mixed = int(flat[begin])
        if mixed != _EMPTY:
            out[mixed * _UNMIX & 0xFFFFFFFF] = flat[begin + 1 : begin + stride]
    return out


def _ctr_values(dump: dict[str, Any], ctr: dict[str, Any]) -> tuple[dict[int, np.float32], np.float32]:
    """The statistic of every label, by its hash, and that of an unknown label; in float32, as CatBoost."""
    kind, border = ctr["ctr_type"], int(ctr["target_border_idx"])
    denominator = int(dump["ctr_data"][ctr["identifier"]]["counter_denominator"])
    prior, weight = np.float32(ctr["prior_numerator"]), np.float32(ctr["prior_denomerator"])
    shift, scale = np.float32(ctr["shift"]), np.float32(ctr["scale"])

    def value(good: float, total: float) -> np.float32:
        ratio = (np.float32(good) + prior) / (np.float32(total) + weight)
        return np.float32((ratio + shift) * scale)

    def of(counts: list[Any]) -> np.float32:
        if kind in _MEANS:
            return value(counts[0], counts[1])
        if kind in _COUNTERS:
            return value(counts[0], denominator)
        return value(counts[border] if kind == "Buckets" else sum(counts[border + 1 :]), sum(counts))

    unknown = value(0, denominator if kind in _COUNTERS else 0)
    return {h: of(counts) for h, counts in _buckets(dump, ctr).items()}, unknown


# ---------------------------------------------------------------- trees


class _Growing:
    """Nodes of a tree, one after another."""

    def __init__(self, outputs: int) -> None:
        self.outputs = outputs
        self.feature: list[int] = []
        self.threshold: list[float] = []
        self.equal: list[tuple[float, float]] = []
        self.children: list[tuple[int, int]] = []
        self.missing_left: list[bool] = []
        self.values: list[Array] = []
        self.categories: dict[int, NDArray[np.int64]] = {}

    def split(self, question: Question, left: int, right: int) -> None:
        if question.left is not None:
            self.categories[len(self.feature)] = question.left
        if question.turned:
            left, right = right, left
        self.equal.append(question.equal)
        self._add(question.column, question.threshold, (left, right), question.missing_left, np.zeros(self.outputs))

    def leaf(self, values: Any) -> None:
        self.equal.append((0.0, 0.0))
        self._add(-1, 0.0, (-1, -1), False, np.broadcast_to(np.asarray(values, np.float64), (self.outputs,)))

    def _add(self, feature: int, threshold: float, children: tuple[int, int], missing: bool, values: Array) -> None:
        self.feature.append(feature)
        self.threshold.append(threshold)
        self.children.append(children)
        self.missing_left.append(missing)
        self.values.append(values)

    def tree(self) -> Tree:
        sides = np.array(self.children, np.int64).reshape(-1, 2)
        one = self.outputs == 1
        values = np.array(self.values)
        low, high = np.array(self.equal).T
        return Tree(
            feature=np.array(self.feature),
            threshold=np.array(self.threshold),
            left=sides[:, 0],
            right=sides[:, 1],
            missing_left=np.array(self.missing_left),
            values=values[:, 0] if one else values,
            output=0 if one else -1,
            categories=self.categories,
            equal=(low, high),
            single=True,
            midpoints=True,
        )


def _symmetric(dump: dict[str, Any], questions: _Questions, outputs: int) -> Tree:
    """Level l asks question l; its node p has children p and p + 2^l in the next, so that leaves are in their order."""
    asked = [questions[s] for s in dump["splits"] or ()]
    values = np.asarray(dump["leaf_values"], np.float64)
    if values.size != outputs << len(asked):
        raise CorruptModelError(f"A symmetric tree of depth {len(asked)} has {values.size} leaf values.")
    tree = _Growing(outputs)
    for level, question in enumerate(asked):
        below = (2 << level) - 1  # where the next level begins
        for p in range(1 << level):
            tree.split(question, below + p, below + p + (1 << level))
    for leaf in values.reshape(-1, outputs):
        tree.leaf(leaf)
    return tree.tree()


def _nested(dump: dict[str, Any], questions: _Questions, outputs: int) -> Tree:
    tree = _Growing(outputs)
    waiting = [dump]
    numbered = 1
    while waiting:
        node = waiting.pop(0)
        if "split" not in node:
            tree.leaf(node["value"])
            continue
        tree.split(questions[node["split"]], numbered, numbered + 1)
        numbered += 2
        waiting += [node["left"], node["right"]]
    return tree.tree()
