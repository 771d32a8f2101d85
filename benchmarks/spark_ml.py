"""A fitted Spark pipeline explained on the cluster, against the same rows explained on one machine.

    python benchmarks/spark_ml.py [--rows 200000]

Prints how many rows were compared, the largest difference of a credit (none is expected), and the time of either.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np

import gigrad as gig
import gigrad.spark


def main() -> None:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "helpers"))
    from spark_pipelines import awkward, fitted, table

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000)
    rows = parser.parse_args().rows
    spark = gigrad.spark.local_session(2, 1)
    spark.sparkContext.setLogLevel("OFF")
    model = fitted("gbt", spark.createDataFrame(table(2000)).coalesce(1).cache())
    explainer = gig.Explainer(model, awkward(50, 2), n_threads=2)
    given = awkward(rows, 5).assign(loan=np.arange(rows))
    given["job"] = [v if isinstance(v, str) else None for v in given["job"]]
    frame = spark.createDataFrame(given).repartition(8).cache()
    frame.count()
    start = time.perf_counter()
    there = gigrad.spark.explain(frame, explainer, id_cols=["loan"]).toPandas().sort_values("loan")
    cluster = time.perf_counter() - start
    start = time.perf_counter()
    here = explainer(given)
    local = time.perf_counter() - start
    credits = there[[f"credit_{name}" for name in here.feature_names]].to_numpy()
    apart = np.abs(credits - here.values).max()
    print(f"{len(credits):,} rows; largest difference of a credit {apart:.3g}, of a score ", end="")
    print(f"{np.abs(there['prediction'].to_numpy() - here.predictions).max():.3g}")
    print(f"on the cluster (2 cores) {cluster:.1f} s; here, with Spark's own predictions of all rows, {local:.1f} s")
    spark.stop()


if __name__ == "__main__":
    main()
