"""A pipeline that Spark has fitted, explained on its DataFrame's raw columns: on the cluster as on this machine."""

from __future__ import annotations

import os
import shutil
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from spark_pipelines import ARCHIVE, awkward

import gigrad as gig
from gigrad._io.modelfiles.spark_folder import load_spark

if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
    pytest.skip("Spark needs Java, which is not here", allow_module_level=True)


@pytest.fixture(scope="module")
def model(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """One that Spark has fitted before: fitting takes it much longer than reading."""
    from pyspark.ml import PipelineModel

    folder = tmp_path_factory.mktemp("spark")
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="data")
    return PipelineModel.load(f"file://{folder / 'gbt'}")


def test_the_cluster_gives_the_local_answer(spark: Any, model: Any) -> None:
    """Missing amounts, labels never seen, null labels: explained where they lie; workers have no model of Spark's."""
    import gigrad.spark

    explainer = gig.Explainer(model, awkward(20, 2), n_threads=1)
    rows = awkward(1000, 5).assign(loan=np.arange(1000))
    rows["job"] = [v if isinstance(v, str) else None for v in rows["job"]]
    there = gigrad.spark.explain(spark.createDataFrame(rows), explainer, id_cols=["loan"]).toPandas()
    there = there.sort_values("loan")
    here = explainer(rows)  # compared with the pipeline's own predictions on the way
    assert list(here.feature_names) == ["age", "income", "job", "home", "late"]
    credits = there[[f"credit_{name}" for name in here.feature_names]].to_numpy()
    assert np.array_equal(credits, here.values)
    np.testing.assert_allclose(there["prediction"], here.predictions, rtol=0, atol=1e-15)  # Spark's own are those here


def test_an_imputer_on_integers(spark: Any, tmp_path: Path) -> None:
    """Live, from a folder and on the cluster: what Spark fills into a column of integers, and into one of float32."""
    from pyspark.ml import Pipeline
    from pyspark.ml.feature import Imputer, VectorAssembler
    from pyspark.ml.regression import LinearRegression
    from pyspark.sql.types import DoubleType, FloatType, IntegerType, StructField, StructType

    import gigrad.spark

    rng = np.random.default_rng(0)
    age = [None if i % 5 == 0 else int(v) for i, v in enumerate(rng.integers(20, 70, 60))]
    debt = [None if i % 7 == 0 else float(np.float32(v)) for i, v in enumerate(rng.normal(size=60))]
    due = [float((a or 30) + 3.0 * (d or 0.0)) for a, d in zip(age, debt, strict=True)]
    kinds = {"age": IntegerType(), "debt": FloatType(), "due": DoubleType()}
    schema = StructType([StructField(name, kind) for name, kind in kinds.items()])
    frame = spark.createDataFrame(list(zip(age, debt, due, strict=True)), schema).coalesce(1)
    stages = [
        Imputer(inputCols=["age", "debt"], outputCols=["a", "d"]),
        VectorAssembler(inputCols=["a", "d"], outputCol="features"),
        LinearRegression(labelCol="due"),
    ]
    fitted = Pipeline(stages=stages).fit(frame)
    own = np.array([row[0] for row in fitted.transform(frame).select("prediction").collect()])
    fitted.write().save(f"file://{tmp_path / 'model'}")
    table = pa.table({"age": pa.array(age, pa.int32()), "debt": pa.array(debt, pa.float32())})
    np.testing.assert_allclose(load_spark(tmp_path / "model").predict(table), own, rtol=1e-13)
    explainer = gig.Explainer(fitted, table.slice(0, 9))
    here = explainer(table)
    np.testing.assert_allclose(here.predictions, own, rtol=1e-13)
    there = gigrad.spark.explain(frame, explainer, id_cols=["due"]).toPandas()
    assert np.array_equal(there[["credit_age", "credit_debt"]].to_numpy(), here.values)


def test_what_spark_refuses_is_said(model: Any) -> None:
    with pytest.raises(gig.UnsupportedModelError, match="got GBTClassifier alone"):
        gig.import_model(model.stages[-1])
    with pytest.raises(gig.InputError, match="no missing value in column 'age'"):
        gig.explain(model, awkward(2, 1).assign(age=[np.nan, 1.0]), awkward(4, 2))  # null and NaN differ behind it
