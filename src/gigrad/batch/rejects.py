"""The table of rejected rows: which rows have no result, and why."""

from __future__ import annotations

from typing import Any

from .._common.optional import require
from .sources import Piece
from .tasks import Task


def rejects_schema(task: Task) -> Any:
    """The schema: row number in the source, ids, and the reason; columns are renamed if an id has the same name."""
    pa = require("pyarrow", "cli")
    ids = [task.schema.field(name) for name in task.layout.ids]
    row, reason = (_free(name, task.layout.ids) for name in ("row", "reason"))
    return pa.schema([pa.field(row, pa.int64()), *ids, pa.field(reason, pa.string())])


def rejects_table(task: Task, piece: Piece, bad: dict[int, str]) -> Any:
    """The rejected rows of a piece and its broken lines, which have no ids, in the order of the source."""
    pa = require("pyarrow", "cli")
    schema = rejects_schema(task)
    bad_ids = piece.table.select(list(task.layout.ids)).take(pa.array(list(bad), pa.int64()))
    none = [pa.nulls(len(piece.broken), f.type) for f in list(schema)[1:-1]]
    numbers = [piece.numbers[i] for i in bad] + [n for n, _ in piece.broken]
    reasons = [*bad.values(), *(why for _, why in piece.broken)]
    ids = [pa.chunked_array([*c.chunks, n], n.type) for c, n in zip(bad_ids.columns, none, strict=True)]
    table = pa.table([pa.array(numbers, pa.int64()), *ids, pa.array(reasons, pa.string())], schema=schema)
    return table.sort_by(schema.names[0])


def _free(name: str, taken: tuple[str, ...]) -> str:
    while name in taken:
        name = f"{name}_"
    return name
