"""Keras 3 models, from their configuration and weights: objects of any backend, and `.keras` files without Keras.

    __init__.py   the graph of a model object, and its own predictions
    network.py    the configuration of a Sequential or functional model, walked from its inputs to its outputs
    layers.py     what becomes of each layer
    values.py     what flows between layers: numbers, or columns that are read as codes

Keras computes in float32, and on torch it has no true float64; nodes built from the weights do. So the graph is held
to the model's own predictions up to float32 rounding, which is carried through the net from layer to layer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._io.tables import Rows
from ...errors import NotFittedError, UnsupportedModelError
from ...graph import Affine, Array, Graph, Witness, topological
from ..common.codes import on_codes
from ..common.links import SINGLE
from ..common.rounding import NodeScale, sum_units
from .network import read_network
from .values import Weights

__all__ = ["import_keras", "read_network"]


def import_keras(model: Any) -> Graph:
    """The graph of a keras.Sequential or functional keras.Model; its output is the score.

    The margin is what comes before a last sigmoid or softmax.
    """
    kind = type(model)
    if not kind.__module__.startswith("keras.") or kind.__name__ not in ("Sequential", "Functional"):
        raise UnsupportedModelError(
            f"Keras models must be Sequential or functional to be imported; {kind.__name__} is a class of its own, "
            "whose call method can do anything. Build it as keras.Model(inputs, outputs), or, on the torch backend, "
            'explain it through autograd: gigrad.function(module, "autograd", columns=...).'
        )
    if not model.built:
        raise NotFittedError("This Keras model has no weights yet; call it on some rows, and train it.")
    config = model.get_config()
    read = read_network(kind.__name__, {**config, "build_input_shape": _input_shape(model, config)}, _weights(model))
    own = on_codes(_Own(model, read.widths, read.names), read.graph.columns)
    node = read.graph.score
    inner = [n for n in topological(node) if isinstance(n, Affine)]
    units = (sum_units(1) + sum(sum_units(n.weight.shape[1]) for n in inner)) * _SINGLE_UNITS
    scale = NodeScale(read.graph.input, node)
    witness = Witness(node, own, read.graph.label, rtol=units, atol=units * 1e-3, scale=scale)
    return read.with_witness(witness)


_SINGLE_UNITS = SINGLE / 2.0**-53


def _input_shape(model: Any, config: Mapping[str, Any]) -> Any:
    return config.get("build_input_shape") or getattr(model, "input_shape", None)


def _weights(model: Any) -> Weights:
    """The variables of every layer, in the order in which Keras saves them, and those of models inside by name."""
    found: dict[str, list[Array]] = {}
    inner: dict[str, Weights] = {}
    for layer in model.layers:
        if hasattr(layer, "layers"):
            inner[layer.name] = _weights(layer)
            continue
        store: dict[str, Any] = {}
        layer.save_own_variables(store)
        found[layer.name] = [_as_array(store[key]) for key in sorted(store, key=int)]
    return Weights(found, inner)


def _as_array(variable: Any) -> Array:
    from keras import ops

    return np.asarray(ops.convert_to_numpy(variable), np.float64)


@dataclass(frozen=True)
class _Own:
    """What the model itself gives for rows, in float32; `widths` are the columns of each input, in order."""

    model: Any
    widths: tuple[int, ...]
    names: tuple[str, ...]

    def __call__(self, rows: Rows) -> Array:
        from keras import ops

        edges = np.cumsum(self.widths)[:-1]
        parts: list[Any] = []
        for part, tensor in zip(np.split(rows.matrix, edges, axis=1), self.model.inputs, strict=True):
            kind = np.int64 if "int" in str(tensor.dtype) else np.float32
            parts.append(part.astype(kind).reshape((len(rows), *tensor.shape[1:])))
        given: Any = parts[0] if len(parts) == 1 else parts
        if isinstance(getattr(self.model, "input", None), dict):
            given = dict(zip(self.names, parts, strict=True))
        out = self.model(given, training=False)
        several = list(out.values()) if isinstance(out, dict) else out if isinstance(out, (list, tuple)) else [out]
        flat = [np.asarray(ops.convert_to_numpy(o), np.float64).reshape(len(rows), -1) for o in several]
        return np.concatenate(flat, axis=1)
