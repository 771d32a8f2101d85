"""What is done with a piece of a table: its good rows explained, its ids carried along, its bad rows named."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, NoReturn, get_args

import numpy as np
from numpy.typing import NDArray

from .._common.optional import require
from .._explain.explanation import Explanation
from .._io.tables import Rows, bad_rows, read_rows
from ..errors import InputError
from .accuracy import Accuracy, measured, too_inaccurate
from .layout import Layout, match

if TYPE_CHECKING:
    from .._explain.explainer import Explainer
    from .._explain.scorer import Scorer

OnError = Literal["fail", "skip", "null"]
"""What to do about a row that cannot be explained: end the run, leave it out, or keep an empty line for it."""
Ints = NDArray[np.int64]


def check_on_error(asked: object) -> None:
    """Refuse what is none of the three."""
    if asked not in get_args(OnError):
        raise InputError(f"on_error must be fail, skip or null (--on-error); got {asked!r}.")


class Found(NamedTuple):
    """What an explanation gives: a pyarrow table, the row that each of its lines is about, and records for the ledger:
    what they share first, then each one's own."""

    table: Any
    about: Ints
    records: Sequence[str] = ()


class Outcome(NamedTuple):
    """What a task made of a table: the result, the rows that have none and why, records that are kept beside it, and
    how accurate it is."""

    table: Any
    bad: dict[int, str]
    records: Sequence[str]
    accuracy: Accuracy


Lines = Callable[[Explanation], Found]


@dataclass(frozen=True, eq=False)
class RowReader:
    """Reads tables for one output of a model, good rows and bad ones apart."""

    scorer: Scorer
    layout: Layout

    def read(self, table: Any) -> tuple[Rows | None, Ints, dict[int, str]]:
        """The rows that the model can take, where they stand in the table, and what is wrong with the others."""
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
        """Row -> why it cannot be explained. The model's own predictions are compared on the way."""
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
        What stands for a row without a result: as many lines as another row has, empty but for their output.
    lines : callable
    kind : str
        What the result is, for `gigrad info`.
    record : dict
        What decides the lines beside the explainer, for the record of the run.
    data : dict, optional
        Where the rows come from, for the record of each; by default what the piece itself tells.
    max_error : float, optional
        Rows whose credits may be off by more have no result; with `on_error` "fail" they are only counted.
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

    @property
    def layout(self) -> Layout:
        return self.reader.layout

    def __call__(self, table: Any, on_error: OnError, numbers: Sequence[int] | None = None) -> Outcome:
        """The results of a table, in the order of its rows, which may have `numbers` that they go by without ids."""
        pa = require("pyarrow", "cli")
        rows, kept, bad = self.reader.read(table)
        if bad and on_error == "fail":
            fail(bad, len(bad))
        found, about, records = Found(self.blank.slice(0, 0), np.zeros(0, np.int64))
        accuracy = Accuracy()
        if rows is not None:
            explanation = self.explainer(rows, progress=False)  # a run shows how far it is itself
            more = not_finite(explanation.predictions, kept)
            if more and on_error == "fail":
                fail(more, len(more))
            if on_error != "fail":
                more = too_inaccurate(explanation, self.max_error, kept) | more
            if more:
                bad |= more
                finite = np.flatnonzero(~np.isin(kept, list(more)))
                explanation, kept = explanation[finite], kept[finite]
            accuracy = self.measured(explanation, kept, numbers)
            found, about, records = self.lines(self.named(explanation, table, kept, numbers))
            about = kept[about]
        if on_error == "null" and bad:
            about = np.concatenate([about, np.repeat(np.array(list(bad), np.int64), self.blank.num_rows)])
            order = np.argsort(about, kind="stable")
            found = pa.concat_tables([found, *[self.blank] * len(bad)]).take(pa.array(order))
            about = about[order]
        ids = table.select(list(self.layout.ids)).take(pa.array(about))
        return Outcome(pa.table([*ids.columns, *found.columns], schema=self.schema), bad, records, accuracy)

    def measured(self, e: Explanation, kept: Ints, numbers: Sequence[int] | None) -> Accuracy:
        """How accurate the credits of the rows `kept` are."""
        settings = self.explainer.settings
        where = kept.tolist() if numbers is None else [numbers[i] for i in kept]
        return measured(e, where, settings.tol, settings.corner_tol, self.max_error)

    def named(self, e: Explanation, table: Any, kept: Ints, numbers: Sequence[int] | None) -> Explanation:
        """The explanation with its rows called by their ids, or by where they stand in the source."""
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
    explainer: Explainer, schema: Any, *, id_cols: Sequence[str] = (), columns: Sequence[str] | None = None
) -> Task:
    """The task that gives every row's credits."""
    return make_task(explainer, schema, credit_lines, "credits", id_cols=id_cols, columns=columns)


def make_task(
    explainer: Explainer,
    schema: Any,
    lines: Lines,
    kind: str,
    *,
    id_cols: Sequence[str] = (),
    columns: Sequence[str] | None = None,
    record: dict[str, Any] | None = None,
) -> Task:
    """A task for tables of a schema. Its result is tried on no rows, so that everything that can clash does it now."""
    pa = require("pyarrow", "cli")
    graph = explainer.scorer.graph
    layout = match(schema.names, graph, id_cols, columns)
    if columns is not None and not graph.named:  # it was said which columns these are, whatever the table calls them
        layout = replace(layout, names=explainer.reference.names)
    none = layout.model_table(schema.empty_table().select(layout.needed), graph)
    empty = explainer(read_rows(none, graph, what="the table"))
    given, *_ = lines(empty)
    clash = [name for name in layout.ids if name in given.schema.names]
    if clash:
        raise InputError(f"The id column {clash[0]!r} has the name of a column of the result; rename it.")
    whole = pa.schema([schema.field(name) for name in layout.ids] + list(given.schema)).remove_metadata()
    blank = _blank(given.schema, empty.output_names)
    return Task(explainer, RowReader(explainer.scorer, layout), whole, blank, lines, kind, record or {})


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
    """Refuse a table because of its bad rows."""
    row, why = next(iter(bad.items()))
    fail_named(f"Row {row}", why, f" {count - 1} more rows are bad." if count > 1 else "")


def fail_named(row: str, why: str, more: str = "") -> NoReturn:
    """Refuse a table because of a row, which a sentence calls so."""
    raise InputError(
        f"{row} cannot be explained: {why.rstrip('.')}.{more} To go on without such rows use on_error skip or null "
        "(--on-error)."
    )


def not_finite(predictions: Any, kept: Ints) -> dict[int, str]:
    """The rows whose score cannot be explained because it is no number."""
    finite = np.isfinite(predictions)
    bad = kept[~(finite if finite.ndim == 1 else finite.all(axis=1))]
    return {int(row): "the model's score of this row is not a finite number" for row in bad}
