"""Saved Spark pipelines, read without Spark: a folder of JSON metadata and Parquet files, stage by stage.

    metadata/part-*            {"class": "org.apache.spark.ml.PipelineModel", "paramMap": {"stageUids": [...]}}
    stages/0_<uid>/metadata/   {"class": ..., "paramMap": ..., "defaultParamMap": ...}
    stages/0_<uid>/data/       the fitted parameters of the stage, as Parquet

Nothing outside of the folder is opened, and sizes are limited to what a pipeline may reasonably hold.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from ..._common.optional import require
from ...errors import CorruptModelError, GigradError, UnsupportedModelError
from ...graph import Array, Graph
from ...importers.spark.pipeline import read_pipeline
from ...importers.spark.stages import Stage

_MOST_BYTES = 2 * 2**30  # of all files of a stage, unpacked
_MOST_DEPTH = 8  # pipelines in pipelines
_PIPELINES = ("PipelineModel", "CrossValidatorModel", "TrainValidationSplitModel")


def is_spark_folder(path: Path) -> bool:
    """Whether a folder looks like something that Spark ML has saved."""
    return path.is_dir() and (path / "metadata").is_dir()


def load_spark(path: Path) -> Graph:
    """The graph of a saved PipelineModel; it has no witness, since Spark is not used."""
    require("pyarrow.parquet", "spark")
    try:
        return read_pipeline(list(_stages(path, 0))).graph
    except GigradError:
        raise
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, OSError, RecursionError) as error:
        said = " ".join(str(error).split())
        raise CorruptModelError(
            f"{path} must be a whole saved Spark pipeline; it is not ({type(error).__name__}: {said:.200})."
        ) from None


def _stages(path: Path, depth: int) -> Iterator[Stage]:
    """The stages of a saved pipeline, or the one stage that a folder holds."""
    if depth > _MOST_DEPTH:
        raise CorruptModelError(f"{path} holds pipelines in pipelines, more than {_MOST_DEPTH} deep.")
    told = _metadata(path)
    kind = str(told["class"]).rpartition(".")[2]
    if kind == "PipelineModel":
        for place, uid in enumerate(told["paramMap"]["stageUids"]):
            yield from _stages(_inside(path / "stages", _stage_name(path, place, str(uid))), depth + 1)
    elif kind in _PIPELINES:
        yield from _stages(_inside(path, "bestModel"), depth + 1)
    else:
        params = {**told.get("defaultParamMap", {}), **told.get("paramMap", {})}
        reader = _LEARNT.get(kind)
        yield Stage(kind, params, {} if reader is None else reader(_Saved(path, told, params)))


def _stage_name(path: Path, place: int, uid: str) -> str:
    """The folder of a stage: its number, with as many zeros as the last one needs, and its uid."""
    found = [f.name for f in (path / "stages").iterdir() if f.name.partition("_")[2] == uid]
    if len(found) != 1 or int(found[0].partition("_")[0]) != place:
        raise CorruptModelError(f"{path} must hold one folder for its stage {place}, {uid!r}; it has {len(found)}.")
    return found[0]


def _inside(folder: Path, name: str) -> Path:
    """A folder of the saved pipeline, directly inside of it and not a link."""
    path = folder / name
    if Path(name).name != name or path.is_symlink() or not path.is_dir():
        raise CorruptModelError(f"{path} must be a folder of the saved pipeline; it does not exist, or is a link.")
    return path


def _parts(path: Path, name: str) -> list[Path]:
    """The part files that Spark has written to the folder `name`, in order."""
    folder = _inside(path, name)
    files = sorted(f for f in folder.iterdir() if f.name.startswith("part-"))
    if not files or any(f.is_symlink() or not f.is_file() for f in files):
        raise CorruptModelError(f"{folder} must hold the files that Spark wrote; it holds none, or links.")
    if sum(f.stat().st_size for f in files) > _MOST_BYTES:
        raise CorruptModelError(f"{folder} must be under {_MOST_BYTES >> 30} GiB.")
    return files


def _metadata(path: Path) -> Mapping[str, Any]:
    """The JSON that Spark saves beside each stage: its class and parameters."""
    text = "".join(f.read_text("utf-8") for f in _parts(path, "metadata"))
    told = json.loads(text)
    if not isinstance(told, dict) or not isinstance(told.get("class"), str):
        raise CorruptModelError(f"{path} must state its class; its metadata does not.")
    return told


class _Saved:
    """The saved parameters of one stage."""

    def __init__(self, path: Path, told: Mapping[str, Any], params: Mapping[str, Any]) -> None:
        self.path, self.told, self.params = path, told, params

    def rows(self, name: str = "data") -> list[dict[str, Any]]:
        """The rows of the stage's Parquet data."""
        parquet = require("pyarrow.parquet", "spark")
        out: list[dict[str, Any]] = []
        for file in _parts(self.path, name):
            content = parquet.ParquetFile(file)
            meta = content.metadata
            if sum(meta.row_group(i).total_byte_size for i in range(meta.num_row_groups)) > _MOST_BYTES:
                self.fail(f"claims more than {_MOST_BYTES >> 30} GiB in {file.name}")
            out += content.read().to_pylist()
        return out

    def row(self) -> dict[str, Any]:
        """The only row of its data; most stages save one."""
        found = self.rows()
        if len(found) != 1:
            self.fail(f"must have saved one row; it has {len(found)}")
        return found[0]

    def fail(self, what: str) -> NoReturn:
        raise CorruptModelError(f"{self.path.name} of this Spark pipeline is damaged: it {what}.")


# ---------------------------------------------------------------- vectors and matrices


def _plain(value: Any) -> Any:
    """Spark's vectors and matrices as arrays; anything else as it is."""
    if not isinstance(value, dict) or "values" not in value:
        return value
    if "numRows" in value:
        return _matrix(value)
    numbers = np.asarray(value["values"], np.float64)
    if value["type"] == 1:
        return numbers
    out = np.zeros(_size(value["size"]))
    out[value["indices"]] = numbers
    return out


def _matrix(value: dict[str, Any]) -> Array:
    """A Spark matrix, dense or sparse, by rows or by columns."""
    rows, columns = _size(value["numRows"]), _size(value["numCols"])
    numbers, turned = np.asarray(value["values"], np.float64), bool(value["isTransposed"])
    if value["type"] == 1:
        return numbers.reshape(rows, columns) if turned else numbers.reshape(columns, rows).T
    out = np.zeros((rows, columns))
    lines = np.repeat(np.arange(len(value["colPtrs"]) - 1), np.diff(value["colPtrs"]))
    places = (lines, value["rowIndices"]) if turned else (value["rowIndices"], lines)
    out[places] = numbers
    return out


def _size(given: Any) -> int:
    """The length that a vector or matrix claims, within reason."""
    size = int(given)
    if not 0 <= size <= 1 << 24:
        raise CorruptModelError(f"A vector of a Spark pipeline must have up to {1 << 24} numbers; one claims {size}.")
    return size


# ---------------------------------------------------------------- fitted parameters of stages


def _fields(*names: str) -> Callable[[_Saved], dict[str, Any]]:
    """A reader of stages that save one row with these fields."""

    def read(saved: _Saved) -> dict[str, Any]:
        row = saved.row()
        return {name: _plain(row[name]) for name in names}

    return read


def _labels(saved: _Saved) -> dict[str, Any]:
    row = saved.row()
    return {"labelsArray": row["labelsArray"] if "labelsArray" in row else [row["labels"]]}  # before Spark 3


def _surrogates(saved: _Saved) -> dict[str, Any]:
    return {"surrogate": saved.row()}


def _category_maps(saved: _Saved) -> dict[str, Any]:
    """What a VectorIndexer saves: for each column its values and their codes."""
    row = saved.row()
    maps = dict(row["categoryMaps"])
    return {
        "categoryMaps": {int(k): {float(a): float(b) for a, b in dict(v).items()} for k, v in maps.items()},
        "numFeatures": int(row["numFeatures"]),
    }


def _trees(saved: _Saved) -> dict[str, Any]:
    """What tree models save: nodes by tree, and the weights of the trees."""
    told = saved.told
    rows = saved.rows()
    if "nodeData" in rows[0]:
        about = {int(_either(r, "treeID", "_1")): r for r in saved.rows("treesMetadata")}
        weights = np.array([float(_either(about[t], "weights", "_3")) for t in sorted(about)])
        grouped: dict[int, list[Any]] = {t: [] for t in sorted(about)}
        for row in rows:
            grouped[int(row["treeID"])].append(row["nodeData"])
        trees = [sorted(nodes, key=_number) for nodes in grouped.values()]
    else:
        trees, weights = [sorted(rows, key=_number)], np.ones(1)
    if not all(trees):
        saved.fail("has a tree without nodes")
    found: dict[str, Any] = {"trees": trees, "treeWeights": weights, "numFeatures": int(told["numFeatures"])}
    classes = told.get("numClasses")
    if classes is not None or "Classification" in str(told["class"]):
        found["numClasses"] = int(2 if classes is None else classes)
    return found


def _either(row: Mapping[str, Any], name: str, other: str) -> Any:
    """A field that versions of Spark name in two ways."""
    return row[name] if name in row else row[other]


def _number(node: Mapping[str, Any]) -> int:
    return int(node["id"])


def _boosted(saved: _Saved) -> dict[str, Any]:
    """An XGBoost model that was trained on Spark, as an ordinary one."""
    xgboost = require("xgboost", "xgboost")
    content = "".join(f.read_text("utf-8") for f in _parts(saved.path, "model"))
    kind = str(saved.told["class"]).rpartition(".")[2]
    names = {"SparkXGBClassifierModel": "XGBClassifier", "SparkXGBRegressorModel": "XGBRegressor"}
    if kind not in names:
        raise UnsupportedModelError(f"A saved {kind} is not imported; classifiers and regressors are.")
    missing = saved.params.get("missing")
    model = getattr(xgboost, names[kind])(missing=float("nan" if missing is None else missing))
    model.load_model(bytearray(content.strip().encode()))
    return {"model": model}


_LINEAR = _fields("coefficients", "intercept")
_LEARNT: dict[str, Callable[[_Saved], dict[str, Any]]] = {
    "StringIndexerModel": _labels,
    "OneHotEncoderModel": _fields("categorySizes"),
    "ImputerModel": _surrogates,
    "StandardScalerModel": _fields("mean", "std"),
    "MinMaxScalerModel": _fields("originalMin", "originalMax"),
    "MaxAbsScalerModel": _fields("maxAbs"),
    "RobustScalerModel": _fields("range", "median"),
    "VectorIndexerModel": _category_maps,
    "LogisticRegressionModel": _fields("coefficientMatrix", "interceptVector", "numClasses"),
    "LinearRegressionModel": _LINEAR,
    "GeneralizedLinearRegressionModel": _LINEAR,
    **{
        f"{name}Model": _trees
        for name in (
            "DecisionTreeClassification", "DecisionTreeRegression", "RandomForestClassification",
            "RandomForestRegression", "GBTClassification", "GBTRegression",
        )
    },
    "SparkXGBClassifierModel": _boosted,
    "SparkXGBRegressorModel": _boosted,
    "SparkXGBRankerModel": _boosted,
}  # fmt: skip
