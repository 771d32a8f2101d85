"""Every row's credit as a point, one line a feature, coloured by the feature's value."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._common import checks, display
from .._common.optional import require
from .._explain.explanation import Explanation
from .._output import views
from .._output.frames import importance
from . import style


def beeswarm(e: Explanation, *, top: int = 15, points: int = 2000, ax: Any = None) -> Any:
    """Draw the credits of all rows for the most important features.

    Parameters
    ----------
    e : Explanation of one output
    top : int
        How many features to show, by mean `|credit|` of all rows; the others are summed in one line.
    points : int
        How many rows to draw at most; a larger explanation is sampled, and the picture says so.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import gigrad as gig
    >>> ax = gig.plots.beeswarm(gig.explain(tree, [[1, 1], [0, 1]], [[0, 0]]))
    """
    e = views.one_output(e, "beeswarm")
    shown, gathered = style.ranked(importance(e)[0], checks.whole(top, "top"))
    drawn, said = views.sampled(e, checks.whole(points, "points"))
    labels = [style.short_name(e, j) for j in shown]
    if len(gathered):
        labels.append(style.others(len(gathered)))
    ax = style.listed_axes(labels, 0.36) if ax is None else style.given_axes(ax)
    for y, j in enumerate(shown):
        raw = drawn.raw(int(j))
        _line(ax, y, drawn.values[:, j], None if raw is None else display.numbers(raw))
    if len(gathered):
        _line(ax, len(shown), drawn.values[:, gathered].sum(axis=1), None)
    style.zero_line(ax)
    style.quiet_frame(ax, "bottom")
    style.name_rows(ax, labels)
    style.few_ticks(ax)
    ax.grid(axis="y", alpha=0.25, linewidth=0.6)
    ax.set_axisbelow(True)
    ax.set_xlabel(f"credit for {style.score_name(e)}")
    style.title(ax, said)
    _legend(ax)
    return ax


def _line(ax: Any, y: int, credit: NDArray[np.float64], column: display.Numbers | None) -> None:
    """Draw the points of one feature; categories and missing values, which have no low or high, are grey."""
    height = y + _spread(credit)
    size = 12 if len(credit) <= 500 else 7
    rank = np.full(len(credit), np.nan) if column is None or column.labels is not None else _ranks(column.values)
    grey = np.isnan(rank)
    if grey.any():
        ax.scatter(credit[grey], height[grey], s=size, color=style.NEUTRAL, linewidths=0, zorder=2, rasterized=True)
    if not grey.all():
        ax.scatter(
            credit[~grey], height[~grey], s=size, c=rank[~grey], cmap=style.low_to_high(), vmin=0, vmax=1,
            linewidths=0, zorder=3, rasterized=True,
        )  # fmt: skip


def _spread(credit: NDArray[np.float64]) -> NDArray[np.float64]:
    """Vertical offsets within [-0.4, 0.4] that keep points of similar credit from overlapping."""
    low, high = float(credit.min()), float(credit.max())
    cell = np.zeros(len(credit)) if high == low else np.floor((credit - low) / (high - low) * 99.999)
    order = np.lexsort((credit, cell))
    starts = np.flatnonzero(np.concatenate([[True], np.diff(cell[order]) > 0]))
    number = np.arange(len(credit)) - np.repeat(starts, np.diff([*starts, len(credit)]))
    place = np.where(number % 2 == 0, number // 2, -(number // 2) - 1).astype(np.float64)
    out = np.empty(len(credit))
    out[order] = place * min(0.09, 0.4 / max(1.0, float(np.abs(place).max())))
    return out


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Values as ranks in [0, 1], equal for ties, so that an outlier does not dominate the colours; NaN stays."""
    known = ~np.isnan(values)
    out = np.full(len(values), np.nan)
    distinct, position = np.unique(values[known], return_inverse=True)
    out[known] = 0.5 if len(distinct) == 1 else position / max(1, len(distinct) - 1)
    return out


def _legend(ax: Any) -> None:
    """The bar of colours from low to high values."""
    mappable = require("matplotlib.cm", "plot").ScalarMappable(cmap=style.low_to_high())
    bar = ax.figure.colorbar(mappable, ax=ax, aspect=40, pad=0.02, fraction=0.05)
    bar.set_ticks([0, 1], labels=["low", "high"])
    bar.set_label("value (grey: category or missing)", fontsize="small")
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=0)
