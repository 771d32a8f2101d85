"""A folder as an office has it, and commands typed in it, for the tests of the command line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xgboost
from typer.testing import CliRunner

import gigrad as gig

NAMES = ["age", "income", "debt", "years"]


def furnish(folder: Path) -> Path:
    """A model, a table of past applicants and one of new ones, as CSV and Parquet, an explainer and some texts."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.integers(0, 20, (400, 4)) / 2.0, columns=NAMES)
    frame.loc[rng.random(400) < 0.1, "income"] = np.nan
    bad = frame["debt"] + rng.normal(size=400) > frame["age"]
    model = xgboost.XGBClassifier(n_estimators=8, max_depth=3, n_jobs=1).fit(frame, bad)
    model.save_model(folder / "model.json")
    ready = frame[:30].copy()
    frame.insert(0, "number", [f"A-{i:04d}" for i in range(400)])
    for name, part in (("past", frame[:150]), ("new", frame[150:])):
        part.to_parquet(folder / f"{name}.parquet", index=False)
        part.to_csv(folder / f"{name}.csv", index=False)
    pq.write_table(pa.table({"score": rng.random(50)}), folder / "scores.parquet")
    gig.Explainer(model, ready, n_threads=1).save(folder / "ready.gig")
    (folder / "book.toml").write_text('[debt]\ncode = "D1"\nstatement = "=too much debt"\n')
    return folder


def typed(line: str, folder: Path, **options: Any) -> subprocess.CompletedProcess[str]:
    """Type a command in a shell of its own."""
    command = [sys.executable, "-m", "gigrad", *line.split()[1:]]
    environment = {**os.environ, "COLUMNS": "100", "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, env=environment, check=False, timeout=300, **options
    )


def called(line: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The same in this process, which is quicker: exit code, stdout and stderr."""
    from gigrad.cli.app import app

    monkeypatch.chdir(folder)
    return CliRunner().invoke(app, line.split()[1:])
