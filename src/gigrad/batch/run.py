"""The runner: explains a table on disk into another, in bounded memory, and can resume after any interruption."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from .._common import checks
from .._common.log import logger
from .._io.durable import keep_apart, permissions
from ..errors import InputError
from .accuracy import Accuracy, checked_max_error, hold, warned_once
from .identity import head_of_run, identity_of
from .ids import IdPolicy, Ids, IdWatch, act_on, checked_policy, look_at_ids
from .rejects import rejects_schema, rejects_table
from .sources import DamagedInputError, Piece, Source, format_of
from .summary import Summary, finished, reported
from .targets import Target, records_path, with_head, write_ledger, write_table
from .tasks import OnError, Task, check_on_error, credit_task, fail
from .workspace import Part, Workspace, is_resumable, open_workspace

if TYPE_CHECKING:
    from .._explain.explainer import Explainer
    from .._questions.settler import Settler

Progress = Callable[[str, int, int], None]
"""Called with the phase ("checking" or "explaining"), rows done, and rows in all (an estimate for CSV)."""
_log = logger("batch")


@dataclass(frozen=True)
class Job:
    """The options of a run; see `run` for their meaning. Audit records go to the file `records`, signed by `key`."""

    on_error: OnError = "fail"
    rejects: str | Path | None = None
    batch_rows: int | None = None
    restart: bool = False
    progress: Progress | None = None
    records: str | Path | None = None
    max_error: float | None = None
    ids: IdPolicy = "warn"
    summary: str | Path | None = None
    skip_if_done: bool = False
    mode: int | None = None
    key: bytes | None = None


def run(
    explainer: Explainer,
    source: str | Path,
    sink: str | Path,
    *,
    id_cols: Sequence[str] = (),
    columns: Sequence[str] | None = None,
    on_error: OnError = "fail",
    rejects: str | Path | None = None,
    batch_rows: int | None = None,
    restart: bool = False,
    progress: Progress | None = None,
    max_error: float | None = None,
    ids: IdPolicy = "warn",
    summary: str | Path | None = None,
    skip_if_done: bool = False,
    mode: int | None = None,
    settle: float | None = None,
    higher_is_better: bool | None = None,
) -> Summary:
    """Explain every row of a table on disk, and write the credits to another.

    If the process is killed at any moment, the same call resumes, and the result is the same, to the byte.

    Parameters
    ----------
    explainer : Explainer
    source : path
        A .parquet, .csv or .arrow file, or a folder of .parquet files.
    sink : path
        A file with one of these endings, or a name without one for a folder of .parquet files. While the run is
        unfinished, its parts are in `<sink>.unfinished`.
    id_cols : sequence of str
        Columns of the source to copy to the result.
    columns : sequence of str, optional
        The source's names of the model's columns, in the model's order. By default they are matched by name.
    on_error : "fail", "skip" or "null"
        What to do about rows that cannot be explained: refuse the table before anything is written, leave them out, or
        keep them with empty cells, a line for each output. The last two write a file that says which and why.
    rejects : path, optional
        That file; `<sink>.rejects.csv` by default.
    batch_rows : int, optional
        Rows at a time, which bounds the memory. By default as many as make about half a million credits.
    restart : bool
        Discard an interrupted run to the same sink with other inputs, another model or other settings.
    progress : callable, optional
    max_error : float, optional
        The largest allowed `error` of a credit in the result, in units of the score. With `on_error` "fail" a row that
        exceeds it is an AccuracyError and nothing is written; else the row is rejected.
    ids : "warn", "fail" or "allow"
        What to do about rows with a missing or duplicate id: warn once, refuse the table before anything is written, or
        do not check. The check keeps 16 bytes a row in memory.
    summary : path, optional
        A JSON file with the status of the run ("running", then "done" or "failed"), rows, seconds, versions,
        fingerprints.
    skip_if_done : bool
        Do nothing if the target already is the result of the same inputs, model and settings.
    mode : int, optional
        The permissions of new files, such as 0o640. By default only the owner may read and write them (0600, or less by
        the umask); a file that is replaced keeps its mode.
    settle : float, optional
        A confidence, such as 0.99: each row is explained against as many references as settle its four reasons, see
        `gigrad.settle`. Credits are then estimates, with the number of references and the confidence in two columns
        `references` and `confidence`.
    higher_is_better : bool, optional
        With `settle`, which direction is adverse; by default as the reference says.

    Returns
    -------
    Summary

    Examples
    --------
    >>> import gigrad as gig
    >>> import pyarrow as pa
    >>> from pyarrow import parquet
    >>> explainer = gig.Explainer(gig.import_model(tree).with_columns(["age", "debt"]), [[0, 0]])
    >>> loans = pa.table({"id": ["a", "b"], "age": [1.0, 0.0], "debt": [1.0, 1.0]})
    >>> parquet.write_table(loans, "loans.parquet")
    >>> done = gig.batch.run(explainer, "loans.parquet", "credits.parquet", id_cols=["id"])
    >>> done.rows, done.rejected
    (2, 0)
    >>> parquet.read_table("credits.parquet")["credit_debt"].to_pylist()
    [2.0, 1.0]
    """
    opened = Source.open(source)
    settler = settler_of(explainer, settle, higher_is_better=higher_is_better)
    task = credit_task(explainer, opened.schema(), id_cols=id_cols, columns=columns, settler=settler)
    job = Job(
        on_error=on_error, rejects=rejects, batch_rows=batch_rows, restart=restart, progress=progress,
        max_error=max_error, ids=ids, summary=summary, skip_if_done=skip_if_done, mode=mode,
    )  # fmt: skip
    return run_task(task, opened, sink, job)


def settler_of(
    explainer: Explainer,
    confidence: float | None,
    *,
    top: int = 4,
    higher_is_better: bool | None = None,
    seed: int = 0,
) -> Settler | None:
    """The settler for a confidence; None if `confidence` is None."""
    if confidence is None:
        return None
    from .._questions.settler import Settler
    from .._questions.settling import TIE

    return Settler.of(explainer, confidence, top, TIE, higher_is_better, seed)


def run_task(task: Task, source: Source, sink: str | Path, job: Job) -> Summary:
    """Run a task on every row of a source; see `run` for the options."""
    check_on_error(job.on_error)
    checked_policy(job.ids)
    target = Target.open(sink)
    beside = _rejects_path(target, job.rejects) if job.on_error != "fail" else None
    kept = None if job.records is None else records_path(job.records)
    written = {"the result": target.path, "its record": target.record, "the rejects": beside, "the records": kept}
    keep_apart({"the data": source.path}, written | {"the summary": job.summary})
    with permissions(job.mode), reported(job.summary, task) as report:
        done = _run(task, source, target, job, beside, kept)
        report(done)
    return done


def _run(task: Task, source: Source, target: Target, job: Job, beside: Path | None, kept: Path | None) -> Summary:
    """Run or resume a task, part by part, and give the summary; `beside` is for rejected rows, `kept` for records."""
    began = time.monotonic()
    rows = _batch_rows(task, job.batch_rows)
    task = replace(task, max_error=checked_max_error(job.max_error))
    identity = identity_of(task, source, target, job.on_error, rows)
    head = head_of_run(task, identity)
    if job.skip_if_done and (found := finished(target, head["run"], beside, kept)) is not None:
        _log.info("%s is done already", target.path)
        return found
    total = source.rows()
    _log.info("begun: %s to %s, %s rows or so", source.path, target.path, f"{total:,}")
    task = replace(task, data=head["provenance"]["data"])
    schema = with_head(task.schema, head)
    tell = job.progress or (lambda what, done, of: None)
    target.tidy()
    fresh = job.restart or not is_resumable(target.workspace, identity)
    ids = _first_look(
        task, source, rows, job, fresh and job.on_error == "fail", lambda done: tell("checking", done, total)
    )
    with (
        warned_once(job.max_error) as tell_accuracy,
        open_workspace(target.workspace, target.part_suffix, identity, job.restart) as space,
    ):
        resumed = done = sum(p.rows for p in space.parts)
        if resumed:
            _log.info("resumed: %s rows were done by an earlier run", f"{resumed:,}")
        tell("explaining", done, total)
        with _unchanged(source, space):
            for piece in source.pieces(task.layout.needed, rows, skip=len(space.parts)):
                _do(task, piece, job.on_error, space, schema)
                done += space.parts[-1].rows
                _log.debug("part %d: %s rows done", len(space.parts), f"{done:,}")
                tell("explaining", done, total)
        if not space.parts:
            space.add(schema.empty_table(), rejects_schema(task).empty_table(), 0)
        accuracy = sum((_accuracy_of(part, job.max_error) for part in space.parts), Accuracy())
        hold(accuracy, job.max_error, done)
        written, rejected = (sum(getattr(p, name) for p in space.parts) for name in ("written", "rejected"))
        made = Summary(
            target.path, done, written, rejected, resumed, beside, accuracy, ids, kept, False,
            time.monotonic() - began, head["run"], source.fingerprint(),
        )  # fmt: skip
        _finish(target, with_head(task.schema, head | {"totals": made.totals()}), space, task, beside, kept, job.key)
        tell_accuracy(accuracy, done)
    _log.info("done: %s, %s lines from %s rows, %s rejected", target.path, written, done, rejected)
    return replace(made, seconds=time.monotonic() - began)


def _finish(
    target: Target, schema: Any, space: Workspace, task: Task, beside: Path | None, kept: Path | None, key: bytes | None
) -> None:
    """Write the result from the parts, after its rejects and records: if the result exists, so do they."""
    if beside is not None:
        write_table(beside, format_of(beside), rejects_schema(task), space.rejects())
    if kept is not None:
        write_ledger(kept, space.records(), key)
    if target.format == "folder":  # the folder of parts becomes the result
        space.check()
    target.finish(schema, space.tables())
    space.used_up = target.format != "folder"


@contextmanager
def _unchanged(source: Source, space: Workspace) -> Iterator[None]:
    """Check that a source does not change during a run; if it does, raise and discard the completed parts."""
    try:
        yield
        if not source.has_changed():
            source.check_content()
            return
    except InputError as error:  # a file that is being replaced often cannot be read
        if not source.has_changed():
            space.worthless = isinstance(error, DamagedInputError)
            raise
    space.worthless = True
    raise InputError(f"{source.path} was changed while it was being explained; run again when it no longer changes.")


def _do(task: Task, piece: Piece, on_error: OnError, space: Workspace, schema: Any) -> None:
    """Explain one piece and store its result and rejected rows durably."""
    if piece.broken and on_error == "fail":
        _fail_broken(piece)
    found, bad, records, accuracy = task(piece.table, on_error, piece.numbers)
    found = found.replace_schema_metadata(schema.metadata)
    rows = piece.table.num_rows + len(piece.broken)
    kept = {"max_error": task.max_error, "found": accuracy.as_record()}
    space.add(found, rejects_table(task, piece, bad), rows, records, kept)


def _accuracy_of(part: Part, limit: float | None) -> Accuracy:
    """The accuracy of a part, which may have been computed with another `max_error`."""
    if not part.accuracy:
        return Accuracy()
    return Accuracy.total([part.accuracy["found"]]).under(limit, part.accuracy["max_error"])


def _first_look(
    task: Task, source: Source, rows: int, job: Job, check: bool, tell: Callable[[int], None]
) -> Ids | None:
    """Check the ids, and with `check` every row, before anything is written; returns what was found of the ids."""
    columns = task.layout.ids if job.ids != "allow" else ()
    if check:
        watch = IdWatch(columns) if columns else None
        _check(task, source, rows, tell, watch)
        found = None if watch is None else watch.found()
    else:
        found = look_at_ids(source, columns, rows) if columns else None
    if found is not None:
        act_on(found, job.ids, source.path)
    return found


def _check(task: Task, source: Source, rows: int, tell: Callable[[int], None], watch: IdWatch | None) -> None:
    """Check every row before anything is written; an InputError with the first bad row and the number of bad rows."""
    first: tuple[int, str] | None = None
    count = done = 0
    tell(0)
    for piece in source.pieces(task.layout.needed, rows):
        if piece.broken:
            _fail_broken(piece)
        if watch is not None:
            watch.see(piece)
        bad = task.reader.check(piece.table)
        if bad and first is None:
            row, why = next(iter(bad.items()))
            first = (piece.numbers[row], why)
        count += len(bad)
        done += piece.table.num_rows
        tell(done)
    if first is not None:
        fail(dict([first]), count)


def _fail_broken(piece: Piece) -> NoReturn:
    """Stop the run at the first row that could not be read."""
    number, why = piece.broken[0]
    raise InputError(
        f"Row {number} cannot be read: {why}. To go on without such rows use on_error skip or null (--on-error)."
    )


def _rejects_path(target: Target, asked: str | Path | None) -> Path:
    """Where rejected rows are written: beside the result unless the caller names a file."""
    path = target.path.with_name(f"{target.path.name}.rejects.csv") if asked is None else Path(asked)
    Target.open(path)
    format_of(path)
    return path


def _batch_rows(task: Task, asked: int | None) -> int:
    """Rows of a batch: half a million credits, between 64 and 8192 rows."""
    if asked is not None:
        return checks.whole(asked, "batch_rows")
    cells = len(task.layout.columns) * len(task.explainer.scorer.output_names)
    return min(max(2**19 // max(cells, 1), 64), 8192)
