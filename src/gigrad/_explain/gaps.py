"""Why one population scores differently from another: the difference of two means, split over the variables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Unpack

import numpy as np

from .._common import checks, display
from .._common.optional import frame_library
from .._common.progress import shown, wanted
from .._io import provenance
from .._io.tables import under_names
from ..configuration import config
from ..engine import Settings
from ..errors import AccuracyWarning, InputError, warn
from ..graph import Array, rounding_above
from .choosing import choose
from .grouping import Grouping
from .options import Keywords, Options, takes_options
from .resampling import CARE, bootstrap_weights, credits_by_start
from .scorer import Scorer
from .weighted_rows import WeightedRows


@dataclass(frozen=True, eq=False)
class ScoreGap:
    """The difference in mean score between two populations, split over the variables.

    Attributes
    ----------
    feature_names : tuple of str
    values : (p,)
        The credits: `values.sum() + gap == difference`.
    low, high : (p,)
        Bootstrap interval of each credit.
    mean_a, mean_b, difference : float
        The mean scores, as the model itself gives them, and mean_a - mean_b.
    difference_low, difference_high : float
        Bootstrap interval of the difference.
    level : float
        The intervals' level.
    gap, error : float
        The part of the difference missing from the credits (rounding, quadrature); the estimated largest error of a
        credit.
    provenance : dict

    Examples
    --------
    >>> import gigrad as gig
    >>> gap = gig.explain_gap(tree, [[1, 1], [0, 1]], [[0, 0]], bootstrap=0)
    >>> gap.mean_a, gap.mean_b
    (2.5, 0.0)
    """

    feature_names: tuple[str, ...]
    values: Array
    low: Array
    high: Array
    mean_a: float
    mean_b: float
    difference: float
    difference_low: float
    difference_high: float
    level: float
    gap: float
    error: float
    provenance: dict[str, Any]

    def to_frame(self, *, library: Literal["pandas", "polars"] = "pandas") -> Any:
        """A line for each variable, largest credit first: feature, credit, low, high, share of the difference."""
        order = self._order()
        share = self.values / self.difference if self.difference else np.full(len(self.values), np.nan)
        columns = {"credit": self.values, "low": self.low, "high": self.high, "share": share}
        made: dict[str, Any] = {"feature": [self.feature_names[j] for j in order]}
        made |= {name: array[order] for name, array in columns.items()}
        return frame_library(checks.library(library)).DataFrame(made)

    def _order(self) -> Any:
        return np.argsort(-np.abs(self.values), kind="stable")

    def __str__(self) -> str:
        places = display.decimals(float(max(np.abs(self.values).max(initial=0.0), abs(self.difference))))
        known = not np.isnan(self.difference_low)  # there are no intervals without a bootstrap

        def between(low: float, high: float) -> str:
            return f"{low:+.{places}f} to {high:+.{places}f}"

        interval = f" ({100 * self.level:g}% interval {between(self.difference_low, self.difference_high)})"
        lines = [
            f"mean score {self.mean_a:.{places}f} against {self.mean_b:.{places}f}: difference "
            f"{self.difference:+.{places}f}{interval if known else ''}"
        ]
        width = max((len(name) for name in self.feature_names), default=0)
        for j in self._order():
            sure = " " if self.low[j] <= 0 <= self.high[j] else "*"
            range_of = f" {sure} ({between(self.low[j], self.high[j])})" if known else ""
            lines.append(f"  {self.feature_names[j]:<{width}}  {self.values[j]:+.{places}f}{range_of}")
        return "\n".join([*lines, "  * the interval excludes zero"] if known else lines)


@takes_options
def explain_gap(
    model: Any,
    group_a: Any,
    group_b: Any,
    *,
    weights_a: Any = None,
    weights_b: Any = None,
    level: float = 0.95,
    bootstrap: int = 200,
    progress: bool | None = None,
    **options: Unpack[Keywords],
) -> ScoreGap:
    """Split the difference in mean score, group_a minus group_b, over the variables.

    Every member of a is explained against every member of b, so the credits sum to the difference exactly, and the
    work grows with the product of their sizes: thin large groups first, by `gigrad.references.sample` or `distill`.

    Parameters
    ----------
    model : fitted model or Graph
    group_a, group_b : table or Reference
    weights_a, weights_b : arrays, optional
        One weight a row; equal by default.
    output, target, tol, n_threads, seed, corner_tol
        As in `Explainer`; one output must be left.
    groups : mapping of str to sequence of str, optional
        Columns whose credits are added up.
    discrete, nominal
        As in `Explainer`. By default the rows of both groups decide, so that it does not matter which is a.
    level : float
        Level of the intervals: percentiles of the bootstrap, in which both groups are resampled.
    bootstrap : int
        The number of resamples; 0 for no intervals (NaN).
    progress : bool, optional
        As in `explain`.

    Examples
    --------
    >>> import gigrad as gig
    >>> gap = gig.explain_gap(tree, [[1, 1], [0, 1]], [[0, 0]], bootstrap=0)
    >>> gap.difference, gap.values
    (2.5, array([1. , 1.5]))
    """
    level, bootstrap = checks.inside(level, "level"), checks.whole(bootstrap, "bootstrap", least=0)
    asked = Options.of(options)
    scorer, settings = Scorer.of(model, asked.output, asked.target), asked.settings()
    if scorer.node.width != 1:
        outputs = ", ".join(map(repr, scorer.output_names))
        raise InputError(f"A gap is about one score; this model has the outputs {outputs}. Pick one with target=.")
    a = _Group.scored("group_a", group_a, weights_a, scorer)
    b = _Group.scored("group_b", group_b, weights_b, scorer)
    under_names(b.rows, a.rows.names, scorer.graph, what="group_b", other="group_a")
    scorer = scorer.under(choose(scorer.graph, [a.rows, b.rows], asked.discrete, asked.nominal), a.rows.names)
    grouping = Grouping.of(a.rows.names, asked.groups)
    scorer.refuse_ignored(b.rows, a.rows)
    random = np.random.default_rng(settings.seed)
    # Sample 0 is the groups as they are, the others are the bootstrap's.
    samples_a, samples_b = a.samples(bootstrap, random), b.samples(bootstrap, random)
    with shown(wanted(progress, config.progress), "explaining the gap", len(a.rows)):
        credits, error, sampled = _mean_credits(scorer, settings, a, b, samples_a, samples_b)
    difference = samples_a @ a.own - samples_b @ b.own
    gap = float(difference[0] - credits[0].sum())
    error = _judged(scorer, settings, error, gap, max(abs(a.mean), abs(b.mean))) + sampled
    _warn_of_sampling(sampled, float(np.abs(credits[0]).max(initial=0.0)), settings.corner_tol)
    members = [list(columns) for columns in grouping.members.values()]
    credits = np.stack([credits[:, columns].sum(axis=1) for columns in members], axis=1)
    low, high = _interval(credits[1:], level)
    difference_low, difference_high = _interval(difference[1:, None], level)
    return ScoreGap(
        feature_names=tuple(grouping.members),
        values=credits[0],
        low=low,
        high=high,
        mean_a=a.mean,
        mean_b=b.mean,
        difference=float(difference[0]),
        difference_low=float(difference_low[0]),
        difference_high=float(difference_high[0]),
        level=level,
        gap=gap,
        error=error * max(map(len, members)),
        provenance={
            **scorer.record,
            "group_a": a.record,
            "group_b": b.record,
            "settings": provenance.settings_record(settings, asked.groups) | {"bootstrap": bootstrap, "level": level},
        },
    )


@dataclass(frozen=True, eq=False)
class _Group(WeightedRows):
    """One of the two populations, with the scores that the model itself gives it."""

    own: Array  # (n,), the model's own scores

    @classmethod
    def scored(cls, what: str, table: Any, weights: Any, scorer: Scorer) -> _Group:
        given = WeightedRows.read(table, weights, scorer.graph, what, f"row of {what}")
        return cls(given.rows, given.weights, given.record, scorer.own(given.rows)[:, 0])

    @property
    def mean(self) -> float:
        """The mean score."""
        return float(self.weights @ self.own)

    def samples(self, times: int, random: np.random.Generator) -> Array:
        """The group's weights, then those of `times` samples drawn from it: (1 + times, n)."""
        return np.vstack([self.weights, bootstrap_weights(self.weights, times, random)])


def _mean_credits(
    scorer: Scorer, settings: Settings, a: _Group, b: _Group, samples_a: Array, samples_b: Array
) -> tuple[Array, float, float]:
    """The mean credit of a's rows against b's in every sample, (samples, columns), and the error of sample 0.

    The error comes in two parts: of quadrature, and of sampled corners.
    """
    values = np.zeros((len(samples_a), a.rows.matrix.shape[1]))
    error, squares = 0.0, 0.0
    for part, credits, errors in credits_by_start(scorer, b.rows.matrix, a.rows.matrix, settings):
        against_b = np.tensordot(samples_b, credits, axes=([1], [1]))  # (samples, ends in the part, columns)
        values += np.einsum("sa,sap->sp", samples_a[:, part], against_b)
        error += float(a.weights[part] @ errors.plain @ b.weights)
        squares += float(a.weights[part] ** 2 @ errors.sampled**2 @ b.weights**2)
    return values, error, (CARE * squares) ** 0.5


def _judged(scorer: Scorer, settings: Settings, error: float, gap: float, scale: float) -> float:
    """The error to report: the estimate `error`, or |gap| where that exceeds the tolerance.

    Warns if the tolerance is missed by more than the rounding of the model's own scores explains.
    """
    allowed = settings.tol * scale
    rounding = float(rounding_above(scorer.node, scorer.graph.witnesses, np.array([[scale]]))[0, 0])
    _warn_of(max(error, abs(gap)) if abs(gap) > allowed + rounding else error, allowed)
    return max(error, abs(gap)) if abs(gap) > allowed else error


def _interval(samples: Array, level: float) -> tuple[Array, Array]:
    """The lower and upper percentile that enclose `level` of the samples, (columns,) each; NaN without samples."""
    if len(samples) == 0:
        nothing = np.full(samples.shape[1], np.nan)
        return nothing, nothing
    low, high = np.quantile(samples, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return low, high


def _warn_of_sampling(error: float, largest: float, target: float) -> None:
    """Warn if the error of sampled corners exceeds `corner_tol`."""
    if error > max(target, 1e-12) * largest:
        warn(
            f"In some pairs so many columns change at once that their credit was sampled: mean credits are off by up "
            f"to {error:.3g} where the largest is {largest:.3g} and corner_tol={target:g} was asked for; see `error`. "
            "output='margin' needs no sampling, and a smaller corner_tol samples more.",
            AccuracyWarning,
        )


def _warn_of(error: float, allowed: float) -> None:
    """Warn if the estimated error exceeds the tolerance."""
    if error > allowed or np.isnan(error):
        warn(
            f"The tolerance was not reached: the estimated error of a mean credit is up to {error:.3g} where "
            f"{allowed:.3g} was allowed; see `error`.",
            AccuracyWarning,
        )
