"""Reference populations, chosen explicitly and recorded.

The reasons depend on whom an applicant is compared with. Each function here returns a `Reference`: rows, weights and a
one-line description of how they were chosen, which is part of every output.

    all_applicants(X)                                           everybody
    approved(X, scores, cutoff, higher_is_better=...)           those at or beyond the passing score
    cutoff_band(X, scores, cutoff, width=..., ...)              those at or slightly beyond it
    nearest_approved(X, scores, cutoff, applicant, k, ...)      the k approved applicants most like one applicant
    best_points(card)                                           the best points of every column of a scorecard
    average_points(card, X)                                     everybody, for a scorecard: points below average
    sample(reference, n, seed)                                  n rows drawn at random
    distill(reference, n)                                       n weighted rows that keep mean score and marginals
"""

from .nearest import nearest_approved
from .population import Reference, all_applicants, approved, cutoff_band
from .scorecards import average_points, best_points
from .thin import distill, sample

__all__ = [
    "Reference",
    "all_applicants",
    "approved",
    "average_points",
    "best_points",
    "cutoff_band",
    "distill",
    "nearest_approved",
    "sample",
]
