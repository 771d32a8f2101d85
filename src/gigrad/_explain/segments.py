"""Whole decisions as one model: another model for each segment, rules, caps and floors."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from .._io.tables import Rows, decoded_rows
from ..errors import InputError
from ..graph import (
    Affine,
    Array,
    Column,
    Elementwise,
    Fill,
    Graph,
    Input,
    Node,
    PiecewiseLinear,
    Transform,
    TreeEnsemble,
    Witness,
    assemble,
    merge,
    own_values,
    rewire,
    switched,
    topological,
    value_of,
)
from ..graph.witness import nearest_witnesses
from ..importers import import_model
from .cases import Cases, is_plain_number, refuses_missing


def switch(by: str | int, cases: Mapping[Any, Any], default: Any = None) -> Graph:
    """Another model for each value or band of a column, as one model.

    Parameters
    ----------
    by : str or int
        The column that decides; its position for models that do not know their columns by name.
    cases : dict
        What to use where. A key is a value of the column (a label, a number), a band `(low, high)` of numbers, which
        holds `low <= x < high` (None for an open end), or None for a missing value. Keys are all values or all bands.
        What they lead to are fitted models, Graphs, or plain numbers: a rule that decides by itself.
    default : model, Graph or number, optional
        What is used for all else. Without it the cases must cover all numbers; labels and missing values that no case
        has are refused.

    Returns
    -------
    Graph
        With the outputs of the models, which must all have the same number, over the union of their columns.

    Notes
    -----
    The column jumps at the edge of its bands; between two values it changes all at once, half-way, for all models.
    Other columns change on the same path, so every model may be evaluated on rows between two segments: a column other
    than `by` may be missing only where every model that reads it accepts missing values.

    Examples
    --------
    >>> import gigrad as gig
    >>> f = gig.switch(0, {(None, 0.5): 1.0, (0.5, None): tree})
    >>> f.predict([[0.0, 1.0], [1.0, 1.0]])
    array([1., 4.])
    """
    given = Cases.of(cases, default)
    models = [import_model(m) if not is_plain_number(m) else None for m in given.models]
    known = [m for m in models if m is not None]
    if not known:
        raise InputError("switch must lead to at least one model; all of its cases are plain numbers.")
    given = given.without_missing(by, models, explicit=None in cases)
    selector = given.selector(by, known[0], known)
    deciding = next(c for c in selector.columns if c.kind != "unused")
    name = deciding.name
    taking = [None if m is None else _taking_missing(m, deciding) for m in models]
    joined = merge([selector, *(m for m in taking if m is not None)])
    chooser = joined[0].score
    if not isinstance(chooser, TreeEnsemble):
        raise InputError(f"switch cannot be decided by {name!r}: the models read it in a way that hides its values.")
    rest = iter(joined[1:])
    parts = [None if m is None else next(rest) for m in models]
    return _joined(joined[0], chooser, given.models, parts)


def clip(model: Any, low: float | None = None, high: float | None = None) -> Graph:
    """A model whose score is held between a floor and a cap.

    Parameters
    ----------
    model : fitted model or Graph
    low, high : float, optional
        The least and the largest score; at least one of them.

    Returns
    -------
    Graph
        With the margin as it was.

    Examples
    --------
    >>> import gigrad as gig
    >>> gig.clip(tree, high=3.5).predict([[0.0, 0.0], [1.0, 1.0]])
    array([0. , 3.5])
    """
    graph = import_model(model)
    for what, value in (("low", low), ("high", high)):
        if value is not None and not (is_plain_number(value) and math.isfinite(value)):
            raise InputError(f"{what} must be a finite number or None; got {value!r:.60}.")
    if low is None and high is None:
        raise InputError("clip needs low, high or both; got neither.")
    if low is not None and high is not None and low >= high:
        raise InputError(f"low must be less than high; got {low} and {high}.")
    return replace(graph.then(_Clip(low, high)), label=f"clip({graph.label})")


@dataclass(frozen=True)
class _Clip(Transform):
    """A score held between a floor and a cap."""

    low: float | None
    high: float | None

    def apply(self, source: Node) -> Node:
        """The node of the clipped scores; with one bound alone, by a ReLU."""
        if self.low is not None and self.high is not None:
            ends = np.array([self.low, self.high], np.float64)
            return PiecewiseLinear(source, ends, ends)
        # low + max(x - low, 0), or high - max(high - x, 0)
        sign, at = (1.0, float(self.low)) if self.low is not None else (-1.0, float(self.high or 0.0))
        eye, width = np.eye(source.width), source.width
        above = Elementwise(Affine(source, sign * eye, np.full(width, -sign * at)), "relu")
        return Affine(above, sign * eye, np.full(width, at))


# ---------------------------------------------------------------- models side by side


def _taking_missing(graph: Graph, deciding: Column) -> Graph:
    """The same model, accepting a missing value of the deciding column; its output is not used for such rows."""
    at = [j for j, c in enumerate(graph.columns) if c.name == deciding.name and refuses_missing(c)]
    if not deciding.missing or not at or graph.columns[at[0]].kind != "number":
        return graph
    fill = np.full(len(graph.columns), np.nan)
    fill[at] = 0.0
    new: dict[Node, Node] = {graph.input: Fill(graph.input, fill)}
    outputs = (graph.score, graph.margin, *(w.node for w in graph.witnesses))
    sources = tuple(w.source for w in graph.witnesses if w.source is not None)
    for node in topological(*outputs, *sources):
        if isinstance(node, TreeEnsemble) and node.source is graph.input:
            new[node] = node  # takes any value as it is
    moved = rewire((*outputs, *sources), new)
    witnesses = tuple(
        replace(w, node=moved[w.node], source=None if w.source is None else moved[w.source]) for w in graph.witnesses
    )
    columns = tuple(replace(c, missing=True) if j in at else c for j, c in enumerate(graph.columns))
    return replace(graph, columns=columns, score=moved[graph.score], margin=moved[graph.margin], witnesses=witnesses)


def _joined(table: Graph, chooser: TreeEnsemble, given: Sequence[Any], parts: Sequence[Graph | None]) -> Graph:
    """The graph that scores each row by the model, or the number, that the chooser selects for it."""
    graphs = [g for g in parts if g is not None]
    for what in ("output_names", "margin_names"):
        for graph in graphs:
            mine, theirs = getattr(graphs[0], what), getattr(graph, what)
            if len(mine) != len(theirs) or (mine != theirs and set(mine) == set(theirs)):
                raise InputError(
                    f"switch needs models with the same outputs in the same order; {graphs[0].label} gives "
                    f"{', '.join(mine)} and {graph.label} {', '.join(theirs)}."
                )
    linked = any(g.margin is not g.score for g in graphs) and all(g is not None for g in parts)
    names = {"score": graphs[0].output_names, "margin": graphs[0].margin_names if linked else graphs[0].output_names}
    nodes: dict[str, Node] = {}
    witnesses: dict[Node, Witness] = {}
    for what in ("score", "margin") if linked else ("score",):
        sources = [_constant(v, table.input, len(names[what])) if g is None else getattr(g, what)
                   for v, g in zip(given, parts, strict=True)]  # fmt: skip
        nodes[what] = switched(chooser, sources)
        witnesses[nodes[what]] = _witness(nodes[what], chooser, sources, parts, table.input)
    opposite = graphs[0].opposite if all(g is not None and g.opposite == graphs[0].opposite for g in parts) else None
    return replace(
        table,
        score=nodes["score"],
        margin=nodes.get("margin", nodes["score"]),
        output_names=names["score"],
        margin_names=names["margin"],
        witnesses=tuple(witnesses.values()) if any(g.witnesses for g in graphs) else (),
        label=f"switch({', '.join(dict.fromkeys(g.label for g in graphs))})",
        no_score=next((g.no_score for g in graphs if g.no_score), ""),
        opposite=opposite,
    )


def _constant(value: Any, source: Input, width: int) -> TreeEnsemble:
    if not math.isfinite(value):
        raise InputError(f"A case that is a number must be finite; got {value!r}.")
    return assemble(source, [], np.full(width, float(value)))


# ---------------------------------------------------------------- the models' own predictions


def _witness(
    node: Node, chooser: TreeEnsemble, sources: Sequence[Node], parts: Sequence[Graph | None], source: Input
) -> Witness:
    """The parts' own predictions, each on the rows of its segment, as the witness of a switch."""
    route = _Route(chooser, tuple(sources), tuple(() if g is None else g.witnesses for g in parts), source)
    near = [w for s, own in zip(sources, route.witnesses, strict=True) for w in nearest_witnesses(s, own)]
    return Witness(
        node,
        route,
        "switch",
        rtol=max((w.rtol for w in near), default=1e-9),
        atol=max((w.atol for w in near), default=1e-12),
        scale=route.scale,
    )


@dataclass(frozen=True, eq=False)
class _Route:
    """The models' own predictions, each row predicted by the model of its segment and compared with that graph."""

    chooser: TreeEnsemble
    sources: tuple[Node, ...]
    witnesses: tuple[tuple[Witness, ...], ...]
    input: Input

    def __call__(self, rows: Rows) -> Array:
        out = np.zeros((len(rows), self.sources[0].width))
        for k, some in self._segments(rows):
            out[some] = own_values(self.sources[k], self.witnesses[k], self.input, _take(rows, some))
        return out

    def scale(self, rows: Rows) -> Array:
        """The scale of the rounding of every row's score, from the witnesses of its segment's model."""
        out = np.zeros((len(rows), self.sources[0].width))
        for k, some in self._segments(rows):
            for w in nearest_witnesses(self.sources[k], self.witnesses[k]):
                size = np.asarray(self._scale(w, _take(rows, some)), np.float64)
                out[some] = np.maximum(
                    out[some], size.reshape(len(some), -1).max(axis=1, keepdims=True) if size.ndim else size
                )
        return out

    def _scale(self, witness: Witness, rows: Rows) -> Any:
        """One witness's scale for some rows, which are given as that witness reads them."""
        if not callable(witness.scale):
            return witness.scale
        if witness.source is not None:
            rows = decoded_rows(value_of(witness.source, {self.input: rows.matrix}), witness.columns)
        return witness.scale(rows)

    def _segments(self, rows: Rows) -> list[tuple[int, NDArray[np.int64]]]:
        chosen = np.rint(self.chooser.forward(rows.matrix)[:, 0]).astype(np.int64)
        return [(k, np.flatnonzero(chosen == k)) for k in np.unique(chosen).tolist()]


def _take(rows: Rows, some: NDArray[np.int64]) -> Rows:
    """Some of the rows, in the table's own type."""
    if not rows.is_frame:
        return Rows(rows.matrix[some], rows.table[some], rows.names)
    frame = nw.from_native(rows.table, eager_only=True)
    return Rows(rows.matrix[some], frame[some.tolist()].to_native(), rows.names)
