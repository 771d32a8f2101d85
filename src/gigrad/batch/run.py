"""The runner: a table on disk in, a table on disk out, in bounded memory, and able to go on after any interruption."""

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
from .sources import Piece, Source, format_of
from .summary import Summary, finished, reported
from .targets import Target, records_path, with_head, write_ledger, write_table
from .tasks import OnError, Task, check_on_error, credit_task, fail
from .workspace import Part, Workspace, is_resumable, open_workspace

if TYPE_CHECKING:
    from .._explain.explainer import Explainer

Progress = Callable[[str, int, int], None]
"""Called with what is being done ("checking" or "explaining"), rows done, and rows in all (an estimate for CSV)."""
_log = logger("batch")


@dataclass(frozen=True)
class Job:
    """How a table is to be done; see `run` for what each means. A task's records go to `records`, signed by `key`."""

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
) -> Summary:
    """Explain every row of a table on disk, and write the credits to another.

    Killed at any moment, the same call goes on where it stopped, and the result is the same, to the byte.

    Parameters
    ----------
    explainer : Explainer
    source : path
        A .parquet, .csv or .arrow file, or a folder of .parquet files.
    sink : path
        A file with one of these endings, or a name without one for a folder of .parquet files. While the run is
        unfinished, its parts are in `<sink>.unfinished`.
    id_cols : sequence of str
        Columns of the source to carry along.
    columns : sequence of str, optional
        The model's columns by the source's names, in the model's order. By default they are matched by name.
    on_error : "fail", "skip" or "null"
        What to do about rows that cannot be explained: refuse the table before anything is written, leave them out, or
        keep them with empty cells, a line for each output. The last two write a file that says which and why.
    rejects : path, optional
        That file; `<sink>.rejects.csv` by default.
    batch_rows : int, optional
        Rows at a time: what bounds the memory. By default as many as make about half a million credits.
    restart : bool
        Begin again where an interrupted run with other inputs, another model or other settings is in the way.
    progress : callable, optional
    max_error : float, optional
        A promise, in units of the score: no credit of the result may be off by more, as `error` bounds it. With
        `on_error` "fail" a row that breaks it is an AccuracyError and nothing is written; else it is rejected.
    ids : "warn", "fail" or "allow"
        What to do about rows without an id or with that of an earlier row: warn once, refuse the table before anything
        is written, or not look. Looking keeps 16 bytes a row.
    summary : path, optional
        A JSON file that says how the run went: "running" while it does, then "done" or "failed", rows, seconds,
        versions, fingerprints.
    skip_if_done : bool
        Do nothing where the target is the result of the same inputs, model and settings already.
    mode : int, optional
        The mode of new files, say 0o640. By default they are for their owner alone (0600, or less where the umask says
        so); a file that is replaced keeps its mode.

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
    task = credit_task(explainer, opened.schema(), id_cols=id_cols, columns=columns)
    job = Job(
        on_error=on_error, rejects=rejects, batch_rows=batch_rows, restart=restart, progress=progress,
        max_error=max_error, ids=ids, summary=summary, skip_if_done=skip_if_done, mode=mode,
    )  # fmt: skip
    return run_task(task, opened, sink, job)


def run_task(task: Task, source: Source, sink: str | Path, job: Job) -> Summary:
    """Do any task on every row of a source; see `run` for the rest."""
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
    """Put the parts together, what stands beside the result first: where that is whole, the result is."""
    if beside is not None:
        write_table(beside, format_of(beside), rejects_schema(task), space.rejects())
    if kept is not None:
        write_ledger(kept, space.records(), key)
    if target.format == "folder":  # which the parts become
        space.check()
    target.finish(schema, space.tables())
    space.used_up = target.format != "folder"


@contextmanager
def _unchanged(source: Source, space: Workspace) -> Iterator[None]:
    """See that a source stands still; where it did not, nothing of what was made of it is kept."""
    try:
        yield
        if not source.has_changed():
            return
    except InputError:  # a file that somebody replaces is often one that cannot be read
        if not source.has_changed():
            raise
    space.worthless = True
    raise InputError(f"{source.path} was changed while it was being explained; run again when it stands still.")


def _do(task: Task, piece: Piece, on_error: OnError, space: Workspace, schema: Any) -> None:
    """One piece: explained, its rejects named, made durable."""
    if piece.broken and on_error == "fail":
        _fail_broken(piece)
    found, bad, records, accuracy = task(piece.table, on_error, piece.numbers)
    found = found.replace_schema_metadata(schema.metadata)
    rows = piece.table.num_rows + len(piece.broken)
    kept = {"max_error": task.max_error, "found": accuracy.as_record()}
    space.add(found, rejects_table(task, piece, bad), rows, records, kept)


def _accuracy_of(part: Part, limit: float | None) -> Accuracy:
    """How accurate a part is, which may have been done under another limit."""
    if not part.accuracy:
        return Accuracy()
    return Accuracy.total([part.accuracy["found"]]).under(limit, part.accuracy["max_error"])


def _first_look(
    task: Task, source: Source, rows: int, job: Job, check: bool, tell: Callable[[int], None]
) -> Ids | None:
    """What is looked at before anything is written: the ids, and with `check` every row."""
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
    """Look at every row before anything is written; the first bad ones are named, and how many there are in all."""
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
    number, why = piece.broken[0]
    raise InputError(
        f"Row {number} is no row: {why}. To go on without such rows use on_error skip or null (--on-error)."
    )


def _rejects_path(target: Target, asked: str | Path | None) -> Path:
    path = target.path.with_name(f"{target.path.name}.rejects.csv") if asked is None else Path(asked)
    Target.open(path)
    format_of(path)
    return path


def _batch_rows(task: Task, asked: int | None) -> int:
    if asked is not None:
        return checks.whole(asked, "batch_rows")
    cells = len(task.layout.columns) * len(task.explainer.scorer.output_names)
    return min(max(2**19 // max(cells, 1), 64), 8192)
