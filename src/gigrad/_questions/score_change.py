"""The result of `explain_change`: an additive statement for every customer, and for a portfolio with intervals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from .._common import checks, display
from .._common.optional import frame_library
from .._explain.resampling import bootstrap_weights
from ..errors import InputError
from ..graph import Array

NOBODY = "(level)"
"""The name shown in place of a feature for the part of a step that belongs to no feature."""


@dataclass(frozen=True, eq=False, repr=False)
class ScoreChange:
    """Why the scores of n customers moved: S steps, each split over p variables.

    Attributes
    ----------
    steps : tuple of str
        Those of "data", "model", "transform" and "cutoff" that changed, in order.
    feature_names : tuple of str
    ids : (n,) array
    before, after : (n,)
        The scores, as the models themselves give them; less the cutoffs where they were given.
    values : (n, S, p)
        Each variable's part of each step. `before + values.sum((1, 2)) + level.sum(1) + gap.sum(1) == after`.
    level : (n, S)
        The part of a step that belongs to no variable: all of a new model's or transform's effect where there was no
        reference, else what it did to the reference's mean score; all of a new cutoff's.
    totals : (n, S)
        The effect of each step on the models' own scores; they add up to `after - before`.
    gap : (n, S)
        The part of `totals` missing from `values` and `level` because of rounding and quadrature.
    error : (n,)
        Estimated largest error of a value.
    orders : dict of tuple of str to (n, steps)
        The effect of each step in every order, the columns in that order. `values` are those of one order, or the mean.
    provenance : dict

    Examples
    --------
    >>> import gigrad as gig
    >>> may, june = [[0, 1], [0, 0]], [[1, 1], [0, 1]]
    >>> change = gig.explain_change(before=(tree, may), after=(tree, june))
    >>> change.values[:, 0]
    array([[3., 0.],
           [0., 1.]])
    >>> change[1].after
    array([1.])
    """

    steps: tuple[str, ...]
    feature_names: tuple[str, ...]
    ids: NDArray[Any]
    before: Array
    after: Array
    values: Array
    level: Array
    totals: Array
    gap: Array
    error: Array
    orders: Mapping[tuple[str, ...], Array]
    tables: tuple[Any, Any]
    columns: tuple[str, ...]
    picked: NDArray[np.int64]
    provenance: dict[str, Any]

    def __len__(self) -> int:
        return len(self.before)

    def __getitem__(self, rows: Any) -> ScoreChange:
        """Some customers, by number, slice, list or mask."""
        try:
            index = np.atleast_1d(np.arange(len(self))[rows])
        except (IndexError, TypeError):
            raise InputError(
                f"Customers are picked by number, slice, list or mask below {len(self)}; got {rows!r}."
            ) from None
        per_row = ("ids", "before", "after", "values", "level", "totals", "gap", "error", "picked")
        orders = {order: totals[index] for order, totals in self.orders.items()}
        return replace(self, orders=orders, **{name: getattr(self, name)[index] for name in per_row})

    def raw(self, feature: str) -> tuple[NDArray[Any], NDArray[Any]] | None:
        """A column's values before and after, (n,) each; None for a group, which has no value of its own."""
        if feature not in self.columns:
            return None
        place = self.columns.index(feature)
        first, last = (display.column(table, place)[self.picked] for table in self.tables)
        return first, last

    @cached_property
    def parts(self) -> list[tuple[str, str]]:
        """Step and feature of every part of the statement, in the order of `flat`."""
        return [(step, name) for step in self.steps for name in (*self.feature_names, NOBODY)]

    @cached_property
    def flat(self) -> Array:
        """Every part of every customer's statement, (n, S * (p + 1)): each step's variables, then its level."""
        joined = np.concatenate([self.values, self.level[:, :, None]], axis=2)
        return joined.reshape(len(self), -1)

    def to_frame(self, *, library: Literal["pandas", "polars"] = "pandas") -> Any:
        """A data frame with a line for each customer, step and feature; "(level)" is the part of no feature."""
        n = len(self)
        made = {
            "id": np.repeat(self.ids, len(self.parts)),
            "step": np.tile(np.array([step for step, _ in self.parts], dtype=object), n),
            "feature": np.tile(np.array([name for _, name in self.parts], dtype=object), n),
            "change": self.flat.ravel(),
        }
        return frame_library(checks.library(library)).DataFrame(made)

    def portfolio(
        self,
        *,
        weights: Any = None,
        level: float = 0.95,
        bootstrap: int = 1000,
        seed: int = 0,
        library: Literal["pandas", "polars"] = "pandas",
    ) -> Any:
        """What moved the mean score of all customers: step, feature, change and its interval, as a data frame.

        The lines of a step are its total (the feature is "(total)"), then its parts that are not zero throughout, the
        largest first. Intervals are percentiles of a bootstrap over customers; models, transforms and reference stay.
        """
        if not len(self):
            raise InputError("A portfolio must have at least one customer; it is empty.")
        shares = checks.weights(weights, len(self), "customer")
        width = len(self.feature_names) + 1
        everything = np.concatenate([self.totals, self.flat], axis=1)
        mean, low, high = mean_intervals(everything, shares, level, bootstrap, seed)
        lines: list[int] = []
        names: list[tuple[str, str]] = []
        for s, step in enumerate(self.steps):
            first = len(self.steps) + s * width
            order = first + np.argsort(-np.abs(mean[first : first + width]), kind="stable")
            order = order[everything[:, order].any(axis=0)]
            lines += [s, *order.tolist()]
            names += [(step, "(total)"), *(self.parts[k - len(self.steps)] for k in order)]
        made: dict[str, Any] = {"step": [s for s, _ in names], "feature": [f for _, f in names]}
        made |= {name: array[lines] for name, array in (("change", mean), ("low", low), ("high", high))}
        return frame_library(checks.library(library)).DataFrame(made)

    def by_order(self, *, library: Literal["pandas", "polars"] = "pandas") -> Any:
        """The mean effect of each step, for every order of the steps, as a data frame."""
        lines = [
            {"order": ", ".join(order)} | dict(zip(order, totals.mean(axis=0).tolist(), strict=True))
            for order, totals in self.orders.items()
        ]
        made = {name: [line[name] for line in lines] for name in ("order", *sorted(next(iter(self.orders))))}
        return frame_library(checks.library(library)).DataFrame(made)

    def __repr__(self) -> str:
        n = len(self)
        if not n:
            return "0 customers"
        mean, totals = self.flat.mean(axis=0), self.totals.mean(axis=0)
        first, last = float(self.before.mean()), float(self.after.mean())
        places = display.decimals(float(max(np.abs(mean).max(initial=0.0), abs(last - first))))
        whose = f"customer {self.ids[0]}: score" if n == 1 else f"{n:,} customers: mean score"
        change = display.credit(last - first, places)
        lines = [f"{whose} from {display.score(first, places)} to {display.score(last, places)} ({change})"]
        width = len(self.feature_names) + 1
        names = (*display.short_names(self.feature_names, display.NAME_WIDTH), NOBODY)
        longest = max(map(len, names))
        for s, step in enumerate(self.steps):
            lines.append(f"  {step}  {display.credit(float(totals[s]), places)}")
            own = mean[s * width : (s + 1) * width]
            shown = [k for k in np.argsort(-np.abs(own), kind="stable")[:5] if own[k] != 0]
            lines += [f"    {names[k]:<{longest}}  {display.credit(float(own[k]), places)}" for k in shown]
        return "\n".join(lines)


def mean_intervals(parts: Array, shares: Array, level: float, bootstrap: int, seed: int) -> tuple[Array, Array, Array]:
    """The weighted means of parts (n, k), and their bootstrap percentiles over rows (NaN if `bootstrap` is 0)."""
    tail = (1 - checks.inside(level, "level")) / 2
    times = checks.whole(bootstrap, "bootstrap", least=0)
    mean = shares @ parts
    if not times:
        return mean, np.full_like(mean, np.nan), np.full_like(mean, np.nan)
    drawn = bootstrap_weights(shares, times, np.random.default_rng(checks.seed(seed)))
    low, high = np.quantile(drawn @ parts, [tail, 1 - tail], axis=0)
    return mean, low, high
