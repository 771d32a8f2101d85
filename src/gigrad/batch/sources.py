"""Tables on disk, read in pieces of a fixed number of rows: Parquet files and folders of them, CSV, Arrow IPC."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

from .._common.optional import require
from .._io.tables import listed
from ..errors import InputError
from .readers import READERS, Broken, Reader, Survey, reading, survey

FORMATS = {
    ".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".arrow": "arrow", ".ipc": "arrow", ".feather": "arrow",
}  # fmt: skip
_SMALL = 2**20  # files of up to this many bytes are read whole: opening one costs more than reading it
_KEPT = 64 * 2**20  # bytes of small files that are kept, so that each of many is opened once, however often it is read
_MANY = 64  # chunks from which on a piece is copied into one: later steps loop over the chunks of each column


def format_of(path: Path) -> str:
    """The format of a file by the ending of its name."""
    found = FORMATS.get(path.suffix.lower())
    if found is None:
        raise InputError(f"The name of {path} must end in one of {', '.join(FORMATS)}, which says its format.")
    return found


class DamagedInputError(InputError):
    """The content of a file has changed since the run began."""

    def __init__(self, file: Path) -> None:
        super().__init__(
            f"The content of {file} has changed since the run began; check that nothing writes to it and that its disk "
            "is sound, then run again."
        )


@dataclass(frozen=True, eq=False)
class Piece:
    """Consecutive rows of a source.

    Attributes
    ----------
    table : pyarrow.Table
    numbers : sequence of int
        The number of each row in the source, from 0; broken lines of a CSV file count too.
    broken : list of (int, str)
        The broken lines among them, and why they cannot be parsed.
    """

    table: Any
    numbers: Sequence[int]
    broken: Broken = field(default_factory=list)


@dataclass(frozen=True)
class Source:
    """One table on disk: a file, or a folder of Parquet files read in the order of their names."""

    path: Path
    format: str
    files: tuple[Path, ...]
    looks: _Looks = field(default_factory=lambda: _Looks(), repr=False, compare=False)

    @classmethod
    def open(cls, path: str | Path, what: str = "data") -> Source:
        """The source at a path; an InputError if it does not exist, has no files or has an unknown format."""
        path = Path(path)
        with reading(path):
            is_folder, is_file, exists = path.is_dir(), path.is_file(), path.exists()
        if is_folder:
            found = tuple(sorted(f for f in path.rglob("*.parquet") if not _hidden(f.relative_to(path))))
            if not found:
                raise InputError(f"{what} must be a table or a folder of .parquet files; the folder {path} has none.")
            return cls(path, "parquet", found)
        if not exists:
            raise InputError(f"{what} must be a file or a folder of .parquet files; {path} does not exist.")
        if not is_file:
            raise InputError(f"{what} must be a file, which is read several times; {path} is a device or a pipe.")
        return cls(path, format_of(path), (path,))

    def schema(self) -> Any:
        """The pyarrow schema of the table; every column of a CSV file is text."""
        return self._reader(self.files[0]).schema()

    @cached_property
    def surveys(self) -> tuple[Survey, ...]:
        """The survey of each file, taken once, when the run began."""
        return tuple(self.looks.at(file, self.format) for file in self.files)

    def rows(self) -> int:
        """How many rows there are; for CSV an estimate."""
        return sum(found.rows for found in self.surveys)

    def pieces(self, columns: Sequence[str], rows: int, skip: int = 0) -> Iterator[Piece]:
        """The table in pieces of `rows` rows, the last one shorter, from piece `skip` on."""
        if self.format == "csv":  # broken lines must be counted from the start
            yield from islice(_cut(self._tables(columns, 0), rows, 0), skip, None)
        else:
            yield from _cut(self._tables(columns, skip * rows), rows, skip * rows)

    def read(self, columns: Sequence[str] | None = None) -> Any:
        """The whole table in memory, for a reference or scores."""
        pa = require("pyarrow", "cli")
        names = self.schema().names if columns is None else columns
        tables, broken = zip(*self._tables(names, 0), strict=True)
        first = next((b for found in broken for b in found), None)
        if first is not None:
            raise InputError(f"Row {first[0]} of {self.path} cannot be read: {first[1]}.")
        return pa.concat_tables(tables)

    def fingerprint(self) -> list[dict[str, Any]]:
        """Every file's name, size and SHA-256."""
        names = (f.name if f == self.path else f.relative_to(self.path).as_posix() for f in self.files)
        return [
            {"name": name, "bytes": found.size, "sha256": found.sha256}
            for name, found in zip(names, self.surveys, strict=True)
        ]

    def has_changed(self) -> bool:
        """Whether the size or modification time of a file differs from its survey's, because something writes to it."""
        try:
            states = [os.stat(file) for file in self.files]
        except OSError:
            return True
        return [(s.st_size, s.st_mtime_ns) for s in states] != [(s.size, s.changed) for s in self.surveys]

    def check_content(self) -> None:
        """Raise unless the large files still have the hashes of their surveys; small ones are checked whenever they are
        read. A faulty disk can change a file that nothing writes to."""
        for file, found in zip(self.files, self.surveys, strict=True):
            if found.size <= _SMALL:
                continue
            with reading(file), open(file, "rb") as stream:
                now = hashlib.file_digest(stream, "sha256").hexdigest()
            if now != found.sha256:
                raise DamagedInputError(file)

    def _reader(self, file: Path) -> Reader:
        """A reader of a file; of a small one, a reader of its content in memory, with the hash checked."""
        try:
            small = os.path.getsize(file) <= _SMALL
        except OSError:
            small = False
        if not small:
            return READERS[self.format](file)
        found = self.looks.at(file, self.format)
        content = found.content
        if content is None:  # there was no room to keep it
            with reading(file):
                content = file.read_bytes()
            if hashlib.sha256(content).hexdigest() != found.sha256:
                raise DamagedInputError(file)
        return READERS[self.format](file, content)

    def _tables(self, columns: Sequence[str], skip: int) -> Iterator[tuple[Any, Broken]]:
        """The tables of all files from row `skip` on, with the types of the first file."""
        schema = None
        for i, file in enumerate(self.files):
            if skip and i and skip >= self.surveys[i].rows:
                skip -= self.surveys[i].rows
                continue
            reader = self._reader(file)
            chosen = _chosen(reader.schema(), columns, file)
            schema = schema or chosen
            if skip and len(self.files) > 1 and skip >= self.surveys[i].rows:
                skip -= self.surveys[i].rows
                continue
            for table, broken in reader.batches(columns, skip):
                yield _cast(table, schema, file), broken
            skip = 0


class _Looks:
    """A cache of surveys, with the number of bytes of small files that may still be kept."""

    def __init__(self) -> None:
        self.found: dict[Path, Survey] = {}
        self.room = _KEPT

    def at(self, file: Path, format: str) -> Survey:
        """The survey of a file, taken on the first call."""
        if file not in self.found:
            self.found[file] = survey(file, format, min(_SMALL, self.room))
            self.room -= len(self.found[file].content or b"")
        return self.found[file]


def _hidden(path: Path) -> bool:
    return any(part.startswith(("_", ".")) for part in path.parts)


def _chosen(schema: Any, columns: Sequence[str], file: Path) -> Any:
    """The types of the columns that are read from a file."""
    pa = require("pyarrow", "cli")
    absent = [name for name in columns if name not in schema.names]
    if absent:
        raise InputError(f"{file} must have the column {absent[0]!r}; it has {listed(schema.names)}.")
    return pa.schema([schema.field(name) for name in columns])


def _cast(table: Any, schema: Any, file: Path) -> Any:
    """The table in the types of the first file, so that one output has one type a column."""
    pa = require("pyarrow", "cli")
    if table.schema.types == schema.types:
        return table.replace_schema_metadata(None)
    try:
        return table.cast(schema).replace_schema_metadata(None)
    except (pa.ArrowException, ValueError) as error:
        raise InputError(f"The files of a folder must have columns of one type; {file} differs: {error}") from None


def _cut(stream: Iterator[tuple[Any, Broken]], rows: int, position: int) -> Iterator[Piece]:
    """Pieces of exactly `rows` rows from tables of any size; the last may be shorter."""
    pa = require("pyarrow", "cli")
    waiting: list[Any] = []
    count = 0
    broken: Broken = []
    for table, found in stream:
        broken += found
        if table.num_rows or not waiting:
            waiting.append(table)
        count += table.num_rows
        while count >= rows:
            whole = pa.concat_tables(waiting)
            if len(waiting) > _MANY:
                whole = whole.combine_chunks()
            waiting, count = [whole.slice(rows)], count - rows
            numbers, passed = _numbered(position, rows, broken)
            position += rows + len(passed)
            broken = broken[len(passed) :]
            yield Piece(whole.slice(0, rows), numbers, passed)
    last = pa.concat_tables(waiting).combine_chunks() if waiting else None
    if last is not None and (last.num_rows or broken):
        yield Piece(last, _numbered(position, last.num_rows, broken)[0], broken)


def _numbered(position: int, count: int, broken: Broken) -> tuple[Sequence[int], Broken]:
    """The numbers of `count` rows in the source, skipping broken lines, and the broken lines skipped."""
    if not broken:
        return range(position, position + count), []
    at = {number for number, _ in broken}
    numbers: list[int] = []
    while len(numbers) < count:
        if position not in at:
            numbers.append(position)
        position += 1
    return numbers, [b for b in broken if b[0] < position]
