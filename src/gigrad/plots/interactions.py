"""Interactions as a matrix: own effects on the diagonal, parts of a credit that depend on other variables beside it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._common import checks, display
from .._common.optional import require
from .._questions.interaction import Interactions
from ..errors import InputError, kind_of
from . import style


def interactions(found: Interactions, *, top: int = 8, ax: Any = None) -> Any:
    """Draw the matrix of one row, or the mean size of each entry over many.

    A line is the credit of a variable, split into its own effect (framed, on the diagonal) and the parts that it has
    because another variable changed before it; the bar at the right is the whole credit.

    Parameters
    ----------
    found : Interactions
        Of one row, say `found[3]`, or of many.
    top : int
        How many variables to show, those with the largest entries; the others are summed in one line and column.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
        `ax.child_axes[0]` has the bars.

    Examples
    --------
    >>> import gigrad as gig
    >>> ax = gig.plots.interactions(gig.interactions(gig.Explainer(tree, [[0, 0]]), [[1, 1]]))
    """
    if not isinstance(found, Interactions):
        raise InputError(f"interactions draws what gigrad.interactions gives; got {kind_of(found)}.")
    if not len(found):
        raise InputError("interactions needs at least one row; there is none.")
    one = len(found) == 1
    e, sizes = found.explanation, np.abs(found.values).mean(axis=0)
    shown, gathered = style.ranked(np.maximum(sizes.max(axis=0), sizes.max(axis=1)), checks.whole(top, "top"))
    table, credits = _gathered(found, shown, gathered)
    labels = [style.name_and_value(e, int(j)) if one else style.short_name(e, int(j)) for j in shown]
    across = [style.short_name(e, int(j)) for j in shown]
    if len(gathered):
        labels, across = [[*names, style.others(len(gathered))] for names in (labels, across)]
    width = 3.4 + 0.6 * len(labels) + 0.075 * max(map(len, labels))
    height = 1.6 + 0.42 * len(labels) + 0.05 * max(map(len, across))
    ax = style.new_axes(width, height) if ax is None else style.given_axes(ax)
    _paint(ax, table, len(shown), one)
    style.name_rows(ax, labels)
    ax.set_ylim(len(labels) - 0.5, -0.5)
    ax.set_xticks(range(len(across)), across, rotation=40, ha="right", rotation_mode="anchor")
    ax.tick_params(axis="x", length=0)
    style.quiet_frame(ax)
    ax.set_xlabel("because this had moved before it (framed: alone)")
    _credits_beside(ax, credits, one)
    whose = f"row {e.ids[0]}" if one else f"mean size over {len(found):,} rows"
    style.title(ax, f"what each variable earned for {style.score_name(e)}, {whose}")
    return ax


def _gathered(found: Interactions, shown: Any, rest: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The matrix to draw and the credits beside it: of the only row, or mean sizes; variables in `rest` are summed."""
    parts = [[int(j)] for j in shown] + ([rest.tolist()] if len(rest) else [])
    lines = np.stack([found.values[:, part].sum(axis=1) for part in parts], axis=1)
    table = np.stack([lines[:, :, part].sum(axis=2) for part in parts], axis=2)
    credits = table.sum(axis=2)
    if len(found) == 1:
        return table[0], credits[0]
    return np.abs(table).mean(axis=0), np.abs(credits).mean(axis=0)


def _paint(ax: Any, table: NDArray[np.float64], single: int, one: bool) -> None:
    """The entries as colours, with their numbers; own effects of the `single` variables in frames."""
    largest = float(np.abs(table).max()) or 1.0
    colours = style.against_to_for() if one else style.nothing_to_much()
    ax.imshow(table, aspect="auto", interpolation="nearest", cmap=colours, vmin=-largest if one else 0, vmax=largest)
    places = min(display.decimals(largest), 4)
    for (i, j), value in np.ndenumerate(table):
        said = display.credit(float(value), places) if one else f"{value:.{places}f}"
        if float(f"{value:.{places}f}") != 0:
            dark = abs(value) > 0.55 * largest
            ax.text(j, i, said, ha="center", va="center", fontsize="small", color="white" if dark else "#1a1a1a")
    for i in range(single):  # variables in the last line may interact with each other
        frame = require("matplotlib.patches", "plot").Rectangle(
            (i - 0.5, i - 0.5), 1, 1, fill=False, edgecolor="#1a1a1a", linewidth=1.2
        )
        ax.add_patch(frame)


def _credits_beside(ax: Any, credits: NDArray[np.float64], one: bool) -> None:
    """The sum of each line: the credit, or its mean size."""
    beside = ax.inset_axes((1.02, 0.0, 0.2, 1.0), sharey=ax)
    colors = [style.sign_color(c) for c in credits] if one else style.NEUTRAL
    beside.barh(np.arange(len(credits)), credits, height=0.7, color=colors)
    style.zero_line(beside)
    beside.tick_params(axis="y", left=False, labelleft=False)
    beside.tick_params(axis="x", bottom=False, labelbottom=False)
    beside.set_xlabel("credit" if one else "mean\n|credit|", fontsize="small")
    style.quiet_frame(beside)
