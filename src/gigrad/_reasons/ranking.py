"""Which credits count against an applicant, and in which order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from .._common import checks
from ..errors import InputError
from ..graph.node import Array
from ..references.direction import adverse_sign, checked_direction

ROUNDING = 1e-12
"""Credits closer than this share of the applicant's largest number are tied: their order would be rounding noise."""

TIE_RULE = (
    "larger loss first; losses within 1e-12 of the applicant's largest number are tied; of tied ones the larger range "
    "of credits first, then the order of the columns"
)


@dataclass(frozen=True)
class Rules:
    """The rules by which reasons are chosen from credits.

    Attributes
    ----------
    higher_is_better : bool
        Whether a high score is good for an applicant, so that negative credits count against the applicant.
    top : int
        How many reasons at most.
    min_share : float
        A reason explains at least this share of the applicant's shortfall.
    exclude : tuple of str
        Features or groups that are left out; each is recorded as `Excluded`.
    ranges : tuple of (str, float)
        For each feature or group, in the order of the columns, the range of its credits, which breaks ties.
    tie_rule : str
    """

    higher_is_better: bool
    top: int
    min_share: float
    exclude: tuple[str, ...]
    ranges: tuple[tuple[str, float], ...]
    tie_rule: str = TIE_RULE

    def __post_init__(self) -> None:
        object.__setattr__(self, "higher_is_better", checked_direction(self.higher_is_better))
        if not checks.is_number(self.min_share) or not 0 <= self.min_share <= 1:
            raise InputError(f"min_share must lie between 0 and 1; got {self.min_share!r}.")
        # Python's own numbers: NumPy's cannot be written to a record.
        object.__setattr__(self, "top", checks.whole(self.top, "top"))
        object.__setattr__(self, "min_share", float(self.min_share))
        unknown = [name for name in self.exclude if name not in self.features]
        if unknown:
            raise InputError(
                f"exclude must name features or groups that are ranked; {unknown[0]!r} is none of them. A member of a "
                "group cannot be excluded alone: exclude the group, or take it out of the group."
            )

    @cached_property
    def features(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.ranges)

    def as_record(self) -> dict[str, Any]:
        return {**asdict(self), "exclude": list(self.exclude), "ranges": dict(self.ranges)}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Rules:
        """The rules that an audit record was made with."""
        if record["tie_rule"] != TIE_RULE:
            raise InputError(f"The record's tie rule must be {TIE_RULE!r}; it is {record['tie_rule']!r}.")
        return cls(
            higher_is_better=record["higher_is_better"],
            top=record["top"],
            min_share=record["min_share"],
            exclude=tuple(record["exclude"]),
            ranges=tuple(record["ranges"].items()),
        )


@dataclass(frozen=True)
class Ranking:
    """What the rules chose for one applicant, as positions in `Rules.features`.

    Attributes
    ----------
    ranked : every feature that counts against the applicant, worst first, excluded or not
    chosen : the reasons
    shortfall : how much worse than the reference the applicant scores; negative if better
    settled : whether the credits' estimated error cannot change the reasons or their order
    """

    ranked: tuple[int, ...]
    chosen: tuple[int, ...]
    shortfall: float
    settled: bool


def choose(credits: Array, base: float, prediction: float, error: float, rules: Rules) -> Ranking:
    """Apply the rules to one applicant's credits, (features,)."""
    sign = adverse_sign(rules.higher_is_better)
    loss = sign * credits
    shortfall = sign * (prediction - base)
    noise = ROUNDING * max(float(np.abs(credits).max(initial=0.0)), abs(base), abs(prediction))
    ranked = order(loss, [size for _, size in rules.ranges], noise)
    wanted = rules.min_share * max(shortfall, 0.0)
    eligible = [j for j in ranked if rules.features[j] not in rules.exclude and loss[j] >= wanted]
    return Ranking(
        ranked=tuple(ranked),
        chosen=tuple(eligible[: rules.top]),
        shortfall=shortfall,
        settled=_settled(loss, eligible, rules.top, error),
    )


def order(loss: Array, ranges: Sequence[float], noise: float) -> list[int]:
    """The features that count against an applicant, by the tie rule; a loss within `noise` of 0 does not count."""
    falling = sorted((j for j in range(len(loss)) if loss[j] > noise), key=lambda j: (-loss[j], j))
    out: list[int] = []
    tied: list[int] = []
    for j in falling:
        if tied and loss[tied[-1]] - loss[j] > noise:
            out += _untied(tied, ranges)
            tied = []
        tied.append(j)
    return out + _untied(tied, ranges)


def _untied(tied: list[int], ranges: Sequence[float]) -> list[int]:
    # Twelve digits: a range is a difference of credits and carries their rounding.
    return sorted(tied, key=lambda j: (-float(f"{ranges[j]:.12g}"), j))


def _settled(loss: Array, eligible: Sequence[int], top: int, error: float) -> bool:
    """Whether all neighbours in the ranking, up to the first feature left out, differ by more than twice the error."""
    compared = [float(loss[j]) for j in eligible[: top + 1]]
    if error == 0.0:
        return True
    return all(a - b > 2.0 * error for a, b in pairwise(compared))


def credit_ranges(credits: Array) -> Array:
    """The range of each feature's credits over the explained rows, (features,)."""
    if len(credits) == 0:
        return np.zeros(credits.shape[1])
    out: Array = np.ptp(credits, axis=0)
    return out
