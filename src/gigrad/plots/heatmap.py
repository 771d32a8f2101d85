"""All rows at once: features down, rows across, credits as colours, the score above."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from .._common import checks
from .._explain.explanation import Explanation
from .._output import views
from .._output.frames import importance
from ..errors import InputError
from . import style

ORDERS = {"alike": "rows, like ones together", "score": "rows, by score", "given": "rows"}


def heatmap(
    e: Explanation,
    *,
    top: int = 15,
    order: Literal["alike", "score", "given"] = "alike",
    rows: int = 2000,
    ax: Any = None,
) -> Any:
    """Draw the credits of many rows as a heatmap, with each feature's mean `|credit|` of all rows at its side.

    Parameters
    ----------
    e : Explanation of one output
    top : int
        How many features to show, by mean `|credit|`; the others are summed in one line.
    order : "alike", "score" or "given"
        The order of the rows: those with similar credits together, by score, or as they were given.
    rows : int
        How many rows to draw at most; a larger explanation is sampled, and the picture says so.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
        `ax.child_axes[0]` has the scores, `ax.child_axes[1]` the bars of mean `|credit|`.

    Examples
    --------
    >>> import gigrad as gig
    >>> ax = gig.plots.heatmap(gig.explain(tree, [[1, 1], [0, 1]], [[0, 0]]), order="score")
    """
    e = views.one_output(e, "heatmap")
    if order not in ORDERS:
        raise InputError(f"order must be one of {', '.join(map(repr, ORDERS))}; got {order!r}.")
    sizes = importance(e)[0]
    shown, gathered = style.ranked(sizes, checks.whole(top, "top"))
    drawn, said = views.sampled(e, checks.whole(rows, "rows"))
    drawn = drawn[_order(drawn, order)]
    table = drawn.values[:, shown].T
    labels = [style.short_name(e, j) for j in shown]
    if len(gathered):
        table = np.vstack([table, drawn.values[:, gathered].sum(axis=1)])
        labels.append(style.others(len(gathered)))
    own = ax is None
    ax = style.listed_axes(labels, 0.3, more=2.4) if own else style.given_axes(ax)
    shades = _paint(ax, table)
    style.name_rows(ax, labels)
    ax.set_ylim(len(labels) - 0.5, -0.5)
    style.quiet_frame(ax)
    ax.set_xlabel(ORDERS[order])
    _score_above(ax, drawn, said, len(labels))
    _sizes_beside(ax, np.append(sizes[shown], [sizes[gathered].sum()] if len(gathered) else []))
    _legend(ax, shades, f"credit for {style.score_name(e)}")
    if own:  # the position of a title of inset axes is known only after a first draw
        ax.figure.draw_without_rendering()
    return ax


def _paint(ax: Any, table: NDArray[np.float64]) -> tuple[Any, bool]:
    """Draw the credits as colours, white for 0; the largest 1 % share the last shade, if that is more than one."""
    largest = float(np.abs(table).max())
    limit = float(np.percentile(np.abs(table), 99)) or largest or 1.0
    image = ax.imshow(table, aspect="auto", interpolation="nearest", cmap=style.against_to_for(), vmin=-limit,
                      vmax=limit)  # fmt: skip
    return image, largest > limit


def _legend(ax: Any, shades: tuple[Any, bool], label: str) -> None:
    """Draw the colour bar to the right of the bars."""
    image, beyond = shades
    pad = 0.18 if ax.figure.get_layout_engine() is None else 0.02  # a layout engine leaves room for the bars itself
    bar = ax.figure.colorbar(image, ax=ax, pad=pad, aspect=30, extend="both" if beyond else "neither")
    bar.set_label(label)
    bar.outline.set_visible(False)


def _sizes_beside(ax: Any, sizes: NDArray[np.float64]) -> None:
    """The mean |credit| of every line, over all rows, as a bar at its right."""
    beside = ax.inset_axes((1.01, 0.0, 0.12, 1.0), sharey=ax)
    beside.barh(np.arange(len(sizes)), sizes, height=0.7, color=style.NEUTRAL)
    beside.tick_params(axis="y", left=False, labelleft=False)
    beside.tick_params(axis="x", bottom=False, labelbottom=False)
    beside.set_xlabel("mean\n|credit|", fontsize="small")
    style.quiet_frame(beside)


def _order(e: Explanation, order: str) -> NDArray[np.int64]:
    """The rows' order: as given, by score, or so that similar rows are neighbours."""
    if order == "given":
        return np.arange(len(e))
    if order == "score":
        return np.argsort(e.predictions, kind="stable")
    # sorting by the first principal component puts similar rows next to each other
    centred = e.values - e.values.mean(axis=0)
    along = centred @ np.linalg.eigh(centred.T @ centred)[1][:, -1]
    if along @ (e.predictions - e.predictions.mean()) < 0:
        along = -along
    return np.argsort(along, kind="stable")


def _score_above(ax: Any, e: Explanation, said: str, lines: int) -> None:
    """Draw the score of every row above the row's column."""
    above = ax.inset_axes((0.0, 1.0 + 0.3 / lines, 1.0, 2.4 / lines), sharex=ax)
    above.plot(np.arange(len(e)), e.predictions, color=style.ink(), linewidth=0.9)
    above.axhline(float(e.base_values.mean()), color=style.ink(), linewidth=0.8, alpha=0.5, linestyle=":")
    above.set_ylabel("score", rotation=0, ha="right", va="center")
    above.tick_params(axis="x", bottom=False, labelbottom=False)
    above.tick_params(axis="y", labelsize="small")
    above.locator_params(axis="y", nbins=3)
    style.quiet_frame(above, "left")
    style.title(above, said)
