"""Model files: read without running code from them, or refused with the reason.

The tree libraries' own readers crash the whole process on many damaged files. So some formats are checked here first
(the binary JSON of XGBoost, the text of LightGBM), and then every file is read in a child process, where the model is
imported and makes a prediction; only if that succeeds is it read in this process. scikit-learn models are read from
skops files, whose types are checked against a list; a pickle runs code when it is loaded, and is refused unless
`trust_pickle` is given.
"""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ... import portable
from ..._common.log import logger
from ..._common.optional import require
from ...errors import CorruptModelError, InputError, UnsupportedModelError
from ...importers import import_model
from ...importers.scorecards import Scorecard
from ..tables import Rows
from .keras_archive import load_keras
from .lightgbm_text import check_lightgbm
from .rehearsal import prepare, rehearse
from .spark_folder import is_spark_folder, load_spark
from .ubj import read_ubj

_log = logger("models")
_PICKLES = (".pkl", ".pickle", ".joblib", ".sav", ".dill")
_SCORECARDS = (".csv", ".toml", ".pmml", ".xml")  # text that Python reads, so no child is needed
_TORCH = (".pt", ".pth", ".ckpt", ".safetensors")
# Parts of scikit-learn's models that skops does not list, and that only hold numbers and settings.
TRUSTED = (
    "numpy.dtype",
    "scipy._lib.array_api_compat.numpy._aliases.asarray",
    "scipy.interpolate._bsplines.BSpline",
    "sklearn._loss.loss.HalfTweedieLossIdentity",
    "sklearn.calibration._CalibratedClassifier",
    "sklearn.calibration._SigmoidCalibration",
    "sklearn.calibration._TemperatureScaling",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    *(f"sklearn.gaussian_process.kernels.{name}" for name in (
        "CompoundKernel", "ConstantKernel", "DotProduct", "ExpSineSquared", "Exponentiation", "Matern", "Product",
        "RBF", "RationalQuadratic", "Sum", "WhiteKernel",
    )),
    "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
    "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
    "sklearn.tree._tree.Tree",
)  # fmt: skip
_PICKLE_WARNING = (
    "is a pickle, and loading a pickle runs whatever code its author put into it. Save scikit-learn models with skops "
    "instead (skops.io.dump(model, 'model.skops')), tree models in their library's own format, or any explainer as a "
    ".gig file. If you trust where this file came from as you trust the code you run, say so: trust_pickle=True "
    "(--trust-pickle)."
)


@dataclass(frozen=True)
class Kind:
    """One kind of model file: its name, the package and extra that read it, and how."""

    name: str
    package: str
    extra: str
    load: Callable[[Path], Any]


def load_model(path: str | os.PathLike[str], *, trust_pickle: bool = False, trusted: Sequence[str] = ()) -> Any:
    """Read a model from a file, for `explain` and `Explainer`.

    Parameters
    ----------
    path : path
        XGBoost .json or .ubj, LightGBM .txt, CatBoost .cbm or .json, Keras .keras, ONNX .onnx, skops .skops for
        scikit-learn, scorecards .csv, .toml and .pmml, gigrad .gig (also for torch nets: save the result of
        `import_model`), the folder of a saved Spark PipelineModel.
    trust_pickle : bool
        Load pickle and joblib files, which run code. Only for files you trust as you trust the code you run.
    trusted : sequence of str
        Types in a .skops file that may be built, beside those that skops trusts and `TRUSTED`.

    Raises
    ------
    CorruptModelError
        For a damaged file.
    UnsupportedModelError
        For a file of a kind that is not read, or that holds a model that cannot be imported.
    """
    path = Path(path)
    if not path.is_file() and not is_spark_folder(path):
        what = "is a folder that Spark ML has not written" if path.is_dir() else "does not exist"
        raise InputError(f"A model must be a file, or the folder of a saved Spark pipeline; {path} {what}.")
    suffix = path.suffix.lower()
    _log.info("reading %s", path)
    if suffix == portable.SUFFIX:
        return portable.load_graph(path)
    if suffix in _PICKLES:
        return _load_pickle(path, trust_pickle)
    if suffix in _TORCH:
        raise UnsupportedModelError(
            f"{path} holds the weights of a torch module without its structure. Build the module in Python, load the "
            "weights, and save the imported graph: gigrad.import_model(module).save('net.gig')."
        )
    if suffix in _SCORECARDS:
        return Scorecard.read(path)
    kind = _kind(path, trusted)
    prepare(kind.package)
    require(kind.package, kind.extra)
    rehearse(path, kind.name, trusted)
    return kind.load(path)


def try_file(path: Path, trusted: Sequence[str]) -> None:
    """In the child process: read a file, import the model and predict on zeros and on missing values."""
    graph = import_model(_kind(path, trusted).load(path))
    rows = np.zeros((2, len(graph.columns)))
    rows[1, [c.missing for c in graph.columns]] = np.nan
    labelled = [j for j, c in enumerate(graph.columns) if c.labels]
    table: Any = rows.astype(object) if labelled else rows
    for j in labelled:
        told = slice(0, 1) if graph.columns[j].missing else slice(None)  # CatBoost refuses a number for a category
        table[told, j] = (graph.columns[j].labels or (0,))[0]
    read = Rows(rows, table, graph.feature_names)
    for witness in graph.witnesses:
        if witness.source is None:
            witness.predict(read)


def _kind(path: Path, trusted: Sequence[str]) -> Kind:
    """The kind of a file, by its ending and its first bytes."""
    if path.is_dir():
        return _SPARK
    suffix = path.suffix.lower()
    if suffix == ".json":
        return _XGBOOST if _json_key(path) == "learner" else _CATBOOST_JSON
    if suffix == ".skops":
        return Kind("skops", "skops.io", "skops", lambda p: _load_skops(p, trusted))
    if suffix == ".txt" and path.read_bytes()[:5] != b"tree\n":
        raise UnsupportedModelError(f"{path} must be a LightGBM model, which begins with the line 'tree'; it does not.")
    found = {".ubj": _XGBOOST, ".txt": _LIGHTGBM, ".cbm": _CATBOOST, ".keras": _KERAS, ".onnx": _ONNX}.get(suffix)
    if found is None:
        raise UnsupportedModelError(
            f"{path} has an ending that is not known for a model: XGBoost .json or .ubj, LightGBM .txt, CatBoost .cbm "
            "or .json, Keras .keras, ONNX .onnx, skops .skops, scorecards .csv, .toml or .pmml, gigrad .gig; or the "
            "folder of a saved Spark pipeline."
        )
    return found


def _json_key(path: Path) -> str:
    """ "learner" for XGBoost's JSON, "features_info" for CatBoost's."""
    try:
        content = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise CorruptModelError(f"{path} must be a model in JSON; it is not JSON ({error}).") from None
    for key in ("learner", "features_info"):
        if isinstance(content, dict) and key in content:
            return key
    raise UnsupportedModelError(f"{path} is JSON, but neither a model of XGBoost nor one of CatBoost.")


def _load_xgboost(path: Path) -> Any:
    """The scikit-learn wrapper if one was saved (it predicts with its best iteration), else a Booster (all trees)."""
    xgboost = require("xgboost", "xgboost")
    data = path.read_bytes()
    content = read_ubj(data) if path.suffix.lower() == ".ubj" else json.loads(data)
    _refuse_newer_xgboost(path, content, xgboost.__version__)
    if path.suffix.lower() == ".ubj":
        data = json.dumps(content).encode()
    booster = xgboost.Booster()
    booster.load_model(bytearray(data))
    wrapper = json.loads(booster.attributes().get("scikit_learn") or "{}").get("_estimator_type")
    if wrapper in ("classifier", "regressor", "ranker"):
        names = {"classifier": "XGBClassifier", "regressor": "XGBRegressor", "ranker": "XGBRanker"}
        model = getattr(xgboost, names[wrapper])()
        model.load_model(bytearray(data))
        return model
    return booster


def _refuse_newer_xgboost(path: Path, content: Any, installed: str) -> None:
    """Raise for a file of a newer XGBoost, which may be misread silently: 2.0 loses the base_score of 3.1."""
    saved = content.get("version") if isinstance(content, dict) else None
    if not isinstance(saved, list) or not saved or not all(type(part) is int for part in saved):
        raise CorruptModelError(f"{path} must say which version of XGBoost saved it, in 'version'; got {saved!r}.")
    if tuple(saved[:2]) > tuple(int(part) for part in installed.split(".")[:2]):
        needed = ".".join(map(str, saved))
        raise UnsupportedModelError(
            f"{path} must have been saved by the installed XGBoost, {installed}, or an older one: newer ones can be "
            f"misread; it was saved by {needed}. Install xgboost>={needed}."
        )


def _load_lightgbm(path: Path) -> Any:
    check_lightgbm(path.read_bytes())
    return require("lightgbm", "lightgbm").Booster(model_file=str(path))


def _load_catboost(path: Path, format: str) -> Any:
    """A classifier if its loss is one of classification, else a regressor: they predict differently."""
    catboost = require("catboost", "catboost")
    plain = catboost.CatBoost()
    plain.load_model(str(path), format=format)
    loss = str(plain.get_all_params().get("loss_function", ""))
    kind = catboost.CatBoostClassifier if loss.startswith(_CLASSIFY) else catboost.CatBoostRegressor
    model = kind()
    model.load_model(str(path), format=format)
    return model


_CLASSIFY = ("Logloss", "CrossEntropy", "MultiClass", "MultiLogloss", "MultiCrossEntropy")
_XGBOOST = Kind("XGBoost", "xgboost", "xgboost", _load_xgboost)


def _load_onnx(path: Path) -> Any:
    """The ONNX model in the file alone: external data files are never opened."""
    onnx = require("onnx", "onnx")
    try:
        return onnx.load_model_from_string(path.read_bytes())
    except Exception as error:  # protobuf's own class of errors, which is not a ValueError
        raise CorruptModelError(f"{path} must be an ONNX model; it cannot be read ({error}).") from None


_LIGHTGBM = Kind("LightGBM", "lightgbm", "lightgbm", _load_lightgbm)
_CATBOOST = Kind("CatBoost", "catboost", "catboost", lambda p: _load_catboost(p, "cbm"))
_KERAS = Kind("Keras", "h5py", "keras", load_keras)
_SPARK = Kind("gigrad", "pyarrow.parquet", "spark", load_spark)
_ONNX = Kind("ONNX", "onnx", "onnx", _load_onnx)
_CATBOOST_JSON = Kind("CatBoost", "catboost", "catboost", lambda p: _load_catboost(p, "json"))


def _load_skops(path: Path, trusted: Sequence[str]) -> Any:
    """The model in a .skops file, if all types in it are known to be harmless or are trusted by name."""
    io = require("skops.io", "skops")
    allowed = (*TRUSTED, *trusted)
    unknown = [name for name in io.get_untrusted_types(file=str(path)) if name not in allowed]
    if unknown:
        harmful = [name for name in unknown if not _is_estimator(name)]
        said = f"{path} holds types that skops does not know to be harmless: {', '.join(unknown)}."
        if harmful:
            raise UnsupportedModelError(
                f"{said} {', '.join(harmful)}: not part of a known model library, and building it may run any code. "
                "Ask the file's author what it is for, or get the model from somewhere else."
            )
        raise UnsupportedModelError(
            f"{said} They are models of installed libraries; if they are meant to be in the file, allow them by name: "
            f"trusted=[...] (--trust {' --trust '.join(unknown)})."
        )
    return io.load(str(path), trusted=list(allowed))


def _is_estimator(name: str) -> bool:
    """Whether a name is a model class of a library that gigrad reads: a message suggests trust for these alone. Only
    modules of these libraries are imported to find out."""
    module, _, own = name.rpartition(".")
    if module.partition(".")[0] not in ("sklearn", "xgboost", "lightgbm", "catboost"):
        return False
    try:
        found = getattr(importlib.import_module(module), own, None)
    except ImportError:
        return False
    base = require("sklearn.base", "sklearn").BaseEstimator
    return isinstance(found, type) and issubclass(found, base)


def _load_pickle(path: Path, trust: bool) -> Any:
    """The model in a pickle or .joblib file, only if the caller trusts it: unpickling may run any code."""
    if not trust:
        raise UnsupportedModelError(f"{path} {_PICKLE_WARNING}")
    import pickle

    try:
        if path.suffix.lower() == ".joblib":
            return require("joblib", "sklearn").load(path)
        with open(path, "rb") as file:
            return pickle.load(file)
    except (pickle.UnpicklingError, EOFError, AttributeError, ImportError, IndexError, ValueError, KeyError) as error:
        raise CorruptModelError(f"{path} cannot be unpickled here: {type(error).__name__}: {error}") from None
