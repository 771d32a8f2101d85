"""The features by size: one row's credits, mean `|credit|` of many rows, or several cohorts side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._common import checks, display
from .._explain.explanation import Explanation
from .._output import views
from .._output.frames import importance
from ..errors import InputError
from . import style


def bar(e: Explanation | Mapping[str, Explanation], *, top: int = 15, ax: Any = None) -> Any:
    """Draw the largest features as bars.

    Parameters
    ----------
    e : Explanation of one output, or a mapping of names to such explanations
        One row: its credits. Many rows: mean `|credit|`. A mapping: the mean `|credit|` of each cohort, say
        `bar({"approved": e[yes], "refused": e[~yes]})`.
    top : int
        How many features to show; the others are gathered in one bar.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import gigrad as gig
    >>> e = gig.explain(tree, [[1, 1], [0, 1]], [[0, 0]])
    >>> ax = gig.plots.bar(e)
    >>> ax = gig.plots.bar({"first": e[0], "second": e[1]})
    """
    top = checks.whole(top, "top")
    if isinstance(e, Mapping):
        return _cohorts({name: views.one_output(part, "bar") for name, part in e.items()}, top, ax)
    e = views.one_output(e, "bar")
    signed = len(e) == 1
    credit = e.values[0] if signed else importance(e)[0]
    shown, gathered = style.ranked(np.abs(credit), top)
    named = style.name_and_value if signed else style.short_name
    labels = [named(e, j) for j in shown]
    sizes = credit[shown]
    if len(gathered):
        labels.append(style.others(len(gathered)))
        sizes = np.append(sizes, credit[gathered].sum())
    ax = style.listed_axes(labels, 0.32, more=1.2) if ax is None else style.given_axes(ax)
    _draw(ax, sizes, signed)
    style.name_rows(ax, labels)
    style.few_ticks(ax)
    ax.set_xlabel(f"credit for {style.score_name(e)}" if signed else f"mean |credit| for {style.score_name(e)}")
    style.title(ax, f"row {e.ids[0]}" if signed else f"{len(e):,} rows")
    return ax


def _draw(ax: Any, sizes: NDArray[np.float64], signed: bool) -> None:
    """Bars from zero with their numbers at the ends."""
    colors = [style.sign_color(s) for s in sizes] if signed else style.NEGATIVE
    ax.barh(np.arange(len(sizes)), sizes, height=0.7, color=colors, zorder=2)
    places = display.decimals(float(np.abs(sizes).max()))
    for y, size in enumerate(sizes):
        side = -1 if size < 0 else 1
        text = display.credit(size, places) if signed else display.score(size, places)
        ax.annotate(
            text, (size, y), (4 * side, 0), textcoords="offset points", va="center",
            ha="right" if side < 0 else "left", fontsize="small",
        )  # fmt: skip
    low, high = min(0.0, float(sizes.min())), max(0.0, float(sizes.max()))
    room = 0.14 * (high - low or 1.0)
    ax.set_xlim(low - room if low < 0 else 0.0, high + room)
    style.zero_line(ax)
    style.quiet_frame(ax, "bottom")


def _cohorts(cohorts: dict[str, Explanation], top: int, ax: Any) -> Any:
    parts = _checked(cohorts)
    sizes = np.array([importance(part)[0] for part in parts])
    shown, gathered = style.ranked(sizes.mean(axis=0), top)
    table = sizes[:, shown]
    labels = [style.short_name(parts[0], j) for j in shown]
    if len(gathered):
        table = np.column_stack([table, sizes[:, gathered].sum(axis=1)])
        labels.append(style.others(len(gathered)))
    ax = style.listed_axes(labels, max(0.34, 0.2 * len(parts))) if ax is None else style.given_axes(ax)
    height = 0.8 / len(parts)
    for i, (name, part) in enumerate(cohorts.items()):
        y = np.arange(len(labels)) + (i - (len(parts) - 1) / 2) * height
        label = style.plain(f"{display.shortened(str(name), 30)} ({len(part):,} rows)")
        ax.barh(y, table[i], height=height * 0.92, color=style.SERIES[i], zorder=2, label=label)
    style.zero_line(ax)
    style.quiet_frame(ax, "bottom")
    style.name_rows(ax, labels)
    style.few_ticks(ax)
    ax.set_xlabel(f"mean |credit| for {style.score_name(parts[0])}")
    ax.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=min(len(parts), 3), frameon=False)
    return ax


def _checked(cohorts: dict[str, Explanation]) -> list[Explanation]:
    parts = list(cohorts.values())
    if not 0 < len(parts) <= len(style.SERIES):
        raise InputError(f"bar draws 1 to {len(style.SERIES)} cohorts side by side; got {len(parts)}.")
    for name, part in cohorts.items():
        if part.feature_names != parts[0].feature_names or part.output_names != parts[0].output_names:
            raise InputError(f"Cohorts must have the same features and output; {name!r} differs from the first.")
    return parts
