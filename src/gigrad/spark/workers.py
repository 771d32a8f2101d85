"""The functions that Spark's workers run, and the driver's processing of their notes (records and totals)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import portable
from .._common.log import logger
from .._common.optional import require
from ..batch.accuracy import Accuracy, checked_max_error, hold
from ..batch.ids import Ids
from ..batch.rejects import rejects_schema
from ..batch.targets import write_ledger
from ..batch.tasks import OnError, Outcome, Task, check_on_error, credit_task
from ..errors import InputError

if TYPE_CHECKING:
    from .._explain.explainer import Explainer

_log = logger("spark")


class CreditMaker:
    """Makes a worker's task for credits; a small object that is sent with every Spark task."""

    def __init__(self, ids: Sequence[str], columns: Sequence[str] | None) -> None:
        self.ids, self.columns = ids, columns

    def __call__(self, explainer: Explainer, schema: Any) -> Task:
        return credit_task(explainer, schema, id_cols=self.ids, columns=self.columns)


class ReasonMaker:
    """Makes a worker's task for reasons; the statements are read on the driver, which has their file."""

    def __init__(self, ids: Sequence[str], options: dict[str, Any]) -> None:
        from .._reasons.statements import read_statements

        book = [s.as_record() for s in read_statements(options.get("statements"))] or None
        self.ids, self.options = ids, {**options, "statements": book}

    def __call__(self, explainer: Explainer, schema: Any) -> Task:
        from ..batch.reasons import reason_task

        return reason_task(explainer, schema, id_cols=self.ids, **self.options)


class Results:
    """Runs a task on a worker and returns the results of its rows."""

    def __init__(self, on_error: OnError, max_error: float | None = None) -> None:
        check_on_error(on_error)
        self.on_error, self.max_error = on_error, checked_max_error(max_error)

    def schema(self, task: Task) -> Any:
        return task.schema

    def done(self, task: Task, table: Any) -> Outcome:
        found = replace(task, max_error=self.max_error, data=_DATA)(table, self.on_error)
        hold(found.accuracy, self.max_error, table.num_rows)
        return found

    def __call__(self, task: Task, table: Any) -> Any:
        return self.done(task, table).table


_DATA = {"source": "a Spark DataFrame"}
"""The provenance of rows in their records: the same for all batches."""


@dataclass(frozen=True)
class RunTotals:
    """Counts and accuracy of the rows of a worker, or of all workers."""

    rows: int = 0
    written: int = 0
    rejected: int = 0
    accuracy: Accuracy = field(default_factory=Accuracy)

    def __add__(self, other: RunTotals) -> RunTotals:
        return RunTotals(
            self.rows + other.rows, self.written + other.written, self.rejected + other.rejected,
            self.accuracy + other.accuracy,
        )  # fmt: skip

    def as_text(self) -> str:
        return json.dumps(asdict(self) | {"accuracy": self.accuracy.as_record()})

    @classmethod
    def from_text(cls, text: str) -> RunTotals:
        found = json.loads(text)
        return cls(**found | {"accuracy": Accuracy.total([found["accuracy"]])})


class Noted(Results):
    """Runs a task and returns the results with additional lines for notes: a record, the shared head of a batch's
    records, or the totals of a batch. As notes are rows of the result, a retried task does not count twice."""

    def schema(self, task: Task) -> Any:
        """The result's columns and one more, under a free name, for each batch's record."""
        import pyarrow as pa

        names = task.schema.names
        free = next(n for n in ("record", *(f"record_{i}" for i in range(len(names) + 1))) if n not in names)
        return task.schema.append(pa.field(free, pa.string()))

    def __call__(self, task: Task, table: Any) -> Any:
        import pyarrow as pa

        found, schema = self.done(task, table), self.schema(task)
        accuracy = replace(found.accuracy, worst_row=None)  # rows have no numbers in Spark
        totals = RunTotals(table.num_rows, found.table.num_rows, len(found.bad), accuracy)
        texts = [f"{_SHARED}{text}" if i == 0 else text for i, text in enumerate(found.records)]
        texts.append(f"{_TOTALS}{totals.as_text()}")
        empty = pa.nulls(found.table.num_rows, pa.string())
        lines = pa.table([*found.table.columns, empty], schema=schema)
        blank = [pa.nulls(len(texts), field.type) for field in task.schema]
        return pa.concat_tables([lines, pa.table([*blank, pa.array(texts, pa.string())], schema=schema)])


_SHARED, _TOTALS = "!", "#"  # sort before the brace that every record begins with


def noted(frame: Any, explainer: Explainer, make: Any, on_error: OnError, max_error: float | None) -> tuple[Any, Any]:
    """Frames of the results and of the workers' notes; rows are explained once, and cached until released."""
    both = mapped(frame, explainer, make, Noted(on_error, max_error)).persist()
    column = both[f"`{both.columns[-1]}`"]
    notes = both.filter(column.isNotNull()).select(column.alias("note"))
    return both.filter(column.isNull()).drop(both.columns[-1]), notes


def total(notes: Any) -> RunTotals:
    """The totals over all workers."""
    said = notes.filter(notes["note"].startswith(_TOTALS)).collect()
    return sum((RunTotals.from_text(row[0][1:]) for row in said), RunTotals())


def write_records(path: Path, notes: Any, key: bytes | None) -> None:
    """Write the ledger of the records among the notes, on the driver."""
    # sorted, so that the ledger does not depend on Spark's partitions; the shared head comes first
    texts = (row[0] for row in notes.filter(~notes["note"].startswith(_TOTALS)).sort("note").toLocalIterator())
    count = write_ledger(path, _blocks(texts), key)
    _log.info("ledger of %s lines written to %s", f"{count:,}", path)


def _blocks(texts: Iterator[str]) -> Iterator[bytes]:
    """Records as `write_ledger` takes them: each after the head that all share, which must be the same everywhere."""
    shared = ""
    for text in texts:
        if not text.startswith(_SHARED):
            yield f"{shared}\n{text}\n".encode()
        elif shared not in ("", text[1:]):
            raise InputError(
                "All workers must have the same rules and model; they differ. Install the same gigrad on all of them."
            )
        else:
            shared = text[1:]


def look_at_ids(frame: Any, columns: Sequence[str]) -> Ids:
    """The counts of missing and duplicate ids, without examples, since rows have no numbers in Spark."""
    functions = require("pyspark.sql.functions", "spark")
    names = _numbered("id", len(columns))
    given = _numbered("in", len(frame.columns))
    chosen = frame.toDF(*given).select(*[given[frame.columns.index(name)] for name in columns]).toDF(*names)
    present = functions.lit(True)
    for name, kind in chosen.dtypes:
        column = chosen[name]
        present = present & column.isNotNull() & (column.cast("string") != "")
        if kind in ("double", "float"):
            present = present & ~functions.isnan(column)
    counts = chosen.filter(present).groupBy(*names).count()
    named, distinct = counts.agg(functions.sum("count"), functions.count("count")).head()
    return Ids(chosen.count() - (named or 0), (named or 0) - distinct)


class Rejects:
    """Runs a task on a worker and returns the ids of rows without a result, and why."""

    def __init__(self, max_error: float | None = None) -> None:
        self.max_error = checked_max_error(max_error)

    def schema(self, task: Task) -> Any:
        return rejects_schema(task).remove(0)  # rows have no numbers in Spark

    def __call__(self, task: Task, table: Any) -> Any:
        import pyarrow as pa

        if self.max_error is None:
            bad = task.reader.check(table)
        else:
            bad = replace(task, max_error=self.max_error)(table, "skip").bad
        ids = table.select(list(task.layout.ids)).take(pa.array(list(bad), pa.int64()))
        return pa.table([*ids.columns, pa.array(bad.values(), pa.string())], schema=self.schema(task))


def mapped(frame: Any, explainer: Explainer, make: Any, do: Results | Rejects) -> Any:
    """The result of a task for a Spark table: each worker loads the explainer once and maps batches of rows."""
    types = require("pyspark.sql.pandas.types", "spark")
    data = portable.to_bytes(explainer)
    task = make(portable.from_bytes(data, n_threads=1), types.to_arrow_schema(frame.schema))
    schema = do.schema(task)
    shared = frame.sparkSession.sparkContext.broadcast(data)
    needed = task.layout.needed
    # Spark resolves column names and reads a dot as access to a struct field; numbered names are safe.
    given, wanted = _numbered("in", len(frame.columns)), _numbered("out", len(schema))

    def work(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        own = None
        for batch in batches:
            table = pa.Table.from_batches([batch]).rename_columns(needed)
            own = own or make(_loaded(shared.value), table.schema)
            yield from do(own, table).rename_columns(wanted).to_batches()

    chosen = frame.toDF(*given).select(*[given[frame.columns.index(name)] for name in needed])
    renamed = schema.empty_table().rename_columns(wanted).schema
    return chosen.mapInArrow(work, types.from_arrow_schema(renamed)).toDF(*schema.names)


@lru_cache(maxsize=2)
def _loaded(data: bytes) -> Explainer:
    """One explainer for all tasks of a worker process."""
    return portable.from_bytes(data, n_threads=1)


def _numbered(prefix: str, count: int) -> list[str]:
    return [f"{prefix}_{i}" for i in range(count)]
