"""A feature's credit against its value, coloured by another feature."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._common import checks, display
from .._common.optional import require
from .._explain.explanation import Explanation
from .._output import views
from ..errors import InputError
from . import style

APART = 0.12
"""The distance of missing values from the largest number, as a share of the numbers' range."""


def scatter(
    e: Explanation, feature: int | str, *, color: int | str | None = None, points: int = 5000, ax: Any = None
) -> Any:
    """Draw the credit of one feature against its value, with a strip above it that counts the rows.

    Parameters
    ----------
    e : Explanation of one output
    feature : int or str
        Categories are drawn side by side; missing values separately at the right.
    color : int or str, optional
        The feature whose value colours the points: categories and features of two values in colours of their own,
        other numbers in shades.
    points : int
        How many rows to draw at most; a larger explanation is sampled, and the picture says so.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
        `ax.child_axes[0]` has the strip.

    Examples
    --------
    >>> import gigrad as gig
    >>> ax = gig.plots.scatter(gig.explain(tree, [[1, 1], [0, 1]], [[0, 0]]), "x0", color="x1")
    """
    e = views.one_output(e, "scatter")
    drawn, said = views.sampled(e, checks.whole(points, "points"))
    j = e.position(feature)
    column = _numbers(drawn, j)
    ax = style.new_axes(7.5, 4.6) if ax is None else style.given_axes(ax)
    x, y, size = _place(ax, column), drawn.values[:, j], 22 if len(drawn) <= 500 else 9
    if color is None:
        ax.scatter(x, y, s=size, color=style.NEGATIVE, alpha=0.75, linewidths=0, zorder=2)
    else:
        other = e.position(color)
        paint = _apart_if_two(_numbers(drawn, other))
        draw = _by_number if paint.labels is None else _by_category
        draw(ax, x, y, size, paint, style.short_name(e, other))
    style.zero_line(ax, "y")
    style.quiet_frame(ax, "left", "bottom")
    ax.set_xlabel(style.short_name(e, j))
    ax.set_ylabel(f"credit for {style.score_name(e)}")
    style.title(_count_above(ax, _numbers(e, j)), said)
    return ax


def _numbers(e: Explanation, feature: int) -> display.Numbers:
    """A feature's values as numbers, or codes of its labels."""
    raw = e.raw(feature)
    if raw is None:
        raise InputError(
            f"scatter needs a feature with values; {e.feature_names[feature]!r} is a group, which has none of its own."
        )
    return display.numbers(raw)


def _apart_if_two(column: display.Numbers) -> display.Numbers:
    """A column with two distinct numbers as two categories, to be drawn in distinct colours."""
    known = np.unique(column.values[~np.isnan(column.values)])
    if column.labels is not None or len(known) != 2:
        return column
    values = np.where(np.isnan(column.values), np.nan, (column.values == known[1]).astype(np.float64))
    return display.Numbers(values, (display.number(known[0]), display.number(known[1])))


def _count_above(ax: Any, column: display.Numbers) -> Any:
    """Draw a histogram of the values as a strip above the points, which may overlap."""
    strip = ax.inset_axes((0.0, 1.01, 1.0, 0.12), sharex=ax)
    known, missing = column.values[~np.isnan(column.values)], int(np.isnan(column.values).sum())
    if column.labels is not None:
        strip.bar(np.arange(len(column.labels)), np.bincount(known.astype(np.int64), minlength=len(column.labels)),
                  width=0.6, color=style.NEUTRAL)  # fmt: skip
        apart, width = float(len(column.labels)), 0.6
    else:
        span = float(np.ptp(known)) if len(known) else 0.0
        span, width = span or 1.0, (span or 1.0) / 40
        apart = (float(known.max()) if len(known) else 0.0) + APART * span
        strip.hist(known, bins=40 if np.ptp(known) > 0 else 1, color=style.NEUTRAL) if len(known) else None
    if missing:
        strip.bar([apart], [missing], width=width, color=style.NEUTRAL)
    strip.set_ylim(bottom=0)
    strip.set_yticks([])
    strip.tick_params(axis="x", bottom=False, labelbottom=False)
    style.quiet_frame(strip)
    return strip


def _place(ax: Any, column: display.Numbers) -> NDArray[np.float64]:
    """The x position of every point: numbers at their value, categories side by side, missing values apart."""
    x = column.values.copy()
    missing = np.isnan(x)
    jitter = np.random.default_rng(views.SEED).uniform(-1, 1, len(x))
    if column.labels is not None:
        _name_categories(ax, column.labels, bool(missing.any()))
        x[missing] = len(column.labels)
        placed: NDArray[np.float64] = x + 0.22 * jitter
        return placed
    if missing.any():
        low, high = (0.0, 0.0) if missing.all() else (float(np.nanmin(x)), float(np.nanmax(x)))
        span = high - low or 1.0
        apart = high + APART * span
        _name_missing(ax, low, high, apart)
        x[missing] = apart + 0.02 * span * jitter[missing]
    return x


def _name_categories(ax: Any, labels: tuple[str, ...], missing: bool) -> None:
    """Labels on the axis, turned or small if there are many."""
    names = [style.plain(display.shortened(label, 24)) for label in labels] + [display.MISSING] * missing
    turned = 90 if len(names) > 12 else 40 if len(names) > 6 or sum(map(len, names)) > 60 else 0
    ax.set_xticks(
        range(len(names)), names, rotation=turned, rotation_mode="anchor" if turned else None,
        ha="right" if turned else "center", va="center" if turned == 90 else "top",
        fontsize="x-small" if len(names) > 24 else None,
    )  # fmt: skip


def _name_missing(ax: Any, low: float, high: float, apart: float) -> None:
    """Add a tick "missing" beyond the numbers, and a line that separates it from them."""
    locator = require("matplotlib.ticker", "plot").MaxNLocator(6)
    ticks = [float(t) for t in locator.tick_values(low, high) if low <= t <= high]
    ax.set_xticks([*ticks, apart], [*map(display.number, ticks), display.MISSING])
    ax.axvline((high + apart) / 2, color=style.ink(), linewidth=0.8, alpha=0.4, linestyle=":")


def _by_number(ax: Any, x: Any, y: Any, size: float, paint: display.Numbers, name: str) -> None:
    """Points coloured by another feature's number, grey where it is missing."""
    missing = np.isnan(paint.values)
    if missing.any():
        ax.scatter(x[missing], y[missing], s=size, color=style.NEUTRAL, linewidths=0, zorder=2, marker="s",
                   label=f"{name}: {display.MISSING}")  # fmt: skip
        ax.legend(frameon=False, fontsize="small")
    if missing.all():
        return
    low, high = np.percentile(paint.values[~missing], [2, 98])  # an outlier must not dominate the colours
    shown = ax.scatter(
        x[~missing], y[~missing], s=size, c=paint.values[~missing], cmap=style.low_to_high(), vmin=low,
        vmax=high if high > low else low + 1, linewidths=0, zorder=3,
    )  # fmt: skip
    bar = ax.figure.colorbar(shown, ax=ax, pad=0.02, aspect=30, extend="both" if high > low else "neither")
    bar.set_label(name)
    bar.outline.set_visible(False)


def _by_category(ax: Any, x: Any, y: Any, size: float, paint: display.Numbers, name: str) -> None:
    """The commonest categories in colours of their own, the others and the missing in grey."""
    labels = paint.labels or ()
    missing = np.isnan(paint.values)
    codes = np.where(missing, -1, paint.values).astype(np.int64)
    common = np.argsort(-np.bincount(codes[~missing], minlength=len(labels)), kind="stable")[: len(style.SERIES)]
    for i, code in enumerate(np.sort(common)):
        at = codes == code
        label = style.plain(display.shortened(labels[code], 24))
        ax.scatter(x[at], y[at], s=size, color=style.SERIES[i], linewidths=0, zorder=3, label=label)
    rare = ~np.isin(codes, common) & ~missing
    for at, marker, label in ((rare, "o", "other"), (missing, "s", display.MISSING)):
        if at.any():
            ax.scatter(x[at], y[at], s=size, color=style.NEUTRAL, linewidths=0, zorder=2, marker=marker, label=label)
    ax.legend(title=name, frameon=False, fontsize="small", loc="upper left", bbox_to_anchor=(1.0, 1.0))
