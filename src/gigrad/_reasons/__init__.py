"""Adverse-action reasons: which variables counted against an applicant, in words, with a record that can be examined.

    ranking.py      which credits count against an applicant, and in which order
    statements.py   from a variable to the text and code that a letter gives
    build.py        `reasons(explanation, ...)`: the two joined, for every applicant
    classic.py      `scorecard_reasons(card, ...)`: points below maximum, points below average, and GIG
    doubts.py       warnings about likely mistakes
    audit.py        the record of one applicant's reasons, and the same reasons recomputed from it
    output.py       tables, JSON, text

Nothing here uses the model: the only input is an Explanation.
"""

from .audit import replay_reasons
from .build import ApplicantReasons, Excluded, Reason, Reasons, reasons
from .statements import Statement

__all__ = ["ApplicantReasons", "Excluded", "Reason", "Reasons", "Statement", "reasons", "replay_reasons"]
