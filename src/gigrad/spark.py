"""Spark: a DataFrame in, a DataFrame out, through `mapInArrow` and a broadcast portable explainer.

Every task reads the explainer from its bytes once, with one thread: Spark gives each task one core. Executors need
gigrad, NumPy and pyarrow, and no model library. A task that fails is simply done again, since a batch depends on
nothing but its rows.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from . import portable
from ._common.log import logger
from ._common.optional import require
from .batch.accuracy import checked_max_error, hold
from .batch.rejects import rejects_schema
from .batch.targets import records_path, write_ledger
from .batch.tasks import OnError, Outcome, Task, check_on_error, credit_task
from .errors import InputError, MissingDependencyError

if TYPE_CHECKING:
    from ._explain.explainer import Explainer

_log = logger("spark")


def explain(
    frame: Any,
    explainer: Explainer,
    *,
    id_cols: Sequence[str] = (),
    columns: Sequence[str] | None = None,
    on_error: OnError = "fail",
    max_error: float | None = None,
) -> Any:
    """The credits of every row of a Spark DataFrame, as `gigrad.batch.explain_batch` gives them.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
    explainer : Explainer
        One that can be saved: it travels as a portable file.
    id_cols, columns, on_error
        As in `explain_batch`.
    max_error : float, optional
        Rows whose credits may be off by more are left out or empty, as `on_error` says; "fail" stops the job.

    Returns
    -------
    pyspark.sql.DataFrame
        Lazy, like every DataFrame; rows keep their order within a partition.
    """
    return _mapped(frame, explainer, _Credits(id_cols, columns), _Results(on_error, max_error))


def rejects(
    frame: Any,
    explainer: Explainer,
    *,
    id_cols: Sequence[str] = (),
    columns: Sequence[str] | None = None,
    max_error: float | None = None,
) -> Any:
    """The rows of a Spark DataFrame that cannot be explained: their ids, and the reason of each.

    They are what `on_error` "skip" leaves out and "null" leaves empty. Rows are scored, not explained, so this costs
    little beside `explain`; with `max_error` they are explained, too.

    Parameters
    ----------
    frame, explainer, id_cols, columns, max_error
        As in `explain`.

    Returns
    -------
    pyspark.sql.DataFrame
        Lazy; `id_cols`, then `reason`.
    """
    return _mapped(frame, explainer, _Credits(id_cols, columns), _Rejects(max_error))


def reasons(
    frame: Any,
    explainer: Explainer,
    *,
    id_cols: Sequence[str] = (),
    columns: Sequence[str] | None = None,
    on_error: OnError = "fail",
    top: int = 4,
    statements: Any = None,
    groups: Mapping[str, Sequence[str]] | None = None,
    exclude: Sequence[str] | None = None,
    min_share: float = 0.0,
    higher_is_better: bool | None = None,
    cutoff: float | None = None,
    everybody: bool = False,
    permitted: Sequence[str] | None = None,
    max_error: float | None = None,
    audit: str | os.PathLike[str] | None = None,
    key: bytes | None = None,
) -> Any:
    """The reasons of every refused row of a Spark DataFrame, a line for each; see `batch.reasons.reason_task`.

    Parameters
    ----------
    frame, explainer, id_cols, columns, on_error
        As in `explain`.
    top, statements, groups, exclude, min_share, higher_is_better, cutoff, everybody, permitted
        As in `gigrad.reasons` and `gigrad reasons`.
    max_error : float, optional
        Rows whose credits may be off by more are left out or empty, as `on_error` says; "fail" stops the job.
    audit : path, optional
        Write the record of every applicant to this ledger (.jsonl or .jsonl.gz), on the driver, before this returns;
        the rows are explained once, and kept by Spark until the result is let go of.
    key : bytes, optional
        Signs the ledger.

    Returns
    -------
    pyspark.sql.DataFrame
    """
    from ._reasons.statements import read_statements

    # Read here: executors do not see the file.
    book = [s.as_record() for s in read_statements(statements)] or None
    options = {
        "columns": columns, "top": top, "statements": book, "groups": groups, "exclude": exclude,
        "min_share": min_share, "higher_is_better": higher_is_better, "cutoff": cutoff, "everybody": everybody,
        "permitted": permitted, "audit": audit is not None,
    }  # fmt: skip
    make = _Reasons(id_cols, options)
    if audit is None:
        return _mapped(frame, explainer, make, _Results(on_error, max_error))
    path = records_path(os.fspath(audit))
    both = _mapped(frame, explainer, make, _Audited(on_error, max_error)).persist()
    named = both.columns[-1]
    written = both.filter(both[f"`{named}`"].isNotNull()).select(f"`{named}`")
    # sorted, so that the same rows give the same ledger however Spark has spread them; what they share comes first
    texts = (row[0] for row in written.sort(f"`{named}`").toLocalIterator())
    count = write_ledger(path, _blocks(texts), key)
    _log.info("ledger of %s lines written to %s", f"{count:,}", path)
    return both.filter(both[f"`{named}`"].isNull()).drop(named)


def local_session(cores: int | None = None, failures: int = 4) -> Any:
    """A Spark session on this machine, whose workers run this very Python; a task may fail `failures` - 1 times."""
    sql = require("pyspark.sql", "spark")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        raise MissingDependencyError("Spark needs Java 17, which is not found: install it, or set JAVA_HOME.")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    master = f"local[{cores or '*'},{failures}]"
    return sql.SparkSession.builder.master(master).appName("gigrad").config("spark.ui.enabled", "false").getOrCreate()


class _Credits:
    """How a worker makes its task: small enough to be sent along with every one."""

    def __init__(self, ids: Sequence[str], columns: Sequence[str] | None) -> None:
        self.ids, self.columns = ids, columns

    def __call__(self, explainer: Explainer, schema: Any) -> Task:
        return credit_task(explainer, schema, id_cols=self.ids, columns=self.columns)


class _Reasons:
    def __init__(self, ids: Sequence[str], options: dict[str, Any]) -> None:
        self.ids, self.options = ids, options

    def __call__(self, explainer: Explainer, schema: Any) -> Task:
        from .batch.reasons import reason_task

        return reason_task(explainer, schema, id_cols=self.ids, **self.options)


class _Results:
    """What a worker does with its task: the results of the rows."""

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
"""Where rows come from, for their records: the same for all, whichever batch they came in."""


def _blocks(texts: Iterator[str]) -> Iterator[bytes]:
    """Records with what they share, which comes before them and must be one thing."""
    shared = ""
    for text in texts:
        if not text.startswith(_SHARED):
            yield f"{shared}\n{text}\n".encode()
        elif shared not in ("", text[1:]):
            raise InputError("The workers disagree about the rules or the model; see that all have the same gigrad.")
        else:
            shared = text[1:]


_SHARED = "!"  # sorts before the brace that every record begins with


class _Audited(_Results):
    """The results of the rows, and lines that hold nothing but a record, or what the records of a batch share."""

    def schema(self, task: Task) -> Any:
        import pyarrow as pa

        names = task.schema.names
        free = next(n for n in ("record", *(f"record_{i}" for i in range(len(names) + 1))) if n not in names)
        return task.schema.append(pa.field(free, pa.string()))

    def __call__(self, task: Task, table: Any) -> Any:
        import pyarrow as pa

        found, schema = self.done(task, table), self.schema(task)
        texts = [f"{_SHARED}{text}" if i == 0 else text for i, text in enumerate(found.records)]
        empty = pa.nulls(found.table.num_rows, pa.string())
        lines = pa.table([*found.table.columns, empty], schema=schema)
        blank = [pa.nulls(len(texts), field.type) for field in task.schema]
        return pa.concat_tables([lines, pa.table([*blank, pa.array(texts, pa.string())], schema=schema)])


class _Rejects:
    """The ids of rows without a result, and why."""

    def __init__(self, max_error: float | None = None) -> None:
        self.max_error = checked_max_error(max_error)

    def schema(self, task: Task) -> Any:
        return rejects_schema(task).remove(0)  # no row has a number in Spark

    def __call__(self, task: Task, table: Any) -> Any:
        import pyarrow as pa

        if self.max_error is None:
            bad = task.reader.check(table)
        else:
            bad = replace(task, max_error=self.max_error)(table, "skip").bad
        ids = table.select(list(task.layout.ids)).take(pa.array(list(bad), pa.int64()))
        return pa.table([*ids.columns, pa.array(bad.values(), pa.string())], schema=self.schema(task))


def _mapped(frame: Any, explainer: Explainer, make: Any, do: _Results | _Rejects) -> Any:
    types = require("pyspark.sql.pandas.types", "spark")
    data = portable.to_bytes(explainer)
    task = make(portable.from_bytes(data, n_threads=1), types.to_arrow_schema(frame.schema))
    schema = do.schema(task)
    shared = frame.sparkSession.sparkContext.broadcast(data)
    needed = task.layout.needed
    # Spark resolves names on the way and takes a dot in one for a part of a structure; numbers it cannot misread.
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
