"""Tasks: explain the good rows of a piece of a table, copy its ids, and report its bad rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, NoReturn, get_args

import numpy as np
from numpy.typing import NDArray

from .._common.optional import require
from .._explain.explanation import Explanation
from .._io.row_checks import bad_rows
from .._io.tables import Rows, read_rows
from ..errors import InputError
from .accuracy import Accuracy, measured, too_inaccurate
from .layout import Layout, match

if TYPE_CHECKING:
    from .._explain.explainer import Explainer
    from .._explain.scorer import Scorer
    from .._questions.settler import Settler

OnError = Literal["fail", "skip", "null"]
"""What to do about a row that cannot be explained: end the run, leave it out, or keep an empty line for it."""
Ints = NDArray[np.int64]
SETTLED = ("references", "confidence")
"""Additional columns of results made with a settler."""


def check_on_error(asked: object) -> None:
    """Raise unless `on_error` is "fail", "skip" or "null"."""
    if asked not in get_args(OnError):
        raise InputError(f"on_error must be fail, skip or null (--on-error); got {asked!r}.")


class Found(NamedTuple):
    """The result for an explanation: a pyarrow table, the row number of each of its lines, and texts for the ledger (a
    shared head, then one record for each row)."""

    table: Any
    about: Ints
    records: Sequence[str] = ()


class Outcome(NamedTuple):
    """The outcome of a task for a table: the result, the rows without one and why, ledger records, and accuracy."""

    table: Any
    bad: dict[int, str]
    records: Sequence[str]
    accuracy: Accuracy


Lines = Callable[[Explanation], Found]
Concern = Callable[[NDArray[np.float64]], NDArray[np.bool_]]
"""Which rows a result is about, (n,), by their scores, (n,) or (n, outputs)."""


@dataclass(frozen=True, eq=False)
class RowReader:
    """Reads tables for one output of a model, and separates good rows from bad ones."""

    scorer: Scorer
    layout: Layout

    def read(self, table: Any) -> tuple[Rows | None, Ints, dict[int, str]]:
        """The rows that the model accepts, their positions in the table, and what is wrong with the others."""
        pa = require("pyarrow", "cli")
        graph = self.scorer.graph
        whole = self.layout.model_table(table, graph)
        kept, bad = np.arange(table.num_rows), self.layout.inexact(table, graph)
        try:
            rows = read_rows(whole, graph, what="the table")
            if not bad:
                return rows, kept, bad
        except InputError:
            bad = dict(sorted((bad_rows(whole, graph) | bad).items()))
            if not bad:
                raise
        kept = np.setdiff1d(kept, list(bad))
        if not len(kept):
            return None, kept, bad
        good = self.layout.model_table(table.take(pa.array(kept)), graph)
        return read_rows(good, graph, what="the table"), kept, bad

    def check(self, table: Any) -> dict[int, str]:
        """Row -> why it cannot be explained. Also compares the graph with the model's own predictions."""
        rows, kept, bad = self.read(table)
        return bad if rows is None else bad | not_finite(self.scorer.own(rows), kept)


@dataclass(frozen=True, eq=False)
class Task:
    """Explains tables of one schema.

    Attributes
    ----------
    explainer : Explainer
    reader : RowReader
    schema : pyarrow.Schema
        Of every result: the ids, then what `lines` gives.
    blank : pyarrow.Table
        The lines for a row without a result: as many as another row has, empty but for their output.
    lines : callable
    kind : str
        A description of the result, for `gigrad info`.
    record : dict
        What the lines depend on beside the explainer, for the identity of the run.
    data : dict, optional
        Provenance of the rows for their audit records; by default that of the piece itself.
    max_error : float, optional
        Rows with a larger error have no result; with `on_error` "fail" they are only counted.
    concern : callable, optional
        Which rows to explain; the others are only read and scored, which is fast.
    settler : Settler, optional
        Explains rows against as many references as settle their reasons; results have two columns more, `SETTLED`.
    """

    explainer: Explainer
    reader: RowReader
    schema: Any
    blank: Any
    lines: Lines
    kind: str
    record: dict[str, Any] = field(default_factory=dict)
    data: dict[str, Any] | None = None
    max_error: float | None = None
    concern: Concern | None = None
    settler: Settler | None = None

    @property
    def layout(self) -> Layout:
        return self.reader.layout

    def __call__(self, table: Any, on_error: OnError, numbers: Sequence[int] | None = None) -> Outcome:
        """The results of a table, in the order of its rows; `numbers` identify rows that have no ids."""
        pa = require("pyarrow", "cli")
        rows, kept, bad = self.reader.read(table)
        if rows is not None and self.concern is not None:
            rows, kept, more = self._concerned(rows, kept, self.concern)
            bad = dict(sorted((bad | more).items()))
        if bad and on_error == "fail":
            fail(bad, len(bad))
        found, about, records = Found(self.blank.slice(0, 0), np.zeros(0, np.int64))
        accuracy = Accuracy()
        if rows is not None:
            explanation, references = self.explained(rows)
            more = not_finite(explanation.predictions, kept)
            if more and on_error == "fail":
                fail(more, len(more))
            if on_error != "fail":
                more = too_inaccurate(explanation, self.max_error, kept) | more
            if more:
                bad |= more
                finite = np.flatnonzero(~np.isin(kept, list(more)))
                explanation, references, kept = explanation[finite], references[finite], kept[finite]
            accuracy = self.measured(explanation, references, kept, numbers)
            found, about, records = self.lines(self.named(explanation, table, kept, numbers))
            if self.settler is not None:
                found = _with_settled(found, references[about], self.settler.confidence(references[about]))
            about = kept[about]
        if on_error == "null" and bad:
            about = np.concatenate([about, np.repeat(np.array(list(bad), np.int64), self.blank.num_rows)])
            order = np.argsort(about, kind="stable")
            found = pa.concat_tables([found, *[self.blank] * len(bad)]).take(pa.array(order))
            about = about[order]
        ids = table.select(list(self.layout.ids)).take(pa.array(about))
        return Outcome(pa.table([*ids.columns, *found.columns], schema=self.schema), bad, records, accuracy)

    def _concerned(self, rows: Rows, kept: Ints, concern: Concern) -> tuple[Rows, Ints, dict[int, str]]:
        """The rows to explain, their positions in the table, and the rows without a score (row -> why)."""
        scores = self.explainer.scorer.own(rows)
        bad = not_finite(scores, kept)
        chosen = np.flatnonzero(concern(scores[:, 0] if scores.shape[1] == 1 else scores) & ~np.isin(kept, list(bad)))
        return rows.take(chosen), kept[chosen], bad

    def explained(self, rows: Rows) -> tuple[Explanation, Ints]:
        """The explanation of rows, and the number of references used for each."""
        if self.settler is not None:
            settled = self.settler(rows)
            return settled.explanation, settled.references
        e = self.explainer(rows, progress=False)  # a run shows its own progress
        return e, np.full(len(e), len(self.explainer.weights))

    def measured(self, e: Explanation, references: Ints, kept: Ints, numbers: Sequence[int] | None) -> Accuracy:
        """The accuracy of the credits of the rows `kept`; estimates of a settler are never out of tolerance."""
        settings = self.explainer.settings
        where = kept.tolist() if numbers is None else [numbers[i] for i in kept]
        found = measured(e, where, settings.tol, settings.corner_tol, self.max_error)
        whole = np.flatnonzero(references == len(self.explainer.weights))
        if len(whole) == len(e):
            return found
        exact = measured(e[whole], [where[i] for i in whole], settings.tol, settings.corner_tol, self.max_error)
        return replace(found, out_of_tolerance=exact.out_of_tolerance)

    def named(self, e: Explanation, table: Any, kept: Ints, numbers: Sequence[int] | None) -> Explanation:
        """The explanation with its row ids from the table, or else row numbers, and with the run's record of the data.

        `kept` are the rows of the table that it explains, `numbers` their numbers in the source.
        """
        columns = [table.column(name).to_pylist() for name in self.layout.ids]
        names: Sequence[Any] = range(table.num_rows) if numbers is None else numbers
        if columns:
            names = (
                columns[0] if len(columns) == 1 else [" / ".join(map(str, row)) for row in zip(*columns, strict=True)]
            )
        ids = np.empty(len(kept), dtype=object)
        ids[:] = [names[i] for i in kept]
        data = e.provenance["data"] if self.data is None else self.data
        return replace(e, ids=ids, provenance={**e.provenance, "data": data})


def credit_task(
    explainer: Explainer,
    schema: Any,
    *,
    id_cols: Sequence[str] = (),
    columns: Sequence[str] | None = None,
    settler: Settler | None = None,
) -> Task:
    """A task that computes every row's credits."""
    return make_task(explainer, schema, credit_lines, "credits", id_cols=id_cols, columns=columns, settler=settler)


def make_task(
    explainer: Explainer,
    schema: Any,
    lines: Lines,
    kind: str,
    *,
    id_cols: Sequence[str] = (),
    columns: Sequence[str] | None = None,
    record: dict[str, Any] | None = None,
    concern: Concern | None = None,
    settler: Settler | None = None,
) -> Task:
    """A task for tables of a schema; it is tried on an empty table first, so that conflicts show at once."""
    pa = require("pyarrow", "cli")
    graph = explainer.scorer.graph
    layout = match(schema.names, graph, id_cols, columns)
    if columns is not None and not graph.named:  # given by the caller, whatever the table's names
        layout = replace(layout, names=explainer.reference.names)
    none = layout.model_table(schema.empty_table().select(layout.needed), graph)
    empty = explainer(read_rows(none, graph, what="the table"))
    given, *_ = lines(empty)
    if settler is not None:
        given = _with_settled(given, np.zeros(0, np.int64), np.zeros(0))
        record = {**(record or {}), "settled": settler.asked}
    clash = [name for name in layout.ids if name in given.schema.names]
    if clash:
        raise InputError(f"The id column {clash[0]!r} has the name of a column of the result; rename it.")
    whole = pa.schema([schema.field(name) for name in layout.ids] + list(given.schema)).remove_metadata()
    blank = _blank(given.schema, empty.output_names)
    reader = RowReader(explainer.scorer, layout)
    return Task(explainer, reader, whole, blank, lines, kind, record or {}, concern=concern, settler=settler)


def _with_settled(table: Any, references: Ints, confidence: Any) -> Any:
    """Lines with columns for the number of references used and the confidence in the reasons."""
    pa = require("pyarrow", "cli")
    for name, column in zip(SETTLED, (pa.array(references, pa.int64()), pa.array(confidence)), strict=True):
        table = table.append_column(name, column)
    return table


def _blank(schema: Any, outputs: Sequence[str]) -> Any:
    """A line for each output, empty but for its name, which lines have where there are several."""
    pa = require("pyarrow", "cli")
    columns = [pa.array(outputs, f.type) if f.name == "output" else pa.nulls(len(outputs), f.type) for f in schema]
    return pa.table(columns, schema=schema)


def credit_lines(explanation: Explanation) -> Found:
    """The wide table of an explanation: a line for each row and output."""
    table = explanation.to_arrow().drop_columns(["id"]).replace_schema_metadata(None)
    return Found(table, np.repeat(np.arange(len(explanation)), len(explanation.output_names)))


def fail(bad: dict[int, str], count: int) -> NoReturn:
    """Raise an InputError that names the first bad row."""
    row, why = next(iter(bad.items()))
    fail_named(f"Row {row}", why, f" {count - 1} more rows are bad." if count > 1 else "")


def fail_named(row: str, why: str, more: str = "") -> NoReturn:
    """Raise an InputError about a row; `row` is its name in the message."""
    raise InputError(
        f"{row} cannot be explained: {why.rstrip('.')}.{more} To go on without such rows use on_error skip or null "
        "(--on-error)."
    )


def not_finite(predictions: Any, kept: Ints) -> dict[int, str]:
    """Row -> why, for rows whose score is not a finite number."""
    finite = np.isfinite(predictions)
    bad = kept[~(finite if finite.ndim == 1 else finite.all(axis=1))]
    return {int(row): "the model's score of this row is not a finite number" for row in bad}
