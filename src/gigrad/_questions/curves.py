"""The score of a row as a function of one of its columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..graph import Array, value_of
from .changed_rows import raw_value
from .moves import SAMPLED, Field, thresholds


@dataclass(frozen=True, eq=False)
class Curve:
    """The score of one row along one of its columns, all others as they are.

    Attributes
    ----------
    name : str
    kind : "steps", "points" or "labels"
        Steps: exactly constant between breakpoints. Points: evaluated at some values. Labels: evaluated at each label.
    breakpoints : (k,)
        Steps: where the score changes; piece i holds for `breakpoints[i - 1] < value <= breakpoints[i]`. Points: the
        thresholds of trees, where it may jump.
    values : (m,)
        Steps: one value of each piece. Points: where the score was evaluated. Labels: the labels.
    scores : (m,)
        The score there.
    now : object
        The row's own value; None where it is missing.
    missing : float
        The score where the value is missing; NaN where the model takes no missing value.
    low, high : float
        The range of the reference's numbers and the row's own.
    whole : bool
        Whether these are all whole numbers.
    """

    name: str
    kind: str
    breakpoints: Array
    values: NDArray[Any]
    scores: Array
    now: Any
    missing: float
    low: float = -np.inf
    high: float = np.inf
    whole: bool = False

    def __call__(self, values: Any) -> Array:
        """The score at some numbers; only for a curve of steps."""
        if self.kind != "steps":
            raise InputError(f"Only a curve of steps is known everywhere; {self.name!r} has {self.kind}.")
        at = np.asarray(values, np.float64)
        known = self.scores[np.searchsorted(self.breakpoints, at, side="left")]
        return np.where(np.isnan(at), self.missing, known)


def curve_of(field: Field, column: int) -> Curve:
    """The curve of one column: exact where only trees read it, else evaluated at many points."""
    name = field.explainer.reference.names[column]
    row, now = field.row, field.row[column]

    def score(values: Any) -> Array:
        rows = np.repeat(row[None], len(values), axis=0)
        rows[:, column] = values
        return value_of(field.node, {field.source: rows})[:, 0]

    shown = None if np.isnan(now) else raw_value(field.explainer, field.given, column, float(now))
    missing = float(score([np.nan])[0]) if field.columns[column].may_be_missing else float("nan")
    if field.is_category(column):
        codes = np.unique(np.append(field.held(column), [] if np.isnan(now) else [now]))
        codes = codes[(codes >= 0) | (codes == now)]
        raw = [raw_value(field.explainer, field.given, column, float(c)) for c in codes]
        labels = np.array([*raw, None], dtype=object)[:-1]
        return Curve(name, "labels", np.zeros(0), labels, score(codes), shown, missing)
    held = np.append(field.held(column), [] if np.isnan(now) else [now])
    low, high = float(held.min(initial=np.inf)), float(held.max(initial=-np.inf))
    seen = (low, high, bool((held == np.rint(held)).all())) if len(held) else ()
    edges = thresholds(field.node, field.source, column)
    if not field.smooth[column]:
        values = np.append(edges, np.nextafter(edges[-1], np.inf) if len(edges) else 0.0)
        scores = score(values)
        kept = np.flatnonzero(np.append(np.diff(scores) != 0.0, True))  # the last value of each run of one score
        return Curve(name, "steps", edges[kept[:-1]], values[kept], scores[kept], shown, missing, *seen)
    inside = edges[(edges >= low) & (edges < high)]
    spread = np.linspace(low, high, SAMPLED if len(held) else 0)
    values = np.unique(np.concatenate([spread, inside, np.nextafter(inside, np.inf), [] if np.isnan(now) else [now]]))
    return Curve(name, "points", inside, values, score(values), shown, missing, *seen)
