"""Commands run by Spark: folders of Parquet files in and out, written atomically."""

from __future__ import annotations

import json
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from .. import spark
from .._explain.explainer import Explainer
from .._io.durable import folder_mode, keep_apart, mode_for, permissions, scratch_folder, writing
from ..batch.accuracy import checked_max_error, warned_once
from ..batch.identity import head_of_run, identity_of
from ..batch.ids import Ids, act_on, checked_policy
from ..batch.reasons import reason_task
from ..batch.sources import Source
from ..batch.summary import Summary, finished, reported
from ..batch.targets import Target, check_writable, records_path
from ..batch.tasks import OnError, Task, credit_task, fail_named
from ..batch.workspace import RECORD
from ..errors import AccuracyError, InputError, OutputError
from ..spark import workers
from .commands import key_of, mode_of, on_error_of, reason_options
from .console import note
from .options import Config


def explain(explainer: Explainer, config: Config, source: Source) -> None:
    """Write the credits of every row."""
    ids = config.id or ()
    task = credit_task(explainer, source.schema(), id_cols=ids, columns=config.columns)
    _do(task, config, source, workers.CreditMaker(ids, config.columns))


def reasons(explainer: Explainer, config: Config, source: Source) -> None:
    """Write the reasons of every refused row."""
    ids, options = config.id or (), reason_options(config)
    task = reason_task(explainer, source.schema(), id_cols=ids, **options)
    _do(task, config, source, workers.ReasonMaker(ids, options))


class _Places(NamedTuple):
    """The paths of the result, of the rejects and of the records; None for those that are not written."""

    target: Target
    rejects: Path | None
    records: Path | None


def _do(task: Task, config: Config, source: Source, make: Any) -> None:
    """Run a job on Spark with its summary, unless it is done already."""
    began = time.monotonic()
    places = _places(config, source)
    on_error: OnError = on_error_of(config)
    task = replace(task, max_error=checked_max_error(config.max_error))
    with permissions(mode_of(config)), reported(config.summary, task) as report:
        head = _head(task, source, places.target, on_error)
        done = finished(places.target, head["run"], *places[1:]) if config.skip_if_done else None
        if done is None:
            done = _run(task, config, source, make, places, head, began)
        report(done)
    if done.skipped:
        note(f"{done.target}: done already, {done.written:,} lines from {done.rows:,} rows.", bool(config.quiet))
        return
    if done.rejected:
        note(f"{done.rejected:,} rows could not be explained; {done.rejects} lists them with the reasons.")
    note(f"{done.target}: written by Spark, {done.written:,} lines from {done.rows:,} rows.", bool(config.quiet))


def _run(
    task: Task, config: Config, source: Source, make: Any, places: _Places, head: dict[str, Any], began: float
) -> Summary:
    """The steps of a job on Spark: check ids and rows, write rejects, then the result."""
    _see_free(places)
    on_error: OnError = on_error_of(config)
    frame = spark.local_session().read.parquet(*(str(file.absolute()) for file in source.files))
    ids = _look_at_ids(frame, task, config, source)
    rejected = workers.mapped(frame, task.explainer, make, workers.Rejects(task.max_error))
    if on_error == "fail":
        _refuse(rejected.head(), task.max_error)
    if places.rejects is not None:
        _write(rejected, places.rejects, {_REJECTS: ""})
    with warned_once(task.max_error) as tell_accuracy:
        lines, notes = workers.noted(frame, task.explainer, make, on_error, task.max_error)
        totals = workers.total(notes)
        if places.records is not None:
            workers.write_records(places.records, notes, key_of(config))
        made = Summary(
            places.target.path, totals.rows, totals.written, totals.rejected, 0, places.rejects, totals.accuracy, ids,
            places.records, False, 0.0, head["run"], source.fingerprint(),
        )  # fmt: skip
        _write(lines, places.target.path, {RECORD: json.dumps(head | {"totals": made.totals()}, default=str)})
        lines.unpersist()
        tell_accuracy(totals.accuracy, totals.rows)
    return replace(made, seconds=time.monotonic() - began)


def _head(task: Task, source: Source, target: Target, on_error: OnError) -> dict[str, Any]:
    """The metadata of the result, without batch size and order of rows, which Spark decides."""
    identity = identity_of(task, source, target, on_error, 0)
    return head_of_run(task, identity | {"format": "folder by Spark"})


def _look_at_ids(frame: Any, task: Task, config: Config, source: Source) -> Ids | None:
    """Look for ids that repeat or are missing, and do what --ids says about them."""
    policy = checked_policy(config.ids or "warn")
    if policy == "allow" or not task.layout.ids:
        return None
    found = workers.look_at_ids(frame, task.layout.ids)
    act_on(found, policy, source.path)
    return found


def _refuse(first: Any, limit: float | None) -> None:
    """Raise an error about the first row without a result, if there is one."""
    if first is None:
        return
    *ids, why = first
    if limit is not None and "max_error" in why:
        raise AccuracyError(f"Row {', '.join(map(str, ids))}: {why}. Nothing was written.")
    fail_named(f"Row {', '.join(map(str, ids))}" if ids else "A row", why)


def _places(config: Config, source: Source) -> _Places:
    """The paths of all outputs, after checking, before any work is done, that none of them is an input."""
    folder = Path(config.need("out", "--out"))
    beside = Path(config.rejects or f"{folder}.rejects") if on_error_of(config) != "fail" else None
    kept = None if config.audit is None else records_path(config.audit)
    written = {"the result": folder, "the rejects": beside, "the records": kept, "the summary": config.summary}
    keep_apart(config.files("read"), written)
    if source.format != "parquet" or folder.suffix:
        raise InputError("--engine spark reads Parquet files and writes a folder; give --out a name without an ending.")
    return _Places(Target(folder, "folder"), beside, kept)


def _see_free(places: _Places) -> None:
    """Refuse to write where something exists already."""
    for path in (places.target.path, places.rejects):
        if path is None:
            continue
        check_writable(path)
        if path.exists() and not (path == places.rejects and (path / _REJECTS).exists()):
            raise OutputError(f"{path} exists already, and Spark does not replace a folder; choose another name.")


_REJECTS = "_gigrad-rejects"
"""The marker file in a folder of rejects: left by a job that was killed before its result, it may be replaced."""


def _write(frame: Any, folder: Path, beside: dict[str, str]) -> None:
    """Write a frame to a folder atomically: under a temporary name, then renamed.

    `beside` are texts that the folder holds too, under names that readers of Parquet skip.
    """
    with scratch_folder(folder) as scratch:
        frame.write.parquet(str((scratch / "data").absolute()))
        with writing(folder):
            for name, text in beside.items():
                (scratch / "data" / name).write_text(text, encoding="utf-8")
            mode = mode_for(folder) or 0o600
            for place, _, names in os.walk(scratch / "data"):
                os.chmod(place, folder_mode(mode))
                for name in names:
                    os.chmod(Path(place, name), mode)
            if folder.exists():  # the rejects of a job that was killed
                os.rename(folder, scratch / "old")
            os.rename(scratch / "data", folder)
