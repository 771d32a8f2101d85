"""What every importer must pass, for our tests and for people who write importers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from .._explain.pairs import explain_pairs
from .._io.tables import Rows, read_rows
from ..errors import ModelMismatchError
from ..graph import Array, Column, Graph, own_values
from ..importers import import_model
from .definition import brute_force, thresholds


@dataclass(frozen=True)
class ImporterReport:
    """The result of `check_importer`.

    Attributes
    ----------
    rows : int
        Rows on which the graph and the model's own predictions were compared.
    largest_gap : float
        Largest `|gap|` of the explained pairs, relative to the largest `|prediction|`.
    largest_difference : float
        Largest difference from the brute-force definition, on the same scale.
    """

    rows: int
    largest_gap: float
    largest_difference: float


def check_importer(
    model: Any, X: Any, *, pairs: int = 4, changes: int = 4, tol: float = 1e-9, seed: int = 0
) -> ImporterReport:
    """Check an importer on a model and rows it can predict; raises where anything does not hold.

    The graph must reproduce the model's own predictions on X, on rows at thresholds and their float neighbours, and on
    rows with missing values where the model takes them; credits must add up; and they must equal the brute-force
    definition on a few pairs, with all columns continuous and with those that trees split on discrete.

    Parameters
    ----------
    model : fitted model
    X : table, as the model takes it
    pairs : int
        How many pairs to compare with the definition. They differ in at most `changes` columns, since it costs 2^k.
    tol : float
        Largest difference from the definition, relative to the largest `|prediction|`.

    Examples
    --------
    >>> import gigrad as gig
    >>> import numpy as np
    >>> from gigrad.testing import check_importer
    >>> report = check_importer(tree, np.array([[0.0, 0.0], [1.0, 1.0]]))
    >>> report.largest_difference < 1e-12
    True
    """
    graph = import_model(model)
    if not graph.witnesses:
        raise ModelMismatchError(
            f"The graph of {graph.label} must have a witness to be compared with the model; it has none."
        )
    rng = np.random.default_rng(seed)
    outputs = ("margin",) if graph.no_score else (None,) if graph.margin is graph.score else (None, "margin")
    read = [read_rows(table, graph, what="X") for table in (X, *edge_tables(graph, X, rng))]
    for rows in read:
        for node in {graph.output(output)[0] for output in outputs}:
            own_values(node, graph.witnesses, graph.input, rows)
    starts, ends = _some_pairs(np.concatenate([rows.matrix for rows in read]), pairs, changes, rng)
    bare = replace(graph, witnesses=())
    gaps, differences = [], []
    for output, discrete in product(outputs, _choices(graph)):
        node, _ = graph.output(output)
        tables = _encoded(bare, starts), _encoded(bare, ends)
        explained = explain_pairs(bare, *tables, output=output, discrete=discrete, tol=tol)
        got = explained.values.reshape(pairs, -1, node.width)
        scale = max(1.0, float(np.abs(explained.predictions).max()))
        gaps.append(np.abs(explained.gap).max() / scale)
        for i in range(pairs):
            want = brute_force(graph, starts[i], ends[i], output=output, discrete=discrete)
            differences.append(np.abs(got[i] - want).max() / scale)
    gap, difference = float(np.max(gaps)), float(np.max(differences))
    if not (gap <= tol and difference <= tol):  # also true for NaN
        raise ModelMismatchError(
            f"The credits of {graph.label} must add up and equal the definition to {tol:g}; the gap is {gap:.3g} and "
            f"the difference {difference:.3g}."
        )
    return ImporterReport(sum(len(rows) for rows in read), gap, difference)


def _choices(graph: Graph) -> list[dict[str, None]]:
    """The choices of discrete columns to try: none, and every number that trees split on."""
    split = thresholds(graph, graph.margin if graph.no_score else graph.score)
    numbers = {graph.columns[j].name: None for j in sorted(split) if graph.columns[j].kind == "number"}
    return [{}, numbers] if numbers else [{}]


def _some_pairs(pool: Array, pairs: int, changes: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Pairs of rows of the pool, the start with the values of a third row in a few columns."""
    ends = pool[rng.integers(0, len(pool), pairs)]
    starts = ends.copy()
    for i in range(pairs):
        columns = rng.choice(pool.shape[1], min(changes, pool.shape[1]), replace=False)
        starts[i, columns] = pool[rng.integers(0, len(pool)), columns]
    return starts, ends


def _encoded(graph: Graph, matrix: Array) -> Rows:
    return Rows(matrix, matrix, graph.feature_names)


def edge_tables(graph: Graph, X: Any, rng: np.random.Generator, each: int = 3) -> Iterator[Any]:
    """Copies of rows of X with one column at a time changed.

    Numbers at thresholds and beside them; categories that are known and, where the model takes them, unknown; missing
    values where it takes those.
    """
    split = thresholds(graph, graph.score)
    for j, column in enumerate(graph.columns):
        if column.kind == "unused":
            continue
        if column.kind == "category" or column.labels is not None:
            values = _some_categories(column, X, j, rng, each)
        else:
            values = _near(split.get(j, np.zeros(0)), rng, each)
            if column.missing_value is not None:
                values.append(column.missing_value)
        if column.missing:
            values.append(np.nan if column.labels is None else None)
        if values:
            yield _with_column(X, j, column, values, rng)


def _near(thresholds: Array, rng: np.random.Generator, each: int) -> list[Any]:
    """Values at and beside some of the thresholds."""
    thresholds = thresholds[np.abs(thresholds) <= _LARGEST]  # a larger one only separates missing values from numbers
    picked = rng.choice(thresholds, min(each, len(thresholds)), replace=False)
    with np.errstate(over="ignore"):
        return [v for t in picked for v in (f(t) for f in _NEIGHBOURS) if abs(v) <= _LARGEST]


def _some_categories(column: Column, X: Any, position: int, rng: np.random.Generator, each: int) -> list[Any]:
    """Codes or labels of a category column, and one that the model was not trained on."""
    if column.labels is None:
        return [float(code) for code in (0, 1, 2, 31, 32, 10**6)]
    known = list(column.labels) if column.known_as == "label" else _present(X, position, column.name)
    picked = [known[i] for i in rng.integers(0, len(known), each)] if known else []
    if column.unknown == "refuse":
        return picked
    return [*picked, "never seen" if all(isinstance(v, str) for v in known) else 987654]


def _present(X: Any, position: int, name: str) -> list[Any]:
    """The values of one column of a table, without repeats and missing ones."""
    import narwhals as nw

    if isinstance(X, np.ndarray):
        values = X[:, position].tolist()
    else:
        frame = nw.from_native(X, eager_only=True)
        values = frame.get_column(name if name in frame.columns else frame.columns[position]).to_list()
    return [v for v in dict.fromkeys(values) if v is not None and v == v]


_LARGEST = float(np.finfo(np.float32).max)  # several libraries refuse larger numbers
_NEIGHBOURS: tuple[Callable[[float], float], ...] = (
    float,
    lambda t: float(np.nextafter(t, np.inf)),
    lambda t: float(np.nextafter(t, -np.inf)),
    lambda t: float(np.float32(t)),
    lambda t: float(np.nextafter(np.float32(t), np.float32(np.inf))),
    lambda t: float(np.nextafter(np.float32(t), np.float32(-np.inf))),
)


def _with_column(X: Any, position: int, column: Column, values: list[Any], rng: np.random.Generator) -> Any:
    """Random rows of X, as many as there are values, with one column replaced by them."""
    index = rng.integers(0, len(X), len(values))
    if isinstance(X, np.ndarray):
        out = X[index].astype(np.float64) if X.dtype != object else X[index].copy()
        out[:, position] = values
        return out
    import narwhals as nw

    frame = nw.from_native(X, eager_only=True)[index.tolist()]
    name = column.name if column.name in frame.columns else frame.columns[position]
    kind: Any = nw.String() if any(isinstance(v, str) for v in values) else nw.Float64()
    if all(isinstance(v, int) for v in values):
        kind = nw.Int64()
    series = nw.new_series(name, values, kind, backend=frame.implementation)
    return frame.with_columns(series).to_native()
