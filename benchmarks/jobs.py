"""Campaigns that hold jobs to their promises: real processes, real signals, real Spark.

    python jobs.py kills [count]     SIGKILL at random moments, over all formats, commands and engines
    python jobs.py files [count]     input files, in time linear in their number
    python jobs.py ledger [count]    records of a ledger, verified in bulk, and flipped bytes noticed

Each prints what it found and adds it to results/jobs.json and jobs.md; a promise that is broken ends it with an error.
"""

from __future__ import annotations

import io
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
        ["xgboost", "gigrad.cli.commands", "gigrad.cli.app", "gigrad.batch.run", "pyarrow.parquet", "pyarrow.csv"]
    )
    rng = np.random.default_rng(0)
    found: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as root:
        folder = Path(root)
        furnish(folder, 800)
        kinds = [(what, form) for what in ("explain", "reasons") for form in FORMATS]
        calm: dict[tuple[str, str], tuple[dict[str, bytes], float]] = {}
        turn = 0
        while sum(found.values()) < count - count // 10:
            what, form = kind = kinds[turn % len(kinds)]
            name = "out" if form == "folder" else f"out.{form}"
            place = folder / f"{what}-{turn}"
            place.mkdir()
            line = command(folder, what, place / name, "--batch-rows", "80")
            if kind not in calm:
                length = run_once(context, line, None)
                calm[kind] = content(place / name), float(length or 0.0)
                shutil.rmtree(place)
                place.mkdir()
            expected, length = calm[kind]
            hit = 0  # a few, then it may end: on a busy machine it could be killed for ever before it gets anywhere
            while run_once(context, line, rng.uniform(0, length) if hit < 6 else None) is None:
                hit += 1
                found[f"{what} {form}"] = found.get(f"{what} {form}", 0) + 1
                target = place / name
                assert not target.is_file() or target.read_bytes() == expected[name], "half of a result looked whole"
            assert content(place / name) == expected, (what, form, "another result, or something left behind")
            print(f"{sum(found.values())} kills; {what} to {form}: identical, nothing left", flush=True)
            shutil.rmtree(place)
            turn += 1
        by_spark(folder, count // 10, rng, found)
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
    """The same with Spark, whose processes are killed as a group; the order of its rows is not promised."""
    if shutil.which("java") is None:
        print("no Java here: Spark is left out")
        return
    for what, goal in (("reasons", count - count // 2), ("explain", count // 2)):
        calm = folder / f"calm-{what}"
        calm.mkdir()
        began = time.monotonic()
        subprocess.run(spark_line(folder, what, calm), check=True, capture_output=True)
        length = time.monotonic() - began
        name, hit = f"{what} spark", 0
        while hit < goal:
            wild = Path(tempfile.mkdtemp(dir=folder))
            ended = False
            while not ended:
                seconds = float(rng.uniform(0.3 * length, length)) if hit < goal else None
                began = time.monotonic()
                ended = spark_once(spark_line(folder, what, wild), seconds)
                length = time.monotonic() - began if ended else length  # on a busy machine it varies
                hit += not ended
                found[name] = found.get(name, 0) + (not ended)
            assert result_of(wild) == result_of(calm), "another result, or something left behind"
            print(f"{sum(found.values())} kills; {what} by Spark: identical, nothing left", flush=True)


def spark_line(folder: Path, what: str, place: Path) -> list[str]:
    """A job for Spark; one that was killed when all was written is found to be done."""
    return [
        sys.executable, "-m", "gigrad",
        *command(folder, what, place / "out", "--engine", "spark", "--skip-if-done", "--ids", "allow"),
    ]  # fmt: skip


def spark_once(line: list[str], seconds: float | None) -> bool:
    """Whether a run ended by itself, well; not where it was killed after some seconds."""
    process = subprocess.Popen(line, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return False
    assert process.returncode == 0, process.returncode
    return True


def result_of(place: Path) -> tuple[Any, ...]:
    """The names of all files beside the result, its rows in order, its record and its ledger."""
    table = pq.read_table(place / "out")
    order = [(name, "ascending") for name in ("number", "rank") if name in table.column_names]
    ledger = place / "records.jsonl.gz"
    return (
        sorted(p.name for p in place.iterdir()),
        table.sort_by(order).to_pylist(),
        (place / "out" / "_gigrad.json").read_text(),
        ledger.read_bytes() if ledger.exists() else b"",
    )


def files(count: int) -> dict[str, Any]:
    """An eighth of the files, a quarter, half and all of them: each twice as many takes twice as long."""
    found: dict[int, float] = {}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        furnish(folder, 10)
        explainer = gig.Explainer.load(folder / "e.gig", n_threads=1)
        for n in (count // 8, count // 4, count // 2, count):
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
    # the exponent of a power law, by least squares: 1 is linear, 2 is quadratic
    growth = float(np.polyfit(np.log([*found]), np.log([*found.values()]), 1)[0])
    assert growth < 1.3, found
    return {"seconds of processor time": found, "exponent of growth": round(growth, 2)}


def ledger(count: int) -> dict[str, Any]:
    """A ledger of as many records: its size, how long it takes to verify, and flipped bits."""
    from gigrad.cli.app import app

    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        furnish(folder, count)
        path = folder / "records.jsonl"
        line = command(folder, "reasons", folder / "out.parquet", "--all", "--ids", "allow")
        line[line.index("--audit") + 1] = str(path)
        app(line, standalone_mode=False)
        explainer = gig.Explainer.load(folder / "e.gig", n_threads=1)
        began = time.process_time()
        done = gig.verify_ledger(path, explainer)
        seconds = time.process_time() - began
        assert done.ok
        assert done.records == count
        print(f"{count:,} records verified in {seconds:.0f} s of processor time", flush=True)
        lines = path.read_bytes().splitlines(keepends=True)
        size = sum(map(len, lines))
        found = {"records": count, "bytes a record": round(size / count), "seconds of processor time": round(seconds)}
        return {**found, **flips(lines, 50_000), **every_byte(folder)}


def flips(lines: list[bytes], count: int) -> dict[str, str]:
    """Bits flipped one at a time, anywhere in a large ledger.

    What stands before a flip is the ledger that was verified just now, so the chain is followed from its line on.
    """
    from gigrad._reasons.ledger import START, chained

    before = [START, *(line[-67:-3].decode() for line in lines)]  # the hash of each stands at its end
    starts = np.cumsum([0, *map(len, lines)])
    rng = np.random.default_rng(0)
    places = rng.integers(0, starts[-1], count)
    homes = np.searchsorted(starts, places, "right") - 1
    found = 0
    for n, place in zip(homes.tolist(), places.tolist(), strict=True):
        line = bytearray(b"".join(lines[n : n + 2]))
        line[place - int(starts[n])] ^= 1 << int(rng.integers(8))
        found += is_noticed(chained(io.BytesIO(line), Path("here"), before[n]))
    assert found == count
    return {"flips noticed, anywhere": f"{found:,} of {count:,}"}


def every_byte(folder: Path) -> dict[str, str]:
    """A bit of every byte of a ledger of 150 records, each time the whole chain followed from the first line."""
    from gigrad._reasons.ledger import chained
    from gigrad.cli.app import app

    path = folder / "few.jsonl"
    pq.write_table(made(150), folder / "few.parquet")
    line = command(folder, "reasons", folder / "few-out.parquet", "--all")
    line[line.index("--audit") + 1], line[2] = str(path), str(folder / "few.parquet")
    app(line, standalone_mode=False)
    data, found = path.read_bytes(), 0
    for i in range(len(data)):
        changed = bytearray(data)
        changed[i] ^= 1 << (i % 8)
        found += is_noticed(chained(io.BytesIO(changed), path))
    assert found == len(data)
    return {"flips noticed, one in every byte of 150 records": f"{found:,} of {len(data):,}"}


def is_noticed(chain: Any) -> bool:
    try:
        for _ in chain:
            pass
    except gig.LedgerError:
        return True
    return False


def as_page(record: dict[str, Any]) -> str:
    """The results as a table for each campaign."""
    parts = []
    for what, found in record.items():
        lines = [(name, value) for name, value in found.items() if not isinstance(value, dict)]
        lines += [
            (f"{name}: {key}", v)
            for name, value in found.items()
            if isinstance(value, dict)
            for key, v in value.items()
        ]
        parts.append(
            "\n".join([f"## {what}", "", "| what | found |", "|---|---|", *(f"| {k} | {v} |" for k, v in lines)])
        )
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    what, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else None
    sizes = {"kills": 100, "files": 10_000, "ledger": 100_000}
    made_of = {"kills": kills, "files": files, "ledger": ledger}[what](count or sizes[what])
    record = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    record[what] = {"measured": time.strftime("%Y-%m-%d"), **made_of}
    RESULTS.write_text(json.dumps(record, indent=2) + "\n")
    RESULTS.with_suffix(".md").write_text(as_page(record))
    print(json.dumps(made_of, indent=2))
