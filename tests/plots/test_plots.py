"""Pictures of explanations: what they show is what the explanation holds."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from made import made, made_pairs
from pictured import ONE_ROW, plane, plane_explanation, texts, two_valued
from unchecked import unchecked

from gigrad import Explanation, InputError, plots
from gigrad.plots import style


def test_waterfall_goes_from_the_base_to_the_score_in_order_of_size() -> None:
    e = made(p=30)[0]
    ax = plots.waterfall(e, top=5)
    widths = [bar.get_width() for bar in ax.patches]
    order = np.argsort(-np.abs(e.values[0]))
    np.testing.assert_allclose(widths[:5], e.values[0, order[:5]])
    np.testing.assert_allclose(widths[5], e.values[0, order[5:]].sum())
    assert ax.patches[0].get_x() == pytest.approx(e.base_values[0])
    assert ax.patches[5].get_x() + widths[5] == pytest.approx(e.predictions[0])
    labels = [t.get_text() for t in ax.get_yticklabels()]
    assert labels[0] == "reference"
    assert labels[-2:] == ["25 others", "this row"]


def test_waterfall_shows_what_was_sliced_away_and_a_gap_that_is_no_rounding() -> None:
    e = made()[0, ["f0", "f1"]]
    assert "features left out" in texts(plots.waterfall(e))
    lost = Explanation(e.values, e.base_values, e.predictions + 0.5, e.gap + 0.5, e.error, e.data, e.feature_names,
                       e.output_names, rest=e.rest)  # fmt: skip
    ax = plots.waterfall(lost)
    assert "gap of the numerics" in texts(ax)
    assert ax.patches[-1].get_x() + ax.patches[-1].get_width() == pytest.approx(lost.predictions[0])


def test_bar_shows_credits_of_one_row_and_mean_absolute_credits_of_many() -> None:
    e = made(p=6)
    one, many = plots.bar(e[3]), plots.bar(e)
    np.testing.assert_allclose(sorted(b.get_width() for b in one.patches), np.sort(e.values[3]))
    np.testing.assert_allclose([b.get_width() for b in many.patches], -np.sort(-np.abs(e.values).mean(axis=0)))


def test_bar_puts_cohorts_side_by_side() -> None:
    e = made(n=20, p=3)
    ax = plots.bar({"first": e[:5], "second": e[5:]})
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["first (5 rows)", "second (15 rows)"]
    np.testing.assert_allclose(
        sorted(b.get_width() for b in ax.patches if b.get_width() > 0),
        np.sort(np.concatenate([np.abs(e.values[:5]).mean(axis=0), np.abs(e.values[5:]).mean(axis=0)])),
    )
    with pytest.raises(InputError, match="same features"):
        plots.bar({"first": e, "second": e[:, :2]})
    with pytest.raises(InputError, match="1 to 8 cohorts"):
        plots.bar({})


def interval_lines(ax: Any) -> list[tuple[float, float]]:
    """From and to of every interval, the dark lines of a bar picture."""
    return [tuple(line.get_xdata()) for line in ax.lines if line.get_linewidth() == 1.3 and line.get_color() != "white"]


def test_bar_draws_the_intervals_of_the_summary() -> None:
    e = made(n=40, p=5)
    ax = plots.bar(e)
    summary = e.summary()
    drawn = np.array(interval_lines(ax))
    np.testing.assert_allclose(drawn, summary[["low", "high"]].to_numpy())
    assert any("95% of samples of other rows" in t for t in texts(ax))
    assert not interval_lines(plots.bar(e, intervals=False))
    assert not interval_lines(plots.bar(e[0]))  # one row against a whole reference has none
    assert len(interval_lines(plots.bar({"a": e[:20], "b": e[20:]}))) == 10


def test_bar_puts_all_classes_into_one_picture() -> None:
    e = made(n=20, p=5, k=3)
    ax = plots.bar(e)
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["class 0", "class 1", "class 2"]
    mean = np.abs(e.values).mean(axis=0)  # (p, k)
    np.testing.assert_allclose(sorted(b.get_width() for b in ax.patches), np.sort(mean.ravel()))
    ends = {round(b.get_y() + b.get_height() / 2): b.get_x() + b.get_width() for b in ax.patches}
    np.testing.assert_allclose([ends[y] for y in range(5)], np.sort(mean.sum(axis=1))[::-1])
    one = plots.bar(e[3])
    np.testing.assert_allclose(sorted(b.get_width() for b in one.patches), np.sort(e.values[3].ravel()))
    many = plots.bar(made(n=20, p=3, k=11))
    assert any("3 smaller outputs left out" in t for t in texts(many))


def test_pairs_show_both_values_and_only_what_changed() -> None:
    e = made_pairs()[0]
    for name in ("waterfall", "bar"):
        labels = [t.get_text() for t in ONE_ROW[name](e).get_yticklabels()]
        assert "f1 42 -> 50" in labels
        assert "f0 rent -> own" in labels
        assert not any("f2" in label or "f3" in label for label in labels)
    assert next(t.get_text() for t in plots.waterfall(e).get_yticklabels()) == "start"
    shown = texts(plots.path(e, jumps=1))
    assert "from the start (0) to this row (1)" in shown
    assert any("f1 42 -> 50" in t for t in shown)
    assert not any("f2" in t or "others" in t for t in shown)


def test_a_pair_that_did_not_change_is_drawn_all_the_same() -> None:
    e = made_pairs()[1]
    ax = plots.waterfall(e)
    assert [t.get_text() for t in ax.get_yticklabels()] == ["start", "this row"]


def test_path_has_numbers_beside_the_line_only() -> None:
    e = made(p=6, paths=True)[2]
    above = plots.path(e).child_axes[0]
    assert e.paths is not None
    ticks, score = above.get_yticks(), e.paths.score[0]
    room = 0.051 * np.ptp(score)
    assert len(ticks) >= 2
    assert ((ticks >= score.min() - room) & (ticks <= score.max() + room)).all()


def test_beeswarm_places_every_row_at_its_credit() -> None:
    e = made(n=50, p=3)
    ax = plots.beeswarm(e)
    drawn = np.sort(np.concatenate([c.get_offsets()[:, 0] for c in ax.collections]))
    np.testing.assert_allclose(drawn, np.sort(e.values.ravel()))
    heights = np.concatenate([c.get_offsets()[:, 1] for c in ax.collections])
    assert np.abs(heights - np.round(heights)).max() <= 0.4


def test_sampled_pictures_say_so() -> None:
    e = made(n=3000, p=3)
    assert "2,000 of 3,000 rows, drawn at random" in texts(plots.beeswarm(e))
    assert "100 of 3,000 rows, drawn at random" in texts(plots.scatter(e, "f1", points=100))
    assert "50 of 3,000 rows, drawn at random" in texts(plots.heatmap(e, rows=50))


def test_scatter_names_categories_and_missing_values() -> None:
    e = made(n=40)
    e = e[[i for i, v in enumerate(np.asarray(e.raw("f0"))) if v is not None] + [2]]
    ax = plots.scatter(e, "f0")
    assert [t.get_text() for t in ax.get_xticklabels()][:3] == ["free", "own", "rent"]
    ax = plots.scatter(e, "f1")
    assert ax.get_xticklabels()[-1].get_text() == "missing"
    (points,) = ax.collections
    numbers = np.asarray(e.raw("f1"))
    known = ~np.isnan(numbers)
    np.testing.assert_allclose(points.get_offsets()[known], np.column_stack([numbers, e.values[:, 1]])[known])


def test_scatter_has_two_colours_for_two_values_and_counts_the_rows() -> None:
    e = two_valued(made(n=60), "f2")
    ax = plots.scatter(e, "f1", color="f2")
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["0", "1"]
    colors = {mpl.colors.to_hex(c.get_facecolor()[0]) for c in ax.collections}
    assert colors == set(style.SERIES[:2])
    strip = ax.child_axes[0]
    assert sum(b.get_height() for b in strip.patches) == 60  # missing values have a bar of their own
    assert sum(b.get_height() for b in plots.scatter(e, "f0").child_axes[0].patches) == 60
    assert len(ax.figure.axes) == 1  # no scale of shades


def test_scatter_refuses_a_group_which_has_no_value() -> None:
    with pytest.raises(InputError, match="is a group"):
        plots.scatter(made().group({"G": ["f0", "f1"]}), "G")


@pytest.mark.parametrize("order", ["alike", "score", "given"])
def test_heatmap_holds_every_row_once(order: Any) -> None:
    e = made(n=30, p=4)
    ax = plots.heatmap(e, order=order)
    shown = np.asarray(ax.images[0].get_array())
    ranked = np.argsort(-np.abs(e.values).mean(axis=0))
    columns = {tuple(column) for column in np.round(shown.T, 9)}
    assert columns == {tuple(row) for row in np.round(e.values[:, ranked], 9)}
    widths = [b.get_width() for b in ax.child_axes[1].patches]
    np.testing.assert_allclose(widths, np.sort(np.abs(e.values).mean(axis=0))[::-1])
    above = ax.child_axes[0].lines[0].get_ydata()
    np.testing.assert_allclose(np.sort(above), np.sort(e.predictions))
    if order == "score":
        assert (np.diff(above) >= 0).all()


def test_heatmap_refuses_an_unknown_order() -> None:
    with pytest.raises(InputError, match="'alike', 'score', 'given'"):
        plots.heatmap(made(), order=unchecked("random"))


def test_path_ends_at_the_credits_and_marks_the_jumps() -> None:
    e = made(p=12, paths=True)[2]
    ax = plots.path(e, top=3, jumps=2)
    above, below = ax.child_axes
    np.testing.assert_allclose(above.lines[0].get_ydata()[[0, -1]], [e.base_values[0], e.predictions[0]], atol=1e-9)
    order = np.argsort(-np.abs(e.values[0]))
    jumping = [t.get_text() for t in above.texts if t.get_text().startswith("f")]
    assert sorted(jumping) == sorted(e.feature_names[j] for j in order[:2])
    ends = " ".join(t.get_text() for t in below.texts)
    for j in order[:3]:
        assert e.feature_names[j] in ends
    assert "9 others" in ends
    np.testing.assert_allclose(below.lines[0].get_ydata()[-1], e.values[0].sum(), atol=1e-9)


def test_path_says_what_was_averaged_and_how_far_a_sample_is_off() -> None:
    from dataclasses import replace

    e = made(paths=True)[0]
    assert "row loan 0: mean over 30 references" in texts(plots.path(e))
    assert e.paths is not None
    e = replace(e, paths=replace(e.paths, references=10, credit=e.paths.credit * 1.01))
    said = next(t for t in texts(plots.path(e)) if "mean over" in t)
    assert "mean over a sample of 10 of 30 references (ends within 0.0" in said


def test_path_without_a_path_says_how_to_get_one() -> None:
    with pytest.raises(InputError, match=r"explain\(..., paths=n\)"):
        plots.path(made()[0])


def test_surface_draws_four_panels() -> None:
    e, start = plane_explanation()
    axes = plots.surface(e, plane, start)
    assert len(axes) == 4
    axes[0].figure.canvas.draw()
    boxes = [axis.label.get_window_extent() for axis in (axes[0].xaxis, axes[0].yaxis)]
    for axis in (axes[0].xaxis, axes[0].yaxis):
        for tick in axis.get_ticklabels():
            assert not any(box.overlaps(tick.get_window_extent()) for box in boxes), tick.get_text()
    np.testing.assert_allclose([b.get_height() for b in axes[3].patches], e.values[0])
    section = axes[2].lines[0].get_ydata()
    np.testing.assert_allclose(section[[0, -1]], [e.base_values[0], e.predictions[0]])
    with pytest.raises(InputError, match="two features"):
        plots.surface(made()[0], plane, start)
    with pytest.raises(InputError, match="two numeric features"):
        plots.surface(made(p=2)[0], plane, start)
    with pytest.raises(InputError, match="one number a row"):
        plots.surface(e, lambda x: x, start)
