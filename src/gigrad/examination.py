"""An audit record held against the model and the reference: is this what they say about this applicant?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .adverse import ApplicantReasons, replay_reasons
from .adverse.audit import read_record
from .display import plain
from .engine import Population, attribute
from .errors import InputError
from .explainer import Explainer
from .graph import Array, Graph, evaluate
from .tables import read_rows


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
    target: int | str | None = None,
    n_threads: int | None = None,
) -> Verification:
    """Explain the applicant of an audit record again, from the model and the reference, and compare.

    First the reasons are recomputed from the record alone, as in `replay_reasons`. Then the fingerprints of the model,
    the output and the reference are compared with the record's, and the credits and scores with new ones.

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
    before = content["provenance"]
    settings = before.get("settings", {})
    explainer = Explainer(
        model, reference, weights=weights, output=output, target=target, groups=settings.get("groups"),
        tol=settings.get("tol", 1e-6), n_threads=n_threads, seed=settings.get("seed", 0),
    )  # fmt: skip
    differences = []
    for what in ("model", "output", "reference"):
        now, then = explainer.provenance[what]["fingerprint"], before.get(what, {}).get("fingerprint", "none")
        if now != then:
            differences.append(f"the {what} has the fingerprint {now[:12]}, the record says {then[:12]}")
    names = explainer.reference.names
    if (*content["applicant"],) != names:
        return Verification(found, (*differences, "the model has other columns than the record"), float("nan"))
    row = _encoded(content["applicant"], names, explainer.scorer.graph)
    credits, prediction = _explained(explainer, row)
    recorded = np.array(list(content["feature_credits"].values()))
    if credits.shape != recorded.shape:
        return Verification(found, (*differences, "the credits are of other variables"), float("nan"))
    far = float(np.abs(credits - recorded).max(initial=0.0))
    scale = max(abs(found.prediction), abs(found.base), float(np.abs(recorded).max(initial=0.0)))
    if far > 1e-9 * scale + 2.0 * found.error:
        differences.append(f"a credit differs by {far:.3g}")
    for name, now, then in (
        ("base", float(explainer.base[0]), found.base),
        ("prediction", prediction, found.prediction),
    ):
        # The record has the model's own numbers, in its library's precision; the graph's are in float64.
        if not np.isclose(now, then, rtol=1e-5, atol=1e-7):
            differences.append(f"the {name} is {now!r}, the record says {then!r}")
    return Verification(found, tuple(differences), far)


def _encoded(values: Mapping[str, Any], names: tuple[str, ...], graph: Graph) -> Array:
    """The applicant's row as the model reads it, (1, p), from the plain values of a record."""
    cells = np.empty((1, len(graph.columns)), dtype=object)
    for j, (name, column) in enumerate(zip(names, graph.columns, strict=True)):
        value = values[name]
        labels = {} if column.labels is None else {plain(label): label for label in column.labels}
        cells[0, j] = labels.get(value, value)
    return read_rows(cells, graph, what="the record's applicant").matrix


def _explained(explainer: Explainer, row: Array) -> tuple[Array, float]:
    """Credits and score of one encoded row, by the graph alone."""
    scorer = explainer.scorer
    paths = Population(explainer.reference.matrix, explainer.weights, row)
    credit = attribute(scorer.node, scorer.graph.input, paths, explainer.settings)
    if credit.values.shape[2] != 1:
        raise InputError("A record is about one score; pick it with target=.")
    score = evaluate((scorer.node,), {scorer.graph.input: row})[scorer.node]
    return credit.values[0, :, 0], float(score[0, 0])
