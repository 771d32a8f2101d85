"""Warnings about reasons that are probably, but not provably, mistaken:

- The explained rows score on the better side: rows and reference may be swapped, or the direction reversed.
- One text without a condition is given above and below the typical value: it contradicts one of the two.
- The model uses a column that is named like something which may not be a reason to refuse anybody.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from .._common import checks
from .._explain.explanation import Explanation
from ..errors import InputError, ReasonsWarning, StatementWarning, warn
from ..references.direction import adverse_sign, passing
from .case import ApplicantReasons
from .statements import Statement

MOST_BETTER = 0.9
"""Warn if a larger share of rows scores better than the reference: of a population explained against itself, 50 to 70 %
score better than its mean."""

PROHIBITED = (
    "sex", "gender", "race", "ethnicity", "ethnic", "color", "colour", "religion", "religious", "nationality",
    "national origin", "foreign worker", "marital", "maritalstatus", "married", "marriage", "pregnant", "pregnancy",
    "age", "birth", "birthday", "birthdate", "birthyear", "dateofbirth", "dob", "yob", "male", "female", "disability",
    "disabled", "public assistance", "sexual orientation",
)  # fmt: skip
"""Column names, in whole words, of the bases prohibited by the Equal Credit Opportunity Act and similar laws."""

_OF_THINGS = frozenset({
    "account", "accounts", "bureau", "building", "business", "car", "card", "company", "credit", "debt", "employment",
    "file", "firm", "history", "home", "house", "job", "loan", "newest", "oldest", "property", "relationship", "trade",
    "tradeline", "vehicle",
})  # fmt: skip
"""Words beside which an age is not that of a person."""

_OF_PEOPLE = frozenset({
    "applicant", "borrower", "client", "customer", "debtor", "guarantor", "owner", "person", "spouse",
})  # fmt: skip
"""Words in front of an age that make it that of a person, whatever else the name says: "loan_applicant_age"."""


def warn_of_scores(e: Explanation, higher_is_better: bool, asked: bool) -> None:
    """Warn if most explained rows pass the cutoff, or score better than the reference, and so need no reasons.

    If the reference has a cutoff and a direction and the caller gives a direction too (`asked`), approved applicants
    are explained on purpose (see `reasons`).
    """
    reference = e.provenance.get("reference", {})
    size = len(e)
    if not size:
        return
    if reference.get("cutoff") is not None and reference.get("cutoff_in_output_units"):
        passed = int(passing(e.predictions, reference["cutoff"], higher_is_better).sum())
        if 2 * passed > size and not asked:
            warn(
                f"{passed} of the {size} explained rows pass the reference's cutoff, {reference['cutoff']:.6g}; "
                "reasons are for those who do not. Is higher_is_better reversed, or were approved rows explained?",
                ReasonsWarning,
            )
        return
    ahead = (e.base_values - e.predictions) * adverse_sign(higher_is_better)
    better = int((ahead > 0).sum())
    if better >= MOST_BETTER * size and (reference.get("higher_is_better") is None or not asked):
        warn(
            f"{better} of the {size} explained rows score better than the reference they are compared with, by "
            f"{np.mean(ahead):.3g} on average; reasons are for those who score worse. Are the rows and the reference "
            "swapped, or is higher_is_better reversed?",
            ReasonsWarning,
        )


def warn_of_texts(applicants: Iterable[ApplicantReasons], statements: Sequence[Statement]) -> None:
    """Warn of texts without conditions that were given for values above and below the typical one."""
    loose = {(s.feature, s.statement, s.code): s.column for s in statements if not s.reads_value}
    sides: dict[tuple[str, str], set[bool]] = {}
    for reason in (r for a in applicants for r in a.reasons):
        if reason.statement is None or (reason.feature, reason.statement, reason.code) not in loose:
            continue
        column = loose[reason.feature, reason.statement, reason.code]
        value, typical = (_of(v, column) for v in (reason.value, reason.typical))
        if value is not None and typical is not None and value != typical:
            sides.setdefault((reason.feature, reason.statement), set()).add(value > typical)
    found = [key for key, both in sides.items() if len(both) == 2]
    if found:
        texts = "; ".join(f"{text!r} for {feature!r}" for feature, text in found[:4])
        warn(
            f"One text is given to applicants above the typical value and to others below it: {texts}"
            f'{" and others" if len(found) > 4 else ""}. Make one for each side (than_typical = "higher" or '
            '"lower"), or say that it fits both (than_typical = "either").',
            StatementWarning,
        )


def _of(value: Any, column: str | None) -> float | None:
    if isinstance(value, Mapping):
        value = None if column is None else value.get(column)
    return float(value) if checks.is_number(value) else None


def warn_of_columns(used: Iterable[str], known: Sequence[str], permitted: Sequence[str] | None) -> None:
    """Warn of columns that the model uses and that are named like a prohibited basis, unless they are permitted."""
    if isinstance(permitted, str) or not isinstance(permitted, (Iterable, type(None))):
        raise InputError(f"permitted must be a list of columns; got {permitted!r}.")
    allowed = set(permitted or ())
    if unknown := sorted(map(str, allowed - set(known))):
        raise InputError(f"permitted must name columns of the model; {unknown[0]!r} is not one.")
    found = [name for name in used if name not in allowed and is_prohibited(name)]
    if found:
        warn(
            f"The model uses columns that are named like a prohibited basis: {', '.join(map(repr, found))}. In most "
            f"places none may count against an applicant. If this is intended, pass permitted={found!r}, or "
            "--permitted on the command line.",
            ReasonsWarning,
        )


def is_prohibited(name: str) -> bool:
    """Whether a column is named like a prohibited basis, in whole words: "mortgage" and "percentage" are not ages."""
    words = re.findall(r"[a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", str(name)).lower())
    said = f" {' '.join(words)} "
    found = {basis for basis in PROHIBITED if f" {basis} " in said}
    return bool(found - {"age"}) or ("age" in found and _is_of_a_person(words))


def _is_of_a_person(words: Sequence[str]) -> bool:
    """Whether the age in a name is that of a person: "age_at_loan" is, "account_age_at_loan" and "car_age" are not."""
    before, _, after = ("", *words, "")[words.index("age") :][:3]
    timed = after in ("at", "when") and before not in _OF_THINGS
    return before in _OF_PEOPLE or timed or not _OF_THINGS & set(words)
