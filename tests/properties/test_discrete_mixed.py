"""Trees, nets and heads over both, with discrete and nominal columns and groups, against the definition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from forests import graph_of, random_columns, random_forest, random_rows
from hypothesis import given, settings
from hypothesis import strategies as st

import gigrad as gig
from gigrad.graph import Affine, Column, Concat, Elementwise, Fill, Graph, Input, Node, Product, Select, Sum
from gigrad.testing import brute_force

COLUMNS = tuple(Column(f"x{j}") for j in range(5))


def random_choice(rng: np.random.Generator, columns: tuple[Column, ...]) -> tuple[dict[str, Any], list[str]]:
    """For each column of numbers: continuous, discrete over the whole numbers or over listed values, or nominal."""
    discrete: dict[str, Any] = {}
    nominal: list[str] = []
    for column in columns:
        kind = rng.choice(["continuous", "whole", "listed", "nominal"]) if column.kind == "number" else "category"
        if kind == "whole":
            discrete[column.name] = None
        elif kind == "listed":
            discrete[column.name] = np.sort(rng.choice(np.arange(8) / 2, 3, replace=False)).tolist()
        elif kind == "nominal":
            nominal.append(column.name)
    return discrete, nominal


def net(rng: np.random.Generator, source: Node, outputs: int = 1) -> Node:
    hidden = Elementwise(Affine(source, rng.normal(size=(4, source.width)) / 2, rng.normal(size=4)), "tanh")
    return Affine(hidden, rng.normal(size=(outputs, 4)), rng.normal(size=outputs))


def joined(rng: np.random.Generator, kind: str) -> Graph:
    """Trees alone, trees beside a net that reads the same columns, a head over both, or one that multiplies them."""
    source = Input(5)
    columns = random_columns(rng, 5) if kind == "trees" else COLUMNS
    trees = random_forest(rng, columns, source, outputs=1)
    if kind == "trees":
        return graph_of(columns, source, Elementwise(trees, "sigmoid"))
    smooth = net(rng, Fill(source, np.full(5, 1.2)))
    if kind == "sum":
        return graph_of(columns, source, Elementwise(Sum((trees, smooth)), "sigmoid"))
    if kind == "product":
        return graph_of(columns, source, Product(trees, Elementwise(smooth, "tanh")))
    head = net(rng, Concat((trees, smooth, Select(Fill(source, np.zeros(5)), (1, 3)))))
    return graph_of(columns, source, Elementwise(head, "sigmoid"))


@given(st.integers(0, 2**32 - 1), st.sampled_from(["trees", "sum", "product", "head"]), st.booleans())
@settings(max_examples=60, deadline=None)
def test_equal_to_the_definition(seed: int, kind: str, grouped: bool) -> None:
    rng = np.random.default_rng(seed)
    graph = joined(rng, kind)
    discrete, nominal = random_choice(rng, graph.columns)
    starts, ends = random_rows(rng, graph.columns, 2), random_rows(rng, graph.columns, 2)
    groups = {"pair": ["x1", "x3"]} if grouped else None
    options: dict[str, Any] = {"discrete": discrete, "groups": groups, "nominal": nominal}
    e = gig.explain_pairs(graph, starts, ends, tol=1e-9, **options)
    for i in range(len(starts)):
        want = brute_force(graph, starts[i], ends[i], **options)[:, 0]
        np.testing.assert_allclose(e.values[i], want, rtol=0, atol=1e-8)


@pytest.mark.parametrize("kind", ["trees", "head"])
def test_a_population_is_the_mean_of_its_pairs(kind: str) -> None:
    rng = np.random.default_rng(11)
    graph = joined(rng, kind)
    discrete, nominal = random_choice(rng, graph.columns)
    references, rows = random_rows(rng, graph.columns, 6), random_rows(rng, graph.columns, 3)
    weights = rng.random(6)
    e = gig.explain(graph, rows, references, weights=weights, tol=1e-9, discrete=discrete, nominal=nominal)
    for i, row in enumerate(rows):
        each = [brute_force(graph, s, row, discrete=discrete, nominal=nominal)[:, 0] for s in references]
        want = weights @ np.stack(each) / weights.sum()
        np.testing.assert_allclose(e.values[i], want, rtol=0, atol=1e-8)
