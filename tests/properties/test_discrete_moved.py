"""Credits follow from a model's decisions, not from where its library writes its numbers.

Thresholds are moved inside the gaps between whole numbers, and columns count down instead of up, in the libraries' own
model files. No prediction changes, so no credit may.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from rewritten import WHERE, Rewrite, rewritten
from whole_numbers import LIBRARIES, MOST, NAMES, TAKES_MISSING, fitted, labels, rows

import gigrad as gig

TURNED = {0: 1, 2: 1, 3: 4}
"""A flag that stands for its opposite, another, and children counted down from four."""
WHOLE = tuple(NAMES[j] for j in MOST)
CASES = [(name, False) for name in LIBRARIES] + [(name, True) for name in TAKES_MISSING]


def probability(model: Any, X: Any) -> Any:
    return np.asarray(model.predict_proba(X)[:, 1] if hasattr(model, "predict_proba") else model.predict(X))


def frame(X: Any) -> Any:
    return pd.DataFrame(X, columns=list(NAMES))


@cache
def outputs(library: str, missing: bool) -> dict[str, Any]:
    scores = gig.import_model(fitted(library, missing)).predict(frame(rows(missing)))
    rank = gig.SmoothedECDF.fit(scores, knots=40)
    return {"margin": "margin", "probability": None, "rank": rank}


def credits_of(model: Any, X: Any, output: Any, discrete: Any) -> Any:
    e = gig.explain(model, frame(X[:8]), frame(X[300:330]), output=output, discrete=discrete)
    assert np.abs(e.gap).max() < 1e-6
    return e.values


def assert_same(got: Any, want: Any) -> None:
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-9 * np.abs(want).max())


@pytest.mark.parametrize("output", ["margin", "probability", "rank"])
@pytest.mark.parametrize(("library", "missing"), CASES)
def test_moved_thresholds_and_turned_columns(library: str, missing: bool, output: str) -> None:
    model, X, space = fitted(library, missing), np.array(rows(missing)), outputs(library, missing)[output]
    want = credits_of(model, X, space, WHOLE)
    own = probability(model, X)
    for where in WHERE:
        for turned in ({}, TURNED):
            rewrite = Rewrite.of(where, MOST, turned)
            other = rewritten(model, rewrite)
            np.testing.assert_allclose(probability(other, rewrite.rows(X)), own, rtol=0, atol=1e-15)
            assert_same(credits_of(other, rewrite.rows(X), space, WHOLE), want)


@pytest.mark.parametrize(("library", "missing"), [c for c in CASES if c[0] != "extra trees"])
def test_the_rule_finds_the_columns_by_themselves(library: str, missing: bool) -> None:
    """Numbers of type float, thresholds as libraries write them; extra trees draw theirs, so their caller must say."""
    model, X = fitted(library, missing), np.array(rows(missing))
    want = credits_of(model, X, "margin", WHOLE)
    assert_same(credits_of(model, X, "margin", None), want)
    for where in ("first", "middle", "last"):
        rewrite = Rewrite.of(where, MOST, TURNED)
        assert_same(credits_of(rewritten(model, rewrite), rewrite.rows(X), "margin", None), want)


@pytest.mark.parametrize("kind", ["int64", "Int8", "polars"])
@pytest.mark.parametrize("library", ["extra trees", "xgboost"])
def test_a_table_of_integers_says_so(library: str, kind: str) -> None:
    model, X = rewritten(fitted(library), Rewrite.of("early", MOST)), np.array(rows(False))
    want = credits_of(model, X, None, WHOLE)
    reference: Any = frame(X[300:330]).astype(dict.fromkeys(WHOLE, "Int8" if kind == "Int8" else "int64"))
    if kind == "polars":
        import polars as pl

        reference = pl.from_pandas(reference)
    assert_same(gig.explain(model, frame(X[:8]), reference).values, want)


def test_moving_them_does_matter_on_continuous_columns() -> None:
    """What the rule is there for: the same model without it."""
    X, model = np.array(rows(False)), fitted("xgboost")
    first, last = (credits_of(rewritten(model, Rewrite.of(w, MOST)), X, "margin", ()) for w in ("first", "last"))
    assert np.abs(first - last).max() > 0.1 * np.abs(first).max()


# ---------------------------------------------------------------- stacks


BELOW = ("lightgbm", "histogram boosting", "forest")
"""These add up in float64: a sum in float32 may lie on the other side of a head's threshold."""


def stacked(rewrite: Rewrite | None, missing: bool, head: Any, passthrough: bool) -> Any:
    models = [fitted(name, missing) for name in BELOW]
    if rewrite is not None:
        models = [rewritten(m, rewrite) for m in models]
    return gig.stack(models, head, passthrough=passthrough)


@cache
def head_of_trees(missing: bool, passthrough: bool) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    X = np.array(rows(missing))[:200]  # so few that thresholds lie between scores, never on one
    scores = [probability(fitted(name, missing), X) for name in BELOW]
    table = np.column_stack([*scores, X] if passthrough else scores)
    return HistGradientBoostingClassifier(max_iter=8, max_leaf_nodes=6).fit(table, labels(missing)[:200])


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("kind", ["weights", "trees", "trees that read x"])
def test_stacks(kind: str, missing: bool) -> None:
    passthrough = kind == "trees that read x"
    head = [1.0, 2.0, -0.5] if kind == "weights" else head_of_trees(missing, passthrough)
    X = np.array(rows(missing))
    want = credits_of(stacked(None, missing, head, passthrough), X, None, WHOLE)
    for where in ("first", "last"):
        for turned in ({}, TURNED):
            rewrite = Rewrite.of(where, MOST, turned)
            below = rewrite
            top = head
            if passthrough:  # the head reads x after three scores
                above = {j + 3: most for j, most in turned.items()}
                top = rewritten(head, Rewrite.of(where, [j + 3 for j in MOST], above))
            got = credits_of(stacked(below, missing, top, passthrough), rewrite.rows(X), None, WHOLE)
            assert_same(got, want)
