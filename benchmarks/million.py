"""A million rows of 50 columns through the command line: how long, and the largest memory of the process.

    python million.py [rows]

The table (0.5 GB) and the result are made in a temporary folder and removed. The model is XGBoost, 20 trees of depth 4;
the reference has 20 rows. What is measured is memory: the time depends on the model and the reference, see `run.py`.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import xgboost

COLUMNS = [f"x{j}" for j in range(50)]
PIECE = 50_000


def make(folder: Path, rows: int) -> None:
    """The model, its reference, and the table, which is never in memory as a whole."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(20_000, len(COLUMNS))), columns=COLUMNS)
    y = X["x0"] + X["x1"] * X["x2"] + rng.normal(size=len(X)) > 0
    xgboost.XGBClassifier(n_estimators=20, max_depth=4, n_jobs=1).fit(X, y).save_model(folder / "model.json")
    X.head(20).to_parquet(folder / "reference.parquet", index=False)
    schema = pa.schema([("id", pa.int64()), *((name, pa.float64()) for name in COLUMNS)])
    with pq.ParquetWriter(folder / "table.parquet", schema) as writer:
        for first in range(0, rows, PIECE):
            count = min(PIECE, rows - first)
            numbers = {name: rng.normal(size=count) for name in COLUMNS}
            writer.write_table(pa.table({"id": np.arange(first, first + count), **numbers}))


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make(folder, rows)
        line = "explain model.json table.parquet --reference reference.parquet --id id --threads 1 -o credits.parquet"
        began = time.perf_counter()
        subprocess.run([sys.executable, "-m", "gigrad", *line.split()], cwd=folder, check=True)
        spent = time.perf_counter() - began
        found = pq.ParquetFile(folder / "credits.parquet").metadata.num_rows
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"{found:,} of {rows:,} rows of {len(COLUMNS)} columns in {spent:.0f} s, at most {peak:.0f} MB of memory")


if __name__ == "__main__":
    main()
