"""From the reference's score to the row's, one bar a feature."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._common import checks, display
from .._explain.explanation import Explanation
from .._output import views
from . import style


def waterfall(e: Explanation, *, top: int = 10, ax: Any = None) -> Any:
    """Draw how the credits of one row lead from the base value to the score.

    A pair shows both values, `income 900 -> 1200`, and only what changed.

    Parameters
    ----------
    e : Explanation of one row and one output, say `e[3]`
    top : int
        How many features get a bar of their own; the others are summed in one.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import gigrad as gig
    >>> ax = gig.plots.waterfall(gig.explain(tree, [[1, 1]], [[0, 0]]))
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['reference', 'x0 = 1', 'x1 = 1', 'this row']
    """
    e = views.one_row(e, "waterfall")
    bars = _bars(e, checks.whole(top, "top"))
    base, prediction = float(e.base_values[0]), float(e.predictions[0])
    ends = base + np.cumsum([credit for _, credit in bars])
    starts = np.concatenate([[base], ends])[:-1]
    labels = [views.origin(e), *(label for label, _ in bars), "this row"]
    ax = style.listed_axes(labels, 0.34) if ax is None else style.given_axes(ax)
    places = display.decimals(max((abs(credit) for _, credit in bars), default=1.0))
    draw_frame(ax, base, prediction, ends, places)
    for i, (start, end, (_, credit)) in enumerate(zip(starts, ends, bars, strict=True), start=1):
        draw_bar(ax, i, start, end, credit, places)
    style.name_rows(ax, labels)
    style.few_ticks(ax)
    ax.set_xlabel(style.score_name(e))
    style.title(ax, f"row {e.ids[0]}")
    return ax


def _bars(e: Explanation, top: int) -> list[tuple[str, float]]:
    """Label and credit of each bar: the largest features, then the sum of the others."""
    credit = e.values[0]
    shown, gathered = style.ranked_of_row(e, credit, top)
    bars = [(style.name_and_value(e, j), float(credit[j])) for j in shown]
    if len(gathered):
        bars.append((style.others(len(gathered)), float(credit[gathered].sum())))
    if e.rest[0] != 0:
        bars.append(("features left out", float(e.rest[0])))
    largest = max((abs(c) for _, c in bars), default=0.0)
    if abs(e.gap[0]) > 1e-3 * largest:  # too large for rounding: shown as a bar
        bars.append(("gap of the numerics", float(e.gap[0])))
    return bars


def draw_frame(ax: Any, base: float, prediction: float, ends: Any, places: int, reach: Any = ()) -> None:
    """Set limits with room for the numbers; draw the two scores, and the lines that join one bar to the next.

    `reach` holds the ends of all intervals.
    """
    low, high = min([base, *ends, *reach]), max([base, *ends, *reach])
    room = 0.16 * (high - low or 1.0)
    ax.set_xlim(low - room, high + room)
    for y, score in ((0, base), (len(ends) + 1, prediction)):
        ax.plot([score], [y], marker="D", markersize=6, color=style.ink(), linestyle="none", zorder=4)
        ax.annotate(
            display.score(score, places), (score, y), (9, 0), textcoords="offset points", va="center",
            fontweight="bold", zorder=5,
        )  # fmt: skip
    for y, x in enumerate([base, *ends]):
        ax.plot([x, x], [y, y + 1], color=style.ink(), linewidth=0.8, alpha=0.5, zorder=1)
    style.quiet_frame(ax, "bottom")


def draw_bar(
    ax: Any, y: int, start: float, end: float, credit: float, places: int, reach: tuple[float, float] | None = None
) -> None:
    """Draw one bar of a waterfall in line `y`, with its number at its end, or beyond its interval if that is longer."""
    ax.barh(y, end - start, left=start, height=0.66, color=style.sign_color(credit), zorder=2)
    side = 1 if credit >= 0 else -1
    if reach is not None:
        ax.plot(reach, [y, y], color=style.ink(), linewidth=1.2, zorder=4)
        end = max(end, reach[1]) if side > 0 else min(end, reach[0])
    ax.annotate(
        display.credit(credit, places), (end, y), (4 * side, 0), textcoords="offset points", va="center",
        ha="left" if side > 0 else "right", fontsize="small", zorder=5,
    )  # fmt: skip
