"""Fingerprints: equal for what is equal, different for anything that can change a credit."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import sklearn

import gigrad as gig
from gigrad._io import provenance
from gigrad._io.tables import read_rows
from gigrad.engine import Settings
from gigrad.graph import Affine, Array, Column, Concat, Elementwise, Graph, Input, Node, Opaque, Sum


def model(weight: float = 2.0, name: str = "age", labels: tuple[str, ...] | None = None) -> Graph:
    source = Input(2)
    score = Elementwise(Affine(source, np.array([[1.0, weight]]), np.zeros(1)), "sigmoid")
    columns = (Column(name), Column("home", "number" if labels is None else "category", labels))
    return Graph(columns, source, score, score.source, ("score",), named=True, label="logistic")


def test_the_same_model_built_twice_has_the_same_fingerprint() -> None:
    assert provenance.model_fingerprint(model()) == provenance.model_fingerprint(model())


@pytest.mark.parametrize(
    "other", [model(weight=np.nextafter(2.0, 3)), model(name="Age"), model(labels=("own",)), model(labels=("rent",))]
)
def test_a_model_that_differs_anywhere_has_another_fingerprint(other: Graph) -> None:
    assert provenance.model_fingerprint(other) != provenance.model_fingerprint(model())


def test_how_nodes_join_counts() -> None:
    a, b = Input(1), Input(1)
    assert provenance.node_fingerprint(Concat((a, b))) != provenance.node_fingerprint(Concat((a, a)))
    assert provenance.node_fingerprint(Sum((a, b))) != provenance.node_fingerprint(Concat((a, b)))


def test_rows_have_one_fingerprint_in_any_kind_of_table() -> None:
    import pandas as pd
    import polars as pl

    graph = model()
    X = np.array([[1.0, np.nan], [3.0, 4.0]])
    tables = [X, pd.DataFrame(X, columns=["age", "home"]), pl.DataFrame({"home": [None, 4.0], "age": [1, 3]})]
    found = {provenance.rows_fingerprint(read_rows(t, graph, what="X")) for t in tables}
    assert len(found) == 1
    assert provenance.rows_fingerprint(read_rows(X[::-1], graph, what="X")) not in found


def test_every_nan_is_the_same_nan() -> None:
    odd = np.array([0x7FF8000000000001], dtype=np.uint64).view(np.float64)
    assert provenance.array_fingerprint(odd) == provenance.array_fingerprint(np.array([np.nan]))


def test_functions_that_cannot_be_looked_into_are_named() -> None:
    def value(x: Array) -> Array:
        return x[:, :1]

    source = Input(2)
    node = Opaque(source, 1, value, lambda x, c: np.column_stack([c, 0 * c]), "my network")
    graph = Graph((Column("a"), Column("b")), source, node, node, ("score",))
    record = provenance.model_record(graph, graph, None, node, ("score",))
    assert record["model"]["not_in_fingerprint"] == ["my network"]


def test_a_field_of_an_unknown_kind_is_refused_rather_than_skipped() -> None:
    source = Input(1)
    bad = replace(Affine(source, np.eye(1), np.zeros(1)))
    object.__setattr__(bad, "bias", {"a": 1})
    with pytest.raises(TypeError, match="got a dict"):
        provenance.node_fingerprint(bad)


class _Identity(gig.graph.Transform):
    def apply(self, source: Node) -> Node:
        return source

    def __repr__(self) -> str:
        return "identity()"


def test_the_record_says_what_was_asked_for_and_against_whom() -> None:
    graph = model()
    rows = read_rows(np.ones((3, 2)), graph, what="reference")
    asked = [provenance.model_record(graph, graph, output, graph.score, ("score",))["output"]["asked"]
             for output in (None, "margin", _Identity())]  # fmt: skip
    assert asked == ["prediction", "margin", "identity()"]
    equal = provenance.reference_record(rows, np.full(3, 1 / 3), note="approved in 2011")
    given = provenance.reference_record(rows, np.array([0.5, 0.25, 0.25]))
    assert (equal["weights"], given["weights"]) == ("equal", "given")
    assert equal["note"] == "approved in 2011"
    assert equal["fingerprint"] != given["fingerprint"]


def test_records_are_plain_json() -> None:
    graph = model(labels=("own", "rent"))
    record = provenance.model_record(graph, graph, None, graph.score, ("score",))
    settings = provenance.settings_record(Settings(tol=1e-6, seed=0), {"g": ("age",)})
    record |= {"settings": settings, "versions": provenance.versions()}
    assert json.loads(json.dumps(record)) == record
    assert record["versions"]["gigrad"] == gig.__version__


def test_the_library_of_a_model_is_named_with_its_version() -> None:
    from sklearn.tree import DecisionTreeClassifier

    assert provenance.library_version(DecisionTreeClassifier()) == f"sklearn {sklearn.__version__}"
    assert provenance.library_version(model()) == ""
