"""What tests run in processes of their own, to be killed, starved or measured; little is imported: they start fast."""

from __future__ import annotations

import os
import resource
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from forests import random_forest

import gigrad as gig
from gigrad import batch
from gigrad.graph import Column, Graph, Input


def _warm() -> None:
    """Load what a run loads: processes forked from one that has imported this module need not."""

    columns = (Column("x"),)
    source = Input(1)
    graph = Graph(columns, source, source, source, ("y",), named=True)
    gig.Explainer(graph, np.zeros((1, 1))).scorer.graph.predict(pa.table({"x": [1.0]}))


_warm()


def child(folder: str, ready: Any, options: dict[str, Any]) -> None:
    """Run a batch in a process of its own; `die` kills it by its own hand at the n-th durable step."""
    steps = options.pop("die", None)
    limit = options.pop("limit", None)
    if limit is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    if steps is not None:
        count = [0]

        def counted(function: Any) -> Any:
            def call(*arguments: Any) -> Any:
                count[0] += 1
                if count[0] >= steps:
                    os.kill(os.getpid(), signal.SIGKILL)
                return function(*arguments)

            return call

        os.replace, os.fsync, os.rename = counted(os.replace), counted(os.fsync), counted(os.rename)
    explainer = gig.Explainer.load(f"{folder}/x.gig", n_threads=1)
    ready.set()
    try:
        batch.run(explainer, f"{folder}/x.csv", **options)
    except gig.GigradError as error:
        Path(f"{folder}/error.txt").write_text(f"{type(error).__name__}: {error}")


def peak(folder: str, rows: int, queue: Any) -> None:
    """The largest memory, in MiB, of a process that explains `rows` rows of 50 columns."""
    rng = np.random.default_rng(0)
    columns = tuple(Column(f"x{j}") for j in range(50))
    source = Input(50)
    trees = random_forest(rng, columns, source, trees=2, depth=2)
    explainer = gig.Explainer(
        Graph(columns, source, trees, trees, ("y",), named=True), rng.random((2, 50)), n_threads=1
    )
    path = f"{folder}/{rows}.parquet"
    with pq.ParquetWriter(path, pa.schema([(c.name, pa.float64()) for c in columns])) as writer:
        for _ in range(rows // 4000):
            writer.write_table(pa.table({c.name: rng.random(4000) for c in columns}), row_group_size=4000)
    batch.run(explainer, path, f"{folder}/{rows}-out.parquet", batch_rows=2000)
    queue.put(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
