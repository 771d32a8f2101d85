"""The runner: a table on disk in, a table on disk out, in bounded memory, and able to go on after any interruption."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from .._common import checks
from .._io import provenance
from .._io.durable import keep_apart
from ..errors import InputError
from .rejects import rejects_schema, rejects_table
from .sources import Piece, Source, format_of
from .targets import Target, records_path, with_head, write_lines, write_table
from .tasks import OnError, Task, credit_task, fail
from .workspace import Workspace, is_resumable, open_workspace

if TYPE_CHECKING:
    from .._explain.explainer import Explainer

Progress = Callable[[str, int, int], None]
"""Called with what is being done ("checking" or "explaining"), rows done, and rows in all (an estimate for CSV)."""


@dataclass(frozen=True)
class Summary:
    """What a run did.

    Attributes
    ----------
    target : Path
    rows : int
        Rows of the source, broken lines of a CSV file included.
    written : int
        Lines of the result.
    rejected : int
        Rows that could not be explained; `rejects` is the file that says why.
    resumed : int
        Rows that an earlier, interrupted run had done already.
    rejects : Path or None
    """

    target: Path
    rows: int
    written: int
    rejected: int
    resumed: int
    rejects: Path | None


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
    return run_task(
        task,
        opened,
        sink,
        on_error=on_error,
        rejects=rejects,
        batch_rows=batch_rows,
        restart=restart,
        progress=progress,
    )


def run_task(
    task: Task,
    source: Source,
    sink: str | Path,
    *,
    on_error: OnError = "fail",
    rejects: str | Path | None = None,
    batch_rows: int | None = None,
    restart: bool = False,
    progress: Progress | None = None,
    records: str | Path | None = None,
) -> Summary:
    """Do any task on every row of a source; see `run` for the rest. `records` is where a task's records go."""
    if on_error not in ("fail", "skip", "null"):
        raise InputError(f'on_error must be "fail", "skip" or "null"; got {on_error!r}.')
    target = Target.open(sink)
    rows = _batch_rows(task, batch_rows)
    beside = _rejects_path(target, rejects) if on_error != "fail" else None
    kept = None if records is None else records_path(records)
    keep_apart({"the data": source.path}, {"the result": target.path, "the rejects": beside, "the records": kept})
    total, stamp = source.rows(), source.stamp()
    identity = _identity(task, source, target, on_error, rows)
    head = _head(task, identity)
    task = replace(task, data=head["provenance"]["data"])
    schema = with_head(task.schema, head)
    tell = progress or (lambda what, done, of: None)
    if on_error == "fail" and (restart or not is_resumable(target.workspace, identity)):
        _check(task, source, rows, lambda done: tell("checking", done, total))
    with open_workspace(target.workspace, target.part_suffix, identity, restart) as space:
        resumed = sum(p.rows for p in space.parts)
        done = resumed
        tell("explaining", done, total)
        for piece in source.pieces(task.layout.needed, rows, skip=len(space.parts)):
            _do(task, piece, on_error, space, schema)
            done += space.parts[-1].rows
            tell("explaining", done, total)
        if source.stamp() != stamp:
            raise InputError(f"{source.path} was changed while it was being explained; run again when it stands still.")
        if not space.parts:
            space.add(schema.empty_table(), rejects_schema(task).empty_table(), 0)
        if beside is not None:
            write_table(beside, format_of(beside), rejects_schema(task), space.rejects())
        if kept is not None:
            write_lines(kept, space.records())
        target.finish(schema, space.tables())
        space.used_up = target.format != "folder"  # which the parts have become
    written, rejected = (sum(getattr(p, name) for p in space.parts) for name in ("written", "rejected"))
    return Summary(target.path, done, written, rejected, resumed, beside)


def _do(task: Task, piece: Piece, on_error: OnError, space: Workspace, schema: Any) -> None:
    """One piece: explained, its rejects named, made durable."""
    if piece.broken and on_error == "fail":
        _fail_broken(piece)
    found, bad, records = task(piece.table, on_error, piece.numbers)
    found = found.replace_schema_metadata(schema.metadata)
    space.add(found, rejects_table(task, piece, bad), piece.table.num_rows + len(piece.broken), records)


def _check(task: Task, source: Source, rows: int, tell: Callable[[int], None]) -> None:
    """Look at every row before anything is written; the first bad ones are named, and how many there are in all."""
    first: tuple[int, str] | None = None
    count = done = 0
    tell(0)
    for piece in source.pieces(task.layout.needed, rows):
        if piece.broken:
            _fail_broken(piece)
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


def _identity(task: Task, source: Source, target: Target, on_error: OnError, rows: int) -> dict[str, Any]:
    """What decides every byte of the result; the keys are what a message calls them."""
    explainer = task.explainer
    record = explainer.provenance
    model = {"model": record["model"]["fingerprint"], "output": record["output"]["fingerprint"]}
    if "not_in_fingerprint" in record["model"]:
        # A function cannot be looked into; its scores on the reference must do.
        model["scores"] = provenance.array_fingerprint(explainer.scorer.own(explainer.reference))
    return {
        "model": model,
        "reference": record["reference"]["fingerprint"],
        "settings": record["settings"],
        "definition": record["definition"],
        "choice of discrete columns": record["choice"],
        "data": source.fingerprint(),
        "id columns": list(task.layout.ids),
        "columns": list(task.layout.columns),
        "on_error": on_error,
        "batch_rows": rows,
        "format": target.format,
        "kind of result": task.record,
        "version of gigrad": record["versions"]["gigrad"],
    }


def _head(task: Task, identity: dict[str, Any]) -> dict[str, Any]:
    """What the result says about itself; `Explanation.load` reads results of `run` by it."""
    scorer, grouping = task.explainer.scorer, task.explainer.grouping
    data = {"files": identity["data"], "on_error": identity["on_error"]}
    return {
        "format": 1,
        "kind": task.kind,
        "ids": list(task.layout.ids),
        "feature_names": list(grouping.members),
        "output_names": list(scorer.output_names),
        "outputs_axis": scorer.node.width > 1,
        "columns": [grouping.names[c] for c in grouping.order],
        "groups": grouping.groups,
        "data": {"library": "none"},
        "paths": None,
        "task": task.record,
        "provenance": {**task.explainer.provenance, "data": data},
    }


def _batch_rows(task: Task, asked: int | None) -> int:
    if asked is not None:
        return checks.whole(asked, "batch_rows")
    cells = len(task.layout.columns) * len(task.explainer.scorer.output_names)
    return min(max(2**19 // max(cells, 1), 64), 8192)
