"""Spark pipelines of every kind that is read, on data like a lender's.

`python tests/helpers/spark_pipelines.py` fits all of them on a Spark of this machine, tries the importer on the live
ones (some by `gigrad.testing.check_importer`: at thresholds, beside them, at missing values) and writes them, with
Spark's own answers for some rows, to `tests/importers/files/spark_pipelines.tar.gz`, from which tests read them.
"""

from __future__ import annotations

import json
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

ARCHIVE = Path(__file__).resolve().parents[1] / "importers" / "files" / "spark_pipelines.tar.gz"
JOBS, HOMES = ("clerk", "driver", "nurse", "other"), ("own", "rent")


def table(rows: int, seed: int = 0) -> pd.DataFrame:
    """Applications: a whole number, amounts of which some are missing, -1 for no debt known, labels, codes, targets."""
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 80, rows).astype(float)
    income = np.round(rng.lognormal(1.0, 0.6, rows), 1)
    job, home = rng.choice(JOBS, rows, p=(0.4, 0.3, 0.2, 0.1)), rng.choice(HOMES, rows)
    term = rng.choice([12, 24, 36], rows)
    score = income / 4 + (job == "nurse") - (home == "rent") * (age < 40) + term / 40 + rng.normal(0, 0.3, rows)
    out = pd.DataFrame({"age": age, "income": income, "job": job, "home": home, "term": term})
    out["debt"] = np.where(rng.random(rows) < 0.2, -1.0, rng.integers(0, 6, rows) / 2)
    out["late"] = rng.integers(0, 3, rows)
    out["paid"] = np.where(score > np.median(score), "yes", "no")
    out["grade"] = np.digitize(score, np.quantile(score, [0.3, 0.7])).astype(float)
    out["loss"] = np.round(np.exp(score / 2), 2)
    out.loc[rng.random(rows) < 0.15, "income"] = np.nan
    return out


def awkward(rows: int, seed: int) -> pd.DataFrame:
    """The same with labels that were never seen, missing ones, and numbers on the edges of buckets."""
    out = table(rows, seed)
    out.loc[::7, "job"] = "pilot"
    out.loc[3::7, "job"] = None
    out.loc[::5, "age"] = 40.0
    return out


def _stages() -> dict[str, Callable[[], list[Any]]]:
    """What makes the stages of every pipeline."""
    from pyspark.ml import classification as c
    from pyspark.ml import feature as f
    from pyspark.ml import regression as r
    from xgboost.spark import SparkXGBClassifier, SparkXGBRegressor

    def text(invalid: str = "keep") -> Any:
        return f.StringIndexer(inputCols=["job", "home"], outputCols=["job_i", "home_i"], handleInvalid=invalid)

    def filled() -> Any:
        return f.Imputer(inputCols=["income"], outputCols=["income_f"], strategy="median")

    def joined(*names: str, invalid: str = "error", to: str = "features") -> Any:
        return f.VectorAssembler(inputCols=list(names), outputCol=to, handleInvalid=invalid)

    inf = float("inf")
    buckets = f.Bucketizer(splits=[-inf, 30, 40, 55, inf], inputCol="age", outputCol="age_b", handleInvalid="keep")
    return {
        "gbt": lambda: [
            text(), f.StringIndexer(inputCol="paid", outputCol="label"), filled(), buckets,
            f.OneHotEncoder(inputCols=["home_i"], outputCols=["home_v"]),
            joined("age", "age_b", "income_f", "job_i", "home_v", "late", invalid="keep"),
            c.GBTClassifier(maxIter=4, maxDepth=3, seed=1),
        ],
        "forest": lambda: [
            text(), f.Imputer(inputCols=["debt"], outputCols=["debt_f"], missingValue=-1.0),
            joined("age", "income", "debt_f", "job_i", invalid="keep"),
            c.RandomForestClassifier(labelCol="grade", numTrees=3, maxDepth=4, seed=1),
        ],
        "scaled_tree": lambda: [
            f.StringIndexer(inputCol="term", outputCol="term_i"), joined("age", "late", "term_i", to="raw"),
            f.VectorIndexer(inputCol="raw", outputCol="indexed", maxCategories=3),
            f.StandardScaler(inputCol="indexed", outputCol="features", withMean=True),
            r.DecisionTreeRegressor(labelCol="loss", maxDepth=4),
        ],
        "bounded_tree": lambda: [
            f.Bucketizer(splits=[0, 25, 40, 120], inputCol="age", outputCol="age_b"), joined("age_b", "late"),
            c.DecisionTreeClassifier(labelCol="grade", maxDepth=3),
        ],
        "logistic": lambda: [
            text(), f.StringIndexer(inputCol="paid", outputCol="label"), filled(),
            f.OneHotEncoder(inputCols=["job_i", "home_i"], outputCols=["job_v", "home_v"], dropLast=False),
            joined("age", "income_f", "job_v", "home_v", "late", to="raw"),
            f.StandardScaler(inputCol="raw", outputCol="features"), c.LogisticRegression(maxIter=10),
        ],
        "multinomial": lambda: [
            text("error"), joined("age", "term", "home_i", to="raw"),
            f.MinMaxScaler(inputCol="raw", outputCol="features"),
            c.LogisticRegression(labelCol="grade", maxIter=10),
        ],
        "two_classes": lambda: [
            f.StringIndexer(inputCol="paid", outputCol="label"), joined("age", "late"),
            c.LogisticRegression(family="multinomial", maxIter=5),
        ],
        "linear": lambda: [
            filled(), f.Binarizer(inputCol="age", outputCol="old", threshold=60.0), joined("old", "income_f", to="raw"),
            f.RobustScaler(inputCol="raw", outputCol="features", withCentering=True),
            r.LinearRegression(labelCol="loss"),
        ],
        "poisson": lambda: [
            joined("age", "term"),
            r.GeneralizedLinearRegression(family="poisson", labelCol="late", offsetCol="debt"),
        ],
        "gamma": lambda: [
            joined("age", "term"), r.GeneralizedLinearRegression(family="gamma", link="log", labelCol="loss"),
        ],
        "gbt_regressor": lambda: [
            text(), joined("age", "job_i", "home_i", "term"), r.GBTRegressor(labelCol="loss", maxIter=3, maxDepth=3),
        ],
        "forest_regressor": lambda: [
            f.MaxAbsScaler(inputCol="raw", outputCol="features"),
            r.RandomForestRegressor(labelCol="loss", numTrees=3, maxDepth=3, seed=1),
        ],
        "xgboost": lambda: [
            text(), joined("age", "income", "job_i", "home_i", invalid="keep"),
            SparkXGBClassifier(label_col="grade", n_estimators=3, max_depth=3),
        ],
        "xgboost_regressor": lambda: [
            text(), SparkXGBRegressor(features_col=["age", "income", "job_i"], label_col="loss", n_estimators=3),
        ],
    }  # fmt: skip


def fitted(name: str, frame: Any) -> Any:
    """The PipelineModel of a name, fitted on a Spark DataFrame of `table`."""
    from pyspark.ml import Pipeline
    from pyspark.ml.feature import VectorAssembler

    stages = _stages()[name]()
    if name == "forest":
        frame = frame.dropna()  # Spark takes NaN in vectors when it predicts, and not when it fits
    if name == "forest_regressor":
        stages.insert(0, VectorAssembler(inputCols=["age", "term", "late"], outputCol="raw"))
    return Pipeline(stages=stages).fit(frame)


def asked(model: Any, frame: Any) -> np.ndarray[Any, Any]:
    """What Spark itself gives for rows: probabilities, or predictions; NaN for rows that it cannot take."""
    given = model.transform(frame)
    name = "probability" if "probability" in given.columns else "prediction"
    return np.array([np.ravel(getattr(row[0], "values", row[0])) for row in given.select(name).collect()])


def write(folder: Path) -> None:
    """Fit, try and save every pipeline, with Spark's answers."""
    import gigrad as gig
    from gigrad.spark import local_session
    from gigrad.testing import check_importer

    spark = local_session(1, 1)
    spark.sparkContext.setLogLevel("OFF")
    spark.conf.set("spark.sql.shuffle.partitions", 1)
    frame = spark.createDataFrame(table(600)).coalesce(1).cache()
    answers: dict[str, Any] = {}
    for name in _stages():
        model = fitted(name, frame)
        graph = gig.import_model(model)
        rows = rows_for(graph)
        given = rows[list(graph.feature_names)]
        if name in _TRIED:
            check_importer(model, given)
        else:
            gig.explain(model, given[:20], given[20:], output="margin")
        needed = spark.createDataFrame(_nulls(rows))
        answers[name] = asked(model, needed).tolist()
        model.write().overwrite().save(f"file://{folder / name}")
        print(name, graph.label, len(graph.columns), flush=True)
    (folder / "answers.json").write_text(json.dumps(answers))
    spark.stop()


_TRIED = ("gbt", "forest", "scaled_tree", "logistic")  # at thresholds and beside them, which takes Spark long


def rows_for(graph: Any) -> pd.DataFrame:
    """Rows that a pipeline takes: with labels never seen and missing ones where it keeps them."""
    keeps = any(c.name == "job" and c.unknown == "other" for c in graph.columns)
    return awkward(40, 1) if keeps else table(40, 1)


def _nulls(rows: pd.DataFrame) -> pd.DataFrame:
    """Missing labels as None, which Spark takes for null."""
    return rows.assign(job=[v if isinstance(v, str) else None for v in rows["job"]])


def main() -> None:
    with tempfile.TemporaryDirectory() as made:
        write(Path(made))
        kept = [f for f in sorted(Path(made).rglob("*")) if f.is_file() and not f.name.startswith((".", "_"))]
        with tarfile.open(ARCHIVE, "w:gz") as archive:
            for file in kept:
                archive.add(file, str(file.relative_to(made)))


if __name__ == "__main__":
    main()
