"""A fitted Spark pipeline as a graph over the raw columns of the DataFrame.

The columns that the model reads are traced back through the stages that make them; stages on which the model does not
depend are ignored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...errors import UnsupportedModelError
from ...graph import Column, Graph
from ..pipeline.importer import behind
from ..pipeline.labels import Encode
from ..pipeline.raw import objects
from ..pipeline.steps import Impute, Present, Refused, Step
from ..pipeline.table import Derived, run
from .columns import TRANSFORMERS, Cells, Missing, Reading, then
from .models import MODELS, Read
from .stages import Stage, fitted_as

_ASIDE = ("IndexToString", "ColumnPruner")  # models do not depend on them


@dataclass(frozen=True, eq=False)
class Pipeline:
    """The result of reading a pipeline.

    Attributes
    ----------
    graph : Graph
        Without a witness.
    stages : tuple of Stage
        Those that the model depends on, and the model, in order.
    missing : tuple of "null" or "NaN"
        The missing value of each raw column in Spark.
    """

    graph: Graph
    stages: tuple[Stage, ...]
    missing: tuple[Missing, ...]


def read_pipeline(stages: Sequence[Stage]) -> Pipeline:
    """The graph of fitted stages."""
    place = max((i for i, s in enumerate(stages) if s.kind in MODELS), default=-1)
    if place < 0:
        raise UnsupportedModelError(
            f"A Spark pipeline must have a model to be explained; this one has {_listed(stages)}. Supported are "
            f"{', '.join(sorted(map(fitted_as, MODELS)))}."
        )
    _require_columnwise(stages[:place])
    model = stages[place]
    read = MODELS[model.kind](model, _classes(stages[:place], model))
    walks = {m: _Walk(stages[:place], model, m) for m in _BOTH}
    found = walks["null"]
    _require_width(read, found, model)
    missing = tuple(
        _choose(c, {m: w.features for m, w in walks.items()}, read.graph.columns) for c in range(len(found.raw))
    )
    read_as = [_taken(walks, missing, i, read) for i in range(len(found.features))]
    pairs = zip(read.graph.columns, read_as, strict=True)
    columns = tuple(_column(c, f, j in read.nominal) for j, (c, f) in enumerate(pairs))
    features = [Derived(f.column) if _bare(f) else f for f in read_as]
    inner = replace(read.graph, columns=columns, witnesses=())
    graph = behind(inner, features, False, list(found.raw), True, (), ())
    bounded = tuple(
        replace(_within(c, found.bounds.get(j)), fill=_filled(j, found.features)) for j, c in enumerate(graph.columns)
    )
    used = tuple(stages[i] for i in sorted(found.used))
    label = f"PipelineModel({', '.join(s.name for s in (*used, model))})"
    graph = replace(graph, columns=bounded, label=label)
    return Pipeline(graph, (*used, model), tuple(m or "null" for m in missing))


_BOTH: tuple[Missing, Missing] = ("null", "NaN")


def _listed(stages: Sequence[Stage]) -> str:
    return ", ".join(s.name for s in stages) or "no stage"


def _require_columnwise(stages: Sequence[Stage]) -> None:
    """Raise for unknown stages, since the columns that they change are unknown."""
    for stage in stages:
        if stage.kind not in TRANSFORMERS and stage.kind not in _ASIDE and not stage.columns():
            raise UnsupportedModelError(_refusal(stage))


def _refusal(stage: Stage) -> str:
    """Why a stage is not supported."""
    return (
        f"The stage {stage.name} of this Spark pipeline is not supported. Supported are "
        f"{', '.join(sorted(map(fitted_as, TRANSFORMERS)))}. Apply it before the pipeline, so that "
        "the columns it makes are the variables."
    )


def _classes(stages: Sequence[Stage], model: Stage) -> list[str]:
    """The names of the classes: the labels that a StringIndexer of the pipeline numbers, or the numbers."""
    count = int(model.data.get("numClasses", 2))
    for stage in stages:
        if stage.kind == "StringIndexerModel":
            for place, (_, made) in enumerate(stage.columns()):
                labels = stage.data["labelsArray"][place]
                if made == model.params.get("labelCol") and len(labels) == count:
                    return [str(v) for v in labels]
    return [str(k) for k in range(count)]


class _Walk:
    """The model's inputs, traced back to raw columns, for one of Spark's two missing values."""

    def __init__(self, stages: Sequence[Stage], model: Stage, missing: Missing) -> None:
        self.stages, self.reading = stages, Reading(missing)
        self.raw: dict[str, int] = {}
        self.used: set[int] = set()
        self._done: dict[tuple[int, str], Cells] = {}
        self.features = tuple(f for name in _read_by(model) for f in self.cells(name, len(stages)))

    @property
    def bounds(self) -> dict[int, tuple[float, float]]:
        return self.reading.bounds

    def cells(self, name: str, end: int) -> Cells:
        """The column `name` before stage `end`, as functions of raw columns."""
        for k in range(end - 1, -1, -1):
            stage = self.stages[k]
            for place, (inputs, made) in enumerate(stage.columns()):
                if made == name:
                    return self._made(k, place, inputs, name)
        return (Derived(self.raw.setdefault(name, len(self.raw))),)

    def _made(self, k: int, place: int, inputs: Sequence[str], name: str) -> Cells:
        """The columns that stage `k` makes under one of its output names, each computed once."""
        stage = self.stages[k]
        if stage.kind in MODELS:
            raise UnsupportedModelError(
                f"The column {name!r} is made by {stage.name}: a model that reads another model is not supported. "
                "Explain the models separately, or combine them with gigrad.stack."
            )
        if stage.kind not in TRANSFORMERS:
            raise UnsupportedModelError(_refusal(stage))
        if (k, name) not in self._done:
            self.used.add(k)
            read = [self.cells(n, k) for n in inputs]
            self._done[k, name] = TRANSFORMERS[stage.kind](stage, place, read, self.reading)
        return self._done[k, name]


def _read_by(model: Stage) -> list[str]:
    """The columns that a model reads: its vector and an offset, or the list of columns of an XGBoost model."""
    several = model.params.get("features_cols")
    if several:
        return [str(v) for v in several]
    offset = model.params.get("offsetCol")
    return [str(model.params["featuresCol"]), *([str(offset)] if offset else [])]


def _require_width(read: Read, walk: _Walk, model: Stage) -> None:
    """Refuse a model that does not read as many numbers as the stages before it make."""
    if len(walk.features) == len(read.graph.columns):
        return
    vector = str(model.params.get("featuresCol"))
    if vector in walk.raw:
        raise UnsupportedModelError(
            f"{model.name} reads the column of vectors {vector!r}, which a stage of the pipeline must make, so that "
            "its columns are known. Put the stages that make it into one pipeline with the model: "
            "PipelineModel(stages=[assembler, model])."
        )
    raise UnsupportedModelError(
        f"{model.name} reads {len(read.graph.columns)} numbers, and the stages before it make {len(walk.features)} of "
        f"the columns {', '.join(walk.raw)}: one of these holds vectors, which a stage of the pipeline must make."
    )


# ---------------------------------------------------------------- missing values


def _choose(column: int, features: dict[Missing, Cells], wanted: Sequence[Column]) -> Missing | None:
    """The missing value of Spark that a raw column may have; None if null and NaN are treated differently, so that
    missing values are refused."""
    null, nan = ([_image(f, w) for f, w in zip(features[m], wanted, strict=True) if f.column == column] for m in _BOTH)
    if null == nan or None in nan:
        return "null"
    return "NaN" if None in null else None


def _image(feature: Derived, column: Column) -> float | str | None:
    """The value of a derived feature where its raw column is missing, "NaN" for NaN; None if that is an error."""
    value = objects([np.nan]) if feature.reads == "label" else np.array([np.nan])
    try:
        out = float(run(feature.steps, value)[0])
    except Refused:
        return None
    if np.isnan(out):
        return "NaN" if column.missing else None
    return out


def _taken(walks: dict[Missing, _Walk], missing: Sequence[Missing | None], i: int, read: Read) -> Derived:
    """The number `i` of the vector, with the missing value of its raw column."""
    column = walks["null"].features[i].column
    chosen = missing[column]
    feature = walks[chosen or "null"].features[i]
    if chosen is None:
        feature = Derived(column, _without_missing(feature.steps))
    if i in read.nominal and not feature.flat and not _bare(feature):
        codes = np.arange(float(read.nominal[i]))
        return then((feature,), [Encode(tuple(codes.tolist()), codes, -1.0, -1.0)])[0]
    return feature


def _without_missing(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """The steps for a raw column without missing values; a number that means a missing value is still allowed."""
    if steps and isinstance(steps[0], Impute) and steps[0].marker is not None:
        return (replace(steps[0], both=False), *steps[1:])
    return (Present(), *steps)


def _bare(feature: Derived) -> bool:
    """Whether a feature is the raw column itself, without steps that handle missing values."""
    return all(isinstance(step, Present) for step in feature.steps)


def _column(column: Column, feature: Derived, nominal: bool) -> Column:
    """The model's column, which refuses missing values if it is a raw number."""
    missing = column.missing and not (_bare(feature) and feature.steps)
    return replace(column, missing=missing, kind="category" if nominal else column.kind)


def _within(column: Column, bounds: tuple[float, float] | None) -> Column:
    """A column whose values must lie within bounds."""
    if bounds is None:
        return column
    low, high = bounds
    return replace(column, least=low if np.isfinite(low) else None, most=high if np.isfinite(high) else None)


def _filled(column: int, features: Cells) -> float | None:
    """The number by which an Imputer replaces a missing value, before it is cast to the type of the column.

    None if the column has no Imputer, or one whose number is the same in every type; NaN if it is also read without it.
    """
    steps = [f.steps[:1] for f in features if f.column == column]
    fills = {float(s[0].fill) if s and isinstance(s[0], Impute) else None for s in steps}
    numbers = [v for v in fills if v is not None]
    if not numbers or all(v == np.trunc(v) == np.float32(v) for v in numbers):
        return None
    return numbers[0] if len(fills) == 1 else np.nan


def labels_in_spark(column: Column) -> list[Any]:
    """The text that Spark reads for each label of a column; a number stands for the text before it."""
    texts = [v for v in column.labels or () if isinstance(v, str)]
    return [texts[i % len(texts)] if texts else v for i, v in enumerate(column.labels or ())]
