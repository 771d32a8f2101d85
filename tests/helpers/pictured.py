"""What pictures are drawn of: made results of the questions, and every text that a figure shows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from made import made

from gigrad import Comparison, Explanation, Interactions, ScoreChange, WhatIf, plots
from gigrad._questions.curves import Curve
from gigrad._questions.search import Searched
from gigrad._questions.whatif import Change

ONE_ROW: dict[str, Callable[[Explanation], Any]] = {
    "waterfall": plots.waterfall,
    "bar": plots.bar,
    "path": plots.path,
}
MANY_ROWS: dict[str, Callable[[Explanation], Any]] = {
    "bar": plots.bar,
    "beeswarm": plots.beeswarm,
    "scatter": lambda e: plots.scatter(e, 1, color=0),
    "heatmap": plots.heatmap,
}


def texts(ax: Any) -> list[str]:
    """Every text that a figure shows."""
    from matplotlib.text import Text

    return [t.get_text() for t in ax.figure.findobj(Text) if t.get_text()]


def plane(x: Any) -> Any:
    return np.sin(x[:, 0] + x[:, 1])


def plane_explanation() -> tuple[Explanation, Any]:
    start, end = np.array([0.5, 1.0]), np.array([7.0, 3.0])
    change = float(plane(end[None])[0] - plane(start[None])[0])
    values = (change * (end - start) / (end - start).sum())[None]
    zero = np.zeros(1)
    e = Explanation(values, plane(start[None]), plane(end[None]), zero, zero, end[None], ("x", "y"), ("sin(x + y)",))
    return e, start


def made_change() -> ScoreChange:
    rng = np.random.default_rng(0)
    names, n = tuple(f"f{i}" for i in range(7)), 40
    values = rng.normal(size=(n, 3, 7)) + np.linspace(2, -1, 7)
    values[:, 0, 4:] = 0.0
    values[:, 2] = 0.0
    level = np.column_stack([np.zeros(n), np.full(n, 1.5), np.full(n, -2.0)])
    totals, before = values.sum(axis=2) + level, rng.normal(size=n)
    table = rng.integers(0, 9, size=(n, 7))
    return ScoreChange(
        ("data", "model", "cutoff"), names, np.arange(n), before, before + totals.sum(axis=1), values, level, totals,
        np.zeros((n, 3)), np.zeros(n), {("data", "model"): totals[:, :2]}, (table, table + 1), names, np.arange(n), {},
    )  # fmt: skip


def made_comparison() -> Comparison:
    a, b = made(p=5, seed=0), made(p=5, seed=1)
    parts: list[Any] = [getattr(b, f) - getattr(a, f) for f in ("values", "base_values", "predictions", "gap")]
    difference = Explanation(
        parts[0], parts[1], parts[2], parts[3], a.error, a.data, a.feature_names, ("challenger less champion",)
    )
    return Comparison(a, b, difference)


def made_what_if() -> WhatIf:
    """A step, a line with a jump, and labels."""
    steps = Curve(
        "steps", "steps", np.array([2.0, 5.0]), np.array([2.0, 5.0, 6.0]), np.array([0.9, 0.6, 0.2]), 1, np.nan
    )
    points = Curve(
        "line", "points", np.array([3.0]), np.array([1, 3, 3.1, 5]), np.array([0.9, 0.8, 0.5, 0.4]), 1, np.nan
    )
    labels = Curve(
        "kind", "labels", np.zeros(0), np.array(["own", "rent"], object), np.array([0.7, 0.9]), "rent", np.nan
    )
    alone = Change(("steps",), (1,), (6,), 0.2, 0.3, True)
    curves = {c.name: c for c in (steps, points, labels)}
    return WhatIf(0.9, 0.35, False, False, curves, (alone,), (), ("kind",), Searched(3, 3, np.inf), {})


def made_interactions() -> Interactions:
    e = made(n=5, p=8)
    values = np.random.default_rng(1).normal(size=(5, 8, 8)) * 0.1
    own = e.values - values.sum(axis=2)
    values[:, range(8), range(8)] += own
    return Interactions(values, e, e.values - values.sum(axis=2), np.zeros(5))


def two_valued(e: Explanation, feature: str) -> Explanation:
    """The same with a flag in place of one feature's values."""
    return replace(e, data=e.data.assign(**{feature: (e.data[feature] > 0).astype(int)}))
