"""A table of rows with weights, as a reference or as one of two populations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .._common import checks
from .._io import provenance
from .._io.tables import Rows, read_rows
from ..errors import InputError
from ..graph import Array, Graph
from ..references.wiring import open_reference, reference_note


@dataclass(frozen=True, eq=False)
class WeightedRows:
    """The rows of a table or a Reference, one or more.

    Attributes
    ----------
    weights : (n,)
        Scaled to sum to 1.
    record : dict
        What the provenance says about them.
    """

    rows: Rows
    weights: Array
    record: dict[str, Any]

    @classmethod
    def read(cls, given: Any, weights: Any, graph: Graph, what: str, each: str) -> WeightedRows:
        """The rows as the graph reads them; errors call the table `what` and one of its rows `each`."""
        table, weights = open_reference(given, weights)
        rows = read_rows(table, graph, what=what)
        if len(rows) == 0:
            raise InputError(f"{what} must have at least one row; it is empty.")
        shares = checks.weights(weights, len(rows), each)
        return cls(rows, shares, provenance.reference_record(rows, shares, reference_note(given)))
