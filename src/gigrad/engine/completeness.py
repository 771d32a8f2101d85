"""Credits add up to the change of the score: held for every row, whichever engine gave them.

What is missing from the sum, the gap, may be no more than the tolerance and the rounding of the numbers that were added
up. A row of which more is missing is walked again, with care, by the mixed engine; what is still missing then is in
`error`, and the row is warned about.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..errors import AccuracyWarning, warn
from ..graph import Array, Input, Node, TreeEnsemble
from .paths import Ints, Paths
from .sampling import warn_of_sampling
from .settings import Credits, Settings
from .terms import credits_of, linear_terms

ROUNDING = 1e-13
"""What sums may be off by, as a share of the numbers that they add up."""

FIRST = 16
"""Rows that are walked again at first; where that helps none of them, the others are not."""


def attribute(node: Node, source: Input, paths: Paths, settings: Settings) -> Credits:
    """Credit of every end for the output `node` of a graph whose rows enter at `source`."""
    found = credits_of(node, source, paths, settings)
    if not len(paths.ends):
        return found
    starts, ends = paths.scores(node, source)
    base = paths.base(starts)
    allowed = settings.tol * np.maximum(np.abs(ends), np.abs(base))
    noise = np.maximum(found.finest, ROUNDING * (np.abs(found.values).sum(axis=1) + np.abs(ends) + np.abs(base)))
    gap = ends - base - found.values.sum(axis=1)
    gap[~np.isfinite(ends - base)] = 0.0  # a model that gives no number at an end has no gap to be judged by
    if not (np.abs(gap) <= allowed + noise).all():
        noise += _rounding_of_trees(node, source)
    over = np.nonzero(~(np.abs(gap) <= allowed + noise).all(axis=1))[0]
    if len(over):
        _walk_again(found, gap, over, node, source, paths, settings)
        lost = np.where(np.isnan(gap[over]), np.inf, np.abs(gap[over]))
        found.error[over] = np.maximum(found.error[over], lost)
    if not settings.quiet:
        _warn(found.error - found.sampled, np.maximum(allowed, noise))
        warn_of_sampling(found, settings.corner_tol)
    return found


def held_to(credits: Credits, gain: Array, allowed: Array, rounding: Array) -> Credits:
    """Credits whose error covers what is missing to `gain` (n, k), the change of the model's own score.

    The model's own rounding, made larger by whatever is steep above the model, may part that from the graph's. Up to
    `rounding` (n, k) this is no surprise.
    """
    gap = np.nan_to_num(np.abs(gain - credits.values.sum(axis=1)), nan=0.0, posinf=0.0)
    missing = (gap > allowed) & (gap > credits.error)
    if not missing.any():
        return credits
    rows = np.nonzero((missing & (gap > allowed + rounding)).any(axis=1))[0]
    if len(rows):
        named = ", ".join(map(str, rows[:10].tolist())) + (", ..." if len(rows) > 10 else "")
        warn(
            f"On {len(rows)} of {len(gap)} rows ({named}) the model's own score and the one that its credits add up to "
            f"differ by up to {gap[rows].max():.3g}: the model's rounding falls on a steep part of a function above "
            "it, such as a calibration or an ECDF with knots that are very close; see `gap` and `error`.",
            AccuracyWarning,
        )
    return replace(credits, error=np.where(missing, np.maximum(credits.error, gap), credits.error))


def _rounding_of_trees(node: Node, source: Input) -> float:
    """What the sums of the trees that an output adds up may be off by: they may be large where the output is not."""
    eps, total = float(np.finfo(np.float64).eps), 0.0
    for matrix, term in linear_terms(node):
        if isinstance(term, TreeEnsemble) and term.source is source and len(term.roots):
            total += float(np.abs(matrix).max()) * eps * len(term.roots) * float(np.abs(term.values).max(initial=0.0))
    return total


def _walk_again(
    found: Credits, gap: Array, over: Ints, node: Node, source: Input, paths: Paths, settings: Settings
) -> None:
    """Write the credits of some rows anew where more care leaves a smaller gap."""
    careful = replace(settings, careful=True)
    for some in (over[:FIRST], over[FIRST:]):
        if not len(some):
            return
        part = paths.rows(some)
        new = credits_of(node, source, part, careful)
        starts, ends = part.scores(node, source)
        left = ends - part.base(starts) - new.values.sum(axis=1)
        had, has = (np.nan_to_num(np.abs(g), nan=np.inf).max(axis=1) for g in (gap[some], left))
        better = has < had
        rows = some[better]
        found.values[rows], found.error[rows], gap[rows] = new.values[better], new.error[better], left[better]
        if isinstance(found.sampled, np.ndarray):
            found.sampled[rows] = np.broadcast_to(new.sampled, new.error.shape)[better]
        if not (has < 0.5 * had).any():
            return


def _warn(error: Array, allowed: Array) -> None:
    over = np.nonzero(((error > allowed) | np.isnan(error)).any(axis=1))[0]
    if len(over):
        named = ", ".join(map(str, over[:10].tolist())) + (", ..." if len(over) > 10 else "")
        warn(
            f"The tolerance was not reached on {len(over)} of {len(error)} rows ({named}): the estimated error of a "
            f"credit is up to {error[over].max():.3g} where {allowed[over].min():.3g} was allowed; see `error`.",
            AccuracyWarning,
        )
