"""What is fuzzed: functions of bytes that read what may come from anybody. A GigradError is an answer, all else is not.

Each takes the bytes as they are, except `gig_parts`, `keras` and `spark`: the members of an archive bear checksums, so
that random changes of the file would hardly reach what lies behind. There the bytes are edits of a good file.
"""

from __future__ import annotations

import io
import json
import tempfile
import zipfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

import gigrad as gig
from gigrad import portable
from gigrad._io.modelfiles import _load_onnx
from gigrad._io.modelfiles.keras_archive import load_keras
from gigrad._io.modelfiles.lightgbm_text import check_lightgbm
from gigrad._io.modelfiles.spark_folder import load_spark
from gigrad._io.modelfiles.ubj import read_ubj
from gigrad.errors import GigradError
from gigrad.importers.scorecards import Scorecard

GOLDEN = Path(__file__).parents[1] / "golden"
SEEDS = Path(__file__).parent / "seeds"


def gig_file(data: bytes) -> None:
    """A whole .gig file."""
    explain_one(data)


def gig_parts(data: bytes) -> None:
    """Edits of a good file: its number, then (member, place, byte) again and again."""
    explain_one(zipped(edited(GOOD, data)))


def edited(good: list[dict[str, bytes]], data: bytes) -> dict[str, bytes]:
    """The members of one of several archives, after the edits that the bytes say."""
    base = good[data[0] % len(good)] if data else good[0]
    members = {name: bytearray(content) for name, content in base.items()}
    names = sorted(members)
    for member, high, low, value in zip(*[iter(data[1:])] * 4, strict=False):
        content = members[names[member % len(names)]]
        if content:
            content[(high << 8 | low) % len(content)] = value
    return {name: bytes(content) for name, content in members.items()}


def zipped(members: dict[str, bytes]) -> bytes:
    """The archive of some members."""
    with io.BytesIO() as file:
        with zipfile.ZipFile(file, "w") as archive:
            for name, content in members.items():
                archive.writestr(zipfile.ZipInfo(name), content)
        return file.getvalue()


def explain_one(data: bytes) -> None:
    """Read an explainer, and let it explain: what was accepted must be safe to walk."""
    explainer = portable.from_bytes(data, n_threads=1)
    width = len(explainer.reference.names)
    with np.errstate(all="ignore"):
        explainer(np.zeros((1, width)))


def ubj(data: bytes) -> None:
    """XGBoost's binary JSON."""
    read_ubj(data)


def lightgbm(data: bytes) -> None:
    """LightGBM's text, as it is checked before LightGBM reads it."""
    check_lightgbm(data)


def ledger(data: bytes) -> None:
    """A ledger of audit records, each replayed."""
    for record in in_file(data, ".jsonl", lambda path: list(gig.read_ledger(path))):
        gig.replay_reasons(record)


def record(data: bytes) -> None:
    """One audit record."""
    try:
        content = json.loads(data)
    except (ValueError, RecursionError):
        return
    gig.replay_reasons(content)


def scorecard(data: bytes) -> None:
    """A scorecard in each of its three forms."""
    for ending in (".csv", ".toml", ".pmml"):
        try:
            card = in_file(data, ending, Scorecard.read)
        except GigradError:
            continue
        gig.import_model(card)


def keras(data: bytes) -> None:
    """Edits of a .keras file, which is read without Keras.

    Its weights are left as they are: on some damaged ones the HDF5 library does not return. `load_model` reads files in
    a child process first, with a limit of time.
    """
    members = edited(KERAS, data)
    weights = {name: KERAS[0][name] for name in members if name.endswith(".h5")}
    walk(in_file(zipped(members | weights), ".keras", load_keras))


def spark(data: bytes) -> None:
    """Edits of the files of a saved Spark pipeline, which are read without Spark."""
    with tempfile.TemporaryDirectory() as folder:
        for name, content in edited(SPARK, data).items():
            path = Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        walk(load_spark(Path(folder)))


def onnx(data: bytes) -> None:
    """An ONNX file."""
    walk(gig.import_model(in_file(data, ".onnx", _load_onnx)))


def walk(graph: Any) -> None:
    """Explain a row by a graph that was accepted."""
    rows = np.array([[c.labels[i] if c.labels else i for c in graph.columns] for i in (0, -1)], object)
    with np.errstate(all="ignore"):
        gig.explain_pairs(graph, rows[:1], rows[1:], n_threads=1)


def in_file(data: bytes, ending: str, read: Callable[[Path], Any]) -> Any:
    """What a reader of files makes of bytes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"it{ending}"
        path.write_bytes(data)
        return read(path)


def members_of(paths: Iterable[Path]) -> list[dict[str, bytes]]:
    """The files in each of some archives."""
    out = []
    for path in sorted(paths):
        with zipfile.ZipFile(path) as archive:
            out.append({name: archive.read(name) for name in archive.namelist() if not name.endswith("/")})
    return out


GOOD = members_of(GOLDEN.glob("format-*/*.gig"))
KERAS = members_of(SEEDS.glob("*.keras"))
SPARK = members_of(SEEDS.glob("*-spark.zip"))
TARGETS = {f.__name__: f for f in (gig_file, gig_parts, ubj, lightgbm, ledger, record, scorecard, keras, spark, onnx)}
NEEDED = {"keras": "h5py", "spark": "pyarrow", "onnx": "onnx"}  # what reads the files below gigrad


def seeds(name: str) -> list[bytes]:
    """Good inputs to begin with."""
    patterns = {
        "gig_file": "format-2/linear.gig", "ubj": "models/*-binary.ubj", "lightgbm": "models/lightgbm-*.txt",
        "ledger": "format-2/*.jsonl",
    }  # fmt: skip
    found = [path.read_bytes() for path in sorted(GOLDEN.glob(patterns[name]))] if name in patterns else []
    if name == "onnx":
        found = [path.read_bytes() for path in sorted(SEEDS.glob("*.onnx"))]
    if name in {"gig_parts", "keras", "spark"}:
        archives = {"gig_parts": GOOD, "keras": KERAS, "spark": SPARK}[name]
        found = [bytes([i, 0, 0, 0, 123]) for i in range(len(archives))]
    if name == "record":
        path = GOLDEN / "format-2" / "margin.jsonl"
        found = [json.dumps(record).encode() for record in gig.read_ledger(path)][:1]
    return found


def attempt(name: str, data: bytes) -> None:
    """Run a target; raises what is no answer."""
    with suppress(GigradError):
        TARGETS[name](data)
