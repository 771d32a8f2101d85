"""Layers without nodes of their own: evaluated by Keras, with gradients by the backend's autograd."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import UnsupportedModelError
from ...graph import Column, Input, Node, Opaque, Select, value_of
from ..common.codes import with_codes
from ..torch.call import TorchGradient, TorchValue
from ..torch.embedding import columns_asked
from .doubled import Asked, in_double
from .values import Value, side_by_side
from .walk import Walk

Shape = tuple[int, ...]
State = tuple[tuple[NDArray[Any], ...], tuple[NDArray[Any], ...]]


@dataclass(frozen=True)
class Place:
    """Where a tensor stands among the arguments of a call: the number of it."""

    index: int


@dataclass(frozen=True)
class Call:
    """A call of a layer, an operation or a whole model as a function of float64 tensors, (n, width) -> (n, outputs).

    Attributes
    ----------
    layer : keras Operation
    state : two tuples of arrays, or None
        Its trainable and other variables, in float64; None for what has none.
    arguments : callable
        What it is called with, args and kwargs, for the tensors that it reads.
    shapes : tuple of tuple of int
        Of the tensors, without the rows; their numbers stand side by side in a row.
    whole : tuple of bool
        Which of them are whole numbers.
    """

    layer: Any
    state: State | None
    arguments: Callable[[Sequence[Any]], tuple[Any, Any]]
    shapes: tuple[Shape, ...]
    whole: tuple[bool, ...]

    def __call__(self, x: Any) -> Any:
        import torch

        return torch.cat([out.reshape(len(x), -1).to(x.device).double() for out in self.outputs(x)], dim=1)

    def outputs(self, x: Any, asked: Asked | None = None) -> list[Any]:
        """The tensors that the call gives, in their shapes."""
        import torch

        edges = np.cumsum([0, *(_size(shape) for shape in self.shapes)]).tolist()
        given = [
            x[:, begin:end].reshape(len(x), *shape)
            for begin, end, shape in zip(edges, edges[1:], self.shapes, strict=False)
        ]
        given = [part.int() if whole else part for part, whole in zip(given, self.whole, strict=True)]
        with in_double(asked):
            args, kwargs = self.arguments(given)
            if self.state is None:
                out = self.layer(*args, **kwargs)
            else:
                variables = [[torch.from_numpy(v) for v in part] for part in self.state]
                out, _ = self.layer.stateless_call(*variables, *args, **kwargs)
        return list(_flat(out))


def call_of(layer: Any, args: Sequence[Any], kwargs: Mapping[str, Any], shapes: Any, whole: Any) -> Call:
    """A call of a layer of a model on the torch backend, with the weights that it has now."""
    _refuse_backend(layer)
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

    return Call(layer, _state(layer), arguments, tuple(shapes), tuple(whole))


def _refuse_backend(layer: Any) -> None:
    import keras

    if keras.config.backend() != "torch":
        raise UnsupportedModelError(
            f"{type(layer).__name__} {layer.name!r} of this Keras model is explained through its gradient, which must "
            f"be in float64 to be exact. That can be had on the torch backend; this process has "
            f"{keras.config.backend()}. Save the model, and load it where KERAS_BACKEND=torch is set."
        )


def _state(layer: Any) -> State | None:
    if not hasattr(layer, "stateless_call"):
        return None

    def copied(variable: Any) -> NDArray[Any]:
        value = variable.value.detach().cpu()
        return np.array((value.double() if value.is_floating_point() else value).numpy())

    trainable, others = layer.trainable_variables, layer.non_trainable_variables
    return tuple(copied(v) for v in trainable), tuple(copied(v) for v in others)


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


def by_autograd(call: Call, label: str, values: Sequence[Value], walk: Walk) -> list[Value]:
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


def opaque(call: Call, label: str, source: Node, width: int) -> Opaque:
    value = TorchValue(call, label)
    return Opaque(source, width, value, TorchGradient(value), label)


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


def probed(call: Call, label: str, columns: Sequence[Column]) -> Probed:
    """The same for a call that reads all columns."""
    source = Input(len(columns))
    return _probed(call, label, with_codes(source, columns), source)


def _probed(call: Call, label: str, node: Node, source: Input) -> Probed:
    """Ask a call for a row of zeros, and for one with a 1 in each column; `node` is what it reads of them."""
    import torch

    rows = np.concatenate([np.zeros((1, source.width)), np.eye(source.width)])
    read = value_of(node, {source: rows})
    read = np.where(np.isnan(read), read[:1], read)  # a category without a second code
    asked: Asked = []
    try:
        with torch.no_grad():
            outputs = call.outputs(torch.from_numpy(read), asked)
    except (RuntimeError, IndexError, ValueError, TypeError, NotImplementedError) as error:
        raise UnsupportedModelError(
            f"{label} must take a row of zeros, which shows what it gives; it fails on one ({type(error).__name__}: "
            f"{' '.join(str(error).split()):.200}). If it reads a column as codes that do not begin with 0, declare "
            'them: gigrad.function(model, "autograd", columns, categories={column: [1, 2, 3]}).'
        ) from None
    if not outputs or any(out.ndim == 0 or len(out) != len(rows) for out in outputs):
        got = ", ".join(str(tuple(out.shape)) for out in outputs) or "nothing"
        raise UnsupportedModelError(
            f"{label} must score every row by itself; for {len(rows)} rows it gave the shape {got}."
        )
    masks = any(getattr(out, "_keras_mask", None) is not None for out in outputs)
    return Probed([tuple(out.shape[1:]) for out in outputs], columns_asked(asked, source.width), masks)
