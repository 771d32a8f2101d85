"""The features by size: one row's credits, mean `|credit|` of many rows, or several cohorts or classes together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._common import checks, display
from .._explain.explanation import Explanation
from .._output import views
from .._output.frames import importance
from .._output.intervals import Resampled
from ..errors import InputError
from . import style

Array = NDArray[np.float64]


def bar(e: Explanation | Mapping[str, Explanation], *, top: int = 15, intervals: bool = True, ax: Any = None) -> Any:
    """Draw the largest features as bars.

    Parameters
    ----------
    e : Explanation, or a mapping of names to explanations of one output
        One row: its credits. Many rows: mean `|credit|`. Several outputs: those of all classes, for many rows one
        after the other. A mapping: the mean `|credit|` of each cohort, say `bar({"approved": e[yes], "refused":
        e[~yes]})`.
    top : int
        How many features to show; the others are summed in one bar, which has no interval.
    intervals : bool
        Whether to draw the 95 % bootstrap intervals of `Explanation.summary` as lines: over rows, and over references
        too after `explain(..., reference_parts=50)`. One row has an interval over references only, several outputs have
        none.
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
        return _cohorts({name: views.one_output(part, "bar") for name, part in e.items()}, top, intervals, ax)
    if isinstance(e, Explanation) and e.values.ndim == 3 and len(e.output_names) > 1:
        return _outputs(views.some_rows(e, "bar"), top, ax)
    e = views.one_output(e, "bar")
    signed = len(e) == 1
    credit = e.values[0] if signed else importance(e)[0]
    shown, gathered = style.ranked_of_row(e, credit, top)
    labels = [(style.name_and_value if signed else style.short_name)(e, j) for j in shown]
    how = Resampled.asked(e, "references" if signed and e.reference_parts is not None else None)
    ends = np.array(how.of_row(e) if signed else how.of_importance(e))[:, shown] if intervals else None
    sizes = credit[shown]
    if len(gathered):
        labels.append(style.others(len(gathered)))
        sizes = np.append(sizes, credit[gathered].sum())
    ax = style.listed_axes(labels, 0.32, more=1.2) if ax is None else style.given_axes(ax)
    lines = _draw(ax, sizes, ends, signed)
    style.name_rows(ax, labels)
    style.few_ticks(ax)
    ax.set_xlabel(f"credit for {style.score_name(e)}" if signed else f"mean |credit| for {style.score_name(e)}")
    title = f"row {e.ids[0]}" if signed else f"{len(e):,} rows"
    style.title(ax, f"{title} ({how.said})" if lines else title)
    return ax


def _draw(ax: Any, sizes: Array, ends: Array | None, signed: bool) -> bool:
    """Draw bars from zero, with numbers beyond them and their intervals; returns whether intervals were drawn."""
    colors = [style.sign_color(s) for s in sizes] if signed else style.NEGATIVE
    ax.barh(np.arange(len(sizes)), sizes, height=0.7, color=colors, zorder=2)
    reach = np.vstack([sizes, sizes])  # low and high: the bar's end, or its interval
    known = ends is not None and not np.isnan(ends).all()
    if ends is not None and known:
        some = slice(0, ends.shape[1])
        reach[:, some] = np.fmin(sizes[some], ends[0]), np.fmax(sizes[some], ends[1])
        _intervals(ax, np.arange(ends.shape[1]), ends, sizes[some])
    places = display.decimals(float(np.abs(sizes).max()))
    for y, size in enumerate(sizes):
        side = -1 if size < 0 else 1
        text = display.credit(size, places) if signed else display.score(size, places)
        ax.annotate(
            text, (reach[0, y] if side < 0 else reach[1, y], y), (4 * side, 0), textcoords="offset points",
            va="center", ha="right" if side < 0 else "left", fontsize="small",
        )  # fmt: skip
    low, high = min(0.0, float(reach.min())), max(0.0, float(reach.max()))
    room = 0.14 * (high - low or 1.0)
    ax.set_xlim(low - room if low < 0 else 0.0, high + room)
    style.zero_line(ax)
    style.quiet_frame(ax, "bottom")
    return known


def _intervals(ax: Any, y: Any, ends: Array, sizes: Array) -> None:
    """Draw lines from low to high, (2, n): dark beyond the bar, light inside of it, for contrast on both."""
    for row, low, high, size in zip(y, ends[0], ends[1], sizes, strict=True):
        inner = (min(max(low, min(0.0, size)), max(0.0, size)), max(min(high, max(0.0, size)), min(0.0, size)))
        ax.plot([low, high], [row, row], color=style.ink(), linewidth=1.3, zorder=3, solid_capstyle="butt")
        if inner[1] > inner[0]:
            ax.plot(inner, [row, row], color="white", linewidth=1.3, zorder=4, solid_capstyle="butt")


def _cohorts(cohorts: dict[str, Explanation], top: int, intervals: bool, ax: Any) -> Any:
    """Bars of several cohorts side by side for each feature."""
    parts = _checked(cohorts)
    sizes = np.array([importance(part)[0] for part in parts])
    shown, gathered = style.ranked(sizes.mean(axis=0), top)
    table = sizes[:, shown]
    labels = [style.short_name(parts[0], j) for j in shown]
    if len(gathered):
        table = np.column_stack([table, sizes[:, gathered].sum(axis=1)])
        labels.append(style.others(len(gathered)))
    ax = style.listed_axes(labels, max(0.34, 0.2 * len(parts))) if ax is None else style.given_axes(ax)
    names = [f"{display.shortened(str(name), 30)} ({len(part):,} rows)" for name, part in cohorts.items()]
    places = _beside(ax, table, names)
    if intervals:
        for y, part, size in zip(places, parts, table, strict=True):
            if len(part) > 1:
                ends = np.array(Resampled.asked(part, None).of_importance(part))[:, shown]
                _intervals(ax, y[: len(shown)], ends, size[: len(shown)])
    _finish(ax, labels, f"mean |credit| for {style.score_name(parts[0])}", len(parts))
    return ax


def _outputs(e: Explanation, top: int, ax: Any) -> Any:
    """All outputs in one picture: the mean |credit| of many rows stacked, the credits of one row side by side."""
    signed = len(e) == 1
    sizes = e.values[0].T if signed else importance(e)[0].T  # (k, p)
    most = np.argsort(-np.abs(sizes).sum(axis=1), kind="stable")[: len(style.SERIES)]
    chosen = np.sort(most)
    shown, gathered = style.ranked(np.abs(sizes[chosen]).sum(axis=0), top)
    table = sizes[chosen][:, shown]
    labels = [(style.name_and_value if signed else style.short_name)(e, j) for j in shown]
    if len(gathered):
        table = np.column_stack([table, sizes[chosen][:, gathered].sum(axis=1)])
        labels.append(style.others(len(gathered)))
    height = max(0.34, 0.16 * len(chosen)) if signed else 0.34
    ax = style.listed_axes(labels, height) if ax is None else style.given_axes(ax)
    names = [views.output_name(e.output_names[k], 30) for k in chosen]
    (_beside if signed else _stacked)(ax, table, names)
    left_out = len(e.output_names) - len(chosen)
    said = f"row {e.ids[0]}" if signed else f"{len(e):,} rows"
    what = "credit" if signed else "mean |credit|"
    _finish(ax, labels, f"{what}, {said}" + (f"; {left_out} smaller outputs left out" if left_out else ""), len(chosen))
    return ax


def _beside(ax: Any, table: Array, names: list[str]) -> list[Any]:
    """Draw the bars (series, lines) of several series side by side; returns the y positions of each series."""
    height = 0.8 / len(table)
    places = []
    for i, name in enumerate(names):
        places.append(np.arange(table.shape[1]) + (i - (len(table) - 1) / 2) * height)
        ax.barh(places[-1], table[i], height=height * 0.92, color=style.SERIES[i], zorder=2, label=style.plain(name))
    return places


def _stacked(ax: Any, table: Array, names: list[str]) -> None:
    """Draw the bars (series, lines) of several series, stacked."""
    begin = np.zeros(table.shape[1])
    for i, name in enumerate(names):
        ax.barh(np.arange(table.shape[1]), table[i], left=begin, height=0.7, color=style.SERIES[i], zorder=2,
                label=style.plain(name))  # fmt: skip
        begin = begin + table[i]


def _finish(ax: Any, labels: list[str], label: str, series: int) -> None:
    """Frame, ticks, labels and legend."""
    style.zero_line(ax)
    style.quiet_frame(ax, "bottom")
    style.name_rows(ax, labels)
    style.few_ticks(ax)
    ax.set_xlabel(label)
    ax.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=min(series, 3), frameon=False)


def _checked(cohorts: dict[str, Explanation]) -> list[Explanation]:
    """The cohorts' explanations, which must have the same features and output."""
    parts = list(cohorts.values())
    if not 0 < len(parts) <= len(style.SERIES):
        raise InputError(f"bar draws 1 to {len(style.SERIES)} cohorts side by side; got {len(parts)}.")
    for name, part in cohorts.items():
        if part.feature_names != parts[0].feature_names or part.output_names != parts[0].output_names:
            raise InputError(f"Cohorts must have the same features and output; {name!r} differs from the first.")
    return parts
