"""Models brought onto one shared table: each must go on predicting as before, on its own columns and codes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import gigrad as gig
from gigrad._io.tables import read_rows
from gigrad.graph import (
    Affine,
    Column,
    Elementwise,
    Fill,
    Graph,
    Input,
    Lookup,
    Select,
    Tree,
    TreeEnsemble,
    Witness,
    assemble,
    attach,
    evaluate,
    merge,
    own_values,
    topological,
)


def linear(names: tuple[str, ...], weights: list[float], *, named: bool = True, seen: Any = None) -> Graph:
    """A linear model whose witness notes the rows it was asked with."""
    source = Input(len(names))
    node = Affine(source, np.array([weights]), np.array([0.5]))

    def predict(rows: Any) -> Any:
        if seen is not None:
            seen.append(rows)
        return rows.matrix @ np.array(weights) + 0.5

    columns = tuple(Column(n, missing=False) for n in names)
    witness = Witness(node, predict, "linear")
    return Graph(columns, source, node, node, ("y",), witnesses=(witness,), named=named, label="linear")


def stump(column: Column, width: int, feature: int, *, threshold: float = 0.0, codes: Any = None) -> Graph:
    """1 on the left of one split, 3 on its right; missing goes left."""
    source = Input(width)
    tree = Tree(
        feature=np.array([feature, -1, -1]), threshold=np.array([threshold, 0.0, 0.0]), left=np.array([1, -1, -1]),
        right=np.array([2, -1, -1]), missing_left=np.array([True, False, False]), values=np.array([0.0, 1.0, 3.0]),
        categories=None if codes is None else {0: np.array(codes)},
    )  # fmt: skip
    node = assemble(source, [tree], np.zeros(1))
    columns = tuple(column if j == feature else Column(f"pad{j}") for j in range(width))
    return Graph(columns, source, node, node, ("y",), named=True, label="stump")


def predictions(graphs: tuple[Graph, ...], table: Any) -> list[Any]:
    return [g.predict(table).tolist() for g in graphs]


def test_named_columns_are_matched_by_name_in_the_order_first_seen() -> None:
    seen: list[Any] = []
    first, second = linear(("b", "a"), [1.0, 10.0]), linear(("c", "b"), [100.0, 1000.0], seen=seen)
    joined = merge([first, second])
    assert joined[0].feature_names == joined[1].feature_names == ("b", "a", "c")
    assert joined[0].input is joined[1].input
    table = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0], "c": [5.0, 6.0]})
    assert predictions(joined, table) == [first.predict(table).tolist(), second.predict(table).tolist()]
    own_values(joined[1].score, joined[1].witnesses, joined[1].input, read_rows(table, joined[1], what="X"))
    assert seen[-1].names == ("c", "b")
    assert list(seen[-1].table.columns) == ["c", "b"]
    np.testing.assert_array_equal(seen[-1].matrix, table[["c", "b"]].to_numpy())


def test_unnamed_models_are_matched_by_position() -> None:
    named, bare = linear(("b", "a"), [1.0, 10.0]), linear(("x0", "x1"), [100.0, 1000.0], named=False)
    joined = merge([bare, named])
    assert joined[0].feature_names == ("b", "a")
    table = pd.DataFrame({"a": [1.0], "b": [3.0]})
    assert predictions(joined, table) == [[1300.5], [13.5]]
    arrays = merge([bare, bare])
    assert arrays[0] is arrays[1], "a model given twice is computed once"
    assert not arrays[0].named


def test_unnamed_models_that_cannot_be_matched_are_refused() -> None:
    bare = linear(("x0", "x1"), [1.0, 1.0], named=False)
    with pytest.raises(gig.InputError, match="same number of them; linear has 1 and linear 2"):
        merge([bare, linear(("x0",), [1.0], named=False)])
    with pytest.raises(gig.InputError, match=r"same columns in the same order.*with_columns"):
        merge([linear(("a", "b"), [1.0, 1.0]), linear(("b", "a"), [1.0, 1.0]), bare])
    joined = merge([linear(("a", "c"), [1.0, 1.0]), bare.with_columns(["c", "b"])])
    assert joined[0].feature_names == ("a", "c", "b")
    with pytest.raises(gig.InputError, match="at least one model"):
        merge([])


def test_a_column_may_be_missing_only_where_every_reader_takes_it() -> None:
    trees = stump(Column("a"), 2, 0)
    joined = merge([trees, linear(("a",), [1.0])])
    assert [c.missing for c in joined[0].columns] == [False, True]


def test_trees_keep_reading_the_input_itself() -> None:
    joined = merge([linear(("z", "y"), [1.0, 1.0]), stump(Column("a"), 3, 0, threshold=1.5)])
    node = joined[1].score
    assert isinstance(node, TreeEnsemble)
    assert node.source is joined[1].input
    table = pd.DataFrame({"z": 0.0, "y": 0.0, "pad1": 0.0, "pad2": 0.0, "a": [1.5, 1.6]})
    assert joined[1].predict(table).tolist() == [1.0, 3.0]


def category(labels: tuple[Any, ...] | None, unknown: Any = "other", missing: bool = True) -> Column:
    return Column("c", "category", labels, missing, unknown)


def test_labels_are_joined_and_sets_recoded() -> None:
    first = stump(category(("u", "v")), 1, 0, codes=[1])
    second = stump(category(("w", "v", "u")), 1, 0, codes=[0, 2])
    joined = merge([first, second])
    assert joined[0].columns[0].labels == ("u", "v", "w")
    assert joined[0].columns[0].unknown == "other"
    table = pd.DataFrame({"c": ["u", "v", "w", "never seen", None]})
    assert predictions(joined, table) == [[3.0, 1.0, 3.0, 3.0, 1.0], [1.0, 3.0, 1.0, 3.0, 1.0]]
    assert predictions((first, second), table) == predictions(joined, table)


def test_what_becomes_of_labels_one_model_does_not_know() -> None:
    to_missing = stump(category(("u",), "missing"), 1, 0, codes=[])
    other = stump(category(("v",), "other"), 1, 0, codes=[0])
    strict = stump(category(("u", "v"), "refuse"), 1, 0, codes=[0])
    joined = merge([to_missing, other])
    assert joined[0].columns[0].unknown == "refuse", "they disagree on labels that none knows"
    assert predictions(joined, pd.DataFrame({"c": ["u", "v"]})) == [[3.0, 1.0], [3.0, 1.0]]
    assert merge([stump(category(("u", "v", "w")), 1, 0), strict])[0].columns[0].labels == ("u", "v")
    with pytest.raises(gig.InputError, match="categories the model knows"):
        joined[0].predict(pd.DataFrame({"c": ["w"]}))


def test_a_number_beside_labels_becomes_a_category() -> None:
    numeric = stump(Column("c"), 1, 0, threshold=2.0)
    labelled = stump(category((5, 2, 1)), 1, 0, codes=[0])
    plain = linear(("c",), [10.0])
    joined = merge([numeric, labelled, plain])
    column = joined[0].columns[0]
    assert (column.kind, column.labels, column.missing, column.unknown) == ("category", (5, 2, 1), False, "refuse")
    table = pd.DataFrame({"c": [1, 2, 5]})
    assert predictions(joined, table) == [[1.0, 1.0, 3.0], [3.0, 3.0, 1.0], [10.5, 20.5, 50.5]]
    node = joined[0].score
    assert isinstance(node, TreeEnsemble)
    assert (node.category_set[node.feature >= 0] >= 0).all(), "the column changes at once, for every reader"
    own = own_values(joined[2].score, joined[2].witnesses, joined[2].input, read_rows(table, joined[2], what="X"))
    assert own[:, 0].tolist() == [10.5, 20.5, 50.5], "the witness reads labels, not codes"


def test_columns_that_cannot_mean_the_same_are_refused() -> None:
    with pytest.raises(gig.InputError, match="labels such as 'u'"):
        merge([stump(Column("c"), 1, 0), stump(category(("u",)), 1, 0)])
    with pytest.raises(gig.InputError, match="number or a category for all"):
        merge([stump(Column("c"), 1, 0), stump(category(None), 1, 0, codes=[0])])


def test_lookups_fills_and_selections_move_with_their_columns() -> None:
    source = Input(3)
    looked = Lookup(source, 1, np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([5.0, 6.0]), np.array([7.0, 8.0]))
    filled = Select(Fill(source, np.array([0.0, 0.0, 9.0])), (2,))
    picked = Elementwise(Select(source, (0, 2)), "exp")
    columns = (Column("a"), category(("u", "v")), Column("b"))
    score = Affine(looked, np.array([[1.0, 10.0]]), np.zeros(1))
    graphs = [
        Graph(columns, source, node, node, tuple(map(str, range(node.width))), named=True)
        for node in (score, filled, picked)
    ]
    extra = stump(category(("w", "u", "v")), 2, 1, codes=[0])
    joined = merge([extra, *graphs])
    assert joined[0].feature_names == ("pad0", "c", "a", "b")
    table = pd.DataFrame(
        {"a": [0.0, 1.0, 2.0, 3.0], "b": [4.0, np.nan, 6.0, 7.0], "c": ["u", "v", "w", None], "pad0": 0}
    )
    for before, after in zip(graphs, joined[1:], strict=True):
        np.testing.assert_array_equal(before.predict(table), after.predict(table))
    direct = [n for n in topological(joined[1].score) if isinstance(n, Lookup)]
    assert [n.column for n in direct] == [1]


def test_attach_puts_a_model_on_top_of_a_node_and_asks_it_on_the_models_own_scores() -> None:
    below = linear(("a", "b"), [1.0, 2.0])
    asked: list[Any] = []
    head = linear(("m",), [3.0], seen=asked)
    top = attach(head, below, below.score)
    table = pd.DataFrame({"a": [1.0, 2.0], "b": [0.0, 1.0]})
    np.testing.assert_array_equal(top.predict(table), (table["a"] + 2 * table["b"] + 0.5) * 3 + 0.5)
    rows = read_rows(table, top, what="X")
    own_values(top.score, top.witnesses, top.input, rows)
    np.testing.assert_array_equal(asked[0].matrix[:, 0], [1.5, 4.5])
    again = merge([linear(("z",), [1.0]), top])[1]
    wide = table.assign(z=0.0)
    own_values(again.score, again.witnesses, again.input, read_rows(wide, again, what="X"))
    np.testing.assert_array_equal(asked[1].matrix[:, 0], [1.5, 4.5])
    with pytest.raises(gig.InputError, match="must get the 2 columns"):
        attach(below, head, head.score)


def test_trees_attached_over_scores_read_that_node() -> None:
    below = linear(("a", "b"), [1.0, 2.0])
    top = attach(stump(Column("m"), 1, 0, threshold=1.5), below, below.score)
    assert isinstance(top.score, TreeEnsemble)
    assert top.score.source is below.score
    assert evaluate((top.score,), {top.input: np.array([[1.0, 0.0], [2.0, 0.0]])})[top.score].tolist() == [[1.0], [3.0]]


def test_a_wrong_head_is_named_even_though_the_models_below_agree() -> None:
    below = linear(("a",), [1.0])
    node = Affine(below.score, np.array([[2.0]]), np.zeros(1))
    wrong = Witness(node, lambda rows: rows.matrix * 3.0, "head", source=below.score, columns=(Column("m"),))
    graph = Graph(below.columns, below.input, node, node, ("y",), witnesses=(*below.witnesses, wrong), named=True)
    with pytest.raises(gig.ModelMismatchError, match="imported from head"):
        own_values(node, graph.witnesses, graph.input, read_rows(np.ones((2, 1)), graph, what="X"))


def test_the_graph_is_held_to_the_exact_prediction_and_reports_the_models_own() -> None:
    source = Input(1)
    node = Affine(source, np.array([[1.0 / 3.0]]), np.zeros(1))
    single = Witness(
        node, lambda rows: np.float32(rows.matrix) / np.float32(3.0), "net", exact=lambda rows: rows.matrix / 3.0
    )
    graph = Graph((Column("a"),), source, node, node, ("y",), witnesses=(single,))
    own = own_values(node, (single,), source, read_rows(np.ones((1, 1)), graph, what="X"))
    assert own[0, 0] == float(np.float32(1.0) / np.float32(3.0)) != 1.0 / 3.0
