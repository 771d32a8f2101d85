"""The summary of a run: for the caller, and as a JSON file for job monitors."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from .._common.log import logger
from .._io.durable import replacing
from .._reasons.ledger import is_whole
from ..configuration import config
from ..errors import OutputError
from .accuracy import Accuracy
from .ids import Ids
from .targets import Target, check_writable, holds_lines, read_head
from .tasks import Task

FORMAT = "gigrad.run/1"


@dataclass(frozen=True)
class Summary:
    """The summary of a run.

    Attributes
    ----------
    target : Path
    rows : int
        Rows of the source, broken lines of a CSV file included.
    written : int
        Lines of the result.
    rejected : int
        Rows that could not be explained, or not within `max_error`; the file `rejects` says why.
    resumed : int
        Rows that an earlier, interrupted run had done already.
    rejects : Path or None
    accuracy : Accuracy
        How many rows are out of tolerance, the largest error and its row.
    ids : Ids or None
        How many rows have a missing or duplicate id; None if this was not checked.
    records : Path or None
        The ledger of audit records.
    skipped : bool
        Whether the result already existed and nothing was done.
    seconds : float
    run : str
        SHA-256 of everything that the result depends on.
    data : list of dict
        Name, size and SHA-256 of every file that was read.
    """

    target: Path
    rows: int
    written: int
    rejected: int
    resumed: int
    rejects: Path | None
    accuracy: Accuracy = field(default_factory=Accuracy)
    ids: Ids | None = None
    records: Path | None = None
    skipped: bool = False
    seconds: float = 0.0
    run: str = ""
    data: list[dict[str, Any]] = field(default_factory=list)

    def totals(self) -> dict[str, Any]:
        """The part of the summary that is stored in the result: independent of when and where the run is done."""
        return {
            "rows": self.rows, "written": self.written, "rejected": self.rejected,
            "accuracy": self.accuracy.as_record(), "ids": None if self.ids is None else asdict(self.ids),
        }  # fmt: skip

    def as_record(self) -> dict[str, Any]:
        """The summary as plain values for JSON."""
        return {
            "target": str(self.target),
            **self.totals(),
            "resumed": self.resumed,
            "rejects": None if self.rejects is None else str(self.rejects),
            "records": None if self.records is None else str(self.records),
            "skipped": self.skipped,
            "seconds": round(self.seconds, 3),
            "run": self.run,
            "data": self.data,
        }


@contextmanager
def reported(path: str | Path | None, task: Task) -> Iterator[Callable[[Summary], None]]:
    """Write the status of a run to its summary file: "running", then "done" or "failed"."""
    if path is None:
        yield lambda done: None
        return
    path = Path(path)
    check_writable(path)
    about = _about(task)
    _write(path, {"status": "running", **about})
    try:
        yield lambda done: _write(path, {"status": "done", **done.as_record(), **about})
    except BaseException as error:
        _tell_failure(path, error, about)
        raise


@contextmanager
def watched(path: str | Path | None) -> Iterator[None]:
    """Write "failed" to the summary file for failures before the run starts, such as an unreadable model, too."""
    if path is None:
        yield
        return
    path = Path(path)
    check_writable(path)
    _write(path, {"status": "running"})
    try:
        yield
    except BaseException as error:
        if _is_running(path):
            _tell_failure(path, error, {})
        raise


def _is_running(path: Path) -> bool:
    """Whether the report at this path still says that the run goes on; an unreadable one counts as such."""
    try:
        return bool(json.loads(path.read_text(encoding="utf-8"))["status"] == "running")
    except (OSError, ValueError, LookupError, TypeError):
        return True


def _tell_failure(path: Path, error: BaseException, about: dict[str, Any]) -> None:
    """Write to the summary that a run failed; if that fails too, log it and keep the original error."""
    try:
        _write(path, {"status": "failed", "error": type(error).__name__, "message": str(error), **about})
    except OutputError as refused:
        logger("batch").error("the failure could not be written to the summary: %s", refused)


def _about(task: Task) -> dict[str, Any]:
    """What a summary says of how the numbers were made."""
    record = task.explainer.provenance
    return {
        "kind": task.kind,
        "versions": record["versions"],
        "simd": config.simd,
        "fingerprints": {name: record[name]["fingerprint"] for name in ("model", "output", "reference")},
    }


def _write(path: Path, content: dict[str, Any]) -> None:
    with replacing(path) as aside:
        aside.write_text(json.dumps({"format": FORMAT, **content}, indent=2) + "\n", encoding="utf-8")


def finished(target: Target, run: str, *beside: Path | None) -> Summary | None:
    """The summary of the run with the fingerprint `run`, if its result is complete; else None.

    `beside` are the file of rejected rows and that of audit records, each None if the run writes none; they must be
    complete too.
    """
    head = read_head(target)
    totals = head.get("totals") or {}
    rejects, records = beside
    if head.get("run") != run or not totals or not all(p is None or p.exists() for p in beside):
        return None
    if not holds_lines(target.path, totals["written"]) or (records is not None and not is_whole(records)):
        return None
    if rejects is not None and rejects.is_file() and not holds_lines(rejects, totals["rejected"]):
        return None
    ids = None if totals["ids"] is None else Ids(**totals["ids"] | {"examples": tuple(totals["ids"]["examples"])})
    return Summary(
        target.path, totals["rows"], totals["written"], totals["rejected"], totals["rows"], rejects,
        Accuracy.total([totals["accuracy"]]), ids, records, True, 0.0, run, head["provenance"]["data"]["files"],
    )  # fmt: skip
