"""What a scheduler needs of a run: a summary to read, nothing done twice, loggers to listen to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from disk_tables import small_explainer, table, write

import gigrad as gig
from gigrad import batch


@pytest.fixture(scope="module")
def explainer() -> gig.Explainer:
    return small_explainer()


def test_a_summary_says_how_a_run_went(explainer: gig.Explainer, tmp_path: Path) -> None:
    path, out, told = write(tmp_path / "x.csv", table(50)), tmp_path / "out.csv", tmp_path / "run.json"
    seen = []

    def look(what: str, done: int, of: int) -> None:
        seen.append(json.loads(told.read_text())["status"])

    done = batch.run(explainer, path, out, id_cols=["id"], summary=told, progress=look)
    assert set(seen) == {"running"}
    said = json.loads(told.read_text())
    assert (said["format"], said["status"]) == ("gigrad.run/1", "done")
    assert (said["rows"], said["written"], said["rejected"], said["accuracy"]["out_of_tolerance"]) == (50, 50, 0, 0)
    assert said["fingerprints"]["model"] == explainer.provenance["model"]["fingerprint"]
    assert said["data"][0]["name"] == "x.csv"
    assert said["versions"]["gigrad"] == gig.__version__
    assert said["seconds"] > 0
    again = batch.run(explainer, path, out, id_cols=["id"], summary=told, skip_if_done=True)
    assert again.skipped
    assert (again.rows, again.written, again.run) == (done.rows, done.written, done.run)
    assert json.loads(told.read_text())["skipped"]
    assert not batch.run(explainer, path, out, id_cols=[], skip_if_done=True).skipped, "another question"
    with pytest.raises(gig.InputError):
        batch.run(explainer, tmp_path / "x.csv", out, summary=told, batch_rows=0)
    said = json.loads(told.read_text())
    assert (said["status"], said["error"]) == ("failed", "InputError")
    for reading in (path, out):
        with pytest.raises(gig.OutputError, match="would be changed"):
            batch.run(explainer, path, out, summary=reading)


@pytest.mark.parametrize("name", ["out.parquet", "out.arrow", "out"])
def test_done_is_done_in_every_format(name: str, explainer: gig.Explainer, tmp_path: Path) -> None:
    path, out = write(tmp_path / "x.parquet", table(50)), tmp_path / name
    options: dict[str, Any] = {"id_cols": ["id"], "on_error": "skip", "skip_if_done": True}
    assert not batch.run(explainer, path, out, **options).skipped
    assert batch.run(explainer, path, out, **options).skipped
    Path(f"{out}.rejects.csv").unlink()
    assert not batch.run(explainer, path, out, **options).skipped, "half of it is not done"
    write(path, table(50, seed=1))
    assert not batch.run(explainer, path, out, **options).skipped, "other data"


def test_loggers_are_one_documented_tree(
    explainer: gig.Explainer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    import logging

    from gigrad._common.log import NAMES as LOGGERS

    path = write(tmp_path / "x.parquet", table(50))
    with caplog.at_level("DEBUG", logger="gigrad"):
        batch.run(explainer, path, tmp_path / "out.parquet", id_cols=["id"], batch_rows=20)
    said = [(r.name, r.levelname) for r in caplog.records]
    assert said.count(("gigrad.batch", "DEBUG")) == 3
    assert said.count(("gigrad.batch", "INFO")) == 2
    assert all(r.name.removeprefix("gigrad.") in LOGGERS for r in caplog.records)
    assert not any(cell in r.getMessage() for r in caplog.records for cell in ("00007", "house")), "no cells in logs"
    page = (Path(__file__).parents[2] / "docs" / "jobs.md").read_text()
    assert all(f"gigrad.{name}" in page for name in LOGGERS)
    assert any(isinstance(h, logging.NullHandler) for h in logging.getLogger("gigrad").handlers)
