"""Readers of each file format, in batches; errors become one-sentence messages that name the file."""

from __future__ import annotations

import csv
import hashlib
import io
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from .._common.optional import require
from .._io.durable import has_utf8_name
from ..errors import GigradError, InputError

_BLOCK = 1 << 22  # bytes of a CSV file that are read at once
Broken = list[tuple[int, str]]
"""Lines of a CSV file that cannot be parsed: their position among the rows, from 0, and why."""


_NO_NAME = "{} cannot be read: its name is not UTF-8; rename it."
_LOST = "{} is damaged: by its metadata it must hold {} rows; {} can be read. Get a new copy of the file."


class Reader(Protocol):
    """One file, or its content where that is in memory.

    `batches` gives tables of any size from row `skip` on, each with the broken lines found up to its end.
    """

    def schema(self) -> Any: ...
    def batches(self, columns: Sequence[str], skip: int) -> Iterator[tuple[Any, Broken]]: ...


class ParquetReader:
    """One Parquet file."""

    def __init__(self, path: Path, content: bytes | None = None) -> None:
        self.path = path
        with reading(path):
            # Checksums of pages are verified where the writer stored them; many do not.
            self.file = require("pyarrow.parquet", "cli").ParquetFile(
                path if content is None else require("pyarrow", "cli").BufferReader(content),
                pre_buffer=False,
                page_checksum_verification=True,
            )

    def schema(self) -> Any:
        return self.file.schema_arrow

    def batches(self, columns: Sequence[str], skip: int) -> Iterator[tuple[Any, Broken]]:
        """Tables from row `skip` on, whole row groups before it not read."""
        metadata, first = self.file.metadata, 0
        stated = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
        if sum(stated) != metadata.num_rows:
            raise InputError(_LOST.format(self.path, f"{metadata.num_rows:,}", f"{sum(stated):,}"))
        while first < metadata.num_row_groups and skip >= metadata.row_group(first).num_rows:
            skip -= metadata.row_group(first).num_rows
            first += 1
        groups = list(range(first, metadata.num_row_groups))
        with reading(self.path):
            found = self.file.iter_batches(8192, row_groups=groups, columns=list(columns), use_threads=False)
            yield from _tables(self._all(found, sum(stated[first:])) if groups else (), self.schema(), columns, skip)

    def _all(self, found: Iterator[Any], stated: int) -> Iterator[Any]:
        """Every batch, and an error if there were fewer rows than the metadata states: Arrow silently skips a page
        whose damaged header looks like that of another kind of page."""
        read = 0
        for batch in found:
            read += batch.num_rows
            yield batch
        if read != stated:
            raise InputError(_LOST.format(self.path, f"{stated:,}", f"{read:,}"))


class ArrowReader:
    """Arrow IPC, the file format and the stream format."""

    def __init__(self, path: Path, content: bytes | None = None) -> None:
        self.path, self.content = path, content
        with reading(path):
            self.known = next(self._open(schema=True))

    def _open(self, schema: bool = False) -> Iterator[Any]:
        """The record batches of an Arrow file or stream, or its schema."""
        pa = require("pyarrow", "cli")
        with pa.OSFile(str(self.path)) if self.content is None else pa.BufferReader(self.content) as stream:
            opened, batches = _open_arrow(stream)
            if schema:
                yield opened.schema
            else:
                yield from batches

    def schema(self) -> Any:
        return self.known

    def batches(self, columns: Sequence[str], skip: int) -> Iterator[tuple[Any, Broken]]:
        with reading(self.path):
            yield from _tables(self._open(), self.schema(), columns, skip)


class CsvReader:
    """CSV in UTF-8 with a header. Every cell stays text, so an id like 007 stays itself; empty ones are missing."""

    def __init__(self, path: Path, content: bytes | None = None) -> None:
        self.path, self.content = path, content
        with reading(path):
            self.names = _header(path, content)
        twice = next((n for n in self.names if self.names.count(n) > 1), None)
        if twice is not None:
            raise InputError(f"{path} must name each column once; {twice!r} comes twice in its header.")

    def _open(self, columns: Sequence[str], broken: Broken) -> Any:
        """A streaming reader of texts; lines of another width are noted in `broken` and left out."""
        arrow_csv, pa = require("pyarrow.csv", "cli"), require("pyarrow", "cli")

        def note(row: Any) -> str:
            # Lines count from 1 with the header, rows from 0 without it.
            broken.append((row.number - 2, f"it has {row.actual_columns} cells; the header has {row.expected_columns}"))
            return "skip"

        return arrow_csv.open_csv(
            str(self.path) if self.content is None else pa.BufferReader(self.content),
            read_options=arrow_csv.ReadOptions(block_size=_BLOCK, use_threads=False),
            parse_options=arrow_csv.ParseOptions(newlines_in_values=True, invalid_row_handler=note),
            convert_options=arrow_csv.ConvertOptions(
                column_types={name: pa.string() for name in columns},
                include_columns=list(columns),
                strings_can_be_null=True,
                null_values=[""],
                quoted_strings_can_be_null=False,
            ),
        )

    def schema(self) -> Any:
        pa = require("pyarrow", "cli")
        return pa.schema([(name, pa.string()) for name in self.names])

    def batches(self, columns: Sequence[str], skip: int) -> Iterator[tuple[Any, Broken]]:
        """Tables of texts from row `skip` on, each with the lines left out of it."""
        broken: Broken = []
        with reading(self.path):
            for table, _ in _tables(self._open(columns, broken), self.schema(), columns, skip):
                found = broken[:]
                del broken[: len(found)]
                yield table, found


def _header(path: Path, content: bytes | None) -> list[str]:
    """The names of a CSV file's columns.

    Not by Arrow's reader: one of its threads may keep a closed reader alive until Python exits, and then needs the GIL
    to release our callback for broken lines, which aborts the process.
    """
    with open(path, "rb") if content is None else io.BytesIO(content) as file:
        start = file.read(_BLOCK)
        more = bool(file.read(1))
    text = start.decode("utf-8-sig", errors="surrogateescape")
    rows = (row for row in csv.reader(io.StringIO(text, newline="")) if row)
    try:
        names = next(rows, None)
        whole = next(rows, None) is not None if more else "\n" in text or "\r" in text
    except csv.Error as error:
        raise ValueError(str(error)) from None
    if names is None or not whole:
        raise ValueError("Empty CSV file" if not start else "its first lines have no header")
    try:
        "".join([*names, str(path)]).encode()  # Arrow, which reads the rows, accepts no other names or paths
    except UnicodeEncodeError:
        raise ValueError("invalid UTF8 data in its header") from None
    return names


def _open_arrow(stream: Any) -> tuple[Any, Iterator[Any]]:
    """An Arrow file, of either format, and its batches."""
    ipc = require("pyarrow.ipc", "cli")
    is_file = stream.read(6) == b"ARROW1"
    stream.seek(0)
    if not is_file:
        opened = ipc.open_stream(stream)
        return opened, iter(opened)
    opened = ipc.open_file(stream)
    return opened, (opened.get_batch(i) for i in range(opened.num_record_batches))


class Survey(NamedTuple):
    """A file's number of rows (for CSV an estimate), size, modification time and SHA-256, and its content if kept."""

    rows: int
    size: int
    changed: int
    sha256: str
    content: bytes | None = None


def survey(path: Path, format: str, most: int = 0) -> Survey:
    """The survey of a file, which is opened once; its content is kept if it has at most `most` bytes.

    Rows are counted in the same bytes that are hashed.
    """
    stream: Any
    if not has_utf8_name(path):  # whoever reads it: records could not name it
        raise InputError(_NO_NAME.format(path))
    with reading(path), open(path, "rb") as file:
        state = os.fstat(file.fileno())
        content = file.read(most + 1) if state.st_size <= most else None
        if content is not None and len(content) > most:  # it grows
            content = None
            file.seek(0)
        stream = file if content is None else io.BytesIO(content)
        hasher, lines = hashlib.sha256(), 0
        while block := stream.read(1 << 20):
            hasher.update(block)
            if format == "csv":
                lines += block.count(b"\n")
        stream.seek(0)
        if format == "parquet":
            rows = int(require("pyarrow.parquet", "cli").read_metadata(stream).num_rows)
        elif format == "arrow":
            rows = sum(batch.num_rows for batch in _open_arrow(stream)[1])
        else:  # a quoted line break counts as a row, a broken line too
            rows = max(lines - 1, 0)
    return Survey(rows, state.st_size, state.st_mtime_ns, hasher.hexdigest(), content)


READERS: dict[str, type[ParquetReader] | type[ArrowReader] | type[CsvReader]] = {
    "parquet": ParquetReader,
    "arrow": ArrowReader,
    "csv": CsvReader,
}


def _tables(found: Any, schema: Any, columns: Sequence[str], skip: int) -> Iterator[tuple[Any, Broken]]:
    """Tables of the wanted columns without the first `skip` rows; an empty table marks the end."""
    pa = require("pyarrow", "cli")
    for batch in found:
        gone = min(skip, batch.num_rows)
        skip -= gone
        yield pa.Table.from_batches([batch]).select(list(columns)).slice(gone), []
    yield schema.empty_table().select(list(columns)), []


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn a library's exception about a file into an InputError that names the file."""
    pa = require("pyarrow", "cli")
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError, ValueError) as error:
        if isinstance(error, GigradError):
            raise
        if not has_utf8_name(path):
            raise InputError(_NO_NAME.format(path)) from None
        text = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        hint = " Save it in UTF-8." if "UTF8" in text else ""
        raise InputError(f"{path} cannot be read: {text.rstrip('.')}.{hint}") from None
