"""`reasons(explanation, ...)`: the reasons of every explained applicant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import NoneType
from typing import Any, Literal

import numpy as np

from .._common import checks, display
from .._explain.explanation import Explanation
from ..errors import InputError, StatementWarning, kind_of, warn
from ..references.direction import agreed_direction, passing
from .case import ApplicantReasons, Case, Context, Excluded, Reason, reasons_of
from .doubts import warn_of_columns, warn_of_scores, warn_of_texts
from .ranking import Rules, credit_ranges
from .statements import Statement, check_statements, read_statements

__all__ = ["ApplicantReasons", "Excluded", "Reason", "Reasons", "reasons"]


def reasons(
    explanation: Explanation,
    top: int = 4,
    statements: Any = None,
    groups: Mapping[str, Sequence[str]] | None = None,
    exclude: Sequence[str] | None = None,
    min_share: float = 0.0,
    *,
    higher_is_better: bool | None = None,
    ranges: Mapping[str, float] | None = None,
    row_ids: Sequence[Any] | None = None,
    permitted: Sequence[str] | None = None,
) -> Reasons:
    """The variables that counted against each explained applicant, worst first, in words.

    Groups are formed first and ranked after. Credits that are equal to rounding are ordered by `ranges`, larger first,
    then by the order of the columns.

    Parameters
    ----------
    explanation : Explanation
        Of one output, against the reference that applicants are to be compared with.
    top : int
        How many reasons at most. More than four are not likely to help an applicant.
    statements : dict or path of a CSV or TOML file, optional
        Texts and codes by feature or group; see the page on reasons for conditional ones. Reasons without a
        text are kept, and reported by a StatementWarning and in the result.
    groups : mapping of str to sequence of str, optional
        Features that make one reason together.
    exclude : sequence of str, optional
        Features or groups that must not be given as reasons. The rank that each would have had is recorded.
    min_share : float
        A reason explains at least this share of the shortfall.
    higher_is_better : bool, optional
        Whether a high score is good for an applicant. By default the direction of the reference, if it is a
        `gigrad.references` population that has one; a given value must agree with it.
    ranges : mapping of str to float, optional
        The range of each feature's credits, which breaks ties. By default the range over the explained rows; give fixed
        ranges to make ties independent of the other rows.
    row_ids : sequence, optional
        The applicants' ids; by default those of the explanation.
    permitted : sequence of str, optional
        Columns that the model may use although they are named like a prohibited basis (sex, race, age...); for others
        there is a ReasonsWarning.

    Examples
    --------
    >>> import gigrad as gig
    >>> e = gig.explain(model, X[risk > 0.5].head(2), approved)
    >>> texts = {"duration_months": "Term too long", "credit_amount": "Amount too high"}
    >>> found = gig.reasons(e, statements=texts)
    >>> [reason.statement for reason in found[0].reasons]
    ['Term too long', 'Amount too high']
    """
    _check(explanation)
    direction = _direction(explanation, higher_is_better)
    warn_of_scores(explanation, direction, higher_is_better is not None)
    warn_of_columns(_used(explanation), explanation.columns, permitted)
    if row_ids is not None:
        explanation = replace(explanation, ids=_checked_ids(row_ids, len(explanation)))
    grouped = explanation.group(groups) if groups else explanation
    if isinstance(exclude, str) or not isinstance(exclude, (Iterable, NoneType)):
        raise InputError(f"exclude must be a list of features or groups; got {exclude!r}.")
    rules = Rules(direction, top, min_share, tuple(exclude or ()), _ranges(grouped, ranges))
    book = read_statements(statements)
    members = {name: tuple(columns) for name, columns in grouped.groups.items()}
    check_statements([s for s in book if s.feature in rules.features], members)
    context = Context(rules, book, members, _typical(explanation))
    cases = tuple(_cases(grouped))
    found = Reasons(tuple(reasons_of(case, context) for case in cases), cases, context, explanation)
    if book and found.reasons_without_statement:
        listed = ", ".join(f"{name!r} ({n})" for name, n in found.reasons_without_statement.items())
        warn(f"Some reasons have no statement (applicants): {listed}.", StatementWarning)
    warn_of_texts(found.applicants, book)
    return found


@dataclass(frozen=True, eq=False)
class Reasons:
    """The reasons of every explained applicant; iterates over them, `len` counts them, `r[i]` is the i-th.

    Attributes
    ----------
    applicants : tuple of ApplicantReasons
    cases, context
        The data that they were computed from, which `audit` records.
    explanation : Explanation

    Examples
    --------
    >>> import gigrad as gig
    >>> e = gig.explain(model, X[risk > 0.5].head(1), approved)
    >>> found = gig.reasons(e)
    >>> len(found), found[0].reasons[0].feature
    (1, 'duration_months')
    >>> list(found.to_frame().columns)[:5]
    ['row_id', 'rank', 'code', 'statement', 'feature']
    """

    applicants: tuple[ApplicantReasons, ...]
    cases: tuple[Case, ...]
    context: Context
    explanation: Explanation

    def __len__(self) -> int:
        return len(self.applicants)

    def __iter__(self) -> Iterator[ApplicantReasons]:
        return iter(self.applicants)

    def __getitem__(self, index: int) -> ApplicantReasons:
        return self.applicants[index]

    def of(self, row_id: Any) -> ApplicantReasons:
        """The reasons of the applicant with this id."""
        found = [a for a in self.applicants if a.row_id == row_id]
        if len(found) != 1:
            raise InputError(f"row_id must be the id of one explained applicant; {len(found)} have {row_id!r}.")
        return found[0]

    @property
    def reference(self) -> str:
        """A one-line description of the reference that the applicants were compared with."""
        facts = self.explanation.provenance.get("reference", {})
        return str(facts.get("note") or f"a reference of {facts.get('rows', 'unknown')} rows without a description")

    @property
    def method(self) -> str:
        """How the reasons were found: "points below maximum", "points below average", or "GIG"."""
        return method_of(self.explanation.provenance)

    # ------------------------------------------------------------ gaps in the statements

    @property
    def reasons_without_statement(self) -> dict[str, int]:
        """Features or groups that are a reason without a text, with the number of applicants concerned."""
        counts = Counter(r.feature for a in self.applicants for r in a.reasons if r.statement is None)
        return {name: counts[name] for name in self.context.rules.features if counts[name]}

    @property
    def features_without_statement(self) -> tuple[str, ...]:
        """Features or groups without any statement, whether or not they are a reason here."""
        known = {s.feature for s in self.context.statements}
        return tuple(name for name in self.context.rules.features if name not in known)

    @property
    def unused_statements(self) -> tuple[str, ...]:
        """Names in the statements that are not features or groups here: spelling mistakes, or another model's."""
        known = dict.fromkeys(s.feature for s in self.context.statements)
        return tuple(name for name in known if name not in self.context.rules.features)

    @property
    def repeated_statements(self) -> dict[Any, tuple[str, ...]]:
        """By row id, the features whose reasons have the same text, so that a letter would repeat it: group them."""
        found: dict[Any, tuple[str, ...]] = {}
        for a in self.applicants:
            counts = Counter(r.statement for r in a.reasons if r.statement is not None)
            twice = tuple(r.feature for r in a.reasons if r.statement is not None and counts[r.statement] > 1)
            if twice:
                found[a.row_id] = twice
        return found

    @property
    def statements(self) -> tuple[Statement, ...]:
        return self.context.statements

    # ------------------------------------------------------------ outputs

    def to_frame(self, *, library: Literal["pandas", "polars"] | None = None) -> Any:
        """One line a reason: row_id, rank, code, statement, feature, credit, share, value, typical, reference.

        Values and typical values are texts, since one column holds those of many features.
        """
        from . import output

        return output.to_frame(self, library)

    def to_parquet(self, path: str | Path) -> None:
        """Write the table of `to_frame`, with the explanation's provenance in the file's metadata."""
        from . import output

        output.to_parquet(self, path)

    def to_csv(self, path: str | Path) -> None:
        """Write the table of `to_frame`; texts that a spreadsheet would run as a formula get a leading quote."""
        from . import output

        output.to_csv(self, path)

    def to_json(self, path: str | Path | None = None) -> str:
        """What a letter generator needs, one object an applicant; also written to `path` where it is given."""
        from . import output

        return output.to_json(self, path)

    def audit(self) -> list[dict[str, Any]]:
        """One record an applicant with everything needed to reproduce the reasons; see `replay_reasons`."""
        from . import audit

        return audit.records(self)

    def write_audit(self, path: str | Path, key: bytes | None = None) -> None:
        """Write the audit records to a ledger, compact and chained; see `read_ledger` and `verify_ledger`.

        Its name may end in .gz. `key` signs it, so that nobody without the key can replace it.
        """
        from . import ledger

        ledger.write(self, path, key)

    def __str__(self) -> str:
        from . import output

        return output.as_text(self)

    def __repr__(self) -> str:
        given = sum(len(a.reasons) for a in self.applicants)
        return f"Reasons({len(self)} applicants, {given} reasons)"


def method_of(provenance: Mapping[str, Any]) -> str:
    """The method recorded in a provenance."""
    return str(provenance.get("reference", {}).get("method") or "GIG")


def _check(e: Explanation) -> None:
    """Refuse explanations that reasons cannot be ranked from: of several outputs, sliced, not finite."""
    if not isinstance(e, Explanation):
        raise InputError(f"reasons needs an Explanation, from gigrad.explain; got {kind_of(e)}.")
    if e.values.ndim != 2:
        raise InputError(
            f"Reasons are about one score; this explanation has the outputs {', '.join(map(repr, e.output_names))}. "
            "Pick one: e[:, :, name], or target= in gigrad.explain."
        )
    if len(set(e.feature_names)) < len(e.feature_names):
        raise InputError("Reasons name features, so every feature needs a name of its own; some share one.")
    if np.any(e.rest):
        raise InputError("Features were sliced away from this explanation; no principal reason may be left out.")
    if not (np.isfinite(e.values).all() and np.isfinite(e.predictions).all() and np.isfinite(e.base_values).all()):
        raise InputError("Reasons need finite credits and scores; some are NaN or infinite.")


def _used(e: Explanation) -> list[str]:
    """The columns whose feature or group has a credit other than 0 in some row."""
    earning = np.flatnonzero((e.values != 0.0).any(axis=0))
    names = [e.feature_names[j] for j in earning]
    return [column for name in names for column in e.groups.get(name, (name,))]


def _direction(e: Explanation, asked: bool | None) -> bool:
    """Whether higher is better; an InputError if only the reference says so and every row passes its cutoff."""
    reference = e.provenance.get("reference", {})
    direction = agreed_direction(reference, asked)
    if asked is None and _all_pass(e, reference):
        raise InputError(
            f"Every explained row passes the reference's cutoff, {reference['cutoff']:.6g} with higher_is_better="
            f"{direction}: either the direction is mixed up, or approved applicants were explained. To list what "
            "counts against approved applicants, pass higher_is_better yourself."
        )
    return direction


def _all_pass(e: Explanation, reference: Mapping[str, Any]) -> bool:
    """Whether all explained rows pass, where the cutoff is in the units of the explained score."""
    if not len(e) or reference.get("cutoff") is None or not reference.get("cutoff_in_output_units"):
        return False
    return bool(passing(e.predictions, reference["cutoff"], reference["higher_is_better"]).all())


def _ranges(grouped: Explanation, given: Mapping[str, float] | None) -> tuple[tuple[str, float], ...]:
    """The range of each feature's credit that ties are broken by: as given, or over these rows."""
    if given is None:
        sizes = credit_ranges(grouped.values)
        return tuple(zip(grouped.feature_names, sizes.tolist(), strict=True))
    checks.mapping(given, "ranges", '{"age": 0.5}')
    absent = [name for name in grouped.feature_names if name not in given]
    if absent:
        raise InputError(f"ranges must have a number for every feature or group; {absent[0]!r} is missing.")
    sized = {name: given[name] for name in grouped.feature_names}
    for name, size in sized.items():
        if not checks.is_number(size) or not 0 <= size < np.inf:
            raise InputError(f"ranges must be numbers, finite and not negative; got {size!r} for {name!r}.")
    return tuple((name, float(size)) for name, size in sized.items())


def _typical(e: Explanation) -> dict[str, Any]:
    typical = e.provenance.get("reference", {}).get("typical", {})
    return {name: display.plain(typical.get(name)) for name in e.columns}


def _cases(grouped: Explanation) -> Iterator[Case]:
    """Each applicant with credits, score and values, as plain numbers and texts."""
    if grouped.data is None:
        columns = {name: [None] * len(grouped) for name in grouped.columns}
    else:
        columns = {name: display.column(grouped.data, j).tolist() for j, name in enumerate(grouped.columns)}
    for i in range(len(grouped)):
        yield Case(
            row_id=display.plain(grouped.ids[i]),
            credits=dict(zip(grouped.feature_names, grouped.values[i].tolist(), strict=True)),
            prediction=float(grouped.predictions[i]),
            base=float(grouped.base_values[i]),
            gap=float(grouped.gap[i]),
            error=float(grouped.error[i]),
            values={name: display.plain(column[i]) for name, column in columns.items()},
        )


def _checked_ids(row_ids: Sequence[Any], rows: int) -> Any:
    """The ids that the caller gives the rows, one each."""
    ids = np.asarray(row_ids)
    if ids.shape != (rows,):
        raise InputError(f"row_ids must have one id a row, {rows}; their shape is {ids.shape}.")
    return ids
