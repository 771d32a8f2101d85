"""From a table to letters and records, on Taiwan default and Lending Club."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xgboost as xgb

import gigrad as gig
from gigrad.graph import Graph, Input, TreeEnsemble

pytestmark = pytest.mark.data

PAYMENTS = {
    "payment status": [f"pay_{i}" for i in (0, 2, 3, 4, 5, 6)],
    "bills": [f"bill_amt{i}" for i in range(1, 7)],
    "payments": [f"pay_amt{i}" for i in range(1, 7)],
}
TAIWAN_BOOK = {
    "payment status": [
        {"code": "P2", "statement": "Serious recent delinquency", "column": "pay_0", "at_least": 2},
        {"code": "P1", "statement": "Payment history"},
    ],
    "bills": {"code": "B1", "statement": "Amounts owed on the account"},
    "payments": {"code": "B2", "statement": "Amounts repaid are too small"},
    "limit_bal": {"code": "L1", "statement": "Credit limit is too low", "than_typical": "lower"},
    "education": {"code": "E1", "statement": "Education"},
}


def boosted(X: Any, bad: Any, trees: int = 60) -> Any:
    model = xgb.XGBClassifier(n_estimators=trees, max_depth=4, enable_categorical=True, random_state=0, n_jobs=2)
    return model.fit(X, bad)


def test_taiwan_from_table_to_records(table: Callable[[str], pd.DataFrame], tmp_path: Path) -> None:
    data = table("taiwan_credit_default")
    bad = data.pop("default_payment_next_month")
    X = data.drop(columns=["sex", "marriage", "age"])
    model = boosted(X, bad)
    risk = model.predict_proba(X)[:, 1].astype(float)
    ecdf = gig.SmoothedECDF.fit(risk)
    rank = ecdf(risk)
    band = gig.references.cutoff_band(X, rank, 0.8, width=0.1, higher_is_better=False)
    reference = gig.references.distill(band, 60)
    assert reference.mean_score == pytest.approx(band.mean_score, abs=1e-9)
    refused = X[rank > 0.8].iloc[:200]
    e = gig.explain(model, refused, reference, output=ecdf)
    assert np.abs(e.predictions - rank[rank > 0.8][:200]).max() < 1e-9
    np.testing.assert_allclose(e.base_values + e.values.sum(axis=1) + e.gap, e.predictions, rtol=0, atol=1e-12)
    assert np.abs(e.gap).max() < 1e-5  # a float32 sum, ranked
    with pytest.warns(gig.StatementWarning, match="limit_bal"):
        found = gig.reasons(e, statements=TAIWAN_BOOK, groups=PAYMENTS)

    units = e.group(PAYMENTS)
    for i, applicant in enumerate(found):
        against = np.sort(units.values[i][units.values[i] > 1e-9])[::-1][:4]
        np.testing.assert_allclose([r.credit for r in applicant.reasons], against, rtol=1e-9)
        late = refused["pay_0"].iloc[i] >= 2
        for r in applicant.reasons:
            if r.feature == "payment status":
                assert r.code == ("P2" if late else "P1")
    found.write_audit(tmp_path / "audit.jsonl")
    records = list(gig.read_ledger(tmp_path / "audit.jsonl"))
    assert [gig.replay_reasons(record) for record in records] == list(found)
    assert records[0]["provenance"]["reference"]["note"] == reference.provenance
    checked = gig.verify_reasons(records[7], model, reference, output=ecdf)
    assert checked.ok, checked.differences

    turned = np.random.default_rng(0).permutation(len(refused))
    again = gig.reasons(gig.explain(model, refused.iloc[turned], reference, output=ecdf), groups=PAYMENTS)
    for i, j in enumerate(turned[:100]):
        assert [r.feature for r in again[i].reasons] == [r.feature for r in found[j].reasons]


def test_permuting_the_columns_of_a_real_model_changes_no_reason(table: Callable[[str], pd.DataFrame]) -> None:
    data = table("taiwan_credit_default").iloc[:4000]
    bad = data.pop("default_payment_next_month")
    model = gig.import_model(boosted(data, bad, trees=20))
    trees = model.margin
    assert isinstance(trees, TreeEnsemble)
    order = np.random.default_rng(1).permutation(data.shape[1])
    place = np.argsort(order)  # where each old column is now
    source = Input(data.shape[1])
    feature = np.where(trees.feature < 0, -1, place[trees.feature]).astype(np.int32)
    score = replace(trees, source=source, feature=feature)
    turned = Graph(tuple(model.columns[j] for j in order), source, score, score, ("margin",), named=True)
    scores = turned.predict(data)
    reference = gig.references.sample(gig.references.all_applicants(data, higher_is_better=False), 60)
    rows = data[scores > np.quantile(scores, 0.98)]
    first = gig.reasons(gig.explain(model, rows, reference, output="margin"))
    second = gig.reasons(gig.explain(turned, rows, reference))
    assert len(first) > 50
    for a, b in zip(first, second, strict=True):
        assert [r.feature for r in a.reasons] == [r.feature for r in b.reasons]
        np.testing.assert_allclose([r.credit for r in a.reasons], [r.credit for r in b.reasons], rtol=1e-9)


# Some pairs differ in more than twelve categories and missing values at once: their corner is sampled, and says so.
@pytest.mark.filterwarnings("default::gigrad.AccuracyWarning")
def test_lending_club_with_categories_and_missing_values(table: Callable[[str], pd.DataFrame], tmp_path: Path) -> None:
    data = table("lending_club_2007_2011").iloc[::3].reset_index(drop=True)
    bad = (data["loan_status"] == "Charged Off").astype(int)
    X = data.drop(columns=["loan_status", "issue_d", "earliest_cr_line", "funded_amnt", "funded_amnt_inv", "sub_grade",
                           "addr_state", "meets_credit_policy"])  # fmt: skip
    model = boosted(X, bad)
    risk = model.predict_proba(X)[:, 1].astype(float)
    cutoff = float(np.quantile(risk, 0.85))
    whole = gig.references.approved(X, risk, cutoff, higher_is_better=False)
    e = gig.explain(model, X[risk > cutoff].iloc[:150], gig.references.sample(whole, 100, seed=1))
    assert np.abs(e.gap).max() < 1e-6

    typical = gig.explain(model, X.iloc[:1], whole).provenance["reference"]["typical"]
    passed = X[risk <= cutoff]
    for name in X.columns:
        if isinstance(X[name].dtype, pd.CategoricalDtype):
            counts = passed[name].value_counts(dropna=False)
            expected = counts.index[0]
            assert typical[name] == expected or (pd.isna(expected) and typical[name] is None)
        elif passed[name].isna().mean() > 0.5:
            assert typical[name] is None
        else:
            assert typical[name] == pytest.approx(float(passed[name].median()))

    book = {"mths_since_last_record": [{"statement": "No public record known", "value": "missing"}, "Public record"],
            **{name: name.replace("_", " ") for name in X.columns if name != "mths_since_last_record"}}  # fmt: skip
    found = gig.reasons(e, statements=book, exclude=["int_rate"])
    assert not found.reasons_without_statement
    rate = e.values[:, e.feature_names.index("int_rate")]
    for i, applicant in enumerate(found):
        rank = 1 + int((e.values[i] > rate[i]).sum()) if rate[i] > 1e-9 else None
        assert applicant.excluded[0].would_rank == rank
        assert applicant.excluded[0].principal == (rank is not None and rank <= 4)
        assert "int_rate" not in [r.feature for r in applicant.reasons]
    for record, applicant in zip(found.audit(), found, strict=True):
        assert gig.replay_reasons(json.dumps(record)) == applicant
    found.to_parquet(tmp_path / "reasons.parquet")
    assert len(pd.read_parquet(tmp_path / "reasons.parquet")) == sum(len(a.reasons) for a in found)

    rent, own = X[X["home_ownership"] == "RENT"].iloc[:150], X[X["home_ownership"] == "MORTGAGE"].iloc[:150]
    gap = gig.explain_gap(model, rent, own, bootstrap=50)
    mean = [model.predict_proba(g)[:, 1].astype(float).mean() for g in (rent, own)]
    assert gap.difference == pytest.approx(mean[0] - mean[1], abs=1e-12)
    assert gap.values.sum() == pytest.approx(gap.difference, abs=1e-6)
    assert (gap.low <= gap.high).all()
