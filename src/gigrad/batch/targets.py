"""The result of a run: one Parquet, CSV or Arrow file, or a folder of Parquet files, written atomically."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .._common.log import logger
from .._common.optional import require
from .._io.durable import flush, folder_mode, has_utf8_name, mode_for, replacing, writing
from .._output.spreadsheet import FORMULA, NUMBER
from .._reasons.ledger import lines, lines_writer
from ..errors import GigradError, InputError, OutputError
from .readers import READERS
from .sources import FORMATS, Source, format_of
from .workspace import LOCK, MANIFEST, MARK, RECORD

_GROUP_BYTES = 16 * 2**20
_log = logger("audit")


@dataclass(frozen=True)
class Target:
    """A file, or a folder of Parquet files (a name without an ending)."""

    path: Path
    format: str

    @classmethod
    def open(cls, path: str | Path) -> Target:
        """The target at a path, its format by the name; an OutputError if it cannot be written."""
        text, path = os.fspath(path), Path(path)
        with writing(path):
            if path.is_dir() and path.is_symlink():  # the folder is replaced, not the link to it
                path = Path(os.path.realpath(path))
            is_folder = path.is_dir() or text.endswith(("/", os.sep)) or not path.suffix
            target = cls(path, "folder" if is_folder else format_of(path))
            check_writable(path)
            if is_folder and path.exists():
                _check_replaceable(path)
        return target

    @property
    def workspace(self) -> Path:
        """The folder that holds the parts of the run until it is done."""
        return self.path.with_name(f"{self.path.name}.unfinished")

    @property
    def part_suffix(self) -> str:
        return ".parquet" if self.format == "folder" else ".arrow"

    @property
    def record(self) -> Path | None:
        """The file for the provenance, if the format itself cannot hold it."""
        return self.path.with_name(f"{self.path.name}.provenance.json") if self.format == "csv" else None

    def finish(self, schema: Any, tables: Iterable[Any]) -> None:
        """Write the result from its parts; an existing target is replaced only once the new one is complete."""
        if self.format == "folder":
            self._finish_folder(schema)
            return
        if self.record is None:
            write_table(self.path, self.format, schema, tables)
            return
        with replacing(self.record) as aside:  # renamed after the table, and not if that fails
            aside.write_text(head_of(schema), encoding="utf-8")
            write_table(self.path, self.format, schema, tables)

    def _finish_folder(self, schema: Any) -> None:
        """Put the finished folder in the place of the old one, so that no reader sees half of either."""
        mode = mode_for(self.path / RECORD)
        with replacing(self.workspace / RECORD, sweep=False) as aside:
            aside.write_text(head_of(schema), encoding="utf-8")
        with writing(self.path):
            if mode is not None:
                for file in self.workspace.iterdir():
                    os.chmod(file, mode)
                os.chmod(self.workspace, folder_mode(mode))
            self._remove_old()
            if self.path.exists():
                os.rename(self.path, self._old)
            os.rename(self.workspace, self.path)
            flush(self.path.parent)
            self._remove_old()
            self._tidy()

    @property
    def _old(self) -> Path:
        """The name of the previous folder while the new one replaces it."""
        return self.path.with_name(f".{self.path.name}.gigrad-old")

    def _remove_old(self) -> None:
        if (self._old / RECORD).exists() and not self._old.is_symlink():
            shutil.rmtree(self._old, ignore_errors=True)

    def tidy(self) -> None:
        """Remove files that a run killed while finishing has left in or beside a finished folder."""
        if self.format == "folder" and self.path.exists():
            self._remove_old()
            self._tidy()

    def _tidy(self) -> None:
        """Remove the files of the workspace that are not parts from the folder that it has become."""
        for file in (self.path / LOCK, self.path / MARK, *self.path.glob("_part-*")):
            file.unlink(missing_ok=True)


def _check_replaceable(folder: Path) -> None:
    """Raise an OutputError if a path to be replaced as a folder is a file, or holds anything but an earlier result."""
    what = f"choose another name, or for a single file one that ends in {', '.join(FORMATS)}"
    if not folder.is_dir():
        raise OutputError(f"{folder} must be a folder, since its name has no ending; it is a file; {what}.")
    names = sorted(entry.name for entry in folder.iterdir())
    others = [n for n in names if not n.startswith(_PARTS) and n not in _BESIDE]
    if names and (RECORD not in names or others):
        more = f" ({others[0]})" if RECORD in names else ""
        raise OutputError(f"{folder} is a folder with other files in it{more}, which would be lost; {what}.")


# What gigrad and Spark write to the folder of a result
_PARTS = ("part-", "_part-", ".part-")
_BESIDE = (RECORD, MANIFEST, LOCK, MARK, "_SUCCESS", "._SUCCESS.crc", f".{RECORD}.crc")


def check_writable(path: Path) -> None:
    """Raise an OutputError, before any work is done, if a file cannot be written."""
    if not has_utf8_name(path):
        raise OutputError(f"{path} cannot be written: its name is not UTF-8; choose another.")
    if not path.parent.is_dir():
        raise OutputError(f"{path} cannot be written: the folder {path.parent} does not exist.")
    if not os.access(path.parent, os.W_OK):
        raise OutputError(f"{path} cannot be written: this user may not write to {path.parent}.")


def write_table(path: Path, format: str, schema: Any, tables: Iterable[Any]) -> None:
    """Write tables to one file, atomically: under another name, then renamed."""
    with replacing(path) as aside, _writer(aside, format, schema) as write:
        for table in _grouped(tables):
            write(table.cast(schema) if table.schema != schema else table)


def records_path(path: str | Path) -> Path:
    """The path of a ledger, checked: a JSON Lines file, compressed where its name ends in .gz."""
    path = Path(path)
    if not path.name.endswith((".jsonl", ".jsonl.gz")):
        raise InputError(
            f"A ledger of records is JSON, one a line; its name must end in .jsonl or .jsonl.gz; got {path}."
        )
    check_writable(path)
    return path


def write_ledger(path: Path, blocks: Iterable[bytes], key: bytes | None) -> int:
    """Write the records of the parts as one ledger with a hash chain, atomically; returns the number of lines."""
    count = 0
    with replacing(path) as aside, lines_writer(aside, path.suffix == ".gz") as out:
        # not splitlines, which also splits at other characters that a text may hold
        for line in lines((block.decode().split("\n")[:-1] for block in blocks), key):
            out.write(line)
            count += 1
    _log.info("written: %s, %s lines", path, f"{count:,}")
    return count


def head_of(schema: Any) -> str:
    """The metadata of a result, as JSON text."""
    return ((schema.metadata or {}).get(b"gigrad") or b"{}").decode()


def read_head(target: Target) -> dict[str, Any]:
    """The metadata of a finished result; empty if there is no result, or it has none from gigrad."""
    try:
        found = json.loads(_text_of(target, None) if target.path.exists() else "{}")
    except (OSError, ValueError, GigradError):
        return {}
    return found if isinstance(found, dict) else {}


def holds_lines(path: Path, count: int) -> bool:
    """Whether a table on disk, or a folder of them, can be read and has so many lines."""
    try:
        if path.is_dir() and count == 0:
            return True  # Spark writes no table for an empty result
        source = Source.open(path)
        found = sum(int(p.table.num_rows) for p in source.pieces(source.schema().names[:1], 65536))
        return found == count and (source.format != "csv" or _ends_a_line(path))
    except (OSError, GigradError):
        return False


def _ends_a_line(path: Path) -> bool:
    with open(path, "rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read() == b"\n"


def head_of_source(source: Source) -> dict[str, Any]:
    """The metadata of a result that is read as a table; empty if it has none from gigrad."""
    target = Target(source.path, "folder" if source.path.is_dir() else source.format)
    try:
        found = json.loads(_text_of(target, source))
    except (OSError, ValueError, RecursionError) as error:
        if isinstance(error, GigradError):
            raise
        said = f"{type(error).__name__}: {error}"
        raise InputError(f"The gigrad metadata of {source.path} is damaged ({said}).") from None
    return found if isinstance(found, dict) else {}


def _text_of(target: Target, source: Source | None) -> str:
    """The metadata of a result as text: from the file beside a folder or CSV file, else from the table's schema."""
    record = target.path / RECORD if target.format == "folder" else target.record
    if record is not None and record.exists():
        return record.read_text(encoding="utf-8")
    if target.format == "csv" or (target.format == "folder" and source is None):
        return "{}"
    return head_of(READERS[target.format](target.path).schema() if source is None else source.schema())


def with_head(schema: Any, head: dict[str, Any]) -> Any:
    """The schema with gigrad's metadata about a result."""
    return schema.with_metadata({"gigrad": json.dumps(head, default=str)})


def harmless(column: Any) -> Any:
    """A column of a table, by the rule of `spreadsheet.harmless`."""
    pa, pc = require("pyarrow", "cli"), require("pyarrow.compute", "cli")
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return column
    risky = pc.and_(pc.match_substring_regex(column, FORMULA), pc.invert(pc.match_substring_regex(column, NUMBER)))
    quoted = pc.binary_join_element_wise(pa.scalar("'", column.type), column, pa.scalar("", column.type))
    return pc.if_else(risky, quoted, column)


@contextmanager
def _writer(path: Path, format: str, schema: Any) -> Iterator[Any]:
    """A context with a function that appends a table to a new file."""
    if format == "parquet":
        with require("pyarrow.parquet", "cli").ParquetWriter(
            path, schema, compression="zstd", write_page_checksum=True
        ) as parquet:
            yield lambda table: parquet.write_table(table, row_group_size=max(table.num_rows, 1))
    elif format == "arrow":
        with require("pyarrow.ipc", "cli").new_file(str(path), schema) as arrow:
            yield arrow.write_table
    elif format == "csv":
        pa, csv = require("pyarrow", "cli"), require("pyarrow.csv", "cli")
        text = pa.schema([pa.field(name, _flat(schema.field(i).type)) for i, name in enumerate(_titles(schema))])
        with csv.CSVWriter(str(path), text) as lines:
            yield lambda table: lines.write_table(_as_text(table, text))
    else:
        raise InputError(f"A result is written as {', '.join(sorted(set(FORMATS.values())))}; got {format!r}.")


def _flat(kind: Any) -> Any:
    """The type that a CSV cell of a type is written from."""
    pa = require("pyarrow", "cli")
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _titles(schema: Any) -> list[str]:
    pa = require("pyarrow", "cli")
    return list(harmless(pa.array(schema.names, pa.string())).to_pylist())


def _as_text(table: Any, schema: Any) -> Any:
    pa = require("pyarrow", "cli")
    return pa.table([harmless(c.cast(f.type)) for c, f in zip(table.columns, schema, strict=True)], schema=schema)


def _grouped(tables: Iterable[Any]) -> Iterator[Any]:
    """Small parts concatenated to tables of some megabytes, for good row groups and bounded memory."""
    pa = require("pyarrow", "cli")
    waiting: list[Any] = []
    for table in tables:
        waiting.append(table)
        if sum(t.nbytes for t in waiting) >= _GROUP_BYTES:
            joined, waiting = pa.concat_tables(waiting), []
            yield joined
    if waiting:
        yield pa.concat_tables(waiting)
