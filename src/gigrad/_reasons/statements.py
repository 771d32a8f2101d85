"""From a variable to the text and code that a letter gives, with conditions on the applicant's value.

Statements are a dict, or a TOML file of the same shape, or a CSV file with one statement a line:

    {"duration_months": "Term of the loan is too long",
     "savings": {"code": "S1", "statement": "Insufficient savings"},
     "bank_years": [{"code": "B1", "statement": "No bank relationship", "value": "missing"},
                    {"code": "B2", "statement": "Bank relationship too short", "below": 2},
                    {"code": "B9", "statement": "Length of bank relationship"}]}

The first statement whose conditions all hold is taken; one without conditions always holds. Conditions:

    sign           "+" or "-": the sign of the credit, in the score that was explained
    value          "missing" or "present"
    at_least, below   the band at_least <= value < below; either may be left out
    equals         a value, or a list of them (in CSV separated by "|")
    than_typical   "higher" or "lower" than the reference's typical value; "either" says that the text fits both
    column         of a group: the member whose value is meant
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from os import PathLike
from pathlib import Path
from typing import Any

from ..errors import InputError, kind_of

_SIGNS = {"+": "+", "-": "-", "positive": "+", "negative": "-"}


@dataclass(frozen=True)
class Statement:
    """The text and code for a feature or group that is a reason, and the conditions for using them (see the module)."""

    feature: str
    statement: str
    code: str | None = None
    sign: str | None = None
    value: str | None = None
    at_least: float | None = None
    below: float | None = None
    equals: tuple[Any, ...] = ()
    than_typical: str | None = None
    column: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.statement, str) or not self.statement.strip():
            raise InputError(f"The statement for {self.feature!r} must be a text; got {self.statement!r}.")
        for name, allowed in (("value", ("missing", "present")), ("than_typical", ("higher", "lower", "either")),
                              ("sign", ("+", "-"))):  # fmt: skip
            if getattr(self, name) not in (None, *allowed):
                raise InputError(
                    f"{name} in a statement for {self.feature!r} must be {' or '.join(map(repr, allowed))}; "
                    f"got {getattr(self, name)!r}."
                )
        if self.at_least is not None and self.below is not None and not self.at_least < self.below:
            raise InputError(
                f"A band for {self.feature!r} must have at_least < below; got {self.at_least} and {self.below}."
            )
        if self.value == "missing" and (self._reads_size or self.than_typical in ("higher", "lower")):
            raise InputError(
                f"A statement for {self.feature!r} with value = 'missing' must have no condition on the size of the "
                "value, such as at_least or than_typical; it has one."
            )

    @property
    def reads_value(self) -> bool:
        """Whether a condition depends on the applicant's value."""
        return self._reads_size or self.than_typical is not None

    @property
    def _reads_size(self) -> bool:
        return bool(self.equals) or not (self.at_least is None and self.below is None)

    def holds(self, credit: float, value: Any, typical: Any) -> bool:
        """Whether every condition holds for an applicant's value (None where it is missing)."""
        if self.sign is not None and (credit > 0) != (self.sign == "+"):
            return False
        if self.value is not None and (value is None) != (self.value == "missing"):
            return False
        if not self.reads_value or (self.than_typical == "either" and not self._reads_size):
            return True
        if value is None or (self.equals and not any(_same(value, label) for label in self.equals)):
            return False
        if self.at_least is not None and not (_is_number(value) and value >= self.at_least):
            return False
        if self.below is not None and not (_is_number(value) and value < self.below):
            return False
        if self.than_typical in (None, "either"):
            return True
        if not (_is_number(value) and _is_number(typical)):
            return False
        return bool(value > typical if self.than_typical == "higher" else value < typical)

    def as_record(self) -> dict[str, Any]:
        """The conditions and texts that are set, for the audit record; `read_statements` reads them back."""
        record = {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) not in (None, ())}
        return {**record, "equals": list(self.equals)} if self.equals else record


def read_statements(source: Any) -> tuple[Statement, ...]:
    """The statements in a dict, a list of dicts, or the path of a CSV or TOML file; none for None."""
    if source is None:
        return ()
    if isinstance(source, (str, PathLike)):
        return _read_file(Path(source))
    if isinstance(source, Mapping):
        return tuple(_of_entry(feature, entry) for feature, entries in source.items() for entry in _listed(entries))
    if isinstance(source, Sequence):
        return tuple(s if isinstance(s, Statement) else _of_line(s) for s in source)
    raise InputError(f"statements must be a dict or the path of a CSV or TOML file; got {kind_of(source)}.")


def check_statements(statements: Iterable[Statement], groups: Mapping[str, Sequence[str]]) -> None:
    """Raise if a condition on a group does not name the member that it is about, or names a column outside of it."""
    for s in statements:
        members = groups.get(s.feature)
        if members is None and s.column not in (None, s.feature):
            raise InputError(
                f"column may be given for groups only; {s.feature!r} is not a group, and column is {s.column!r}."
            )
        if members is not None and s.column is not None and s.column not in members:
            raise InputError(f"column must be a member of the group {s.feature!r}; got {s.column!r}.")
        if members is not None and s.column is None and (s.reads_value or s.value is not None):
            raise InputError(
                f"A condition on the value of the group {s.feature!r} must say which member is meant: "
                f"column = one of {', '.join(map(repr, members))}."
            )


def pick_statement(
    statements: Iterable[Statement], feature: str, credit: float, value: Any, typical: Any
) -> Statement | None:
    """The first statement for a feature whose conditions hold, or None; the values of a group are dicts by member."""
    for s in statements:
        if s.feature != feature:
            continue
        own, usual = (value, typical) if s.column is None else (_member(value, s.column), _member(typical, s.column))
        if s.holds(credit, own, usual):
            return s
    return None


def _member(value: Any, column: str) -> Any:
    return value.get(column) if isinstance(value, dict) else value


def _read_file(path: Path) -> tuple[Statement, ...]:
    """The statements in a CSV or TOML file."""
    suffix = path.suffix.lower()
    if suffix not in (".csv", ".toml"):
        raise InputError(f"statements must be a .csv or .toml file; got {path.name!r}.")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"The statements in {path} cannot be read: {error}.") from None
    if suffix == ".toml":
        import tomllib

        try:
            return read_statements(tomllib.loads(text))
        except tomllib.TOMLDecodeError as error:
            raise InputError(f"{path} is not a TOML file: {error}.") from None
    import csv

    reader = csv.DictReader(text.splitlines(keepends=True), restkey="(more cells than columns)")
    absent = {"feature", "statement"} - set(reader.fieldnames or ())
    if absent:
        raise InputError(f"{path} must have the columns 'feature' and 'statement'; {sorted(absent)[0]!r} is missing.")
    return tuple(_of_csv({k: v for k, v in line.items() if v not in (None, "")}) for line in reader)


def _of_csv(line: dict[str, Any]) -> Statement:
    return _of_line({**line, "equals": line["equals"].split("|")} if "equals" in line else line)


def _listed(entries: Any) -> list[Any]:
    return list(entries) if isinstance(entries, list) else [entries]


def _of_entry(feature: str, entry: Any) -> Statement:
    """One statement of the dict form: a text, or the conditions, code and text as a dict."""
    if isinstance(entry, str):
        return Statement(str(feature), entry)
    if isinstance(entry, Mapping):
        return _of_line({**entry, "feature": feature})
    raise InputError(
        f"A statement for {feature!r} must be a text, or a dict with 'statement' and perhaps 'code' and conditions; "
        f"got {kind_of(entry)}."
    )


def _of_line(line: Any) -> Statement:
    """A statement from a line of a table or file, with its fields checked."""
    if not isinstance(line, Mapping) or "feature" not in line or "statement" not in line:
        raise InputError(f"A statement needs a 'feature' and a 'statement'; got {line!r}.")
    known = {f.name for f in fields(Statement)}
    unknown = sorted(str(key) for key in line if key not in known)
    if unknown:
        raise InputError(
            f"A statement for {line['feature']!r} may have {', '.join(sorted(known))}; got {unknown[0]!r}."
        )
    made = dict(line)
    made["feature"] = str(line["feature"])
    if made.get("code") is not None:
        made["code"] = str(made["code"])
    if isinstance(made.get("sign"), str):
        made["sign"] = _SIGNS.get(made["sign"], made["sign"])
    for bound in ("at_least", "below"):
        if made.get(bound) is not None:
            made[bound] = _number(made[bound], bound, made["feature"])
    if "equals" in made:
        labels = made["equals"]
        made["equals"] = tuple(labels) if isinstance(labels, (list, tuple)) else (labels,)
    return Statement(**made)


def _number(value: Any, name: str, feature: str) -> float:
    """A finite number from a field of a statement."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise InputError(f"{name} in a statement for {feature!r} must be a finite number; got {value!r}.")
    return number


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _same(value: Any, label: Any) -> bool:
    """Equal as values, or as texts: a CSV file holds only texts."""
    return bool(value == label) or str(value) == str(label) or (_is_number(value) and f"{value:g}" == str(label))
