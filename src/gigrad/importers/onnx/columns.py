"""Operators that work on columns one by one, so that each stays a function of one raw column.

Each function takes the operator and its inputs, and returns its output, or None if the inputs are not columns (but, for
example, the numbers of a layer), for which `layers` has a function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from ...errors import CorruptModelError, UnsupportedModelError
from ..pipeline.labels import Encode
from ..pipeline.steps import Clip, Impute, Linear, Single, Stairs, Step
from ..pipeline.table import Constant, Feature, Table
from .column_formulas import FOLLOWED, gathered, has_formula
from .column_steps import STEPS, looked_up, not_zero, then, whole_numbers
from .proto import Operator, unsupported
from .reshaping import RESHAPING, fixed
from .shape import Shape
from .values import Cells, Fixed, InSingle, Value, columns_of, in_shape, shape_of

CASTS = {1: "float32", 11: "float64", 7: "int64", 6: "int32", 9: "bool", 8: "string"}
"""The types that numbers are cast to, by their numbers in ONNX."""
_NUMBERS = ("float32", "float64")


# ---------------------------------------------------------------- shapes and types


def identity(operator: Operator, values: Sequence[Value]) -> Value | None:
    return values[0]


def cast(operator: Operator, values: Sequence[Value]) -> Value | None:
    """A cast of constants or of columns of the table; None for computed numbers."""
    value, to = values[0], CASTS.get(int(operator.get("to", 0)))
    if to is None:
        raise unsupported(f"Cast to the ONNX type {operator.get('to')}")
    if isinstance(value, Fixed):
        return value if to == "string" else Fixed(value.array.astype(to), value.repeated)
    if not isinstance(value, Cells):
        return None
    if to == value.type:
        return value
    if to == "float32":
        return then(value, [Single()] * len(value.features), "Cast", to)
    if to == "bool" and value.type != "string":
        return not_zero(value)
    if to in ("int32", "int64") and value.type in _NUMBERS:
        return whole_numbers(value, to)
    if to == "float64" or (to in ("int32", "int64") and value.type != "string"):  # whole numbers stay what they are
        return replace(value, type=to)
    raise unsupported(f"Cast from {value.type} to {to}", "cast the column before the model")


def gather(operator: Operator, values: Sequence[Value]) -> Value | None:
    """Gather: columns at constant indices, or constants at the indices in a column."""
    if isinstance(values[1], Fixed):
        return RESHAPING[operator.kind](operator, values)
    found = gathered(operator, values) if operator.kind == "Gather" else None
    return looked_up(operator, values) if found is None else found


# ---------------------------------------------------------------- numbers


def scaler(operator: Operator, values: Sequence[Value]) -> Value | None:
    """(x - offset) * scale by column in float32; None for computed numbers."""
    value = values[0]
    width = columns_of(value)
    offset, scale = (_per_column(operator, name, width, default) for name, default in (("offset", 0), ("scale", 1)))
    if not isinstance(value, Cells):
        return None
    cells = value if value.type in _NUMBERS else then(value, [Single()] * width, "Scaler", "float32")
    steps = [InSingle(minus=m, times=t) for m, t in zip(offset, scale, strict=True)]
    return then(cells, steps, "Scaler", "float32")


def imputer(operator: Operator, values: Sequence[Value]) -> Value | None:
    """A fill by column, for missing values or for a number that marks them."""
    value = values[0]
    if not isinstance(value, Cells):
        raise unsupported("Imputer of computed numbers", "impute the columns themselves")
    whole = "imputed_value_int64s" in operator.attributes
    fills = _per_column(operator, f"imputed_value_{'int64s' if whole else 'floats'}", len(value.features), 0)
    marker = float(operator.get(f"replaced_value_{'int64' if whole else 'float'}", 0))
    steps = [Impute(float(f), None if np.isnan(marker) else marker) for f in fills]
    return then(value, steps, "Imputer")


def binarizer(operator: Operator, values: Sequence[Value]) -> Value | None:
    """1 above the threshold, 0 up to it; onnxruntime refuses NaN."""
    if not isinstance(values[0], Cells):
        raise unsupported("Binarizer of computed numbers", "binarise the columns themselves")
    edge = np.array([float(operator.get("threshold", 0.0))])
    return then(values[0], [Stairs(edge, np.array([0.0, 1.0]))] * len(values[0].features), "Binarizer")


def clip(operator: Operator, values: Sequence[Value]) -> Value | None:
    """Columns limited to an interval; None for computed numbers."""
    low, high = bounds(operator, values)
    if not isinstance(values[0], Cells):
        return None
    return then(values[0], [Clip(low, high)] * len(values[0].features), "Clip")


def bounds(operator: Operator, values: Sequence[Value]) -> tuple[float, float]:
    """The bounds of Clip, attributes up to version 6 and inputs after that."""
    found = [float(operator.get("min", -np.inf)), float(operator.get("max", np.inf))]
    for place in (1, 2):
        if place < len(values):
            found[place - 1] = float(np.asarray(fixed(operator.kind, values, place)).ravel()[0])
    if not found[0] < found[1]:
        raise CorruptModelError(f"Clip must have a lower bound below its upper one; got {found}.")
    return found[0], found[1]


def arithmetic(operator: Operator, values: Sequence[Value]) -> Value | None:
    """Arithmetic of columns and a constant, column by column."""
    first, second = values
    cells, constant = (first, second) if isinstance(first, Cells) else (second, first)
    if not isinstance(cells, Cells) or not isinstance(constant, Fixed) or cells.type not in _NUMBERS:
        return None
    numbers = constant.numbers()
    shape = shape_of(cells)
    if shape.joined or (operator.kind in ("Sub", "Div") and isinstance(first, Fixed)):
        return None
    index = shape.numbered(operator.kind)
    if numbers.ndim > index.ndim or (numbers.ndim == index.ndim and numbers.shape[shape.axis] != 1):
        return None
    index, numbers = np.broadcast_arrays(index, numbers)
    wide = Cells(tuple(cells.features[i] for i in index.ravel()), cells.type)
    if operator.kind == "Mul" and not numbers.any():  # what is zero for every row
        wide = Cells((Constant(0.0),) * numbers.size, cells.type)
    name = {"Add": "plus", "Sub": "minus", "Mul": "times", "Div": "over"}[operator.kind]
    kind: Callable[..., Step] = InSingle if cells.type == "float32" else Linear
    out = then(wide, [kind(**{name: float(v)}) for v in numbers.ravel()], operator.kind)
    return in_shape(out, Shape(index.shape[: shape.axis], index.shape[shape.axis + 1 :]))


def _per_column(operator: Operator, name: str, width: int, default: float) -> list[float]:
    """An attribute with a number for each column, or one for all."""
    found = [float(v) for v in operator.get(name, [default])]
    if len(found) not in (1, width):
        raise CorruptModelError(f"{operator.kind} must have one or {width} numbers as {name}; it has {len(found)}.")
    return found * width if len(found) == 1 else found


# ---------------------------------------------------------------- labels


def one_hot(operator: Operator, values: Sequence[Value]) -> Value | None:
    """Dummies of the listed categories; None for computed numbers."""
    value = values[0]
    labels = operator.get("cats_strings") or operator.get("cats_int64s") or []
    if not labels:
        raise CorruptModelError("OneHotEncoder must know its categories; this one has none.")
    if not isinstance(value, Cells):
        return None
    unknown = 0.0 if int(operator.get("zeros", 1)) else None
    keys = tuple(labels) if isinstance(labels[0], str) else tuple(float(v) for v in labels)
    out: list[Feature] = []
    for feature in value.features:
        steps = [Encode(keys, row, unknown, unknown) for row in np.eye(len(keys))]
        out += Table((feature,) * len(keys)).then(steps, "OneHotEncoder").features
    own = shape_of(value)
    return in_shape(Cells(tuple(out), "float32"), replace(own, after=(*own.after, len(keys))))


_KEYS = ("keys_strings", "keys_int64s", "keys_floats", "keys_tensor")
_VALUES = ("values_floats", "values_int64s", "values_tensor", "values_strings")
_DEFAULTS = {"values_floats": ("default_float", -0.0), "values_int64s": ("default_int64", -1)}


def label_encoder(operator: Operator, values: Sequence[Value]) -> Value | None:
    """Labels as numbers by a table, with a default for unknown ones."""
    value = values[0]
    keys = next((operator.get(k) for k in _KEYS if operator.get(k) is not None), None)
    name = next((v for v in _VALUES if operator.get(v) is not None), "")
    if not isinstance(value, Cells) or keys is None or name not in (*_DEFAULTS, "values_tensor"):
        raise UnsupportedModelError("LabelEncoder must map labels of a column of the table to numbers to be imported.")
    images = np.asarray(operator.get(name), np.float64).ravel()
    default, otherwise = _DEFAULTS.get(name, ("default_tensor", -0.0))
    unknown = float(np.asarray(operator.get(default, otherwise)).ravel()[0])
    listed = np.asarray(keys).ravel().tolist()
    labels = tuple(v.decode() if isinstance(v, bytes) else v if isinstance(v, str) else float(v) for v in listed)
    known = [i for i, v in enumerate(labels) if v == v]
    missing = [images[i] for i, v in enumerate(labels) if v != v]
    step = Encode(tuple(labels[i] for i in known), images[known], unknown, float(missing[0]) if missing else unknown)
    return then(value, [step] * len(value.features), "LabelEncoder", "float32" if "float" in name else "int64")


_PLAIN: dict[str, Callable[[Operator, Sequence[Value]], Value | None]] = {
    **RESHAPING, **STEPS, "Gather": gather, "ArrayFeatureExtractor": gather, "Identity": identity, "Dropout": identity,
    "Cast": cast, "Scaler": scaler, "Imputer": imputer, "Clip": clip, "Add": arithmetic, "Sub": arithmetic,
    "Mul": arithmetic, "Div": arithmetic, "OneHotEncoder": one_hot, "LabelEncoder": label_encoder,
    "Binarizer": binarizer,
}  # fmt: skip


def _either(kind: str) -> Callable[[Operator, Sequence[Value]], Value | None]:
    """The function of an operator on columns; where it has none, the column is followed as a formula."""
    plain = _PLAIN.get(kind)

    def apply(operator: Operator, values: Sequence[Value]) -> Value | None:
        out = None
        if plain is not None and not (has_formula(values) and kind in FOLLOWED):
            out = plain(operator, values)
        return FOLLOWED[kind](operator, values) if out is None and kind in FOLLOWED else out

    return apply


COLUMNWISE: dict[str, Callable[[Operator, Sequence[Value]], Value | None]] = {
    kind: _either(kind) for kind in dict.fromkeys((*_PLAIN, *FOLLOWED))
}
"""The function for each operator on columns."""
