"""Which columns of a LightGBM model the lists of pandas categories in its file belong to.

The file stores one list of labels for each column that was a pandas category in training, in the order of the columns,
but not which columns they were. Those trained as categories are marked. An ordered category is trained as a number, its
code, and looks like any other small integer: it is identified if only one choice fits, and the model's own predictions
on the table's own categories would contradict a wrong one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...errors import UnsupportedModelError

Labels = tuple[Any, ...]


def labelled_columns(
    lists: Sequence[Labels], categorical: frozenset[int], infos: Sequence[str], trees: Sequence[Mapping[str, str]],
    names: Sequence[str],
) -> dict[int, Labels]:  # fmt: skip
    """Column -> its labels, for every list of labels in the file."""
    if not lists:
        return {}
    if len(lists) == len(categorical):
        return dict(zip(sorted(categorical), lists, strict=True))
    thresholds = _thresholds(trees)

    def exactly(labels: Labels, j: int) -> bool:
        return _range(infos[j]) == (0.0, len(labels) - 1.0) and _between_codes(thresholds.get(j, ()))

    def perhaps(labels: Labels, j: int) -> bool:
        low, high = _range(infos[j]) or (0.0, 0.0)  # a constant column has no range
        codes = low >= 0 and high <= len(labels) - 1 and low == int(low) and high == int(high)
        return codes and _between_codes(thresholds.get(j, ()))

    for fits in (exactly, perhaps):
        found = _choices(lists, categorical, len(names), fits)
        if len(found) == 1:
            return dict(zip(found[0], lists, strict=True))
    raise UnsupportedModelError(
        f"This LightGBM model was trained on {len(lists)} pandas category columns, {len(categorical)} of them as "
        "categories; the others are ordered ones, which its file does not distinguish from numbers: "
        + (f"they may be {_told(found, categorical, names)}." if found else "no column of it fits their labels.")
        + " Train ordered categories as numbers (.cat.codes), or integer codes without pandas categories beside them."
    )


def _choices(
    lists: Sequence[Labels], categorical: frozenset[int], width: int, fits: Callable[[Labels, int], bool], most: int = 8
) -> list[tuple[int, ...]]:
    """Up to `most` ways to give each list of labels a column, in order: every category gets one, others if they fit."""
    found: list[tuple[int, ...]] = []
    waiting: list[tuple[int, ...]] = [()]
    while waiting and len(found) < most:
        chosen = waiting.pop()
        first = chosen[-1] + 1 if chosen else 0
        left = [j for j in sorted(categorical) if j >= first]
        if len(chosen) == len(lists):
            found += [chosen] if not left else []
            continue
        last = left[0] if left else width - 1  # a category must not be skipped
        labels = lists[len(chosen)]
        open_to = [j for j in range(first, last + 1) if j in categorical or fits(labels, j)]
        if len(lists) - len(chosen) >= len(left):
            waiting += [(*chosen, j) for j in reversed(open_to)]
    return found


def _range(info: str) -> tuple[float, float] | None:
    """The smallest and the largest number of a column in training."""
    if not info.startswith("["):
        return None
    low, _, high = info.strip("[]").partition(":")
    return float(low), float(high)


def _thresholds(trees: Sequence[Mapping[str, str]]) -> dict[int, list[float]]:
    """Column -> the thresholds of its numeric splits."""
    out: dict[int, list[float]] = {}
    for tree in trees:
        parts = (tree.get(name, "").split() for name in ("split_feature", "threshold", "decision_type"))
        for feature, threshold, decision in zip(*parts, strict=True):
            if not int(decision) & 1:
                out.setdefault(int(feature), []).append(float(threshold))
    return out


def _between_codes(thresholds: Sequence[float]) -> bool:
    """Whether thresholds are those that LightGBM puts between integers: half-way, or right beside zero.

    A threshold at the largest float only separates missing values.
    """
    finite = np.asarray(thresholds, np.float64)
    twice = 2.0 * finite[np.abs(finite) < 1e300]
    return bool((np.abs(twice - np.round(twice)) < 1e-9).all())


def _told(found: Sequence[tuple[int, ...]], categorical: frozenset[int], names: Sequence[str]) -> str:
    return " or ".join(
        " with ".join(repr(names[j]) for j in choice if j not in categorical) for choice in found[:4]
    ) + (" and so on" if len(found) > 4 else "")
