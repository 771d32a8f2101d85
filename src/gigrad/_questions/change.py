"""Why scores moved between two dates: data, model and transform, in one additive statement for every customer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, Unpack

import numpy as np

from .._common import checks
from .._explain.choosing import choose, choose_for_pairs
from .._explain.explanation import row_ids
from .._explain.grouping import Grouping
from .._explain.options import Keywords, Options, takes_options
from .._explain.scorer import Scorer
from .._explain.weighted_rows import WeightedRows
from .._io import provenance
from .._io.tables import Rows, read_rows, under_names
from ..engine import Credits, Pairs, Population, Settings
from ..errors import InputError, kind_of
from ..graph import Graph, merge
from .joining import mapped, one_score, side_by_side
from .score_change import ScoreChange
from .steps import AXES, CUTOFF, MODEL, TRANSFORM, Order, Scored, Step, constant_step, mean, orders_of, walk

WHEN = ("before", "after")


@takes_options
def explain_change(
    before: tuple[Any, Any],
    after: tuple[Any, Any],
    *,
    reference: Any = None,
    weights: Any = None,
    transform: tuple[Any, Any] | None = None,
    cutoff: tuple[float, float] | None = None,
    order: str | Sequence[str] = "mean",
    **options: Unpack[Keywords],
) -> ScoreChange:
    """Explain why each customer's score moved between two dates, through new data, a new model and a new transform.

    Parameters
    ----------
    before, after : (model, rows)
        Row i is the same customer in both. If both have the same model object, there is no model step.
    reference : table or Reference, optional
        Splits the effect of a new model or transform over the variables: each gets its credit against the reference,
        after less before; the change of the reference's mean score is the step's `level`. Without a reference, such a
        step is one number for each customer.
    weights : array, optional
        Of the reference rows.
    transform : pair, optional
        What maps the scores before and after: transforms such as a SmoothedECDF, fitted calibrators, or None.
    cutoff : pair of float, optional
        The passing scores. What is explained is then the score less the cutoff.
    order : "mean" or a sequence of "data", "model", "transform"
        The order of the steps. "mean" is the mean over all orders, which favours none; `orders` has each.
    output, target, groups, tol, n_threads, seed, corner_tol
        As in `explain`, for both models.
    discrete, nominal
        As in `Explainer` where there is a reference, else as in `explain_pairs`; one choice for both models.

    Returns
    -------
    ScoreChange
        Whose parts add up to the change of every customer's score.

    Examples
    --------
    >>> import gigrad as gig
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> new = DecisionTreeRegressor().fit([[0, 0], [0, 1], [1, 0], [1, 1]], [0, 1, 3, 4])
    >>> change = gig.explain_change(before=(tree, [[0, 1]]), after=(new, [[1, 1]]))
    >>> change.before, change.after
    (array([1.]), array([4.]))
    >>> dict(zip(change.steps, change.totals[0].tolist()))
    {'data': 3.0, 'model': 0.0}
    """
    asked = Options.of(options)
    tables, graphs = _tables_and_graphs(before, after, asked.output, asked.target)
    joint, which = _states(graphs, _pair(transform, "transform", (None, None)))
    limits = _cutoffs(_pair(cutoff, "cutoff", (0.0, 0.0)))
    settings = asked.settings()
    rows = _read(tables, joint)
    if reference is None and weights is not None:
        raise InputError("weights are those of the reference rows; give reference=, or leave them out.")
    against = None if reference is None else _reference(reference, weights, joint, rows[1])
    choice = (
        choose_for_pairs(joint, *rows, asked.discrete, asked.nominal)
        if against is None
        else choose(joint, [against.rows], asked.discrete, asked.nominal)
    )
    scorer = Scorer.of(joint, None, None).under(choice, rows[1].names)
    grouping = Grouping.of(rows[1].names, asked.groups)
    scored = _scored(scorer, rows, against, which, replace(settings, players=grouping.players))
    walked = {one: walk(scored, one) for one in orders_of(_changing(which))}
    steps = _chosen(order, walked)
    if cutoff is not None:
        steps[CUTOFF] = constant_step(limits[0] - limits[1], scored.pairs.shape[:2])
    values, level, totals = (np.stack([getattr(s, f) for s in steps.values()], 1) for f in ("values", "level", "total"))
    return ScoreChange(
        steps=tuple(steps),
        feature_names=tuple(grouping.members),
        ids=_ids(rows[1]),
        before=scored.own[0][:, which[0, 0]] - limits[0],
        after=scored.own[1][:, which[1, 1]] - limits[1],
        values=values,
        level=level,
        totals=totals,
        gap=totals - values.sum(axis=2) - level,
        error=np.sum([s.error for s in steps.values()], axis=0),
        orders={one: np.stack([s.total for s in found.values()], axis=1) for one, found in walked.items()},
        tables=(rows[0].table, rows[1].table),
        columns=rows[1].names,
        picked=np.arange(len(rows[1])),
        provenance={
            **_record(scorer, graphs, (before[0], after[0]), rows, against),
            "order": "mean" if order == "mean" else list(order),
            "transform": [None if t is None else repr(t) for t in transform or (None, None)],
            "cutoff": None if cutoff is None else list(limits),
            "settings": provenance.settings_record(settings, asked.groups),
        },
    )


def _reference(given: Any, weights: Any, graph: Graph, like: Rows) -> WeightedRows:
    """The reference, with its columns under the names of the rows after."""
    found = WeightedRows.read(given, weights, graph, "reference", "reference row")
    return replace(found, rows=under_names(found.rows, like.names, graph, what="reference", other="the rows after"))


def _tables_and_graphs(before: Any, after: Any, output: Any, target: Any) -> tuple[list[Any], list[Graph]]:
    """The tables of both dates, and both models as graphs with one score; the same object is the same graph."""
    for when, given in zip(WHEN, (before, after), strict=True):
        if not isinstance(given, (tuple, list)) or len(given) != 2:
            raise InputError(f"{when} must be a pair (model, rows); got {kind_of(given)}.")
    first = one_score(before[0], output, target, "The model before")
    same = after[0] is before[0]
    return [before[1], after[1]], [first, first if same else one_score(after[0], output, target, "The model after")]


def _states(graphs: Sequence[Graph], transforms: tuple[Any, Any]) -> tuple[Graph, dict[tuple[int, int], int]]:
    """One graph with the score of every model under every transform, and the position of each among its outputs."""
    joined = merge(graphs)
    found: dict[str, Graph] = {}
    places: dict[tuple[int, int], int] = {}
    for m, t in product((0, 1), (0, 1)):
        model = 0 if joined[0] is joined[1] else m
        step = 0 if transforms[0] is transforms[1] else t
        name = f"{WHEN[model]}, {WHEN[step]}"
        if name not in found:
            found[name] = mapped(joined[model], transforms[step], "transform")
        places[m, t] = list(found).index(name)
    return side_by_side(found), places


def _changing(which: Mapping[tuple[int, int], int]) -> list[str]:
    """The names of the steps: the data, and the model and the transform where they are not the same object."""
    same = {MODEL: which[0, 0] == which[1, 0], TRANSFORM: which[0, 0] == which[0, 1]}
    return [axis for axis in AXES if not same.get(axis, False)]


def _read(tables: Sequence[Any], graph: Graph) -> tuple[Rows, Rows]:
    """The rows of both dates, of the same customers."""
    first, last = (read_rows(t, graph, what=f"the rows {w}") for w, t in zip(WHEN, tables, strict=True))
    first = under_names(first, last.names, graph, what="the rows before", other="those after")
    if len(first) != len(last):
        raise InputError(
            f"before and after must hold the same customers; there are {len(first)} rows before and {len(last)} after. "
            "Keep those who are in both; explain_gap compares two populations."
        )
    old, new = _ids(first), _ids(last)
    differs = np.flatnonzero(np.array([a != b for a, b in zip(old.tolist(), new.tolist(), strict=True)], np.bool_))
    if first.is_frame and last.is_frame and len(differs):
        i = int(differs[0])
        raise InputError(
            f"before and after must hold the same customers in the same order; row {i} is {old[i]!r} before and "
            f"{new[i]!r} after. Align the tables, say after.loc[before.index]."
        )
    return first, last


def _scored(
    scorer: Scorer,
    rows: tuple[Rows, Rows],
    against: WeightedRows | None,
    which: Mapping[tuple[int, int], int],
    settings: Settings,
) -> Scored:
    """The scores and credits that the steps need in any order."""
    node = scorer.node
    own = [scorer.scores(one) for one in rows]
    scorer.refuse_ignored(*rows)
    pairs = Pairs(rows[0].matrix, rows[1].matrix)
    pairs.tell(node, own[0].graph, own[1].graph)
    moved = scorer.held_to_own(scorer.credit(pairs, settings), own[0].own, own[1].own, settings.tol)
    scores = (own[0].own, own[1].own)
    if against is None or node.width == 1:
        return Scored(which, scores, moved.values, moved.error, None, None, None)
    base = against.weights @ scorer.scores(against.rows).own
    credits: list[Credits] = []
    for one, at in zip(rows, own, strict=True):
        scorer.refuse_ignored(against.rows, one)
        population = Population(against.rows.matrix, against.weights, one.matrix)
        found = scorer.credit(population, settings)
        credits.append(scorer.held_to_own(found, np.broadcast_to(base, at.own.shape), at.own, settings.tol))
    first, last = credits
    return Scored(
        which, scores, moved.values, moved.error, (first.values, last.values), (first.error, last.error), base
    )


def _chosen(order: str | Sequence[str], walked: Mapping[Order, Mapping[str, Step]]) -> dict[str, Step]:
    """The steps in the given order, or their means over all orders."""
    axes = next(iter(walked))
    if order == "mean":
        return {axis: mean([found[axis] for found in walked.values()]) for axis in AXES if axis in axes}
    given = order if isinstance(order, (list, tuple)) else ()
    wanted = tuple(a for a in given if a in axes)
    if wanted not in walked or not all(a in AXES for a in given):
        raise InputError(
            f'order must be "mean" or name each of {", ".join(map(repr, axes))} once, first to last; got {order!r}.'
        )
    return dict(walked[wanted])


def _pair(given: Any, what: str, otherwise: tuple[Any, Any]) -> tuple[Any, Any]:
    """What the caller gives for both dates, as (before, after)."""
    if given is None:
        return otherwise
    if not isinstance(given, (tuple, list)) or len(given) != 2:
        raise InputError(f"{what} must be a pair (before, after); got {given!r:.80}.")
    return given[0], given[1]


def _cutoffs(given: tuple[Any, Any]) -> tuple[float, float]:
    if not all(checks.is_number(c) and np.isfinite(c) for c in given):
        raise InputError(f"cutoff must be a pair of finite numbers (before, after); got {given!r:.80}.")
    return float(given[0]), float(given[1])


def _ids(rows: Rows) -> Any:
    return row_ids(rows.table, len(rows))


def _record(
    scorer: Scorer,
    graphs: Sequence[Graph],
    models: tuple[Any, Any],
    rows: tuple[Rows, Rows],
    against: WeightedRows | None,
) -> dict[str, Any]:
    """The provenance: both models, both tables and the reference."""
    record = {name: scorer.record[name] for name in ("definition", "versions", "choice")}
    for when, graph, model, table in zip(WHEN, graphs, models, rows, strict=True):
        named = provenance.model_record(graph, model, None, graph.score, graph.output_names)
        record[when] = {**named, "data": provenance.data_record(table)}
    record["reference"] = None if against is None else against.record
    return record
