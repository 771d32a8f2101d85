"""Explainable boosting machines of interpret: a table of scores for each column and each pair of columns.

Along each axis of a table come the missing value, the bins or labels, and what was never seen. A term is a tree: one
column after the other, down to the number in its table.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._io.tables import Rows
from ..errors import UnsupportedModelError
from ..graph import Array, Column, Graph, Input, Tree, assemble
from .common.estimator import Ask, label_of, require_fitted
from .common.frames import as_given
from .common.links import (
    DOUBLE,
    LINKS,
    class_left_out,
    class_outputs,
    plain_outputs,
    sum_error,
    witness,
)

_LINKS = {"identity": "identity", "log": "exp", "logit": "sigmoid", "mlogit": "softmax"}
_MOST_CELLS = 1 << 22  # of one table: beyond it the tree takes gigabytes


def import_ebm(model: Any) -> Graph:
    """ExplainableBoostingClassifier and ExplainableBoostingRegressor: main effects, pairs and what is above them."""
    require_fitted(model)
    if model.link_ not in _LINKS:
        raise UnsupportedModelError(
            f"{label_of(model)} with the link {model.link_!r} cannot be imported; known are {', '.join(_LINKS)}."
        )
    names = tuple(map(str, model.feature_names_in_))
    used = {int(j) for term in model.term_features_ for j in term}
    columns = tuple(_column(n, model.bins_[j]) if j in used else Column(n, kind="unused") for j, n in enumerate(names))
    base = np.asarray(model.intercept_, np.float64).ravel()
    source = Input(len(columns))
    trees = assemble(source, (_term(model, i, columns, len(base)) for i in range(len(model.term_features_))), base)
    link = LINKS[_LINKS[model.link_]]
    score = link.apply(trees)
    classes = getattr(model, "classes_", None)
    label, error = label_of(model), sum_error(trees, DOUBLE)
    method = "predict" if classes is None else "predict_proba"
    witnesses = [witness(score, _AskTable(model, method, len(base) == 1, columns), label, DOUBLE, error, link)]
    if classes is not None:
        margin = _AskTable(model, "decision_function", columns=columns)
        witnesses.append(witness(trees, margin, label, DOUBLE, error))
    return Graph(
        columns=columns,
        input=source,
        score=score,
        margin=trees,
        output_names=plain_outputs(1) if classes is None else class_outputs(classes),
        opposite=None if classes is None else class_left_out(classes),
        witnesses=tuple(witnesses),
        named=not all(re.fullmatch(r"feature_\d{4,}", n) for n in names),
        label=label,
    )


@dataclass(frozen=True)
class _AskTable(Ask):
    columns: tuple[Column, ...] = ()

    def data(self, rows: Rows) -> Any:
        return as_given(rows, self.columns)


def _column(name: str, bins: Sequence[Any]) -> Column:
    if isinstance(bins[0], Mapping):
        return Column(name, "category", tuple(label for label, _ in _labels(bins[0])))
    return Column(name)


def _labels(bins: Mapping[str, int]) -> list[tuple[Any, int]]:
    """Labels and their bins. Labels are kept as text; where a text is how a number is written, both are known."""
    out: dict[Any, int] = {}
    for text, place in bins.items():
        out[text] = place
        for kind in (int, float):
            try:
                number = kind(text)
            except ValueError:
                continue
            if str(number) == text:
                out.setdefault(number, place)
    for value in (True, False):
        if str(value) in bins:
            out.setdefault(value, bins[str(value)])
    return list(out.items())


# ---------------------------------------------------------------- a term as a tree


class _Grow:
    """The nodes of a tree, in the order in which they are made."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.feature: list[int] = []
        self.threshold: list[float] = []
        self.stored: list[float] = []
        self.children: list[tuple[int, int]] = []
        self.missing_left: list[bool] = []
        self.values: list[Array] = []
        self.sets: dict[int, NDArray[np.int64]] = {}

    def node(self, feature: int = -1, threshold: float = 0.0, stored: float = 0.0) -> int:
        self.feature.append(feature)
        self.threshold.append(threshold)
        self.stored.append(stored)
        self.children.append((-1, -1))
        self.missing_left.append(False)
        self.values.append(np.zeros(self.width))
        return len(self.feature) - 1

    def tree(self) -> Tree:
        left, right = np.array(self.children).T
        stored, values = np.array(self.stored), np.array(self.values)
        return Tree(
            np.array(self.feature), np.array(self.threshold), left, right, np.array(self.missing_left),
            values[:, 0] if self.width == 1 else values, 0 if self.width == 1 else -1, self.sets, (stored, stored),
        )  # fmt: skip


def _term(model: Any, index: int, columns: Sequence[Column], width: int) -> Tree:
    features = [int(j) for j in model.term_features_[index]]
    # A column has coarser bins in larger terms, where it has any.
    bins = [model.bins_[j][min(len(model.bins_[j]), len(features)) - 1] for j in features]
    table = np.asarray(model.term_scores_[index], np.float64)
    if table.size > _MOST_CELLS:
        raise UnsupportedModelError(
            f"The term {' & '.join(columns[j].name for j in features)} has {table.size} cells, too many for a tree. "
            "Fit with fewer max_interaction_bins."
        )
    grow = _Grow(width)
    _axis(grow, list(zip(features, bins, strict=True)), table.reshape(*table.shape[: len(features)], width))
    return grow.tree()


def _axis(grow: _Grow, axes: Sequence[tuple[int, Any]], table: Array) -> int:
    """The subtree of a table over the columns that are left: missing values first, then bins or labels."""
    if not axes:
        grow.values[leaf := grow.node()] = table
        return leaf
    (feature, bins), rest = axes[0], axes[1:]
    if isinstance(bins, Mapping):
        return _by_labels(grow, feature, bins, rest, table)
    top = grow.node(feature, -float(np.finfo(np.float64).max), -float(np.finfo(np.float64).max))
    grow.missing_left[top] = True  # no number is below the least one: only missing values go left
    grow.children[top] = _axis(grow, rest, table[0]), _between(grow, feature, bins, rest, table[1:-1])
    return top


def _between(grow: _Grow, feature: int, cuts: Array, rest: Sequence[tuple[int, Any]], table: Array) -> int:
    """Bins by halves: bin i holds the numbers that i of the cuts are not above."""
    if len(table) == 1 or all(np.array_equal(table[0], other) for other in table[1:]):
        return _axis(grow, rest, table[0])
    middle = len(cuts) // 2
    node = grow.node(feature, float(np.nextafter(cuts[middle], -np.inf)), float(cuts[middle]))
    low = _between(grow, feature, cuts[:middle], rest, table[: middle + 1])
    grow.children[node] = low, _between(grow, feature, cuts[middle + 1 :], rest, table[middle + 1 :])
    return node


def _by_labels(
    grow: _Grow, feature: int, bins: Mapping[str, int], rest: Sequence[tuple[int, Any]], table: Array
) -> int:
    """One label after the other, then missing values and unknown labels, which an empty set tells apart."""
    codes: dict[int, list[int]] = {}
    for code, (_, place) in enumerate(_labels(bins)):
        codes.setdefault(place, []).append(code)
    nodes = [grow.node(feature) for _ in range(len(codes) + 1)]
    for (place, members), node, following in zip(codes.items(), nodes, nodes[1:], strict=False):
        grow.sets[node] = np.array(members, np.int64)
        grow.children[node] = _axis(grow, rest, table[place]), following
    last = nodes[-1]
    grow.sets[last] = np.zeros(0, np.int64)
    grow.missing_left[last] = True
    grow.children[last] = _axis(grow, rest, table[0]), _axis(grow, rest, table[-1])
    return nodes[0]
