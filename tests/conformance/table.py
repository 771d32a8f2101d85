"""The one table of models that gigrad imports. It drives the conformance tests and the support tables of the docs.

To add a kind of model, add a `Row` to one of the lists below (or a list of a new library). Reading the table imports no
model library; `row.build()` does.
"""

from __future__ import annotations

from . import (
    rows_catboost,
    rows_encoders,
    rows_feature_engine,
    rows_glum,
    rows_interpret,
    rows_keras,
    rows_lightgbm,
    rows_onnx,
    rows_scorecards,
    rows_segments,
    rows_sklearn_maps,
    rows_sklearn_meta,
    rows_sklearn_pipelines,
    rows_sklearn_smooth,
    rows_sklearn_trees,
    rows_statsmodels,
    rows_survival,
    rows_torch,
    rows_xgboost,
)
from .row import Row

ROWS: tuple[Row, ...] = (
    *rows_xgboost.ROWS,
    *rows_lightgbm.ROWS,
    *rows_catboost.ROWS,
    *rows_sklearn_trees.ROWS,
    *rows_sklearn_smooth.ROWS,
    *rows_torch.ROWS,
    *rows_keras.ROWS,
    *rows_onnx.ROWS,
    *rows_scorecards.ROWS,
    *rows_segments.ROWS,
    *rows_interpret.ROWS,
    *rows_statsmodels.ROWS,
    *rows_glum.ROWS,
    *rows_survival.ROWS,
    *rows_encoders.ROWS,
    *rows_feature_engine.ROWS,
    *rows_sklearn_pipelines.ROWS,
    *rows_sklearn_maps.ROWS,
    *rows_sklearn_meta.ROWS,
)
