"""Writes seeds/: small models as other libraries save them, for fuzzing to begin with.

python write_seeds.py, once, where Keras, ONNX's converters and Spark are installed; fuzzing needs none of these.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import numpy as np

SEEDS = Path(__file__).parent / "seeds"


def write_keras() -> None:
    os.environ.setdefault("KERAS_BACKEND", "torch")
    import keras

    inputs = keras.Input((3,))
    hidden = keras.layers.Dense(2, activation="relu")(keras.layers.BatchNormalization()(inputs))
    keras.Model(inputs, keras.layers.Dense(1, activation="sigmoid")(hidden)).save(SEEDS / "net.keras")


def write_onnx() -> None:
    from skl2onnx import to_onnx
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
    forest = RandomForestRegressor(2, max_depth=2, random_state=0).fit(X, X[:, 0])
    linear = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, X[:, 0] > 0)
    for name, model in (("forest", forest), ("linear", linear)):
        (SEEDS / f"{name}.onnx").write_bytes(to_onnx(model, X[:1]).SerializeToString())


def write_spark() -> None:
    """A saved pipeline is a folder; it is kept as one zip."""
    from pyspark.ml import Pipeline
    from pyspark.ml.classification import LogisticRegression
    from pyspark.ml.feature import StringIndexer, VectorAssembler
    from pyspark.ml.regression import GBTRegressor
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    rows = [(float(i % 7), "abc"[i % 3], float(i % 5), float(i % 2)) for i in range(40)]
    table = spark.createDataFrame(rows, ["a", "b", "c", "y"])
    indexed = StringIndexer(inputCol="b", outputCol="b_index")
    assembled = VectorAssembler(inputCols=["a", "b_index", "c"], outputCol="features")
    trees = GBTRegressor(labelCol="y", maxIter=2, maxDepth=2)
    for name, model in (("trees", trees), ("linear", LogisticRegression(labelCol="y"))):
        with tempfile.TemporaryDirectory() as folder:
            Pipeline(stages=[indexed, assembled, model]).fit(table).save(f"{folder}/saved")
            for extra in [*Path(folder).rglob(".*"), *Path(folder).rglob("_SUCCESS")]:
                extra.unlink()  # checksums, which are not read
            shutil.make_archive(str(SEEDS / f"{name}-spark"), "zip", f"{folder}/saved")
    spark.stop()


if __name__ == "__main__":
    SEEDS.mkdir(exist_ok=True)
    write_keras()
    write_onnx()
    write_spark()
