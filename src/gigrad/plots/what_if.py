"""The score of a row along its variables, with the cutoff and the smallest change that crosses it."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._common import checks, display
from .._questions.curves import Curve
from .._questions.whatif import WhatIf
from ..errors import InputError, kind_of
from . import style

ACROSS = 3
ROOM = 0.1
"""The drawn length of the two outermost steps, which are unbounded, as a share of the range of the others."""
BEYOND = 0.02
"""As such a share, how far they are drawn beyond the numbers that there are: no amount below 0 gets a tick."""
MOST_LABELS = 12
"""Of more categories than these only the few that matter are named."""
TICKS = 5


def what_if(found: WhatIf, *, top: int = 6) -> Any:
    """Draw the score curves of the variables that move the score most.

    Parameters
    ----------
    found : WhatIf
    top : int
        How many variables to show.

    Returns
    -------
    matplotlib Figure
        The row is a dot, the cutoff a dashed line, the smallest change of the variable alone a diamond.

    Examples
    --------
    >>> import gigrad as gig
    >>> explainer = gig.Explainer(tree, [[0, 0], [0, 1], [1, 0], [1, 1]])
    >>> found = gig.what_if(explainer, [[0, 1]], cutoff=3, higher_is_better=True)
    >>> figure = gig.plots.what_if(found)
    """
    if not isinstance(found, WhatIf):
        raise InputError(f"what_if draws a result of gigrad.what_if; got {kind_of(found)}.")
    curves = sorted(found.curves.values(), key=lambda c: -float(np.ptp(c.scores)))[: checks.whole(top, "top")]
    across = min(ACROSS, len(curves))
    lines = -(-len(curves) // across)
    figure, axes = style.pyplot().subplots(
        lines, across, figsize=(3.4 * across, 2.5 * lines + 0.4), layout="constrained", sharey=True, squeeze=False
    )
    alone = {change.features[0]: change.after[0] for change in found.single}
    for ax, curve in zip(axes.ravel(), curves, strict=False):
        _draw(ax, curve, found, alone.get(curve.name))
    for ax in axes.ravel()[len(curves) :]:
        ax.set_visible(False)
    for ax in axes[:, 0]:
        ax.set_ylabel("score")
    return figure


def _draw(ax: Any, curve: Curve, found: WhatIf, crossing: Any) -> None:
    """The score as a function of one column, with the cutoff, the row and the smallest change."""
    ax.axhline(found.cutoff, color=style.ink(), linewidth=1.0, linestyle="--", alpha=0.7, zorder=1)
    place = (_labels if curve.kind == "labels" else _numbers)(ax, curve, crossing)
    if curve.now is not None:
        ax.plot([place(curve.now)], [found.score], "o", color=style.ink(), zorder=4)
    if crossing is not None:
        change = next(c for c in found.single if c.features == (curve.name,))
        ax.plot([place(crossing)], [change.score], "D", color=style.POSITIVE, zorder=5)
    style.quiet_frame(ax, "left", "bottom")
    style.title(ax, display.shortened(curve.name, 30))


def _labels(ax: Any, curve: Curve, crossing: Any) -> Any:
    """Draw a dash for each category; returns a function from label to x position."""
    lines, order = np.arange(len(curve.values)), np.arange(len(curve.values))
    named = order
    if len(order) > MOST_LABELS:
        order = np.argsort(curve.scores, kind="stable")
        own = [i for i, k in enumerate(order) if curve.values[k] in (curve.now, crossing)]
        named = np.array(own + [i for i in (0, len(order) - 1) if all(abs(i - k) > len(order) // 8 for k in own)])
    ax.plot(lines, curve.scores[order], "_", color=style.NEGATIVE, markersize=14, markeredgewidth=2.5, zorder=3)
    shown = [style.plain(display.shortened(display.text(curve.values[order[i]]), 12)) for i in named]
    ax.set_xticks(lines[named], shown, rotation=40, ha="right", fontsize="small")
    places = {curve.values[k]: i for i, k in enumerate(order)}
    return lambda value: places.get(value, np.nan)


def _numbers(ax: Any, curve: Curve, crossing: Any) -> Any:
    """Draw steps, or points joined where no threshold lies between; returns a function from number to x position."""
    points = [float(v) for v in (curve.now, crossing) if v is not None]
    if curve.kind == "steps":
        # of whole numbers the score changes half-way: a step is as wide as the numbers it holds
        breaks = np.floor(curve.breakpoints) + 0.5 if curve.whole else curve.breakpoints
        ax.stairs(curve.scores, _edges(curve, breaks, points), color=style.NEGATIVE, linewidth=1.8, baseline=None,
                  zorder=3)  # fmt: skip
    else:
        # a threshold belongs to the piece on its left: the line breaks after it
        cuts = np.searchsorted(curve.values, curve.breakpoints, side="right")
        parts = zip(np.split(curve.values, cuts), np.split(curve.scores, cuts), strict=True)
        for values, scores in parts:
            alone = {"marker": "_", "markeredgewidth": 1.8} if len(values) == 1 else {}
            ax.plot(values, scores, color=style.NEGATIVE, linewidth=1.8, zorder=3, **alone)
    ax.locator_params(axis="x", nbins=TICKS, integer=curve.whole)
    return float


def _edges(curve: Curve, breaks: Any, points: list[float]) -> Any:
    """The ends of all steps: of the outermost, some way beyond the others, but not far beyond any number there is."""
    low = min([*breaks[:1], *points], default=0.0)
    high = max([*breaks[-1:], *points], default=1.0)
    wide = (high - low) or 1.0
    room = max(BEYOND * wide, 0.5 if curve.whole else 0.0)
    more = max(ROOM * wide, 1.0 if curve.whole else 0.0)
    first = max(low - more, min(curve.low, low) - room)
    last = min(high + more, max(curve.high, high) + room)
    return np.concatenate([[first], breaks, [last]])
