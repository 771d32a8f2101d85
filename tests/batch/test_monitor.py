"""Drift between two runs: held to published intervals, to what chance does, and to rows that were changed by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from office import NAMES, called, furnish

import gigrad as gig
from gigrad.batch.drift import BINS, _psi_of, _shift, index


@pytest.fixture(scope="module")
def office(tmp_path_factory: Any) -> Path:
    return furnish(tmp_path_factory.mktemp("office"))


def test_intervals_of_differences_are_newcombes() -> None:
    """Method 10 of Newcombe (1998), Statistics in Medicine 17, 873-890, Table II: 56/70 - 48/80, 9/10 - 3/10."""
    for (k, n, j, m), low, high in (((56, 70, 48, 80), 0.0524, 0.3339), ((9, 10, 3, 10), 0.1705, 0.8090)):
        found = _shift("x", k, n, j, m)
        assert (round(found.low, 4), round(found.high, 4)) == (low, high)


def test_the_index_is_what_it_is_called() -> None:
    one, other = np.array([30, 50, 20]), np.array([25, 25, 50])
    p, q = (one + 0.5) / 101.5, (other + 0.5) / 101.5
    by_hand = sum((a - b) * np.log(a / b) for a, b in zip(p, q, strict=True))
    assert index(one, other) == pytest.approx(by_hand, rel=1e-12)
    assert np.isfinite(index(np.array([0, 10]), np.array([10, 0])))


def test_chance_is_what_equal_populations_do_and_intervals_cover() -> None:
    rng = np.random.default_rng(0)
    beyond = covered = 0
    tenths = np.full(BINS, 0.1)
    moved = np.array([0.15, 0.13, 0.11, 0.1, 0.1, 0.1, 0.09, 0.08, 0.07, 0.07])
    truth = float(((moved - tenths) * np.log(moved / tenths)).sum())
    for _ in range(200):
        that = rng.random(1000)
        beyond += _psi_of("x", rng.random(800), that, rng).shifted
        place = rng.choice(BINS, 800, p=moved)
        found = _psi_of("x", (place + rng.random(800)) / BINS, that, rng)
        covered += found.low <= truth <= found.high
    assert 2 <= beyond <= 20, "5 % of 200"
    assert covered >= 180, "95 % of 200, less what a bootstrap misses"


def test_credits_that_stand_still_are_no_drift(office: Path) -> None:
    """Trees give many equal credits, and a column that nothing uses zeros alone."""
    frame = pd.read_parquet(office / "new.parquet")
    explainer = gig.Explainer.load(office / "ready.gig", n_threads=1)
    e = explainer(frame[NAMES])
    same = gig.monitor(e, e, higher_is_better=False)
    assert all(c.psi == 0.0 and not c.shifted for c in same.credits)
    assert all(r.difference == 0.0 and not r.shifted for r in same.reasons)
    shifted = frame[NAMES].assign(debt=frame["debt"] + 4.0)
    moved = gig.monitor(explainer(shifted), e, higher_is_better=False)
    assert moved.credits[0].feature == "debt"
    assert moved.credits[0].shifted
    assert moved.credits[0].low > 0
    assert moved.reasons[0].feature == "debt"
    assert moved.reasons[0].difference > 0
    assert "debt" in str(moved)
    with pytest.raises(gig.InputError, match="has none"):
        gig.monitor(e[:0], e)
    with pytest.raises(gig.InputError, match="A run must be an Explanation"):
        gig.monitor(3, e)


def test_two_runs_on_disk(office: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """June has May's applicants again, ten of them with other data; then some get other reasons by hand."""
    may = pd.read_parquet(office / "new.parquet")
    june = may.copy()
    june.loc[june.index[:10], "debt"] += 1.5
    june.to_parquet(tmp_path / "june.parquet", index=False)
    how = "--cutoff 0.5 --lower-is-better --id number --permitted age -q --all --reference past.parquet --top 2"
    for name, data in (("may", "new.parquet"), ("june", f"{tmp_path}/june.parquet")):
        line = f"gigrad reasons model.json {data} {how} -o {tmp_path}/{name}-r.parquet --audit {tmp_path}/{name}.jsonl"
        done = called(line, office, monkeypatch)
        assert done.exit_code == 0, done.stderr
        line = f"gigrad explain model.json {data} --reference past.csv --id number -q -o {tmp_path}/{name}-c.parquet"
        assert called(line, office, monkeypatch).exit_code == 0
    by_ledger = gig.monitor(tmp_path / "june.jsonl", tmp_path / "may.jsonl")
    assert by_ledger.changed is not None
    assert (by_ledger.changed.matched, by_ledger.changed.same_data, by_ledger.changed.changed) == (250, 240, 0)
    assert by_ledger.credits
    tables: dict[str, Any] = {"data": tmp_path / "june.parquet", "against_data": office / "new.parquet"}
    by_reasons = gig.monitor(tmp_path / "june-r.parquet", tmp_path / "may-r.parquet", **tables)
    both = set.intersection(*(set(pd.read_parquet(tmp_path / f"{n}-r.parquet")["number"]) for n in ("may", "june")))
    same = both - set(may["number"][:10])
    assert by_reasons.changed == gig.batch.drift.Changed(len(both), len(same), 0, ()), "who has no reason has no line"
    assert by_reasons.credits == ()
    # another model for three applicants whose data are the same
    told = pd.read_parquet(tmp_path / "june-r.parquet")
    for number in sorted(same)[50:60]:
        mine = told["number"] == number
        told.loc[mine, "feature"] = told.loc[mine, "feature"].to_numpy()[::-1]
    told.to_parquet(tmp_path / "june-s.parquet", index=False)
    again = gig.monitor(tmp_path / "june-s.parquet", tmp_path / "may-r.parquet", ids=["number"], **tables)
    assert again.changed is not None
    two = told.groupby("number")["feature"].nunique()
    assert again.changed.changed == sum(two[number] == 2 for number in sorted(same)[50:60]) > 0
    assert {example[0] for example in again.changed.examples} <= set(sorted(same)[50:60])
    line = f"gigrad monitor {tmp_path}/june-c.parquet --against {tmp_path}/may-c.parquet --lower-is-better -q"
    for name in ("d.json", "d.csv", "d.png", "d.svg"):
        done = called(f"{line} -o {tmp_path}/{name}", office, monkeypatch)
        assert done.exit_code == 0, done.stderr
        assert "credits of" in done.stdout
        assert (tmp_path / name).stat().st_mode & 0o077 == 0
    found = json.loads((tmp_path / "d.json").read_text())
    assert found["format"] == "gigrad.drift/1"
    assert {c["feature"] for c in found["credits"]} == set(NAMES)
    assert len(pd.read_csv(tmp_path / "d.csv")) == len(found["credits"]) + len(found["reasons"])
    assert (tmp_path / "d.png").read_bytes()[:4] == b"\x89PNG"
    for wrong, message in (
        (f"gigrad monitor {tmp_path}/june-c.parquet", "--against must be given"),
        (f"gigrad monitor past.parquet --against {tmp_path}/may-c.parquet", "must be a result of gigrad explain"),
        (f"{line} -o {tmp_path}/d.txt", "--out must end in"),
        (f"{line} --id nobody", "must have the column 'nobody'"),
    ):
        done = called(wrong, office, monkeypatch)
        assert (done.exit_code, message in done.stderr) == (3, True), done.stderr
