"""The stages of a fitted Spark pipeline as plain data: their classes, settings and fitted parameters.

Read here from live objects, through Spark's own classes; `_io.modelfiles.spark_folder` reads the same from a saved one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import UnsupportedModelError
from ...graph import Array

Nodes = Sequence[Mapping[str, Any]]
"""The nodes of a tree as Spark saves them: id, prediction, impurityStats, leftChild, rightChild, split."""


@dataclass(frozen=True, eq=False)
class Stage:
    """One stage of a pipeline.

    Attributes
    ----------
    kind : str
        The name of its class, "StringIndexerModel".
    params : mapping
        Its settings, defaults included.
    data : mapping
        Its fitted parameters, under the names of Spark's own attributes.
    made : object
        The live stage, for predictions; None for one that was read from a folder.
    """

    kind: str
    params: Mapping[str, Any]
    data: Mapping[str, Any]
    made: Any = None

    @property
    def name(self) -> str:
        """The name of the estimator class that was fitted, for messages."""
        return fitted_as(self.kind)

    def columns(self) -> list[tuple[tuple[str, ...], str]]:
        """For each output column, the columns that it is made from, and its name; empty for a model."""
        get = self.params.get
        several, one = get("inputCols"), get("inputCol")
        if self.kind in _JOINS:
            return [(tuple(several or (one,)), str(get("outputCol")))]
        if several:
            made = get("outputCols") or several
            return [((str(a),), str(b)) for a, b in zip(several, made, strict=True)]
        return [((str(one),), str(get("outputCol")))] if one else []


def fitted_as(kind: str) -> str:
    """The estimator class of a model class: GBTClassifier for GBTClassificationModel."""
    name = kind.removesuffix("Model")
    if name.endswith("Classification"):
        return name.removesuffix("ication") + "ier"
    return name.removesuffix("ion") + "or" if name.startswith(("DecisionTree", "RandomForest", "GBT")) else name


_JOINS = ("VectorAssembler", "Interaction", "FeatureHasher")


def stages_of(model: Any) -> list[Stage]:
    """The stages of a fitted PipelineModel, with nested pipelines replaced by their stages."""
    return [read_stage(stage) for stage in _flat(model)]


def _flat(model: Any) -> Iterator[Any]:
    """The fitted stages, of inner pipelines and of the best model of a search as well."""
    name = type(model).__name__
    if name in ("CrossValidatorModel", "TrainValidationSplitModel"):
        yield from _flat(model.bestModel)
    elif name == "PipelineModel":
        for stage in model.stages:
            yield from _flat(stage)
    else:
        yield model


def read_stage(made: Any) -> Stage:
    """One stage as plain data."""
    if isinstance(getattr(made, "_java_obj", None), str) or hasattr(made, "_remote_model_obj"):
        raise UnsupportedModelError(
            "The parameters of a pipeline cannot be read through Spark Connect. Save the PipelineModel and read its "
            "folder with the command line (gigrad explain, gigrad save)."
        )
    kind = type(made).__name__
    params = {p.name: made.getOrDefault(p) for p in made.params if made.isDefined(p)}
    reader = _LEARNT.get(kind)
    return Stage(kind, params, {} if reader is None else reader(made), made)


def _attributes(*names: str) -> Callable[[Any], dict[str, Any]]:
    return lambda made: {name: _plain(getattr(made, name)) for name in names}


def _plain(value: Any) -> Any:
    """Spark's vectors and matrices as arrays."""
    return np.asarray(value.toArray(), np.float64) if hasattr(value, "toArray") else value


def _surrogates(made: Any) -> dict[str, Any]:
    return {"surrogate": made.surrogateDF.first().asDict()}


def _category_maps(made: Any) -> dict[str, Any]:
    found = {int(k): {float(a): float(b) for a, b in v.items()} for k, v in made.categoryMaps.items()}
    return {"categoryMaps": found, "numFeatures": made.numFeatures}


def _ensemble(made: Any) -> dict[str, Any]:
    """What a live model of trees has: its nodes, weights and numbers of features and classes."""
    java = made._java_obj
    single = not hasattr(made, "treeWeights")
    trees = [java] if single else list(java.trees())
    weights: Array = np.ones(1) if single else np.asarray(made.treeWeights, np.float64)
    found: dict[str, Any] = {"trees": _nodes(trees), "treeWeights": weights, "numFeatures": made.numFeatures}
    return {**found, "numClasses": made.numClasses} if hasattr(made, "numClasses") else found


def _nodes(trees: Sequence[Any]) -> list[Nodes]:
    """The nodes of trees, as Spark would save them; reading node by node through py4j takes a hundred times as long.

    They are converted to JSON from the fields of Spark's records only, since these also have getter-like methods that
    fail on leaves.
    """
    from pyspark import SparkContext

    jvm: Any = SparkContext._active_spark_context._jvm  # the Spark context of the model
    jackson = jvm.com.fasterxml.jackson
    mapper = jackson.databind.ObjectMapper()
    accessor, visible = jackson.annotation.PropertyAccessor, getattr(jackson.annotation, "JsonAutoDetect$Visibility")
    mapper.setVisibility(accessor.ALL, visible.NONE)
    mapper.setVisibility(accessor.FIELD, visible.ANY)
    records = getattr(getattr(jvm.org.apache.spark.ml.tree, "DecisionTreeModelReadWrite$NodeData$"), "MODULE$")
    as_java = jvm.scala.jdk.javaapi.CollectionConverters.asJava
    return [json.loads(mapper.writeValueAsString(as_java(records.build(t.rootNode(), 0)._1()))) for t in trees]


def _boosted(made: Any) -> dict[str, Any]:
    return {"model": made._xgb_sklearn_model}


_LINEAR = _attributes("coefficients", "intercept")
_LEARNT: dict[str, Callable[[Any], dict[str, Any]]] = {
    "StringIndexerModel": _attributes("labelsArray"),
    "OneHotEncoderModel": _attributes("categorySizes"),
    "ImputerModel": _surrogates,
    "StandardScalerModel": _attributes("mean", "std"),
    "MinMaxScalerModel": _attributes("originalMin", "originalMax"),
    "MaxAbsScalerModel": _attributes("maxAbs"),
    "RobustScalerModel": _attributes("range", "median"),
    "VectorIndexerModel": _category_maps,
    "LogisticRegressionModel": _attributes("coefficientMatrix", "interceptVector", "numClasses"),
    "LinearRegressionModel": _LINEAR,
    "GeneralizedLinearRegressionModel": _LINEAR,
    "DecisionTreeClassificationModel": _ensemble,
    "DecisionTreeRegressionModel": _ensemble,
    "RandomForestClassificationModel": _ensemble,
    "RandomForestRegressionModel": _ensemble,
    "GBTClassificationModel": _ensemble,
    "GBTRegressionModel": _ensemble,
    "SparkXGBClassifierModel": _boosted,
    "SparkXGBRegressorModel": _boosted,
    "SparkXGBRankerModel": _boosted,
}
