"""How many references are enough: rows explained until their reasons are settled."""

from __future__ import annotations

from typing import Any

from .._common.progress import shown, wanted
from .._explain.explainer import Explainer
from .._io.tables import read_rows, under_names
from ..configuration import config
from .settler import Settled, Settler

TIE = 0.05
"""Credits that differ by less than this share of the row's largest are tied, unless the caller says otherwise."""


def settle(
    explainer: Explainer,
    X: Any,
    *,
    confidence: float = 0.99,
    top: int = 4,
    tie: float = TIE,
    higher_is_better: bool | None = None,
    seed: int = 0,
    progress: bool | None = None,
) -> Settled:
    """Explain rows against references drawn at random, until it is certain enough which reasons are the largest.

    With the given confidence, the reasons of a row, its `top` most adverse credits, are those that the whole reference
    would give: no omitted credit exceeds a given one by more than a tie. Their order is not guaranteed. Rows whose
    reasons are too close to call are explained against all references.

    The result is an estimate, for looking at many rows; it is not what `verify_reasons` compares an audit record with.
    A letter should be based on all references.

    Parameters
    ----------
    explainer : Explainer
        Of one output, with a reference of a few thousand rows; up to about 170 nothing is saved for a link over trees,
        such as a probability, and up to about 340 for other models.
    X : table
    confidence : float
        For each row, whenever its drawing stops; 1 uses all references.
    top : int
        How many reasons.
    tie : float
        Credits that differ by less than this share of the row's largest are tied, and either may be given; 0 for none.
    higher_is_better : bool, optional
        Which direction is adverse; by default as the reference says.
    seed : int
        Of the order in which references are drawn: the same for all rows, so that a row does not depend on the others.
    progress : bool, optional
        Whether to show how far the work is, if it takes longer than two seconds; by default as `gigrad.config.progress`
        says.

    Notes
    -----
    Bounds are Student's, corrected for a finite population, and hold together over all comparisons and all times at
    which the drawing may stop, by a union bound. They assume that means of about a hundred residuals or more are
    normal, which no sample can prove: for 12 loans of Lending Club against 2,000 others, in 40 random orders, at most
    1 % of the answers had wrong reasons. For a link over trees, credits are estimated by regression on those in margin
    space, which are fast to compute against many more references. For a sum of trees in margin space nothing is gained.

    Examples
    --------
    >>> import gigrad as gig
    >>> found = gig.settle(gig.Explainer(model, approved), X.head(3), confidence=1)
    >>> found.references.tolist()
    [579, 579, 579]
    """
    settler = Settler.of(explainer, confidence, top, tie, higher_is_better, seed)
    graph, known = explainer.scorer.graph, explainer.reference.names
    rows = under_names(read_rows(X, graph, what="X"), known, graph, what="X", other="the reference")
    with shown(wanted(progress, config.progress), "settling", len(rows)):
        return settler(rows)
