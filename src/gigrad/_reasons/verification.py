"""Verification of audit records: the applicants are explained again from the model and the reference, and compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .._common.display import plain
from .._common.log import logger
from .._explain.explainer import Explainer
from .._io import provenance
from .._io.tables import read_rows
from ..engine import Population
from ..engine.settings import RECORDED
from ..errors import InputError
from ..graph import Array, Graph
from ..graph.discrete import words_of
from . import ApplicantReasons, replay_reasons
from .audit import read_record
from .build import method_of
from .ledger import read_ledger

_AT_ONCE = 2048
_log = logger("audit")


@dataclass(frozen=True)
class Verification:
    """The result of verifying one record.

    Attributes
    ----------
    reasons : ApplicantReasons
        Recomputed from the record.
    differences : tuple of str
        What differs from the record, in words; empty if nothing does.
    largest_credit_difference : float
        Between the recorded credits and the recomputed ones.
    definition : int
        The version of the definition that the record was explained under. Records of another one are neither
        confirmed nor refuted: nothing is compared, and `differences` says so.

    Examples
    --------
    >>> import gigrad as gig
    >>> e = gig.explain(model, X[risk > 0.5].head(1), approved)
    >>> found = gig.reasons(e)
    >>> examined = gig.verify_reasons(found.audit()[0], model, approved)
    >>> examined.ok, examined.differences
    (True, ())
    """

    reasons: ApplicantReasons
    differences: tuple[str, ...]
    largest_credit_difference: float
    definition: int = provenance.DEFINITION

    @property
    def ok(self) -> bool:
        """Whether everything is as the record says."""
        return not self.differences


def verify_reasons(
    record: Mapping[str, Any] | str,
    model: Any,
    reference: Any,
    *,
    weights: Any = None,
    output: Any = None,
    target: str | float | None = None,
    n_threads: int | None = None,
) -> Verification:
    """Explain the applicant of an audit record again, from the model and the reference, and compare.

    First the reasons are recomputed from the record alone, as in `replay_reasons`. Then the fingerprints of the model,
    the output and the reference, its typical values and its direction are compared with the record's, and the credits,
    each feature's and each group's, and the scores with recomputed ones. The rules, the statements, the groups and the
    discrete and nominal columns are the lender's choice and are taken from the record.

    Parameters
    ----------
    record : dict, or its JSON text
        As `Reasons.audit` gives it.
    model, reference, weights, output, target
        As they were given to `gigrad.explain`.

    Examples
    --------
    >>> import gigrad as gig
    >>> e = gig.explain(model, X[risk > 0.5].head(1), approved)
    >>> found = gig.reasons(e)
    >>> gig.verify_reasons(found.audit()[0], model, approved).ok
    True
    """
    content = read_record(record)
    found = replay_reasons(record)
    definition = content["provenance"].get("definition", 1)
    if definition != provenance.DEFINITION:
        return Verification(found, (_other_definition(definition),), float("nan"), definition)
    explainer = examiner(content, model, reference, weights=weights, output=output, target=target, n_threads=n_threads)
    ((differences, far),) = _examined(explainer, [content])
    return Verification(found, differences, far)


def verify_ledger(
    path: str | Path,
    model: Any,
    reference: Any = None,
    *,
    weights: Any = None,
    output: Any = None,
    target: str | float | None = None,
    key: bytes | None = None,
    n_threads: int | None = None,
) -> LedgerVerification:
    """Verify every record of a ledger: that no byte was changed, and that model and reference give the same reasons.

    Does what `verify_reasons` does for one record, in bulk: the model is imported once, and thousands of records are
    explained together.

    Parameters
    ----------
    path : path
        A file that `gigrad reasons --audit` or `Reasons.write_audit` wrote.
    model : fitted model, Graph or Explainer
        With an `Explainer`, which contains them, leave out `reference`, `weights`, `output` and `target`.
    reference, weights, output, target
        As they were given to `gigrad.explain`.
    key : bytes, optional
        The key that the ledger was signed with.

    Raises
    ------
    LedgerError
        If the ledger was changed since it was written.

    Examples
    --------
    >>> import gigrad as gig
    >>> key = b"a key that only the lender has"
    >>> found = gig.reasons(gig.explain(model, X[risk > 0.5], approved))
    >>> found.write_audit("records.jsonl", key)
    >>> gig.verify_ledger("records.jsonl", model, approved, key=key).ok
    True
    """
    count, worst, different = 0, 0.0, list[tuple[Any, tuple[str, ...]]]()
    explainer: Explainer | None = model if isinstance(model, Explainer) else None
    if explainer is None and reference is None:
        raise InputError("A ledger is verified against a model and its reference; give both, or an Explainer.")
    known: Any = None
    records = read_ledger(path, key)
    while some := list(islice(records, _AT_ONCE)):
        for shared, group in groupby(some, key=lambda r: r["provenance"]):
            contents = list(group)
            count += len(contents)
            definition = shared.get("definition", 1)
            if definition != provenance.DEFINITION:
                different += [(c["row_id"], (_other_definition(definition),)) for c in contents]
                continue
            if not isinstance(model, Explainer) and (explainer is None or shared != known):
                explainer, known = (
                    examiner(
                        contents[0],
                        model,
                        reference,
                        weights=weights,
                        output=output,
                        target=target,
                        n_threads=n_threads,
                    ),
                    shared,
                )
            assert explainer is not None
            for content, (found, far) in zip(contents, _examined(explainer, contents), strict=True):
                worst = max(worst, far)
                if found:
                    different.append((content["row_id"], found))
        _log.debug("%s: %s records verified", path, f"{count:,}")
    _log.info("verified: %s, %s records, %s that differ", path, f"{count:,}", f"{len(different):,}")
    return LedgerVerification(count, tuple(different), worst, key is not None)


@dataclass(frozen=True)
class LedgerVerification:
    """The result of verifying a ledger.

    Attributes
    ----------
    records : int
    different : tuple of (row_id, differences)
        The records that differ from the recomputed ones, and how.
    largest_credit_difference : float
        Between any recorded credit and the recomputed one.
    signed : bool
        Whether a signature was checked.
    """

    records: int
    different: tuple[tuple[Any, tuple[str, ...]], ...]
    largest_credit_difference: float
    signed: bool

    @property
    def ok(self) -> bool:
        """Whether no record differs."""
        return not self.different


def examiner(
    record: Mapping[str, Any], model: Any, reference: Any, *, n_threads: int | None, **options: Any
) -> Explainer:
    """An explainer of the given model and reference, with the settings in a record."""
    origin = record["provenance"]
    settings = origin.get("settings", {})
    discrete, nominal = words_of(origin.get("choice"))
    recorded = {name: settings[name] for name in RECORDED if name in settings}
    return Explainer(
        model, reference, groups=settings.get("groups"), discrete=discrete, nominal=nominal, n_threads=n_threads,
        **recorded, **options,
    )  # fmt: skip


def _examined(explainer: Explainer, contents: Sequence[Mapping[str, Any]]) -> list[tuple[tuple[str, ...], float]]:
    """For every record, what differs from its applicant explained again, and the largest difference of a credit."""
    names = explainer.reference.names
    fits = [(*c["applicant"],) == names for c in contents]
    same = [c["applicant"] for c, fit in zip(contents, fits, strict=True) if fit]
    again = iter(_explained(explainer, _encoded(same, names, explainer.scorer.graph)) if same else ())
    origins: dict[int, list[str]] = {}
    homes: dict[int, dict[str, str]] = {}
    out = []
    for content, fit in zip(contents, fits, strict=True):
        shared, grouped = id(content["provenance"]), id(content["groups"])
        if shared not in origins:
            origins[shared] = _other_origin(content, explainer)
        if grouped not in homes:
            homes[grouped] = _homes(content["groups"], explainer)
        anew = next(again) if fit else None
        found, far = ([_OTHER_COLUMNS], float("nan")) if anew is None else _compared(content, anew, homes[grouped])
        out.append(((*origins[shared], *found), far))
    return out


_OTHER_COLUMNS = "the model has other columns than the record"


def _compared(content: Mapping[str, Any], again: _Again, homes: Mapping[str, str]) -> tuple[list[str], float]:
    """What differs between a record and its applicant explained again, and the largest difference of a credit.

    `homes` maps each feature to the feature or group that the record ranks it in.
    """
    differences = []
    credits, summed = again.credits, _ranked(again.credits, homes)
    if credits.keys() != content["feature_credits"].keys() or summed.keys() != content["credits"].keys():
        return ["the credits are of other variables"], float("nan")
    far = max(_distance(credits, content["feature_credits"]), _distance(summed, content["credits"]))
    # The recomputed error is used: a record could claim a large error to excuse any difference.
    allowed = 1e-9 * max(map(abs, (again.prediction, again.base, *credits.values()))) + 2.0 * again.error
    if far > allowed * (len(credits) - len(summed) + 1):
        differences.append(f"a credit differs by {far:.3g}")
    for name, now in (("base", again.base), ("prediction", again.prediction)):
        then = content["score"][name]
        # The record has the model's own numbers, in its library's precision; the graph's are in float64.
        if not abs(now - then) <= 1e-7 + 1e-5 * abs(then):
            differences.append(f"the {name} is {now!r}, the record says {then!r}")
    return differences, far


def _other_definition(definition: Any) -> str:
    """Why a record of another definition cannot be compared."""
    return (
        f"explained under definition {definition}; this gigrad computes definition {provenance.DEFINITION}, whose "
        "credits are others by design, so that they cannot be compared. Verify it with the gigrad that made it, or "
        "explain the applicant again"
    )


def _other_origin(record: Mapping[str, Any], explainer: Explainer) -> list[str]:
    """How a record differs from this model, output and reference, by fingerprints and facts; empty if it does not."""
    before, differences = record["provenance"], []
    for what in ("model", "output", "reference"):
        now, then = explainer.provenance[what]["fingerprint"], str(before.get(what, {}).get("fingerprint", "none"))
        if now != then:
            differences.append(f"the {what} has the fingerprint {now[:12]}, the record says {then[:12]}")
    facts = explainer.provenance["reference"]
    if record["typical"] != {name: plain(value) for name, value in facts["typical"].items()}:
        differences.append("the reference has other typical values than the record")
    method, said = method_of(explainer.provenance), record.get("method", "GIG")
    if method != said:
        differences.append(f"the method is {method}, the record says {said}")
    better = record["rules"]["higher_is_better"]
    if facts.get("higher_is_better", better) != better:
        differences.append(f"the reference says higher_is_better={not better}, the record says {better}")
    return differences


def _homes(groups: Mapping[str, Any], explainer: Explainer) -> dict[str, str]:
    """By feature, the group that a record ranks it in, else the feature itself."""
    home = {column: name for name, columns in groups.items() for column in columns}
    members = explainer.grouping.groups
    return {name: home.get(members.get(name, (name,))[0], name) for name in explainer.grouping.members}


def _ranked(credits: Mapping[str, float], homes: Mapping[str, str]) -> dict[str, float]:
    """Credits summed over the groups that a record ranks; features in no group keep their own."""
    out: dict[str, float] = {}
    for feature, credit in credits.items():
        name = homes[feature]
        out[name] = out.get(name, 0.0) + credit
    return out


def _distance(credits: Mapping[str, float], recorded: Mapping[str, float]) -> float:
    return max((abs(credits[name] - recorded[name]) for name in credits), default=0.0)


def _encoded(applicants: Sequence[Mapping[str, Any]], names: tuple[str, ...], graph: Graph) -> Array:
    """Applicants' rows as the model reads them, (n, p), from the plain values of records."""
    cells = np.empty((len(applicants), len(graph.columns)), dtype=object)
    for j, (name, column) in enumerate(zip(names, graph.columns, strict=True)):
        labels = {} if column.labels is None else {plain(label): label for label in column.labels}
        cells[:, j] = [labels.get(values[name], values[name]) for values in applicants]
    return read_rows(cells, graph, what="the record's applicant").matrix


class _Again(NamedTuple):
    """One applicant explained again, by the graph alone."""

    credits: dict[str, float]
    prediction: float
    base: float
    error: float


def _explained(explainer: Explainer, rows: Array) -> list[_Again]:
    """Credits and scores of encoded rows."""
    scorer = explainer.scorer
    if scorer.node.width != 1:
        raise InputError("A record is about one score; pick it with target=.")
    paths = Population(explainer.reference.matrix, explainer.weights, rows)
    credit = scorer.credit(paths, explainer.settings)
    score = scorer.evaluated(rows)
    names, base = explainer.grouping.members, float(explainer.base[0])
    return [
        _Again(dict(zip(names, credit.values[i, :, 0].tolist(), strict=True)), float(score[i, 0]), base,
               float(credit.error[i, 0]))
        for i in range(len(rows))
    ]  # fmt: skip
