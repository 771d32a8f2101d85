"""optbinning's Scorecard: the points of each bin, special and missing ones included.

The bin of a value is determined by optbinning itself: for every label, and for one number of every region between the
splits and special codes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._io.tables import Rows
from ...errors import NotFittedError, UnsupportedModelError
from ...graph import Column
from ..common.frames import as_given
from .card import Categories, Characteristic, Numbers, Scorecard, representatives


def read_optbinning(model: Any) -> Scorecard:
    """A scorecard with the points of a fitted optbinning.Scorecard, whose own predictions are the witness."""
    if not getattr(model, "_is_fitted", False):
        raise NotFittedError("This Scorecard has not been fitted; call fit first.")
    process = model.binning_process_
    names = tuple(map(str, process.variable_names))
    table = model.table(style="summary")
    used = [str(n) for n in process.get_support(names=True)]
    made = tuple(_characteristic(name, process.get_binned_variable(name), _points(table, name)) for name in used)
    unused = tuple(n for n in names if n not in used)
    card = Scorecard(made, float(model.intercept_), label="Scorecard", unused=unused, order=names)
    return Scorecard(
        made, card.base, label="Scorecard", unused=unused, order=names, own=_Own(model, card.graph.columns)
    )


def _points(table: Any, name: str) -> NDArray[np.float64]:
    return np.asarray(table[table["Variable"] == name]["Points"], np.float64)


def _characteristic(name: str, binned: Any, points: NDArray[np.float64]) -> Characteristic:
    """The points of a binned column, by computing the bin of a value of each."""

    def bins_of(values: Sequence[Any], dtype: Any) -> NDArray[np.int64]:
        given = np.empty(len(values), dtype)
        given[:] = values
        found = binned.transform(given, metric="indices", metric_special="empirical", metric_missing="empirical")
        return np.asarray(found, np.int64)

    if binned.dtype == "numerical":
        breaks = tuple(stored(binned, name))
        found = points[bins_of(representatives(breaks), np.float64)]
        return Numbers(name, breaks, tuple(found.tolist()), float(points[bins_of([np.nan], np.float64)[0]]))
    labels = stored(binned, name)
    found = points[bins_of(labels, object)]
    other, missing = (float(points[bins_of([v], object)[0]]) for v in (_NEVER_SEEN, None))
    return Categories(name, tuple(labels), tuple(found.tolist()), other, missing)


_NEVER_SEEN = "a label that no table holds"


def stored(binned: Any, name: str) -> list[Any]:
    """The values that a binning of one column compares with: edges and special codes, increasing; or all its labels."""
    special = binned.special_codes
    codes = [] if special is None else list(special.values()) if isinstance(special, dict) else list(special)
    codes = [c for group in codes for c in (group if isinstance(group, (list, tuple, np.ndarray)) else [group])]
    if binned.dtype == "numerical":
        return sorted({float(v) for v in (*binned.splits, *codes)})
    labels = [v for v in dict.fromkeys((*_labels(binned), *codes)) if v is not None and v == v]
    if not labels or not all(isinstance(v, (str, int, float, bool, np.generic)) for v in labels):
        raise UnsupportedModelError(f"The categories of {name!r} must be texts or numbers to be imported.")
    return labels


def _labels(binned: Any) -> list[Any]:
    """All labels of the binning, including rare ones merged in a bin."""
    return [v for group in binned.splits for v in (group if not isinstance(group, str) else [group])]


@dataclass(frozen=True)
class _Own:
    """The points that the model itself gives."""

    model: Any
    columns: tuple[Column, ...]

    def __call__(self, rows: Rows) -> Any:
        return self.model.score(as_given(rows, self.columns))
