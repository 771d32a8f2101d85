"""Names and values as people read them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made import made, made_pairs

import gigrad as gig
from gigrad._common import display

LONG = tuple(f"bureau_number_of_trades_opened_in_the_last_{i}_months_without_collections" for i in range(1, 61))


@pytest.mark.parametrize("width", [22, 30, 34, 44])
def test_names_that_differ_in_the_middle_stay_apart(width: int) -> None:
    short = display.short_names((*LONG, "age"), width)
    assert len(set(short)) == 61
    assert max(map(len, short)) <= width
    assert "last_7_" in short[6] or "st_7_m" in short[6]  # what tells it apart is shown
    assert short[-1] == "age"


@given(st.lists(st.text(alphabet="ab_", max_size=40), min_size=1, max_size=12))
def test_different_names_are_never_cut_into_the_same_text(names: list[str]) -> None:
    short = display.short_names(tuple(names), 16)
    assert len(set(zip(names, short, strict=True))) == len(set(names)) == len(set(short))
    assert max(map(len, short)) <= 16


def test_a_long_table_prints_and_draws_names_that_differ() -> None:
    e = gig.Explanation(
        np.arange(60.0)[None], np.zeros(1), np.full(1, 1770.0), np.zeros(1), np.zeros(1), None, LONG, ("score",)
    )
    printed = [line.split()[0] for line in str(e).splitlines()[2:10]]
    assert len(set(printed)) == 8


def test_a_feature_in_the_place_of_a_row_says_how_it_is_picked() -> None:
    e = made()
    name = e.feature_names[0]
    with pytest.raises(gig.InputError, match=rf"For a feature write e\[:, '{name}'\]"):
        e[name]
    with pytest.raises(gig.InputError, match=f"Did you mean '{name}'"):
        e[:, name + "e"]


def test_a_score_is_called_by_its_space() -> None:
    from sklearn.linear_model import LogisticRegression

    from gigrad._output.views import score_name

    X = np.arange(8.0)[:, None]
    model = LogisticRegression().fit(X, X[:, 0] > 3)
    assert score_name(gig.explain(LogisticRegression().fit(X, (X[:, 0] > 3) * 1), X[:2], X)) == "probability of class 1"
    e = gig.explain(LogisticRegression().fit(X, (X[:, 0] > 3) * 1), X[:2], X, output="margin")
    assert score_name(e) == "margin of class 1"
    assert score_name(gig.explain(model, X[:2], X)) == "True"
    whole = gig.explain(LogisticRegression().fit(X, (X[:, 0] > 3) * 1.0), X[:2], X)
    assert score_name(whole) == "probability of class 1.0"
    assert "mean |credit| of 3 outputs" in str(made(k=3))


def test_one_row_of_several_outputs_prints_a_column_for_each() -> None:
    e = made(k=3)[0]
    text, html = str(e), e._repr_html_()
    assert f"row {e.ids[0]}: credits of 3 outputs" in text
    lines = [line.split() for line in text.splitlines()]
    assert any(line == " ".join(e.output_names).split() for line in lines)
    start, last = (next(line for line in lines if line[0] == word) for word in ("reference", "prediction"))
    largest = int(np.abs(e.values[0]).mean(axis=1).argmax())
    shown = next(line for line in lines if line[0] == e.feature_names[largest])
    for words, want in ((start, e.base_values[0]), (last, e.predictions[0]), (shown, e.values[0, largest])):
        got = [float(word.replace("\u2212", "-")) for word in words[-3:]]
        np.testing.assert_allclose(got, want, atol=5e-3)
    assert html.count("<tr") == 3 + len(e.feature_names)


def test_many_outputs_of_one_row_are_those_that_moved_most() -> None:
    n = 12
    moved = np.arange(float(n))
    e = gig.Explanation(
        moved[None, None], np.zeros((1, n)), moved[None], np.zeros((1, n)), np.zeros((1, n)), None, ("f",),
        tuple(f"o{k}" for k in range(n)),
    )  # fmt: skip
    assert "the 5 of 12 outputs that moved most" in str(e)
    assert [f"o{k}" for k in range(7, 12)] in [line.split() for line in str(e).splitlines()]


def test_a_pair_prints_both_values_its_start_and_only_what_changed() -> None:
    e = made_pairs()
    first = str(e[0])
    assert "against its own start" in first
    assert "from 0.400 (start) to 0.600" in first
    assert "f1 42 -> 50" in first
    assert "f0 rent -> own" in first
    assert "2 features did not change" in first
    assert "f2" not in first
    assert "f1 42 -&gt; 50" in e[0]._repr_html_()
    assert "4 features did not change" in str(e[1])
    both = str(e)
    assert "a start of its own for every row" in both
    assert "f2" not in both  # changed in neither row
    grouped = e[0].group({"g": ["f1", "f2"], "h": ["f3"]})
    assert "1 feature did not change" in str(grouped)
    assert "    g  " in str(grouped)


def test_starts_travel_with_pairs(tmp_path: Path) -> None:
    import pandas as pd

    e = made_pairs()
    e.save(tmp_path / "e.parquet")
    again = gig.Explanation.load(tmp_path / "e.parquet")
    pd.testing.assert_frame_equal(again.starts, e.starts)
    assert str(again[0]) == str(e[0])
    wide = e.to_frame(data=True)
    assert wide["start_f1"].tolist() == [42, 7]
    assert wide["value_f1"].tolist() == [50, 7]
    assert e[:, "f1"].starts.shape == (2, 1)
    assert gig.explain_pairs(graph_of_two(), [[0.0, 1.0]], [[1.0, 1.0]]).starts.tolist() == [[0.0, 1.0]]


def graph_of_two() -> gig.Graph:
    from sklearn.linear_model import LinearRegression

    return gig.import_model(LinearRegression().fit([[0, 0], [1, 0], [0, 1]], [0, 1, 2]))


def test_a_pipeline_is_named_by_what_it_is() -> None:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MinMaxScaler, StandardScaler

    X = np.arange(8.0)[:, None]
    inner = make_pipeline(MinMaxScaler(), "passthrough")
    model = make_pipeline(inner, StandardScaler(), LogisticRegression()).fit(X, X[:, 0] > 3)
    e = gig.explain(model, X[:2], X)
    assert e.provenance["model"]["label"] == "Pipeline(MinMaxScaler, StandardScaler, LogisticRegression)"
    assert "Pipeline(MinMaxScaler, StandardScaler, LogisticRegression) against 8 reference rows" in " ".join(
        str(e).split()
    )
    alone = make_pipeline(LogisticRegression()).fit(X, X[:, 0] > 3)
    assert gig.import_model(alone).label == "Pipeline(LogisticRegression)"
