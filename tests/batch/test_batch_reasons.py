"""Reasons in batches: what they take from the reference, and what must agree with it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeRegressor

import gigrad as gig
from gigrad.batch.reasons import reason_task


def test_a_direction_against_the_references_own_is_refused() -> None:
    X = pd.DataFrame({"income": [20.0, 30.0, 40.0, 50.0]})
    model = LinearRegression().fit(X, [0.9, 0.6, 0.4, 0.1])
    approved = gig.references.approved(X, model.predict(X), 0.5, higher_is_better=False, min_rows=1)
    explainer = gig.Explainer(model, approved)
    with pytest.raises(gig.InputError, match=r"must be that of the reference, False .*; got True"):
        reason_task(explainer, pa.Schema.from_pandas(X), higher_is_better=True)


def test_only_those_who_fail_are_explained_and_the_lines_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    X = pd.DataFrame({"income": [20.0, 30.0, 40.0, 50.0, None, 20.0], "debt": [1.0, 0.0, 3.0, 0.0, 1.0, 2.0]})
    model = HistGradientBoostingRegressor(min_samples_leaf=1, max_iter=5).fit(X, [0.9, 0.6, 0.4, 0.1, 0.8, 0.7])
    explainer = gig.Explainer(model, X.iloc[2:4])
    score = model.predict(X)
    options: dict[str, Any] = {"higher_is_better": False, "cutoff": 0.5, "audit": True}
    everybody = reason_task(explainer, pa.Schema.from_pandas(X), everybody=True, **options)
    all_of_them = replace(everybody, data={})(pa.Table.from_pandas(X), "fail", range(6))
    explained: list[int] = []
    whole = gig.Explainer._explained

    def counted(self: gig.Explainer, rows: Any, *more: Any) -> gig.Explanation:
        explained.append(len(rows))
        return whole(self, rows, *more)

    monkeypatch.setattr(gig.Explainer, "_explained", counted)
    task = reason_task(explainer, pa.Schema.from_pandas(X), **options)
    found = replace(task, data={})(pa.Table.from_pandas(X), "fail", range(6))
    assert explained == [0, int((score > 0.5).sum())]  # none when the task is tried, then those who fail
    records, expected = ([json.loads(text) for text in f.records[1:]] for f in (found, all_of_them))
    assert [r["id"] for r in records] == np.flatnonzero(score > 0.5).tolist()
    for one in (*records, *expected):
        del one["fingerprint"]  # which stands for the rules, too: those for everybody are others
    assert records == [r for r in expected if score[r["id"]] > 0.5], "the numbers of a row depend on no other"


def test_a_row_without_a_score_is_rejected_whoever_the_result_is_about() -> None:
    X = pd.DataFrame({"income": [20.0, 1e300, 50.0]})
    model = LinearRegression().fit(X[::2], [0.9, 0.1])
    model.coef_ *= 1e300
    explainer = gig.Explainer(model, X.iloc[[2]])
    task = reason_task(explainer, pa.Schema.from_pandas(X), higher_is_better=False, cutoff=0.5)
    assert list(task(pa.Table.from_pandas(X), "skip").bad) == [1]
    with pytest.raises(gig.InputError, match=r"Row 1 .* not a finite number"):
        task(pa.Table.from_pandas(X), "fail")


def test_texts_are_warned_about_once_a_run() -> None:
    """A million rows in batches said it 117 times."""
    X = pd.DataFrame({"debt": np.tile([1.0, 5.0, 9.0, 5.0], 10)})
    model = DecisionTreeRegressor().fit(X, (X["debt"] != 5).astype(float))  # too little is as bad as too much
    rules: dict[str, Any] = {"higher_is_better": False, "cutoff": 0.5, "statements": {"debt": "Debt"}}
    task = reason_task(gig.Explainer(model, X.iloc[[1]]), pa.Schema.from_pandas(X), **rules)
    batches = [pa.Table.from_pandas(X.iloc[start : start + 10]) for start in range(0, 40, 10)]
    with pytest.warns(gig.StatementWarning, match=r"One text is given .* first batch") as heard:
        assert len([task(one, "fail") for one in batches]) == 4
    assert len(heard) == 1
