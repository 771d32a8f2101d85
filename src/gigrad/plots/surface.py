"""A model of two variables in four panels: its surface, the path over it, the score along the path, the credit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._common import display
from .._common.optional import require
from .._explain.explanation import Explanation
from .._output import views
from ..errors import InputError
from . import style

GRID = 120


def surface(e: Explanation, score: Callable[[NDArray[np.float64]], Any], start: Any, *, ax: Any = None) -> NDArray[Any]:
    """Draw a function of two variables, and the credits along the path from `start` to the explained row.

    Parameters
    ----------
    e : Explanation of one row with two numeric features, say `gig.explain_pairs(model, start, end)`
    score : callable
        (n, 2) rows -> (n,) scores: what was explained, say `gig.import_model(model).predict`.
    start : (2,)
        Where the path starts.
    ax : sequence of four matplotlib Axes, optional
        The first must be three-dimensional (`projection="3d"`).

    Returns
    -------
    (4,) array of matplotlib Axes
        The surface, the path seen from above, the score along the path, the credit.

    Examples
    --------
    >>> import gigrad as gig
    >>> e = gig.explain_pairs(tree, [[0.0, 0.0]], [[1.0, 1.0]])
    >>> axes = gig.plots.surface(e, gig.import_model(tree).predict, start=[0.0, 0.0])
    >>> len(axes)
    4
    """
    e = views.one_row(e, "surface")
    if len(e.feature_names) != 2:
        raise InputError(f"surface draws two features; this explanation has {len(e.feature_names)}.")
    try:
        start = np.asarray(start, dtype=np.float64).ravel()
    except (TypeError, ValueError):
        raise InputError(f"start must be two numbers, where the path starts; got {start!r:.60}.") from None
    end = np.array([_value(e, j) for j in range(2)])
    if start.shape != (2,) or not np.isfinite([*start, *end]).all():
        raise InputError(f"surface needs two finite numbers at either end; got {start} and {end}.")
    axes = _four_axes() if ax is None else _given_axes(ax)
    times = np.linspace(0.0, 1.0, 801)
    line = start + times[:, None] * (end - start)
    along = np.asarray(score(line), dtype=np.float64).ravel()
    grid = _grid(score, start, end)
    _draw_surface(axes[0], e, grid, line, along)
    _draw_above(axes[1], e, grid, start, end)
    _draw_section(axes[2], e, times, along)
    _draw_credit(axes[3], e)
    return axes


def _given_axes(ax: Any) -> NDArray[Any]:
    """The four axes that the caller gives, of which the first must be three-dimensional."""
    axes = np.asarray(ax, dtype=object).ravel()
    if len(axes) != 4:
        raise InputError(f"surface needs four axes; got {len(axes)}.")
    for i, one in enumerate(axes):
        style.given_axes(one, f"ax[{i}]", solid=i == 0)
    return axes


def _value(e: Explanation, feature: int) -> float:
    """A feature's number in the explained row."""
    raw = e.raw(feature)
    column = None if raw is None else display.numbers(raw)
    if column is None or column.labels is not None:
        raise InputError(f"surface needs two numeric features; {e.feature_names[feature]!r} is not one.")
    return float(column.values[0])


def _four_axes() -> NDArray[Any]:
    figure = style.pyplot().figure(figsize=(10, 8), layout="constrained")
    first = figure.add_subplot(2, 2, 1, projection="3d")
    return np.array([first, *(figure.add_subplot(2, 2, i) for i in (2, 3, 4))], dtype=object)


def _grid(score: Any, start: Any, end: Any) -> tuple[Any, Any, Any]:
    """The score on a grid around the path, with a margin."""
    low, high = np.minimum(start, end), np.maximum(start, end)
    room = 0.25 * np.where(high > low, high - low, np.maximum(1.0, np.abs(high)))
    x, y = np.meshgrid(*(np.linspace(low[i] - room[i], high[i] + room[i], GRID) for i in range(2)))
    z = np.asarray(score(np.column_stack([x.ravel(), y.ravel()])), dtype=np.float64)
    if z.size != x.size:
        raise InputError(f"score must give one number a row; for {x.size} rows it gave {z.size}.")
    return x, y, z.reshape(x.shape)


def _name_plane(ax: Any, e: Explanation) -> None:
    ax.set_xlabel(style.short_name(e, 0))
    ax.set_ylabel(style.short_name(e, 1))


def _draw_surface(ax: Any, e: Explanation, grid: tuple[Any, Any, Any], line: Any, along: Any) -> None:
    """The score as a surface over two features, with the path on it."""
    ax.plot_surface(*grid, cmap=style.low_to_high(), rcount=60, ccount=60, linewidth=0, alpha=0.7)
    ax.plot(line[:, 0], line[:, 1], along, color=style.ink(), linewidth=2, zorder=10)
    for axis, name in ((ax.xaxis, style.short_name(e, 0)), (ax.yaxis, style.short_name(e, 1)), (ax.zaxis, "")):
        axis.set_pane_color((0.5, 0.5, 0.5, 0.08))
        axis.set_label_text(name, fontsize="small")
        axis.labelpad = 8  # beyond the numbers, which matplotlib does not measure in three dimensions
        axis.set_major_locator(require("matplotlib.ticker", "plot").MaxNLocator(4))
    ax.tick_params(labelsize="small", pad=1)
    style.title(ax, e.output_names[0])


def _draw_above(ax: Any, e: Explanation, grid: tuple[Any, Any, Any], start: Any, end: Any) -> None:
    """Draw the score over the plane of both features as colours, with the path."""
    shown = ax.pcolormesh(*grid, cmap=style.low_to_high(), shading="auto", rasterized=True)
    for color, width in (("white", 3.2), ("black", 1.4)):  # seen on any colour of the map
        ax.plot([start[0], end[0]], [start[1], end[1]], color=color, linewidth=width)
    for point, name in ((start, "start"), (end, "end")):
        ax.plot(*point, marker="o", color="black", markeredgecolor="white", markersize=7)
        ax.annotate(name, point, (0, 9), textcoords="offset points", ha="center", color="black",
                    bbox={"facecolor": "white", "alpha": 0.75, "edgecolor": "none", "pad": 1.5})  # fmt: skip
    _name_plane(ax, e)
    style.title(ax, "the path, from above")
    ax.figure.colorbar(shown, ax=ax, pad=0.02, aspect=30).outline.set_visible(False)


def _draw_section(ax: Any, e: Explanation, times: Any, along: Any) -> None:
    """The score along the path."""
    ax.plot(times, along, color=style.ink(), linewidth=1.6)
    ax.set_xlabel("from the start (0) to the end (1)")
    ax.set_ylabel(style.score_name(e))
    ax.set_xlim(0, 1)
    style.title(ax, "the score along the path")
    style.quiet_frame(ax, "left", "bottom")


def _draw_credit(ax: Any, e: Explanation) -> None:
    """Draw the accumulated credit of each variable if the path is known, else its final credit."""
    places = display.decimals(float(np.abs(e.values[0]).max()))
    for j in range(2):
        credit = float(e.values[0, j])
        label = f"{style.short_name(e, j)}  {display.credit(credit, places)}"
        if e.paths is None:
            ax.bar(j, credit, color=style.SERIES[j], width=0.6, label=label)
        else:
            ax.plot(e.paths.times, e.paths.credit[0, :, j], color=style.SERIES[j], linewidth=2, label=label)
    if e.paths is None:
        ax.set_xticks([0, 1], [style.short_name(e, j) for j in range(2)])
        ax.set_ylabel("credit")
    else:
        ax.set_xlabel("from the start (0) to the end (1)")
        ax.set_ylabel("credit gathered so far")
        ax.set_xlim(0, 1)
    style.zero_line(ax, "y")
    # below the axes: inside, a line may run through the names
    ax.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=1)
    style.title(ax, "the credit")
    style.quiet_frame(ax, "left", "bottom")
