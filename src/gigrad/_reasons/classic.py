"""Reasons of a scorecard by the classic methods and by GIG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .._explain.explainer import explain
from ..errors import InputError
from ..references import average_points, best_points
from ..references.scorecards import check_card
from .build import Reasons, reasons

METHODS = ("below maximum", "below average", "gig")


def scorecard_reasons(
    card: Any,
    applicants: Any,
    method: str = "gig",
    population: Any = None,
    *,
    top: int = 4,
    statements: Any = None,
    groups: Mapping[str, Sequence[str]] | None = None,
    exclude: Sequence[str] | None = None,
    min_share: float = 0.0,
    higher_is_better: bool = True,
    row_ids: Sequence[Any] | None = None,
    permitted: Sequence[str] | None = None,
) -> Reasons:
    """The reasons of a scorecard by one of three methods, so that classic ones can be compared with those of GIG.

    Parameters
    ----------
    card : Scorecard
        Anything else is read by `Scorecard.read`.
    applicants : table
    method : "below maximum", "below average" or "gig"
        What an applicant's points are compared with, column by column: the most that the column can give, the average
        of the population, or the population itself, by GIG. For a sum of points the first two are GIG, too, with
        another reference; the record says which method it was.
    population : table or Reference, optional
        For "below average" a table of all applicants; for "gig" the reference, such as `references.approved` gives.
    top, statements, groups, exclude, min_share, higher_is_better, row_ids, permitted
        As in `reasons`; `higher_is_better` is whether many points are good for an applicant. By default the statements
        are the card's own reason codes, if it has any.

    Examples
    --------
    >>> import gigrad as gig
    >>> home, debt = {"own": 15, "rent": 5}, {"< 2": 30, ">= 2": 0}
    >>> card = gig.Scorecard.read({"home": home, "debt": debt})
    >>> found = gig.scorecard_reasons(card, [["rent", 3.0]], "below maximum")
    >>> found.method, [(r.feature, r.credit) for r in found[0].reasons]
    ('points below maximum', [('debt', -30.0), ('home', -10.0)])
    """
    if method not in METHODS:
        raise InputError(f"method must be one of {', '.join(map(repr, METHODS))}; got {method!r:.60}.")
    check_card(card)
    if method == "below maximum":
        if population is not None:
            raise InputError('method "below maximum" compares with the card alone; leave out population.')
        reference = best_points(card, higher_is_better=higher_is_better)
    elif population is None:
        raise InputError(f'method "{method}" needs a population: all applicants, or for "gig" a reference.')
    elif method == "below average":
        reference = average_points(card, population, higher_is_better=higher_is_better)
    else:
        reference = population
    return reasons(
        explain(card, applicants, reference), top, statements if statements is not None else card.reason_codes or None,
        groups, exclude, min_share, higher_is_better=higher_is_better, row_ids=row_ids, permitted=permitted,
    )  # fmt: skip
