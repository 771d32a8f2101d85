"""One applicant's reasons from plain numbers: the code shared by `reasons` and `replay_reasons`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .ranking import Ranking, Rules, choose
from .statements import Statement, pick_statement, read_statements


@dataclass(frozen=True)
class Reason:
    """One reason.

    Attributes
    ----------
    rank : int
        1 is the principal reason.
    code, statement : str or None
        What the letter says; None where no statement's conditions hold.
    feature : str
        A feature, or a group of them.
    credit : float
        Its part of the difference between the applicant's score and the reference's.
    share : float or None
        Its part of the shortfall. Shares sum to 1 over all features, including those in the applicant's favour, so a
        single one may exceed 1. None where the applicant scores no worse than the reference.
    value : number, text, bool, dict or None
        The applicant's value; of a group, a dict of its members' values. None is missing.
    typical : number, text, bool, dict or None
        The reference's typical value: weighted median or mode.
    """

    rank: int
    code: str | None
    statement: str | None
    feature: str
    credit: float
    share: float | None
    value: Any
    typical: Any


@dataclass(frozen=True)
class Excluded:
    """A feature or group that was excluded from the reasons, and the rank that it would have had.

    Attributes
    ----------
    feature : str
    credit : float
    share : float or None
    would_rank : int or None
        Its rank among all that counts against the applicant; None where it does not count against the applicant.
    principal : bool
        Whether it would have been one of the reasons.
    """

    feature: str
    credit: float
    share: float | None
    would_rank: int | None
    principal: bool


@dataclass(frozen=True)
class ApplicantReasons:
    """Why one applicant scores below the reference.

    Attributes
    ----------
    row_id : int, float, bool or str
    prediction, base : float
        The applicant's score and the reference's.
    shortfall : float
        How much worse the applicant scores than the reference; negative if better.
    reasons : tuple of Reason
    excluded : tuple of Excluded
    against : int
        How many features or groups count against the applicant, listed or not.
    gap, error : float
        Those of the explanation: the part of the score missing from the credits, and the largest error of a credit.
    settled : bool
        False where that error could change the choice or order of the reasons.
    """

    row_id: Any
    prediction: float
    base: float
    shortfall: float
    reasons: tuple[Reason, ...]
    excluded: tuple[Excluded, ...]
    against: int
    gap: float
    error: float
    settled: bool

    def as_record(self) -> dict[str, Any]:
        """Plain dicts and lists, ready for JSON."""
        listed = {"reasons": [dict(vars(r)) for r in self.reasons], "excluded": [dict(vars(x)) for x in self.excluded]}
        return {**vars(self), **listed}

    def __str__(self) -> str:
        from .output import applicant_text

        return applicant_text(self)


@dataclass(frozen=True)
class Case:
    """The data of one applicant: credits by feature or group in the order of the columns, scores, values by column."""

    row_id: Any
    credits: Mapping[str, float]
    prediction: float
    base: float
    gap: float
    error: float
    values: Mapping[str, Any]


@dataclass(frozen=True)
class Context:
    """The data common to all applicants: rules, statements, members of groups, the reference's typical values."""

    rules: Rules
    statements: tuple[Statement, ...]
    groups: Mapping[str, tuple[str, ...]]
    typical: Mapping[str, Any]

    def as_record(self) -> dict[str, Any]:
        """What an audit record keeps of it."""
        return {
            "rules": self.rules.as_record(),
            "statements": [s.as_record() for s in self.statements],
            "groups": {name: list(members) for name, members in self.groups.items()},
            "typical": dict(self.typical),
        }

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Context:
        """The context that an audit record was made with."""
        return cls(
            rules=Rules.from_record(record["rules"]),
            statements=read_statements(record["statements"]),
            groups={name: tuple(members) for name, members in record["groups"].items()},
            typical=record["typical"],
        )

    def look_up(self, values: Mapping[str, Any], feature: str) -> Any:
        """A feature's value, or a dict of a group's values."""
        if feature in self.groups:
            return {member: values.get(member) for member in self.groups[feature]}
        return values.get(feature)


def reasons_of(case: Case, context: Context) -> ApplicantReasons:
    """The reasons of one applicant."""
    credits = np.array(list(case.credits.values()), dtype=np.float64)
    ranking = choose(credits, case.base, case.prediction, case.error, context.rules)
    return ApplicantReasons(
        row_id=case.row_id,
        prediction=case.prediction,
        base=case.base,
        shortfall=ranking.shortfall,
        reasons=tuple(_reason(case, context, ranking, rank, j) for rank, j in enumerate(ranking.chosen, start=1)),
        excluded=tuple(_excluded(case, context, ranking, name) for name in context.rules.exclude),
        against=len(ranking.ranked),
        gap=case.gap,
        error=case.error,
        settled=ranking.settled,
    )


def _reason(case: Case, context: Context, ranking: Ranking, rank: int, j: int) -> Reason:
    """One principal reason: its statement, share of the decline, and the values that it is about."""
    feature = context.rules.features[j]
    credit = case.credits[feature]
    value, typical = context.look_up(case.values, feature), context.look_up(context.typical, feature)
    said = pick_statement(context.statements, feature, credit, value, typical)
    return Reason(
        rank=rank,
        code=said.code if said else None,
        statement=said.statement if said else None,
        feature=feature,
        credit=credit,
        share=_share(case, ranking, credit),
        value=value,
        typical=typical,
    )


def _excluded(case: Case, context: Context, ranking: Ranking, feature: str) -> Excluded:
    """A feature that may not be a reason, and the rank that it would have had."""
    names = [context.rules.features[j] for j in ranking.ranked]
    rank = names.index(feature) + 1 if feature in names else None
    credit = case.credits[feature]
    return Excluded(
        feature=feature,
        credit=credit,
        share=_share(case, ranking, credit),
        would_rank=rank,
        principal=rank is not None and rank <= context.rules.top,
    )


def _share(case: Case, ranking: Ranking, credit: float) -> float | None:
    return credit / (case.prediction - case.base) if ranking.shortfall > 0 else None
