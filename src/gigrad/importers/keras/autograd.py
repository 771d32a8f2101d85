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
from ..torch.embedding import columns_asked
from .values import Value, side_by_side
from .walk import Walk

Shape = tuple[int, ...]
Asked = list[tuple[int, Any]]  # the number of rows of a table, and the rows that were asked for
State = tuple[NDArray[Any], ...]


@dataclass(frozen=True)
class Place:
    """Where a tensor stands among the arguments of a call: the number of it."""

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
        # As `stateless_call` does, which would take the values in another order once a layer is frozen.
        with keras.StatelessScope(list(zip(self.variables, values, strict=True))):
            return self.layer.call(*args, **kwargs)

    def state(self) -> State:
        """The values that the variables have now, in float64; whole numbers as they are."""
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
        What it is called with, args and kwargs, for the tensors that it reads.
    shapes : tuple of tuple of int
        Of the tensors, without the rows; their numbers stand side by side in a row.
    whole : tuple of bool
        Which of them are whole numbers.
    """

    evaluated: Evaluated
    state: State
    arguments: Callable[[Sequence[Any]], tuple[Any, Any]]
    shapes: tuple[Shape, ...]
    whole: tuple[bool, ...]

    def split(self, x: Any) -> list[Any]:
        """The tensors that stand side by side in rows of numbers, all of them as numbers."""
        edges = np.cumsum([0, *(_size(shape) for shape in self.shapes)]).tolist()
        parts = zip(edges, edges[1:], self.shapes, strict=False)
        return [x[:, begin:end].reshape(len(x), *shape) for begin, end, shape in parts]

    def outputs(self, variables: Any, tensors: Sequence[Any]) -> list[Any]:
        """What Keras gives for tensors of its backend, with these values of its variables."""
        args, kwargs = self.arguments(tensors)
        return list(_flat(self.evaluated(variables, args, kwargs)))

    def now(self) -> Call:
        """The same with the weights that the layer has now: it may have been trained on."""
        return replace(self, state=self.evaluated.state())


class Asks(Protocol):
    """How a backend evaluates a call, in float64.

    `value` gives an Opaque's values for arrays, `gradient` its pullback, and `show` what a few rows show of it; `now`
    is the same with the weights of now.
    """

    @property
    def value(self) -> Callable[[Array], Array]: ...

    @property
    def gradient(self) -> Callable[[Array, Array], Array]: ...

    def show(self, rows: Array) -> Shown: ...

    def now(self) -> Asks: ...


@dataclass(frozen=True)
class Shown:
    """The shapes of the outputs for some rows, the lookups in tables on the way, and whether a mask goes with them."""

    shapes: list[Shape]
    asked: Asked
    masks: bool


def call_of(layer: Any, args: Sequence[Any], kwargs: Mapping[str, Any], shapes: Any, whole: Any, label: str) -> Asks:
    """A call of a layer of a model, with the weights that it has now, as its backend evaluates it."""
    if getattr(layer, "stateful", False):
        raise UnsupportedModelError(
            f"The layer {layer.name!r} ({type(layer).__name__}) of this Keras model remembers rows that it was asked "
            "before (stateful=True), so that no row has a score of its own. Load its weights into a layer without."
        )
    kwargs = {key: value for key, value in kwargs.items() if key != "training"}
    if "training" in signature(layer.call).parameters:  # layers inside follow the one that is called
        kwargs["training"] = False
    template = (list(args), kwargs)

    def arguments(tensors: Sequence[Any]) -> Any:
        return _filled(template, tensors)

    evaluated = Evaluated(layer)
    return _on_backend(Call(evaluated, evaluated.state(), arguments, tuple(shapes), tuple(whole)), label)


def _on_backend(call: Call, label: str) -> Asks:
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
        f"{label} of this Keras model is explained through its gradient, which can be had on the backends torch, "
        f"tensorflow and jax; this process has {backend}. Save the model, and load it where KERAS_BACKEND is torch."
    )


def _filled(given: Any, tensors: Sequence[Any]) -> Any:
    if isinstance(given, Place):
        return tensors[given.index]
    if isinstance(given, (list, tuple)):
        return type(given)(_filled(v, tensors) for v in given)
    if isinstance(given, Mapping):
        return {key: _filled(v, tensors) for key, v in given.items()}
    return given


def _flat(out: Any) -> Iterator[Any]:
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


def by_autograd(call: Asks, label: str, values: Sequence[Value], walk: Walk) -> list[Value]:
    """What a call gives for the values it reads: one opaque function, taken apart into its outputs."""
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


def opaque(call: Asks, label: str, source: Node, width: int) -> Opaque:
    return Opaque(source, width, call.value, call.gradient, label)


@dataclass(frozen=True)
class Probed:
    """What a few rows show of a call: the shapes it gives, without the rows, and the columns that are looked up.

    Attributes
    ----------
    sizes : dict of int to int
        Columns that reach a table as they are, and how many rows it has.
    masks : bool
        Whether a mask goes with what it gives.
    """

    shapes: list[Shape]
    sizes: dict[int, int]
    masks: bool


def probed(call: Asks, label: str, columns: Sequence[Column]) -> Probed:
    """The same for a call that reads all columns."""
    source = Input(len(columns))
    return _probed(call, label, with_codes(source, columns), source)


def _probed(call: Asks, label: str, node: Node, source: Input) -> Probed:
    """Ask a call for a row of zeros, and for one with a 1 in each column; `node` is what it reads of them."""
    rows = np.concatenate([np.zeros((1, source.width)), np.eye(source.width)])
    read = value_of(node, {source: rows})
    read = np.where(np.isnan(read), read[:1], read)  # a category without a second code
    try:
        shown = call.show(read)
    except (RuntimeError, LookupError, ValueError, TypeError, AttributeError) as error:
        if isinstance(error, GigradError):
            raise
        raise UnsupportedModelError(
            f"{label} must take a row of zeros, which shows what it gives; it fails on one ({type(error).__name__}: "
            f"{' '.join(str(error).split()):.200}). If it reads a column as codes that do not begin with 0, declare "
            'them: gigrad.function(model, "autograd", columns, categories={column: [1, 2, 3]}).'
        ) from None
    if not shown.shapes or any(not shape or shape[0] != len(rows) for shape in shown.shapes):
        got = ", ".join(map(str, shown.shapes)) or "nothing"
        raise UnsupportedModelError(
            f"{label} must score every row by itself; for {len(rows)} rows it gave the shape {got}."
        )
    return Probed([shape[1:] for shape in shown.shapes], columns_asked(shown.asked, source.width), shown.masks)
