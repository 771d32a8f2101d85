"""From one date's score to the next: a bar for each variable of each step."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .._common import checks, display
from .._questions.score_change import ScoreChange, mean_intervals
from ..errors import InputError, kind_of
from . import style
from .waterfall import draw_bar, draw_frame


def change(found: ScoreChange, *, top: int = 4, level: float = 0.95, bootstrap: int = 1000, ax: Any = None) -> Any:
    """Draw the change from the score before to the score after, step by step, as a waterfall.

    Parameters
    ----------
    found : ScoreChange
        Of one customer, say `found[3]`, or of many: their means then, with intervals.
    top : int
        How many variables of each step get a bar of their own; the others are summed in one.
    level, bootstrap
        As in `ScoreChange.portfolio`.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import gigrad as gig
    >>> change = gig.explain_change(before=(tree, [[0, 1]]), after=(tree, [[1, 1]]))
    >>> ax = gig.plots.change(change)
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['before', 'data', 'x0: 0 → 1', 'after']
    """
    if not isinstance(found, ScoreChange):
        raise InputError(f"change draws a ScoreChange; got {kind_of(found)}.")
    if not len(found):
        raise InputError("change needs at least one customer; there is none.")
    lines = _lines(found, checks.whole(top, "top"))
    parts = np.stack([line.part for line in lines], axis=1)
    equal = np.full(len(found), 1.0 / len(found))
    size, low, high = mean_intervals(parts, equal, level, bootstrap if len(found) > 1 else 0, 0)
    first, last = float(found.before.mean()), float(found.after.mean())
    ends = first + np.cumsum(size)
    labels = ["before", *(line.label for line in lines), "after"]
    ax = style.listed_axes(labels, 0.34) if ax is None else style.given_axes(ax)
    places = display.decimals(float(np.abs(size).max(initial=abs(last - first))))
    intervals = np.stack([low, high], axis=1) + (ends - size)[:, None]
    draw_frame(ax, first, last, ends, places, intervals[np.isfinite(intervals)].tolist())
    for i, line in enumerate(lines):
        if line.total is not None:
            _heading(ax, i + 1, line.total, places)
        elif line.part.any():
            reach = None if np.isnan(low[i]) else (float(intervals[i, 0]), float(intervals[i, 1]))
            draw_bar(ax, i + 1, float(ends[i] - size[i]), float(ends[i]), float(size[i]), places, reach)
    style.name_rows(ax, labels)
    for line, text in zip(lines, ax.get_yticklabels()[1:-1], strict=True):
        text.set_fontweight("normal" if line.total is None else "bold")
    style.few_ticks(ax)
    ax.set_xlabel("score less cutoff" if "cutoff" in found.steps else "score")
    style.title(ax, f"customer {found.ids[0]}" if len(found) == 1 else f"mean of {len(found):,} customers")
    return ax


class _Line(NamedTuple):
    """One line of the picture: a heading of a step, or a bar."""

    label: str
    part: Any  # of every customer, (n,)
    total: float | None = None  # of the step, where the line is its heading


def _heading(ax: Any, y: int, total: float, places: int) -> None:
    """Write the total effect of a step at the left of its heading."""
    ax.axhline(y - 0.5, color=style.ink(), linewidth=0.6, alpha=0.25, zorder=0)
    ax.annotate(
        display.credit(total, places), (0.0, y), (4, 0), xycoords=("axes fraction", "data"),
        textcoords="offset points", va="center", fontweight="bold", fontsize="small",
    )  # fmt: skip


def _lines(found: ScoreChange, top: int) -> list[_Line]:
    """The lines between before and after: a heading for each step, and its bars."""
    lines: list[_Line] = []
    for s, step in enumerate(found.steps):
        own, level = found.values[:, s], found.level[:, s]
        moving = np.flatnonzero(own.any(axis=0))
        shown, gathered = style.ranked(np.abs(own.mean(axis=0))[moving], top)
        lines.append(_Line(step, np.zeros(len(found)), float(found.totals[:, s].mean())))
        lines += [_Line(_label(found, found.feature_names[j], step), own[:, j]) for j in moving[shown]]
        if len(gathered):
            lines.append(_Line(style.others(len(gathered)), own[:, moving[gathered]].sum(axis=1)))
        if level.any():
            lines.append(_Line("everyone" if np.ptp(level) == 0 and step != "cutoff" else "no variable", level))
    return lines


def _label(found: ScoreChange, feature: str, step: str) -> str:
    """A feature's name, with its values before and after where there is one applicant."""
    name = display.shortened(feature, style.NAME_WIDTH)
    raw = found.raw(feature)
    if len(found) > 1 or raw is None or step != "data":
        return style.plain(name)
    before, after = (display.shortened(display.text(v[0]), 14) for v in raw)
    return style.plain(f"{name}: {before} → {after}")
