"""Smaller references: rows drawn at random, or chosen and weighted to keep the population's marginals.

`distill` describes a population by its *marginals*: for a number the mean and the shares below its quantiles, for a
category the share of each level, for both the share that is missing, and the same for the score. It picks rows one by
one so that the picked ones come closest to the population's marginals (herding), then weights them: least squares over
weights that are not negative, with their sum and the mean score as hard conditions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._common import checks
from ..errors import InputError, kind_of
from ..graph.node import Array
from .plain import PlainColumn, plain_columns
from .population import Reference

Index = NDArray[np.int64]

QUANTILES = 40
"""The number of quantile bins of a numeric column."""
CANDIDATES = 20_000
"""Rows that `distill` picks from: of a larger population, a random sample; the marginals are those of all rows."""
EVENNESS = 1e-3
"""The ridge penalty towards equal weights, which keeps single rows from dominating."""
FLOOR = 0.1
"""The least weight of a chosen row, relative to the mean weight: a row of weight 0 would be wasted."""


def sample(reference: Reference, n: int, seed: int = 0) -> Reference:
    """n rows drawn at random in proportion to their weights, each row at most once unless its weight exceeds 1/n.

    Systematic sampling in random order: the expected weight of each row is its weight in the whole reference.

    Parameters
    ----------
    reference : Reference
    n : int
    seed : int

    Returns
    -------
    Reference
        At most n rows; a row that was drawn twice weighs twice as much.

    Examples
    --------
    >>> import gigrad as gig
    >>> import numpy as np
    >>> everybody = gig.references.all_applicants(np.arange(100.0)[:, None])
    >>> len(gig.references.sample(everybody, 10, seed=0))
    10
    """
    _check_size(reference, n, at_least=1)
    random = np.random.default_rng(checks.seed(seed))
    order = random.permutation(len(reference))
    edges = np.cumsum(reference.weights[order]) * n
    hits = np.searchsorted(edges, np.arange(n) + random.random(), side="right")
    index, counts = np.unique(order[np.minimum(hits, len(order) - 1)], return_counts=True)
    line = f"{n:,} drawn at random (seed {seed}) from {reference.provenance}"
    return reference.take(index, counts / n, line, quality=_quality(reference, index, counts / n))


def distill(reference: Reference, n: int) -> Reference:
    """n weighted rows that keep the mean score and come as close as they can to the marginal distributions.

    The mean score is kept to rounding where the reference has scores; where it has none, the line says so. How far the
    marginals are off is measured and reported in `quality` and in the description. The result is deterministic.

    Parameters
    ----------
    reference : Reference
    n : int
        At least 2.

    Returns
    -------
    Reference

    Examples
    --------
    >>> import gigrad as gig
    >>> import numpy as np
    >>> values = np.arange(100.0)[:, None]
    >>> everybody = gig.references.all_applicants(values, scores=values[:, 0])
    >>> few = gig.references.distill(everybody, 10)
    >>> len(few), round(few.mean_score, 9)
    (10, 49.5)
    """
    _check_size(reference, n, at_least=2)
    marginals = _Marginals.of(reference)
    index = _herded(marginals, n)
    weights = _balanced(marginals.rows[index], marginals.target, marginals.scores[index])
    index = marginals.candidates[index]
    quality = _quality(reference, index, weights)
    kept = "" if reference.scores is None else f"mean score off by {quality['mean_score_difference']:.1g}, "
    unkept = "; no scores were given, so the mean score is not held" if reference.scores is None else ""
    line = (
        f"{len(index):,} weighted rows distilled from {reference.provenance} ({kept}marginals off by "
        f"{quality['mean_marginal_distance']:.2g} on average, {quality['largest_marginal_distance']:.2g} at most"
        f"{unkept})"
    )
    return reference.take(index, weights, line, quality=quality)


def _check_size(reference: Reference, n: int, at_least: int) -> None:
    """Refuse to draw more rows than a reference has."""
    if not isinstance(reference, Reference):
        raise InputError(
            f"reference must be a Reference, such as gigrad.references.all_applicants(X); got {kind_of(reference)}."
        )
    if checks.whole(n, "n", at_least) > len(reference):
        raise InputError(f"n must be at most the reference's {len(reference)} rows; got {n}. Use it whole.")


@dataclass(frozen=True, eq=False)
class _Marginals:
    """The constraints of `distill`: `weights @ rows` should be near `target`, and `weights @ scores` must be 0."""

    candidates: Index  # (c,) positions in the reference
    rows: Array  # (c, q)
    target: Array  # (q,)
    scores: Array  # (c,), standardised: mean 0 in the population; all 0 where there are none

    @classmethod
    def of(cls, reference: Reference) -> _Marginals:
        """The moments of each column that a chosen subset should reproduce, and the candidates for it."""
        positive = np.flatnonzero(reference.weights > 0)
        candidates = positive
        if len(candidates) > CANDIDATES:
            candidates = np.sort(np.random.default_rng(0).choice(candidates, CANDIDATES, replace=False))
        columns = [column for column, _ in plain_columns(reference.rows)]
        scores = (
            np.zeros(len(reference)) if reference.scores is None else _standard(reference.scores, reference.weights)
        )
        if reference.scores is not None:
            columns.append(PlainColumn("score", "number", scores))
        parts = [_moments(column, reference.weights, candidates) for column in columns]
        rows = np.concatenate([part for part, _ in parts], axis=1)
        target = np.concatenate([mean for _, mean in parts])
        return cls(candidates, rows, target, scores[candidates])


def _standard(values: Array, weights: Array) -> Array:
    """Values with weighted mean 0 and spread 1."""
    centred = values - weights @ values
    spread = np.sqrt(weights @ centred**2)
    out: Array = centred / spread if spread > 0 else np.zeros_like(centred)
    return out


def _moments(column: PlainColumn, weights: Array, candidates: Index) -> tuple[Array, Array]:
    """A column's features (mean, quantile or level indicators) on the candidates, (c, r), and their means, (r,)."""
    missing = np.isnan(column.values)
    parts: list[Array] = [missing.astype(np.float64)] if missing.any() else []
    present = column.values[~missing]
    if column.kind == "category":
        parts += [(column.values == code).astype(np.float64) for code in np.unique(present)]
    elif len(present):
        ordered = np.sort(present)
        edges = np.unique(ordered[(np.arange(1, QUANTILES) * len(ordered)) // QUANTILES])
        below = [(column.values <= edge).astype(np.float64) for edge in edges[edges < ordered[-1]]]
        filled = np.where(missing, weights[~missing] @ present / max(weights[~missing].sum(), 1e-300), column.values)
        parts += [*below, _standard(filled, weights)]
    rows = np.stack([part[candidates] for part in parts], axis=1) if parts else np.zeros((len(candidates), 0))
    return rows, np.array([weights @ part for part in parts])


def _herded(marginals: _Marginals, n: int) -> Index:
    """n distinct rows picked greedily (herding), so that their mean is as close to the target as possible."""
    rows, scores = marginals.rows - marginals.target, marginals.scores
    length = (rows**2).sum(axis=1)
    total = np.zeros(rows.shape[1])
    picked: list[int] = []
    for _ in range(min(n, len(rows))):
        cost = 2.0 * (rows @ total) + length
        cost[picked] = np.inf
        best = int(cost.argmin())
        picked.append(best)
        total += rows[best]
    # The mean score can be kept only by rows on both sides of it.
    for side in (scores, -scores):
        if (side[picked] > 0).all():
            picked[-1] = int(np.argmin(np.where(side <= 0, -side, np.inf)))
    return np.array(picked, dtype=np.int64)


def _balanced(rows: Array, target: Array, scores: Array) -> Array:
    """Weights that bring `weights @ rows` nearest to `target`, by least squares under constraints.

    They are not negative, sum to 1 and keep the mean of the standardised `scores` at 0. A ridge term (EVENNESS) pulls
    them towards equal weights, and FLOOR times an equal weight is the least of them, up to rounding.
    """
    size = len(rows)
    hard = np.stack([np.ones(size), scores], axis=1)  # weights @ hard must be (1, 0)
    firm = 1e6 * max(1.0, float((rows**2).sum()) / size)
    even = EVENNESS * float((rows**2).sum()) / size + 1e-9
    quadratic = rows @ rows.T + firm * (hard @ hard.T) + even * np.eye(size)
    linear = rows @ target + firm * hard[:, 0] + even / size
    floor = np.full(size, FLOOR / size)
    weights = floor + _nonnegative(quadratic, linear - quadratic @ floor, np.full(size, 1.0 / size) - floor)
    # The constraints hold to about 1e-6; this is the smallest change with which they hold to rounding.
    lost = np.array([1.0, 0.0]) - weights @ hard
    weights += hard @ np.linalg.lstsq(hard.T @ hard, lost, rcond=None)[0]
    return np.maximum(weights, 0.0)


def _nonnegative(quadratic: Array, linear: Array, weights: Array) -> Array:
    """Minimise w'Qw/2 - l'w over w >= 0 by an active set, from positive weights (Lawson and Hanson's method)."""
    used = np.ones(len(weights), dtype=bool)
    for _ in range(3 * len(weights)):
        best = np.zeros_like(weights)
        best[used] = np.linalg.solve(quadratic[np.ix_(used, used)], linear[used])
        falling = used & (best <= 0)
        if falling.any():
            step = (weights[falling] / (weights[falling] - best[falling])).min()
            weights = weights + step * (best - weights)
            used &= ~(falling & (weights <= 1e-12))
            weights[~used] = 0.0
            continue
        weights = best
        gain = np.where(used, -np.inf, linear - quadratic @ weights)
        if gain.max(initial=-np.inf) <= 1e-9 * np.abs(linear).max():
            break
        used[int(gain.argmax())] = True
    return weights


def _quality(reference: Reference, index: Index, weights: Array) -> dict[str, float]:
    """How far chosen rows are from the whole: the marginals' largest and mean distance, the mean score's difference.

    A number's distance is the largest difference of the two distribution functions (Kolmogorov-Smirnov), a category's
    half the sum of the differences of its shares (total variation); missing values count as one more value.
    """
    chosen = np.zeros(len(reference))
    np.add.at(chosen, index, weights)
    far = [_marginal_distance(column, reference.weights, chosen) for column, _ in plain_columns(reference.rows)]
    out = {"mean_marginal_distance": float(np.mean(far)), "largest_marginal_distance": float(np.max(far))}
    if reference.scores is not None:
        out["mean_score_difference"] = float(abs((chosen - reference.weights) @ reference.scores))
    return out


def _marginal_distance(column: PlainColumn, whole: Array, chosen: Array) -> float:
    """How far a column's distribution in the subset is from the whole: total variation, or Kolmogorov's distance."""
    # Missing values sort last and make one group of their own.
    _, group = np.unique(column.values, return_inverse=True, equal_nan=True)
    difference = np.bincount(group, weights=chosen - whole)
    if column.kind == "category":
        return float(np.abs(difference).sum() / 2.0)
    return float(np.abs(np.cumsum(difference)).max())
