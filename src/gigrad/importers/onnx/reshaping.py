"""Operators that rearrange numbers without changing them: Reshape, Transpose, Concat, Gather, Slice and others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import CorruptModelError, UnsupportedModelError
from ...graph import Affine, Concat
from .proto import Operator, unsupported
from .shape import Shape
from .values import Cells, Columns, Dims, Fixed, Numbers, Value, columns_of, in_shape, picked, shape_of, side_by_side


def reshape(operator: Operator, values: Sequence[Value]) -> Value | None:
    """Reshape and Flatten."""
    value = values[0]
    if isinstance(value, Fixed):
        out = _reshaped(operator, value.array, values)
        return Fixed(out, value.repeated and out.ndim > 0 and out.shape[0] == 1)
    own = shape_of(columns(operator, value))
    if operator.kind == "Flatten":
        axis = int(operator.get("axis", 1)) % (own.rank + 1)
        rest = (s for s in (own.sizes[axis:] if own.axis < axis else own.sizes[:axis]) if s is not None)
        size = int(np.prod(list(rest)))
        wanted = [-1, size] if own.axis < axis else [size, -1]
    elif len(values) > 1 and isinstance(values[1], Dims):
        return in_shape(columns(operator, value), own.with_rows(values[1].sizes))
    else:
        wanted = ints(operator, values, 1, "shape")
    return in_shape(columns(operator, value), own.reshaped(wanted))


def _reshaped(operator: Operator, array: NDArray[Any], values: Sequence[Value]) -> NDArray[Any]:
    """An array in the shape that Reshape or Flatten gives it; 0 keeps a size."""
    if operator.kind == "Flatten":
        axis = int(operator.get("axis", 1))
        return array.reshape(int(np.prod(array.shape[:axis])), -1)
    wanted = ints(operator, values, 1, "shape")
    return array.reshape([array.shape[i] if s == 0 else s for i, s in enumerate(wanted)])


def squeeze(operator: Operator, values: Sequence[Value]) -> Value | None:
    """Squeeze: axes of size 1 removed, except the axis of the rows."""
    axes = ints(operator, values, 1, "axes")
    if isinstance(values[0], Fixed):
        return Fixed(np.squeeze(values[0].array, tuple(axes) if axes else None))
    value = columns(operator, values[0])
    own = shape_of(value)
    gone = {own.place("Squeeze", a) for a in axes} or {i for i, s in enumerate(own.sizes) if s == 1}
    if any(own.sizes[i] != 1 for i in gone):
        raise unsupported(f"Squeeze of the axes {sorted(gone)} of a tensor {own}")
    left = [(i, s) for i, s in enumerate(own.sizes) if i not in gone]
    before, after = (tuple(s for i, s in left if s is not None and side(i)) for side in _sides(own.axis))
    return in_shape(value, Shape(before, after, own.lead, own.trail))


def unsqueeze(operator: Operator, values: Sequence[Value]) -> Value | None:
    """Unsqueeze: new axes of size 1."""
    axes = ints(operator, values, 1, "axes")
    if isinstance(values[0], Fixed):
        return Fixed(np.expand_dims(values[0].array, tuple(axes)))
    value = columns(operator, values[0])
    own = shape_of(value)
    rank = own.rank + len(axes)
    new = {a % rank for a in axes}
    old = iter(own.sizes)
    sizes = [1 if i in new else next(old) for i in range(rank)]
    axis = sizes.index(None)
    before, after = (tuple(s for i, s in enumerate(sizes) if s is not None and side(i)) for side in _sides(axis))
    return in_shape(value, Shape(before, after, own.lead, own.trail))


def _sides(axis: int) -> tuple[Callable[[int], bool], Callable[[int], bool]]:
    return lambda i: i < axis, lambda i: i > axis


def transpose(operator: Operator, values: Sequence[Value]) -> Value | None:
    """Transpose: the axes in another order."""
    order = operator.get("perm")
    if isinstance(values[0], Fixed):
        return Fixed(np.transpose(values[0].array, order))
    value = columns(operator, values[0])
    own = shape_of(value)
    axes = list(range(own.rank))[::-1] if order is None else [int(a) for a in order]
    if sorted(axes) != list(range(own.rank)):
        raise CorruptModelError(f"Transpose must order the {own.rank} axes of what it reads; perm is {axes}.")
    return picked(value, np.transpose(own.numbered("Transpose"), axes), axes.index(own.axis))


def concat(operator: Operator, values: Sequence[Value]) -> Value | None:
    """Concat of columns, or of rows, which the shape records."""
    axis = int(operator.get("axis", 1))
    if all(isinstance(v, Fixed) for v in values):
        return Fixed(np.concatenate([v.array for v in values if isinstance(v, Fixed)], axis))
    if all(isinstance(v, (Fixed, Dims)) for v in values):
        return Dims(tuple(s for v in values for s in _entries(v)))
    parts = _as_columns(operator, values)
    if parts is None:
        return None
    shapes = [shape_of(p) for p in parts]
    first = shapes[0]
    axis = first.place("Concat", axis)
    joined = _joined(parts)
    if axis == first.axis:
        if any(s.before or s.trail != 1 or s.after != first.after for s in shapes):
            raise UnsupportedModelError("Concat along the rows needs tensors whose first axis is that of the rows.")
        return in_shape(joined, Shape((), first.after, sum(s.lead for s in shapes)))
    if any((s.axis, s.rank) != (first.axis, first.rank) for s in shapes):
        raise unsupported(f"Concat of tensors {', '.join(map(str, shapes))}")
    starts = np.cumsum([0, *(s.size for s in shapes)])
    index = [s.numbered("Concat") + start for s, start in zip(shapes, starts, strict=False)]
    return picked(joined, np.concatenate(index, axis), first.axis)


def _as_columns(operator: Operator, values: Sequence[Value]) -> list[Columns] | None:
    """The values as columns of one kind; constants repeated for all rows count as columns beside numbers."""
    some = next((v for v in values if isinstance(v, Numbers)), None)
    out: list[Columns] = []
    for value in values:
        if isinstance(value, Fixed) and value.repeated and some is not None and value.array.ndim == 2:
            bias = value.numbers()[0]
            out.append(Numbers(Affine(some.node, np.zeros((len(bias), some.node.width)), bias)))
        elif isinstance(value, Fixed) and value.repeated:
            return None
        else:
            out.append(columns(operator, value))
    return out if len({type(v) for v in out}) == 1 else None


def _joined(parts: Sequence[Columns]) -> Columns:
    """Columns side by side, of the table or computed."""
    if len(parts) == 1:
        return parts[0]
    cells = [p for p in parts if isinstance(p, Cells)]
    if cells:
        types = {c.type for c in cells}
        if "string" in types and len(types) > 1:
            raise CorruptModelError("Concat must join columns of one type; this one joins text and numbers.")
        return Cells(tuple(f for c in cells for f in c.features), cells[0].type)
    return Numbers(side_by_side([n for p in parts if isinstance(p, Numbers) for n in _flat(p)]))


def _flat(part: Numbers) -> tuple[Any, ...]:
    if part.truncated:
        raise unsupported("Concat of numbers truncated to integers")
    return part.node.parents if isinstance(part.node, Concat) else (part.node,)


def _entries(value: Value) -> tuple[int | None, ...]:
    return value.sizes if isinstance(value, Dims) else tuple(int(v) for v in fixed("Concat", [value], 0).ravel())


def gather(operator: Operator, values: Sequence[Value]) -> Value | None:
    """Gather, and ArrayFeatureExtractor, which uses the last axis; both with constant indices."""
    value, places = values[0], values[1]
    if not isinstance(places, Fixed):
        return None
    index = np.asarray(places.array).astype(np.int64)
    if isinstance(value, Dims):
        chosen = tuple(value.sizes[int(i)] for i in index.ravel())
        return Dims(chosen)
    if operator.kind == "ArrayFeatureExtractor":
        axis, index = -1, index.ravel()
    else:
        axis = int(operator.get("axis", 0))
    if isinstance(value, Fixed):
        return Fixed(np.take(value.array, index, axis))
    found = columns(operator, value)
    own = shape_of(found)
    axis = own.place(operator.kind, axis)
    _not_rows(operator, own, axis)
    tensor = own.numbered(operator.kind)
    size = tensor.shape[axis]
    if index.size and not -size <= index.min() <= index.max() < size:
        raise CorruptModelError(f"{operator.kind} reads column {index.max()} of {size}.")
    moved = own.axis if own.axis < axis else own.axis + index.ndim - 1
    return picked(found, np.take(tensor, index % size, axis), moved)


def cut(operator: Operator, values: Sequence[Value]) -> Value | None:
    """Slice along other axes than the rows."""
    starts, ends = ints(operator, values, 1, "starts"), ints(operator, values, 2, "ends")
    axes = ints(operator, values, 3, "axes") or list(range(len(starts)))
    steps = ints(operator, values, 4, "steps") or [1] * len(starts)
    if isinstance(values[0], Dims):
        return Dims(values[0].sizes[starts[0] : ends[0] : steps[0]])
    own = None if isinstance(values[0], Fixed) else shape_of(columns(operator, values[0]))
    tensor = values[0].array if isinstance(values[0], Fixed) else None
    index = own.numbered("Slice") if own is not None else np.asarray(tensor)
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        place = axis % index.ndim if own is None else own.place("Slice", axis)
        if own is not None and place == own.axis:
            if (start, step) != (0, 1) or end < (1 << 31) - 1:
                raise UnsupportedModelError("Slice must keep all rows to be imported.")
            continue
        index = index[(slice(None),) * place + (slice(start, end, step),)]
    return Fixed(index) if own is None else picked(columns(operator, values[0]), index, own.axis)


def shape(operator: Operator, values: Sequence[Value]) -> Value | None:
    """Shape, with the number of rows unknown."""
    value = values[0]
    if isinstance(value, Fixed) and not value.repeated:
        return Fixed(np.array(value.array.shape, np.int64))
    if isinstance(value, Fixed):
        return Dims((None, *value.array.shape[1:]))
    own = shape_of(columns(operator, value))
    if own.joined:
        raise unsupported(f"Shape of a tensor {own}")
    return Dims(own.sizes)


MOST = 1 << 24
"""The largest number of values that ConstantOfShape and Expand may make; more means a damaged or hostile file."""


def constant_of_shape(operator: Operator, values: Sequence[Value]) -> Value | None:
    """ConstantOfShape, whose first axis is that of the rows."""
    wanted = values[0]
    sizes = wanted.sizes if isinstance(wanted, Dims) else tuple(ints(operator, values, 0, "shape"))
    if None in sizes[1:]:
        raise UnsupportedModelError("ConstantOfShape must have the rows as its first axis; they are another.")
    known = tuple(1 if s is None else s for s in sizes)
    if min(known, default=1) < 0 or np.prod([float(s) for s in known]) > MOST:
        raise CorruptModelError(f"ConstantOfShape must make at most {MOST} numbers; got the shape {list(known)}.")
    number = np.asarray(operator.get("value", np.zeros(1, np.float32))).ravel()[:1]
    return Fixed(np.broadcast_to(number, known).copy(), repeated=None in sizes)


def _not_rows(operator: Operator, own: Shape, axis: int) -> None:
    if axis == own.axis:
        raise unsupported(f"{operator.kind} along the rows (axis {axis} of {own})")


def columns(operator: Operator, value: Value) -> Columns:
    """A value that has columns; constants and predicted classes have none."""
    if isinstance(value, (Cells, Numbers)):
        return value
    columns_of(value)  # raises for predicted classes
    raise unsupported(f"{operator.kind} of constants among computed numbers")


def fixed(kind: str, values: Sequence[Value], place: int) -> Any:
    """The constant that an operator must have as an input; raises if it is not constant."""
    if place >= len(values) or not isinstance(values[place], Fixed):
        raise UnsupportedModelError(f"{kind} must have a constant as its input {place + 1} to be imported.")
    value = values[place]
    return value.array if isinstance(value, Fixed) else None


def ints(operator: Operator, values: Sequence[Value], place: int, attribute: str) -> list[int]:
    """Integers that are an input in newer versions of an operator and an attribute in older ones."""
    if place < len(values):
        return [int(v) for v in np.asarray(fixed(operator.kind, values, place)).ravel()]
    return [int(v) for v in operator.get(attribute, [])]


RESHAPING: dict[str, Callable[[Operator, Sequence[Value]], Value | None]] = {
    "Reshape": reshape, "Flatten": reshape, "Squeeze": squeeze, "Unsqueeze": unsqueeze, "Transpose": transpose,
    "Concat": concat, "Gather": gather, "ArrayFeatureExtractor": gather, "Slice": cut, "Shape": shape,
    "ConstantOfShape": constant_of_shape,
}  # fmt: skip
"""The function for each operator that rearranges columns, of tables or of numbers."""
