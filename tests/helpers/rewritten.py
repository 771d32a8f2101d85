"""Models of whole numbers with other thresholds and the same decisions, written into the library's own form.

A split between the whole numbers k and k + 1 may stand anywhere in that gap; a column may count down instead of up, if
the sides of its splits change places. Nothing that such a model predicts for whole numbers changes.
"""

from __future__ import annotations

import copy
import json
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import ceil, floor
from pathlib import Path
from typing import Any

import numpy as np

WHERE = ("first", "early", "middle", "last")
"""Where in the gap from k to k + 1 a split may stand."""


def in_gap(last: float, where: str, kind: Any, strict: bool) -> float:
    """A threshold between `last` and the next whole number, in the library's type of number.

    One that a strict comparison reads may be the next number itself, any other may be `last`.
    """
    low, high = kind(last), kind(last + 1)
    ends = (np.nextafter(low, high), high) if strict else (low, np.nextafter(high, low))
    return float({"first": ends[0], "early": kind(last + 0.37), "middle": kind(last + 0.5), "last": ends[1]}[where])


@dataclass(frozen=True)
class Rewrite:
    """What to do with the splits of some columns.

    Attributes
    ----------
    where : str
        Where in its gap a split stands afterwards, see `WHERE`.
    columns : set of int
        The columns of whole numbers, whose splits may move.
    turned : mapping of int to int
        The columns that count down from this number.
    """

    where: str
    columns: frozenset[int]
    turned: Mapping[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, where: str, columns: Iterable[int], turned: Mapping[int, int] | None = None) -> Rewrite:
        return cls(where, frozenset(columns), turned or {})

    def split(self, column: int, threshold: float, kind: Any, strict: bool = False) -> tuple[float, bool]:
        """The new threshold of a split, and whether its sides change places; strict is `x < threshold` on the left."""
        turned = column in self.turned
        last = ceil(kind(threshold)) - 1 if strict else floor(threshold)
        return in_gap(self.turned[column] - last - 1 if turned else last, self.where, kind, strict), turned

    def rows(self, X: Any) -> Any:
        """The rows as the new model reads them."""
        out = np.array(X, float)
        for column, most in self.turned.items():
            out[:, column] = most - out[:, column]
        return out


@dataclass(frozen=True)
class Put(Rewrite):
    """Puts all splits of a column at one number, on whatever grid it lies; sides stay."""

    numbers: Mapping[int, float] = field(default_factory=dict)

    @classmethod
    def at(cls, numbers: Mapping[int, float]) -> Put:
        return cls("middle", frozenset(numbers), numbers=numbers)

    def split(self, column: int, threshold: float, kind: Any, strict: bool = False) -> tuple[float, bool]:
        return float(kind(self.numbers[column])), False


def rewritten(model: Any, rewrite: Rewrite) -> Any:
    """The same decisions in another model of the same library."""
    library = type(model).__module__.partition(".")[0]
    if library == "sklearn":
        return _sklearn(copy.deepcopy(model), rewrite)
    return {"xgboost": _xgboost, "lightgbm": _lightgbm, "catboost": _catboost}[library](model, rewrite)


def _counts(threshold: float) -> bool:
    return bool(np.isfinite(threshold) and abs(threshold) < 1e6)  # others only tell missing values apart


def _xgboost(model: Any, rewrite: Rewrite) -> Any:
    """`x < t` goes left, in float32."""
    form = json.loads(model.get_booster().save_raw("json"))
    for tree in form["learner"]["gradient_booster"]["model"]["trees"]:
        left, right, missing = tree["left_children"], tree["right_children"], tree["default_left"]
        for node, column in enumerate(tree["split_indices"]):
            threshold = tree["split_conditions"][node]
            if left[node] < 0 or column not in rewrite.columns or tree["split_type"][node] or not _counts(threshold):
                continue
            tree["split_conditions"][node], turned = rewrite.split(column, threshold, np.float32, strict=True)
            if turned:
                left[node], right[node], missing[node] = right[node], left[node], 1 - missing[node]
    out = type(model)(**model.get_params())
    out.load_model(bytearray(json.dumps(form).encode()))
    return out


def _lightgbm(model: Any, rewrite: Rewrite) -> Any:
    """`x <= t` goes left, in float64."""
    import lightgbm

    booster = getattr(model, "booster_", model)
    head, *blocks = booster.model_to_string().split("\nTree=")
    head = "\n".join(line for line in head.splitlines() if not line.startswith("tree_sizes=")) + "\n"
    return lightgbm.Booster(model_str="\nTree=".join([head, *(_lightgbm_tree(b, rewrite) for b in blocks)]))


def _lightgbm_tree(block: str, rewrite: Rewrite) -> str:
    lines = block.split("\n")
    at = {line.partition("=")[0]: i for i, line in enumerate(lines)}
    if "split_feature" not in at or not lines[at["split_feature"]].partition("=")[2]:
        return block
    read = {name: lines[at[name]].partition("=")[2].split() for name in ("split_feature", "threshold", "decision_type")}
    left, right = (
        [int(v) for v in lines[at[side]].partition("=")[2].split()] for side in ("left_child", "right_child")
    )
    thresholds, kinds = [float(v) for v in read["threshold"]], [int(v) for v in read["decision_type"]]
    for node, column in enumerate(map(int, read["split_feature"])):
        if column not in rewrite.columns or kinds[node] & 1 or not _counts(thresholds[node]):
            continue
        thresholds[node], turned = rewrite.split(column, thresholds[node], np.float64)
        if turned:
            left[node], right[node] = right[node], left[node]
            kinds[node] ^= 2  # the default direction
    for name, values in (
        ("threshold", [repr(v) for v in thresholds]),
        ("decision_type", kinds),
        ("left_child", left),
        ("right_child", right),
    ):
        lines[at[name]] = f"{name}=" + " ".join(map(str, values))
    return "\n".join(lines)


def _sklearn(model: Any, rewrite: Rewrite) -> Any:
    """`x <= t` goes left: in float64 in histogram boosting, with x in float32 in the others."""
    if hasattr(model, "_predictors"):
        for predictor in (p for stage in model._predictors for p in stage):
            nodes = predictor.nodes
            for node in np.nonzero((nodes["is_leaf"] == 0) & (nodes["is_categorical"] == 0))[0]:
                column, threshold = int(nodes["feature_idx"][node]), float(nodes["num_threshold"][node])
                if column not in rewrite.columns or not _counts(threshold):
                    continue
                nodes["num_threshold"][node], turned = rewrite.split(column, threshold, np.float64)
                if turned:
                    nodes["left"][node], nodes["right"][node] = nodes["right"][node], nodes["left"][node]
                    nodes["missing_go_to_left"][node] ^= 1
        return model
    members = np.ravel(model.estimators_) if hasattr(model, "estimators_") else [model]
    for tree in (m.tree_ for m in members):
        for node in np.nonzero(tree.children_left >= 0)[0]:
            column, threshold = int(tree.feature[node]), float(tree.threshold[node])
            if column not in rewrite.columns or not _counts(threshold):
                continue
            tree.threshold[node], turned = rewrite.split(column, threshold, np.float64)
            if turned:
                left, right = tree.children_left[node], tree.children_right[node]
                tree.children_left[node], tree.children_right[node] = right, left
                tree.missing_go_to_left[node] ^= 1
    return model


def _catboost(model: Any, rewrite: Rewrite) -> Any:
    """`x > border` sets a bit of the leaf's number, in float32; borders are listed in the order of the numbers."""
    import catboost

    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "model.json"
        model.save_model(str(path), format="json")
        form = json.loads(path.read_text())
        renumbered: dict[int, int] = {}
        moved: dict[tuple[int, float], float] = {}
        first = 0
        for feature in form["features_info"]["float_features"]:
            column, old = feature["flat_feature_index"], feature["borders"]
            turned = column in rewrite.turned
            if column in rewrite.columns:
                for border in old:
                    new = -border if turned else border
                    if _counts(border):
                        new, _ = rewrite.split(column, border, np.float32)
                    moved[feature["feature_index"], border] = new
            feature["borders"] = sorted(moved.get((feature["feature_index"], b), b) for b in old)
            assert len(set(feature["borders"])) == len(old), "two borders in one gap"
            renumbered |= {first + i: first + (len(old) - 1 - i if turned else i) for i in range(len(old))}
            first += len(old)
            if turned and feature["nan_value_treatment"] != "AsIs":
                feature["nan_value_treatment"] = {"AsFalse": "AsTrue", "AsTrue": "AsFalse"}[
                    feature["nan_value_treatment"]
                ]
        flat = {f["feature_index"]: f["flat_feature_index"] for f in form["features_info"]["float_features"]}
        for tree in form["oblivious_trees"]:
            for bit, split in enumerate(tree["splits"]):
                if split["split_type"] != "FloatFeature":
                    continue
                split["split_index"] = renumbered[split["split_index"]]
                split["border"] = moved.get((split["float_feature_index"], split["border"]), split["border"])
                if flat[split["float_feature_index"]] in rewrite.turned:
                    values = tree["leaf_values"]
                    tree["leaf_values"] = [values[i ^ 1 << bit] for i in range(len(values))]
        path.write_text(json.dumps(form))
        out = type(model)(verbose=0, allow_writing_files=False) if hasattr(model, "get_params") else catboost.CatBoost()
        out.load_model(str(path), format="json")
    return out
