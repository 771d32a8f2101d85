"""The whole flow: import the model, check it against its own predictions, compute the credit, report the gap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from . import provenance
from .engine import Pairs, Population, Settings, attribute
from .errors import InputError
from .explanation import Explanation
from .graph import Array, Graph, own_values, pick
from .importers import import_model
from .references.population import checked_weights
from .references.wiring import open_reference, reference_facts, reference_note
from .tables import Rows, read_rows


class Explainer:
    """Explains a model's scores against a reference population; build once, call on many tables.

    Parameters
    ----------
    model : fitted model or Graph
    reference : table or Reference
        The population that scores are explained against, (m, p); see `gigrad.references` for how to choose one.
    weights : (m,) array, optional
        One weight a reference row, not negative; they are scaled to sum to 1. Equal by default.
    output : None, "margin" or a transform
        None explains the number the model itself gives (predict for a regressor, predict_proba for a classifier, the
        positive class alone when binary), "margin" its raw score, a transform such as a SmoothedECDF that number
        mapped further.
    target : int or str, optional
        One of several outputs, by position or name. All by default.
    groups : mapping of str to sequence of str, optional
        Columns that act as one variable.
    tol : float
        Largest error of a credit, relative to the larger of |prediction| and |base|, where quadrature is needed.
    n_threads : int, optional
        All cores by default. Answers do not depend on it.
    seed : int
        For corners of so many variables that permutations are sampled.
    """

    def __init__(
        self,
        model: Any,
        reference: Any,
        *,
        weights: Any = None,
        output: Any = None,
        target: int | str | None = None,
        groups: Mapping[str, Sequence[str]] | None = None,
        tol: float = 1e-6,
        n_threads: int | None = None,
        seed: int = 0,
    ) -> None:
        self.scorer = Scorer(model, output, target)
        self.settings = _settings(tol, n_threads, seed)
        table, weights = open_reference(reference, weights)
        self.reference = read_rows(table, self.scorer.graph, what="reference")
        if len(self.reference) == 0:
            raise InputError("reference must have at least one row; it is empty.")
        self.weights = checked_weights(weights, len(self.reference))
        own = self.scorer.own(self.reference)
        self.base: Array = self.weights @ own
        facts = reference_facts(reference, self.reference, self.weights, self.scorer.graph.columns, own)
        self.provenance: dict[str, Any] = {
            **self.scorer.record,
            "reference": provenance.reference_record(self.reference, self.weights, reference_note(reference)) | facts,
            "settings": provenance.settings_record(tol, seed, groups),
        }

    def __call__(self, X: Any) -> Explanation:
        """Explain every row of a table."""
        rows = read_rows(X, self.scorer.graph, what="X")
        predictions = self.scorer.own(rows)
        paths = Population(self.reference.matrix, self.weights, rows.matrix)
        credit = attribute(self.scorer.node, self.scorer.graph.input, paths, self.settings)
        base = np.broadcast_to(self.base, predictions.shape)
        return self.scorer.explanation(credit.values, credit.error, base, predictions, rows, self.provenance)


def explain(
    model: Any,
    X: Any,
    reference: Any,
    *,
    weights: Any = None,
    output: Any = None,
    target: int | str | None = None,
    groups: Mapping[str, Sequence[str]] | None = None,
    tol: float = 1e-6,
    n_threads: int | None = None,
    seed: int = 0,
) -> Explanation:
    """Explain every row of X against a reference population. See `Explainer` for the arguments."""
    explainer = Explainer(
        model, reference, weights=weights, output=output, target=target, groups=groups, tol=tol, n_threads=n_threads,
        seed=seed,
    )  # fmt: skip
    return explainer(X)


def explain_pairs(
    model: Any,
    start: Any,
    end: Any,
    *,
    output: Any = None,
    target: int | str | None = None,
    groups: Mapping[str, Sequence[str]] | None = None,
    tol: float = 1e-6,
    n_threads: int | None = None,
    seed: int = 0,
) -> Explanation:
    """Explain for every i why the score of end[i] differs from that of start[i]. See `Explainer` for the arguments."""
    scorer = Scorer(model, output, target)
    settings = _settings(tol, n_threads, seed)
    starts = read_rows(start, scorer.graph, what="start")
    ends = read_rows(end, scorer.graph, what="end")
    if len(starts) != len(ends):
        raise InputError(f"start and end must have the same number of rows; they have {len(starts)} and {len(ends)}.")
    base, predictions = scorer.own(starts), scorer.own(ends)
    credit = attribute(scorer.node, scorer.graph.input, Pairs(starts.matrix, ends.matrix), settings)
    record = {
        **scorer.record,
        "reference": provenance.start_record(starts),
        "settings": provenance.settings_record(tol, seed, groups),
    }
    return scorer.explanation(credit.values, credit.error, base, predictions, ends, record)


class Scorer:
    """One output of a model: its node in the graph, and the model's own word for it."""

    def __init__(self, model: Any, output: Any, target: int | str | None) -> None:
        self.graph: Graph = import_model(model)
        node, names = self.graph.output(output)
        self.node, self.output_names = pick(node, names, target)
        self.record = {
            **provenance.model_record(self.graph, model, output, self.node, self.output_names),
            "versions": provenance.versions(),
        }

    def own(self, rows: Rows) -> Array:
        """The model's own predictions (n, k), after the graph has been seen to reproduce them."""
        return own_values(self.node, self.graph.witnesses, self.graph.input, rows)

    def explanation(
        self, values: Array, error: Array, base: Array, predictions: Array, rows: Rows, record: dict[str, Any]
    ) -> Explanation:
        """The result: one output loses its axis, the explained rows enter the record."""
        gap = predictions - base - values.sum(axis=1)
        if self.node.width == 1:
            values, error, gap = values[:, :, 0], error[:, 0], gap[:, 0]
            base, predictions = base[:, 0], predictions[:, 0]
        record = {**record, "data": provenance.data_record(rows)}
        return Explanation(values, base, predictions, gap, error, rows.table, rows.names, self.output_names, record)


def _settings(tol: float, n_threads: int | None, seed: int) -> Settings:
    if not 0 < tol < 1:
        raise InputError(f"tol must lie between 0 and 1; {tol!r} came.")
    if n_threads is not None and (not isinstance(n_threads, int) or n_threads < 1):
        raise InputError(f"n_threads must be a positive whole number or None; {n_threads!r} came.")
    return Settings(tol=tol, n_threads=n_threads, seed=int(seed))
