"""The portable explainer: one .gig file that can be used anywhere, with NumPy alone.

The file is a zip of JSON and .npy arrays (see `archive`), never a pickle: reading one runs no code. It holds the
graph of the model (see `nodes`) as it was imported, the reference rows and their weights, the settings and the
provenance, which records the discrete and nominal columns: loading applies that choice and never makes another.
Credits are the same before and after, to the bit. The model's own library is not needed, so predictions are those of
the graph, which was compared with the model when the explainer was made; `provenance` says so.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .._common import checks
from .._explain.grouping import Grouping
from .._io import provenance
from .._io.tables import Rows
from ..engine.settings import RECORDED, Settings
from ..errors import CorruptModelError, InputError
from ..graph import Array, Choice, Graph
from . import archive
from .nodes import Reader, Writer, corrupt, graph_document, names, of_type, probe, read_graph

if TYPE_CHECKING:
    from .._explain.explainer import Explainer

__all__ = ["from_bytes", "load", "load_graph", "save", "save_graph", "to_bytes"]

SUFFIX = ".gig"
_NOTE = (
    "Given by the graph in a portable file, without the model's own library; the graph was compared with it on the "
    "reference rows when the file was made. The gap is measured against the graph."
)


def save(explainer: Explainer, path: str | os.PathLike[str]) -> None:
    """Write an explainer to a .gig file.

    Examples
    --------
    >>> import gigrad as gig
    >>> from gigrad import portable
    >>> portable.save(gig.Explainer(tree, [[0, 0]]), "tree.gig")
    >>> portable.load("tree.gig")([[1, 1]]).values
    array([[2., 2.]])
    """
    archive.write(checks.file_name(path, "a portable file", SUFFIX), *_explainer_document(explainer))


def load(path: str | os.PathLike[str], *, n_threads: int | None = None) -> Explainer:
    """Read an explainer from a .gig file; a damaged or hostile file raises CorruptModelError.

    Examples
    --------
    >>> import gigrad as gig
    >>> from gigrad import portable
    >>> gig.Explainer(tree, [[0, 0]]).save("tree.gig")
    >>> portable.load("tree.gig", n_threads=1)([[1, 1]]).values
    array([[2., 2.]])
    """
    with _named(path):
        return _explainer(*archive.read(Path(path)), n_threads)


def to_bytes(explainer: Explainer) -> bytes:
    """The content of the file that `save` would write, for example to broadcast it with Spark.

    Examples
    --------
    >>> import gigrad as gig
    >>> from gigrad import portable
    >>> data = portable.to_bytes(gig.Explainer(tree, [[0, 0]]))
    >>> data[:2]  # a zip archive
    b'PK'
    """
    return archive.to_bytes(*_explainer_document(explainer))


def from_bytes(data: bytes, *, n_threads: int | None = None) -> Explainer:
    """The explainer that `to_bytes` was given.

    Examples
    --------
    >>> import gigrad as gig
    >>> from gigrad import portable
    >>> explainer = portable.from_bytes(portable.to_bytes(gig.Explainer(tree, [[0, 0]])))
    >>> explainer([[1, 1]]).values
    array([[2., 2.]])
    """
    return _explainer(*archive.read(data), n_threads)


def save_graph(graph: Graph, path: str | os.PathLike[str]) -> None:
    """Write a graph, without a reference, to a .gig file.

    Examples
    --------
    >>> import gigrad as gig
    >>> from gigrad import portable
    >>> portable.save_graph(gig.import_model(tree), "tree.gig")
    >>> portable.load_graph("tree.gig").predict([[1.0, 1.0]])
    array([4.])
    """
    writer = Writer(graph.input, graph.score, graph.margin)
    document = {"kind": "graph", "graph": graph_document(graph, writer), "nodes": writer.nodes}
    archive.write(checks.file_name(path, "a portable file", SUFFIX), document, writer.arrays)


def load_graph(path: str | os.PathLike[str]) -> Graph:
    """The model in a .gig file, of a graph or of an explainer.

    Examples
    --------
    >>> import gigrad as gig
    >>> from gigrad import portable
    >>> gig.import_model(tree).save("tree.gig")
    >>> portable.load_graph("tree.gig").predict([[1.0, 1.0]])
    array([4.])
    """
    with _named(path):
        document, arrays = archive.read(Path(path))
        return read_graph(document.get("graph"), Reader(arrays, document.get("nodes")))


def kind_of(path: str | os.PathLike[str]) -> str:
    """What a .gig file holds: "graph" or "explainer"."""
    with _named(path):
        return str(archive.read(Path(path))[0].get("kind"))


@contextmanager
def _named(path: str | os.PathLike[str]) -> Iterator[None]:
    """Add the file's path to a CorruptModelError raised inside the block."""
    try:
        yield
    except CorruptModelError as error:
        raise CorruptModelError(f"{os.fspath(path)}: {error}") from None


def _explainer_document(explainer: Explainer) -> tuple[dict[str, Any], list[Any]]:
    """What a portable file says of an explainer, and its arrays."""
    scorer = explainer.scorer
    graph, node = scorer.imported or (scorer.graph, scorer.node)
    writer = Writer(graph.input, graph.score, graph.margin, node)
    document = {
        "kind": "explainer",
        "graph": graph_document(graph, writer),
        "output": writer.number[node],
        "output_names": list(scorer.output_names),
        "reference": writer.array(explainer.reference.matrix),
        "reference_names": list(explainer.reference.names),
        "weights": writer.array(explainer.weights),
        "settings": {n: getattr(explainer.settings, n) for n in RECORDED},
        "groups": explainer.grouping.groups,
        "provenance": explainer.provenance,
        "nodes": writer.nodes,
    }
    return document, writer.arrays


def _explainer(document: dict[str, Any], arrays: list[Any], n_threads: int | None) -> Explainer:
    """The explainer that a file describes, after checking every part of it."""
    from .._explain.explainer import Explainer
    from .._explain.scorer import Scorer

    if document.get("kind") == "graph":
        raise InputError(
            "This .gig file holds a model and no reference population; read it with gigrad.Graph.load and give its "
            "graph to gigrad.Explainer together with a reference."
        )
    reader = Reader(arrays, document.get("nodes"))
    graph = read_graph(document.get("graph"), reader)
    node = reader.node(document.get("output"), "output")
    output_names = names(document.get("output_names"), "output_names")
    matrix, weights = _reference(document, reader, graph.input.width)
    reference_names = names(document.get("reference_names"), "reference_names")
    if node.width != len(output_names) or len(reference_names) != graph.input.width:
        corrupt("its names must be as many as its columns and outputs")
    probe(node, source=graph.input, rows=matrix[:2])
    settings = _settings(document)
    groups = of_type(document.get("groups"), dict, "groups")
    try:
        grouping = Grouping.of(reference_names, {name: names(columns, "groups") for name, columns in groups.items()})
    except InputError as error:
        corrupt(f"its groups do not fit its columns ({error})")
    fault = provenance.fault_of(document.get("provenance"), whole=True)
    if fault is not None:
        corrupt(fault)
    threads = None if n_threads is None else checks.whole(n_threads, "n_threads")
    record = document["provenance"] | {"loaded": {"predictions": _NOTE}}
    if record["definition"] != provenance.DEFINITION:
        raise CorruptModelError(
            f"This file explains under definition {record['definition']} and this gigrad under "
            f"{provenance.DEFINITION}; save it again from the model."
        )
    try:
        choice = Choice.from_record(record["choice"], graph.columns, reference_names)
    except InputError as error:
        corrupt(f"its choice of discrete and nominal columns does not fit its columns ({error})")
    scorer = Scorer(graph, node, output_names, {k: v for k, v in record.items() if k not in ("reference", "settings")})
    return Explainer.assembled(
        scorer.under(choice, reference_names),
        Rows(matrix, matrix, reference_names),
        weights,
        replace(settings, n_threads=threads),
        grouping,
        record,
    )


def _reference(document: dict[str, Any], reader: Reader, columns: int) -> tuple[Array, Array]:
    """The rows of the reference in a file, and their weights."""
    matrix = reader.array(document.get("reference"), np.float64, "reference")
    weights = reader.array(document.get("weights"), np.float64, "weights")
    if matrix.ndim != 2 or matrix.shape[1] != columns or len(matrix) == 0 or np.isinf(matrix).any():
        corrupt(f"its reference must be finite rows of {columns} columns")
    if weights.shape != (len(matrix),) or not (weights >= 0).all() or not abs(weights.sum() - 1.0) < 1e-6:
        corrupt("its weights must be one for each reference row, not negative, and sum to 1")
    return matrix, weights


def _settings(document: dict[str, Any]) -> Settings:
    """The settings of the engine in a file."""
    from .._explain.options import Options

    settings = of_type(document.get("settings"), dict, "settings")
    if not {"tol", "seed"} <= settings.keys():
        corrupt("its settings must have tol and seed")
    try:
        return Options(**{name: settings[name] for name in RECORDED if name in settings}).settings()
    except InputError as error:
        corrupt(f"its settings do not make sense ({error})")
