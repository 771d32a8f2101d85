"""The demo tells its story and leaves the files that it names."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pandas as pd
import pytest

import gigrad as gig
from gigrad import demo


def test_the_demo_adds_up_and_leaves_its_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    demo.main(tmp_path)
    told = capsys.readouterr().out
    assert max(len(line) for line in told.split("\n7  ")[0].splitlines()) <= 100

    chapter = told.split("\n3  ")[1].split("\n4  ")[0]
    shown = {line[:33].strip(): line[76:82] for line in chapter.splitlines() if re.search(r"\d\.\d\d", line[76:82])}
    credits = [float(v) for name, v in shown.items() if name not in ("sum", "the model's own prediction")]
    assert len(credits) == 11
    assert sum(credits) == pytest.approx(float(shown["sum"]), abs=0.06)  # eleven numbers, each rounded to 0.01
    assert shown["sum"] == shown["the model's own prediction"]

    letter = told.split("\n4  ")[1].split("\n5  ")[0]
    assert re.findall(r"\n +([1-4])\. ", letter) == ["1", "2", "3", "4"]
    refused = json.loads((tmp_path / "reasons.json").read_text(encoding="utf-8"))["applicants"]
    records = list(gig.read_ledger(tmp_path / "audit.jsonl"))
    assert len(refused) == len(records) > 50
    assert f"{len(records)} of {len(records)} are equal" in told
    table = pd.read_parquet(tmp_path / "reasons.parquet")
    assert set(table["row_id"]) == {a["row_id"] for a in refused}
    assert table["statement"].notna().all()
    assert gig.replay_reasons(records[0]).prediction > 0.7
    assert "<html" in (tmp_path / "report.html").read_text(encoding="utf-8")[:2000]
