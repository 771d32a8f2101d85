"""Explainable boosting machines of interpret: a table of scores for each column and each pair of columns.

Each axis of a table has an entry for missing values, the bins or labels, and one for unknown values. A term is a tree:
it splits on one column after the other, down to the number in its table.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._io.tables import Rows
from ..errors import UnsupportedModelError
from ..graph import Array, Column, Graph, Input, Tree, assemble
from ..graph.growing import Branch, Edge, Part, chained, grown, halved
from .common.estimator import OwnPrediction, label_of, require_fitted
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
_MOST_CELLS = 1 << 22  # of one table: a larger tree takes gigabytes


def import_ebm(model: Any) -> Graph:
    """ExplainableBoostingClassifier and ExplainableBoostingRegressor: main effects, pairs and larger interactions."""
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
class _AskTable(OwnPrediction):
    """The model's own prediction for a table with its categories as they were given."""

    columns: tuple[Column, ...] = ()

    def data(self, rows: Rows) -> Any:
        return as_given(rows, self.columns)


def _column(name: str, bins: Sequence[Any]) -> Column:
    if isinstance(bins[0], Mapping):
        return Column(name, "category", tuple(label for label, _ in _labels(bins[0])))
    return Column(name)


def _labels(bins: Mapping[str, int]) -> list[tuple[Any, int]]:
    """Labels and their bins. Labels are stored as text; for a text that is a number, the number is a label too."""
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


def _term(model: Any, index: int, columns: Sequence[Column], width: int) -> Tree:
    """A term of an EBM, a table over the bins of one or more columns, as a tree."""
    features = [int(j) for j in model.term_features_[index]]
    # A column may have coarser bins in larger terms.
    bins = [model.bins_[j][min(len(model.bins_[j]), len(features)) - 1] for j in features]
    table = np.asarray(model.term_scores_[index], np.float64)
    if table.size > _MOST_CELLS:
        raise UnsupportedModelError(
            f"The term {' & '.join(columns[j].name for j in features)} has {table.size} cells, too many for a tree. "
            "Fit with fewer max_interaction_bins."
        )
    axes = list(zip(features, bins, strict=True))
    root = _axis(axes, table.reshape(*table.shape[: len(features)], *((width,) if width > 1 else ())))
    return grown(root, output=-1 if width > 1 else 0)


def _axis(axes: Sequence[tuple[int, Any]], table: Array) -> Part:
    """The part of a tree for a table over the remaining columns: bins or labels, with missing values separate."""
    if not axes:
        return table
    (feature, bins), rest = axes[0], axes[1:]
    if isinstance(bins, Mapping):
        return _by_labels(feature, bins, rest, table)
    return Branch(feature, _between(feature, bins, rest, table[1:-1]), _axis(rest, table[0]))


def _between(feature: int, cuts: Array, rest: Sequence[tuple[int, Any]], table: Array) -> Part:
    """A balanced tree over bins: bin i holds the numbers with exactly i cuts at or below them."""
    parts: list[Part] = []
    for i, cells in enumerate(table):
        parts.append(parts[-1] if i and np.array_equal(cells, table[i - 1]) else _axis(rest, cells))
    return halved(parts, lambda k, low, high: Branch(feature, low, high, Edge.below(float(cuts[k]))))


def _by_labels(feature: int, bins: Mapping[str, int], rest: Sequence[tuple[int, Any]], table: Array) -> Part:
    """A chain over labels, then a split with an empty set that separates missing values from unknown labels."""
    codes: dict[int, list[int]] = {}
    for code, (_, place) in enumerate(_labels(bins)):
        codes.setdefault(place, []).append(code)
    sets = list(codes.values())
    last = Branch(feature, _axis(rest, table[0]), _axis(rest, table[-1]), codes=[], missing_left=True)
    parts = [*(_axis(rest, table[place]) for place in codes), last]
    return chained(parts, lambda i, part, others: Branch(feature, part, others, codes=sets[i]))
