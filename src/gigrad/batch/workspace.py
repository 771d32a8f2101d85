"""The completed parts of an unfinished run, so that it can be killed at any moment and resumed.

Beside the target `out.parquet` there is the folder `out.parquet.unfinished`. Every piece of the source becomes a part:
written to a temporary file, flushed, renamed, and only then listed in `_manifest.jsonl` with its checksum. A line is
appended and flushed as a whole; one cut short by a crash is ignored. So a part counts if and only if its line exists
and its bytes have the checksum, which is verified whenever a part is read. When all parts are done, the target is
written from them deterministically, under a temporary name, and renamed, and the folder is removed.

The folder is private to this user and holds the file `_gigrad-workspace`; one without it, or a symbolic link, belongs
to somebody else and is never used. Symbolic links inside are not followed.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, TextIO

from .._common.optional import require
from .._io.durable import flush, replacing, try_lock, writing
from ..errors import OutputError, UnfinishedRunError

# Readers of folders of Parquet files skip names with a leading underscore.
MANIFEST = "_manifest.jsonl"
LOCK = "_lock"
MARK = "_gigrad-workspace"
RECORD = "_gigrad.json"
_VERSION = 1
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)


@dataclass(frozen=True)
class Part:
    """One completed piece: its file and checksum, the numbers of rows read, lines written and rows rejected, the files
    of rejected rows and audit records, and the accuracy of its credits."""

    file: str
    sha256: str
    rows: int
    written: int
    rejected: int
    rejects_sha256: str = ""
    records_sha256: str = ""
    accuracy: dict[str, Any] = field(default_factory=dict)

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
        self.used_up = False  # whether the result is complete and the folder can go
        self.worthless = False  # whether the run cannot be resumed from it

    def add(
        self, table: Any, rejects: Any, rows: int, records: Sequence[str] = (), accuracy: dict[str, Any] | None = None
    ) -> None:
        """Store a completed piece durably, then list it in the manifest."""
        name = f"part-{len(self.parts):06d}{self.suffix}"
        part = Part(name, self._write(name, part_bytes(table, self.suffix)), rows, table.num_rows, rejects.num_rows)
        if rejects.num_rows:
            part = replace(part, rejects_sha256=self._write(part.rejects, part_bytes(rejects, ".arrow")))
        if records:
            lines = "".join(f"{line}\n" for line in records).encode()
            part = replace(part, records_sha256=self._write(part.records, lines))
        part = replace(part, accuracy=accuracy or {})
        self._note({"part": asdict(part)})
        self.parts.append(part)

    def tables(self) -> Iterator[Any]:
        """The finished parts, in order."""
        for part in self.parts:
            yield read_part(self._read(part.file, part.sha256), self.suffix)

    def rejects(self) -> Iterator[Any]:
        """The rejected rows, in order."""
        for part in self.parts:
            if part.rejected:
                yield read_part(self._read(part.rejects, part.rejects_sha256), ".arrow")

    def records(self) -> Iterator[bytes]:
        """The lines of records of each part, in order."""
        return (self._read(part.records, part.records_sha256) for part in self.parts if part.records_sha256)

    def check(self) -> None:
        """Raise unless every part has its checksum; parts that become the result of a folder are not read otherwise."""
        for part in self.parts:
            self._read(part.file, part.sha256)

    def _read(self, name: str, digest: str) -> bytes:
        """The bytes of a file of a part; an OutputError if they do not have the checksum."""
        data = (self.folder / name).read_bytes()
        if hashlib.sha256(data).hexdigest() != digest:
            raise OutputError(
                f"{self.folder / name} was damaged on the disk after it had been written; check the disk, then run the "
                "same command again, which recomputes this part and those after it."
            )
        return data

    def _write(self, name: str, data: bytes) -> str:
        """Write a file; returns the checksum of the bytes in memory, not of those on the disk."""
        with replacing(self.folder / name, sweep=False) as aside:
            aside.write_bytes(data)
        return hashlib.sha256(data).hexdigest()

    def _note(self, line: dict[str, Any]) -> None:
        """Append a line to the manifest, on disk before this returns."""
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
    _claim(folder)
    with _locked(folder):
        _mark(folder)
        parts, length = ([], 0) if restart else _resume(folder, identity)
        space = None
        try:
            with writing(folder / MANIFEST), _open_manifest(folder) as manifest:
                manifest.truncate(length)
                space = Workspace(folder, suffix, parts, manifest)
                if length == 0:
                    space._note({"version": _VERSION, "identity": identity})
                    flush(folder)
                _sweep(folder, parts)
                yield space
        except BaseException:
            if not parts or (space is not None and space.worthless):  # nothing to resume from
                discard(folder)
            raise
        if space.used_up:  # while we hold the lock: another run may wait for it
            discard(folder)


def is_resumable(folder: Path, identity: dict[str, Any]) -> bool:
    """Whether the folder holds an interrupted run with this identity, whose rows have been checked already."""
    try:
        return _head(folder) == identity
    except (OSError, ValueError, KeyError):
        return False


def discard(folder: Path) -> None:
    """Remove a workspace: the manifest first, so that a crash does not leave a resumable run, and the marker file last,
    so that the folder stays recognisable as ours until the end."""
    with suppress(OSError):
        (folder / MANIFEST).unlink(missing_ok=True)
        for file in folder.iterdir():
            if file.name != MARK:
                file.unlink(missing_ok=True)
        (folder / MARK).unlink(missing_ok=True)
        folder.rmdir()


def part_bytes(table: Any, suffix: str) -> bytes:
    """One part: Arrow IPC as it is, or Parquet where the parts are the result."""
    stream = require("pyarrow", "cli").BufferOutputStream()
    if suffix == ".parquet":
        require("pyarrow.parquet", "cli").write_table(table, stream, compression="zstd", write_page_checksum=True)
    else:
        with require("pyarrow.ipc", "cli").new_file(stream, table.schema) as writer:
            writer.write_table(table)
    return bytes(stream.getvalue())


def read_part(data: bytes, suffix: str) -> Any:
    """The table of one part of a run."""
    pa = require("pyarrow", "cli")
    if suffix == ".parquet":
        return require("pyarrow.parquet", "cli").read_table(pa.BufferReader(data))
    return require("pyarrow.ipc", "cli").open_file(pa.BufferReader(data)).read_all()


def checksum(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _lines(folder: Path) -> Iterator[tuple[dict[str, Any], int]]:
    """The complete lines of a manifest, each with the position of its end."""
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
    """The parts that are intact, and the length of the manifest up to the last of them."""
    if not (folder / MANIFEST).exists():
        return [], 0
    try:
        lines = list(_lines(folder))
        if not lines:
            return [], 0
        begun = _head(folder)
        parts, length = [], lines[0][1]
        if len(lines) == 1 and begun != identity:
            return [], 0  # the interrupted run has completed no part
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
            f"{folder / MANIFEST} is damaged ({error}); start over with restart (--restart)."
        ) from None
    return parts, length


def _compare(begun: dict[str, Any], identity: dict[str, Any], folder: Path) -> None:
    """Refuse to resume a run that was begun with other inputs or settings."""
    differing = [k for k in {**begun, **identity} if begun.get(k) != identity.get(k)]
    if differing:
        raise UnfinishedRunError(
            f"{folder} holds an interrupted run that was begun with another {' and another '.join(differing)}. "
            "Give the same inputs and settings to resume it, or start over with restart (--restart)."
        )


def _intact(folder: Path, part: Part) -> bool:
    return all(
        (folder / name).exists() and checksum(folder / name) == digest for name, digest in part.checksums.items()
    )


def _sweep(folder: Path, parts: Sequence[Part]) -> None:
    """Remove the incomplete files of a crash: those that the manifest does not list."""
    known = {MANIFEST, LOCK, MARK}.union(*(part.checksums for part in parts))
    for file in folder.iterdir():
        if file.name not in known:
            file.unlink()


def _claim(folder: Path) -> None:
    """Create the folder, or check that the existing one is ours: nothing of another user's may be removed."""
    with writing(folder):
        with suppress(FileExistsError):
            os.mkdir(folder, 0o700)
        state = os.lstat(folder)
        if not stat.S_ISDIR(state.st_mode) or (hasattr(os, "geteuid") and state.st_uid != os.geteuid()):
            is_link = stat.S_ISLNK(state.st_mode)
            what = "is a symbolic link" if is_link else "is another user's" if folder.is_dir() else "is a file"
            raise OutputError(f"{folder} must be a folder of this user, for the parts of a run; it {what}. Move it.")
        found = {entry.name: entry.is_file(follow_symlinks=False) for entry in os.scandir(folder)}
    names = ("part-", ".part-", "_part-", "._part-", f".{RECORD}")
    known = all(is_file and (n.startswith(names) or n in _KNOWN) for n, is_file in found.items())
    if not known or (MARK not in found and found.keys() - {LOCK}):
        raise OutputError(f"{folder} must hold an unfinished run of gigrad; it holds other files. Move them away.")


_KNOWN = (MANIFEST, LOCK, MARK, RECORD)


def _mark(folder: Path) -> None:
    with writing(folder / MARK):
        os.close(os.open(folder / MARK, os.O_WRONLY | os.O_CREAT | _NO_LINK, 0o600))


def _open_manifest(folder: Path) -> TextIO:
    handle = os.open(folder / MANIFEST, os.O_RDWR | os.O_CREAT | os.O_APPEND | _NO_LINK, 0o600)
    return open(handle, "a", encoding="utf-8")


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Lock the folder for this process; the system releases the lock when the process ends, however it ends."""
    with writing(folder / LOCK):
        handle = os.open(folder / LOCK, os.O_WRONLY | os.O_CREAT | _NO_LINK, 0o600)
    try:
        if not try_lock(handle):
            raise OutputError(f"Another run is writing to {folder} now; wait for it or choose another target.")
        yield
    finally:
        os.close(handle)
