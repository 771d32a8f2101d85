"""Tables on disk in every format, and a small model over them, for the tests of batches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from forests import random_forest
from pyarrow import csv
from pyarrow import parquet as pq

import gigrad as gig
from gigrad.graph import Column, Graph, Input

NAMES = ("age", "income", "debt", "purpose", "years")
LABELS = ("car", "house", "=cmd()", "other, say")


def graph(outputs: int = 1, **options: Any) -> Graph:
    rng = np.random.default_rng(4)
    columns = (
        Column("age"), Column("income"), Column("debt", missing=False), Column("purpose", "category", LABELS),
        Column("years"),
    )  # fmt: skip
    source = Input(5)
    trees = random_forest(rng, columns, source, trees=6, depth=4, outputs=outputs)
    names = ("y",) if outputs == 1 else tuple(f"y{k}" for k in range(outputs))
    return Graph(columns, source, trees, trees, names, named=True, **options)


def table(rows: int, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    numbers = rng.integers(0, 7, (rows, 5)) / 2.0
    made: dict[str, Any] = {"id": [f"{i:05d}" for i in range(rows)], "note": [f'{i},\n"{i}"' for i in range(rows)]}
    for j, name in enumerate(NAMES):
        made[name] = numbers[:, j].tolist()
    made["purpose"] = [LABELS[int(v)] for v in rng.integers(0, 4, rows)]
    made["age"] = [None if v < 0.1 else a for v, a in zip(rng.random(rows), made["age"], strict=True)]
    return pa.table(made).select(["years", "id", "purpose", "age", "note", "income", "debt"])


def small_explainer() -> gig.Explainer:
    reference = table(20, seed=1).select(list(NAMES))
    return gig.Explainer(graph(), reference, weights=np.arange(1, 21), n_threads=1)


def write(path: Path, content: Any) -> Path:
    if path.suffix == ".csv":
        csv.write_csv(content, path)
    elif path.suffix == ".arrow":
        with pa.ipc.new_file(path, content.schema) as file:
            file.write_table(content, max_chunksize=37)
    elif path.suffix == ".ipc":
        with pa.ipc.new_stream(path, content.schema) as file:
            file.write_table(content, max_chunksize=53)
    elif path.suffix == ".parquet":
        pq.write_table(content, path, row_group_size=41)
    else:
        path.mkdir()
        (path / "deep").mkdir()
        (path / "_SUCCESS").write_text("")
        pq.write_table(content.slice(100), path / "deep" / "b.parquet")
        pq.write_table(content.slice(0, 100), path / "a.parquet")
    return path


def read(path: Path) -> Any:
    if path.is_dir():
        return pq.read_table(path)
    if path.suffix == ".csv":
        types = csv.ConvertOptions(column_types={"id": pa.string(), "note": pa.string()})
        return csv.read_csv(path, parse_options=csv.ParseOptions(newlines_in_values=True), convert_options=types)
    if path.suffix == ".arrow":
        return pa.ipc.open_file(path).read_all()
    return pq.read_table(path)


def files(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir())
