"""A warning points at the line that called gigrad, whichever way in was taken."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import gigrad as gig

START, END = [[1.0, 2.0]], [[3.0, 4.0]]
NAMED = [pd.DataFrame(rows, columns=["a", "b"]) for rows in (START, END)]


def nothing() -> gig.Graph:
    """A model whose gradient is no number, so that no tolerance is ever reached."""
    return gig.function(lambda x: x[:, 0] * x[:, 1], lambda x: x * np.nan, 2)


def in_batches(folder: Path) -> object:
    NAMED[1].to_parquet(folder / "rows.parquet")
    explainer = gig.Explainer(nothing(), START)
    return gig.batch.run(explainer, folder / "rows.parquet", folder / "credits.parquet")


ENTRIES: dict[str, Callable[[Path], object]] = {
    "explain": lambda _: gig.explain(nothing(), END, START),
    "explain_pairs": lambda _: gig.explain_pairs(nothing(), START, END),
    "Explainer": lambda _: gig.Explainer(nothing(), START)(END),
    "Explainer.credit_ranges": lambda _: gig.Explainer(nothing(), START).credit_ranges(),
    "explain_gap": lambda _: gig.explain_gap(nothing(), START, END, bootstrap=0),
    "explain_batch": lambda _: gig.batch.explain_batch(
        gig.Explainer(nothing(), START), pa.RecordBatch.from_pandas(NAMED[1]), columns=["a", "b"]
    ),
    "batch.run": in_batches,
}


@pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES)
def test_a_missed_tolerance_is_said_where_gigrad_was_called(entry: Callable[[Path], object], tmp_path: Path) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        entry(tmp_path)
    found = [w for w in caught if issubclass(w.category, gig.AccuracyWarning)]
    assert found
    assert {w.filename for w in found} == {__file__}


def test_a_reason_without_a_statement_is_said_where_it_was_asked_for() -> None:
    linear = gig.function(lambda x: x @ [1.0, 2.0], lambda x: np.tile([1.0, 2.0], (len(x), 1)), ["a", "b"])
    found = gig.explain(linear, NAMED[0], NAMED[1])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        gig.reasons(found, statements={"a": "a is too low"}, higher_is_better=True)
    assert [w.filename for w in caught if w.category is gig.StatementWarning] == [__file__]
