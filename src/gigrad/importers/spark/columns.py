"""Spark's feature transformers: each output stays a function of one raw column.

Spark has two missing values: null, which most stages pass through, and NaN, which some of them treat as a number. A
pipeline is read once for each; `Missing` says for which.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ...errors import CorruptModelError, UnsupportedModelError
from ...graph import Array
from ..pipeline.labels import Encode
from ..pipeline.pieces import before
from ..pipeline.steps import Impute, Linear, Present, Stairs, Step
from ..pipeline.table import Derived
from .stages import Stage

Missing = Literal["null", "NaN"]
Cells = tuple[Derived, ...]
"""A column of the pipeline: one number, or the numbers of a vector."""


@dataclass(frozen=True)
class Reading:
    """The missing value for which a pipeline is read, and the bounds beyond which a raw column is refused."""

    missing: Missing
    bounds: dict[int, tuple[float, float]] = field(default_factory=dict)


def then(cells: Cells, steps: Sequence[Step]) -> Cells:
    """The numbers with a step appended to each."""
    if len(cells) != len(steps):
        raise CorruptModelError(f"A stage of this Spark pipeline must read {len(steps)} numbers; got {len(cells)}.")
    return tuple(Derived(c.column, (*c.steps, s)) for c, s in zip(cells, steps, strict=True))


def _one(stage: Stage, cells: Sequence[Cells]) -> Cells:
    if len(cells[0]) != 1:
        raise UnsupportedModelError(f"{stage.name} must read a column of numbers or text; got a column of vectors.")
    return cells[0]


# ---------------------------------------------------------------- labels


def string_indexer(stage: Stage, place: int, cells: Sequence[Cells], reading: Reading) -> Cells:
    """StringIndexer: the index of a label; with "keep", unknown labels and null get the index after the last."""
    labels = [str(v) for v in stage.data["labelsArray"][place]]
    other = float(len(labels)) if stage.params["handleInvalid"] == "keep" else None
    codes = np.arange(float(len(labels)))
    known = (*labels, *_as_numbers(labels))
    return then(_one(stage, cells), [Encode(known, np.tile(codes, len(known) // len(labels)), other, other)])


def _as_numbers(labels: Sequence[str]) -> tuple[Any, ...]:
    """The labels as numbers if all are texts of numbers: Spark indexes a column of numbers by their text."""
    try:
        numbers = tuple(float(v) for v in labels)
    except ValueError:
        return ()
    whole = all(v == str(int(n)) for v, n in zip(labels, numbers, strict=True) if np.isfinite(n))
    decimal = all(("." in v and "_" not in v) for v in labels)
    if not np.isfinite(numbers).all() or len({*numbers}) < len(numbers) or not (whole or decimal):
        return ()
    return tuple(int(n) for n in numbers) if whole else numbers


def one_hot_encoder(stage: Stage, place: int, cells: Sequence[Cells], reading: Reading) -> Cells:
    """OneHotEncoder: a flag for each category index; "keep" adds one for invalid values, dropLast drops the last."""
    size, keep = int(stage.data["categorySizes"][place]), stage.params["handleInvalid"] == "keep"
    width = size + keep - bool(stage.params["dropLast"])
    codes = tuple(float(v) for v in range(size))
    table = np.eye(size + 1)[:, :width]
    missing = [np.nan] * width if reading.missing == "null" else table[size].tolist() if keep else [None] * width
    steps = [Encode(codes, table[:size, i], float(table[size, i]) if keep else None, missing[i]) for i in range(width)]
    return then(_one(stage, cells) * width, steps)


def vector_indexer(stage: Stage, place: int, cells: Sequence[Cells], reading: Reading) -> Cells:
    """The columns of a vector, of which some are codes of few values."""
    out: list[Derived] = []
    for i, cell in enumerate(cells[0]):
        known: dict[float, float] | None = stage.data["categoryMaps"].get(i)
        if known is None:
            out.append(cell)
            continue
        other = float(len(known)) if stage.params["handleInvalid"] == "keep" else None
        out += then((cell,), [Encode(tuple(known), np.array(list(known.values())), other, other)])
    return tuple(out)


# ---------------------------------------------------------------- numbers


@dataclass(frozen=True, eq=False)
class _MarkedOnly(Impute):
    """An imputer that replaces a number which means a missing value, and passes NaN through."""

    def takes(self, z: NDArray[Any]) -> bool:
        return True


def imputer(stage: Stage, place: int, cells: Sequence[Cells], reading: Reading) -> Cells:
    """Imputer: replaces null and the `missingValue`; NaN only if it is the `missingValue`."""
    fill = float(stage.data["surrogate"][stage.columns()[place][0][0]])
    marker = float(stage.params["missingValue"])
    if np.isnan(marker):
        return then(_one(stage, cells), [Impute(fill)])
    both = reading.missing == "null"
    return then(_one(stage, cells), [Impute(fill, marker, both=True) if both else _MarkedOnly(fill, marker)])


def bucketizer(stage: Stage, place: int, cells: Sequence[Cells], reading: Reading) -> Cells:
    """Bucketizer: a number equal to a split is in the bucket on its right, except the last; "keep" adds one for NaN."""
    several = stage.params.get("splitsArray") if stage.params.get("inputCols") else None
    splits = np.array([float(v) for v in (several[place] if several else stage.params["splits"])])
    if len(splits) < 3 or (np.diff(splits) <= 0).any():
        raise CorruptModelError("The splits of a Bucketizer must be increasing, and at least three.")
    inner = splits[1:-1]
    keep = stage.params["handleInvalid"] == "keep"
    missing = np.nan if reading.missing == "null" else float(len(splits) - 1) if keep else None
    (cell,) = _one(stage, cells)
    _bounded(cell, splits[0], splits[-1], reading)
    return then((cell,), [Stairs(before(inner), np.arange(len(inner) + 1.0), missing, stored=inner)])


def _bounded(cell: Derived, low: float, high: float, reading: Reading) -> None:
    """Record the bounds beyond which a raw column is refused."""
    if not np.isfinite([low, high]).any():
        return
    if not all(isinstance(step, Impute) for step in cell.steps):
        raise UnsupportedModelError(
            "A Bucketizer after another stage must have infinite first and last splits to be imported."
        )
    lower, higher = reading.bounds.get(cell.column, (-np.inf, np.inf))
    reading.bounds[cell.column] = max(low, lower), min(high, higher)


def binarizer(stage: Stage, place: int, cells: Sequence[Cells], reading: Reading) -> Cells:
    """Binarizer: 1 above the threshold, 0 up to it; null stays null, and NaN becomes 0."""
    several = stage.params.get("thresholds") if stage.params.get("inputCols") else None
    edge = np.array([float(several[place] if several else stage.params["threshold"])])
    missing = np.nan if reading.missing == "null" else 0.0
    return then(cells[0], [Stairs(edge, np.array([0.0, 1.0]), missing)] * len(cells[0]))


def assembler(stage: Stage, place: int, cells: Sequence[Cells], reading: Reading) -> Cells:
    """VectorAssembler: the numbers concatenated; "keep" replaces null by NaN, the other modes refuse both."""
    joined = tuple(cell for part in cells for cell in part)
    return joined if stage.params["handleInvalid"] == "keep" else then(joined, [_PRESENT] * len(joined))


_PRESENT = Present()


def slicer(stage: Stage, place: int, cells: Sequence[Cells], reading: Reading) -> Cells:
    if stage.params.get("names"):
        raise UnsupportedModelError("VectorSlicer by names is not imported; slice by indices.")
    return tuple(cells[0][int(i)] for i in stage.params["indices"])


def standard_scaler(stage: Stage, place: int, cells: Sequence[Cells], reading: Reading) -> Cells:
    centred, scaled = bool(stage.params["withMean"]), bool(stage.params["withStd"])
    return _scaled(cells[0], stage.data["mean"] if centred else None, stage.data["std"] if scaled else None)


def robust_scaler(stage: Stage, place: int, cells: Sequence[Cells], reading: Reading) -> Cells:
    centred, scaled = bool(stage.params["withCentering"]), bool(stage.params["withScaling"])
    return _scaled(cells[0], stage.data["median"] if centred else None, stage.data["range"] if scaled else None)


def _scaled(cells: Cells, centre: Array | None, spread: Array | None) -> Cells:
    """`(x - centre) * (1 / spread)`; a spread of 0 makes 0 of everything."""
    times: list[float | None] = [None] * len(cells)
    if spread is not None:
        times = [1.0 / v if v != 0.0 else 0.0 for v in spread.tolist()]
    minus: list[float | None] = [None] * len(cells) if centre is None else centre.tolist()
    return then(cells, [Linear(minus=m, times=t) for m, t in zip(minus, times, strict=True)])


def max_abs_scaler(stage: Stage, place: int, cells: Sequence[Cells], reading: Reading) -> Cells:
    return then(cells[0], [Linear(times=1.0 / v if v != 0.0 else 1.0) for v in stage.data["maxAbs"].tolist()])


def min_max_scaler(stage: Stage, place: int, cells: Sequence[Cells], reading: Reading) -> Cells:
    """MinMaxScaler: a constant column becomes the middle of the new range."""
    low, high = float(stage.params["min"]), float(stage.params["max"])
    steps: list[Step] = []
    for least, most in zip(stage.data["originalMin"].tolist(), stage.data["originalMax"].tolist(), strict=True):
        if least == most:
            steps.append(Linear(times=0.0, plus=0.5 * (low + high)))
        else:
            steps.append(Linear(minus=least, times=(high - low) / (most - least), plus=low))
    return then(cells[0], steps)


Transformer = Callable[[Stage, int, Sequence[Cells], Reading], Cells]
TRANSFORMERS: dict[str, Transformer] = {
    "StringIndexerModel": string_indexer, "OneHotEncoderModel": one_hot_encoder, "VectorAssembler": assembler,
    "ImputerModel": imputer, "StandardScalerModel": standard_scaler, "Bucketizer": bucketizer,
    "MinMaxScalerModel": min_max_scaler, "MaxAbsScalerModel": max_abs_scaler, "RobustScalerModel": robust_scaler,
    "Binarizer": binarizer, "VectorIndexerModel": vector_indexer, "VectorSlicer": slicer,
}  # fmt: skip
"""The function for each transformer, by the name of its class."""
