"""One output of a model: its own scores, compared with the graph's, and the explanation that credits make."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._io import provenance
from .._io.tables import Rows
from ..engine import Credits, Pairs, Population, Settings, attribute, held_to
from ..engine.opaque import has_functions, refuse_ignored, why_not
from ..errors import AccuracyWarning, warn
from ..graph import Array, Choice, Column, Graph, Input, Node, Scores, rounding_above, scores_of, under, value_of
from ..importers import import_model
from .explanation import Explanation
from .grouping import Grouping
from .indexing import table_columns

NOTICED = 1e-5
"""Relative mismatch between a score and its credits from which on a function's gradient is examined for the cause: more
than the precision of a net in float32."""


@dataclass(frozen=True, eq=False)
class Scorer:
    """One output of a model: its node in the graph, the names of its columns, and the record of what it is.

    Attributes
    ----------
    graph, node
        With thresholds moved to where `choice` puts them.
    output_names : tuple of str
    record : dict
    choice : Choice
    imported : (Graph, Node) or None
        The graph and the node as they were before the choice, which a file holds; None where no choice was made yet.
    """

    graph: Graph
    node: Node
    output_names: tuple[str, ...]
    record: dict[str, Any]
    choice: Choice = field(default_factory=Choice)
    imported: tuple[Graph, Node] | None = None

    @classmethod
    def of(cls, model: Any, output: Any, target: Any, graph: Graph | None = None) -> Scorer:
        """The output of a model that `output` and `target` name; `graph` is the imported model, if there is one yet."""
        if isinstance(model, Scorer):  # already prepared for this output and target
            return model
        graph = import_model(model) if graph is None else graph
        node, names = graph.output(output, target)
        record = {
            "definition": provenance.DEFINITION,
            **provenance.model_record(graph, model, output, node, names),
            "versions": provenance.versions(),
        }
        return cls(graph, node, names, record)

    def under(self, choice: Choice, names: Sequence[str], share: float = 0.5) -> Scorer:
        """The same output with the discrete and nominal columns of a choice; `names` are those of the columns.

        `share` is where a crossing lies between two neighbouring values of a discrete column, half-way by default.
        """
        graph, node = self.imported or (self.graph, self.node)
        placed, (moved,) = under(graph, choice, names, node, share=share)
        record = self.record | {"choice": choice.as_record()}
        return Scorer(placed, moved, self.output_names, record, choice, (graph, node))

    @property
    def source(self) -> Input:
        """The node at which encoded rows enter the graph."""
        return self.graph.input

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns that the model reads, in order."""
        return self.graph.columns

    def own(self, rows: Rows) -> Array:
        """The model's own predictions (n, k), after a check that the graph reproduces them."""
        return self.scores(rows).own

    def scores(self, rows: Rows) -> Scores:
        """The model's own predictions and the graph's scores, after the same check."""
        return scores_of(self.node, self.graph.witnesses, self.source, rows)

    def evaluated(self, matrix: Array) -> Array:
        """The graph's scores (n, k) of encoded rows, without a check."""
        return value_of(self.node, {self.source: matrix})

    def credit(self, paths: Population | Pairs, settings: Settings) -> Credits:
        """The credits of the output along paths between rows of its graph's columns."""
        return attribute(self.node, self.source, paths, settings)

    def held_to_own(self, credit: Credits, base: Array, predictions: Array, tol: float) -> Credits:
        """The credits with `error` raised to cover their mismatch with the model's own scores beyond the tolerance."""
        scale = np.maximum(np.abs(base), np.abs(predictions))
        rounding = rounding_above(self.node, self.graph.witnesses, scale)
        return held_to(credit, predictions - base, tol * scale, rounding)

    def refuse_ignored(self, starts: Rows, ends: Rows) -> None:
        """Raise if the value of a function in the model changes with a column for which its gradient is 0."""
        if len(starts) and len(ends) and has_functions(self.node):
            refuse_ignored(self.node, self.source, starts.matrix, ends.matrix, ends.names)

    def tell_why(self, e: Explanation, starts: Callable[[int], Array], rows: Rows, tol: float) -> None:
        """Warn, with the cause, if credits do not add up because a function is not smooth or its gradient is wrong.

        `starts` returns the starts of the paths of the row with the given number.
        """
        if not len(rows) or not has_functions(self.node):
            return
        allowed = max(NOTICED, 10.0 * tol) * np.maximum(np.abs(e.predictions), np.abs(e.base_values))
        missing = np.nan_to_num(np.abs(e.gap), nan=np.inf) - allowed
        row = int(missing.reshape(len(rows), -1).max(axis=1).argmax())
        if missing.reshape(len(rows), -1)[row].max() <= 0.0:
            return
        said = why_not(self.node, self.source, starts(row), rows.matrix[row], rows.names)
        if said:
            warn(f"The credits of row {row} do not add up: {said}.", AccuracyWarning)

    def explanation(
        self,
        credit: Credits,
        base: Array,
        predictions: Array,
        rows: Rows,
        grouping: Grouping,
        record: dict[str, Any],
        starts: Rows | None = None,
    ) -> Explanation:
        """The Explanation of `rows`, without the outputs' axis if there is one output; `starts` are those of pairs."""
        values, error = credit.values, credit.error
        gap = predictions - base - values.sum(axis=1)
        if self.node.width == 1:
            values, error, gap = values[:, :, 0], error[:, 0], gap[:, 0]
            base, predictions = base[:, 0], predictions[:, 0]
        record = {**record, "data": provenance.data_record(rows)}
        return Explanation(
            values,
            base,
            predictions,
            gap,
            error,
            data=_ordered(rows, grouping),
            starts=None if starts is None else _ordered(starts, grouping),
            feature_names=tuple(grouping.members),
            output_names=self.output_names,
            provenance=record,
            columns=tuple(rows.names[c] for c in grouping.order),
            groups=grouping.groups,
        )


def _ordered(rows: Rows, grouping: Grouping) -> Any:
    """The raw table, with the columns of groups together."""
    return rows.table if grouping.players is None else table_columns(rows.table, grouping.order)
