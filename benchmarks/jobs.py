"""Campaigns that hold jobs to their promises: real processes, real signals, real Spark.

    python jobs.py kills [count]     SIGKILL at random moments, over all formats, commands and engines
    python jobs.py files [count]     input files, in time linear in their number
    python jobs.py ledger [count]    records of a ledger, verified in bulk, and flipped bytes noticed

Each prints what it found and adds it to results/jobs.json; a promise that is broken ends it with an error.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import xgboost

import gigrad as gig

NAMES = ["age", "income", "debt", "years", "accounts", "late"]
FORMATS = ("parquet", "csv", "arrow", "folder")
RESULTS = Path(__file__).parent / "results" / "jobs.json"


def made(rows: int, seed: int = 0) -> Any:
    """Applicants with counts, flags and missing values."""
    rng = np.random.default_rng(seed)
    columns: dict[str, Any] = {"number": np.arange(rows)}
    for j, name in enumerate(NAMES):
        values = rng.integers(0, 12, rows).astype(float) if j % 2 else rng.normal(size=rows)
        columns[name] = pa.array(values, mask=rng.random(rows) < 0.05)
    return pa.table(columns)


def furnish(folder: Path, rows: int) -> None:
    """An explainer and a table."""
    past = made(400, seed=1).to_pandas()
    bad = past["debt"].fillna(0) + past["late"].fillna(3) > past["age"].fillna(0) + 5
    model = xgboost.XGBClassifier(n_estimators=20, max_depth=4, n_jobs=1).fit(past[NAMES], bad)
    approved = gig.references.approved(
        past[NAMES], gig.import_model(model).predict(past[NAMES]), 0.5, higher_is_better=False
    )
    gig.Explainer(model, gig.references.sample(approved, 20)).save(folder / "e.gig")
    (folder / "in").mkdir()
    pq.write_table(made(rows), folder / "in" / "a.parquet")


def command(folder: Path, what: str, out: Path, *more: str) -> list[str]:
    """The arguments of `gigrad`, as typed."""
    line = [
        what,
        str(folder / "e.gig"),
        str(folder / "in"),
        "--id",
        "number",
        "--on-error",
        "skip",
        "-q",
        "-o",
        str(out),
    ]
    if what == "reasons":
        line += ["--lower-is-better", "--permitted", "age", "--audit", str(out.parent / "records.jsonl.gz")]
    return [*line, *more]


def work(line: list[str], ready: Any) -> None:
    """`gigrad`, in a process of its own that has everything loaded."""
    from gigrad.cli.app import app

    os.setsid()
    ready.set()
    app(line, standalone_mode=False)


def content(out: Path) -> dict[str, bytes]:
    """Everything that a run has written, by name; a folder's record of its parts is not a part of the result."""
    return {
        str(p.relative_to(out.parent)): p.read_bytes()
        for p in sorted(out.parent.rglob("*")) if p.is_file() and p.name != "_manifest.jsonl"
    }  # fmt: skip


def kills(count: int) -> dict[str, Any]:
    """Kill runs at random moments until `count` were hit; what they end with is what an undisturbed run ends with."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(
        ["__main__", "gigrad.cli.commands", "gigrad.batch.run", "pyarrow.parquet", "pyarrow.csv"]
    )
    rng = np.random.default_rng(0)
    found: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as root:
        folder = Path(root)
        furnish(folder, 3000)
        kinds = [(what, form) for what in ("explain", "reasons") for form in FORMATS]
        calm: dict[tuple[str, str], tuple[dict[str, bytes], float]] = {}
        turn = 0
        while sum(found.values()) < count - count // 10:
            what, form = kind = kinds[turn % len(kinds)]
            name = "out" if form == "folder" else f"out.{form}"
            place = folder / f"{what}-{turn}"
            place.mkdir()
            line = command(folder, what, place / name, "--batch-rows", "250")
            if kind not in calm:
                length = run_once(context, line, None)
                calm[kind] = content(place / name), float(length or 0.0)
                shutil.rmtree(place)
                place.mkdir()
            expected, length = calm[kind]
            while run_once(context, line, rng.uniform(0, length)) is None:
                found[f"{what} {form}"] = found.get(f"{what} {form}", 0) + 1
                target = place / name
                assert not target.is_file() or target.read_bytes() == expected[name], "half of a result looked whole"
            assert content(place / name) == expected, (what, form, "another result, or something left behind")
            print(f"{sum(found.values())} kills; {what} to {form}: identical, nothing left", flush=True)
            shutil.rmtree(place)
            turn += 1
        by_spark(folder, count - sum(found.values()), rng, found)
    return {"kills": sum(found.values()), "by kind": found, "identical": True, "left behind": 0}


def run_once(context: Any, line: list[str], seconds: float | None) -> float | None:
    """How long a run took that ended by itself, well; None where it was killed after some seconds."""
    ready = context.Event()
    process = context.Process(target=work, args=(line, ready))
    process.start()
    ready.wait(120)
    began = time.monotonic()
    process.join(seconds)
    if process.exitcode is None:
        os.kill(process.pid, signal.SIGKILL)
        process.join(60)
    assert process.exitcode in (0, -signal.SIGKILL), process.exitcode
    return time.monotonic() - began if process.exitcode == 0 else None


def by_spark(folder: Path, count: int, rng: np.random.Generator, found: dict[str, int]) -> None:
    """The same with Spark, whose processes are killed as a group."""
    if shutil.which("java") is None:
        print("no Java here: Spark is left out")
        return
    calm = folder / "calm-spark"
    calm.mkdir()
    line = [sys.executable, "-m", "gigrad", *command(folder, "reasons", calm / "out", "--engine", "spark")]
    began = time.monotonic()
    subprocess.run(line, check=True, capture_output=True)
    length = time.monotonic() - began
    expected = pq.read_table(calm / "out").sort_by([("number", "ascending"), ("rank", "ascending")])
    while count > 0:
        wild = Path(tempfile.mkdtemp(dir=folder))
        line = [sys.executable, "-m", "gigrad", *command(folder, "reasons", wild / "out", "--engine", "spark")]
        while True:
            process = subprocess.Popen(
                line, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            try:
                process.wait(float(rng.uniform(0.5 * length, length)) if count > 0 else None)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                found["reasons spark"] = found.get("reasons spark", 0) + 1
                count -= 1
                continue
            break
        assert process.returncode in (0, 5)
        again = pq.read_table(wild / "out").sort_by([("number", "ascending"), ("rank", "ascending")])
        assert again.equals(expected)
        assert sorted(p.name for p in wild.iterdir()) == sorted(p.name for p in calm.iterdir())
        assert (wild / "records.jsonl.gz").read_bytes() == (calm / "records.jsonl.gz").read_bytes()
        print(f"{sum(found.values())} kills; Spark: identical, nothing left", flush=True)


def files(count: int) -> dict[str, Any]:
    """A quarter of the files, then all of them: four times as many may take no more than five times as long."""
    found = {}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        furnish(folder, 10)
        explainer = gig.Explainer.load(folder / "e.gig", n_threads=1)
        for n in (count // 4, count):
            data = folder / f"{n}"
            data.mkdir()
            whole = made(4 * n)
            for i in range(n):
                pq.write_table(whole.slice(4 * i, 4), data / f"{i:06d}.parquet")
            began = time.process_time()
            done = gig.batch.run(explainer, data, folder / f"{n}.parquet", id_cols=["number"])
            found[n] = round(time.process_time() - began, 2)
            assert done.rows == 4 * n
            print(f"{n:,} files: {found[n]} s of processor time", flush=True)
    few, many = found.values()
    assert many < 6 * few, found
    return {"seconds of processor time": found, "ratio": round(many / few, 2)}


def ledger(count: int) -> dict[str, Any]:
    """A ledger of as many records: its size, how long it takes to verify, and flipped bytes."""
    from gigrad.cli.app import app

    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        furnish(folder, count)
        path = folder / "records.jsonl"
        line = command(folder, "reasons", folder / "out.parquet", "--all", "--ids", "allow")
        line[line.index("--audit") + 1] = str(path)
        app(line, standalone_mode=False)
        began = time.monotonic()
        explainer = gig.Explainer.load(folder / "e.gig")
        done = gig.verify_ledger(path, explainer)
        seconds = time.monotonic() - began
        assert done.ok
        assert done.records == count
        print(f"{count:,} records verified in {seconds:.0f} s", flush=True)
        data = path.read_bytes()
        changed = bytearray(data)
        changed[len(data) // 2] ^= 1
        path.write_bytes(changed)
        try:
            sum(1 for _ in gig.read_ledger(path))
            raise AssertionError("a flipped byte passed")
        except gig.LedgerError as error:
            print(error)
        return {
            "records": count, "bytes a record": round(len(data) / count), "seconds": round(seconds, 1),
            **flips(data, 50_000),
        }  # fmt: skip


def flips(data: bytes, count: int) -> dict[str, str]:
    """Bits flipped one at a time: anywhere, and each one of the head, two records and the end.

    A flip is looked at in its own line, whose hash follows from the line before: to read the whole ledger for each
    would take days, and stops at the same line.
    """
    from gigrad._reasons.ledger import START, _checked

    lines = [line + b"\n" for line in data.split(b"\n")[:-1]]
    before = [START]
    for i, line in enumerate(lines):
        before.append(_checked(line, before[i], "here")[2])
    starts = np.cumsum([0, *map(len, lines)])

    def is_noticed(n: int, place: int, bit: int) -> bool:
        line = bytearray(lines[n])
        line[place] ^= 1 << bit
        if line[-1] != ord("\n") and n + 1 < len(lines):  # it runs into the next one
            line += lines[n + 1]
        end = line.find(b"\n") + 1
        try:
            _checked(bytes(line[: end or len(line)]), before[n], "here")
        except gig.LedgerError:
            return True
        return False

    rng = np.random.default_rng(0)
    places = rng.integers(0, len(data), count)
    homes = np.searchsorted(starts, places, "right") - 1
    found = sum(is_noticed(n, p - starts[n], int(rng.integers(8))) for n, p in zip(homes, places, strict=True))
    every = [(n, p, bit) for n in (0, 1, 2, len(lines) - 1) for p in range(len(lines[n])) for bit in range(8)]
    all_found = sum(is_noticed(*flip) for flip in every)
    assert (found, all_found) == (count, len(every))
    return {"anywhere": f"{found:,} of {count:,}", "every bit of four lines": f"{all_found:,} of {len(every):,}"}


if __name__ == "__main__":
    what, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else None
    sizes = {"kills": 100, "files": 10_000, "ledger": 100_000}
    made_of = {"kills": kills, "files": files, "ledger": ledger}[what](count or sizes[what])
    record = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    RESULTS.write_text(json.dumps({**record, what: made_of}, indent=2) + "\n")
    print(json.dumps(made_of, indent=2))
