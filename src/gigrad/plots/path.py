"""The path from the reference to a row: the score, its jumps, and the credit that each feature has accumulated.

Only a path method can draw this: its attributions accumulate along the path.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._common import checks, display
from .._common.optional import require
from .._explain.explanation import Explanation
from .._explain.paths import Paths
from .._output import views
from ..errors import InputError
from . import style

LETTER = 0.0135
"""About how much of the axes' width a small letter takes."""


def path(e: Explanation, *, top: int = 6, jumps: int = 5, ax: Any = None) -> Any:
    """Draw the score along the path of one row, and below it the credits as they accumulate.

    Parameters
    ----------
    e : Explanation of one row that has a path, say `gig.explain(model, X, reference, paths=1)[0]`
    top : int
        How many features get a colour of their own; the others are summed.
    jumps : int
        How many of the largest jumps are marked with the feature that caused them.
    ax : matplotlib Axes, optional
        Its place is shared by two pictures, the score above and the credits below.

    Returns
    -------
    matplotlib Axes
        `ax.child_axes` has the score's and the credits' own axes.

    Examples
    --------
    >>> import gigrad as gig
    >>> e = gig.explain(tree, [[1, 1]], [[0, 0]], paths=1)
    >>> ax = gig.plots.path(e[0])
    """
    e = views.one_row(e, "path")
    if e.paths is None:
        raise InputError(
            "path needs the row's path, and this explanation has none; explain(..., paths=n) keeps those of the first "
            "n rows."
        )
    ax = style.new_axes(9.0, 6.4) if ax is None else style.given_axes(ax)
    ax.set_axis_off()
    above, below = ax.inset_axes((0.0, 0.62, 1.0, 0.38)), ax.inset_axes((0.0, 0.0, 1.0, 0.55))
    _score(above, e, e.paths, checks.whole(jumps, "jumps"))
    _credits(below, e, e.paths, checks.whole(top, "top"))
    style.title(above, _said(e, e.paths))
    return ax


def _said(e: Explanation, paths: Paths) -> str:
    """Which row and references the picture shows, and by how much it misses the credits."""
    said = f"row {e.ids[0]}: {paths.said}"
    if paths.references == paths.of:
        return said
    missed = float(np.abs(paths.credit[0, -1] - e.values[0]).max())
    return f"{said} (ends within {missed:.1g} of the credits)"


def _score(ax: Any, e: Explanation, paths: Paths, jumps: int) -> None:
    """The upper panel: the score along the path, with its ends and largest jumps."""
    score = paths.score[0]
    ax.plot(paths.times, score, color=style.ink(), linewidth=1.6, zorder=3)
    ax.axhline(float(score[0]), color=style.ink(), linewidth=0.8, alpha=0.5, linestyle=":")
    places = display.decimals(float(np.ptp(score)) or 1.0)
    low, span = float(score.min()), float(np.ptp(score)) or 1.0
    under = score[min(len(score) - 1, len(score) // 10)] >= score[0]  # label on the side away from the line
    for text, time, value, offset, align in (
        (f"{views.origin(e)} {display.score(float(score[0]), places)}", 0.0, score[0], (5, -4 if under else 4),
         {"ha": "left", "va": "top" if under else "bottom"}),
        (display.score(float(score[-1]), places), 1.0, score[-1], (6, 0), {"ha": "left", "va": "center"}),
    ):  # fmt: skip
        ax.annotate(text, (time, value), offset, textcoords="offset points", fontweight="bold", annotation_clip=False,
                    fontsize="small" if time == 0.0 else None, **align)  # fmt: skip
    ax.set_xlim(0, 1)
    ax.set_ylim(low - 0.35 * span, low + 2.1 * span)  # room for the names of the jumps above the line
    _mark_jumps(ax, e, paths, jumps)
    ax.set_ylabel(style.score_name(e))
    ax.tick_params(axis="x", labelbottom=False)
    style.quiet_frame(ax, "left", "bottom")
    _ticks_of_the_line(ax, low, low + span)


def _ticks_of_the_line(ax: Any, low: float, high: float) -> None:
    """Put tick labels only in the range of the line, not beside the names above it."""
    ticks = require("matplotlib.ticker", "plot").MaxNLocator(4).tick_values(low, high)
    room = 0.05 * (high - low)
    ax.set_yticks([t for t in ticks if low - room <= t <= high + room])
    ax.spines["left"].set_bounds(low - room, high + room)


def _mark_jumps(ax: Any, e: Explanation, paths: Paths, most: int) -> None:
    """Mark the largest jumps by dots on the line and, stacked above it, the names of their features."""
    largest = np.argsort(-np.abs(paths.jump_size), kind="stable")[:most]
    largest = largest[paths.jump_size[largest] != 0]
    moments = sorted({float(paths.jump_time[i]) for i in largest})
    lanes: list[list[tuple[float, float]]] = []  # the occupied intervals at each height
    for rank, time in enumerate(moments):
        here = [int(i) for i in largest if float(paths.jump_time[i]) == time]
        names = ["a feature left out" if f < 0 else display.short_names(e.feature_names, 22)[f]
                 for f in (int(paths.jump_feature[i]) for i in here)]  # fmt: skip
        width = LETTER * max(map(len, names))
        # neighbours extend in opposite directions, so that no line runs through another's names
        to_left = time + width > 1.0 or (2 * rank < len(moments) - 1 and time > width)
        taken = (time - width, time + LETTER) if to_left else (time - LETTER, time + width)
        colors = [style.sign_color(float(paths.jump_size[i])) for i in here]
        height = float(np.interp(time, paths.times, paths.score[0]))
        ax.plot([time], [height], marker="o", markersize=5, color=colors[0], zorder=4)
        for name, color in zip(names, colors, strict=True):
            lane = next((k for k, ends in enumerate(lanes) if all(_clear(taken, end) for end in ends)), len(lanes))
            lanes[lane : lane + 1] = [[*(lanes[lane] if lane < len(lanes) else []), taken]]
            top = 0.6 + 0.085 * lane
            ax.annotate(
                style.plain(name), (time, top), (-5 if to_left else 5, 0), xycoords=ax.get_xaxis_transform(),
                textcoords="offset points", ha="right" if to_left else "left", va="center", fontsize="small",
                color=color, zorder=5,
            )  # fmt: skip
        ax.annotate(
            "", (time, height), (time, top + 0.03), textcoords=ax.get_xaxis_transform(),
            arrowprops={"arrowstyle": "-", "color": colors[0], "alpha": 0.5, "linewidth": 0.8, "shrinkA": 0,
                        "shrinkB": 0},
        )  # fmt: skip


def _clear(one: tuple[float, float], other: tuple[float, float]) -> bool:
    return one[1] <= other[0] or other[1] <= one[0]


@dataclass(frozen=True, eq=False)
class _Band:
    """One feature's accumulated credit, (t,), with its label and colour."""

    label: str
    credit: NDArray[np.float64]
    color: str


def _bands(e: Explanation, paths: Paths, top: int) -> list[_Band]:
    """The lower panel's bands: credit by time of the largest features, of the others, and of those left out."""
    credit = paths.credit[0]
    shown, gathered = style.ranked_of_row(e, credit[-1], min(top, len(style.SERIES) - 1))
    bands = [_Band(style.name_and_value(e, j), credit[:, j], style.SERIES[i]) for i, j in enumerate(shown)]
    left = paths.score[0] - paths.score[0, 0] - credit[:, shown].sum(axis=1)
    if len(gathered):
        bands.append(_Band(style.others(len(gathered)), left, style.NEUTRAL))
    elif np.abs(left).max() > 1e-6 * np.abs(credit).max():
        bands.append(_Band("features left out", left, style.NEUTRAL))
    return bands


def _credits(ax: Any, e: Explanation, paths: Paths, top: int) -> None:
    """Draw the accumulated credits, stacked: those for a higher score above zero, those against it below."""
    bands = _bands(e, paths, top)
    ends: list[tuple[float, _Band]] = []
    for sign in (1.0, -1.0):
        floor = np.zeros(len(paths.times))
        for band in bands:
            part = np.maximum(sign * band.credit, 0.0)
            ax.fill_between(paths.times, sign * floor, sign * (floor + part), color=band.color, alpha=0.8, linewidth=0)
            if part[-1] > 0:
                ends.append((sign * float(floor[-1] + part[-1] / 2), band))
            floor = floor + part
    ax.plot(paths.times, paths.score[0] - paths.score[0, 0], color=style.ink(), linewidth=1.4)
    style.zero_line(ax, "y")
    ax.set_xlim(0, 1)
    _name_ends(ax, sorted(ends, key=lambda end: end[0]))
    ax.set_xlabel(f"from the {views.origin(e)} (0) to this row (1)")
    ax.set_ylabel("credit gathered so far")
    style.quiet_frame(ax, "left", "bottom")


def _name_ends(ax: Any, ends: list[tuple[float, _Band]]) -> None:
    """The bands' names and credits at the right, moved apart where they would overlap."""
    low, high = ax.get_ylim()
    heights = _apart(np.array([height for height, _ in ends]), 0.07 * (high - low))
    places = display.decimals(max((abs(float(band.credit[-1])) for _, band in ends), default=1.0))
    for (height, band), y in zip(ends, heights, strict=True):
        ax.annotate(
            f"{display.credit(float(band.credit[-1]), places)}  {band.label}", (1.0, height), (1.04, y),
            textcoords="data", va="center", fontsize="small", annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": band.color, "linewidth": 1.4, "shrinkA": 0, "shrinkB": 0},
        )  # fmt: skip


def _apart(heights: NDArray[np.float64], step: float) -> NDArray[np.float64]:
    """Sorted heights, moved as little as needed to be at least `step` apart."""
    out = heights.copy()
    for _ in range(100):
        for i in range(1, len(out)):
            short = step - (out[i] - out[i - 1])
            if short > 1e-12:
                out[i - 1] -= short / 2
                out[i] += short / 2
    return out
