"""The keywords of `gigrad.reasons` that tables, Spark, the service and the command line have too, in one object.

A new option is a parameter of `gigrad.reasons`, a field of `ReasonOptions` and, with its type, a key of
`ReasonKeywords`; if it can be typed in a command, one line in `cli/options.py` lists the commands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypedDict

from .keywords import spelled_out, typed


class ReasonKeywords(TypedDict, total=False):
    """The types of the keywords, for type checkers and editors; defaults are those of `ReasonOptions`."""

    top: int
    statements: Any
    groups: Mapping[str, Sequence[str]] | None
    exclude: Sequence[str] | None
    min_share: float
    higher_is_better: bool | None
    permitted: Sequence[str] | None


@dataclass(frozen=True, eq=False)
class ReasonOptions:
    """How reasons are chosen and worded; the attributes are documented as parameters of `gigrad.reasons`."""

    top: int = field(default=4, metadata=typed("Largest number of reasons for each applicant (4)"))
    statements: Any = field(default=None, metadata=typed("A CSV or TOML file of reason texts and codes"))
    groups: Mapping[str, Sequence[str]] | None = None
    exclude: Sequence[str] | None = field(
        default=None, metadata=typed("A feature or group that must not be given as a reason")
    )
    min_share: float = field(default=0.0, metadata=typed("Smallest share of the shortfall that counts as a reason (0)"))
    higher_is_better: bool | None = field(default=None, metadata=typed("Whether a high score is favourable"))
    permitted: Sequence[str] | None = field(
        default=None,
        metadata=typed("A column that may be used although its name suggests a prohibited basis, such as age or sex"),
    )


takes_reason_options = spelled_out(ReasonOptions, ReasonKeywords.__annotations__)
"""Show the keywords of `ReasonOptions` in the signature of a function that takes them as `**options`."""
