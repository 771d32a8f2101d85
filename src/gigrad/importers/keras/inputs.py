"""The inputs of a Keras model: what each is called, its shape and type, and rows as the model takes them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import NotFittedError, UnsupportedModelError
from ...graph import Array, Column

MOST_COLUMNS = 1 << 20


@dataclass(frozen=True)
class Given:
    """One input of a model; the numbers of a row of it are columns of the table, whatever its shape."""

    name: str
    shape: tuple[int, ...]
    dtype: str = "float32"

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def text(self) -> bool:
        return self.dtype == "string"

    @property
    def whole(self) -> bool:
        return "int" in self.dtype


def inputs_of(kind: str, config: Mapping[str, Any]) -> Iterator[Given]:
    """The inputs of a model, in order."""
    layers = config["layers"]
    if kind == "Sequential":
        if layers and layers[0]["class_name"] == "InputLayer":
            yield _given(layers[0]["config"])
        elif config.get("build_input_shape"):
            yield Given("x", shape_without_rows(config["build_input_shape"]))
        else:
            raise NotFittedError("This Keras model does not know its columns yet; call it on some rows, and train it.")
        return
    by_name = {layer["name"]: layer for layer in layers}
    for name, _, _ in places(config["input_layers"]):
        yield _given(by_name[name]["config"])


def _given(config: Mapping[str, Any]) -> Given:
    """One input of a model, from its configuration."""
    if config.get("sparse") or config.get("ragged"):
        raise UnsupportedModelError(f"The input {str(config['name'])!r} must be dense to be imported.")
    shape = shape_without_rows(config.get("batch_shape") or config["batch_input_shape"])
    return Given(str(config["name"]), shape, str(config.get("dtype")))


def shape_without_rows(batch_shape: Any) -> tuple[int, ...]:
    """The shape of one row of an input, which must be known and not too large."""
    shape = tuple(batch_shape)[1:]
    if not all(isinstance(n, int) and 0 < n < MOST_COLUMNS for n in shape) or math.prod(shape) >= MOST_COLUMNS:
        raise UnsupportedModelError(
            "The inputs of a Keras model must be rows of numbers, of shape (columns,) or of another known shape, whose "
            f"numbers are the columns then, to be imported; got {shape}."
        )
    return shape


def places(given: Any) -> list[tuple[str, int, int]]:
    """References to layers ([name, node, tensor]) in a list, in a dict, or one alone."""
    if isinstance(given, Mapping):
        return [p for value in given.values() for p in places(value)]
    if len(given) == 3 and isinstance(given[0], str):
        return [(given[0], int(given[1]), int(given[2]))]
    return [p for value in given for p in places(value)]


def column_names(inputs: Sequence[Given]) -> list[str]:
    if len(inputs) == 1:
        return [inputs[0].name] if inputs[0].size == 1 else [f"x{j}" for j in range(inputs[0].size)]
    return [g.name if g.size == 1 else f"{g.name}_{j}" for g in inputs for j in range(g.size)]


def are_named(inputs: Sequence[Given]) -> bool:
    """Whether the columns have names of their own."""
    return len(inputs) > 1 and all(g.size == 1 for g in inputs)


def as_taken(rows: Array, columns: Sequence[Column], inputs: Sequence[Given]) -> list[NDArray[Any]]:
    """The rows as the model itself takes them: one array for each input, in its shape and precision."""
    given = [_labels(rows[:, j], column) for j, column in enumerate(columns)]
    parts = []
    edges = [0, *accumulate(g.size for g in inputs)]
    for (begin, end), one in zip(pairwise(edges), inputs, strict=True):
        kind: Any = object if one.text else np.int64 if one.whole else np.float32
        part = np.stack([column.astype(kind) for column in given[begin:end]], axis=1)
        parts.append(part.reshape((len(rows), *one.shape)))
    return parts


def _labels(codes: Array, column: Column) -> NDArray[Any]:
    """A column as the model takes it: labels in place of codes; for unknown ones a label that it was not trained on."""
    if column.kind != "category" or column.labels is None:
        return codes
    labels = list(column.labels)
    text = isinstance(labels[0], str)
    never_seen: Any = "a label that no table holds" if text else max(labels) + 1
    out = np.empty(len(codes), object)
    out[:] = [labels[int(c)] if c >= 0 else never_seen for c in codes.tolist()]
    return out if text else out.astype(np.float64)
