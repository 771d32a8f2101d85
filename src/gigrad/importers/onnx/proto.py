"""An ONNX message as plain data: nodes, constants, inputs and outputs, checked before anything is built from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..._io.tables import Rows
from ...errors import CorruptModelError, GigradError, InputError, UnsupportedModelError

T = TypeVar("T")

EXPLAIN_THERE = "explain the model in the library that trained it"

_FLOAT, _INT64, _STRING, _BOOL, _DOUBLE = 1, 7, 8, 9, 11
_TYPES = {_FLOAT: "float32", _DOUBLE: "float64", _STRING: "string", _BOOL: "bool", _INT64: "int64"} | {
    2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32",
}  # fmt: skip
_DOMAINS = ("", "ai.onnx", "ai.onnx.ml")
LARGEST = 1 << 20
"""The largest number of columns of an input; more means a damaged or hostile file."""


def unsupported(what: str, instead: str = EXPLAIN_THERE) -> UnsupportedModelError:
    """The error for a part of a model that is not imported, and what to do instead."""
    return UnsupportedModelError(f"{what} is not imported from ONNX; {instead}.")


@dataclass(frozen=True)
class Operator:
    """One operator: its type, the names of its inputs and outputs, and its attributes as Python and NumPy values."""

    kind: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any]

    def get(self, name: str, default: Any = None) -> Any:
        """An attribute, or its default."""
        return self.attributes.get(name, default)


@dataclass(frozen=True)
class Body:
    """The graph that an operator repeats: its operators and constants, and the names of what goes in and out."""

    operators: tuple[Operator, ...]
    constants: Mapping[str, NDArray[Any]]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True)
class Given:
    """An input of the model: its number of columns and their type."""

    name: str
    width: int
    type: str
    flat: bool  # declared without an axis of columns
    only_cast: bool = False  # integers that the model casts to another type first

    @property
    def fed(self) -> str:
        """The type in which rows are passed to the model: integers that are only cast may as well be floats."""
        return "float32" if self.only_cast else self.type


@dataclass(frozen=True, eq=False)
class Model:
    """An ONNX model as plain data.

    Attributes
    ----------
    outputs : tuple of (name, type)
        The type of a tensor's numbers; "maps" for the output of ZipMap, "tensors" for that of SequenceConstruct.
    fixed_rows : int or None
        The number of rows of the model's inputs, if it is fixed.
    content : bytes
        The message itself.
    """

    name: str
    operators: tuple[Operator, ...]
    constants: Mapping[str, NDArray[Any]]
    inputs: tuple[Given, ...]
    outputs: tuple[tuple[str, str], ...]
    fixed_rows: int | None
    content: bytes

    @property
    def single(self) -> bool:
        """Whether numbers are computed in float32."""
        return all(g.type != "float64" for g in self.inputs)

    def feeds(self, rows: Rows) -> dict[str, NDArray[Any]]:
        """The rows as arrays for the model's inputs, by name."""
        table = rows.table
        if not isinstance(table, np.ndarray):
            import narwhals as nw

            frame = nw.from_native(table, eager_only=True)
            columns = [np.asarray(frame[name].to_numpy()) for name in frame.columns]
        else:
            columns = [table[:, j] for j in range(table.shape[1])]
        out: dict[str, NDArray[Any]] = {}
        first = 0
        for given in self.inputs:
            part = [_typed(c, given) for c in columns[first : first + given.width]]
            out[given.name] = part[0] if given.flat else np.stack(part, axis=1)
            first += given.width
        return out


def _typed(column: NDArray[Any], given: Given) -> NDArray[Any]:
    """A column of the table in the type that an input is fed."""
    if given.type == "string":
        return np.array(["" if v is None or v != v else str(v) for v in column.tolist()], dtype=object)
    try:
        numbers = np.asarray(column, np.float64)
    except (TypeError, ValueError):
        raise InputError(f"The input {given.name!r} of this ONNX model takes numbers; got {column.dtype}.") from None
    if given.fed not in ("float32", "float64") and not (numbers == np.rint(numbers)).all():
        raise InputError(f"The input {given.name!r} of this ONNX model takes whole numbers ({given.type}).")
    return numbers.astype(given.fed)


def read_model(model: Any) -> Model:
    """The content of an onnx.ModelProto; an error if it is damaged or not supported."""
    return well_formed(_read, model)


def well_formed(read: Callable[[Any], T], content: Any) -> T:
    """The result of `read(content)`; other exceptions become a CorruptModelError."""
    try:
        return read(content)
    except GigradError:
        raise
    except (ValueError, TypeError, KeyError, IndexError, OverflowError, MemoryError, RecursionError) as error:
        raise CorruptModelError(
            f"An ONNX model must be well formed to be imported; this one is not ({type(error).__name__}: {error})."
        ) from None


def _read(model: Any) -> Model:
    """The model's operators, constants, inputs and outputs, as plain values."""
    graph = model.graph
    if not len(graph.node) or not len(graph.output):
        raise CorruptModelError("An ONNX model must have operators and an output; this one has none.")
    if len(model.functions):
        raise UnsupportedModelError(
            f"This ONNX model defines functions of its own ({model.functions[0].name}), which are not imported; export "
            "it with its functions inlined (onnx.inliner.inline_local_functions)."
        )
    constants = {t.name: _array(t) for t in graph.initializer}
    operators = tuple(_operator(n) for n in graph.node)
    inputs = [v for v in graph.input if v.name not in constants]
    if not inputs:
        raise CorruptModelError("An ONNX model must have an input; this one has none.")
    given = tuple(_given(v, operators) for v in inputs)
    rows = {_dimension(v.type.tensor_type.shape.dim[0]) for v in inputs if len(v.type.tensor_type.shape.dim)} - {None}
    fixed = rows.pop() if len(rows) == 1 else None
    outputs = tuple((v.name, _output_type(v)) for v in graph.output)
    content = model.SerializeToString()
    return Model(graph.name or "ONNX model", operators, constants, given, outputs, fixed, content)


def _operator(node: Any) -> Operator:
    """An operator with its attributes as plain values."""
    if node.domain not in _DOMAINS:
        raise unsupported(f"The operator {node.op_type} of the domain {node.domain!r}")
    attributes = {a.name: _attribute(a, node.op_type) for a in node.attribute}
    return Operator(node.op_type, tuple(node.input), tuple(node.output), attributes)


def _attribute(attribute: Any, operator: str) -> Any:
    """An attribute as a plain value: number, text, list, array, or the body of a Scan."""
    kinds = {1: "f", 2: "i", 3: "s", 4: "t", 6: "floats", 7: "ints", 8: "strings"}
    kind = kinds.get(attribute.type)
    if attribute.type == 5 and operator == "Scan":
        return _body(attribute.g)
    if kind is None:
        raise unsupported(f"The operator {operator} with a graph or a sparse tensor as an attribute")
    value = getattr(attribute, kind)
    if kind == "t":
        return _array(value)
    if kind == "s":
        return value.decode()
    if kind == "strings":
        return [v.decode() for v in value]
    return list(value) if kind in ("floats", "ints") else value


def _body(graph: Any) -> Body:
    """What Scan repeats; loops inside of it are not looked into."""
    if any(n.op_type == "Scan" for n in graph.node):
        raise unsupported("Scan within Scan")
    return Body(
        tuple(_operator(n) for n in graph.node), {t.name: _array(t) for t in graph.initializer},
        tuple(v.name for v in graph.input), tuple(v.name for v in graph.output),
    )  # fmt: skip


def _array(tensor: Any) -> NDArray[Any]:
    """The numbers of a tensor, which must be in the file itself and as many as it declares."""
    from onnx import numpy_helper

    if tensor.data_location == 1 or len(tensor.external_data):
        raise UnsupportedModelError(
            f"The tensor {tensor.name!r} of this ONNX model lies in another file, which is not opened. Save the model "
            "in one file: onnx.save(onnx.load(path), new_path)."
        )
    if any(d < 0 for d in tensor.dims):
        raise CorruptModelError(f"The tensor {tensor.name!r} of this ONNX model has a negative dimension.")
    held = len(tensor.raw_data) + sum(
        len(getattr(tensor, f)) for f in ("float_data", "int32_data", "string_data", "int64_data", "double_data")
    )
    size = 1
    for d in tensor.dims:
        size *= int(d)
    if size > 8 * held + 8:
        raise CorruptModelError(f"The tensor {tensor.name!r} of this ONNX model lacks the {size} numbers it declares.")
    return np.asarray(numpy_helper.to_array(tensor))


def _given(value: Any, operators: Sequence[Operator]) -> Given:
    """An input of the model: a tensor of rows with a known number of columns."""
    kind = value.type.WhichOneof("value")
    if kind != "tensor_type" or value.type.tensor_type.elem_type not in _TYPES:
        raise UnsupportedModelError(f"The input {value.name!r} of this ONNX model must be a tensor of numbers or text.")
    dims = [_dimension(d) for d in value.type.tensor_type.shape.dim]
    width = 1 if len(dims) == 1 else dims[1] if len(dims) == 2 else None
    if width is None or not 0 < width <= LARGEST:
        raise UnsupportedModelError(
            f"The input {value.name!r} of this ONNX model must have the shape (rows, columns) with a fixed number of "
            f"columns; got {dims}."
        )
    type_ = _TYPES[value.type.tensor_type.elem_type]
    readers = {o.kind for o in operators if value.name in o.inputs}
    only_cast = type_ not in ("float32", "float64", "string") and readers == {"Cast"}
    return Given(value.name, width, type_, len(dims) == 1, only_cast)


def _dimension(dim: Any) -> int | None:
    return int(dim.dim_value) if dim.WhichOneof("value") == "dim_value" and dim.dim_value else None


def _output_type(value: Any) -> str:
    if value.type.WhichOneof("value") == "sequence_type":
        return "tensors" if value.type.sequence_type.elem_type.WhichOneof("value") == "tensor_type" else "maps"
    return _TYPES.get(value.type.tensor_type.elem_type, "unknown")
