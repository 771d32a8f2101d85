"""Every row of the table: predictions, completeness and the definition, as `gigrad.testing.check_importer` asks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gigrad as gig
from gigrad._explain.scorer import Scorer
from gigrad._io.tables import read_rows
from gigrad.testing import check_importer, thresholds

from .row import Row
from .table import ROWS

# What the oldest supported versions cannot do: a part of a row's name, and the version that can do it first. Before 3.1
# XGBoost kept no labels of categories in its models.
LATER = {
    "xgboost": {"XGBClassifier-binary-pandas-categories": "3.1", "reg:pseudohubererror": "2.0.3"},
    "sklearn": {
        "Dummy": "1.5", "probabilities-handed-on": "1.5", "TunedThreshold": "1.5", "FixedThreshold": "1.5",
        "Frozen": "1.6", "frozen": "1.6",
        "ExtraTreeClassifier-binary-missing": "1.6", "ExtraTreesClassifier-binary-missing": "1.6",
        "ExtraTreeRegressor-regression-missing": "1.6", "ExtraTreesRegressor-regression-missing": "1.6",
        "some-columns-each,-missing-values": "1.6", "poisson-loss": "1.7", "KBinsDiscretizer": "1.7",
        "nested,-with-FeatureUnion": "1.7", "temperature": "1.8",
    },
}  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_model_is_imported_exactly(row: Row) -> None:
    pytest.importorskip(row.package, reason=f"{row.package} is not installed, and the row is about its models")
    if row.model.startswith("torch"):
        pytest.importorskip("torch", reason="torch is not installed, and the row is about its models")
    for part, version in LATER.get(row.package, {}).items():
        if part in row.name:
            pytest.importorskip(row.package, version, reason=f"{row.package} can do this since {version}")
    model, X = row.build()
    report = check_importer(model, X)
    graph = gig.import_model(model)
    assert report.rows > len(X) or not thresholds(graph, graph.score), "trees are also tried at their thresholds"
    if row.task == "binary":
        check_both_classes(model, X)


def check_both_classes(model: Any, X: Any) -> None:
    """Each of two classes, by label and by position, is what the model itself says of it."""
    classes = getattr(model, "classes_", None)
    if classes is None or len(classes) != 2 or not hasattr(model, "predict_proba"):
        return
    graph = gig.import_model(model)
    assert graph.opposite is not None
    if graph.opposite.score_total is None:  # outputs that need not add up to 1
        with pytest.raises(gig.InputError, match="does not follow from this output"):
            graph.output(None, classes[0])
        return
    rows = read_rows(X, graph, what="X")
    asked = X.astype(np.float32) if row_is_of_torch(model) else X
    own = np.asarray(model.predict_proba(asked), np.float64)
    for output in (None, "margin") if not graph.no_score else ("margin",):
        parts = [Scorer.of(graph, output, label) for label in np.asarray(classes).tolist()]
        assert [p.output_names for p in parts] == [(str(c),) for c in classes]
        first, second = (p.own(rows)[:, 0] for p in parts)
        for position, values in enumerate((first, second)):
            if not any(position == c for c in classes):
                assert np.array_equal(Scorer.of(graph, output, position).own(rows)[:, 0], values)
        if output is None and graph.opposite.score_total == 1.0:
            np.testing.assert_allclose(np.stack([first, second], axis=1), own, rtol=0, atol=1e-6)
        elif output == "margin" and graph.margin is not graph.score and graph.margin.width == 1:
            assert np.array_equal(first, -second)


def row_is_of_torch(model: Any) -> bool:
    return type(model).__module__.startswith("skorch")


def test_rows_have_names_of_their_own() -> None:
    names = [(row.library, row.name) for row in ROWS]
    assert len(set(names)) == len(names)
