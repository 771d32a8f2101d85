"""Drift between two runs: how often each reason is given, and how stable the credits are."""

from __future__ import annotations

from typing import Any

from .._common import checks
from . import style


def drift(found: Any, *, top: int = 15) -> Any:
    """Draw a result of `gigrad.monitor`: differences of reasons with intervals, and stability indices beside chance.

    Parameters
    ----------
    found : Drift
    top : int
        How many features to show in each part, the largest first.

    Returns
    -------
    matplotlib Figure

    Examples
    --------
    >>> import gigrad as gig
    >>> explainer = gig.Explainer(tree, [[0, 0]])
    >>> june, may = explainer([[1, 1], [0, 1]] * 20), explainer([[1, 0], [0, 1]] * 20)
    >>> found = gig.monitor(june, may, higher_is_better=False)
    >>> figure = gig.plots.drift(found)
    """
    top = checks.whole(top, "top")
    parts = [draw for draw, shown in ((_reasons, found.reasons), (_credits, found.credits)) if shown]
    rows = max(min(len(found.reasons), top), min(len(found.credits), top), 1)
    figure, axes = style.pyplot().subplots(
        1,
        max(len(parts), 1),
        figsize=(5.2 * max(len(parts), 1), 1.4 + 0.32 * rows),
        layout="constrained",
        squeeze=False,
    )
    for ax, draw in zip(axes[0], parts, strict=False):
        draw(ax, found, top)
        ax.spines[["top", "right"]].set_visible(False)
    figure.suptitle(f"{found.this} against {found.that}")
    return figure


def _reasons(ax: Any, found: Any, top: int) -> None:
    """Intervals of the changes in how often each feature is a reason."""
    shown = found.reasons[:top][::-1]
    for y, r in enumerate(shown):
        colour = style.NEUTRAL if not r.shifted else style.POSITIVE if r.difference > 0 else style.NEGATIVE
        ax.plot([100 * r.low, 100 * r.high], [y, y], color=colour, linewidth=2)
        ax.plot([100 * r.difference], [y], "o", color=colour)
    ax.axvline(0, color=style.NEUTRAL, linewidth=0.8)
    ax.set_yticks(range(len(shown)), [r.feature for r in shown])
    ax.set_xlabel("change in how often it is a reason, percentage points (95 %)")


def _credits(ax: Any, found: Any, top: int) -> None:
    """Intervals of each feature's stability index, and marks of what chance alone gives."""
    shown = found.credits[:top][::-1]
    for y, c in enumerate(shown):
        colour = style.POSITIVE if c.shifted else style.NEUTRAL
        ax.plot([c.low, c.high], [y, y], color=colour, linewidth=2)
        ax.plot([c.psi], [y], "o", color=colour)
        ax.plot([c.chance], [y], "|", color=style.NEUTRAL, markersize=12)
    ax.set_yticks(range(len(shown)), [c.feature for c in shown])
    ax.set_xlim(left=0)
    ax.set_xlabel("PSI of credits (95 %); ticks: by chance below")
