"""Where an unfinished run keeps what it has done, so that it can be killed at any moment and go on.

Beside the target `out.parquet` stands the folder `out.parquet.unfinished`. Every piece of the source becomes a part:
written aside, flushed, renamed, and only then a line in `_manifest.jsonl` with its checksum. A line is appended and
flushed whole; one that was cut short by a crash is no line. So a part counts if and only if its line is there and its
bytes have the checksum. When all are done, the target is put together from the parts in one deterministic way, written
aside and renamed, and the folder goes.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TextIO

from .._common.optional import require
from .._io.durable import flush, replacing, writing
from ..errors import OutputError, UnfinishedRunError

# Names with an underscore are skipped by what reads folders of Parquet files.
MANIFEST = "_manifest.jsonl"
LOCK = "_lock"
RECORD = "_gigrad.json"
_VERSION = 1


@dataclass(frozen=True)
class Part:
    """One finished piece: its file and checksum, how many rows went in, came out and were rejected, and what stands
    beside it: the rejected rows, the records."""

    file: str
    sha256: str
    rows: int
    written: int
    rejected: int
    rejects_sha256: str = ""
    records_sha256: str = ""

    @property
    def rejects(self) -> str:
        return f"_{Path(self.file).stem}.rejects.arrow"

    @property
    def records(self) -> str:
        return f"_{Path(self.file).stem}.records.jsonl"

    @property
    def checksums(self) -> dict[str, str]:
        """Every file of the piece, with its checksum."""
        found = {self.file: self.sha256, self.rejects: self.rejects_sha256, self.records: self.records_sha256}
        return {name: digest for name, digest in found.items() if digest}


class Workspace:
    """The folder of an unfinished run. Use `open_workspace`, which also holds its lock."""

    def __init__(self, folder: Path, suffix: str, parts: list[Part], manifest: TextIO) -> None:
        self.folder, self.suffix, self.parts, self.manifest = folder, suffix, parts, manifest
        self.used_up = False  # whether the result is whole without it

    def add(self, table: Any, rejects: Any, rows: int, records: Sequence[str] = ()) -> None:
        """Make a finished piece durable, then say so in the manifest."""
        name = f"part-{len(self.parts):06d}{self.suffix}"
        part = Part(name, self._write(name, table), rows, table.num_rows, rejects.num_rows)
        if rejects.num_rows:
            part = replace(part, rejects_sha256=self._write(part.rejects, rejects))
        if records:
            part = replace(part, records_sha256=self._write_lines(part.records, records))
        self._note({"part": asdict(part)})
        self.parts.append(part)

    def tables(self) -> Iterator[Any]:
        """The finished parts, in order."""
        for part in self.parts:
            yield read_part(self.folder / part.file)

    def rejects(self) -> Iterator[Any]:
        """The rejected rows, in order."""
        for part in self.parts:
            if part.rejected:
                yield read_part(self.folder / part.rejects)

    def records(self) -> Iterator[Path]:
        """The files of records, in order."""
        return (self.folder / part.records for part in self.parts if part.records_sha256)

    def _write_lines(self, name: str, lines: Sequence[str]) -> str:
        path = self.folder / name
        with replacing(path) as aside:
            aside.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return checksum(path)

    def _write(self, name: str, table: Any) -> str:
        path = self.folder / name
        with replacing(path) as aside:
            write_part(aside, table, path.suffix)
        return checksum(path)

    def _note(self, line: dict[str, Any]) -> None:
        with writing(self.folder / MANIFEST):
            self.manifest.write(json.dumps(line) + "\n")
            self.manifest.flush()
            os.fsync(self.manifest.fileno())


@contextmanager
def open_workspace(folder: Path, suffix: str, identity: dict[str, Any], restart: bool) -> Iterator[Workspace]:
    """The workspace of a run: a new one, or that of an interrupted run with the same identity.

    Raises
    ------
    UnfinishedRunError
        Where the folder belongs to a run with other inputs, another model or other settings, unless `restart`.
    """
    with writing(folder):
        folder.mkdir(exist_ok=True)
    _own_folder(folder)
    with _locked(folder):
        parts, length = ([], 0) if restart else _resume(folder, identity)
        try:
            with writing(folder / MANIFEST), open(folder / MANIFEST, "a", encoding="utf-8") as manifest:
                manifest.truncate(length)
                space = Workspace(folder, suffix, parts, manifest)
                if length == 0:
                    space._note({"version": _VERSION, "identity": identity})
                    flush(folder)
                _sweep(folder, parts)
                yield space
        except Exception:
            if not parts:  # nothing is done yet: nothing to go on with
                discard(folder)
            raise
        if space.used_up:  # while the folder is ours: another run may wait for it
            discard(folder)


def is_resumable(folder: Path, identity: dict[str, Any]) -> bool:
    """Whether a run with this identity was begun here: its rows have then been checked."""
    try:
        return _head(folder) == identity
    except (OSError, ValueError, KeyError):
        return False


def discard(folder: Path) -> None:
    """Remove a workspace that is not needed any more: the manifest first, so that what a crash leaves is no run."""
    (folder / MANIFEST).unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)


def write_part(path: Path, table: Any, suffix: str) -> None:
    """One part: Arrow IPC as it is, or Parquet where the parts are the result."""
    if suffix == ".parquet":
        require("pyarrow.parquet", "cli").write_table(table, path, compression="zstd")
        return
    ipc = require("pyarrow.ipc", "cli")
    with ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table)


def read_part(path: Path) -> Any:
    if path.suffix == ".parquet":
        return require("pyarrow.parquet", "cli").read_table(path)
    with require("pyarrow", "cli").OSFile(str(path)) as file:
        return require("pyarrow.ipc", "cli").open_file(file).read_all()


def checksum(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _lines(folder: Path) -> Iterator[tuple[dict[str, Any], int]]:
    """The whole lines of a manifest, each with where it ends."""
    end = 0
    with open(folder / MANIFEST, "rb") as file:
        for line in file:
            end += len(line)
            if not line.endswith(b"\n"):
                return
            yield json.loads(line), end


def _head(folder: Path) -> dict[str, Any]:
    head = next(_lines(folder), ({}, 0))[0]
    return dict(head["identity"]) if head.get("version") == _VERSION else {}


def _resume(folder: Path, identity: dict[str, Any]) -> tuple[list[Part], int]:
    """The parts that are really there, and how much of the manifest stands for them."""
    if not (folder / MANIFEST).exists():
        return [], 0
    try:
        lines = list(_lines(folder))
        if not lines:
            return [], 0
        begun = _head(folder)
        parts, length = [], lines[0][1]
        if len(lines) == 1 and begun != identity:
            return [], 0  # that run has done nothing yet
        _compare(begun, identity, folder)
        for line, end in lines[1:]:
            part = Part(**line["part"])
            if not _intact(folder, part):
                break
            parts.append(part)
            length = end
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        if isinstance(error, UnfinishedRunError):
            raise
        raise UnfinishedRunError(
            f"{folder / MANIFEST} is damaged ({error}); begin again with restart (--restart)."
        ) from None
    return parts, length


def _compare(begun: dict[str, Any], identity: dict[str, Any], folder: Path) -> None:
    differing = [k for k in {**begun, **identity} if begun.get(k) != identity.get(k)]
    if differing:
        raise UnfinishedRunError(
            f"An interrupted run waits in {folder}, and it was begun with another {' and another '.join(differing)}. "
            "Give what it was begun with to go on, or begin again with restart (--restart)."
        )


def _intact(folder: Path, part: Part) -> bool:
    return all(
        (folder / name).exists() and checksum(folder / name) == digest for name, digest in part.checksums.items()
    )


def _sweep(folder: Path, parts: Sequence[Part]) -> None:
    """Remove what a crash left half done: files that no line of the manifest names."""
    known = {MANIFEST, LOCK}.union(*(part.checksums for part in parts))
    for file in folder.iterdir():
        if file.name not in known:
            file.unlink()


def _own_folder(folder: Path) -> None:
    """Refuse a folder that holds anything but an unfinished run: nothing of somebody else's may be removed."""
    names = [f.name for f in folder.iterdir()]
    ours = ("part-", ".part-", "_part-", "._part-", f".{RECORD}")
    if any(not n.startswith(ours) and n not in (MANIFEST, LOCK, RECORD) for n in names):
        raise OutputError(f"{folder} must hold an unfinished run of gigrad; it holds other files. Move them away.")


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the folder for this process alone; the system lets go of it when the process dies, however it dies."""
    try:
        import fcntl
    except ImportError:  # not on this system: two runs at once are then the user's affair
        yield
        return
    with ExitStack() as held:
        with writing(folder / LOCK):
            file = held.enter_context(open(folder / LOCK, "w"))
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise OutputError(
                f"Another run is writing to {folder} now; wait for it or choose another target."
            ) from None
        yield
