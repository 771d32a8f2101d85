"""Shared style of the plots: colours that colour-blind readers can distinguish, labels, and limits on what is drawn.

Text and lines take matplotlib's own colours, so a dark style gives a dark picture; the colours here have enough
contrast on white and on black.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._common import display
from .._common.optional import require
from .._explain.explanation import Explanation
from .._output.views import changed, value_of_row
from .._output.views import score_name as _score_name
from ..errors import InputError, kind_of

POSITIVE, NEGATIVE = display.POSITIVE, display.NEGATIVE
NEUTRAL = "#767676"
# distinct from each other and from NEUTRAL for every kind of colour blindness; a test measures the distances
SERIES = (NEGATIVE, POSITIVE, "#00a878", "#e58ac3", "#dcb91e", "#67c1f2", "#a8442a", "#7d4fc4")
NAME_WIDTH = 34
_NEW = "Leave it out to have new ones made."
_INSTEAD = {"Figure": "Pass the result of its gca()."} | dict.fromkeys(
    ("ndarray", "list", "tuple"), "Pass one of them, say axes[0]."
)


def pyplot() -> Any:
    """matplotlib.pyplot, or a MissingDependencyError that names the extra."""
    return require("matplotlib.pyplot", "plot")


def new_axes(width: float, height: float) -> Any:
    """Axes of a new figure, `width` by `height` inches, whose margins fit its labels."""
    return pyplot().subplots(figsize=(width, height), layout="constrained")[1]


def listed_axes(labels: Sequence[str], line: float, more: float = 1.4) -> Any:
    """New axes for one line a label, `line` inches high, as wide as the longest label needs."""
    return new_axes(max(7.0, 5.6 + 0.075 * max(map(len, labels))), more + line * len(labels))


def given_axes(ax: Any, what: str = "ax", solid: bool = False) -> Any:
    """The axes that a caller gave to draw on, which must be flat, or of three dimensions where `solid`."""
    if not isinstance(ax, require("matplotlib.axes", "plot").Axes):
        instead = _INSTEAD.get(type(ax).__name__, _NEW)
        raise InputError(f"{what} must be matplotlib axes; got {kind_of(ax)}. {instead}")
    if ax.figure is None:
        raise InputError(f"{what} must belong to a figure; these axes were removed from theirs.")
    if (ax.name == "3d") != solid:
        wanted, given = ("axes of three dimensions", "flat ones") if solid else ("flat axes", "three-dimensional ones")
        raise InputError(f"{what} must be {wanted}; got {given}. {_NEW}")
    return ax


def low_to_high() -> Any:
    """A colour map from low to high values that is visible on white and on black."""
    colors = require("matplotlib.colors", "plot")
    return colors.LinearSegmentedColormap.from_list("gigrad", [NEGATIVE, "#8f8aa8", POSITIVE])


def against_to_for() -> Any:
    """A diverging colour map from negative over zero to positive, for filled areas."""
    colors = require("matplotlib.colors", "plot")
    shades = ["#1b5e8c", NEGATIVE, "#a6cee3", "#f7f7f7", "#f6c59a", POSITIVE, "#9c4500"]
    return colors.LinearSegmentedColormap.from_list("gigrad diverging", shades)


def nothing_to_much() -> Any:
    """A sequential colour map for sizes, from zero on, for filled areas."""
    colors = require("matplotlib.colors", "plot")
    return colors.LinearSegmentedColormap.from_list("gigrad sizes", ["#f7f7f7", "#f6c59a", POSITIVE, "#9c4500"])


def ink() -> Any:
    """The colour of text in the style in use: dark on light, light on dark."""
    return pyplot().rcParams["text.color"]


def sign_color(credit: float) -> str:
    """The colour of a credit: for a higher score, or against it."""
    return POSITIVE if credit > 0 else NEGATIVE


def ranked(size: NDArray[np.float64], top: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The features to show, largest first, and those to sum in one bar; a single one is shown instead."""
    order = np.argsort(-size, kind="stable")
    cut = top if len(order) > top + 1 else len(order)
    return order[:cut], order[cut:]


def ranked_of_row(e: Explanation, credit: NDArray[np.float64], top: int) -> tuple[Any, Any]:
    """`ranked` for the credits (p,) of the only row; features that do not differ from a pair's start are left out."""
    kept = np.flatnonzero(changed(e))
    shown, gathered = ranked(np.abs(credit[kept]), top)
    return kept[shown], kept[gathered]


def name_and_value(e: Explanation, feature: int) -> str:
    """`income = 1200` for the only row of an explanation, `income 900 -> 1200` for a pair; a group's name alone."""
    value = value_of_row(e, int(feature), 24 if e.starts is None else 16)
    return plain(display.short_names(e.feature_names, NAME_WIDTH)[feature] + value)


def short_name(e: Explanation, feature: int) -> str:
    """A feature's name, cut in the middle where it is very long."""
    return plain(display.short_names(e.feature_names, NAME_WIDTH)[feature])


def others(number: int) -> str:
    """The label of the bar for all other features."""
    return f"{number} others"


def plain(text: str) -> str:
    """Text escaped for matplotlib: a dollar sign would begin a formula, a line break a second line."""
    return " ".join(text.split()).replace("$", r"\$")


def score_name(e: Explanation) -> str:
    """The name of the score on an axis."""
    return plain(_score_name(e))


def quiet_frame(ax: Any, *keep: str) -> None:
    """Hide all spines but those in `keep`."""
    for side, spine in ax.spines.items():
        spine.set_visible(side in keep)


def zero_line(ax: Any, axis: str = "x") -> None:
    """Draw the line where credits are 0."""
    line = ax.axvline if axis == "x" else ax.axhline
    line(0, color=ink(), linewidth=0.8, alpha=0.6, zorder=1)


def name_rows(ax: Any, labels: Sequence[str]) -> None:
    """Label the rows at the left side, first on top."""
    ax.set_yticks(range(len(labels)), labels)
    ax.set_ylim(len(labels) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)


def few_ticks(ax: Any) -> None:
    """Reduce the x ticks so that their labels do not overlap."""
    ax.locator_params(axis="x", nbins=6)


def title(ax: Any, text: str) -> None:
    """Set a small title at the upper left."""
    ax.set_title(plain(text), loc="left", fontsize="medium")
