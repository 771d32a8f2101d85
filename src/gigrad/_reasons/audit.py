"""The record of one applicant's reasons: enough to recompute them, and to detect changes.

A record holds the credits that were ranked, the applicant's values, the rules, groups, statements and typical values,
the resulting reasons, and the explanation's provenance (fingerprints of model, reference, score map and data,
versions, seed). `replay_reasons` needs nothing else; `gigrad.verify_reasons` also explains the applicant again, from
the model and the reference, and compares the fingerprints.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from .._common import checks
from ..errors import InputError
from .case import ApplicantReasons, Case, Context, reasons_of

if TYPE_CHECKING:
    from .build import Reasons

FORMAT = "gigrad.reasons/1"


def records(found: Reasons) -> list[dict[str, Any]]:
    """See `Reasons.audit`."""
    shared = shared_parts(found)
    marks = {key: mark(value) for key, value in shared.items()}
    out = []
    for own in applicant_parts(found):
        marked = mark({**marks, **{key: mark(value) for key, value in own.items()}})
        out.append({**shared, **own, "fingerprint": marked})
    return out


def shared_parts(found: Reasons) -> dict[str, Any]:
    """The parts of a record that are the same for all applicants."""
    e = found.explanation
    return through_json(
        {
            "format": FORMAT,
            "method": found.method,
            **found.context.as_record(),
            "output": list(e.output_names),
            "provenance": e.provenance,
        }
    )


def applicant_parts(found: Reasons) -> Iterator[dict[str, Any]]:
    """For each applicant the parts of the audit record that are its own: values, score, credits and reasons."""
    e = found.explanation
    for i, (case, applicant) in enumerate(zip(found.cases, found.applicants, strict=True)):
        yield through_json(
            {
                "row_id": case.row_id,
                "applicant": dict(case.values),
                "score": {"prediction": case.prediction, "base": case.base, "gap": case.gap, "error": case.error},
                "credits": dict(case.credits),
                "feature_credits": dict(zip(e.feature_names, e.values[i].tolist(), strict=True)),
                "outcome": applicant.as_record(),
            }
        )


def replay_reasons(record: Mapping[str, Any] | str) -> ApplicantReasons:
    """Recompute an applicant's reasons from an audit record alone.

    Parameters
    ----------
    record : dict, or its JSON text

    Returns
    -------
    ApplicantReasons
        Recomputed, and equal to the reasons in the record.

    Raises
    ------
    InputError
        If the record was changed since it was written, or its reasons do not follow from its credits and rules.

    Examples
    --------
    >>> import gigrad as gig
    >>> e = gig.explain(model, X[risk > 0.5].head(1), approved)
    >>> found = gig.reasons(e)
    >>> again = gig.replay_reasons(found.audit()[0])
    >>> again.reasons[0].feature == found[0].reasons[0].feature
    True
    """
    checked = read_record(record)
    try:
        again = reasons_of(case_of(checked), Context.from_record(checked))
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise InputError(f"The {_called(checked)} must be one from Reasons.audit; it is not: {error!r}.") from None
    if through_json(again.as_record()) != checked["outcome"]:
        raise InputError(f"The reasons in the {_called(checked)} do not follow from its credits and rules.")
    return again


def read_record(record: Mapping[str, Any] | str) -> dict[str, Any]:
    """A record as a dict, after checking its format, its fingerprint and the types of its parts.

    A fingerprint is not a signature: whoever changes a record can compute a new one, so no part of it is trusted.
    """
    if isinstance(record, str):
        try:
            record = json.loads(record)
        except (json.JSONDecodeError, RecursionError) as error:
            raise InputError(f"An audit record must be a JSON object; {error}.") from None
    if not isinstance(record, Mapping) or record.get("format") != FORMAT:
        raise InputError(f"An audit record must have the format {FORMAT!r}, as Reasons.audit gives it.")
    made = dict(record)
    stated = made.pop("fingerprint", None)
    try:
        own = fingerprint(made)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"An audit record must hold values that JSON can represent; {error}.") from None
    if stated != own:
        raise InputError(f"The {_called(made)} was changed: its fingerprint does not match.")
    _check_parts(made)
    return made


def _check_parts(record: Mapping[str, Any]) -> None:
    """Raise unless a record has all its parts, each of its type, and its numbers are numbers."""
    for name, kind in _PARTS.items():
        if not isinstance(record.get(name), kind):
            raise InputError(
                f"The {_called(record)} must have {name!r} as a {kind.__name__}; it was made by something else."
            )
    provenance = record["provenance"]
    if not all(isinstance(provenance.get(name, {}), dict) for name in ("model", "output", "reference", "settings")):
        raise InputError(
            f"The provenance in the {_called(record)} must have records of model, output, reference and settings."
        )
    for name in ("credits", "feature_credits", "score"):
        if not all(checks.is_number(value) for value in record[name].values()):
            raise InputError(f"{name!r} in the {_called(record)} must hold numbers only.")


_PARTS = {
    "rules": dict, "statements": list, "groups": dict, "typical": dict, "provenance": dict, "applicant": dict,
    "score": dict, "credits": dict, "feature_credits": dict, "outcome": dict,
}  # fmt: skip


def _called(record: Mapping[str, Any]) -> str:
    return f"record of {record.get('row_id')!r}"


def fingerprint(record: Mapping[str, Any]) -> str:
    """SHA-256 of the SHA-256 hashes of a record's parts; most parts are the same for all applicants and hashed once."""
    return mark({key: mark(value) for key, value in record.items()})


def mark(content: Any) -> str:
    return hashlib.sha256(_SORTED.encode(content).encode()).hexdigest()


def through_json(content: dict[str, Any]) -> dict[str, Any]:
    """The content after a round trip through JSON, so that a record in memory equals the same record from a file."""
    out: dict[str, Any] = json.loads(_PLAIN.encode(content))
    return out


# Made once: json.dumps makes a new encoder for every call with options
_SORTED = json.JSONEncoder(sort_keys=True, allow_nan=False)
_PLAIN = json.JSONEncoder(allow_nan=False, default=str)


def case_of(record: Mapping[str, Any]) -> Case:
    """The applicant's case as an audit record keeps it."""
    return Case(
        row_id=record["row_id"],
        credits=record["credits"],
        values=record["applicant"],
        **record["score"],
    )
