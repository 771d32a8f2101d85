"""Commands that Spark does: folders of Parquet files in and out, whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .. import spark
from .._explain.explainer import Explainer
from .._io.durable import folder_mode, keep_apart, mode_for, permissions, scratch_folder, writing
from ..batch.accuracy import checked_max_error
from ..batch.sources import Source
from ..batch.targets import check_writable
from ..batch.tasks import fail_named
from ..errors import AccuracyError, InputError, OutputError
from .commands import key_of, mode_of, on_error_of, reason_options
from .console import note
from .options import Config


def explain(explainer: Explainer, config: Config, source: Source) -> None:
    """Credits of every row."""

    def found(frame: Any, **how: Any) -> Any:
        return spark.explain(frame, explainer, columns=config.columns, **how)

    _do(explainer, config, source, found)


def reasons(explainer: Explainer, config: Config, source: Source) -> None:
    """Reasons of every refused row."""
    options = {**reason_options(config), "audit": config.audit, "key": key_of(config)}

    def found(frame: Any, **how: Any) -> Any:
        return spark.reasons(frame, explainer, **options, **how)

    _do(explainer, config, source, found)


def _do(explainer: Explainer, config: Config, source: Source, make: Callable[..., Any]) -> None:
    folder, beside = _places(config, source)
    on_error = on_error_of(config)
    frame = spark.local_session().read.parquet(*(str(file.absolute()) for file in source.files))
    limit = checked_max_error(config.max_error)
    rejected = spark.rejects(frame, explainer, id_cols=config.id or (), columns=config.columns, max_error=limit)
    if on_error == "fail":
        first = rejected.head()
        if first is not None:
            *ids, why = first
            if limit is not None and "max_error" in why:
                raise AccuracyError(f"Row {', '.join(map(str, ids))}: {why}. Nothing was written.")
            fail_named(f"Row {', '.join(map(str, ids))}" if ids else "A row", why)
    with permissions(mode_of(config)):
        if on_error != "fail":
            _write(rejected, beside, _REJECTS)
            count = Source.open(beside).rows()
            if count:
                note(f"{count:,} rows could not be explained; {beside} says which and why.")
        _write(make(frame, id_cols=config.id or (), on_error=on_error, max_error=limit), folder)
    note(f"{folder}: written by Spark.", bool(config.quiet))


def _unsupported(config: Config) -> None:
    """Say what Spark does not do, before any work is done."""
    for name, value in (("--summary", config.summary), ("--skip-if-done", config.skip_if_done), ("--ids", config.ids)):
        if value is not None:
            raise InputError(f"{name} is for --engine local; leave it out with --engine spark.")


def _places(config: Config, source: Source) -> tuple[Path, Path]:
    """Where the result and the rejects go, seen to be free before any work is done."""
    _unsupported(config)
    folder = Path(config.need("out", "--out"))
    beside = Path(config.rejects or f"{folder}.rejects")
    keep_apart(config.files("read"), {"the result": folder, "the rejects": beside})
    if source.format != "parquet" or folder.suffix:
        raise InputError("--engine spark reads Parquet files and writes a folder; give --out a name without an ending.")
    for path in (folder, beside) if on_error_of(config) != "fail" else (folder,):
        check_writable(path)
        if path.exists() and not (path == beside and (path / _REJECTS).exists()):
            raise OutputError(f"{path} exists already, and Spark does not replace a folder; choose another name.")
    return folder, beside


_REJECTS = "_gigrad-rejects"
"""The mark of a folder of rejects: that of a job which was killed before its result may be replaced."""


def _write(frame: Any, folder: Path, mark: str | None = None) -> None:
    """Aside and then renamed: a job that fails leaves nothing that looks finished, one that is killed no more."""
    with scratch_folder(folder) as scratch:
        frame.write.parquet(str((scratch / "data").absolute()))
        if mark is not None:
            (scratch / "data" / mark).touch()
        with writing(folder):
            mode = mode_for(folder) or 0o600
            for place, _, names in os.walk(scratch / "data"):
                os.chmod(place, folder_mode(mode))
                for name in names:
                    os.chmod(Path(place, name), mode)
            if folder.exists():  # the rejects of a job that was killed
                os.rename(folder, scratch / "old")
            os.rename(scratch / "data", folder)
