"""Tables in: what is read, and what is refused with a sentence one can act on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.tree import DecisionTreeRegressor

import gigrad as gig
from gigrad import InputError
from gigrad._io import tables
from gigrad._io.tables import read_rows
from gigrad.graph import Column, Graph, Input


def graph_of(*columns: Column, named: bool = True) -> Graph:
    source = Input(len(columns))
    return Graph(columns, source, source, source, tuple(c.name for c in columns), named=named)


NUMBERS = graph_of(Column("age"), Column("income", missing=False))
GRADES = graph_of(Column("age"), Column("grade", "category", ("A", "B", "C"), unknown="refuse"))

FRAMES = {
    "pandas": lambda d: pd.DataFrame(d),
    "polars": lambda d: pl.DataFrame(d),
    "pyarrow": lambda d: pa.table(d),
}


@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES.keys())
def test_columns_are_matched_by_name_in_any_order_and_extra_ones_ignored(make: Any) -> None:
    rows = read_rows(make({"extra": ["x", "y"], "income": [1, 2], "age": [30.5, None]}), NUMBERS, what="X")
    np.testing.assert_array_equal(rows.matrix, [[30.5, 1.0], [np.nan, 2.0]])
    assert rows.names == ("age", "income")


@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES.keys())
def test_labels_become_codes(make: Any) -> None:
    rows = read_rows(make({"age": [1.0, 2.0, 3.0], "grade": ["C", None, "A"]}), GRADES, what="X")
    np.testing.assert_array_equal(rows.matrix[:, 1], [2.0, np.nan, 0.0])


def test_pandas_categories_with_another_order_are_recoded() -> None:
    frame = pd.DataFrame({"age": [1, 2], "grade": pd.Categorical(["C", "A"], categories=["C", "B", "A"])})
    np.testing.assert_array_equal(read_rows(frame, GRADES, what="X").matrix[:, 1], [2.0, 0.0])


def test_integers_booleans_and_nullable_columns_are_numbers() -> None:
    frame = pd.DataFrame({"age": pd.array([1, None], dtype="Int64"), "income": [True, False]})
    np.testing.assert_array_equal(read_rows(frame, NUMBERS, what="X").matrix, [[1.0, 1.0], [np.nan, 0.0]])


@pytest.mark.parametrize(
    ("unknown", "code"),
    [("other", -1.0), ("missing", np.nan)],
)
def test_unknown_labels_are_treated_as_the_library_does(unknown: Any, code: float) -> None:
    graph = graph_of(Column("grade", "category", ("A", "B"), unknown=unknown))
    np.testing.assert_array_equal(
        read_rows(pd.DataFrame({"grade": ["Z", "B"]}), graph, what="X").matrix[:, 0], [code, 1]
    )


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (pd.DataFrame({"income": [1.0]}), r"X must have the model's 2 columns; 'age' is missing\."),
        (pd.DataFrame({"z": [1.0]}), r"'age', 'income' are missing"),
        (np.zeros((3, 4)), r"must have the model's 2 columns; it has 4"),
        (np.zeros(3), r"must have two dimensions, rows and columns; it has 1"),
        (pd.DataFrame({"age": ["old"], "income": [1]}), r"must hold numbers in column 'age'; got 'old'"),
        (np.array([[1.0, np.inf]]), r"'income' is infinite in row 0"),
        (np.array([[1.0, 2.0], [1.0, np.nan]]), r"no missing value in column 'income', .* row 1 has one"),
        (np.array([["a", "b"]]), r"must hold real numbers"),
        (np.zeros((1, 2), dtype=complex), r"must hold real numbers"),
        ({"age": 1}, r"got a dict"),
        (None, r"table; got None"),
        (pd.Series([1.0, 2.0]), r"got a Series. For one row of a pandas table, pass table.iloc\[\[i\]\]"),
        (pd.DataFrame([[1.0, 2.0]], columns=["age", "age"]), r"must name each column once: .*'age' 2 times"),
    ],
)
def test_bad_tables_are_refused_with_what_is_wrong(table: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_rows(table, NUMBERS, what="X")


def test_an_unknown_category_is_named_where_the_model_refuses_it() -> None:
    with pytest.raises(InputError, match=r"column 'grade'; 'Z' is not one of its 3 \('A', 'B', 'C'\)"):
        read_rows(pd.DataFrame({"age": [1.0], "grade": ["Z"]}), GRADES, what="reference")


def test_dates_in_the_place_of_labels_are_refused() -> None:
    with pytest.raises(InputError, match="categories in column 'grade', such as 'A'; got the date 2020-01-02"):
        read_rows(pd.DataFrame({"age": [1.0], "grade": [pd.Timestamp("2020-01-02")]}), GRADES, what="X")


def test_sparse_input_asks_what_its_empty_cells_mean() -> None:
    with pytest.raises(InputError, match="sparse matrix"):
        read_rows(sparse.csr_matrix(np.eye(2)), NUMBERS, what="X")


def test_models_without_names_read_by_position() -> None:
    graph = graph_of(Column("x0"), Column("x1"), named=False)
    rows = read_rows(pd.DataFrame({"b": [1.0], "a": [2.0]}), graph, what="X")
    np.testing.assert_array_equal(rows.matrix, [[1.0, 2.0]])
    assert rows.names == ("b", "a")


# ---------------------------------------------------------------- models that know their columns by position


ROWS = np.random.default_rng(0).normal(size=(40, 3))
NAMELESS = DecisionTreeRegressor(max_depth=3, random_state=0).fit(ROWS, ROWS[:, 0] + ROWS[:, 1])
NAMED = pd.DataFrame(ROWS, columns=["age", "income", "debt"])


@pytest.mark.parametrize(
    ("rows", "reference", "names"),
    [
        (NAMED, NAMED, ("age", "income", "debt")),
        (ROWS, NAMED, ("age", "income", "debt")),
        (NAMED, ROWS, ("x0", "x1", "x2")),
    ],
)
def test_a_table_without_names_takes_those_of_the_other(rows: Any, reference: Any, names: Any, tmp_path: Path) -> None:
    e = gig.explain(NAMELESS, rows[:2], reference)
    assert e.feature_names == e.columns == names
    np.testing.assert_array_equal(e.values, gig.explain(NAMELESS, ROWS[:2], ROWS).values)
    np.testing.assert_array_equal(e.raw(names[1]), ROWS[:2, 1])
    found = gig.reasons(e, higher_is_better=True)
    assert all(r.value is not None and r.typical is not None for applicant in found for r in applicant.reasons)
    assert gig.verify_reasons(found.audit()[0], NAMELESS, reference).ok
    e.report(tmp_path / "e.html")


def test_two_tables_with_names_must_agree() -> None:
    """Nothing else could tell that the columns of one stand in another order."""
    turned = NAMED[["income", "age", "debt"]]
    message = "got 'age' where {} has 'income'.*with_columns"
    with pytest.raises(gig.InputError, match=f"^X must have the columns of.*{message.format('the reference')}"):
        gig.explain(NAMELESS, NAMED[:2], turned)
    with pytest.raises(gig.InputError, match=f"^start must have the columns of.*{message.format('end')}"):
        gig.explain_pairs(NAMELESS, NAMED[:2], turned[:2])
    with pytest.raises(gig.InputError, match=f"^group_b must have the columns of.*{message.format('group_a')}"):
        gig.explain_gap(NAMELESS, turned, NAMED, bootstrap=0)
    named = gig.import_model(NAMELESS).with_columns(["age", "income", "debt"])
    np.testing.assert_array_equal(
        gig.explain(named, NAMED[:2], turned).values, gig.explain(NAMELESS, ROWS[:2], ROWS).values
    )


def test_a_name_that_lightgbm_wrote_otherwise_is_the_tables_own() -> None:
    import lightgbm

    table = pd.DataFrame(ROWS, columns=["the age", "income", "debt"])
    model = lightgbm.LGBMRegressor(n_estimators=3, min_child_samples=2, verbose=-1).fit(table, ROWS[:, 0])
    e = gig.explain(model, ROWS[:2], table)
    assert e.feature_names == e.columns == ("the age", "income", "debt")
    np.testing.assert_array_equal(e.raw("the age"), ROWS[:2, 0])


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_plain_numbers_of_a_frame_are_read_at_once(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A frame of 90,000 columns must not be read one by one; the others are, whatever stands between them."""
    frame = pd.DataFrame({
        "double": [1.5, np.nan], "single": np.array([0.1, 2.0], np.float32), "count": [3, 4], "flag": [True, False],
        "nullable": pd.array([1, None], "Int8"), "words": [1.0, None], "small": np.array([1, 2], np.int8),
    })  # fmt: skip
    frame["words"] = frame["words"].astype(object)
    graph = graph_of(*(Column(name) for name in frame))
    seen: list[str] = []
    real = tables.encode_series

    def counting(series: Any, column: Column, what: str) -> Any:
        seen.append(column.name)
        return real(series, column, what)

    monkeypatch.setattr(tables, "encode_series", counting)
    given = {"pandas": frame, "polars": pl.from_pandas(frame), "pyarrow": pa.Table.from_pandas(frame)}[library]
    read = read_rows(given, graph, what="X").matrix
    assert seen == (["nullable", "words"] if library == "pandas" else ["flag"])
    want = [[1.5, np.float32(0.1), 3, 1, 1, 1, 1], [np.nan, 2, 4, 0, np.nan, np.nan, 2]]
    np.testing.assert_array_equal(read, want)
