"""The configuration of a Sequential or functional Keras model, walked from its inputs to its outputs.

Whether a column is a number or a category shows only where it is read (by a Dense layer, or by an Embedding), so the
net is walked twice: once to see which columns are codes, and once to build the nodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...errors import CorruptModelError, NotFittedError, UnsupportedModelError
from ...graph import Column, Elementwise, Graph, Input, Node, Softmax, Witness
from ..common.codes import coded
from ..common.links import plain_outputs
from .layers import Walk, apply
from .values import Value, Weights, numbers, side_by_side

_MODELS = ("Sequential", "Functional")
_DTYPES = ("float32", "float64", "int32", "int64", "uint8", "bool")  # the integers are those of preprocessing layers


@dataclass(frozen=True)
class Read:
    """A model that was read: its graph without a witness, and how many columns each of its inputs has."""

    graph: Graph
    names: tuple[str, ...]
    widths: tuple[int, ...]

    def with_witness(self, witness: Witness) -> Graph:
        return replace(self.graph, witnesses=(witness,))


def read_network(kind: str, config: Mapping[str, Any], weights: Weights) -> Read:
    """The graph of a model from its configuration (`get_config()`) and weights."""
    try:
        return _read(kind, config, weights)
    except (KeyError, IndexError, TypeError, AttributeError, ValueError, RecursionError) as error:
        if isinstance(error, (CorruptModelError, UnsupportedModelError, NotFittedError)):
            raise
        raise CorruptModelError(
            f"The configuration of a Keras model must describe its layers and fit its weights; this one does not "
            f"({type(error).__name__}: {error})."
        ) from None


def _read(kind: str, config: Mapping[str, Any], weights: Weights) -> Read:
    inputs = list(_inputs(kind, config))
    names = tuple(name for name, _ in inputs)
    widths = tuple(Value(shape).size for _, shape in inputs)
    source = Input(sum(widths))
    starts = [sum(widths[:i]) for i in range(len(widths))]
    given = [
        Value(shape, raw=tuple(range(start, start + width)))
        for (_, shape), start, width in zip(inputs, starts, widths, strict=True)
    ]
    first = Walk(source, {})
    run_model(kind, config, weights, given, first)
    walk = Walk(source, first.found)
    outputs = run_model(kind, config, weights, given, walk)
    nodes = [numbers(v, source, walk.codes) for v in outputs]
    score = side_by_side(nodes)
    named = len(inputs) > 1 and all(w == 1 for w in widths)
    columns = tuple(
        coded(Column(name, missing=False), range(walk.codes[j])) if j in walk.codes else Column(name, missing=False)
        for j, name in enumerate(_column_names(names, widths))
    )
    label = str(config.get("name") or kind)
    graph = Graph(columns, source, score, _margin(score), _output_names(config, nodes), named=named, label=label)
    return Read(graph, names, widths)


def _column_names(names: Sequence[str], widths: Sequence[int]) -> list[str]:
    if len(names) == 1:
        return [names[0]] if widths[0] == 1 else [f"x{j}" for j in range(widths[0])]
    return [n if w == 1 else f"{n}_{j}" for n, w in zip(names, widths, strict=True) for j in range(w)]


def _output_names(config: Mapping[str, Any], nodes: Sequence[Node]) -> tuple[str, ...]:
    if len(nodes) == 1:
        return plain_outputs(nodes[0].width)
    layers = [place[0] for place in _places(config["output_layers"])]
    return tuple(
        f"{i}:{name}" if n.width == 1 else f"{i}:{name}_{k}"
        for i, (name, n) in enumerate(zip(layers, nodes, strict=True))
        for k in range(n.width)
    )


def _margin(score: Node) -> Node:
    """What comes before a last sigmoid or softmax."""
    if isinstance(score, Softmax) or (isinstance(score, Elementwise) and score.name == "sigmoid"):
        return score.source
    return score


def _inputs(kind: str, config: Mapping[str, Any]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The names and shapes of a model's inputs, in order."""
    layers = config["layers"]
    if kind == "Sequential":
        if layers and layers[0]["class_name"] == "InputLayer":
            yield _input(layers[0]["config"])
        elif config.get("build_input_shape"):
            yield "x", _shape(config["build_input_shape"])
        else:
            raise NotFittedError("This Keras model does not know its columns yet; call it on some rows, and train it.")
        return
    by_name = {layer["name"]: layer for layer in layers}
    for name, _, _ in _places(config["input_layers"]):
        yield _input(by_name[name]["config"])


def _input(config: Mapping[str, Any]) -> tuple[str, tuple[int, ...]]:
    if str(config.get("dtype")) == "string":
        raise UnsupportedModelError(
            f"The input {str(config['name'])!r} of this Keras model reads text, which is not imported. Give the net "
            "integer codes (an Embedding or CategoryEncoding on them is imported), or encode the column before it."
        )
    if config.get("sparse") or config.get("ragged"):
        raise UnsupportedModelError(f"The input {str(config['name'])!r} must be dense to be imported.")
    return str(config["name"]), _shape(config.get("batch_shape") or config["batch_input_shape"])


def _shape(batch_shape: Any) -> tuple[int, ...]:
    shape = tuple(batch_shape)[1:]
    if len(shape) > 1 or not all(isinstance(n, int) and 0 < n < 1 << 20 for n in shape):
        raise UnsupportedModelError(
            f"The inputs of a Keras model must be rows of numbers, of shape (columns,), to be imported; got {shape}."
        )
    return shape


def _places(given: Any) -> list[tuple[str, int, int]]:
    """References to layers ([name, node, tensor]) in a list, in a dict, or one alone."""
    if isinstance(given, Mapping):
        return [p for value in given.values() for p in _places(value)]
    if len(given) == 3 and isinstance(given[0], str):
        return [(given[0], int(given[1]), int(given[2]))]
    return [p for value in given for p in _places(value)]


# ---------------------------------------------------------------- layer after layer


def run_model(
    kind: str, config: Mapping[str, Any], weights: Weights, inputs: Sequence[Value], walk: Walk, depth: int = 0
) -> list[Value]:
    """The outputs of a model for its inputs."""
    if depth > 50:
        raise CorruptModelError("A Keras model must not be nested more than 50 deep.")
    if kind == "Sequential":
        (value,) = inputs
        for layer in config["layers"]:
            if layer["class_name"] != "InputLayer":
                (value,) = _run(layer, weights, [value], walk, depth)
        return [value]
    done = {(name, 0, 0): value for (name, _, _), value in zip(_places(config["input_layers"]), inputs, strict=True)}
    layers = {layer["name"]: layer for layer in config["layers"]}
    calls = [(name, i) for name, layer in layers.items() for i in range(len(layer["inbound_nodes"]))]
    while calls:  # layers are mostly listed in the order in which they can be run, but a shared one is called again
        left = []
        for name, i in calls:
            asked = list(_tensors(layers[name]["inbound_nodes"][i]))
            if not all(place in done for place in asked):
                left.append((name, i))
                continue
            for k, value in enumerate(_run(layers[name], weights, [done[p] for p in asked], walk, depth)):
                done[name, i, k] = value
        if len(left) == len(calls):
            raise CorruptModelError(f"The layer {left[0][0]!r} of a Keras model reads one that does not exist.")
        calls = left
    return [done[place] for place in _places(config["output_layers"])]


def _tensors(node: Any) -> Iterator[tuple[str, int, int]]:
    """The places that a call of a layer reads; anything else among its arguments is refused."""
    for key, value in node.get("kwargs", {}).items():
        if value not in (None, False) and key not in ("training", "mask"):
            raise UnsupportedModelError(f"A Keras layer called with {key}={value!r} is not imported.")
    yield from _among(node["args"])


def _among(given: Any) -> Iterator[tuple[str, int, int]]:
    if isinstance(given, Mapping) and given.get("class_name") == "__keras_tensor__":
        name, node, tensor = given["config"]["keras_history"]
        yield str(name), int(node), int(tensor)
    elif isinstance(given, (list, tuple)):
        for value in given:
            yield from _among(value)
    else:
        raise UnsupportedModelError(
            f"A Keras operation on the constant {given!r} is not imported; use a layer such as Rescaling."
        )


def _run(layer: Mapping[str, Any], weights: Weights, values: list[Value], walk: Walk, depth: int) -> list[Value]:
    kind, config, module = str(layer["class_name"]), layer["config"], str(layer.get("module"))
    name = str(config["name"])
    if kind in _MODELS and module.split(".")[0] == "keras":
        inner = weights.models.get(name, Weights({}))
        return run_model(kind, config, inner, values, walk, depth + 1)
    if not module.startswith("keras.layers") or layer.get("registered_name"):
        raise UnsupportedModelError(
            f"The layer {name!r} of this Keras model is a {module}.{kind}, which is not one of Keras's own layers and "
            "is not imported. Replace it by layers of Keras, or explain a torch module of the same net."
        )
    _check_dtype(name, config.get("dtype"))
    return [apply(kind, name, config, list(weights.layers.get(name, ())), values, walk)]


def _check_dtype(name: str, policy: Any) -> None:
    while isinstance(policy, Mapping):
        policy = policy["config"].get("name") or policy["config"].get("source_name")
    if policy is not None and policy not in _DTYPES:
        raise UnsupportedModelError(
            f"The layer {name!r} of this Keras model computes in {policy}; models in float32 or float64 can be "
            "explained. Load its weights into a model with that dtype."
        )
