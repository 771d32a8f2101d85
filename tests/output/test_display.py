"""Names and values as people read them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made import made

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
