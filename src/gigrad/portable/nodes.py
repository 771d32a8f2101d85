"""A graph as plain data and back: nodes in order, each by the values of its fields, parents by number.

Only the classes of `NODES` are ever built, with fields of the types they declare. A parent's number must be smaller
than the node's own, so that cycles are impossible. After reading, every node is evaluated on two rows, so that
inconsistent shapes are found here and not in an explanation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import MISSING, fields, is_dataclass
from types import UnionType
from typing import Any, NoReturn, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from .. import graph as g
from ..errors import CorruptModelError, GigradError, UnsupportedModelError
from ..graph import Graph, Node, Smooth, topological

# The only classes that are ever built: those that gigrad.graph exports, but for the node that is a Python function.
NODES: dict[str, type[Node]] = {
    name: cls
    for name in g.__all__
    if isinstance(cls := getattr(g, name), type) and issubclass(cls, Node) and cls not in (g.Opaque, g.Node, g.Smooth)
}

# The largest total width of all nodes: it bounds the memory for checking a graph.
_MOST_WIDTH = 4_000_000
_MOST_INT = 2**53


class Writer:
    """Turns nodes and arrays into plain data; `arrays` and `nodes` must be stored in the file too."""

    def __init__(self, *outputs: Node) -> None:
        self.arrays: list[NDArray[Any]] = []
        order = topological(*outputs)
        for node in order:
            if type(node) not in NODES.values():
                name = node.label if isinstance(node, g.Opaque) else type(node).__name__
                raise UnsupportedModelError(
                    f"{name!r} cannot be saved: it is known to gigrad only as a Python function, and a portable file "
                    "holds numbers, never code. Build it of layers that gigrad imports (for torch, an nn.Sequential "
                    "of them), or load the model from its own file instead."
                )
        self.number = {node: i for i, node in enumerate(order)}
        self.nodes = [{"type": type(node).__name__, **self.fields(node)} for node in order]

    def fields(self, thing: Any) -> dict[str, Any]:
        return {f.name: self.plain(getattr(thing, f.name)) for f in fields(thing)}

    def array(self, array: NDArray[Any]) -> dict[str, int]:
        self.arrays.append(array)
        return {"array": len(self.arrays) - 1}

    def plain(self, value: Any) -> Any:
        """One value of a field, or a label, in a lossless form for JSON."""
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, Node):
            return {"node": self.number[value]}
        if isinstance(value, np.ndarray):
            return self.array(value)
        if isinstance(value, tuple):
            return [self.plain(v) for v in value]
        if is_dataclass(value):
            return self.fields(value)
        if isinstance(value, float) and not math.isfinite(value):
            return {"float": repr(value)}
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        raise UnsupportedModelError(
            f"A portable file holds numbers, text, true, false and missing; {value!r}, a {type(value).__name__}, "
            "cannot be saved."
        )


class Reader:
    """Builds nodes and arrays from plain data, trusting none of it."""

    def __init__(self, arrays: Sequence[NDArray[Any]], nodes: Any) -> None:
        self.arrays = arrays
        self.nodes: list[Node] = []
        width = 0
        for index, data in enumerate(of_type(nodes, list, "nodes")):
            entry = of_type(data, dict, f"node {index}")
            cls = NODES.get(of_type(entry.get("type"), str, f"the type of node {index}"))
            if cls is None:
                corrupt(f"node {index} has the unknown type {entry['type']!r}")
            node = self.build(cls, {k: v for k, v in entry.items() if k != "type"}, f"node {index}")
            width += node.width
            if not 0 < node.width <= _MOST_WIDTH or width > _MOST_WIDTH:
                corrupt(f"node {index} must have at least one output, all nodes together at most {_MOST_WIDTH}")
            self.nodes.append(node)

    def node(self, index: Any, what: str) -> Node:
        if type(index) is not int or not 0 <= index < len(self.nodes):
            corrupt(f"{what} must name one of the {len(self.nodes)} nodes before it, not {index!r}")
        return self.nodes[index]

    def array(self, value: Any, dtype: Any, what: str) -> NDArray[Any]:
        """The array that a value names, which must have this type."""
        index = of_type(value, dict, what).get("array")
        if type(index) is not int or not 0 <= index < len(self.arrays):
            corrupt(f"{what} must name one of the {len(self.arrays)} arrays, not {index!r}")
        array = self.arrays[index]
        if array.dtype != dtype:
            corrupt(f"{what} must hold {np.dtype(dtype)}, not {array.dtype}")
        return array

    def build(self, cls: type[Any], data: dict[str, Any], what: str) -> Any:
        """An object of a known class from its fields; anything invalid is a damaged file."""
        hints = get_type_hints(cls)
        required = {f.name for f in fields(cls) if f.default is MISSING and f.default_factory is MISSING}
        if not required <= set(data) <= set(hints):
            corrupt(f"{what}, a {cls.__name__}, must have the fields {', '.join(hints)}, not {', '.join(data)}")
        values = {k: self._value(v, hints[k], f"{k} of {what}") for k, v in data.items()}
        try:
            built = cls(**values)
            if isinstance(built, Node):
                _ = built.width  # cached by the node; computed here, where a failure means a damaged file
            return built
        except (GigradError, ValueError, IndexError, TypeError) as error:
            corrupt(f"{what}, a {cls.__name__}, cannot be built ({error})")

    def _value(self, value: Any, hint: Any, what: str) -> Any:
        """A field of a declared type; anything else is corrupt."""
        hint = spelled_out(hint)
        origin, arguments = get_origin(hint), get_args(hint)
        if hint is Node or (isinstance(hint, type) and issubclass(hint, Node)):
            node = self.node(of_type(value, dict, what).get("node"), what)
            return of_type(node, hint, what)
        if isinstance(hint, type) and is_dataclass(hint):
            return self.build(hint, of_type(value, dict, what), what)
        if origin is np.ndarray:
            return self.array(value, get_args(arguments[1])[0], what)
        if origin is tuple:
            return tuple(self._value(v, arguments[0], what) for v in of_type(value, list, what))
        if origin in (Union, UnionType):
            if value is None and type(None) in arguments:
                return None
            (hint,) = (a for a in arguments if a is not type(None))
            return self._value(value, hint, what)
        if get_origin(hint) is not None and value in arguments:  # a Literal
            return value
        return scalar(value, hint, what)


def spelled_out(hint: Any) -> Any:
    """NDArray[T] as ndarray[..., dtype[T]]: since NumPy 2.5 it is an alias that keeps its name."""
    value = getattr(get_origin(hint), "__value__", None)
    return hint if value is None else value[get_args(hint)]


def scalar(value: Any, hint: Any, what: str) -> Any:
    """The value, if it is a number, text, bool or None of the type `hint`; else corrupt."""
    if isinstance(value, dict):
        text = value.get("float")
        if text not in ("nan", "inf", "-inf"):
            corrupt(f"{what} must be a number, not {value!r}")
        value = float(text)
    if hint is Any:
        return of_type(value, (str, int, float, bool, type(None)), what)
    if hint is float and type(value) is int:
        value = float(value)
    if type(value) is not hint or (hint is int and abs(value) > _MOST_INT):
        corrupt(f"{what} must be {hint.__name__ if isinstance(hint, type) else hint}, not {value!r}")
    return value


def of_type(value: Any, kind: Any, what: str) -> Any:
    """The value, which must be of this type."""
    if not isinstance(value, kind):
        names = kind.__name__ if isinstance(kind, type) else "plain"
        corrupt(f"{what} must be {names}, not {type(value).__name__}")
    return value


def names(value: Any, what: str) -> tuple[str, ...]:
    return tuple(of_type(v, str, what) for v in of_type(value, list, what))


def probe(*outputs: Node, source: Node, rows: NDArray[np.float64]) -> None:
    """Evaluate every node and its pullback on a few rows; corrupt if shapes are inconsistent."""
    values = {source: rows}
    try:
        with np.errstate(all="ignore"):
            for node in topological(*outputs):
                if node is source:
                    continue
                inputs = [values[p] for p in node.parents]
                out = values[node] = node.forward(*inputs)
                pulled = node.pullback(np.ones_like(out), *inputs) if isinstance(node, Smooth) else inputs
                fits = out.shape == (len(rows), node.width) and out.dtype == np.float64
                if not fits or [p.shape for p in pulled] != [i.shape for i in inputs]:
                    corrupt(f"its {type(node).__name__} does not fit the step before it")
    except (ValueError, IndexError, TypeError, KeyError, MemoryError, OverflowError) as error:
        if isinstance(error, CorruptModelError):
            raise
        corrupt(f"its steps do not fit together ({error})")


def corrupt(what: str) -> NoReturn:
    raise CorruptModelError(f"This .gig file is damaged: {what}.")


def graph_document(graph: Graph, writer: Writer) -> dict[str, Any]:
    return {f.name: writer.plain(getattr(graph, f.name)) for f in fields(Graph) if f.name != "witnesses"}


def read_graph(data: Any, reader: Reader) -> Graph:
    """A graph from a file, tried on two rows."""
    entry = of_type(data, dict, "graph")
    if "witnesses" in entry:
        corrupt("a graph in a file has no witnesses")
    graph: Graph = reader.build(Graph, entry, "graph")
    probe(graph.score, graph.margin, source=graph.input, rows=np.zeros((2, graph.input.width)))
    return graph
