"""Two models side by side: each variable's credit under the champion and under the challenger."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._common import checks, display
from .._questions.comparison import Comparison
from ..errors import InputError, kind_of
from . import style


def comparison(found: Comparison, *, top: int = 12, ax: Any = None) -> Any:
    """Draw the credits of the champion and of the challenger, and their differences.

    Parameters
    ----------
    found : Comparison
        Of one row, say `found[3]`, or of many: their mean credits then.
    top : int
        How many features to show, those that differ most first.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import gigrad as gig
    >>> ax = gig.plots.comparison(gig.compare(tree, tree, [[1, 1]], [[0, 0]]))
    """
    if not isinstance(found, Comparison):
        raise InputError(f"comparison draws a Comparison; got {kind_of(found)}.")
    if not len(found):
        raise InputError("comparison needs at least one row; there is none.")
    one = len(found) == 1
    apart, old, new = (e.values.mean(axis=0) for e in (found.difference, found.champion, found.challenger))
    shown = np.argsort(-np.abs(apart), kind="stable")[: checks.whole(top, "top")]
    named = style.name_and_value if one else style.short_name
    labels = [named(found.difference, int(j)) for j in shown]
    ax = style.listed_axes(labels, 0.34) if ax is None else style.given_axes(ax)
    places = display.decimals(float(np.abs(apart).max()))
    style.zero_line(ax)
    for y, j in enumerate(shown):
        ax.plot([old[j], new[j]], [y, y], color=style.sign_color(apart[j]), linewidth=5, alpha=0.45, zorder=2,
                solid_capstyle="butt")  # fmt: skip
        ax.annotate(
            display.credit(float(apart[j]), places), (1.0, y), xycoords=("axes fraction", "data"), ha="right",
            va="center", fontsize="small",
        )  # fmt: skip
    lines = np.arange(len(shown))
    ax.plot(old[shown], lines, "o", color=style.NEUTRAL, label="champion", zorder=3)
    ax.plot(new[shown], lines, "D", color=style.ink(), label="challenger", zorder=4)
    low, high = float(min(old.min(), new.min(), 0)), float(max(old.max(), new.max(), 0))
    ax.set_xlim(low - 0.06 * (high - low or 1.0), high + 0.22 * (high - low or 1.0))  # with room for the differences
    style.name_rows(ax, labels)
    style.few_ticks(ax)
    style.quiet_frame(ax, "bottom")
    ax.legend(loc="lower right", frameon=False, fontsize="small", ncols=2, bbox_to_anchor=(1.0, 1.0))
    ax.set_xlabel("credit; at the right the difference" if one else "mean credit; at the right the difference")
    style.title(ax, _said(found, places))
    return ax


def _said(found: Comparison, places: int) -> str:
    """One line with both scores and the difference of the base values."""
    old, new = (float(e.predictions.mean()) for e in (found.champion, found.challenger))
    everyone = display.credit(float(found.difference.base_values.mean()), places)
    whose = f"row {found.difference.ids[0]}" if len(found) == 1 else f"{len(found):,} rows"
    scores = f"{display.score(old, places)} → {display.score(new, places)}"
    return f"{whose}: {scores}, everyone {everyone}"
