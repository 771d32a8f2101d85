"""What converters write of the table's models, read back: how many convert, import and agree with onnxruntime.

    cd tests
    python -m conformance.onnx_table                 # counts for each library, and what is refused
    python -m conformance.onnx_table AdaBoost SVC    # rows whose name holds one of these

skl2onnx writes scikit-learn's models, onnxmltools those of XGBoost and LightGBM, CatBoost and torch write their own.
"""

from __future__ import annotations

import contextlib
import io
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import gigrad as gig
from gigrad.testing import check_importer

from .row import Row
from .table import ROWS

Converted = tuple[Any, Any]  # an onnx.ModelProto, and the table as it takes it


@dataclass(frozen=True)
class Outcome:
    """What became of a row.

    Attributes
    ----------
    step : str
        "not converted", "refused" (by name, with a reason), "differs" or "agrees".
    why : str
        The message of whoever said no.
    """

    row: Row
    step: str
    why: str = ""


def outcome(row: Row) -> Outcome:
    """Build a row's model, convert it, import what was written and compare."""
    quiet = contextlib.ExitStack()
    with quiet, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        quiet.enter_context(contextlib.redirect_stdout(io.StringIO()))
        model, table = row.build()
        try:
            written, given = CONVERTERS[row.library](model, table)
        except Exception as error:  # converters raise whatever they stumble over
            return Outcome(row, "not converted", said(error))
        try:
            check_importer(written, given)
        except (gig.UnsupportedModelError, gig.CorruptModelError) as error:
            return Outcome(row, "refused", said(error))
        except Exception as error:  # a difference, or a fault of the importer
            return Outcome(row, "differs", said(error))
    return Outcome(row, "agrees")


def said(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


# ---------------------------------------------------------------- converters


def by_skl2onnx(model: Any, table: Any) -> Converted:
    from skl2onnx import to_onnx

    given = in_single(table)
    return to_onnx(model, given[:1], options={id(model): {"zipmap": False}} if several(model) else None), given


def several(model: Any) -> bool:
    """Whether a classifier has several targets or labels, for which skl2onnx writes a ZipMap that cannot run."""
    labels = getattr(getattr(model, "_label_binarizer", None), "y_type_", "")
    return np.ndim(getattr(model, "n_classes_", 0)) > 0 or labels == "multilabel-indicator"


def in_single(table: Any) -> Any:
    """The table with float32 numbers, which is what models in files are asked with.

    A frame of numbers alone is one matrix: what skl2onnx writes of a model with an input for each column is either
    nothing or, for a few, something that reads the first column alone.
    """
    if isinstance(table, np.ndarray) or (table.dtypes == np.float64).all():
        return np.asarray(table, np.float32)
    numbers = table.select_dtypes("float64").columns
    return table.astype(dict.fromkeys(numbers, np.float32) | dict.fromkeys(table.select_dtypes("category"), object))


def by_onnxmltools(name: str) -> Callable[[Any, Any], Converted]:
    def convert(model: Any, table: Any) -> Converted:
        import onnxmltools
        from onnxmltools.convert.common.data_types import FloatTensorType

        given = in_single(table)
        kinds = [("input", FloatTensorType([None, given.shape[1]]))]
        return getattr(onnxmltools, f"convert_{name}")(model, initial_types=kinds), np.asarray(given, np.float64)

    return convert


def by_catboost(model: Any, table: Any) -> Converted:
    import onnx

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        model.save_model(str(path), format="onnx")
        return onnx.load(str(path)), np.asarray(table, np.float64)


def by_torch(model: Any, table: Any) -> Converted:
    import onnx
    import torch

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "net.onnx"
        rows = torch.zeros(1, table.shape[1])
        torch.onnx.export(model, (rows,), str(path), dynamo=False, input_names=["x"], dynamic_axes={"x": {0: "n"}})
        return onnx.load(str(path)), table


CONVERTERS: dict[str, Callable[[Any, Any], Converted]] = {
    "XGBoost": by_onnxmltools("xgboost"),
    "LightGBM": by_onnxmltools("lightgbm"),
    "CatBoost": by_catboost,
    "scikit-learn": by_skl2onnx,
    "PyTorch": by_torch,
}


# ---------------------------------------------------------------- counts


def main(parts: list[str]) -> None:
    counts: dict[str, Counter[str]] = {library: Counter() for library in CONVERTERS}
    for row in ROWS:
        if row.library in CONVERTERS and (not parts or any(p in row.name for p in parts)):
            found = outcome(row)
            counts[row.library][found.step] += 1
            if found.step != "agrees" or parts:
                print(f"{found.step:14}{row.library}: {row.name}: {found.why[:240]}", flush=True)
    steps = ("not converted", "agrees", "refused", "differs")
    print(f"\n{'':14}" + "".join(f"{s:>15}" for s in ("rows", "converted", *steps[1:])))
    for library, counted in counts.items():
        total = sum(counted.values())
        numbers = (total, total - counted["not converted"], *(counted[s] for s in steps[1:]))
        print(f"{library:14}" + "".join(f"{n:15}" for n in numbers))


if __name__ == "__main__":
    main(sys.argv[1:])
