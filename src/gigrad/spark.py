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
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from . import portable
from ._common.optional import require
from .batch.rejects import rejects_schema
from .batch.tasks import OnError, Task, credit_task
from .errors import InputError, MissingDependencyError

if TYPE_CHECKING:
    from ._explain.explainer import Explainer


def explain(
    frame: Any,
    explainer: Explainer,
    *,
    id_cols: Sequence[str] = (),
    columns: Sequence[str] | None = None,
    on_error: OnError = "fail",
) -> Any:
    """The credits of every row of a Spark DataFrame, as `gigrad.batch.explain_batch` gives them.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
    explainer : Explainer
        One that can be saved: it travels as a portable file.
    id_cols, columns, on_error
        As in `explain_batch`.

    Returns
    -------
    pyspark.sql.DataFrame
        Lazy, like every DataFrame; rows keep their order within a partition.
    """
    return _mapped(frame, explainer, _Credits(id_cols, columns), _Results(on_error))


def rejects(
    frame: Any, explainer: Explainer, *, id_cols: Sequence[str] = (), columns: Sequence[str] | None = None
) -> Any:
    """The rows of a Spark DataFrame that cannot be explained: their ids, and the reason of each.

    They are what `on_error` "skip" leaves out and "null" leaves empty. Rows are scored, not explained, so this costs
    little beside `explain`.

    Parameters
    ----------
    frame, explainer, id_cols, columns
        As in `explain`.

    Returns
    -------
    pyspark.sql.DataFrame
        Lazy; `id_cols`, then `reason`.
    """
    return _mapped(frame, explainer, _Credits(id_cols, columns), _Rejects())


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
) -> Any:
    """The reasons of every refused row of a Spark DataFrame, a line for each; see `batch.reasons.reason_task`."""
    from ._reasons.statements import read_statements

    # Read here: executors do not see the file.
    book = [s.as_record() for s in read_statements(statements)] or None
    options = {
        "columns": columns, "top": top, "statements": book, "groups": groups, "exclude": exclude,
        "min_share": min_share, "higher_is_better": higher_is_better, "cutoff": cutoff, "everybody": everybody,
        "permitted": permitted,
    }  # fmt: skip
    return _mapped(frame, explainer, _Reasons(id_cols, options), _Results(on_error))


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

    def __init__(self, on_error: OnError) -> None:
        if on_error not in ("fail", "skip", "null"):
            raise InputError(f'on_error must be "fail", "skip" or "null"; got {on_error!r}.')
        self.on_error = on_error

    def schema(self, task: Task) -> Any:
        return task.schema

    def __call__(self, task: Task, table: Any) -> Any:
        return task(table, self.on_error).table


class _Rejects:
    """The ids of rows without a result, and why."""

    def schema(self, task: Task) -> Any:
        return rejects_schema(task).remove(0)  # no row has a number in Spark

    def __call__(self, task: Task, table: Any) -> Any:
        import pyarrow as pa

        bad = task.reader.check(table)
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
