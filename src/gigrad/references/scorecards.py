"""References with which GIG equals the two classic methods for scorecards: points below maximum or below average."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._common import checks
from ..errors import InputError, kind_of
from .direction import checked_direction
from .plain import count_rows
from .population import Reference, all_applicants


def best_points(card: Any, *, higher_is_better: bool = True) -> Reference:
    """The row with the best points in every column of a scorecard: against it, credits are points below the maximum.

    Classic methods explain a scorecard by the points that an applicant lacks in each column, to the column's maximum or
    to its average. For a sum of points both are GIG with another reference: this row, or `average_points`.

    Parameters
    ----------
    card : gigrad.Scorecard
    higher_is_better : bool
        Whether many points speak for an applicant.

    Examples
    --------
    >>> import gigrad as gig
    >>> age = {"< 25": 0, "[25, 60)": 20, ">= 60": 30}
    >>> card = gig.Scorecard.read({"age": age, "home": {"own": 15, "rent": 5}})
    >>> best = gig.references.best_points(card)
    >>> gig.explain(card, [[30, "rent"]], best).values
    array([[-10., -10.]])
    """
    higher_is_better = checked_direction(higher_is_better)
    check_card(card)
    row = np.empty((1, len(card.best_row(higher_is_better))), object)
    row[0] = card.best_row(higher_is_better)
    which = "most" if higher_is_better else "fewest"
    method = "points below maximum" if higher_is_better else "points above minimum"
    line = f"the {which} points of every column: {method}"
    return Reference(row, np.ones(1), line, higher_is_better=higher_is_better, method=method)


def average_points(card: Any, X: Any, weights: Any = None, *, higher_is_better: bool = True) -> Reference:
    """All applicants of a table, for a scorecard: against them, credits are points below the average.

    Parameters
    ----------
    card : gigrad.Scorecard
    X : table, (m, p)
        The applicants whose points are averaged, column by column.
    weights : (m,) array, optional
        Equal by default.
    higher_is_better : bool
        Whether many points speak for an applicant.

    Examples
    --------
    >>> import gigrad as gig
    >>> card = gig.Scorecard.read({"home": {"own": 15, "rent": 5}})
    >>> everybody = gig.references.average_points(card, [["own"], ["rent"]])
    >>> gig.explain(card, [["rent"]], everybody).values
    array([[-5.]])
    """
    higher_is_better = checked_direction(higher_is_better)
    check_card(card)
    method = "points below average" if higher_is_better else "points above average"
    line = f"{all_applicants(X, weights).provenance}: {method}"
    shares = checks.weights(weights, count_rows(X, "X"), "reference row")
    return Reference(X, shares, line, higher_is_better=higher_is_better, method=method)


def check_card(card: Any) -> None:
    """Raise unless `card` is a Scorecard: the classic methods apply to no other model."""
    if not hasattr(card, "best_row"):
        raise InputError(
            f"card must be a gigrad.Scorecard; got {kind_of(card)}. Read others with gigrad.Scorecard.read(card)."
        )
