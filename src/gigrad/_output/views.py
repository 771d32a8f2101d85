"""What plots and the report share: what they can draw, how much of it, and what a score is called."""

from __future__ import annotations

import numpy as np

from .._common import display
from .._explain.explanation import Explanation
from ..errors import InputError, kind_of

SEED = 0


def one_output(e: Explanation, what: str) -> Explanation:
    """The explanation, if it has one output and something to show; a clear error elsewhere."""
    if not isinstance(e, Explanation):
        raise InputError(f"{what} draws an Explanation; got {kind_of(e)}.")
    if e.values.ndim == 3:
        if len(e.output_names) > 1:
            names = ", ".join(map(repr, e.output_names[:8]))
            raise InputError(f"{what} draws one output; pick one of {names}, say e[:, :, {e.output_names[0]!r}].")
        e = e[:, :, 0]
    if len(e) == 0:
        raise InputError(f"{what} needs at least one row; this explanation has none.")
    return e


def one_row(e: Explanation, what: str) -> Explanation:
    """The explanation, if it has one output and one row; a clear error elsewhere."""
    e = one_output(e, what)
    if len(e) != 1:
        raise InputError(f"{what} draws one row; this explanation has {len(e):,}. Pick one, say e[0].")
    return e


def sampled(e: Explanation, most: int) -> tuple[Explanation, str]:
    """At most `most` rows, drawn at random with a fixed seed, and the words that say so."""
    if len(e) <= most:
        return e, f"{len(e):,} rows"
    rows = np.sort(np.random.default_rng(SEED).choice(len(e), most, replace=False))
    return e[rows], f"{most:,} of {len(e):,} rows, drawn at random"


def score_name(e: Explanation) -> str:
    """What the score is called: "probability of class 1", "margin of class 1"."""
    name = display.shortened(e.output_names[0], 40)
    output = e.provenance.get("output", {})
    asked = str(output.get("asked", "prediction")).split("(")[0]
    if name.isdigit():  # the label of a class
        scores = np.concatenate([e.predictions.ravel(), e.base_values.ravel()])
        likely = output.get("probability", bool(((scores >= 0) & (scores <= 1)).all()))
        return f"{('probability' if likely else 'score') if asked == 'prediction' else asked} of class {name}"
    return name if asked == "prediction" else f"{name} ({asked})"
