"""Spark: a DataFrame in, a DataFrame out, through `mapInArrow` and a broadcast portable explainer.

Every task reads the explainer from its bytes once, with one thread: Spark gives each task one core. Executors need
gigrad, NumPy and pyarrow, and no model library. Failed tasks can be retried, since a batch depends on nothing but its
rows.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Unpack

from .._common.optional import require
from .._common.reason_options import ReasonKeywords, takes_reason_options
from ..batch.targets import records_path
from ..batch.tasks import OnError
from ..errors import MissingDependencyError
from . import workers

if TYPE_CHECKING:
    from .._explain.explainer import Explainer


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
        One that can be saved: it is sent to executors as a portable file.
    id_cols, columns, on_error
        As in `explain_batch`.
    max_error : float, optional
        Rows whose credits may be off by more are left out or empty, as `on_error` says; "fail" stops the job.

    Returns
    -------
    pyspark.sql.DataFrame
        Lazy, like every DataFrame; rows keep their order within a partition.
    """
    return workers.mapped(frame, explainer, workers.CreditMaker(id_cols, columns), workers.Results(on_error, max_error))


def rejects(
    frame: Any,
    explainer: Explainer,
    *,
    id_cols: Sequence[str] = (),
    columns: Sequence[str] | None = None,
    max_error: float | None = None,
) -> Any:
    """The rows of a Spark DataFrame that cannot be explained: their ids, and the reason of each.

    These are the rows that `on_error` "skip" leaves out and "null" leaves empty. Rows are only scored, so this costs
    little beside `explain`; with `max_error` they are explained too.

    Parameters
    ----------
    frame, explainer, id_cols, columns, max_error
        As in `explain`.

    Returns
    -------
    pyspark.sql.DataFrame
        Lazy; `id_cols`, then `reason`.
    """
    return workers.mapped(frame, explainer, workers.CreditMaker(id_cols, columns), workers.Rejects(max_error))


@takes_reason_options
def reasons(
    frame: Any,
    explainer: Explainer,
    *,
    id_cols: Sequence[str] = (),
    columns: Sequence[str] | None = None,
    on_error: OnError = "fail",
    cutoff: float | None = None,
    everybody: bool = False,
    max_error: float | None = None,
    audit: str | os.PathLike[str] | None = None,
    key: bytes | None = None,
    **options: Unpack[ReasonKeywords],
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
        the rows are explained once, and cached by Spark until the result is released.
    key : bytes, optional
        Signs the ledger.

    Returns
    -------
    pyspark.sql.DataFrame
    """
    table = {"columns": columns, "cutoff": cutoff, "everybody": everybody, "audit": audit is not None}
    make = workers.ReasonMaker(id_cols, {**options, **table})
    if audit is None:
        return workers.mapped(frame, explainer, make, workers.Results(on_error, max_error))
    path = records_path(os.fspath(audit))
    lines, notes = workers.noted(frame, explainer, make, on_error, max_error)
    workers.write_records(path, notes, key)
    return lines


def local_session(cores: int | None = None, failures: int = 4) -> Any:
    """A Spark session on this machine with the same Python interpreter; a task may fail `failures` - 1 times."""
    sql = require("pyspark.sql", "spark")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        raise MissingDependencyError("Spark needs Java 17, which is not found: install it, or set JAVA_HOME.")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    master = f"local[{cores or '*'},{failures}]"
    return sql.SparkSession.builder.master(master).appName("gigrad").config("spark.ui.enabled", "false").getOrCreate()
