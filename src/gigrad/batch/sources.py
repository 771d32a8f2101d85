"""Tables on disk, read in pieces of a fixed number of rows: Parquet files and folders of them, CSV, Arrow IPC."""

from __future__ import annotations

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
from .readers import READERS, Broken, Survey, survey

FORMATS = {
    ".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".arrow": "arrow", ".ipc": "arrow", ".feather": "arrow",
}  # fmt: skip
_MANY = 64  # tables from which a piece is copied into one: everything after it asks each chunk of each column


def format_of(path: Path) -> str:
    """The format that a file's name promises."""
    found = FORMATS.get(path.suffix.lower())
    if found is None:
        raise InputError(f"The name of {path} must end in one of {', '.join(FORMATS)}, which says its format.")
    return found


@dataclass(frozen=True, eq=False)
class Piece:
    """Consecutive rows of a source.

    Attributes
    ----------
    table : pyarrow.Table
    numbers : sequence of int
        Where each row stands in the source, counted from 0; broken lines of a CSV file count too.
    broken : list of (int, str)
        The broken lines among them, and why they are no rows.
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

    @classmethod
    def open(cls, path: str | Path, what: str = "data") -> Source:
        """Find the files of a table; what is absent, empty or of an unknown format is an InputError."""
        path = Path(path)
        if path.is_dir():
            found = tuple(sorted(f for f in path.rglob("*.parquet") if not _hidden(f.relative_to(path))))
            if not found:
                raise InputError(f"{what} must be a table or a folder of .parquet files; the folder {path} has none.")
            return cls(path, "parquet", found)
        if not path.exists():
            raise InputError(f"{what} must be a file or a folder of .parquet files; {path} does not exist.")
        return cls(path, format_of(path), (path,))

    def schema(self) -> Any:
        """The pyarrow schema of the table; every column of a CSV file is text."""
        return READERS[self.format](self.files[0]).schema()

    @cached_property
    def surveys(self) -> tuple[Survey, ...]:
        """What each file was like when it was first looked at, for which it is opened once."""
        return tuple(survey(file, self.format) for file in self.files)

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
        """The whole table in memory: a reference, scores."""
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
            {"name": name, "bytes": found.bytes, "sha256": found.sha256}
            for name, found in zip(names, self.surveys, strict=True)
        ]

    def has_changed(self) -> bool:
        """Whether a file has another size or time than when it was looked at: somebody writes to it meanwhile."""
        try:
            states = [os.stat(file) for file in self.files]
        except OSError:
            return True
        return [(s.st_size, s.st_mtime_ns) for s in states] != [(s.bytes, s.changed) for s in self.surveys]

    def _tables(self, columns: Sequence[str], skip: int) -> Iterator[tuple[Any, Broken]]:
        schema = None
        for i, file in enumerate(self.files):
            if skip and i and skip >= self.surveys[i].rows:
                skip -= self.surveys[i].rows
                continue
            reader = READERS[self.format](file)
            chosen = _chosen(reader.schema(), columns, file)
            schema = schema or chosen
            if skip and len(self.files) > 1 and skip >= self.surveys[i].rows:
                skip -= self.surveys[i].rows
                continue
            for table, broken in reader.batches(columns, skip):
                yield _cast(table, schema, file), broken
            skip = 0


def _hidden(path: Path) -> bool:
    return any(part.startswith(("_", ".")) for part in path.parts)


def _chosen(schema: Any, columns: Sequence[str], file: Path) -> Any:
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
    """Where `count` rows stand when broken lines stand between them, and the broken lines passed on the way."""
    if not broken:
        return range(position, position + count), []
    at = {number for number, _ in broken}
    numbers: list[int] = []
    while len(numbers) < count:
        if position not in at:
            numbers.append(position)
        position += 1
    return numbers, [b for b in broken if b[0] < position]
