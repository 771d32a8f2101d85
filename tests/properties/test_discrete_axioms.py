"""For a fixed choice of columns the axioms hold, and an answer depends on the row, the model and the choice alone."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from forests import graph_of, random_forest
from hypothesis import given, settings
from hypothesis import strategies as st
from whole_numbers import MOST, NAMES, fitted, rows

import gigrad as gig
from gigrad.graph import Affine, Column, Elementwise, Input, Node, Select, Sum

WHOLE = [NAMES[j] for j in MOST]
COLUMNS = tuple(Column(f"x{j}") for j in range(4))


def frame(X: Any) -> Any:
    return pd.DataFrame(X, columns=list(NAMES))


def whole_rows(rng: np.random.Generator, n: int) -> Any:
    X = rng.integers(0, 4, (n, 4)).astype(float)
    X[rng.random(X.shape) < 0.1] = np.nan
    return X


def linked(trees: Node, link: str, source: Input) -> Node:
    if link == "margin":
        return trees
    if link == "mixed":  # a smooth part that reads one of the columns
        trees = Sum((trees, Affine(Select(source, (3,)), np.array([[0.3]]), np.zeros(1))))
    return Elementwise(trees, "sigmoid")


choices = st.sampled_from(
    [
        {"discrete": ["x0", "x1"]},
        {"discrete": ["x2"], "nominal": ["x3"]},
        {"discrete": {"x0": [0, 1, 3]}},
        {"discrete": ()},
    ]
)


@given(st.integers(0, 2**32 - 1), st.sampled_from(["margin", "sigmoid"]), choices)
@settings(max_examples=40, deadline=None)
def test_linear(seed: int, link: str, choice: Any) -> None:
    """A tree of weight zero, with thresholds of its own, changes nothing; and credits add up over models."""
    rng = np.random.default_rng(seed)
    source = Input(4)
    one, other = (random_forest(rng, COLUMNS, source) for _ in range(2))
    odd = replace(other, threshold=other.threshold + 0.123, place=other.place + 0.123,
                  equal_low=other.equal_low + 0.123, equal_high=other.equal_high + 0.123)  # fmt: skip
    start, end = whole_rows(rng, 6), whole_rows(rng, 6)

    def credits_of(node: Node) -> Any:
        return gig.explain_pairs(graph_of(COLUMNS, source, node), start, end, **choice).values

    alone = credits_of(linked(one, link, source))
    beside = credits_of(linked(Sum((one, odd.scaled(0.0))), link, source))
    np.testing.assert_allclose(beside, alone, rtol=0, atol=1e-12)
    if link == "margin":
        both = credits_of(Sum((one, odd)))
        np.testing.assert_allclose(both, alone + credits_of(odd), rtol=0, atol=1e-12)


@given(st.integers(0, 2**32 - 1), st.sampled_from(["margin", "sigmoid"]), st.sampled_from(["discrete", "nominal"]))
@settings(max_examples=40, deadline=None)
def test_symmetric(seed: int, link: str, kind: str) -> None:
    """Two columns of the same kind that change places in the model and in the rows change places in the credits."""
    rng = np.random.default_rng(seed)
    source = Input(4)
    trees = random_forest(rng, COLUMNS, source)
    swap = np.array([1, 0, 2, 3])
    swapped = replace(trees, feature=np.where(trees.feature >= 0, swap[trees.feature], -1).astype(np.int32))
    start, end = whole_rows(rng, 6), whole_rows(rng, 6)
    choice: Any = {"discrete": ["x0", "x1"]} if kind == "discrete" else {"discrete": (), "nominal": ["x0", "x1"]}
    f, g = (graph_of(COLUMNS, source, linked(t, link, source)) for t in (trees, swapped))
    of_f = gig.explain_pairs(f, start, end, **choice).values
    of_g = gig.explain_pairs(g, start[:, swap], end[:, swap], **choice).values
    np.testing.assert_allclose(of_g, of_f[:, swap], rtol=0, atol=1e-12)


@given(st.integers(0, 2**32 - 1), st.sampled_from(["margin", "sigmoid", "mixed"]), choices)
@settings(max_examples=60, deadline=None)
def test_reflexive(seed: int, link: str, choice: Any) -> None:
    rng = np.random.default_rng(seed)
    source = Input(4)
    graph = graph_of(COLUMNS, source, linked(random_forest(rng, COLUMNS, source), link, source))
    start, end = whole_rows(rng, 6), whole_rows(rng, 6)
    if link == "mixed":
        start, end = np.nan_to_num(start), np.nan_to_num(end)
    there, back = (gig.explain_pairs(graph, a, b, tol=1e-11, **choice) for a, b in ((start, end), (end, start)))
    np.testing.assert_allclose(back.values, -there.values, rtol=0, atol=1e-9 if link == "mixed" else 1e-12)
    assert np.abs(there.gap).max() < 1e-9


# ---------------------------------------------------------------- nothing else decides


@cache
def explainer(library: str, output: str | None, kind: str) -> gig.Explainer:
    reference = frame(np.array(rows(False))[300:340])
    if kind == "integers":
        reference = reference.astype(dict.fromkeys(WHOLE, "int64"))
    return gig.Explainer(fitted(library), reference, output=output)


@pytest.mark.parametrize("kind", ["floats", "integers"])
@pytest.mark.parametrize("output", [None, "margin"])
@pytest.mark.parametrize("library", ["xgboost", "lightgbm", "forest"])
def test_other_rows_do_not_matter(library: str, output: str | None, kind: str) -> None:
    explain, X = explainer(library, output, kind), frame(np.array(rows(False))[:40])
    together = explain(X).values
    odd = X.copy()
    odd.iloc[20:] += 0.37  # rows whose flags are no flags
    np.testing.assert_array_equal(explain(odd).values[:20], together[:20])
    np.testing.assert_array_equal(explain(X.iloc[::-1]).values[::-1], together)
    for i in (0, 7):
        np.testing.assert_array_equal(explain(X.iloc[[i]]).values, together[[i]])


@pytest.mark.parametrize("kind", ["floats", "integers"])
@pytest.mark.parametrize("output", [None, "margin"])
@pytest.mark.parametrize("library", ["xgboost", "lightgbm", "forest"])
def test_the_type_of_the_explained_rows_does_not_matter(library: str, output: str | None, kind: str) -> None:
    import polars as pl

    explain = explainer(library, output, kind)
    X = frame(np.array(rows(False))[:12])
    X["amount"] = X["amount"].astype(np.float32).astype(np.float64)  # a number of float32, to be the same in all types
    want = explain(X).values
    flags, counts = WHOLE[:3], WHOLE[3:]
    tables: dict[str, Any] = {
        "int8": X.astype(dict.fromkeys(WHOLE, "int8")),
        "int64": X.astype(dict.fromkeys(WHOLE, "int64")),
        "float32": X.astype("float32"),
        "bool": X.astype(dict.fromkeys(flags, "bool")),
        "nullable": X.astype({**dict.fromkeys(flags, "boolean"), **dict.fromkeys(counts, "Int16")}),
        "arrow": X.astype(dict.fromkeys(counts, "int8[pyarrow]")),
        "array": X.to_numpy(),
        "array of float32": X.to_numpy(np.float32),
        "polars": pl.DataFrame({name: X[name].to_list() for name in X}),
        "polars integers": pl.from_pandas(X.astype(dict.fromkeys(counts, "int8") | dict.fromkeys(flags, "bool"))),
    }
    for name, table in tables.items():
        np.testing.assert_array_equal(explain(table).values, want, err_msg=name)


def test_the_type_of_missing_values_does_not_matter() -> None:
    X = frame(np.array(rows(True))[:12])
    explain = gig.Explainer(fitted("xgboost", True), frame(np.array(rows(True))[300:340]))
    want = explain(X).values
    for kinds in (dict.fromkeys(WHOLE, "Int64"), dict.fromkeys(WHOLE[:3], "boolean"), dict.fromkeys(NAMES, "Float64")):
        np.testing.assert_array_equal(explain(X.astype(kinds)).values, want)
