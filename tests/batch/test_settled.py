"""Batches whose rows are explained against as many references as settle their reasons."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from office import called
from xgboost import XGBClassifier

import gigrad as gig
from gigrad import Explanation, InputError


@pytest.fixture(scope="module")
def lender(tmp_path_factory: Any) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    n = 1600
    X = pd.DataFrame(
        {
            "late": rng.integers(0, 6, n),
            "owns": rng.integers(0, 2, n),
            "debt": rng.lognormal(size=n).round(2),
            "income": rng.lognormal(3, 0.5, n).round(1),
            "loans": rng.integers(0, 9, n),
        }
    )
    X.loc[::11, "debt"] = np.nan
    risk = X["late"] - 2 * X["owns"] + X["debt"].fillna(1) - X["income"] / 20 + 0.2 * X["loans"] * X["late"]
    bad = (risk + rng.normal(size=n) > 2).astype(int)
    model = XGBClassifier(n_estimators=30, max_depth=3, n_jobs=1).fit(X, bad)
    scores = model.predict_proba(X)[:, 1].astype(float)
    explainer = gig.Explainer(model, gig.references.approved(X, scores, 0.4, higher_is_better=False))
    folder = tmp_path_factory.mktemp("settled")
    explainer.save(folder / "x.gig")
    new = X[scores > 0.4].head(30)
    new.assign(id=range(30)).to_parquet(folder / "new.parquet")
    return {"explainer": explainer, "folder": folder, "rows": new}


def test_credits_are_those_of_settle_with_what_they_rest_on(lender: dict[str, Any], tmp_path: Path) -> None:
    explainer, source = lender["explainer"], lender["folder"] / "new.parquet"
    done = gig.batch.run(
        explainer,
        source,
        tmp_path / "c.parquet",
        id_cols=["id"],
        columns=list(lender["rows"]),
        settle=0.99,
        batch_rows=7,
    )  # batches do not change anything
    found = gig.settle(explainer, lender["rows"])
    table = pd.read_parquet(tmp_path / "c.parquet")
    assert table.columns[-2:].tolist() == ["references", "confidence"]
    assert table["references"].tolist() == found.references.tolist()
    assert table["confidence"].tolist() == found.confidence.tolist()
    assert (table["references"] < found.of).any()
    credits = table[[f"credit_{name}" for name in lender["rows"]]].to_numpy()
    np.testing.assert_allclose(credits, found.explanation.values, atol=1e-12)
    assert done.accuracy.out_of_tolerance == 0  # estimates were asked for
    assert done.accuracy.largest_error == pytest.approx(found.explanation.error.max())
    loaded = Explanation.load(tmp_path / "c.parquet")
    np.testing.assert_array_equal(loaded.values, credits)
    again = gig.batch.run(
        explainer, source, tmp_path / "c.parquet", id_cols=["id"], columns=list(lender["rows"]), settle=0.99,
        batch_rows=7, skip_if_done=True,
    )  # fmt: skip
    assert again.skipped
    other = gig.batch.run(
        explainer, source, tmp_path / "c.parquet", id_cols=["id"], columns=list(lender["rows"]), batch_rows=7,
        skip_if_done=True,
    )  # fmt: skip
    assert not other.skipped  # another question


def test_reasons_of_the_command_line(lender: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    folder = lender["folder"]
    columns = ",".join(lender["rows"])
    line = f"gigrad reasons x.gig new.parquet --id id --columns {columns} -q --settle 0.99 -o r.parquet"
    done = called(line, folder, monkeypatch)
    assert done.exit_code == 0, done.stderr
    table = pd.read_parquet(folder / "r.parquet")
    found = gig.settle(lender["explainer"], lender["rows"])
    used = table.groupby("id")["references"].first()
    assert used.tolist() == found.references[used.index].tolist()
    first = table.groupby("id")["feature"].agg(set)
    for row, names in first.items():
        top = np.argsort(-found.explanation.values[row])[: len(names)]
        assert names == {found.explanation.feature_names[j] for j in top}
    done = called(f"{line} --audit a.jsonl", folder, monkeypatch)
    assert done.exit_code != 0
    assert "A ledger must be computed from all references" in done.stderr
    done = called("gigrad explain x.gig new.parquet --settle 2 -o e.parquet", folder, monkeypatch)
    assert "confidence must lie between 0 and 1; got 2" in done.stderr


def test_needs_a_direction(lender: dict[str, Any], tmp_path: Path) -> None:
    plain = gig.Explainer(lender["explainer"].scorer, lender["rows"])
    with pytest.raises(InputError, match="higher_is_better must be given"):
        gig.batch.run(plain, lender["folder"] / "new.parquet", tmp_path / "c.csv", settle=0.9, id_cols=["id"])
