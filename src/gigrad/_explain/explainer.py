"""The whole flow: import the model, check it against its own predictions, compute the credit, report the gap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import Any, Unpack

import numpy as np

from .._common import checks
from .._common.progress import parts, shown, wanted
from .._io import provenance
from .._io.tables import Rows, read_record, read_rows, under_names
from ..configuration import config
from ..engine import KnownStarts, Population, Settings, distinct, told_apart
from ..errors import InputError
from ..graph import Array, Choice, Scores
from .choosing import choose
from .cost import warn_of_cost
from .explanation import Explanation
from .grouping import Grouping
from .options import Keywords, Options, takes_options
from .reference_parts import credits_by_part
from .scorer import Scorer
from .tracing import Traced, chosen_rows, trace_population

_ROWS_FOR_RANGES = 64
TRACING = 3
"""Tracing a row's path takes roughly this many times as long as its credits; used for the progress display."""


class Explainer:
    """Explains a model's scores against a reference population; build once, call on many tables.

    Parameters
    ----------
    model : fitted model or Graph
    reference : table or Reference
        The population that scores are compared with, (m, p); see `gigrad.references` for how to choose one.
    weights : (m,) array, optional
        One weight a reference row, not negative; they are scaled to sum to 1. Equal by default.
    output : None, "margin" or a transform
        None explains the number the model itself gives (predict for a regressor, predict_proba for a classifier, the
        positive class alone when binary), "margin" its raw score, a transform such as a SmoothedECDF that number
        mapped further.
    target : str, int, float or bool, optional
        One of several outputs or classes: by the label of the class, else by position; all by default. A binary
        classifier gives its positive class alone; the other class, where selected, is 1 - probability (in margin space
        the negative), and a transform then maps that.
    groups : mapping of str to sequence of str, optional
        Columns that act as one variable, at corners and in the result, say the dummies of one category.
    discrete : names, mapping of names to values, or (), optional
        Columns without values in between (flags, counts, terms): trees see them change half-way between two values,
        which are the whole numbers, or those that a mapping lists, see `discrete_values`. By default those whose
        reference values are whole and whose type is integer or boolean, or whose thresholds all lie at multiples of
        one half. The choice is made here, once; () for none. See the page "Flags, counts and categories".
    nominal : sequence of str, optional
        Columns of numbers that are codes: they change all at once, half-way, in smooth parts of the model too.
    tol : float
        Largest error of a credit, relative to the larger of `|prediction|` and `|base|`, where quadrature is needed.
    n_threads : int, optional
        All cores by default. Answers do not depend on it.
    seed : int
        For corners of so many variables that orders are sampled.
    corner_tol : float
        Largest error of a row's credits from those corners, relative to the row's largest credit; `error` says what
        was reached. 0 evaluates all coalitions wherever that is possible, up to 24 variables.
    progress : bool, optional
        Whether to show how far the scoring of the reference is, if it takes longer than two seconds; by default as
        `gigrad.config.progress` says.

    Examples
    --------
    >>> import gigrad as gig
    >>> explainer = gig.Explainer(tree, [[0, 0], [0, 1]])
    >>> e = explainer([[1, 1], [0, 1]])
    >>> e.base_values
    array([0.5, 0.5])
    >>> e.values
    array([[2.5, 1. ],
           [0. , 0.5]])
    """

    @takes_options
    def __init__(
        self,
        model: Any,
        reference: Any,
        *,
        weights: Any = None,
        progress: bool | None = None,
        **options: Unpack[Keywords],
    ) -> None:
        from ..references.wiring import reference_facts  # unused by loaded explainers
        from .weighted_rows import WeightedRows

        show = wanted(progress, config.progress)
        asked = Options.of(options)
        scorer = Scorer.of(model, asked.output, asked.target)
        settings = asked.settings()
        given = WeightedRows.read(reference, weights, scorer.graph, "reference", "reference row")
        rows = given.rows
        scorer = scorer.under(choose(scorer.graph, [rows], asked.discrete, asked.nominal), rows.names)
        grouping = Grouping.of(rows.names, asked.groups)
        warn_of_cost(scorer, rows.matrix, settings)
        with shown(show, "scoring the reference", len(rows)):
            scores = scorer.scores(rows)
        facts = reference_facts(reference, rows, given.weights, scorer.columns, scores.own)
        record = {
            **scorer.record,
            "reference": given.record | facts,
            "settings": provenance.settings_record(settings, asked.groups),
        }
        self._assemble(scorer, rows, given.weights, scores, settings, grouping, record)

    def _assemble(
        self,
        scorer: Scorer,
        reference: Rows,
        weights: Array,
        scores: Scores,
        settings: Settings,
        grouping: Grouping,
        record: dict[str, Any],
    ) -> None:
        """Set all attributes; used by `__init__` and when a portable file is loaded."""
        self.scorer, self.grouping, self.provenance = scorer, grouping, record
        self.settings = replace(settings, players=grouping.players)
        self.reference, self.weights, self.base = reference, weights, weights @ scores.own
        self.reference_scores = scores.graph
        self._at_starts, self._at_distinct = KnownStarts(), KnownStarts()
        self._distinct = distinct(told_apart(scorer.node, scorer.source, reference.matrix), weights)

    @property
    def choice(self) -> Choice:
        """Which columns are discrete and which nominal, and why: chosen when the explainer was built."""
        return self.scorer.choice

    @classmethod
    def assembled(
        cls,
        scorer: Scorer,
        reference: Rows,
        weights: Array,
        settings: Settings,
        grouping: Grouping,
        record: dict[str, Any],
    ) -> Explainer:
        """An explainer built from parts that need no further checks, such as those in a portable file."""
        self = cls.__new__(cls)
        self._assemble(scorer, reference, weights, scorer.scores(reference), settings, grouping, record)
        return self

    def __call__(
        self, X: Any, *, paths: int | Sequence[int] = 0, reference_parts: int = 0, progress: bool | None = None
    ) -> Explanation:
        """Explain every row of a table.

        Parameters
        ----------
        X : table
        paths : int or sequence of int
            The number of rows, from the first, or the rows, whose path from the reference is kept: score, credits and
            jumps over time, which `plots.path` and the report draw.
        reference_parts : int
            The number of random parts to split the reference into; the credits against each part are kept, and give
            intervals over references, see `Explanation.summary`. 50 are enough. Time doubles, and memory grows with
            the number; `values` stay the same.
        progress : bool, optional
            Whether to show how far the work is, if it takes longer than two seconds; by default as
            `gigrad.config.progress` says.
        """
        show = wanted(progress, config.progress)
        graph, known = self.scorer.graph, self.reference.names
        rows = under_names(read_rows(X, graph, what="X"), known, graph, what="X", other="the reference")
        return self._explained(rows, paths, reference_parts, show)

    def one(self, record: Mapping[str, Any]) -> Explanation:
        """Explain one row, given as a mapping of column names to values, as a service receives it.

        The same numbers as those of a table of that row, to the bit, in a fraction of the time.

        Parameters
        ----------
        record : mapping of str to number, text, bool or None
            A value for every column of the model, None where it is missing, and nothing else. Dates and other values
            are taken where a table with them is.

        Returns
        -------
        Explanation
            Of one row; its `data` is an array of objects, (1, p).

        Examples
        --------
        >>> import gigrad as gig
        >>> explainer = gig.Explainer(tree, [[0, 0], [0, 1]])
        >>> explainer.one({"x0": 1, "x1": 1}).values
        array([[2.5, 1. ]])
        """
        graph, known = self.scorer.graph, self.reference.names
        rows = read_record(record, graph, known)
        return self._explained(under_names(rows, known, graph, what="The record", other="the reference"), 0, 0, False)

    def _explained(self, rows: Rows, paths: int | Sequence[int], reference_parts: int, show: bool) -> Explanation:
        """The explanation of rows whose columns are those of the reference, as `__call__` describes it."""
        scores = self.scorer.scores(rows)
        asked, single = chosen_rows(paths, len(rows)), checks.whole(reference_parts, "reference_parts", least=0)
        self.scorer.refuse_ignored(self.reference, rows)
        population = Population(self.reference.matrix, self.weights, rows.matrix)
        population.tell(self.scorer.node, self.reference_scores, scores.graph)
        population.share_starts(self._at_starts)
        traced = Traced(self.scorer.graph, self.scorer.node, self.settings)
        with shown(show, "explaining", len(rows)):
            whole, again, ways = parts(len(rows), len(rows) if single else 0, TRACING * len(asked))
            with whole:
                credit = self.scorer.credit(self._merged(population, scores.graph), self.settings)
            with again:
                kept = single and credits_by_part(self.scorer, population, single, self.settings)
            with ways:
                found = trace_population(traced, population, asked) if len(asked) else None
        base = np.broadcast_to(self.base, scores.own.shape)
        credit = self.scorer.held_to_own(credit, base, scores.own, self.settings.tol)
        e = self.scorer.explanation(credit, base, scores.own, rows, self.grouping, self.provenance)
        self.scorer.tell_why(e, lambda _: self.reference.matrix, rows, self.settings.tol)
        return replace(e, paths=found, reference_parts=kept or None)

    def _merged(self, population: Population, scores: Array) -> Population:
        """The same paths, with references that are equal for the model merged: flags and categories recur."""
        if self._distinct is None:
            return population
        first, weights = self._distinct
        merged = Population(self.reference.matrix[first], weights, population.ends)
        merged.tell(self.scorer.node, self.reference_scores[first], scores)
        merged.share_starts(self._at_distinct)
        return merged

    def credit_ranges(self, groups: Mapping[str, Sequence[str]] | None = None) -> dict[str, float]:
        """The range of each feature's or group's credits over 64 rows of the reference, or over all of fewer.

        Passed to `gigrad.reasons(..., ranges=...)`, as the command line and Spark do, they decide ties between reasons
        independently of which other rows are explained.
        """
        matrix = self.reference.matrix
        some = matrix[np.unique(np.linspace(0, len(matrix) - 1, _ROWS_FOR_RANGES).astype(int))]
        population = Population(matrix, self.weights, some)
        credit = self.scorer.credit(population, self.settings)
        none = np.zeros((len(some), self.scorer.node.width))  # scores are not used
        rows = Rows(some, some, self.reference.names)
        plain = self.scorer.explanation(credit, none, none, rows, self.grouping, {})
        if plain.values.ndim != 2:
            raise InputError("Ranges of credits are about one output; choose one with target.")
        grouped = plain.group(groups) if groups else plain
        return dict(zip(grouped.feature_names, np.ptp(grouped.values, axis=0).tolist(), strict=True))

    def save(self, path: str | PathLike[str], *, reference: str = "full", rows: int = 50) -> None:
        """Write the explainer to one .gig file, which can be loaded anywhere without the model's library.

        It holds numbers and text only, never code; a model with a part that is known only as a Python function cannot
        be saved. `Explainer.load` gives the same credits, to the bit, where the reference is saved in full.

        Parameters
        ----------
        path : path
        reference : "full" or "distilled"
            The file holds the reference's rows, which are personal data: all of them, or `rows` weighted ones that keep
            the mean score and come close to the marginals, see `references.distill`. That is another reference, and
            credits are those against it; the provenance says so, and how close it is.
        rows : int
            How many, where it is distilled.
        """
        from .. import portable

        if reference not in ("full", "distilled"):
            raise InputError(f'reference must be "full" or "distilled"; got {reference!r}.')
        portable.save(self if reference == "full" else self.distilled(rows), path)

    def distilled(self, rows: int = 50) -> Explainer:
        """An explainer like this one against few weighted rows of its reference; see `references.distill`.

        Examples
        --------
        >>> import gigrad as gig
        >>> explainer = gig.Explainer(model, X)
        >>> few = explainer.distilled(20)
        >>> len(few.reference), bool(abs(few.base[0] - explainer.base[0]) < 1e-9)
        (20, True)
        """
        from ..references import all_applicants, distill

        whole = self.reference
        if not checks.whole(rows, "rows", 2) < len(whole):
            raise InputError(f"rows must be fewer than the reference's {len(whole)}; got {rows}. Save it in full.")
        scores = self.scorer.scores(whole).own[:, 0] if self.scorer.node.width == 1 else None
        few = distill(all_applicants(whole.matrix, self.weights, scores=scores), rows)
        chosen = Rows(few.rows, few.rows, whole.names)
        before = self.provenance["reference"]
        record = provenance.reference_record(chosen, few.weights, few.provenance)
        more = {"distilled_from": before["fingerprint"], "quality": dict(few.quality)}
        return Explainer.assembled(
            self.scorer, chosen, few.weights, self.settings, self.grouping,
            self.provenance | {"reference": before | record | more},
        )  # fmt: skip

    @classmethod
    def load(cls, path: str | PathLike[str], *, n_threads: int | None = None) -> Explainer:
        """Read what `save` wrote; a damaged file raises CorruptModelError, and reading one never runs code.

        The model's library is not used: predictions come from the graph, which was compared with the model when the
        explainer was made, and `gap` is measured against them. `provenance` says so.
        """
        from .. import portable

        return portable.load(path, n_threads=n_threads)


@takes_options
def explain(
    model: Any,
    X: Any,
    reference: Any,
    *,
    weights: Any = None,
    paths: int | Sequence[int] = 0,
    reference_parts: int = 0,
    progress: bool | None = None,
    **options: Unpack[Keywords],
) -> Explanation:
    """Explain every row of X against a reference population.

    Parameters
    ----------
    model : fitted model or Graph
    X : table, (n, p)
        The rows to explain: a NumPy array, or a pandas, polars or pyarrow table whose columns are matched by name.
    reference : table or Reference, (m, p)
        The population that scores are explained against.
    weights, output, target, groups, discrete, nominal, tol, n_threads, seed, corner_tol
        As in `Explainer`.
    paths : int or sequence of int
        The number of rows, from the first, or the rows, whose path is kept: see `plots.path`.
    reference_parts : int
        The number of random parts of the reference to keep the credits against: see `Explainer.__call__`.
    progress : bool, optional
        Whether to show how far the work is, if it takes longer than two seconds; by default in a terminal or a notebook
        (see `gigrad.config`).

    Returns
    -------
    Explanation
        `values` is (n, p), or (n, p, k) for k outputs, in the units of the explained output.

    Examples
    --------
    >>> import gigrad as gig
    >>> e = gig.explain(tree, [[1, 1]], [[0, 0]])
    >>> e.values  # both pass their threshold at once, and share the corner
    array([[2., 2.]])
    >>> e.base_values + e.values.sum(axis=1) + e.gap
    array([4.])
    """
    explainer = Explainer(model, reference, weights=weights, progress=progress, **options)
    return explainer(X, paths=paths, reference_parts=reference_parts, progress=progress)
