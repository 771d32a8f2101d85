"""An audit record held against the model and the reference: is this what they say about this applicant?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .._common.display import plain
from .._explain.explainer import Explainer
from .._io import provenance
from .._io.tables import read_rows
from ..engine import Population, attribute
from ..errors import InputError
from ..graph import Array, Graph, evaluate
from ..graph.discrete import words_of
from . import ApplicantReasons, replay_reasons
from .audit import read_record


@dataclass(frozen=True)
class Verification:
    """What an examination of one record found.

    Attributes
    ----------
    reasons : ApplicantReasons
        Recomputed from the record.
    differences : tuple of str
        What is not as the record says; empty where everything is.
    largest_credit_difference : float
        Between the recorded credits and those computed anew.
    definition : int
        The version of the definition that the record was explained under. Records of another one are neither
        confirmed nor refuted: nothing is compared, and `differences` says so.

    Examples
    --------
    >>> import gigrad as gig
    >>> from gigrad.datasets import german_credit
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, bad = german_credit()
    >>> X = X[["duration_months", "age"]]
    >>> model = LogisticRegression().fit(X, bad)
    >>> risk = model.predict_proba(X)[:, 1]
    >>> approved = gig.references.approved(X, risk, 0.3, higher_is_better=False)
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
    each feature's and each group's, and the scores with new ones. The rules, the statements, the groups and the
    discrete and nominal columns are the lender's to choose: the record says what they were.

    Parameters
    ----------
    record : dict, or its JSON text
        As `Reasons.audit` gives it.
    model, reference, weights, output, target
        As they were given to `gigrad.explain`.

    Examples
    --------
    >>> import gigrad as gig
    >>> from gigrad.datasets import german_credit
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, bad = german_credit()
    >>> X = X[["duration_months", "age"]]
    >>> model = LogisticRegression().fit(X, bad)
    >>> risk = model.predict_proba(X)[:, 1]
    >>> approved = gig.references.approved(X, risk, 0.3, higher_is_better=False)
    >>> e = gig.explain(model, X[risk > 0.5].head(1), approved)
    >>> found = gig.reasons(e)
    >>> gig.verify_reasons(found.audit()[0], model, approved).ok
    True
    """
    content = read_record(record)
    found = replay_reasons(record)
    origin = content["provenance"]
    definition = origin.get("definition", 1)
    if definition != provenance.DEFINITION:
        return Verification(found, (_other_definition(definition),), float("nan"), definition)
    settings = origin.get("settings", {})
    discrete, nominal = words_of(origin.get("choice"))
    explainer = Explainer(
        model, reference, weights=weights, output=output, target=target, groups=settings.get("groups"),
        discrete=discrete, nominal=nominal, tol=settings.get("tol", 1e-6), n_threads=n_threads,
        seed=settings.get("seed", 0), corner_tol=settings.get("corner_tol", 1e-3),
    )  # fmt: skip
    differences = _other_origin(content, explainer)
    names = explainer.reference.names
    if (*content["applicant"],) != names:
        return Verification(found, (*differences, "the model has other columns than the record"), float("nan"))
    again = _explained(explainer, _encoded(content["applicant"], names, explainer.scorer.graph))
    credits, summed = again.credits, _ranked(again.credits, content["groups"], explainer)
    if credits.keys() != content["feature_credits"].keys() or summed.keys() != content["credits"].keys():
        return Verification(found, (*differences, "the credits are of other variables"), float("nan"))
    far = max(_distance(credits, content["feature_credits"]), _distance(summed, content["credits"]))
    # The error is the one found now: what a record claims would excuse any difference.
    allowed = 1e-9 * max(map(abs, (again.prediction, again.base, *credits.values()))) + 2.0 * again.error
    if far > allowed * (len(credits) - len(summed) + 1):
        differences.append(f"a credit differs by {far:.3g}")
    for name, now, then in (("base", again.base, found.base), ("prediction", again.prediction, found.prediction)):
        # The record has the model's own numbers, in its library's precision; the graph's are in float64.
        if not np.isclose(now, then, rtol=1e-5, atol=1e-7):
            differences.append(f"the {name} is {now!r}, the record says {then!r}")
    return Verification(found, tuple(differences), far)


def _other_definition(definition: Any) -> str:
    return (
        f"explained under definition {definition}; this gigrad computes definition {provenance.DEFINITION}, whose "
        "credits are others by design, so that they cannot be compared. Verify it with the gigrad that made it, or "
        "explain the applicant again"
    )


def _other_origin(record: Mapping[str, Any], explainer: Explainer) -> list[str]:
    """Where a record does not come from this model, output and reference."""
    before, differences = record["provenance"], []
    for what in ("model", "output", "reference"):
        now, then = explainer.provenance[what]["fingerprint"], str(before.get(what, {}).get("fingerprint", "none"))
        if now != then:
            differences.append(f"the {what} has the fingerprint {now[:12]}, the record says {then[:12]}")
    facts = explainer.provenance["reference"]
    if record["typical"] != {name: plain(value) for name, value in facts["typical"].items()}:
        differences.append("the reference has other typical values than the record")
    better = record["rules"]["higher_is_better"]
    if facts.get("higher_is_better", better) != better:
        differences.append(f"the reference says higher_is_better={not better}, the record says {better}")
    return differences


def _ranked(credits: Mapping[str, float], groups: Mapping[str, Any], explainer: Explainer) -> dict[str, float]:
    """Credits summed over the groups that a record ranked; what is in no group stays by itself."""
    home = {column: name for name, columns in groups.items() for column in columns}
    out: dict[str, float] = {}
    for feature, credit in credits.items():
        first = explainer.grouping.groups.get(feature, (feature,))[0]
        name = home.get(first, feature)
        out[name] = out.get(name, 0.0) + credit
    return out


def _distance(credits: Mapping[str, float], recorded: Mapping[str, float]) -> float:
    return max((abs(credits[name] - recorded[name]) for name in credits), default=0.0)


def _encoded(values: Mapping[str, Any], names: tuple[str, ...], graph: Graph) -> Array:
    """The applicant's row as the model reads it, (1, p), from the plain values of a record."""
    cells = np.empty((1, len(graph.columns)), dtype=object)
    for j, (name, column) in enumerate(zip(names, graph.columns, strict=True)):
        value = values[name]
        labels = {} if column.labels is None else {plain(label): label for label in column.labels}
        cells[0, j] = labels.get(value, value)
    return read_rows(cells, graph, what="the record's applicant").matrix


class _Again(NamedTuple):
    """One applicant explained anew, by the graph alone."""

    credits: dict[str, float]
    prediction: float
    base: float
    error: float


def _explained(explainer: Explainer, row: Array) -> _Again:
    """Credits and score of one encoded row."""
    scorer = explainer.scorer
    if scorer.node.width != 1:
        raise InputError("A record is about one score; pick it with target=.")
    paths = Population(explainer.reference.matrix, explainer.weights, row)
    credit = attribute(scorer.node, scorer.graph.input, paths, explainer.settings)
    score = evaluate((scorer.node,), {scorer.graph.input: row})[scorer.node]
    names = explainer.grouping.members
    credits = dict(zip(names, credit.values[0, :, 0].tolist(), strict=True))
    return _Again(credits, float(score[0, 0]), float(explainer.base[0]), float(credit.error[0, 0]))
