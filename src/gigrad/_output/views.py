"""Helpers of plots and the report: checks of what can be drawn, sampling of rows, names of scores."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .._common import display
from .._explain.explanation import Explanation
from ..errors import InputError, kind_of

SEED = 0


def one_output(e: Explanation, what: str) -> Explanation:
    """The explanation, if it has one output and at least one row; else an InputError."""
    if not isinstance(e, Explanation):
        raise InputError(f"{what} draws an Explanation; got {kind_of(e)}.")
    if e.values.ndim == 3:
        if len(e.output_names) > 1:
            names = ", ".join(map(repr, e.output_names[:8]))
            raise InputError(f"{what} draws one output; pick one of {names}, say e[:, :, {e.output_names[0]!r}].")
        e = e[:, :, 0]
    return some_rows(e, what)


def some_rows(e: Explanation, what: str) -> Explanation:
    """The explanation, if it has at least one row; else an InputError."""
    if len(e) == 0:
        raise InputError(f"{what} needs at least one row; this explanation has none.")
    return e


def one_row(e: Explanation, what: str) -> Explanation:
    """The explanation, if it has one output and one row; else an InputError."""
    e = one_output(e, what)
    if len(e) != 1:
        raise InputError(f"{what} draws one row; this explanation has {len(e):,}. Pick one, say e[0].")
    return e


def changed(e: Explanation) -> NDArray[np.bool_]:
    """Which features differ from the start in some row of pairs, (p,); the others need not be shown.

    All features against a reference, or if the starts are unknown.
    """
    if e.starts is None or e.data is None:
        return np.ones(len(e.feature_names), dtype=bool)
    moved = {name: _differs(e, i).any() for i, name in enumerate(e.columns)}
    own = [any(moved[c] for c in e.groups.get(name, (name,))) for name in e.feature_names]
    earned = (e.values != 0).any(axis=0).reshape(len(own), -1).any(axis=1)
    return np.asarray(np.array(own, dtype=bool) | earned)


def _differs(e: Explanation, column: int) -> NDArray[np.bool_]:
    """Where a raw column differs from its value at the start, (n,); a missing value equals a missing value."""
    start, end = display.column(e.starts, column), display.column(e.data, column)
    pairs = zip(start.tolist(), end.tolist(), strict=True)
    return np.array([not (a == b or (display.is_missing(a) and display.is_missing(b))) for a, b in pairs], dtype=bool)


def is_pairs(e: Explanation) -> bool:
    """Whether every row has a start of its own."""
    return e.starts is not None or e.provenance.get("reference", {}).get("kind") == "pairs"


def origin(e: Explanation) -> str:
    """What a row is compared with: "start" or "reference"."""
    return "start" if is_pairs(e) else "reference"


def value_of_row(e: Explanation, feature: int, width: int) -> str:
    """The only row's value beside its name: " = 50", or from the start's to its own, " 42 -> 50"; "" for a group."""
    raw, before = e.raw(feature), e.raw_start(feature)
    if raw is None:
        return ""
    value = display.shortened(display.text(raw[0]), width)
    if before is None:
        return f" = {value}"
    start = display.shortened(display.text(before[0]), width)
    return f" {start} -> {value}" if start != value else f" = {value}"


def sampled(e: Explanation, most: int) -> tuple[Explanation, str]:
    """At most `most` rows, drawn at random with a fixed seed, and a text that says so."""
    if len(e) <= most:
        return e, f"{len(e):,} rows"
    rows = np.sort(np.random.default_rng(SEED).choice(len(e), most, replace=False))
    return e[rows], f"{most:,} of {len(e):,} rows, drawn at random"


def output_name(name: str, width: int) -> str:
    """One of several outputs: "class 2" where its name is the bare label of a class."""
    return f"class {name}" if _is_number(name) else display.shortened(name, width)


def _is_number(name: str) -> bool:
    """Whether a name is a bare number, as the label of a class may be: "1" or "1.0"."""
    return name.replace(".", "", 1).isdigit()


def score_name(e: Explanation) -> str:
    """The name of the score: "probability of class 1", "margin of class 1"."""
    name = display.shortened(e.output_names[0], 40)
    output = e.provenance.get("output", {})
    asked = str(output.get("asked", "prediction")).split("(")[0]
    if _is_number(name):  # the label of a class
        scores = np.concatenate([e.predictions.ravel(), e.base_values.ravel()])
        likely = output.get("probability", bool(((scores >= 0) & (scores <= 1)).all()))
        return f"{('probability' if likely else 'score') if asked == 'prediction' else asked} of class {name}"
    return name if asked == "prediction" else f"{name} ({asked})"
