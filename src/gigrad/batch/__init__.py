"""Tables explained in bulk: a pure function for one batch of rows, and a runner for tables on disk.

explain_batch   RecordBatch in, RecordBatch out, to be called by Spark, Dask or Ray
run             a file or folder in, a file or folder out, streaming and resumable

sources.py, readers.py   tables on disk in pieces of a fixed number of rows
layout.py, tasks.py      which column is what; good rows explained, bad rows reported
workspace.py             the parts that an unfinished run has completed, safe from crashes
targets.py, rejects.py   the finished result, written atomically
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .._common.optional import require
from ..errors import InputError, kind_of
from .run import run
from .summary import Summary
from .tasks import OnError, check_on_error, credit_task

if TYPE_CHECKING:
    from .._explain.explainer import Explainer

__all__ = ["Summary", "explain_batch", "output_schema", "run"]


def explain_batch(
    explainer: Explainer,
    batch: Any,
    *,
    id_cols: Sequence[str] = (),
    columns: Sequence[str] | None = None,
    on_error: OnError = "fail",
) -> Any:
    """Explain the rows of one batch. A pure function: it depends on its arguments and changes nothing.

    Parameters
    ----------
    explainer : Explainer
    batch : pyarrow.RecordBatch
    id_cols : sequence of str
        Columns to copy to the result.
    columns : sequence of str, optional
        The batch's names of the model's columns, in the model's order. By default they are matched by name.
    on_error : "fail", "skip" or "null"
        What to do about rows that cannot be explained: raise, leave them out, or keep them with empty cells (in a
        line for each output where there are several).

    Returns
    -------
    pyarrow.RecordBatch
        The ids, then `output` where there are several outputs (a line for each), `base_value`, `prediction`, `gap`,
        `error` and `credit_<column>` for every column of the model.

    Examples
    --------
    >>> import gigrad as gig
    >>> import pyarrow as pa
    >>> explainer = gig.Explainer(gig.import_model(tree).with_columns(["age", "debt"]), [[0, 0]])
    >>> batch = pa.RecordBatch.from_pydict({"id": ["a"], "debt": [1.0], "age": [1.0]})
    >>> credits = gig.batch.explain_batch(explainer, batch, id_cols=["id"])
    >>> credits.schema.names
    ['id', 'base_value', 'prediction', 'gap', 'error', 'credit_age', 'credit_debt']
    """
    pa = require("pyarrow", "cli")
    if not isinstance(batch, pa.RecordBatch):
        raise InputError(f"explain_batch takes a pyarrow.RecordBatch; got {kind_of(batch)}.")
    check_on_error(on_error)
    task = credit_task(explainer, batch.schema, id_cols=id_cols, columns=columns)
    table = task(pa.Table.from_batches([batch]), on_error).table
    return table.combine_chunks().to_batches()[0] if table.num_rows else pa.RecordBatch.from_pylist([], task.schema)


def output_schema(
    explainer: Explainer, schema: Any, *, id_cols: Sequence[str] = (), columns: Sequence[str] | None = None
) -> Any:
    """The pyarrow schema of the result of `explain_batch` for batches of a given schema.

    Parameters
    ----------
    explainer : Explainer
    schema : pyarrow.Schema
        That of the batches.
    id_cols, columns
        As in `explain_batch`.

    Examples
    --------
    >>> import gigrad as gig
    >>> import pyarrow as pa
    >>> explainer = gig.Explainer(gig.import_model(tree).with_columns(["age", "debt"]), [[0, 0]])
    >>> loans = pa.schema({"age": pa.float64(), "debt": pa.float64()})
    >>> gig.batch.output_schema(explainer, loans).names
    ['base_value', 'prediction', 'gap', 'error', 'credit_age', 'credit_debt']
    """
    return credit_task(explainer, schema, id_cols=id_cols, columns=columns).schema
