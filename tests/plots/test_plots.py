"""The pictures: what they show is what the explanation holds; how they look is compared with pictures looked at."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.axes
import matplotlib.legend
import matplotlib.text
import numpy as np
import pytest
from made import made

mpl.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.testing.compare import compare_images

from gigrad import Explanation, InputError, plots
from gigrad.plots import style

BASELINE = Path(__file__).parent / "baseline"
LONG = tuple(f"the $ratio$ of <b>a very long name</b> of the bureau's {'x' * (i % 30)} number {i}" for i in range(200))

ONE_ROW: dict[str, Callable[[Explanation], Any]] = {
    "waterfall": plots.waterfall,
    "bar": plots.bar,
    "path": plots.path,
}
MANY_ROWS: dict[str, Callable[[Explanation], Any]] = {
    "bar": plots.bar,
    "beeswarm": plots.beeswarm,
    "scatter": lambda e: plots.scatter(e, 1, color=0),
    "heatmap": plots.heatmap,
}


@pytest.fixture(autouse=True)
def _close() -> Iterator[None]:
    with mpl.rc_context():
        mpl.rcdefaults()
        yield
        plt.close("all")


def texts(ax: Any) -> list[str]:
    """Every text that a figure shows."""
    from matplotlib.text import Text

    return [t.get_text() for t in ax.figure.findobj(Text) if t.get_text()]


# ---------------------------------------------------------------- what they show


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
    e = e[[i for i, v in enumerate(e.raw("f0")) if v is not None] + [2]]
    ax = plots.scatter(e, "f0")
    assert [t.get_text() for t in ax.get_xticklabels()][:3] == ["free", "own", "rent"]
    ax = plots.scatter(e, "f1")
    assert ax.get_xticklabels()[-1].get_text() == "missing"
    (points,) = ax.collections
    known = ~np.isnan(e.raw("f1"))
    np.testing.assert_allclose(points.get_offsets()[known], np.column_stack([e.raw("f1"), e.values[:, 1]])[known])


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
    above = ax.child_axes[0].lines[0].get_ydata()
    np.testing.assert_allclose(np.sort(above), np.sort(e.predictions))
    if order == "score":
        assert (np.diff(above) >= 0).all()


def test_heatmap_refuses_an_unknown_order() -> None:
    with pytest.raises(InputError, match="'alike', 'score', 'given'"):
        plots.heatmap(made(), order="random")


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
    e = replace(e, paths=replace(e.paths, references=10, credit=e.paths.credit * 1.01))
    said = next(t for t in texts(plots.path(e)) if "mean over" in t)
    assert "mean over a sample of 10 of 30 references (ends within 0.0" in said


def test_path_without_a_path_says_how_to_get_one() -> None:
    with pytest.raises(InputError, match=r"explain\(..., paths=n\)"):
        plots.path(made()[0])


def plane(x: Any) -> Any:
    return np.sin(x[:, 0] + x[:, 1])


def plane_explanation() -> tuple[Explanation, Any]:
    start, end = np.array([0.5, 1.0]), np.array([7.0, 3.0])
    change = float(plane(end[None])[0] - plane(start[None])[0])
    values = (change * (end - start) / (end - start).sum())[None]
    zero = np.zeros(1)
    e = Explanation(values, plane(start[None]), plane(end[None]), zero, zero, end[None], ("x", "y"), ("sin(x + y)",))
    return e, start


def test_surface_draws_four_panels() -> None:
    e, start = plane_explanation()
    axes = plots.surface(e, plane, start)
    assert len(axes) == 4
    np.testing.assert_allclose([b.get_height() for b in axes[3].patches], e.values[0])
    section = axes[2].lines[0].get_ydata()
    np.testing.assert_allclose(section[[0, -1]], [e.base_values[0], e.predictions[0]])
    with pytest.raises(InputError, match="two features"):
        plots.surface(made()[0], plane, start)
    with pytest.raises(InputError, match="two numeric features"):
        plots.surface(made(p=2)[0], plane, start)
    with pytest.raises(InputError, match="one number a row"):
        plots.surface(e, lambda x: x, start)


# ---------------------------------------------------------------- what holds for all


@pytest.mark.parametrize("name", ONE_ROW)
def test_pictures_of_one_row_refuse_what_they_cannot_draw(name: str) -> None:
    with pytest.raises(InputError, match="draws one output; pick one of 'class 0', 'class 1'"):
        ONE_ROW[name](made(k=2, paths=True)[0])
    if name != "bar":
        with pytest.raises(InputError, match=f"{name} draws one row; this explanation has 7"):
            ONE_ROW[name](made(paths=True))
    with pytest.raises(InputError, match="draws an Explanation; got a ndarray"):
        ONE_ROW[name](np.zeros((1, 2)))


@pytest.mark.parametrize("name", MANY_ROWS)
def test_pictures_of_many_rows_refuse_what_they_cannot_draw(name: str) -> None:
    with pytest.raises(InputError, match="draws one output"):
        MANY_ROWS[name](made(k=2))
    with pytest.raises(InputError, match="needs at least one row"):
        MANY_ROWS[name](made()[:0])


DRAWN: dict[str, Callable[[Any], Any]] = {
    "waterfall": lambda ax: plots.waterfall(made()[0], ax=ax),
    "bar": lambda ax: plots.bar(made(), ax=ax),
    "bar of cohorts": lambda ax: plots.bar({"a": made(), "b": made(seed=1)}, ax=ax),
    "beeswarm": lambda ax: plots.beeswarm(made(), ax=ax),
    "scatter": lambda ax: plots.scatter(made(), 1, ax=ax),
    "heatmap": lambda ax: plots.heatmap(made(), ax=ax),
    "path": lambda ax: plots.path(made(paths=True)[0], ax=ax),
}


@pytest.mark.parametrize("draw", DRAWN.values(), ids=DRAWN)
def test_only_axes_can_be_drawn_on(draw: Callable[[Any], Any]) -> None:
    figure, axes = plt.subplots(1, 2)
    for wrong, said in {
        "ax": "got a str. Leave it out to have new ones made",
        figure: r"got a Figure. Pass what its gca\(\) gives",
        plt: "got a module. Leave it out",
        plt.figure().add_subplot(projection="3d"): "ax must be flat axes; got three-dimensional ones. Leave it out",
    }.items():
        with pytest.raises(InputError, match=said):
            draw(wrong)
    with pytest.raises(InputError, match=r"got a ndarray. Pass one of them, say axes\[0\]"):
        draw(axes)
    assert draw(axes[1]) is axes[1]
    axes[0].remove()
    with pytest.raises(InputError, match="removed"):
        draw(axes[0])


def test_surface_needs_one_solid_picture_and_three_flat_ones() -> None:
    e, start = plane_explanation()
    figure = plt.figure()
    solid, *flat = (figure.add_subplot(2, 2, i, projection="3d" if i == 1 else None) for i in range(1, 5))
    assert list(plots.surface(e, plane, start, ax=[solid, *flat])) == [solid, *flat]
    for axes, said in [
        ([*flat, solid], r"ax\[0\] must be axes of three dimensions; got flat ones"),
        ([solid, solid, *flat[1:]], r"ax\[1\] must be flat axes; got three-dimensional ones"),
        ([solid, *flat[:2], None], r"ax\[3\] must be matplotlib axes; got None"),
        (figure, "four axes; got 1"),
    ]:
        with pytest.raises(InputError, match=said):
            plots.surface(e, plane, start, ax=axes)


@pytest.mark.parametrize("top", [0, -1, 2.5, True, "5"])
def test_counts_must_be_positive_whole_numbers(top: Any) -> None:
    with pytest.raises(InputError, match="top must be a positive whole number"):
        plots.bar(made(), top=top)


@pytest.mark.parametrize("name", [*ONE_ROW, *MANY_ROWS])
def test_given_axes_are_used_and_returned(name: str) -> None:
    figure, ax = plt.subplots()
    drawn = ONE_ROW[name](made(paths=True)[0]) if name in ONE_ROW else MANY_ROWS[name](made())
    assert drawn.figure is not figure
    function = getattr(plots, name)
    e = made(paths=True)[0] if name in ONE_ROW else made()
    assert (function(e, 1, ax=ax) if name == "scatter" else function(e, ax=ax)) is ax


@pytest.mark.parametrize("one", [True, False])
def test_200_features_with_long_names_can_be_drawn_and_no_picture_names_another_method(one: bool) -> None:
    e = made(n=12, p=200, names=LONG, paths=True)
    for draw in (ONE_ROW if one else MANY_ROWS).values():
        ax = draw(e[0] if one else e)
        ax.figure.canvas.draw()
        shown = texts(ax)
        assert not any("shap" in t.lower() for t in shown)
        assert max(map(len, shown)) < 110
        assert any(r"\$ratio\$" in t for t in shown)  # shown as it is, not set as a formula


@pytest.mark.parametrize("name", [*ONE_ROW, *MANY_ROWS])
def test_a_dark_style_gives_light_text_on_dark(name: str) -> None:
    with plt.style.context("dark_background"):
        ax = ONE_ROW[name](made(paths=True)[0]) if name in ONE_ROW else MANY_ROWS[name](made())
        ax.figure.canvas.draw()
        from matplotlib.colors import to_rgb
        from matplotlib.text import Text

        assert to_rgb(ax.figure.get_facecolor()) == (0, 0, 0)
        for shown in ax.figure.findobj(Text):
            if shown.get_text().strip():
                assert contrast(to_rgb(shown.get_color()), (0, 0, 0)) >= 3


@pytest.mark.parametrize("color", [style.POSITIVE, style.NEGATIVE, style.NEUTRAL, *style.SERIES])
def test_colours_are_seen_on_white_and_on_black(color: str) -> None:
    from matplotlib.colors import to_rgb

    assert contrast(to_rgb(color), (0, 0, 0)) >= 3
    assert contrast(to_rgb(color), (1, 1, 1)) >= 1.8


# what each kind of colour blindness makes of linear RGB (Machado, Oliveira and Fernandes, 2009)
BLINDNESS = {
    "none": np.eye(3),
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}


@pytest.mark.parametrize("kind", BLINDNESS)
def test_colours_stay_apart_for_colour_blind_readers(kind: str) -> None:
    """Distances in CIELAB, where about 2 is just seen; 40 between for and against, 12 between any two of a series."""
    from itertools import combinations

    from matplotlib.colors import to_rgb

    def lab(color: str) -> Any:
        rgb = np.array(to_rgb(color))
        linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
        seen = np.clip(np.asarray(BLINDNESS[kind]) @ linear, 0, 1)
        xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ seen
        f = np.cbrt(xyz / [0.9505, 1.0, 1.089])
        return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])

    series = [lab(color) for color in (*style.SERIES, style.NEUTRAL)]
    assert min(np.linalg.norm(a - b) for a, b in combinations(series, 2)) >= 12
    assert np.linalg.norm(lab(style.POSITIVE) - lab(style.NEGATIVE)) >= 40


def contrast(a: Any, b: Any) -> float:
    """The contrast of two colours as the web's accessibility rules count it."""

    def luminance(rgb: Any) -> float:
        linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


# ---------------------------------------------------------------- how they look


def pictures() -> dict[str, Callable[[], Any]]:
    few, many = made(p=6, paths=True), made(n=120, p=20)
    e, start = plane_explanation()
    return {
        "waterfall": lambda: plots.waterfall(few[2]),
        "bar": lambda: plots.bar({"first": many[:60], "second": many[60:]}, top=5),
        "beeswarm": lambda: plots.beeswarm(many, top=6),
        "scatter": lambda: plots.scatter(many, "f1", color="f0"),
        "heatmap": lambda: plots.heatmap(many, top=6),
        "path": lambda: plots.path(few[2]),
        "surface": lambda: plots.surface(e, plane, start)[0],
    }


def draw(name: str, folder: Path) -> Path:
    mpl.rcdefaults()
    mpl.use("Agg")
    out = folder / f"{name}.png"
    figure = pictures()[name]().figure
    for ax in figure.findobj(mpl.axes.Axes):
        ax.tick_params(labelleft=False, labelbottom=False, labelright=False, labeltop=False)
    # letters differ with the font renderer, and move everything else with them; what they say is tested above
    for lettering in [*figure.findobj(mpl.text.Text), *figure.findobj(mpl.legend.Legend)]:
        lettering.set_visible(False)
    figure.savefig(out, dpi=50, metadata={"Software": None})
    plt.close("all")
    return out


@pytest.mark.parametrize("name", pictures())
def test_pictures_look_as_they_did_when_looked_at(name: str, tmp_path: Path) -> None:
    difference = compare_images(str(BASELINE / f"{name}.png"), str(draw(name, tmp_path)), tol=5)
    assert difference is None, difference


if (
    __name__ == "__main__"
):  # PYTHONPATH=tests/helpers python tests/plots/test_plots.py: draw the pictures to compare with again; look at them
    BASELINE.mkdir(exist_ok=True)
    for picture in sys.argv[1:] or pictures():
        print(draw(picture, BASELINE))
