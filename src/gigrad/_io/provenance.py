"""The provenance of an explanation: fingerprints of the model, the reference and the data, versions, settings.

A fingerprint is a SHA-256 of the numbers that determine the result, so two runs with equal records give equal credits.
Nothing here depends on the clock, the machine or the number of threads: the same run gives the same record.
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any

import numpy as np

from ..engine.settings import RECORDED, Settings
from ..errors import kind_of
from ..graph import Graph, Input, Node, Opaque, Transform, topological
from .tables import Rows

_AT_ONCE = 1 << 20
"""Numbers that are hashed in one block."""

DEFINITION = 2
"""The version of the definition that credits follow (see `docs/definition.md`); records without one follow 1."""


def array_fingerprint(*arrays: Any) -> str:
    """SHA-256 of the dtypes, shapes and numbers of arrays; every NaN counts as the same NaN."""
    hasher = hashlib.sha256()
    for array in arrays:
        _add_array(hasher, np.asarray(array))
    return hasher.hexdigest()


def rows_fingerprint(rows: Rows) -> str:
    """Fingerprint of rows as the model reads them: equal for the same rows in a NumPy array or any data frame."""
    return array_fingerprint(rows.matrix)


def node_fingerprint(*outputs: Node) -> str:
    """Fingerprint of everything that determines the values of some nodes: types, fields and connections of nodes.

    A function known only by its values (`Opaque`) enters by its label and width: see `opaque_parts`.
    """
    order = topological(*outputs)
    number = {node: i for i, node in enumerate(order)}
    hasher = hashlib.sha256()
    for node in order:
        hasher.update(f"|{type(node).__name__}".encode())
        for field in fields(node):
            hasher.update(f";{field.name}=".encode())
            _add(hasher, getattr(node, field.name), number)
    hasher.update(f"|outputs {[number[n] for n in outputs]}".encode())
    return hasher.hexdigest()


def model_fingerprint(graph: Graph) -> str:
    """Fingerprint of a model: its columns with their categories, its score and its margin."""
    columns = [[c.name, c.kind, c.missing, c.unknown, None if c.labels is None else list(c.labels)]
               for c in graph.columns]  # fmt: skip
    text = json.dumps([columns, graph.named, node_fingerprint(graph.score, graph.margin)], default=repr)
    return hashlib.sha256(text.encode()).hexdigest()


def opaque_parts(*outputs: Node) -> list[str]:
    """The labels of the functions whose code is not part of a fingerprint."""
    return [node.label for node in topological(*outputs) if isinstance(node, Opaque)]


def model_record(graph: Graph, model: Any, output: Any, node: Node, output_names: tuple[str, ...]) -> dict[str, Any]:
    """The record of what was explained: the model, its library, and the output."""
    asked = "prediction" if output is None else output if isinstance(output, str) else repr(output)
    record: dict[str, Any] = {
        "model": {
            "label": graph.label,
            "type": f"{type(model).__module__}.{type(model).__qualname__}",
            "columns": len(graph.columns),
            "fingerprint": model_fingerprint(graph),
        },
        "output": {"asked": asked, "names": list(output_names), "fingerprint": node_fingerprint(node)},
    }
    if graph.opposite is not None and asked == "prediction":  # a binary classifier: 1 for probabilities
        record["output"]["probability"] = graph.opposite.score_total == 1.0
    if isinstance(output, Transform):
        record["output"]["transform"] = node_fingerprint(output.apply(Input(graph.score.width)))
    opaque = opaque_parts(graph.score, graph.margin, node)
    if opaque:
        record["model"]["not_in_fingerprint"] = opaque
    library = library_version(model)
    if library:
        record["model"]["library"] = library
    return record


def reference_record(rows: Rows, weights: Any, note: str = "") -> dict[str, Any]:
    """The record of the reference: number of rows, weights, fingerprint, and how it was chosen."""
    weights = np.asarray(weights)
    record: dict[str, Any] = {
        "kind": "population",
        "rows": len(rows),
        "weights": "equal" if np.ptp(weights) == 0 else "given",
        "fingerprint": array_fingerprint(rows.matrix, weights),
    }
    if note:
        record["note"] = note
    return record


def start_record(rows: Rows) -> dict[str, Any]:
    """The record in place of a reference for pairs, in which every row has a start of its own."""
    return {"kind": "pairs", "rows": len(rows), "fingerprint": rows_fingerprint(rows)}


def data_record(rows: Rows) -> dict[str, Any]:
    """The record of the explained rows."""
    return {"rows": len(rows), "columns": rows.matrix.shape[1], "fingerprint": rows_fingerprint(rows)}


def settings_record(settings: Settings, groups: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The record of the settings that can change a credit."""
    record: dict[str, Any] = {name: getattr(settings, name) for name in RECORDED}
    if groups:
        record["groups"] = {name: list(members) for name, members in groups.items()}
    return record


def versions() -> dict[str, str]:
    """The versions of the packages that computed the result."""
    from .. import __version__

    return {
        "gigrad": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "narwhals": _version("narwhals") or "unknown",
    }


def library_version(model: Any) -> str:
    """The model's own library and version, say "xgboost 3.2.0"; "" for a Graph and for functions of your own."""
    package = type(model).__module__.split(".")[0]
    found = _version({"sklearn": "scikit-learn"}.get(package, package))
    return f"{package} {found}" if found and package != "gigrad" else ""


# The fields that other modules read from a record, with their types; those that an explainer's record must have
_KINDS: dict[str, dict[str, tuple[type, ...]]] = {
    "model": {"fingerprint": (str,), "label": (str,), "library": (str,)},
    "output": {"fingerprint": (str,), "asked": (str,)},
    "reference": {
        "fingerprint": (str,), "rows": (int,), "note": (str,), "typical": (dict,), "higher_is_better": (bool,),
        "cutoff": (int, float), "cutoff_in_output_units": (bool,), "method": (str,),
    },
    "settings": {name: (int,) if type(getattr(Settings, name)) is int else (int, float) for name in RECORDED},
    "versions": {"gigrad": (str,)},
}  # fmt: skip
_NEEDED = {
    "model": ("fingerprint",), "output": ("fingerprint",), "reference": ("fingerprint", "rows"), "settings": (),
    "versions": ("gigrad",),
}  # fmt: skip


def fault_of(record: Any, *, whole: bool) -> str | None:
    """What is wrong with a record read from a file, in a few words, or None.

    With `whole`, as for an explainer, every part is required; the record of an explanation may lack some.
    """
    if not isinstance(record, dict):
        return "its provenance is not an object"
    for part, kinds in _KINDS.items():
        content = record.get(part, None if whole else {})
        if not isinstance(content, dict):
            return f"its provenance must have {part!r} as an object"
        absent = [name for name in _NEEDED[part] if whole and name not in content]
        wrong = [n for n, kind in kinds.items() if n in content and not isinstance(content[n], kind)]
        if absent or wrong:
            return f"its provenance must have {(absent + wrong)[0]!r} in {part!r}"
    for part, kind, what in (("definition", int, "a whole number"), ("choice", dict, "an object")):
        if type(record.get(part, None if whole else kind())) is not kind:
            return f"its provenance must have {part!r} as {what}"
    return None


@cache  # every call makes a record, and looking up a package reads its metadata from disk
def _version(distribution: str) -> str:
    """The version of an installed package, or an empty text."""
    from importlib.metadata import PackageNotFoundError, version  # slow to import, and needed only when explaining

    try:
        return version(distribution)
    except PackageNotFoundError:
        return ""


def _add(hasher: Any, value: Any, number: Mapping[Node, int]) -> None:
    """Feed one field of a node to the hash."""
    if isinstance(value, Node):
        hasher.update(f"node {number[value]}".encode())
    elif isinstance(value, np.ndarray):
        _add_array(hasher, value)
    elif isinstance(value, (tuple, list)):
        hasher.update(f"[{len(value)}".encode())
        for item in value:
            _add(hasher, item, number)
    elif is_dataclass(value):
        _add(hasher, tuple(getattr(value, field.name) for field in fields(value)), number)
    elif isinstance(value, np.generic):
        hasher.update(repr(value.item()).encode())
    elif value is None or isinstance(value, (bool, int, float, str)):
        hasher.update(repr(value).encode())
    elif callable(value):
        hasher.update(b"function")
    else:
        raise TypeError(f"A node's fields must be nodes, arrays, tuples, numbers or text; got {kind_of(value)}.")


def _add_array(hasher: Any, array: np.ndarray[Any, Any]) -> None:
    """Hash an array with its type and shape; all NaNs count as the same one."""
    hasher.update(f"{array.dtype.str}{array.shape}".encode())
    if array.dtype == object:
        hasher.update(repr(array.tolist()).encode())
        return
    if array.dtype.kind == "f" and np.isnan(array).any():
        array = np.where(np.isnan(array), np.nan, array)
    numbers = np.ascontiguousarray(array).reshape(-1)
    for begin in range(0, len(numbers), _AT_ONCE):  # a signal waits for one block, not for the whole table
        hasher.update(numbers[begin : begin + _AT_ONCE].data)
