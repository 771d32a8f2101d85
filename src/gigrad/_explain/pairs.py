"""Why one row scores differently from another: every row against a start of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Unpack

from .._common.progress import shown, wanted
from .._io import provenance
from .._io.tables import read_rows, under_names
from ..configuration import config
from ..engine import Pairs
from ..errors import InputError
from .choosing import choose_for_pairs
from .explanation import Explanation
from .grouping import Grouping
from .options import Keywords, Options, takes_options
from .scorer import Scorer
from .tracing import Traced, chosen_rows, trace_pairs


@takes_options
def explain_pairs(
    model: Any,
    start: Any,
    end: Any,
    *,
    paths: int | Sequence[int] = 0,
    progress: bool | None = None,
    **options: Unpack[Keywords],
) -> Explanation:
    """Explain for every i why the score of end[i] differs from that of start[i].

    Parameters
    ----------
    model : fitted model or Graph
    start, end : tables, (n, p)
        As many rows in both; row i of the one belongs to row i of the other.
    output, target, groups, tol, n_threads, seed, corner_tol, paths, progress
        As in `explain`.
    discrete, nominal
        As in `explain`. There is no reference: by default a column is discrete if all thresholds on it lie at multiples
        of one half, or if its type is integer or boolean in both tables.

    Returns
    -------
    Explanation
        Whose `base_values` are the scores of `start`, whose `data` is `end` and whose `starts` are `start`.

    Examples
    --------
    >>> import gigrad as gig
    >>> gig.explain_pairs(tree, start=[[0, 0], [1, 0]], end=[[1, 1], [1, 1]]).values
    array([[2., 2.],
           [0., 3.]])
    """
    asked = Options.of(options)
    scorer = Scorer.of(model, asked.output, asked.target)
    settings = asked.settings()
    starts = read_rows(start, scorer.graph, what="start")
    ends = read_rows(end, scorer.graph, what="end")
    if len(starts) != len(ends):
        raise InputError(f"start and end must have the same number of rows; they have {len(starts)} and {len(ends)}.")
    starts = under_names(starts, ends.names, scorer.graph, what="start", other="end")
    scorer = scorer.under(choose_for_pairs(scorer.graph, starts, ends, asked.discrete, asked.nominal), ends.names)
    grouping = Grouping.of(ends.names, asked.groups)
    settings = replace(settings, players=grouping.players)
    traced = chosen_rows(paths, len(ends))
    at_starts, at_ends = scorer.scores(starts), scorer.scores(ends)
    scorer.refuse_ignored(starts, ends)
    pairs = Pairs(starts.matrix, ends.matrix)
    pairs.tell(scorer.node, at_starts.graph, at_ends.graph)
    with shown(wanted(progress, config.progress), "explaining", len(ends), "pairs"):
        credit = scorer.credit(pairs, settings)
    credit = scorer.held_to_own(credit, at_starts.own, at_ends.own, settings.tol)
    record = {
        **scorer.record,
        "reference": provenance.start_record(starts),
        "settings": provenance.settings_record(settings, asked.groups),
    }
    e = scorer.explanation(credit, at_starts.own, at_ends.own, ends, grouping, record, starts)
    scorer.tell_why(e, lambda row: starts.matrix[[row]], ends, settings.tol)
    if not len(traced):
        return e
    return replace(e, paths=trace_pairs(Traced(scorer.graph, scorer.node, settings), pairs, traced))
