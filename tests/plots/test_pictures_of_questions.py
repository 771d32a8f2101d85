"""Pictures of changes, comparisons, what would help, and variables that work together."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from made import made
from pictured import made_change, made_comparison, made_interactions, made_what_if, texts
from unchecked import unchecked

from gigrad import InputError, plots
from gigrad._questions.curves import Curve


def test_change_goes_from_before_to_after_step_by_step() -> None:
    found = made_change()
    one = found[3]
    ax = plots.change(one, top=2)
    labels = [t.get_text() for t in ax.get_yticklabels()]
    assert labels[0] == "before"
    assert labels[1] == "data"
    assert labels[-2:] == ["no variable", "after"]
    assert [label for label in labels if label in found.steps] == list(found.steps)
    assert sum(bar.get_width() for bar in ax.patches) == pytest.approx(float(one.after[0] - one.before[0]))
    assert any("→" in label for label in labels)
    many = plots.change(found)
    assert "mean of 40 customers" in texts(many)
    assert sum(bar.get_width() for bar in many.patches) == pytest.approx(float((found.after - found.before).mean()))
    with pytest.raises(InputError, match="draws a ScoreChange"):
        plots.change(unchecked(made()))
    with pytest.raises(InputError, match="at least one customer"):
        plots.change(found[:0])


def test_comparison_puts_both_models_on_one_line() -> None:
    found = made_comparison()
    ax = plots.comparison(found[1], top=3)
    order = np.argsort(-np.abs(found.difference.values[1]))[:3]
    champion, challenger = ax.lines[-2].get_xdata(), ax.lines[-1].get_xdata()
    np.testing.assert_allclose(champion, found.champion.values[1, order])
    np.testing.assert_allclose(challenger, found.challenger.values[1, order])
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["champion", "challenger"]
    with pytest.raises(InputError, match="draws a Comparison"):
        plots.comparison(unchecked(made()))
    with pytest.raises(InputError, match="at least one row"):
        plots.comparison(found[:0])


def test_what_if_draws_curves_with_the_row_the_cutoff_and_the_change() -> None:
    figure = plots.what_if(made_what_if())
    first, second, third = figure.axes
    assert [ax.get_title(loc="left") for ax in figure.axes] == ["steps", "line", "kind"]
    np.testing.assert_allclose(first.patches[0].get_data().values, [0.9, 0.6, 0.2])
    assert (6, 0.2) in {(float(p.get_xdata()[0]), float(p.get_ydata()[0])) for p in first.lines[1:]}
    assert [len(p.get_xdata()) for p in second.lines[1:3]] == [2, 2]  # the line breaks at the threshold
    assert [t.get_text() for t in third.get_xticklabels()] == ["own", "rent"]
    assert all(ax.lines[0].get_ydata()[0] == 0.35 for ax in figure.axes)
    with pytest.raises(InputError, match=r"draws a result of gigrad.what_if"):
        plots.what_if(unchecked(made()))


def drawn(curve: Curve) -> Any:
    """The picture of one curve."""
    return plots.what_if(replace(made_what_if(), curves={curve.name: curve}, single=())).axes[0]


def test_what_if_draws_no_numbers_that_there_are_not() -> None:
    """Amounts are not drawn far below the least there is, and counts change half-way between whole numbers."""
    amount = Curve("amount", "steps", np.array([100.5, 9000.5]), np.array([100.5, 9000.5, 9001.0]),
                   np.array([0.9, 0.6, 0.2]), 5000, np.nan, 50.0, 20000.0, True)  # fmt: skip
    ax = drawn(amount)
    edges = ax.patches[0].get_data().edges
    assert edges[0] >= 50 - 0.02 * 8900
    assert [t for t in ax.get_xticks() if ax.get_xlim()[0] <= t < 0] == []
    counted = Curve("count", "steps", np.array([0.0, 1.999]), np.array([0.0, 1.999, 2.0]), np.array([0.9, 0.6, 0.2]),
                    0, np.nan, 0.0, 3.0, True)  # fmt: skip
    ax = drawn(counted)
    np.testing.assert_allclose(ax.patches[0].get_data().edges, [-0.5, 0.5, 1.5, 2.5])
    ax.figure.canvas.draw()
    assert all(t == round(t) for t in ax.get_xticks())


def test_what_if_names_the_few_of_many_categories_that_matter() -> None:
    labels = np.array([f"state {i}" for i in range(50)], object)
    ax = drawn(Curve("state", "labels", np.zeros(0), labels, np.cos(np.arange(50.0)), "state 7", np.nan))
    named = [t.get_text() for t in ax.get_xticklabels()]
    assert "state 7" in named
    assert len(named) <= 4
    places = ax.lines[1].get_ydata()
    assert (np.diff(places) >= 0).all()
    assert ax.lines[2].get_ydata()[0] == made_what_if().score


def test_numbers_beyond_intervals_have_room() -> None:
    found = made_change()
    spread = np.where(np.arange(len(found)) % 2, 20.0, -20.0)  # much wider than the mean
    ax = plots.change(replace(found, values=found.values * spread[:, None, None]), top=2)
    low, high = ax.get_xlim()
    reaches = [x for line in ax.lines for x in line.get_xdata()]
    assert low < min(reaches) - 0.1 * (max(reaches) - min(reaches))
    assert high > max(reaches) + 0.1 * (max(reaches) - min(reaches))


def test_interactions_show_the_matrix_and_the_credits() -> None:
    found = made_interactions()
    ax = plots.interactions(found[2])
    table = np.asarray(ax.images[0].get_array())
    sizes = np.abs(found.values[2])
    order = np.argsort(-np.maximum(sizes.max(axis=0), sizes.max(axis=1)), kind="stable")
    np.testing.assert_allclose(table, found.values[2][np.ix_(order, order)])
    widths = [bar.get_width() for bar in ax.child_axes[0].patches]
    np.testing.assert_allclose(widths, found.explanation.values[2][order])
    few = plots.interactions(found[2], top=3)
    table = np.asarray(few.images[0].get_array())
    assert table.shape == (4, 4)
    np.testing.assert_allclose(table.sum(), found.explanation.values[2].sum())
    assert few.get_yticklabels()[-1].get_text() == "5 others"
    many = np.asarray(plots.interactions(found).images[0].get_array())
    assert many.min() >= 0
    with pytest.raises(InputError, match="got an Explanation"):
        plots.interactions(unchecked(found.explanation))
    with pytest.raises(InputError, match="at least one row"):
        plots.interactions(found[:0])
