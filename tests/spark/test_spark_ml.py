"""A pipeline that Spark has fitted, explained on its DataFrame's raw columns: on the cluster as on this machine."""

from __future__ import annotations

import os
import shutil
import tarfile
from typing import Any

import numpy as np
import pytest
from spark_pipelines import ARCHIVE, awkward

import gigrad as gig

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


def test_what_spark_refuses_is_said(model: Any) -> None:
    with pytest.raises(gig.UnsupportedModelError, match="got GBTClassifier alone"):
        gig.import_model(model.stages[-1])
    with pytest.raises(gig.InputError, match="no missing value in column 'age'"):
        gig.explain(model, awkward(2, 1).assign(age=[np.nan, 1.0]), awkward(4, 2))  # null and NaN differ behind it
