"""Reference populations, as choices that are made on purpose and written down.

Whom an applicant is compared with decides which reasons come out. Each function here gives a `Reference`: rows, weights
and a line that says how they were chosen, which every output carries.

    all_applicants(X)                                           everybody
    approved(X, scores, cutoff, higher_is_better=...)           those at or beyond the passing score
    cutoff_band(X, scores, cutoff, width=..., ...)              those at or slightly beyond it
    nearest_approved(X, scores, cutoff, applicant, k, ...)      the k approved applicants most like one applicant
    best_points(card)                                           the best points of every column of a scorecard
    sample(reference, n, seed)                                  n rows drawn at random
    distill(reference, n)                                       n weighted rows that keep mean score and marginals
"""

from .nearest import nearest_approved
from .population import Reference, all_applicants, approved, best_points, cutoff_band
from .thin import distill, sample

__all__ = [
    "Reference",
    "all_applicants",
    "approved",
    "best_points",
    "cutoff_band",
    "distill",
    "nearest_approved",
    "sample",
]
