"""Runs that are killed, starved or disturbed: they go on, and end as if nothing had happened; memory is bounded."""

from __future__ import annotations

import multiprocessing
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from disk_tables import NAMES, graph, small_explainer, table, write
from processes import child, peak

import gigrad as gig
from gigrad import batch


@pytest.fixture(scope="module")
def explainer() -> gig.Explainer:
    return small_explainer()


@pytest.fixture(scope="module")
def forkserver() -> Any:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["processes"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(__file__).parents[1] / "helpers"))
        first = context.Process(target=sum, args=([],))
        first.start()
        first.join()
    return context


def start(context: Any, folder: Path, **options: Any) -> Any:
    ready = context.Event()
    process = context.Process(target=child, args=(str(folder), ready, options))
    process.start()
    ready.wait(60)
    return process


@pytest.fixture
def job(explainer: gig.Explainer, tmp_path: Path) -> dict[str, Any]:
    """A run that takes a moment, with bad rows and broken lines in it, and its options."""
    explainer.save(tmp_path / "x.gig")
    lines = write(tmp_path / "x.csv", table(1200).drop_columns(["note"])).read_text().splitlines()
    lines[500], lines[900] = "broken", lines[900].replace(",", ",inf,", 1)
    (tmp_path / "x.csv").write_text("\n".join(lines) + "\n")
    return {"id_cols": ["id"], "on_error": "null", "batch_rows": 100}


def test_killed_twenty_times_at_random_it_ends_as_if_nothing_had_happened(
    forkserver: Any, job: dict[str, Any], tmp_path: Path
) -> None:
    whole = tmp_path / "whole.parquet"
    began = time.perf_counter()
    process = start(forkserver, tmp_path, sink=str(whole), **job)
    process.join(120)
    length = time.perf_counter() - began
    assert process.exitcode == 0
    expected = whole.read_bytes()
    rejected = Path(f"{whole}.rejects.csv").read_bytes()
    rng = np.random.default_rng(0)
    kills = attempts = resumed = 0
    while kills < 20 and attempts < 200:
        out = tmp_path / f"out{attempts}.parquet"
        attempts += 1
        while True:
            process = start(forkserver, tmp_path, sink=str(out), **job)
            process.join(float(rng.uniform(0, length * 0.5)))
            if process.exitcode is not None:
                break
            process.kill()
            process.join(60)
            kills += 1
            assert not out.exists() or out.read_bytes() == expected, "a half-written result looked finished"
            resumed += (tmp_path / f"{out.name}.unfinished").exists()
        assert process.exitcode == 0
        assert out.read_bytes() == expected
        assert Path(f"{out}.rejects.csv").read_bytes() == rejected
        assert not (tmp_path / f"{out.name}.unfinished").exists()
    assert kills >= 20
    assert resumed > 0


@pytest.mark.parametrize("sink", ["out.parquet", "out"])
def test_killed_at_any_durable_step_it_goes_on(sink: str, forkserver: Any, job: dict[str, Any], tmp_path: Path) -> None:
    job["batch_rows"] = 400
    out, old = tmp_path / sink, tmp_path / f"old-{sink}"
    process = start(forkserver, tmp_path, sink=str(old), **job)
    process.join(60)
    before = content(old)
    alive = False
    step = 1
    while not alive:
        process = start(forkserver, tmp_path, sink=str(out), die=step, **job)
        process.join(60)
        alive = process.exitcode == 0
        assert alive or process.exitcode == -signal.SIGKILL
        assert not out.exists() or content(out) == before
        # One more step survived each time: a run that has died at every single one must still end.
        step += 1
    assert step > 5
    assert content(out) == before


def content(path: Path) -> dict[str, bytes]:
    if path.is_file():
        return {"": path.read_bytes()}
    return {p.name: p.read_bytes() for p in path.iterdir() if not p.name.startswith(("_", "."))}


def test_a_changed_input_model_or_setting_is_noticed(forkserver: Any, job: dict[str, Any], tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    process = start(forkserver, tmp_path, sink=str(out), die=20, **job)
    process.join(60)
    assert process.exitcode == -signal.SIGKILL
    explainer = gig.Explainer.load(tmp_path / "x.gig", n_threads=1)
    with pytest.raises(gig.UnfinishedRunError, match="begun with another on_error"):
        batch.run(explainer, tmp_path / "x.csv", out, **{**job, "on_error": "skip"})
    other = gig.Explainer(graph(), table(21, seed=5).select(list(NAMES)), n_threads=1)
    with pytest.raises(gig.UnfinishedRunError, match="begun with another reference"):
        batch.run(other, tmp_path / "x.csv", out, **job)
    with open(tmp_path / "x.csv", "a") as file:
        file.write((tmp_path / "x.csv").read_text().splitlines()[-1] + "\n")
    with pytest.raises(gig.UnfinishedRunError, match=r"begun with another data.*--restart"):
        batch.run(explainer, tmp_path / "x.csv", out, **job)
    assert not out.exists()
    summary = batch.run(explainer, tmp_path / "x.csv", out, restart=True, **job)
    assert (summary.rows, summary.resumed) == (1201, 0)


def test_a_damaged_part_is_done_again(forkserver: Any, job: dict[str, Any], tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    explainer = gig.Explainer.load(tmp_path / "x.gig", n_threads=1)
    batch.run(explainer, tmp_path / "x.csv", tmp_path / "whole.parquet", **job)
    start(forkserver, tmp_path, sink=str(out), die=40, **job).join(60)
    parts = sorted((tmp_path / "out.parquet.unfinished").glob("part-*"))
    assert len(parts) > 3
    data = bytearray(parts[2].read_bytes())
    data[len(data) // 2] ^= 1
    parts[2].write_bytes(data)
    assert batch.run(explainer, tmp_path / "x.csv", out, **job).resumed == 200
    assert out.read_bytes() == (tmp_path / "whole.parquet").read_bytes()
    folder = tmp_path / "other.parquet.unfinished"
    folder.mkdir()
    (folder / "thesis.docx").write_text("years of work")
    with pytest.raises(gig.OutputError, match="holds other files"):
        batch.run(explainer, tmp_path / "x.csv", tmp_path / "other.parquet", restart=True, **job)
    assert (folder / "thesis.docx").exists()


def test_two_runs_to_one_target_do_not_mix(forkserver: Any, job: dict[str, Any], tmp_path: Path) -> None:
    fcntl = pytest.importorskip("fcntl", reason="Windows has other file locks than the one that this test holds")
    out = tmp_path / "out.parquet"
    start(forkserver, tmp_path, sink=str(out), die=20, **job).join(60)
    explainer = gig.Explainer.load(tmp_path / "x.gig", n_threads=1)
    with open(tmp_path / "out.parquet.unfinished" / "_lock") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        before = content(tmp_path / "out.parquet.unfinished")
        for restart in (False, True):
            with pytest.raises(gig.OutputError, match="Another run is writing"):
                batch.run(explainer, tmp_path / "x.csv", out, restart=restart, **job)
        assert before
        assert content(tmp_path / "out.parquet.unfinished") == before, "what another run is doing was removed"


def test_a_run_that_did_nothing_stands_in_nobodys_way(job: dict[str, Any], tmp_path: Path) -> None:
    """A folder whose second file cannot be read with the first fails before its first part."""
    (tmp_path / "in").mkdir()
    pq.write_table(table(5), tmp_path / "in" / "a.parquet")
    pq.write_table(table(5).set_column(0, "years", [["long"] * 5]), tmp_path / "in" / "b.parquet")
    explainer, out = gig.Explainer.load(tmp_path / "x.gig", n_threads=1), tmp_path / "out.csv"
    with pytest.raises(gig.InputError, match=r"columns of one type; .*b\.parquet differs"):
        batch.run(explainer, tmp_path / "in", out, on_error="skip")
    assert not (tmp_path / "out.csv.unfinished").exists()
    assert not list(tmp_path.glob("out.csv*"))
    assert batch.run(explainer, tmp_path / "in" / "a.parquet", out).written == 5


def test_where_a_table_does_not_fit_its_record_is_not_replaced_either(
    forkserver: Any, job: dict[str, Any], tmp_path: Path
) -> None:
    out, record = tmp_path / "out.csv", tmp_path / "out.csv.provenance.json"
    out.write_text("old")
    record.write_text("old")
    start(forkserver, tmp_path, sink=str(out), limit=40_000, **job).join(60)
    assert "larger than this system allows" in (tmp_path / "error.txt").read_text()
    assert (out.read_text(), record.read_text()) == ("old", "old")


@pytest.mark.parametrize("limit", [3_000, 40_000])
def test_a_full_disk_leaves_the_old_output(limit: int, forkserver: Any, job: dict[str, Any], tmp_path: Path) -> None:
    """A limit on the size of files stands for the disk: a part does not fit, or only the whole does not."""
    out = tmp_path / "out.parquet"
    out.write_text("old")
    process = start(forkserver, tmp_path, sink=str(out), limit=limit, **job)
    process.join(60)
    assert process.exitcode == 0
    assert "OutputError: " in (tmp_path / "error.txt").read_text()
    assert "larger than this system allows" in (tmp_path / "error.txt").read_text()
    assert out.read_text() == "old"
    start(forkserver, tmp_path, sink=str(out), **job).join(60)
    assert pq.read_table(out).num_rows == 1198


# ------------------------------------------------------------ bounded


def test_memory_does_not_grow_with_the_table(forkserver: Any, tmp_path: Path) -> None:
    """100,000 rows more, 40 MB of input and 45 MB of output, need less than half of that in memory."""
    used = []
    for rows in (40_000, 140_000):
        queue = forkserver.Queue()
        process = forkserver.Process(target=peak, args=(str(tmp_path), rows, queue))
        process.start()
        used.append(queue.get(timeout=120))
        process.join(60)
    assert used[1] - used[0] < 40, used
