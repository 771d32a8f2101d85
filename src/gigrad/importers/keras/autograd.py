"""Layers without nodes of their own: evaluated by Keras, with gradients by the backend's autograd."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from inspect import signature
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ...errors import GigradError, UnsupportedModelError
from ...graph import Array, Column, Input, Node, Opaque, Select, value_of
from ..common.codes import with_codes
from ..torch.embedding import columns_looked_up_in
from .values import Value, side_by_side
from .walk import Walk

Shape = tuple[int, ...]
Lookups = list[tuple[int, Any]]  # for each lookup, the number of rows of the table and the indices
State = tuple[NDArray[Any], ...]


@dataclass(frozen=True)
class Place:
    """A placeholder for a tensor among the arguments of a call, by the index of the tensor."""

    index: int


class Evaluated:
    """A layer, an operation or a model, evaluated with any values of its variables."""

    def __init__(self, layer: Any) -> None:
        self.layer = layer
        self.is_layer = hasattr(layer, "stateless_call")
        self.variables = [*layer.trainable_variables, *layer.non_trainable_variables] if self.is_layer else []

    def __call__(self, values: Sequence[Any], args: Any, kwargs: Any) -> Any:
        import keras

        if not self.is_layer:
            return self.layer(*args, **kwargs)
        # Like `stateless_call`, but with a fixed order of the values: freezing a layer changes the order it expects.
        with keras.StatelessScope(list(zip(self.variables, values, strict=True))):
            return self.layer.call(*args, **kwargs)

    def state(self) -> State:
        """The values that the variables have now, in float64; integers as they are."""
        from keras import backend, ops

        arrays = [(v, ops.convert_to_numpy(v)) for v in self.variables]
        return tuple(np.array(a, np.float64 if backend.is_float_dtype(v.dtype) else None) for v, a in arrays)


@dataclass(frozen=True)
class Call:
    """A call of a layer, an operation or a whole model as a function of float64 numbers, (n, width) -> (n, outputs).

    Attributes
    ----------
    evaluated : Evaluated
    state : tuple of arrays
        The values of its variables, in float64.
    arguments : callable
        From the tensors that it reads to the args and kwargs of the call.
    shapes : tuple of tuple of int
        Of the tensors, without the rows; a row of numbers holds them flattened, one after the other.
    whole : tuple of bool
        Which of the tensors hold integers.
    """

    evaluated: Evaluated
    state: State
    arguments: Callable[[Sequence[Any]], tuple[Any, Any]]
    shapes: tuple[Shape, ...]
    whole: tuple[bool, ...]

    def split(self, x: Any) -> list[Any]:
        """The tensors that rows of numbers hold, in their shapes; integers too are still floats."""
        edges = np.cumsum([0, *(_size(shape) for shape in self.shapes)]).tolist()
        parts = zip(edges, edges[1:], self.shapes, strict=False)
        return [x[:, begin:end].reshape(len(x), *shape) for begin, end, shape in parts]

    def outputs(self, variables: Any, tensors: Sequence[Any]) -> list[Any]:
        """The outputs of the call for tensors of the backend, with these values of its variables."""
        args, kwargs = self.arguments(tensors)
        return list(_flat(self.evaluated(variables, args, kwargs)))

    def now(self) -> Call:
        """The same call with the current weights of the layer, which may have been trained further."""
        return replace(self, state=self.evaluated.state())


class Evaluator(Protocol):
    """A call as its backend evaluates it, in float64.

    `value` and `gradient` are the functions of an Opaque node; `show` evaluates a few rows and reports shapes, lookups
    and masks; `now` is the same call with the current weights.
    """

    @property
    def value(self) -> Callable[[Array], Array]: ...

    @property
    def gradient(self) -> Callable[[Array, Array], Array]: ...

    def show(self, rows: Array) -> Shown: ...

    def now(self) -> Evaluator: ...


@dataclass(frozen=True)
class Shown:
    """The shapes of the outputs for some rows, the table lookups made meanwhile, and whether they carry a mask."""

    shapes: list[Shape]
    lookups: Lookups
    masks: bool


def call_of(
    layer: Any, args: Sequence[Any], kwargs: Mapping[str, Any], shapes: Any, whole: Any, label: str
) -> Evaluator:
    """A call of a layer of a model with its current weights, for the backend of this process."""
    if getattr(layer, "stateful", False):
        raise UnsupportedModelError(
            f"The layer {layer.name!r} ({type(layer).__name__}) of this Keras model keeps its state from one call "
            "to the next (stateful=True), so the score of a row depends on earlier rows. Load its weights into a layer "
            "with stateful=False."
        )
    kwargs = {key: value for key, value in kwargs.items() if key != "training"}
    if "training" in signature(layer.call).parameters:  # nested layers take the mode of the one that is called
        kwargs["training"] = False
    template = (list(args), kwargs)

    def arguments(tensors: Sequence[Any]) -> Any:
        return _filled(template, tensors)

    evaluated = Evaluated(layer)
    return _on_backend(Call(evaluated, evaluated.state(), arguments, tuple(shapes), tuple(whole)), label)


def _on_backend(call: Call, label: str) -> Evaluator:
    """The call with its gradient in float64, on the backend that Keras uses in this process."""
    import keras

    backend = keras.config.backend()
    if backend == "torch":
        from .doubled import OnTorch

        return OnTorch(call, label)
    from .traced import Traced

    if backend == "tensorflow":
        from .on_tensorflow import TensorFlowProgram

        return Traced(call, label, TensorFlowProgram(call))
    if backend == "jax":
        from .on_jax import JaxProgram

        return Traced(call, label, JaxProgram(call))
    raise UnsupportedModelError(
        f"{label} of this Keras model is explained through its gradient, which needs the backend torch, tensorflow "
        f"or jax; this process has {backend}. Save the model, and load it where KERAS_BACKEND is torch."
    )


def _filled(given: Any, tensors: Sequence[Any]) -> Any:
    """The recorded arguments of a call with the tensors put where they stood."""
    if isinstance(given, Place):
        return tensors[given.index]
    if isinstance(given, (list, tuple)):
        return type(given)(_filled(v, tensors) for v in given)
    if isinstance(given, Mapping):
        return {key: _filled(v, tensors) for key, v in given.items()}
    return given


def _flat(out: Any) -> Iterator[Any]:
    """The tensors among nested outputs, in order."""
    if isinstance(out, Mapping):
        out = list(out.values())
    if isinstance(out, (list, tuple)):
        for part in out:
            yield from _flat(part)
    elif out is not None:
        yield out


def _size(shape: Shape) -> int:
    return int(np.prod(shape, dtype=np.int64))


# ---------------------------------------------------------------- as a node


def by_autograd(call: Evaluator, label: str, values: Sequence[Value], walk: Walk) -> list[Value]:
    """The outputs of a call for the values that it reads, as columns of one opaque function."""
    source = side_by_side([walk.numbers(v) for v in values])
    found = _probed(call, label, source, walk.source)
    for j, size in found.sizes.items() if any(v.raw for v in values) else ():
        walk.found[j] = min(walk.found.get(j, size), size)
    walk.masks |= found.masks
    edges = np.cumsum([0, *(_size(shape) for shape in found.shapes)]).tolist()
    node = opaque(call, label, source, edges[-1])
    if len(found.shapes) == 1:
        return [Value(found.shapes[0], node)]
    parts = zip(found.shapes, edges, edges[1:], strict=False)
    return [Value(shape, Select(node, tuple(range(a, b)))) for shape, a, b in parts]


def opaque(call: Evaluator, label: str, source: Node, width: int) -> Opaque:
    return Opaque(source, width, call.value, call.gradient, label)


@dataclass(frozen=True)
class Probed:
    """What evaluating a few rows shows about a call: the shapes of its outputs, and which columns are looked up.

    Attributes
    ----------
    sizes : dict of int to int
        Columns that index a table directly, and the number of its rows.
    masks : bool
        Whether an output carries a mask.
    """

    shapes: list[Shape]
    sizes: dict[int, int]
    masks: bool


def probed(call: Evaluator, label: str, columns: Sequence[Column]) -> Probed:
    """What evaluating a few rows shows about a call that reads all columns."""
    source = Input(len(columns))
    return _probed(call, label, with_codes(source, columns), source)


def _probed(call: Evaluator, label: str, node: Node, source: Input) -> Probed:
    """Evaluate a call on a row of zeros, and on one with a 1 for each column; `node` maps the rows to its input."""
    rows = np.concatenate([np.zeros((1, source.width)), np.eye(source.width)])
    read = value_of(node, {source: rows})
    read = np.where(np.isnan(read), read[:1], read)  # a category without a second code
    try:
        shown = call.show(read)
    except (RuntimeError, LookupError, ValueError, TypeError, AttributeError) as error:
        if isinstance(error, GigradError):
            raise
        raise UnsupportedModelError(
            f"{label} must take a row of zeros, by which its output shape is found; it fails on one "
            f"({type(error).__name__}: {' '.join(str(error).split()):.200}). If it reads a column as codes that do not "
            'begin with 0, declare them: gigrad.function(model, "autograd", columns, categories={column: [1, 2, 3]}).'
        ) from None
    if not shown.shapes or any(not shape or shape[0] != len(rows) for shape in shown.shapes):
        got = ", ".join(map(str, shown.shapes)) or "nothing"
        raise UnsupportedModelError(
            f"{label} must score every row by itself; for {len(rows)} rows it gave the shape {got}."
        )
    return Probed([shape[1:] for shape in shown.shapes], columns_looked_up_in(shown.lookups, source.width), shown.masks)
