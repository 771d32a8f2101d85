"""What a run promises: nothing of others is touched, nothing is left behind, nothing damaged or inaccurate passes."""

from __future__ import annotations

import json
import os
import shutil
import stat
import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from disk_tables import small_explainer, table, write
from pyarrow import csv
from unchecked import unchecked

import gigrad as gig
from gigrad import batch
from gigrad._io import durable
from gigrad.errors import AccuracyWarning, warn


@pytest.fixture(scope="module")
def explainer() -> gig.Explainer:
    return small_explainer()


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


# ------------------------------------------------------------ whole numbers that are no float64


@pytest.mark.parametrize("kind", [pa.int64(), pa.uint64(), pa.string()])
def test_a_whole_number_beyond_float64_rejects_its_row_alone(
    kind: Any, explainer: gig.Explainer, tmp_path: Path
) -> None:
    rows = table(60)
    ages = [int(a or 0) for a in rows["age"].to_pylist()]
    ages[7], ages[11], ages[20] = 2**53 + 1, 2**60, 2**63 - 1
    rows = rows.set_column(rows.column_names.index("age"), "age", [pa.array(ages).cast(kind)])
    path = write(tmp_path / "x.parquet", rows)
    with pytest.raises(
        gig.InputError, match=r"Row 7 cannot be explained: column 'age' holds 9007199254740993, .* 1 more"
    ):
        batch.run(explainer, path, tmp_path / "out.parquet", id_cols=["id"])
    done = batch.run(explainer, path, tmp_path / "out.parquet", id_cols=["id"], on_error="skip")
    assert (done.rows, done.rejected) == (60, 2), "2^60 is a float64, and stays"
    why = csv.read_csv(tmp_path / "out.parquet.rejects.csv").to_pydict()
    assert why["row"] == [7, 20]
    assert "beyond 2^53" in why["reason"][0]
    kept = pq.read_table(tmp_path / "out.parquet")
    plain = rows.set_column(rows.column_names.index("age"), "age", [pa.array([float(a) for a in ages])])
    expected = batch.explain_batch(explainer, plain.combine_chunks().to_batches()[0], id_cols=["id"])
    expected = pa.Table.from_batches([expected]).take([i for i in range(60) if i not in (7, 20)])
    assert kept.replace_schema_metadata(None).equals(expected)


# ------------------------------------------------------------ accuracy


def off_by(monkeypatch: pytest.MonkeyPatch, error: Any) -> None:
    """Let credits have errors as told by the income of the row: what a hard model would give, without its cost."""
    plain = gig.Explainer.__call__

    def call(self: Any, X: Any, **options: Any) -> Any:
        e = plain(self, X, **options)
        given = error(np.nan_to_num(X.matrix[:, 1]))
        if (given > 1e-3).any():
            warn(f"The tolerance was not reached on row {int(np.argmax(given))}.", AccuracyWarning)
        return replace(e, error=given)

    monkeypatch.setattr(gig.Explainer, "__call__", call)


def test_an_accuracy_contract(explainer: gig.Explainer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = table(300)
    income = np.zeros(300)
    income[[120, 250]] = 3.0, 2.0
    rows = rows.set_column(rows.column_names.index("income"), "income", [pa.array(income)])
    path = write(tmp_path / "x.parquet", rows)
    off_by(monkeypatch, lambda x: np.where(x > 0, x / 10, 1e-15))
    out = tmp_path / "out.parquet"
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        done = batch.run(explainer, path, out, batch_rows=50, id_cols=["id"])
    told = [str(w.message) for w in said if w.category is gig.AccuracyWarning]
    assert len(told) == 1, told
    assert "2 of 300 rows are out of tolerance; the largest error of a credit is 0.3, in row 120" in told[0]
    found = done.accuracy
    assert (found.out_of_tolerance, found.largest_error, found.worst_row) == (2, 0.3, 120)
    assert json.loads(pq.read_schema(out).metadata[b"gigrad"])["totals"]["accuracy"]["out_of_tolerance"] == 2
    assert pq.read_table(out)["error"].to_pylist()[120] == 0.3
    other = tmp_path / "other.parquet"
    with pytest.raises(gig.AccuracyError, match=r"1 of 300 rows .* more than max_error 0\.25; .* 0\.3, in row 120"):
        batch.run(explainer, path, other, batch_rows=50, id_cols=["id"], max_error=0.25)
    assert not other.exists()
    with pytest.warns(gig.AccuracyWarning, match="out of tolerance"):
        again = batch.run(explainer, path, other, batch_rows=50, id_cols=["id"], max_error=0.35)
    assert again.resumed == 300, "what was computed is kept"
    assert pq.read_table(other).equals(pq.read_table(out))
    done = batch.run(explainer, path, tmp_path / "skip.parquet", on_error="skip", id_cols=["id"], max_error=1e-9)
    assert (done.rejected, done.accuracy.out_of_tolerance) == (2, 0)
    reasons = csv.read_csv(tmp_path / "skip.parquet.rejects.csv").to_pydict()
    assert reasons["row"] == [120, 250]
    assert reasons["reason"][0] == "its credits may be off by 0.3, and max_error is 1e-09"
    for wrong in (-1.0, float("nan"), "x"):
        with pytest.raises(gig.InputError, match="max_error must be a number that is not negative"):
            batch.run(explainer, path, tmp_path / "x2.parquet", max_error=unchecked(wrong))


# ------------------------------------------------------------ nothing left, nothing taken


def test_the_next_run_sweeps_what_a_killed_one_left(explainer: gig.Explainer, tmp_path: Path) -> None:
    path, out = write(tmp_path / "x.parquet", table(20)), tmp_path / "out.parquet"
    pid = os.fork()
    if pid == 0:  # killed in the middle of writing its results
        with durable.replacing(out) as aside:
            aside.write_text("half of it")
            os.kill(os.getpid(), 9)
    os.waitpid(pid, 0)
    left = [p.name for p in tmp_path.iterdir() if p.name.startswith(".")]
    assert len(left) == 1
    mine = [".out.parquet.tmp", ".out.parquet.123.tmp", ".out.parquet.gigrad-notes.tmp", ".x.parquet." + left[0][13:]]
    for name in mine:
        (tmp_path / name).write_text("of somebody else")
    with durable.replacing(out) as aside:  # one that is being written is let alone
        aside.write_text("mine")
        durable.sweep_leftovers(out)
        assert aside.exists()
    batch.run(explainer, path, out)
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(["out.parquet", "x.parquet", *mine])


def test_a_workspace_of_somebody_else_is_let_alone(explainer: gig.Explainer, tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", table(20))
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "part-000001.parquet").write_text("years of work")
    (tmp_path / "link.parquet.unfinished").symlink_to(theirs)
    shutil.copytree(theirs, tmp_path / "own.parquet.unfinished")
    for name, message in (("link", "it is a symbolic link"), ("own", "holds other files")):
        for restart in (False, True):
            with pytest.raises(gig.OutputError, match=message):
                batch.run(explainer, path, tmp_path / f"{name}.parquet", restart=restart)
    assert (theirs / "part-000001.parquet").read_text() == "years of work"
    assert (tmp_path / "own.parquet.unfinished" / "part-000001.parquet").read_text() == "years of work"
    assert sorted(p.name for p in theirs.iterdir()) == ["part-000001.parquet"]
    victim = tmp_path / "victim.txt"
    victim.write_text("years of work")
    for name in ("_lock", "_manifest.jsonl", "_gigrad-workspace", "part-000000.arrow"):
        folder = tmp_path / "in.parquet.unfinished"
        folder.mkdir()
        (folder / "_gigrad-workspace").touch()
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(victim)
        with pytest.raises(gig.OutputError):
            batch.run(explainer, path, tmp_path / "in.parquet", restart=True)
        assert victim.read_text() == "years of work"
        shutil.rmtree(folder)


@pytest.mark.parametrize("name", ["out.parquet", "out.csv", "out.arrow", "out"])
def test_results_are_for_their_owner_alone(name: str, explainer: gig.Explainer, tmp_path: Path) -> None:
    rows = table(20)
    path = write(tmp_path / "x.parquet", rows.set_column(0, "years", [[float("inf"), *[1.0] * 19]]))
    out, umask = tmp_path / name, os.umask(0o022)

    def files() -> list[Path]:
        beside = [p for p in tmp_path.iterdir() if p.name.startswith("out") and p.is_file()]
        return beside + ([p for p in out.iterdir() if p.is_file()] if out.is_dir() else [])

    try:
        batch.run(explainer, path, out, on_error="skip")
        assert {mode_of(p) for p in files()} == {0o600}
        assert not out.is_dir() or mode_of(out) == 0o700
        for p in files():
            p.chmod(0o640)
        batch.run(explainer, path, out, on_error="skip")
        assert {mode_of(p) for p in files()} == {0o640}, "a file that is replaced keeps its mode"
        shutil.rmtree(out) if out.is_dir() else out.unlink()
        batch.run(explainer, path, out, on_error="skip", mode=0o644)
        assert {mode_of(p) for p in ([out] if out.is_file() else out.iterdir())} == {0o644}
        os.umask(0o277)
        shutil.rmtree(out) if out.is_dir() else out.unlink()
        if os.geteuid() == 0:  # who alone can then read what was written
            batch.run(explainer, path, out, on_error="skip")
            assert {mode_of(p) for p in ([out] if out.is_file() else out.iterdir())} == {0o400}
    finally:
        os.umask(umask)


# ------------------------------------------------------------ inputs that change, ids, processors, formulas


@pytest.mark.parametrize("broken", [False, True])
def test_after_a_change_in_the_input_the_same_run_begins_anew(
    broken: bool, explainer: gig.Explainer, tmp_path: Path
) -> None:
    path, out = write(tmp_path / "x.parquet", table(200)), tmp_path / "out.parquet"
    later = write(tmp_path / "later.parquet", table(200, seed=9))

    def meddle(what: str, done: int, of: int) -> None:
        if what == "explaining" and done == 100:
            if broken:
                path.write_bytes(b"no table any more" * 1000)
            else:
                time.sleep(0.01)
                shutil.copy(later, path)

    with pytest.raises(gig.InputError, match="was changed while it was being explained; run again"):
        batch.run(explainer, path, out, batch_rows=50, progress=meddle, on_error="skip")
    assert not (tmp_path / "out.parquet.unfinished").exists()
    shutil.copy(later, path)
    assert batch.run(explainer, path, out, batch_rows=50, on_error="skip").written == 200


def test_ids_that_are_missing_or_repeated_are_noticed(explainer: gig.Explainer, tmp_path: Path) -> None:
    rows = table(60)
    ids: list[Any] = rows["id"].to_pylist()
    ids[10], ids[40], ids[55] = None, ids[3], ids[3]
    rows = rows.set_column(rows.column_names.index("id"), "id", [ids])
    path, out = write(tmp_path / "x.parquet", rows), tmp_path / "out.parquet"
    said = r"1 rows have none and 2 repeat an earlier one \(row 10 has none, row 40 has that of row 3\)"
    for on_error in ("fail", "skip"):
        with pytest.warns(gig.IdWarning, match=said):
            done = batch.run(explainer, path, out, id_cols=["id"], on_error=on_error, batch_rows=7)
        assert done.ids is not None
        assert (done.ids.missing, done.ids.repeated) == (1, 2)
        with pytest.raises(gig.InputError, match=said):
            batch.run(explainer, path, tmp_path / "x.arrow", id_cols=["id"], ids="fail", on_error=on_error)
    assert not (tmp_path / "x.arrow").exists()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        batch.run(explainer, path, out, id_cols=["id"], ids="allow")
        batch.run(explainer, path, out, id_cols=["id", "years", "income", "debt", "note"], ids="allow")
    with pytest.raises(gig.InputError, match='ids must be "warn", "fail" or "allow"; got'):
        batch.run(explainer, path, out, ids=unchecked("no"))


def test_a_run_begun_by_another_processor_is_noticed(
    explainer: gig.Explainer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, out = write(tmp_path / "x.parquet", table(100)), tmp_path / "out.parquet"

    def stop(what: str, done: int, of: int) -> None:
        if what == "explaining" and done == 50:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        batch.run(explainer, path, out, batch_rows=25, progress=stop)
    used = gig.config.simd
    others = [name for name in gig.config.simd_choices if name != used]
    gig.config.simd = others[-1]
    try:
        with pytest.raises(gig.UnfinishedRunError, match=r"begun with another kind of processor .*SIMD level"):
            batch.run(explainer, path, out, batch_rows=25)
    finally:
        gig.config.simd = used
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    with pytest.raises(gig.UnfinishedRunError, match="begun with another kind of processor"):
        batch.run(explainer, path, out, batch_rows=25)
    monkeypatch.undo()
    assert batch.run(explainer, path, out, batch_rows=25).resumed == 50


@pytest.mark.parametrize("lead", ["", " ", "   ", "\n", "\t", "\r\n", "\u00a0", "\u3000", "\u200b", "\ufeff"])
@pytest.mark.parametrize("sign", ["=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20"])
def test_formulas_behind_spaces_and_in_full_width_are_harmless(lead: str, sign: str) -> None:
    from gigrad._output import spreadsheet
    from gigrad.batch.targets import harmless

    text = f"{lead}{sign}cmd|' /C calc'!A0"
    assert spreadsheet.harmless(text) == f"'{text}"
    assert harmless(pa.array([text, "plain", " plain", "-1.5", " -3"])).to_pylist() == [
        f"'{text}", "plain", " plain", "-1.5", " -3"
    ]  # fmt: skip
    assert spreadsheet.harmless("\nplain") == "'\nplain"
    assert spreadsheet.harmless("-1.5") == "-1.5"
