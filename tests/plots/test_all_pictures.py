"""What holds for all pictures: which input they refuse, on which axes they are drawn, and their colours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
from made import made
from pictured import MANY_ROWS, ONE_ROW, plane, plane_explanation, texts
from unchecked import unchecked

from gigrad import InputError, plots
from gigrad.plots import style

LONG = tuple(f"the $ratio$ of <b>a very long name</b> of the bureau's {'x' * (i % 30)} number {i}" for i in range(200))


@pytest.mark.parametrize("name", ONE_ROW)
def test_pictures_of_one_row_refuse_what_they_cannot_draw(name: str) -> None:
    if name != "bar":
        with pytest.raises(InputError, match="draws one output; pick one of 'class 0', 'class 1'"):
            ONE_ROW[name](made(k=2, paths=True)[0])
        with pytest.raises(InputError, match=f"{name} draws one row; this explanation has 7"):
            ONE_ROW[name](made(paths=True))
    with pytest.raises(InputError, match="draws an Explanation; got a ndarray"):
        ONE_ROW[name](unchecked(np.zeros((1, 2))))


@pytest.mark.parametrize("name", MANY_ROWS)
def test_pictures_of_many_rows_refuse_what_they_cannot_draw(name: str) -> None:
    if name != "bar":
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
        figure: r"got a Figure. Pass the result of its gca\(\)",
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
