"""The approved applicants most like one applicant, by a distance that does not depend on units."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._common import checks
from ..errors import InputError
from ..graph.node import Array
from .direction import passing
from .plain import PlainColumn, count_rows, plain_columns, take_rows
from .population import Reference, approved, checked_scores


def nearest_approved(
    X: Any,
    scores: Any,
    cutoff: float,
    applicant: Any,
    k: int,
    *,
    higher_is_better: bool,
    weights: Any = None,
) -> Reference:
    """The k approved applicants nearest to one applicant: the smallest change that would have been enough.

    The distance is the mean over the columns of

    - numbers: the share of approved applicants whose value lies between the two (half of those at the ends), so that
      neither units nor monotone transforms matter;
    - categories: 0 if equal, 1 if not;
    - missing values: 0 if both are missing, 1 if one is.

    Among equally near rows the earlier ones are taken.

    Parameters
    ----------
    X, scores, cutoff, higher_is_better, weights
        As in `approved`.
    applicant : int or table of one row
        The applicant's position in X, or the row itself with the same columns.
    k : int

    Examples
    --------
    >>> import gigrad as gig
    >>> X, points = [[1.0], [2.0], [3.0]], [500, 610, 700]
    >>> gig.references.nearest_approved(X, points, 600, 0, 1, higher_is_better=True).rows
    array([[2.]])
    """
    k = checks.whole(k, "k")
    row = _row(X, scores, cutoff, applicant, higher_is_better)
    passed = approved(X, scores, cutoff, higher_is_better=higher_is_better, weights=weights, min_rows=1)
    if len(passed) < k:
        raise InputError(f"k must be at most the number of approved applicants, {len(passed)}; got {k}.")
    distance = distances(passed.rows, passed.weights, row)
    keep = np.sort(np.argsort(distance, kind="stable")[:k])
    if not passed.weights[keep].sum() > 0:
        raise InputError(f"The {k} nearest approved applicants all have weight 0; leave such rows out, or raise k.")
    line = f"the {k:,} nearest of the {passed.provenance}, by mean difference of ranks and categories"
    return passed.take(keep, passed.weights[keep], line, quality={"farthest_distance": float(distance[keep].max())})


def distances(rows: Any, weights: Array, applicant: Any) -> Array:
    """The distance of every row to an applicant, (m,), between 0 and 1."""
    parts = [_column_distance(column, weights, other.values[0]) for column, other in plain_columns(rows, applicant)]
    return np.mean(parts, axis=0) if parts else np.zeros(len(weights))


def _column_distance(column: PlainColumn, weights: Array, value: float) -> Array:
    """The distance in one column of every row from a value: of ranks, or 0 and 1."""
    missing = np.isnan(column.values)
    if np.isnan(value):
        return np.where(missing, 0.0, 1.0)
    if column.kind == "category":
        return np.where(column.values == value, 0.0, 1.0)
    between = np.abs(mid_rank(column.values, weights, column.values) - mid_rank(column.values, weights, value))
    return np.where(missing, 1.0, between)


def mid_rank(sample: Array, weights: Array, values: Any) -> Array:
    """The share of a sample below each value, plus half of the share equal to it; missing values aside."""
    present = ~np.isnan(sample)
    order = np.argsort(sample[present], kind="stable")
    ordered = sample[present][order]
    total = np.concatenate([[0.0], np.cumsum(weights[present][order])])
    if total[-1] <= 0:
        return np.zeros(np.shape(values))
    below: NDArray[np.int64] = np.searchsorted(ordered, values, side="left")
    upto: NDArray[np.int64] = np.searchsorted(ordered, values, side="right")
    out: Array = (total[below] + total[upto]) / 2.0 / total[-1]
    return out


def _row(X: Any, scores: Any, cutoff: float, applicant: Any, higher_is_better: bool) -> Any:
    """The applicant as a table of one row; an InputError if the applicant passes already."""
    size = count_rows(X, "X")
    if not checks.is_whole(applicant):
        if count_rows(applicant, "applicant") != 1:
            raise InputError(f"applicant must be one row or a position in X; got {count_rows(applicant, 'it')} rows.")
        return applicant
    if not 0 <= applicant < size:
        raise InputError(f"applicant must be a position in X, from 0 to {size - 1}; got {applicant}.")
    score = checked_scores(scores, size)[applicant]
    if passing(score, cutoff, higher_is_better):
        raise InputError(
            f"applicant {applicant} scores {score:.6g} and passes the cutoff {cutoff:.6g} with "
            f"higher_is_better={higher_is_better}: there is nothing to approve. Is the direction mixed up?"
        )
    return take_rows(X, np.array([applicant], dtype=np.int64))
