"""Adverse-action reasons for tables: the same runner, a line for each reason."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from .._common import checks
from .._common.keywords import collected
from .._common.reason_options import ReasonKeywords, ReasonOptions
from .._explain.explanation import Explanation
from ..errors import InputError, ReasonsWarning, StatementWarning, warn
from ..references.direction import agreed_direction, passing
from .tasks import Found, Lines, Task, make_task

if TYPE_CHECKING:
    from .._explain.explainer import Explainer
    from .._questions.settler import Settler


def reason_task(
    explainer: Explainer,
    schema: Any,
    *,
    id_cols: Sequence[str] = (),
    columns: Sequence[str] | None = None,
    cutoff: float | None = None,
    everybody: bool = False,
    audit: bool = False,
    settler: Settler | None = None,
    **options: Unpack[ReasonKeywords],
) -> Task:
    """The task that gives the reasons of refused applicants.

    Parameters
    ----------
    cutoff : float, optional
        The passing score; by default that of the explainer's reference.
    everybody : bool
        Give reasons to those who pass, too.
    audit : bool
        Keep the record of every applicant who gets reasons, as `Reasons.audit` gives it.
    settler : Settler, optional
        See `Task`. Not with `audit`: a ledger needs all references, so that it can be verified.
    **options
        Those of `ReasonOptions`, as in `gigrad.reasons`. Ties are broken by `Explainer.credit_ranges`, so that an
        applicant's reasons do not depend on the other rows of the batch; the warning about columns that are not
        permitted is given here, once.
    """
    from .._reasons.doubts import warn_of_columns
    from .._reasons.statements import read_statements

    if len(explainer.scorer.output_names) != 1:
        raise InputError("Reasons are about one score; choose one output (--target).")
    asked = collected(ReasonOptions, options)
    if isinstance(asked.exclude, str):
        raise InputError(f"exclude must be a list of features or groups; got {asked.exclude!r}.")
    if settler is not None and audit:
        raise InputError("A ledger must be computed from all references; leave out --settle, or --audit.")
    reference = explainer.provenance["reference"]
    better = agreed_direction(reference, asked.higher_is_better)
    cutoff = _passing_score(reference, cutoff)
    if cutoff is None and not everybody:
        raise InputError("Reasons are for those who fail: give the passing score (--cutoff), or ask for all (--all).")
    book = read_statements(asked.statements)
    rules: dict[str, Any] = {f.name: getattr(asked, f.name) for f in fields(asked) if f.name != "permitted"} | {
        "statements": [s.as_record() for s in book] or None, "groups": asked.groups or None,
        "exclude": list(asked.exclude or ()) or None, "higher_is_better": better,
    }  # fmt: skip
    rules["ranges"] = explainer.credit_ranges(rules["groups"])
    members = {**explainer.grouping.groups, **(asked.groups or {})}
    used = [c for name, size in rules["ranges"].items() if size > 0 for c in members.get(name, (name,))]
    warn_of_columns(used, explainer.reference.names, asked.permitted)
    record = {**rules, "cutoff": cutoff, "everybody": everybody, "audit": audit}
    return make_task(
        explainer, schema, _lines(rules, audit), "reasons", id_cols=id_cols, columns=columns, record=record,
        settler=settler,
        concern=None if everybody or cutoff is None else lambda scores: ~passing(scores, cutoff, better),
    )  # fmt: skip


def _passing_score(reference: Mapping[str, Any], asked: float | None) -> float | None:
    """The cutoff, as given or else the reference's; None if neither is known."""
    known = reference.get("cutoff") if reference.get("cutoff_in_output_units") else None
    if asked is None:
        return known
    if not checks.is_number(asked) or not np.isfinite(asked):
        raise InputError(f"cutoff must be a finite number; got {asked!r}.")
    if known is not None and asked != known:
        raise InputError(f"The reference of this explainer is those who pass {known:.6g}; got the cutoff {asked:.6g}.")
    return asked


def _lines(options: dict[str, Any], audit: bool) -> Lines:
    """A function from refused rows to lines of reasons and audit records, which warns once a run."""
    said: list[str] = []  # about texts: once a run, not for every batch of it

    def lines(refused: Explanation) -> Found:
        from .._reasons import reasons
        from .._reasons.ledger import compact
        from .._reasons.output import to_arrow

        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            # visible in the result: a reason without a text
            warnings.filterwarnings("ignore", "Some reasons have no statement", StatementWarning)
            warnings.simplefilter("ignore", ReasonsWarning)
            found = reasons(refused, **options)
        _tell_once(heard, said)
        table = to_arrow(found).replace_schema_metadata(None).drop_columns(["row_id"])
        count = [len(applicant.reasons) for applicant in found]
        error = np.repeat(refused.error, count)  # what each credit of the line's applicant may be off by
        table = table.append_column("error", [error.astype(np.float64)])
        shared, records = compact(found) if audit else ("", [])
        return Found(table, np.repeat(np.arange(len(refused)), count), [shared, *records] if records else [])

    return lines


def _tell_once(heard: list[warnings.WarningMessage], said: list[str]) -> None:
    """Reissue warnings; of those about texts only the first of a run, since each batch would name other features."""
    for one in heard:
        if not issubclass(one.category, StatementWarning):
            warn(str(one.message), one.category)
        elif not said:
            said.append(str(one.message))
            warn(f"{one.message} (In the first batch of which this is true; others are not named.)", one.category)
