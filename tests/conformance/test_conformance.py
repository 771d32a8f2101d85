"""Every row of the table: predictions, completeness and the definition, as `gigrad.testing.check_importer` asks."""

from __future__ import annotations

import pytest

import gigrad as gig
from gigrad.testing import check_importer, thresholds

from .row import Row
from .table import ROWS


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_model_is_imported_exactly(row: Row) -> None:
    model, X = row.build()
    report = check_importer(model, X)
    graph = gig.import_model(model)
    assert report.rows > len(X) or not thresholds(graph, graph.score), "trees are also tried at their thresholds"


def test_rows_have_names_of_their_own() -> None:
    names = [(row.library, row.name) for row in ROWS]
    assert len(set(names)) == len(names)
