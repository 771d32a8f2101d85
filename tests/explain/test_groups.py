"""Columns that act as one variable: at corners, and in the result."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from forests import graph_of, random_forest, random_rows

import gigrad as gig
from gigrad.graph import Column, Elementwise, Graph, Input, Tree, assemble
from gigrad.testing import brute_force


def and_of_three() -> Graph:
    """1 where a, b and c are all above one half: from 0 to 1 they cross together."""
    source = Input(3)
    tree = Tree(
        np.array([0, -1, 1, -1, 2, -1, -1]), np.full(7, 0.5), np.array([1, -1, 3, -1, 5, -1, -1]),
        np.array([2, -1, 4, -1, 6, -1, -1]), np.zeros(7, bool), np.array([0, 0, 0, 0, 0, 0, 1.0]),
    )  # fmt: skip
    columns = (Column("a"), Column("b"), Column("c"))
    return replace(graph_of(columns, source, assemble(source, [tree], np.zeros(1))), named=True)


def test_a_group_is_one_player_at_a_corner() -> None:
    alone = gig.explain_pairs(and_of_three(), [[0.0, 0, 0]], [[1.0, 1, 1]])
    np.testing.assert_allclose(alone.values, [[1 / 3, 1 / 3, 1 / 3]])
    e = gig.explain_pairs(and_of_three(), [[0.0, 0, 0]], [[1.0, 1, 1]], groups={"both": ["a", "c"]})
    assert e.feature_names == ("both", "b")
    assert e.columns == ("a", "c", "b")
    assert e.groups == {"both": ("a", "c")}
    np.testing.assert_allclose(e.values, [[0.5, 0.5]])


def test_tables_keep_the_members_columns_beside_each_other() -> None:
    rows = pd.DataFrame({"a": [1.0], "b": [2.0], "c": [3.0]})
    e = gig.explain(and_of_three(), rows, rows * 0, groups={"both": ["a", "c"]})
    assert list(e.data.columns) == ["a", "c", "b"]
    assert e.provenance["settings"]["groups"] == {"both": ["a", "c"]}


@pytest.mark.parametrize("link", ["margin", "sigmoid"])
@pytest.mark.parametrize("seed", range(6))
def test_grouped_corners_equal_the_definition(seed: int, link: str) -> None:
    rng = np.random.default_rng(seed)
    columns = tuple(Column(f"x{j}") for j in range(4))
    source = Input(4)
    trees = random_forest(rng, columns, source)
    graph = graph_of(columns, source, trees if link == "margin" else Elementwise(trees, link))
    starts, ends = random_rows(rng, columns, 3), random_rows(rng, columns, 3)
    got = gig.explain_pairs(graph, starts, ends, groups={"pair": ["x1", "x3"]}, discrete=())
    assert got.feature_names == ("x0", "pair", "x2")
    for i in range(3):
        want = brute_force(graph, starts[i], ends[i], groups={"pair": ["x1", "x3"]})[:, 0]
        np.testing.assert_allclose(got.values[i], want, atol=1e-9)


def test_groups_survive_a_file(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    explainer = gig.Explainer(and_of_three(), rng.random((5, 3)), groups={"both": ["a", "c"]})
    explainer.save(tmp_path / "grouped.gig")
    again = gig.Explainer.load(tmp_path / "grouped.gig")
    X = rng.random((4, 3))
    assert np.array_equal(again(X).values, explainer(X).values)
    assert again(X).feature_names == ("both", "b")


def test_paths_of_groups_end_at_their_credits() -> None:
    e = gig.explain_pairs(and_of_three(), [[0.0, 0, 0.2]], [[1.0, 1, 1]], groups={"both": ["a", "c"]}, paths=1)
    assert e.paths is not None
    np.testing.assert_allclose(e.paths.credit[0, -1], e.values[0], atol=1e-9)


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ({"g": ["a", "z"]}, "'z' is not one"),
        ({"g": "ab"}, "must be a list of features"),
        ({"g": []}, "at least one"),
        ({"g": ["a"], "h": ["a", "b"]}, "'a' is in 'g' and 'h'"),
        ({"b": ["a", "c"]}, "'b' is also a feature outside of it"),
    ],
)
def test_groups_that_make_no_sense_are_refused(groups: dict[str, list[str]], message: str) -> None:
    with pytest.raises(gig.InputError, match=message):
        gig.explain(and_of_three(), np.ones((1, 3)), np.zeros((1, 3)), groups=groups)
