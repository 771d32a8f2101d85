"""The reference itself, and the populations that the rules name: all applicants, the approved, the cutoff band."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .._common import checks
from ..errors import InputError
from ..graph.node import Array
from .direction import checked_direction, passing
from .plain import count_rows, take_rows


@dataclass(frozen=True, eq=False)
class Reference:
    """A population that scores are explained against, and how it was chosen.

    Pass it to `gigrad.explain` or `gigrad.Explainer` in place of a table.

    Attributes
    ----------
    rows : table
        The m reference rows, in the form in which they were given.
    weights : (m,) array
        Not negative, summing to 1.
    provenance : str
        One line that says who these rows are; it is part of every output.
    scores : (m,) array or None
        The rows' scores, where they were given.
    higher_is_better : bool or None
        Whether a high score is good for an applicant. None where no score was involved.
    cutoff : float or None
        The passing score, where one was used.
    quality : mapping of str to float
        How well a distilled reference represents the whole one (see `distill`); empty elsewhere.
    method : str
        The name of the scorecard method that credits against it amount to: "points below maximum" or "points below
        average". Empty elsewhere.

    Examples
    --------
    >>> import gigrad as gig
    >>> X, risk = [[1.0], [2.0], [3.0]], [0.1, 0.2, 0.9]
    >>> reference = gig.references.approved(X, risk, 0.5, higher_is_better=False, min_rows=1)
    >>> reference.provenance
    'approved applicants: 2 of 3 rows with score <= 0.5 (lower is better)'
    >>> reference.weights, reference.passes([0.4, 0.6])
    (array([0.5, 0.5]), array([ True, False]))
    """

    rows: Any
    weights: Array
    provenance: str
    scores: Array | None = None
    higher_is_better: bool | None = None
    cutoff: float | None = None
    quality: Mapping[str, float] = field(default_factory=dict)
    method: str = ""

    def __post_init__(self) -> None:
        size = _some_rows(self.rows, "A reference")
        object.__setattr__(self, "weights", checks.weights(self.weights, size, "reference row"))
        if self.higher_is_better is not None:
            object.__setattr__(self, "higher_is_better", checked_direction(self.higher_is_better))
        self.weights.setflags(write=False)
        if self.scores is not None:
            object.__setattr__(self, "scores", checked_scores(self.scores, size))

    def __len__(self) -> int:
        return len(self.weights)

    def __repr__(self) -> str:
        return f"Reference({len(self)} rows: {self.provenance})"

    @property
    def mean_score(self) -> float | None:
        """The weighted mean of the scores; None where there are none."""
        return None if self.scores is None else float(self.weights @ self.scores)

    def passes(self, scores: Any) -> Any:
        """Which scores pass this reference's cutoff, (n,) bool; at the cutoff itself a score passes."""
        if self.cutoff is None or self.higher_is_better is None:
            raise InputError("This reference has no cutoff: it was not built from approved applicants.")
        try:
            numbers = np.asarray(scores, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError(f"scores must be numbers; got {scores!r:.60}.") from None
        return passing(numbers, self.cutoff, self.higher_is_better)

    def take(self, index: Any, weights: Any, provenance: str, quality: Mapping[str, float] | None = None) -> Reference:
        """A reference of some rows of this one, with new weights and a new description."""
        index = np.asarray(index, dtype=np.int64)
        scores = None if self.scores is None else self.scores[index]
        rows = take_rows(self.rows, index)
        return replace(
            self, rows=rows, weights=weights, scores=scores, provenance=provenance, quality=quality or {}, method=""
        )


def all_applicants(
    X: Any, weights: Any = None, *, scores: Any = None, higher_is_better: bool | None = None
) -> Reference:
    """Everybody in a table.

    Parameters
    ----------
    X : table, (m, p)
    weights : (m,) array, optional
        Equal by default.
    scores : (m,) array, optional
        The rows' scores, which let `distill` keep their mean.
    higher_is_better : bool, optional
        Whether a high score is good for an applicant; `reasons` needs it from here or as its own argument.

    Examples
    --------
    >>> import gigrad as gig
    >>> gig.references.all_applicants([[1.0], [2.0]])
    Reference(2 rows: all applicants: 2 rows)
    """
    size = _some_rows(X, "X")
    line = f"all applicants: {size:,} rows{_weighted(weights)}"
    return Reference(X, checks.weights(weights, size, "reference row"), line, scores, higher_is_better)


def approved(
    X: Any, scores: Any, cutoff: float, *, higher_is_better: bool, weights: Any = None, min_rows: int = 10
) -> Reference:
    """Those who pass: at or above the cutoff if a higher score is better, at or below it if a lower one is.

    Parameters
    ----------
    X : table, (m, p)
    scores : (m,) array
        One score a row, in the direction of the output that is going to be explained.
    cutoff : float
        The passing score; a score equal to it passes.
    higher_is_better : bool
        True for points or a probability of repayment, False for a probability of default.
    weights : (m,) array, optional
        Equal by default.
    min_rows : int
        Fewer approved rows than this are refused.

    Examples
    --------
    >>> import gigrad as gig
    >>> X, points = [[1.0], [2.0], [3.0]], [500, 610, 700]
    >>> gig.references.approved(X, points, 600, higher_is_better=True, min_rows=1)
    Reference(2 rows: approved applicants: 2 of 3 rows with score >= 600 (higher is better))
    """
    whole = _scored(X, scores, weights, cutoff, higher_is_better)
    keep = _passing_rows(_scores(whole), cutoff, higher_is_better)
    line = (
        f"approved applicants: {len(keep):,} of {len(whole):,} rows with {_rule(cutoff, higher_is_better)}"
        f"{_weighted(weights)}"
    )
    return _kept(whole, keep, line, min_rows, "Choose another cutoff, give more rows, or lower min_rows.")


def cutoff_band(
    X: Any,
    scores: Any,
    cutoff: float,
    *,
    width: float,
    higher_is_better: bool,
    weights: Any = None,
    min_rows: int = 10,
) -> Reference:
    """Those at or slightly beyond the passing score: within `width` of the cutoff, on its passing side.

    Both ends count: cutoff <= score <= cutoff + width if a higher score is better, cutoff - width <= score <= cutoff
    if a lower one is.

    Parameters
    ----------
    X, scores, cutoff, higher_is_better, weights, min_rows
        As in `approved`.
    width : float
        Positive, in the units of the scores, whichever direction is better.

    Examples
    --------
    >>> import gigrad as gig
    >>> X, points = [[1.0], [2.0], [3.0]], [500, 610, 700]
    >>> settings = {"width": 20, "higher_is_better": True, "min_rows": 1}
    >>> gig.references.cutoff_band(X, points, 600, **settings).rows
    array([[2.]])
    """
    if not checks.is_number(width) or not 0 < width < np.inf:
        raise InputError(
            f"width must be a positive number, whichever direction is better; got {width!r}. higher_is_better says "
            "on which side of the cutoff the band lies."
        )
    whole = _scored(X, scores, weights, cutoff, higher_is_better)
    passed = _passing_rows(_scores(whole), cutoff, higher_is_better)
    keep = passed[np.abs(_scores(whole)[passed] - cutoff) <= width]
    low, high = (cutoff, cutoff + width) if higher_is_better else (cutoff - width, cutoff)
    line = (
        f"applicants at or slightly beyond the cutoff: {len(keep):,} of {len(whole):,} rows with "
        f"{low:.6g} <= score <= {high:.6g}, {_better(higher_is_better)}{_weighted(weights)}"
    )
    return _kept(whole, keep, line, min_rows, "Widen the band or lower min_rows.")


def checked_scores(scores: Any, rows: int) -> Array:
    """One finite score a row."""
    try:
        array = np.asarray(scores, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("scores must be numbers, one a row.") from None
    if array.shape == (rows, 1):
        array = array[:, 0]
    if array.shape != (rows,):
        hint = " Take the column of the class you decide by." if array.ndim == 2 else ""
        raise InputError(f"scores must have one number a row, {rows}; their shape is {array.shape}.{hint}")
    if not np.isfinite(array).all():
        raise InputError("scores must be finite; some are NaN or infinite.")
    return array


def _scored(X: Any, scores: Any, weights: Any, cutoff: float, higher_is_better: bool) -> Reference:
    """All rows as a Reference with scores, cutoff and direction, after checking them."""
    size = _some_rows(X, "X")
    if not checks.is_number(cutoff) or not np.isfinite(cutoff):
        raise InputError(f"cutoff must be a finite number; got {cutoff!r}.")
    direction = checked_direction(higher_is_better)
    shares = checks.weights(weights, size, "reference row")
    return Reference(X, shares, "", checked_scores(scores, size), direction, float(cutoff))


def _some_rows(table: Any, what: str) -> int:
    """How many rows a table has: one or more."""
    size = count_rows(table, what)
    if size == 0:
        raise InputError(f"{what} must have at least one row; it is empty.")
    return size


def _passing_rows(scores: Array, cutoff: float, higher_is_better: bool) -> Any:
    """The positions of the rows that pass; an InputError with the range of the scores if none does."""
    index = np.flatnonzero(passing(scores, cutoff, higher_is_better))
    if not len(index):
        raise InputError(
            f"Nobody passes: no score satisfies {_rule(cutoff, higher_is_better)}, the {len(scores)} scores lie "
            f"between {scores.min():.6g} and {scores.max():.6g}. Check the cutoff's scale and higher_is_better."
        )
    return index


def _kept(whole: Reference, index: Any, line: str, min_rows: int, advice: str) -> Reference:
    """The rows of a reference at `index`, which must be enough."""
    if len(index) < checks.whole(min_rows, "min_rows", least=0):
        raise InputError(
            f"A reference needs at least min_rows={min_rows} rows to be typical of anybody; got {len(index)} "
            f"({line}). {advice}"
        )
    return whole.take(index, whole.weights[index], line)


def _scores(reference: Reference) -> Array:
    if reference.scores is None:
        raise InputError("This reference has no scores.")
    return reference.scores


def _rule(cutoff: float, higher_is_better: bool) -> str:
    return f"score {'>=' if higher_is_better else '<='} {cutoff:.6g} ({_better(higher_is_better)})"


def _better(higher_is_better: bool) -> str:
    return "higher is better" if higher_is_better else "lower is better"


def _weighted(weights: Any) -> str:
    return "" if weights is None else ", weighted"
