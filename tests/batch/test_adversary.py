"""What a careless hand, a full disk or somebody else's files can do to a run: nothing is lost, and nothing is claimed
that is not there."""

from __future__ import annotations

import json
import os
import shutil
import stat
from pathlib import Path
from typing import Any

import pytest
from disk_tables import small_explainer, table, write

import gigrad as gig
from gigrad import batch


@pytest.fixture(scope="module")
def explainer() -> gig.Explainer:
    return small_explainer()


def run(explainer: gig.Explainer, source: Path, sink: Path, **more: Any) -> gig.batch.Summary:
    return batch.run(explainer, source, sink, id_cols=["id"], batch_rows=20, **more)


def test_a_folder_that_is_replaced_loses_nothing_but_the_old_result(explainer: gig.Explainer, tmp_path: Path) -> None:
    """It was replaced as a whole: with the input that lay in it, and whatever else somebody had put there."""
    first = write(tmp_path / "x.parquet", table(50))
    out = tmp_path / "out"
    run(explainer, first, out)
    run(explainer, first, out)  # an earlier result may be replaced
    inside = Path(shutil.copy(first, out / "part-july.parquet"))
    with pytest.raises(gig.OutputError, match="is a folder that holds the data"):
        run(explainer, inside, out)
    assert inside.exists()
    (out / "notes.txt").write_text("mine")
    with pytest.raises(gig.OutputError, match=r"other files in it \(notes.txt\)"):
        run(explainer, first, out)
    assert (out / "notes.txt").read_text() == "mine"


def test_a_link_to_a_folder_stays_one(explainer: gig.Explainer, tmp_path: Path) -> None:
    source = write(tmp_path / "x.parquet", table(50))
    run(explainer, source, tmp_path / "november")
    (tmp_path / "latest").symlink_to("november")
    for _ in range(2):
        run(explainer, source, tmp_path / "latest")
    assert (tmp_path / "latest").is_symlink()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["latest", "november", "x.parquet"]


@pytest.mark.parametrize("name", ["out.csv", "out.parquet", "out.arrow", "out"])
def test_half_of_a_result_is_not_called_done(name: str, explainer: gig.Explainer, tmp_path: Path) -> None:
    source, out = write(tmp_path / "x.parquet", table(50)), tmp_path / name
    run(explainer, source, out, on_error="skip")
    assert run(explainer, source, out, on_error="skip", skip_if_done=True).skipped
    victim = out / "part-000001.parquet" if out.is_dir() else out
    whole = victim.read_bytes()
    for cut in (len(whole) // 2, len(whole) - 3, 0):
        victim.write_bytes(whole[:cut])
        assert not run(explainer, source, out, on_error="skip", skip_if_done=True).skipped
        assert victim.read_bytes() == whole


def test_half_of_a_ledger_is_not_called_whole(tmp_path: Path) -> None:
    from gigrad._reasons.ledger import is_whole

    explainer = small_explainer()
    found = gig.reasons(
        explainer(table(20).select(list(explainer.reference.names))), higher_is_better=True, permitted=["age"]
    )
    path = tmp_path / "records.jsonl"
    found.write_audit(path)
    assert is_whole(path)
    whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)
    for damaged in (b"", b"".join(lines[:-1]), b"".join(lines[:3] + lines[4:]), whole[:-5], whole + lines[-1]):
        path.write_bytes(damaged)
        assert not is_whole(path)
    path.unlink()
    assert not is_whole(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes with names")
def test_pipes_and_devices_are_neither_replaced_nor_waited_for(explainer: gig.Explainer, tmp_path: Path) -> None:
    """As root, `--summary /dev/null` made a plain file of it."""
    source = write(tmp_path / "x.parquet", table(50))
    os.mkfifo(tmp_path / "pipe.parquet")
    with pytest.raises(gig.OutputError, match="a device or a pipe"):
        run(explainer, source, tmp_path / "pipe.parquet")
    with pytest.raises(gig.OutputError, match="a device or a pipe"):
        run(explainer, source, tmp_path / "out.parquet", summary=tmp_path / "pipe.parquet")
    with pytest.raises(gig.InputError, match="a device or a pipe"):
        run(explainer, tmp_path / "pipe.parquet", tmp_path / "out.parquet")
    assert stat.S_ISFIFO(os.lstat(tmp_path / "pipe.parquet").st_mode)
    os.mkfifo(tmp_path / ".out.parquet.gigrad-0123456789abcdef.tmp")
    run(explainer, source, tmp_path / "out.parquet")  # which does not wait for who writes to it


def test_names_that_cannot_be_are_said_to_be_none(explainer: gig.Explainer, tmp_path: Path) -> None:
    source = write(tmp_path / "x.parquet", table(50))
    (tmp_path / "plain").write_text("mine")
    with pytest.raises(gig.OutputError, match="must be a folder, since its name has no ending; it is a file"):
        run(explainer, source, tmp_path / "plain")
    with pytest.raises(gig.OutputError, match="its name is too long"):
        run(explainer, source, tmp_path / f"{'x' * 300}.parquet")
    with pytest.raises(gig.InputError, match=r"(?i)name too long|must be a file or a folder"):  # Python 3.14
        run(explainer, tmp_path / f"{'x' * 300}.parquet", tmp_path / "out.parquet")


def test_a_summary_that_cannot_be_written_does_not_hide_the_failure(explainer: gig.Explainer, tmp_path: Path) -> None:
    """An interrupt was turned into "cannot be written", and so another exit code."""
    source = write(tmp_path / "x.parquet", table(50))
    (tmp_path / "logs").mkdir()

    def stop(what: str, done: int, total: int) -> None:
        if (tmp_path / "logs").exists():
            assert json.loads((tmp_path / "logs" / "run.json").read_text())["status"] == "running"
            shutil.rmtree(tmp_path / "logs")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(explainer, source, tmp_path / "out.parquet", summary=tmp_path / "logs" / "run.json", progress=stop)
