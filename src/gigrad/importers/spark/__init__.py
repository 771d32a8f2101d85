"""Spark ML: a fitted PipelineModel, explained on the raw columns of its DataFrame.

    __init__.py   the graph of a live pipeline, and its own predictions by Spark
    pipeline.py   the model's inputs traced back through the stages to raw columns
    columns.py    the effect of each transformer on a column
    models.py     trees, linear models and XGBoost at the end
    stages.py     the stages of a live pipeline as plain data

Saved pipelines are read without Spark, by `_io/modelfiles/spark_folder.py`.

Spark computes in float64 throughout, so thresholds and sums need no correction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..._common.optional import require
from ..._io.tables import Rows
from ...errors import InputError, UnsupportedModelError
from ...graph import Array, Column, Graph, Node, Witness
from ..common.links import DOUBLE, SINGLE, trees_error
from ..common.rounding import NodeScale
from ..pipeline.own_predictions import STEPS_ATOL, STEPS_RTOL
from .columns import Missing
from .pipeline import Pipeline, labels_in_spark, read_pipeline
from .stages import fitted_as, stages_of

__all__ = ["import_alone", "import_pipeline"]


def import_pipeline(model: Any) -> Graph:
    """The graph of a fitted pyspark.ml PipelineModel, or of the best one of a cross-validation."""
    read = read_pipeline(stages_of(model))
    return replace(read.graph, witnesses=tuple(_witnesses(read)))


def import_alone(model: Any) -> Graph:
    """Raise for a model without the stages that make its vector."""
    name = fitted_as(type(model).__name__)
    raise UnsupportedModelError(
        f"A Spark model must be passed with the stages that make its vector, which define its variables; got {name} "
        "alone. Pass the whole fitted PipelineModel, or combine these stages and the model: "
        "PipelineModel(stages=[assembler, model])."
    )


def _witnesses(read: Pipeline) -> list[Witness]:
    """The pipeline's own columns of scores, which the graph must reproduce."""
    graph, model = read.graph, read.stages[-1]
    stages = tuple(s.made for s in read.stages)
    classifies = "probabilityCol" in model.params
    pair = np.array([[-1.0, 1.0]]) if len(model.data.get("coefficientMatrix", ())) == 2 else None  # one for each class
    asked: list[tuple[Node, str, Array | None]] = [
        (graph.score, "probabilityCol" if classifies else "predictionCol", None)
    ]
    if graph.margin is not graph.score and classifies:
        asked.append((graph.margin, "rawPredictionCol", pair))
    return [
        _held(node, _Own(stages, str(model.params[column]), graph.columns, read.missing, node.width, weights), read)
        for node, column, weights in asked
    ]


def _held(node: Node, own: _Own, read: Pipeline) -> Witness:
    """One of these witnesses, with the rounding of the library that computes it."""
    unit = SINGLE if "XGB" in read.stages[-1].kind else DOUBLE
    scale = NodeScale(read.graph.input, node)
    units = scale.units * unit / DOUBLE
    rtol, atol = max(units, STEPS_RTOL), max(STEPS_ATOL, units * 1e-3) + trees_error(node, unit)
    return Witness(node, own, read.graph.label, rtol=rtol, atol=atol, scale=scale)


@dataclass(frozen=True, eq=False)
class _Own:
    """The pipeline's own prediction, by the running Spark session.

    Of several numbers for a row, the last one is used where one is needed, or the sum weighted by `weights`.
    """

    stages: tuple[Any, ...]
    output: str
    columns: tuple[Column, ...]
    missing: tuple[Missing, ...]
    width: int
    weights: Array | None

    def __call__(self, rows: Rows) -> Array:
        sql = require("pyspark.sql", "spark")
        session = sql.SparkSession.builder.getOrCreate()
        frame = session.createDataFrame(self._records(rows.matrix), self._schema()).coalesce(1)
        for stage in self.stages:
            frame = stage.transform(frame)
        try:
            found = [row[0] for row in frame.select(self.output).collect()]
        except Exception as error:  # Spark's own classes, which differ from version to version
            lines = [line for line in str(error).splitlines() if "Caused by" in line] or str(error).splitlines()
            raise InputError(f"The Spark pipeline itself fails on these rows: {lines[-1].strip():.300}") from error
        if len(found) != len(rows):
            raise InputError(f"The Spark pipeline itself skips {len(rows) - len(found)} of {len(rows)} rows.")
        values = np.array([v.toArray() if hasattr(v, "toArray") else [v] for v in found], np.float64)
        if self.weights is not None:
            return values @ self.weights.T
        return values[:, -1:] if self.width == 1 else values

    def _schema(self) -> Any:
        """The types of the table's columns for Spark."""
        types = require("pyspark.sql.types", "spark")
        text = [any(isinstance(v, str) for v in c.labels or ()) for c in self.columns]
        kinds = [types.StringType() if t else types.DoubleType() for t in text]
        return types.StructType([types.StructField(c.name, k) for c, k in zip(self.columns, kinds, strict=True)])

    def _records(self, matrix: Array) -> list[tuple[Any, ...]]:
        given = [_as_given(matrix[:, j], c, self.missing[j]) for j, c in enumerate(self.columns)]
        return list(zip(*given, strict=True))


_NEVER_SEEN = "a label that no table holds"


def _as_given(codes: Array, column: Column, missing: Missing) -> list[Any]:
    """A column as Spark reads it: text for labels, null or NaN for missing values."""
    nothing = None if missing == "null" or column.labels is not None else float("nan")
    if column.missing_value is not None:
        nothing = column.missing_value
    if column.labels is None:
        return [nothing if v != v else v for v in codes.tolist()]
    labels: Sequence[Any] = labels_in_spark(column)
    other = _NEVER_SEEN if isinstance(labels[0], str) else float(max(labels)) + 1.0
    return [None if c != c else other if c < 0 else labels[int(c)] for c in codes.tolist()]
