"""Keras 3 models, from their configuration and weights: objects of any backend, and `.keras` files without Keras.

    __init__.py   the graph of a model object, and its own predictions
    inputs.py     the inputs of a model, and rows in the form that it takes
    network.py    a Sequential or functional model, traversed from its inputs to its outputs
    layers.py     the node of each kind of layer; lookups.py: of those that read labels
    autograd.py   other layers, and subclassed models, as functions with a gradient
    doubled.py    those in float64 on torch; traced.py, on_tensorflow.py, on_jax.py: on TensorFlow and JAX
    walk.py       the state of one traversal, and the layer that is being applied
    values.py     the values between layers: numbers, or columns that are read as codes

Keras computes in float32, and on torch and JAX it has no true float64; nodes built from the weights do, and so do
functions evaluated through autograd. A graph of nodes alone is compared with the model's own predictions
up to float32 rounding, which is propagated through the net layer by layer; one with functions, with the whole model in
float64.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from inspect import signature
from typing import Any

import numpy as np

from ..._io.tables import Rows
from ...errors import InputError, NotFittedError, UnsupportedModelError, kind_of
from ...graph import Array, Column, Graph, Input, Opaque, TreeEnsemble, Witness, topological
from ...graph.witness import LOW_PRECISION
from ..common.codes import coded, on_codes, with_codes
from ..common.links import SINGLE, plain_outputs
from ..common.rounding import NodeScale
from ..torch.call import InHalves, Largest
from .inputs import Given, are_named, as_taken, column_names, shape_without_rows
from .network import Read, read_network
from .values import Weights
from .walk import NotByLayers

__all__ = ["function_of", "import_keras", "is_keras", "read_network"]


def import_keras(model: Any) -> Graph:
    """The graph of a Keras model; its output is the score.

    The margin is the input of a last sigmoid or softmax.
    """
    if not model.built:
        raise NotFittedError("This Keras model has no weights yet; call it on some rows, and train it.")
    if not _is_read(model):
        return _whole(model)
    try:
        read = read_network(type(model).__name__, _config(model), _weights(model))
    except NotByLayers:
        return _whole(model)
    if not any(isinstance(n, Opaque) for n in topological(read.graph.score)):
        return read.with_witness(_witness_of_nodes(model, read))
    if read.masks:  # they pass from layer to layer beside the numbers
        return replace(_whole(model), output_names=read.graph.output_names)
    return read.with_witness(_witness_of_functions(model, read))


def is_keras(model: Any) -> bool:
    """Whether something is a model or a layer of Keras 3."""
    return any(cls.__module__.startswith("keras.") and cls.__name__ == "Layer" for cls in type(model).__mro__)


def _is_read(model: Any) -> bool:
    """Whether a model does what its configuration says: a subclass may do otherwise."""
    return type(model).__module__.startswith("keras.") and type(model).__name__ in ("Sequential", "Functional")


def _config(model: Any) -> Mapping[str, Any]:
    """The configuration of a model, in which every layer has a name; raises NotByLayers if Keras cannot give it."""
    try:
        with warnings.catch_warnings():  # Keras warns that a lambda is unsafe in a file; none is written
            warnings.filterwarnings("ignore", message="The object being serialized includes a `lambda`")
            config = model.get_config()
    except (NotImplementedError, TypeError, ValueError) as error:
        raise NotByLayers(str(error)) from None
    config = _named(model, config)
    return {**config, "build_input_shape": config.get("build_input_shape") or getattr(model, "input_shape", None)}


def _named(model: Any, config: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration with the names of layers whose own configuration lacks them, also in nested models."""
    live = {layer.name: layer for layer in model.layers}
    listed = list(config["layers"])
    if type(model).__name__ == "Sequential":  # without its InputLayer
        first = len(listed) - len(model.layers)
        listed[first:] = [
            {**entry, "name": layer.name} for entry, layer in zip(listed[first:], model.layers, strict=True)
        ]
    for i, entry in enumerate(listed):
        name = entry.get("name") or entry["config"]["name"]
        inner = live.get(name)
        within = _named(inner, entry["config"]) if inner is not None and _is_read(inner) else entry["config"]
        listed[i] = {**entry, "config": {**within, "name": name}}
    return {**config, "layers": listed}


def _weights(model: Any) -> Weights:
    """The variables of every layer, in the order in which Keras saves them, and those of nested models by name."""
    found: dict[str, list[Array]] = {}
    inner: dict[str, Weights] = {}
    known: dict[str, list[Any]] = {}
    for layer in model.layers:
        if _is_read(layer):
            inner[layer.name] = _weights(layer)
            continue
        if not type(layer).__module__.startswith("keras."):
            continue
        if hasattr(layer, "get_vocabulary"):
            known[layer.name] = [v.item() if isinstance(v, np.generic) else v for v in layer.get_vocabulary()]
        store: dict[str, Any] = {}
        layer.save_own_variables(store)
        found[layer.name] = [_as_array(store[key]) for key in sorted(store, key=int)]
    live = {each.name: each for each in getattr(model, "operations", model.layers)}
    return Weights(found, inner, known, live)


def _as_array(variable: Any) -> Array:
    from keras import ops

    return np.asarray(ops.convert_to_numpy(variable), np.float64)


# ---------------------------------------------------------------- whole models as functions


def _whole(model: Any) -> Graph:
    """The graph of a whole model as one function of the columns that it is known to read."""
    inputs = _inputs(model)
    names = column_names(inputs)
    return function_of(model, tuple(Column(name, missing=False) for name in names), are_named(inputs))


def function_of(model: Any, columns: tuple[Column, ...], named: bool = False) -> Graph:
    """The graph of a model as one function with a gradient; `named` says whether it knows its columns by name."""
    from .autograd import opaque, probed

    label = type(model).__name__
    inputs = _inputs(model, len(columns))
    call = _call(model, inputs)
    found = probed(call, label, columns)
    columns = tuple(
        coded(c, range(found.sizes[j])) if j in found.sizes and c.kind == "number" else c for j, c in enumerate(columns)
    )
    source = Input(len(columns))
    node = opaque(call, label, with_codes(source, columns), sum(int(np.prod(shape)) for shape in found.shapes))
    graph = Graph(columns, source, node, node, plain_outputs(node.width), named=named, label=str(model.name))
    return replace(graph, witnesses=(_witness_of_functions(model, Read(graph, inputs), call),))


def _inputs(model: Any, width: int | None = None) -> tuple[Given, ...]:
    """The inputs of a model; `width` is the number of columns, if the caller gives it."""
    if not _is_read(model):
        return (Given("x", (_own_width(model) if width is None else width,)),)
    inputs = tuple(Given(str(t.name), shape_without_rows(t.shape), str(t.dtype)) for t in model.inputs)
    size = sum(g.size for g in inputs)
    if width not in (None, size):
        raise InputError(f"{model.name} reads {size} columns; got the names of {width}.")
    return inputs


def _own_width(model: Any) -> int:
    """The number of input columns of a model with its own `call`, from the shape that it was built for."""
    shape = (model.get_build_config() or {}).get("input_shape")
    try:
        (width,) = shape_without_rows(shape)
    except (TypeError, ValueError):
        raise UnsupportedModelError(
            f"The number of columns of {kind_of(model)} cannot be inferred: it has its own call method and was "
            f'built for {shape}. Give it: gigrad.function(model, "autograd", columns=...), with their number or names.'
        ) from None
    return width


def _call(model: Any, inputs: tuple[Given, ...]) -> Any:
    """A call of the whole model."""
    from .autograd import Place, call_of

    places = [Place(i) for i in range(len(inputs))]
    shapes, whole = [g.shape for g in inputs], [g.whole for g in inputs]
    return call_of(model, [_argument(model, inputs, places)], {}, shapes, whole, type(model).__name__)


def _argument(model: Any, inputs: tuple[Given, ...], parts: list[Any]) -> Any:
    """The argument of a call of a model with these inputs: one tensor, a list, or a dict by name."""
    if isinstance(getattr(model, "input", None) if _is_read(model) else None, dict):
        return dict(zip((g.name for g in inputs), parts, strict=True))
    return parts[0] if len(parts) == 1 else parts


# ---------------------------------------------------------------- the model's own predictions


def _witness_of_nodes(model: Any, read: Read) -> Witness:
    """The model's own prediction in float32, as the witness of a graph made of nodes."""
    node = read.graph.score
    own, scale = _Own(model, read.inputs, read.graph.columns), NodeScale(read.graph.input, node)
    units = scale.units * _SINGLE_UNITS
    return Witness(node, own, read.graph.label, rtol=units, atol=units * 1e-3, scale=scale)


_SINGLE_UNITS = SINGLE / 2.0**-53


def _witness_of_functions(model: Any, read: Read, call: Any = None) -> Witness:
    """The model's own predictions, and those of the whole of it in float64, which the graph must reproduce.

    `call` is that of the whole model, if the graph is that function.
    """
    graph, inputs = read.graph, read.inputs
    own, node, label = _Own(model, inputs, graph.columns), graph.score, graph.label
    if read.labels or any(isinstance(n, TreeEnsemble) for n in topological(node)):
        # labels are not numbers, and a number may fall into another bin in float64 than in float32
        return Witness(node, own, label, rtol=LOW_PRECISION, scale=_LargestOwn(own))
    rtol = 1e-9 if call is not None or _constants_are_exact() else 16 * SINGLE
    call = call or _call(model, inputs)

    def value(x: Array) -> Any:
        # With the weights of now, so that a model trained further since the import is noticed.
        return call.now().value(x)

    exact, scale = (on_codes(predict, graph.columns) for predict in (InHalves(value, label), Largest(value)))
    return Witness(node, own, label, rtol=rtol, scale=scale, exact=exact)


def _constants_are_exact() -> bool:
    """Whether constants in the code of layers are the same numbers in the whole model as in nodes.

    On TensorFlow and JAX the whole model has them in float32, as it computes with them (`traced.py`).
    """
    import keras

    return bool(keras.config.backend() == "torch")


@dataclass(frozen=True)
class _Own:
    """The model's own prediction, in its own precision."""

    model: Any
    inputs: tuple[Given, ...]
    columns: tuple[Column, ...]

    def __call__(self, rows: Rows) -> Array:
        from keras import ops

        parts: list[Any] = [*as_taken(rows.matrix, self.columns, self.inputs)]
        given = {"training": False} if "training" in signature(self.model.call).parameters else {}
        out = self.model(_argument(self.model, self.inputs, parts), **given)
        several = list(out.values()) if isinstance(out, Mapping) else out if isinstance(out, (list, tuple)) else [out]
        flat = [np.asarray(ops.convert_to_numpy(o), np.float64).reshape(len(rows), -1) for o in several]
        return np.concatenate(flat, axis=1)


@dataclass(frozen=True)
class _LargestOwn:
    """The largest prediction on the rows at hand."""

    own: Callable[[Rows], Array]

    def __call__(self, rows: Rows) -> Array:
        return np.full(len(rows), np.abs(self.own(rows)).max(initial=0.0))
