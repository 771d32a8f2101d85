"""The completeness check: credits must add up to the change of the score, on every row and for every engine.

The residual of the sum, the gap, must be within the tolerance and the rounding of the terms. A row with a larger gap is
recomputed by the mixed engine with tighter settings; a gap that remains is counted in `error`, with a warning.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..errors import AccuracyWarning, warn
from ..graph import Array, Input, Node, TreeEnsemble
from . import limits
from .closed_form import links
from .paths import Bools, Ints, Pairs, Paths, Population
from .sampling import warn_of_sampling
from .settings import Credits, Settings
from .terms import LinkedTrees, credits_of, linear_terms


def attribute(node: Node, source: Input, paths: Paths, settings: Settings) -> Credits:
    """Credit of every end for the output `node` of a graph whose rows enter at `source`."""
    return _completed(credits_of(node, source, paths, settings), node, source, paths, settings)


def attribute_singly(
    node: Node, source: Input, linked: LinkedTrees | None, paths: Population, settings: Settings
) -> tuple[Credits, Array]:
    """Credit of every start with every end by itself, all starts of the first end first, whatever their weights.

    Where the output is one link over trees, also the credits for the sum of the trees, (n, players), else (n, 0).
    """
    count, times = len(paths.ends), len(paths.starts)
    pairs = Pairs(np.tile(paths.starts, (count, 1)), np.repeat(paths.ends, times, axis=0))
    starts, ends = paths.scores(node, source)
    pairs.tell(node, np.tile(starts, (count, 1)), np.repeat(ends, times, axis=0))
    if linked is None:
        return attribute(node, source, pairs, settings), np.zeros((count * times, 0))
    found, sums = links.credits_singly(linked.trees, linked.link, paths.starts, paths.ends, pairs, settings)
    factor, size = linked.factor, abs(linked.factor)
    scaled = replace(found, values=found.values * factor, error=found.error * size, sampled=found.sampled * size)
    return _completed(scaled, node, source, pairs, settings), sums[:, :, 0]


def _completed(found: Credits, node: Node, source: Input, paths: Paths, settings: Settings) -> Credits:
    """Credits compared with the change of the score, and recomputed on rows where the gap is too large."""
    if not len(paths.ends):
        return found
    starts, ends = paths.scores(node, source)
    base = paths.base(starts)
    allowed = settings.tol * np.maximum(np.abs(ends), np.abs(base))
    added = np.abs(found.values).sum(axis=1) + np.abs(ends) + np.abs(base)
    noise = np.maximum(found.finest, limits.SUM_ROUNDING * added)
    gap = ends - base - found.values.sum(axis=1)
    endless = ~np.isfinite(ends - base)
    gap[endless] = 0.0  # a model that gives no number at an end has no gap to be judged by
    if not (np.abs(gap) <= allowed + noise).all():
        noise += _rounding_of_trees(node, source)
    over = np.nonzero(~(np.abs(gap) <= allowed + noise).all(axis=1))[0]
    if len(over):
        _walk_again(found, gap, over, node, source, paths, settings)
        lost = np.where(np.isnan(gap[over]), np.inf, np.abs(gap[over]))
        found.error[over] = np.maximum(found.error[over], lost)
    # A gap beyond the rounding of this sum is rounding magnified by a steep part, such as an ECDF with close knots.
    magnified = np.abs(gap) > limits.ROUNDING * added
    found = replace(found, error=np.where(magnified, np.maximum(found.error, np.abs(gap)), found.error))
    if not settings.quiet:
        _warn_of_endless(endless)
        limit = np.maximum(allowed, limits.GAP_CAUTION * noise)  # the error counts the gap that many times
        limit = np.maximum(limit, _rounding_of_scores(starts, ends))
        _warn(np.where(endless, 0.0, found.error - found.sampled), np.where(endless, 0.0, limit))
        warn_of_sampling(found, node, settings.corner_tol)
    return replace(found, error=np.where(endless, np.inf, found.error)) if endless.any() else found


def held_to(credits: Credits, gain: Array, allowed: Array, rounding: Array) -> Credits:
    """Credits with `error` raised to cover their gap to `gain` (n, k), the change of the model's own score.

    The model's own score may differ from the graph's by the model's rounding, amplified by steep functions above the
    model. Differences up to `rounding` (n, k) are expected and not warned about.
    """
    gap = np.nan_to_num(np.abs(gain - credits.values.sum(axis=1)), nan=0.0, posinf=0.0)
    missing = (gap > allowed) & (gap > credits.error)
    if not missing.any():
        return credits
    rows = np.nonzero((missing & (gap > allowed + rounding)).any(axis=1))[0]
    if len(rows):
        warn(
            f"On {len(rows)} of {len(gap)} rows ({_named(rows)}) the model's own score and the one that its credits "
            f"add up to differ by up to {gap[rows].max():.3g}: the model's rounding falls on a steep part of what "
            "lies above it, such as a calibration or an ECDF with knots that are very close; see `gap` and `error`.",
            AccuracyWarning,
        )
    return replace(credits, error=np.where(missing, np.maximum(credits.error, gap), credits.error))


def _rounding_of_trees(node: Node, source: Input) -> float:
    """The rounding of the trees that an output adds up: large where they cancel and the output is small."""
    eps, total = float(np.finfo(np.float64).eps), 0.0
    for matrix, term in linear_terms(node):
        if isinstance(term, TreeEnsemble) and term.source is source and len(term.roots):
            total += float(np.abs(matrix).max()) * eps * len(term.roots) * float(np.abs(term.values).max(initial=0.0))
    return total


def _rounding_of_scores(starts: Array, ends: Array) -> Array:
    """The rounding of the largest score, (k,): scores that are 0 but for it, as those of a rank 0, cannot be exact."""
    scores = np.abs(np.concatenate([starts, ends]))
    largest: Array = np.max(scores, axis=0, where=np.isfinite(scores), initial=0.0)
    return float(np.finfo(np.float64).eps) * largest


def _walk_again(
    found: Credits, gap: Array, over: Ints, node: Node, source: Input, paths: Paths, settings: Settings
) -> None:
    """Replace the credits of some rows by recomputed ones where tighter settings leave a smaller gap."""
    careful = replace(settings, careful=True)
    for some in (over[: limits.FIRST_RETRIED], over[limits.FIRST_RETRIED :]):
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


def _warn_of_endless(endless: Bools) -> None:
    """Warn of rows whose score is infinite or NaN somewhere, which have no credits."""
    rows = np.nonzero(endless.any(axis=1))[0]
    if len(rows):
        warn(
            f"A score must be a finite number to be explained; on {len(rows)} of {len(endless)} rows ({_named(rows)})"
            ", or where their paths start, it is infinite or NaN, and so is `error`. Look for a logarithm of 0 and for "
            "exponentials of large numbers in the model, and explain the score before them.",
            AccuracyWarning,
        )


def _named(rows: Ints) -> str:
    return ", ".join(map(str, rows[:10].tolist())) + (", ..." if len(rows) > 10 else "")


def _warn(error: Array, allowed: Array) -> None:
    """Warn of rows whose error exceeds what was allowed."""
    over = np.nonzero(((error > allowed) | np.isnan(error)).any(axis=1))[0]
    if len(over):
        warn(
            f"The tolerance was not reached on {len(over)} of {len(error)} rows ({_named(over)}): the estimated error "
            f"of a credit is up to {error[over].max():.3g} where {allowed[over].min():.3g} was allowed; see `error`.",
            AccuracyWarning,
        )
