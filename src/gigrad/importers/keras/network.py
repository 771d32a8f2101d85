"""Sequential and functional Keras models, traversed from inputs to outputs by their configuration.

Whether a column is a number or a category shows only where it is read (by a Dense layer, or by an Embedding), so the
net is traversed twice: once to see which columns are codes, and once to build the nodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from ...errors import CorruptModelError, NotFittedError, UnsupportedModelError
from ...graph import Column, Elementwise, Graph, Input, Node, Softmax, Witness
from ..common.codes import coded
from ..common.links import plain_outputs
from .inputs import Given, are_named, column_names, inputs_of, places
from .layers import apply
from .values import Known, Value, Weights, numbers, side_by_side
from .walk import NotAsNodes, NotByLayers, Walk

_MODELS = ("Sequential", "Functional")
_DTYPES = (
    "float32",
    "float64",
    "int32",
    "int64",
    "uint8",
    "bool",
    "string",
)  # the integers are those of preprocessing layers


@dataclass(frozen=True)
class Read:
    """The result of reading a model: its graph without a witness, and its inputs.

    `masks` says whether layers pass masks on, `labels` whether they look labels up.
    """

    graph: Graph
    inputs: tuple[Given, ...]
    masks: bool = False
    labels: bool = False

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
    """The graph of a model: run once to see which columns are looked up, then built."""
    inputs = tuple(inputs_of(kind, config))
    source = Input(sum(g.size for g in inputs))
    starts = [sum(g.size for g in inputs[:i]) for i in range(len(inputs))]
    given = [Value(g.shape, raw=tuple(range(a, a + g.size))) for g, a in zip(inputs, starts, strict=True)]
    whole = frozenset(j for g, v in zip(inputs, given, strict=True) if g.whole for j in v.raw)
    first = Walk(source, Known(), whole)
    run_model(kind, config, weights, given, first)
    names_of = column_names(inputs)
    texts = [j for g, v in zip(inputs, given, strict=True) if g.text for j in v.raw]
    walk = Walk(source, _known(first, texts, names_of), whole)
    outputs = run_model(kind, config, weights, given, walk)
    nodes = [numbers(v, source, walk.known) for v in outputs]
    score = side_by_side(nodes)
    columns = tuple(_column(name, j, walk) for j, name in enumerate(names_of))
    label = str(config.get("name") or kind)
    graph = Graph(
        columns, source, score, _margin(score), _output_names(config, nodes), named=are_named(inputs), label=label
    )
    return Read(graph, inputs, walk.masks, bool(walk.lookups))


def _known(walk: Walk, texts: Sequence[int], names: Sequence[str]) -> Known:
    """What the first traversal found about columns. A column of several lookups has the labels that all accept."""
    labels: dict[int, tuple[Any, ...]] = {}
    for j in dict.fromkeys(one.column for one in walk.lookups):
        own = [one for one in walk.lookups if one.column == j]
        every = dict.fromkeys(label for one in own for label in one.codes)
        labels[j] = tuple(v for v in every if all(v in one.codes or one.other is not None for one in own))
        if j in walk.found:
            raise UnsupportedModelError(
                f"The column {names[j]!r} of this Keras model is read as labels by one layer and as codes by another. "
                "Give the net two columns instead."
            )
    for j in texts:
        if j not in labels:
            raise UnsupportedModelError(
                f"The column {names[j]!r} of this Keras model holds text, which must go through a StringLookup layer "
                "to be imported."
            )
    return Known(walk.found, labels, frozenset(texts))


def _column(name: str, j: int, walk: Walk) -> Column:
    """The table's column behind an input: a number, codes, or the labels of its look-ups."""
    if j in walk.known.codes:
        return coded(Column(name, missing=False), range(walk.known.codes[j]))
    if j in walk.known.labels:
        takes_all = all(one.other is not None for one in walk.lookups if one.column == j)
        unknown: Literal["other", "refuse"] = "other" if takes_all else "refuse"
        return Column(name, "category", walk.known.labels[j], missing=False, unknown=unknown)
    return Column(name, missing=False)


def _output_names(config: Mapping[str, Any], nodes: Sequence[Node]) -> tuple[str, ...]:
    """The names of outputs; those of several output layers begin with its number and name."""
    if len(nodes) == 1:
        return plain_outputs(nodes[0].width)
    layers = [place[0] for place in places(config["output_layers"])]
    return tuple(
        f"{i}:{name}" if n.width == 1 else f"{i}:{name}_{k}"
        for i, (name, n) in enumerate(zip(layers, nodes, strict=True))
        for k in range(n.width)
    )


def _margin(score: Node) -> Node:
    """The input of a last sigmoid or softmax; else the score itself."""
    if isinstance(score, Softmax) or (isinstance(score, Elementwise) and score.name == "sigmoid"):
        return score.source
    return score


# ---------------------------------------------------------------- running the layers


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
    done = {(name, 0, 0): value for (name, _, _), value in zip(places(config["input_layers"]), inputs, strict=True)}
    layers = {layer["name"]: layer for layer in config["layers"]}
    calls = [(name, i) for name, layer in layers.items() for i in range(len(layer["inbound_nodes"]))]
    while calls:  # layers are mostly listed in an order in which they can run, but a shared one is called again
        left = []
        for name, i in calls:
            node = layers[name]["inbound_nodes"][i]
            asked = _places_read(node)
            if not all(place in done for place in asked):
                left.append((name, i))
                continue
            for k, value in enumerate(_run(layers[name], weights, [done[p] for p in asked], walk, depth, node)):
                done[name, i, k] = value
        if len(left) == len(calls):
            raise CorruptModelError(f"The layer {left[0][0]!r} of a Keras model reads one that does not exist.")
        calls = left
    return [done[place] for place in places(config["output_layers"])]


def _places_read(node: Any) -> list[tuple[str, int, int]]:
    """The distinct tensors that a call of a layer reads, in order of occurrence."""
    return list(dict.fromkeys(_among([node["args"], node.get("kwargs", {})])))


def _among(given: Any) -> Iterator[tuple[str, int, int]]:
    """The tensors anywhere among the arguments of an operation, as (layer, node, tensor)."""
    if _is_tensor(given):
        yield _history(given)
    elif isinstance(given, Mapping):
        for value in given.values():
            yield from _among(value)
    elif isinstance(given, (list, tuple)):
        for value in given:
            yield from _among(value)


def _is_tensor(given: Any) -> bool:
    return isinstance(given, Mapping) and given.get("class_name") == "__keras_tensor__"


def _history(tensor: Any) -> tuple[str, int, int]:
    name, node, position = tensor["config"]["keras_history"]
    return str(name), int(node), int(position)


def _listed(node: Any) -> list[tuple[str, int, int]]:
    """The tensors that a call is given, where it is given nothing else; NotAsNodes otherwise."""
    for key, value in node.get("kwargs", {}).items():
        if value not in (None, False) and key not in ("training", "mask"):
            raise NotAsNodes(f"A Keras layer called with {key}={value!r:.60} is not imported.")
    return list(_only_tensors(node["args"]))


def _only_tensors(given: Any) -> Iterator[tuple[str, int, int]]:
    """The tensors in nested arguments, which may hold nothing else: constants are refused."""
    if _is_tensor(given):
        yield _history(given)
    elif isinstance(given, (list, tuple)):
        for value in given:
            yield from _only_tensors(value)
    else:
        raise NotAsNodes(
            f"A Keras operation on the constant {given!r:.60} is not imported; use a layer such as Rescaling."
        )


def _run(
    layer: Mapping[str, Any], weights: Weights, values: Sequence[Value], walk: Walk, depth: int, node: Any = None
) -> list[Value]:
    """What a layer gives for the values that it reads; `node` is how it is called, None for one value alone."""
    name = str(layer["config"]["name"])
    _check_dtype(name, layer["config"].get("dtype"))
    try:
        return _as_nodes(layer, weights, values, walk, depth, node)
    except NotAsNodes as error:
        live = weights.live.get(name)
        if live is None:
            raise UnsupportedModelError(f"{error} {_HAND_OVER}") from None
    return _by_gradient(live, values, walk, node)


_HAND_OVER = (
    "Files are read without Keras: load the model with keras.saving.load_model and hand over the "
    "object, whose other layers are explained through autograd."
)


def _as_nodes(
    layer: Mapping[str, Any], weights: Weights, values: Sequence[Value], walk: Walk, depth: int, node: Any
) -> list[Value]:
    """The outputs of a layer or inner model as nodes; NotAsNodes if it is not one of Keras's own layers."""
    kind, config, module = str(layer["class_name"]), layer["config"], str(layer.get("module"))
    name = str(config["name"])
    if node is not None:
        order = _places_read(node)
        values = [values[order.index(place)] for place in _listed(node)]
    if kind in _MODELS and module.split(".")[0] == "keras":
        inner = weights.models.get(name, Weights({}))
        return run_model(kind, config, inner, values, walk, depth + 1)
    if not module.startswith("keras.layers") or layer.get("registered_name"):
        raise NotAsNodes(
            f"The layer {name!r} of this Keras model is a {module}.{kind}, which is not one of Keras's own layers."
        )
    if name in weights.vocabularies:
        config = {**config, "vocabulary": weights.vocabularies[name]}
    return [apply(kind, name, config, list(weights.layers.get(name, ())), values, walk)]


def _by_gradient(live: Any, values: Sequence[Value], walk: Walk, node: Any) -> list[Value]:
    """The output of a layer as an opaque function with values and gradients."""
    from .autograd import Place, by_autograd, call_of

    args, kwargs = [Place(0)], {}
    if node is not None:
        order = {place: Place(i) for i, place in enumerate(_places_read(node))}
        args, kwargs = _template(node["args"], order), _template(node.get("kwargs", {}), order)
    if not values:
        raise UnsupportedModelError(f"The operation {live.name!r} of this Keras model reads no other; it is constant.")
    whole = [bool(v.raw) and all(j in walk.whole for j in v.raw) for v in values]
    label = f"{type(live).__name__} {live.name!r}"
    return by_autograd(call_of(live, args, kwargs, [v.shape for v in values], whole, label), label, values, walk)


def _template(given: Any, order: Mapping[tuple[str, int, int], Any]) -> Any:
    """The nested arguments of a call, with tensors replaced by their values in `order`, and constants deserialised."""
    if _is_tensor(given):
        return order[_history(given)]
    if isinstance(given, (list, tuple)):
        return type(given)(_template(v, order) for v in given)
    if isinstance(given, Mapping) and "class_name" not in given:
        return {key: _template(v, order) for key, v in given.items()}
    if not isinstance(given, Mapping):
        return given
    from keras.saving import deserialize_keras_object

    try:
        return deserialize_keras_object(given)
    except (ValueError, TypeError) as error:  # a lambda
        raise NotByLayers(str(error)) from None


def _check_dtype(name: str, policy: Any) -> None:
    """Refuse layers that compute in other types than float32 and float64, or are quantised."""
    while isinstance(policy, Mapping):
        if str(policy.get("class_name")).startswith("Quantized"):
            raise UnsupportedModelError(
                f"Quantised Keras models cannot be explained, and the layer {name!r} is quantised: it rounds numbers "
                "on their way, so that its output is a staircase without a gradient. Explain the model it is made from."
            )
        policy = policy["config"].get("name") or policy["config"].get("source_name")
    if policy is not None and policy not in _DTYPES:
        raise UnsupportedModelError(
            f"The layer {name!r} of this Keras model computes in {policy}; models in float32 or float64 can be "
            "explained. Load its weights into a model with that dtype."
        )
