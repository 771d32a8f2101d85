"""The portable explainer: the same answers without the model's library."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xgboost
from forests import random_forest, random_rows, tree_explainer
from node_table import smooth_nodes

import gigrad as gig
from gigrad import portable
from gigrad.graph import (
    Affine,
    Column,
    Concat,
    Fill,
    Graph,
    Input,
    IsMissing,
    Lookup,
    Node,
    Opaque,
    PiecewiseLinear,
    Product,
    Select,
    Softmax,
    Sum,
    topological,
)
from gigrad.portable.nodes import NODES


def every_node() -> Graph:
    """A graph that uses every kind of node that can be saved."""
    rng = np.random.default_rng(0)
    columns = (
        Column("a", missing=False),
        Column("b", missing_value=-999.0),
        Column("c", "category", ("x", "y", None, 3, 2.5, True, float("inf")), unknown="missing"),
    )
    source = Input(3)
    numbers = Fill(Select(source, (1, 0, 1)), np.array([0.5, 1.0, -1.0]))
    looked = Lookup(source, 2, rng.normal(size=(7, 3)), rng.normal(size=3), rng.normal(size=3))
    both = Product(Sum((numbers, looked, IsMissing(numbers))), Affine(looked, rng.normal(size=(1, 3)), np.ones(1)))
    trees = random_forest(rng, (columns[0], columns[0], columns[2]), source, outputs=3)
    wide = Concat((both, Softmax(trees), *smooth_nodes(numbers, looked).values()))
    score = PiecewiseLinear(
        Affine(wide, rng.normal(size=(2, wide.width)), np.zeros(2)), np.array([-9.0, 0, 9]), np.arange(3.0)
    )
    return Graph(
        columns, source, score, wide, ("no", "yes"), tuple(f"m{i}" for i in range(wide.width)), label="all of it"
    )


def same(a: Any, b: Any) -> bool:
    return type(a) is type(b) and (
        np.array_equal(a, b, equal_nan=True) if isinstance(a, np.ndarray) else a == b or a != a
    )


# ------------------------------------------------------------ the same before and after


@pytest.mark.parametrize("outputs", [1, 3])
def test_credits_are_the_same_to_the_bit(outputs: int, tmp_path: Path) -> None:
    explainer, X = tree_explainer(outputs, outputs, output="margin", tol=1e-7, seed=3)
    explainer.save(tmp_path / "x.gig")
    loaded = gig.Explainer.load(tmp_path / "x.gig")
    a, b = explainer(X), loaded(X)
    for name in ("values", "base_values", "predictions", "gap", "error"):
        assert np.array_equal(getattr(a, name), getattr(b, name)), name
    assert a.feature_names == b.feature_names
    assert a.output_names == b.output_names
    assert loaded.settings == explainer.settings


def test_saving_what_was_loaded_gives_the_same_bytes(tmp_path: Path) -> None:
    explainer, _ = tree_explainer(5, output="margin")
    once = portable.to_bytes(portable.from_bytes(portable.to_bytes(explainer)))
    assert portable.to_bytes(portable.from_bytes(once)) == once


def test_every_kind_of_node_comes_back_as_it_was(tmp_path: Path) -> None:
    graph = every_node()
    graph.save(tmp_path / "g.gig")
    loaded = Graph.load(tmp_path / "g.gig")
    before, after = topological(graph.score, graph.margin), topological(loaded.score, loaded.margin)
    assert {type(n).__name__ for n in before} == set(NODES), "a new kind of node must be added to the table of nodes"
    assert [type(n) for n in before] == [type(n) for n in after]
    for old, new in zip(before, after, strict=True):
        for field in fields(old):
            a, b = getattr(old, field.name), getattr(new, field.name)
            if isinstance(a, Node) or (isinstance(a, tuple) and a and not isinstance(a[0], int)):
                continue  # parents and factors: seen by the values below
            assert same(a, b), (type(old), field.name)
    assert all(
        same(a, b)
        for c, d in zip(graph.columns, loaded.columns, strict=True)
        for a, b in zip(c.labels or (), d.labels or (), strict=True)
    )
    assert loaded.columns[:2] == graph.columns[:2]
    rows = np.array([[0.0, 1, 2], [1, -999, -1], [2, np.nan, np.nan]])
    assert np.array_equal(graph.predict(rows), loaded.predict(rows))
    assert np.array_equal(graph.predict(rows, "margin"), loaded.predict(rows, "margin"))


def test_an_explainer_works_where_only_numpy_is(tmp_path: Path) -> None:
    """The model's library, pandas, pyarrow and scipy may all be absent."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    model = xgboost.XGBClassifier(n_estimators=5, max_depth=3, n_jobs=1).fit(X, X[:, 0] + X[:, 1] ** 2 > 0.5)
    explainer = gig.Explainer(model, X[:50], output="margin")
    explainer.save(tmp_path / "x.gig")
    code = """
import sys
for name in ("xgboost", "sklearn", "torch", "pandas", "scipy", "pyarrow"):
    sys.modules[name] = None
import numpy as np, gigrad
e = gigrad.Explainer.load(sys.argv[1])(np.load(sys.argv[2]))
np.save(sys.argv[3], e.values)
assert "without the model's own library" in e.provenance["loaded"]["predictions"]
assert np.abs(e.gap).max() < 1e-12
"""
    np.save(tmp_path / "X.npy", X)
    names = [str(tmp_path / n) for n in ("x.gig", "X.npy", "out.npy")]
    subprocess.run([sys.executable, "-c", code, *names], check=True)
    assert np.array_equal(np.load(names[2]), explainer(X).values)


def test_columns_are_matched_by_name_after_loading(tmp_path: Path) -> None:
    graph = tree_explainer(2)[0].scorer.graph.with_columns(["v", "w", "x", "y", "z"])
    rows = random_rows(np.random.default_rng(0), graph.columns, 6)
    explainer = gig.Explainer(graph, rows, output="margin")
    explainer.save(tmp_path / "x.gig")
    frame = pd.DataFrame(rows, columns=list(graph.feature_names))
    shuffled = gig.Explainer.load(tmp_path / "x.gig")(frame[["z", "y", "x", "w", "v"]])
    assert np.array_equal(shuffled.values, explainer(frame).values)


def test_a_python_function_cannot_be_saved(tmp_path: Path) -> None:
    source = Input(2)
    net = Opaque(source, 1, lambda x: x[:, :1], lambda x, c: np.zeros_like(x), label="torch module Net")
    graph = Graph((Column("a"), Column("b")), source, net, net, ("y",))
    with pytest.raises(gig.UnsupportedModelError, match=r"'torch module Net' cannot be saved.*never code"):
        graph.save(tmp_path / "x.gig")
    assert not list(tmp_path.iterdir())


def test_labels_that_are_no_plain_values_are_refused(tmp_path: Path) -> None:
    source = Input(1)
    graph = Graph((Column("a", "category", (("x", 1j),)),), source, source, source, ("y",))
    with pytest.raises(gig.UnsupportedModelError, match="1j"):
        graph.save(tmp_path / "x.gig")


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    explainer, _ = tree_explainer(1, output="margin")
    with pytest.raises(gig.InputError, match=r"must end in \.gig"):
        explainer.save(tmp_path / "x.pkl")
    with pytest.raises(gig.OutputError, match="the folder does not exist"):
        explainer.save(tmp_path / "none" / "x.gig")
    with pytest.raises(gig.InputError, match=r"x\.gig cannot be read: no such file"):
        gig.Explainer.load(tmp_path / "x.gig")
    every_node().save(tmp_path / "g.gig")
    with pytest.raises(gig.InputError, match="no reference population"):
        gig.Explainer.load(tmp_path / "g.gig")


def test_a_distilled_reference_is_saved_in_place_of_all_rows(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=300), rng.integers(0, 3, 300), rng.random(300) < 0.3])
    y = X[:, 0] + X[:, 1] + rng.normal(size=300) > 1
    model = xgboost.XGBClassifier(n_estimators=5, max_depth=3, n_jobs=1).fit(X, y)
    explainer = gig.Explainer(model, X, n_threads=1)
    explainer.save(tmp_path / "full.gig")
    explainer.save(tmp_path / "few.gig", reference="distilled", rows=12)
    few = gig.Explainer.load(tmp_path / "few.gig")
    assert (len(few.reference), len(gig.Explainer.load(tmp_path / "full.gig").reference)) == (12, 300)
    assert {tuple(row) for row in few.reference.matrix} <= {tuple(row) for row in X}
    assert explainer.distilled(12).base == pytest.approx(explainer.base, abs=1e-9)
    record = few.provenance["reference"]
    assert record["distilled_from"] == explainer.provenance["reference"]["fingerprint"] != record["fingerprint"]
    assert "12 weighted rows distilled from" in record["note"]
    assert np.array_equal(few(X[:5]).values, explainer.distilled(12)(X[:5]).values)
    assert (tmp_path / "few.gig").stat().st_mode & 0o077 == 0
    for wrong, message in (({"reference": "some"}, "full"), ({"reference": "distilled", "rows": 300}, "fewer than")):
        with pytest.raises(gig.InputError, match=message):
            explainer.save(tmp_path / "x.gig", **wrong)
