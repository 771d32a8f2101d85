"""An Explanation as a Parquet file and back: a line for each row and output, the rest in the schema's metadata.

The credits are ordinary columns that any tool can read; names, provenance and the layout are JSON under `gigrad`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .._common import checks
from .._common.optional import require
from .._explain.paths import Paths
from .._explain.reference_parts import ReferenceParts
from .._io.durable import replacing
from .._io.provenance import fault_of
from ..errors import InputError
from .frames import raw_arrow, to_arrow

if TYPE_CHECKING:
    from .._explain.explanation import Explanation

FORMAT = 1
_PATH_COLUMNS = ("path_score", "path_credit", "path_jump_time", "path_jump_feature", "path_jump_size")


def save(e: Explanation, path: str | Path) -> None:
    """See `Explanation.save`."""
    path = checks.file_name(path, "a saved explanation", ".parquet")
    parquet = require("pyarrow.parquet", "frames")
    table = to_arrow(e, data=True)
    head = {
        "format": FORMAT,
        "feature_names": e.feature_names,
        "output_names": e.output_names,
        "outputs_axis": e.values.ndim == 3,
        "columns": e.columns,
        "groups": e.groups,
        "data": _data_record(e.data, e.columns),
        "provenance": e.provenance,
        "paths": None,
    }
    if e.starts is not None:
        head["starts"] = _data_record(e.starts, e.columns)
    if e.paths is not None:
        head["paths"] = {"times": e.paths.times.tolist(), "references": e.paths.references, "of": e.paths.of}
        for name, lists in _path_lists(e.paths, len(e), len(e.output_names)).items():
            table = table.append_column(name, [lists])
    if e.reference_parts is not None:
        parts = e.reference_parts
        head["reference_parts"] = {"weights": parts.weights.tolist(), "of": parts.of}
        table = table.append_column("reference_parts", [_by_row(parts, len(e.output_names))])
    metadata = {**(table.schema.metadata or {}), b"gigrad": json.dumps(head).encode()}
    with replacing(path) as aside:
        parquet.write_table(
            table.replace_schema_metadata(metadata), str(aside), compression="zstd", write_page_checksum=True
        )


def load(path: str | Path) -> Explanation:
    """See `Explanation.load`."""
    pa, parquet = require("pyarrow", "frames"), require("pyarrow.parquet", "frames")
    if not Path(path).exists():
        raise InputError(f"{path} must be a Parquet file that gigrad saved; it does not exist.")
    try:
        table = parquet.read_table(str(path), page_checksum_verification=True)
    except (pa.ArrowException, OSError) as error:
        why = " ".join(str(error).split()).rstrip(".")
        raise InputError(f"{path} must be a Parquet file that can be read; {why}.") from None
    try:
        head = json.loads((table.schema.metadata or {}).get(b"gigrad", b"{}"))
        found = head.get("format")
        if found == FORMAT:
            return _explanation(pa, table, head)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, ZeroDivisionError, RecursionError,
            pa.ArrowException) as error:  # fmt: skip
        raise InputError(f"{path} must be an explanation as gigrad saved it; it is damaged ({error!r}).") from None
    raise InputError(f"{path} must be an explanation that gigrad saved in format {FORMAT}; its format is {found}.")


def _explanation(pa: Any, table: Any, head: dict[str, Any]) -> Explanation:
    """The explanation in a table that `save` wrote, given the metadata of its file."""
    from .._explain.explanation import Explanation

    fault = fault_of(head["provenance"], whole=False)
    if fault is not None:
        raise TypeError(fault)
    k = len(head["output_names"])
    n = table.num_rows // k
    shape = (n, k) if head["outputs_axis"] else (n,)

    def figure(name: str) -> Any:
        if name == "rest" and name not in table.column_names:
            return np.zeros(shape)
        return np.array(table.column(name).to_numpy(), dtype=np.float64).reshape(shape)

    flat = np.column_stack([table.column(f"credit_{name}").to_numpy() for name in head["feature_names"]])
    values = np.moveaxis(flat.reshape(n, k, len(head["feature_names"])), 1, 2)
    first = table.take(pa.array(np.arange(n) * k))
    return Explanation(
        values=np.ascontiguousarray(values if head["outputs_axis"] else values[:, :, 0]),
        base_values=figure("base_value"),
        predictions=figure("prediction"),
        gap=figure("gap"),
        error=figure("error"),
        data=_unpack_data(first, head["data"], head["columns"]),
        starts=_unpack_data(first, head.get("starts", {"library": "none"}), head["columns"], "start"),
        feature_names=tuple(head["feature_names"]),
        output_names=tuple(head["output_names"]),
        provenance=head["provenance"],
        ids=_ids(first, head.get("ids", ["id"])),
        rest=figure("rest"),
        columns=tuple(head["columns"]),
        groups={name: tuple(members) for name, members in head["groups"].items()},
        reference_parts=_read_parts(table, head, values.shape[1:]) if head.get("reference_parts") else None,
        paths=None if head["paths"] is None else _read_paths(table, head["paths"], shape, len(head["feature_names"])),
    )


def _ids(table: Any, names: list[str]) -> Any:
    """The ids of the rows: a column, several joined, or the rows' numbers if a batch had no id columns."""
    if not names:
        return np.arange(table.num_rows)
    columns = [table.column(name).to_pylist() for name in names]
    return np.asarray(
        columns[0] if len(columns) == 1 else [" / ".join(map(str, row)) for row in zip(*columns, strict=True)]
    )


def _data_record(rows: Any, columns: tuple[str, ...]) -> dict[str, Any]:
    """The library of the raw rows, and the metadata that it needs to restore them."""
    library = "none" if rows is None else type(rows).__module__.split(".")[0]
    record: dict[str, Any] = {"library": library}
    if library == "numpy":
        record["dtype"] = rows.dtype.str
    if library == "pandas":
        metadata = raw_arrow(rows, columns).schema.metadata or {}
        record["pandas"] = metadata.get(b"pandas", b"").decode()
    return record


def _unpack_data(table: Any, record: dict[str, Any], columns: list[str], prefix: str = "value") -> Any:
    """The explained rows, or their starts, as the library and type that they were saved from."""
    if record["library"] == "none":
        return None
    raw = table.select([f"{prefix}_{name}" for name in columns]).rename_columns(columns)
    if record["library"] == "numpy":
        dtype = np.dtype(record["dtype"])
        arrays = [c.to_pylist() if dtype.kind == "O" else c.to_numpy() for c in raw.columns]
        out = np.empty((raw.num_rows, len(columns)), dtype=dtype)
        for j, array in enumerate(arrays):
            out[:, j] = array
        return out
    if record["library"] == "pandas":
        return raw.replace_schema_metadata({b"pandas": record["pandas"].encode()}).to_pandas()
    raw = raw.replace_schema_metadata(None)
    return require("polars", "polars").from_arrow(raw) if record["library"] == "polars" else raw


def _by_row(parts: ReferenceParts, k: int) -> list[Any]:
    """The credits against parts of the reference as lists, one for each line of the table."""
    credit = parts.credit.reshape(*parts.credit.shape[:3], k)  # (g, n, p, k)
    lines = np.moveaxis(credit, (1, 3), (0, 1)).reshape(credit.shape[1] * k, -1)
    return list(lines)


def _read_parts(table: Any, head: dict[str, Any], inner: tuple[int, ...]) -> ReferenceParts:
    """The credits for each reference row, from the lists that they are saved as."""
    record, (p, k) = head["reference_parts"], inner
    lines = np.array(table.column("reference_parts").to_pylist(), np.float64)
    credit = np.moveaxis(lines.reshape(-1, k, len(record["weights"]), p), (0, 1), (1, 3))
    credit = np.ascontiguousarray(credit if head["outputs_axis"] else credit[..., 0])
    return ReferenceParts(credit, np.array(record["weights"], np.float64), record["of"])


def _path_lists(paths: Paths, n: int, k: int) -> dict[str, list[Any]]:
    """The paths as lists, one for each line of the table, None for rows that have none."""
    r, t = len(paths), len(paths.times)
    score, credit = paths.score.reshape(r, t, k), paths.credit.reshape(r, t, -1, k)
    size = paths.jump_size.reshape(-1, k)
    out: dict[str, list[Any]] = {name: [None] * (n * k) for name in _PATH_COLUMNS}
    for i, row in enumerate(paths.rows.tolist()):
        jumps = np.flatnonzero(paths.jump_row == i)
        for j in range(k):
            lists = (score[i, :, j], credit[i, :, :, j].ravel(), paths.jump_time[jumps], paths.jump_feature[jumps],
                     size[jumps, j])  # fmt: skip
            for name, array in zip(_PATH_COLUMNS, lists, strict=True):
                out[name][row * k + j] = array.tolist()
    return out


def _read_paths(table: Any, record: dict[str, Any], shape: tuple[int, ...], features: int) -> Paths:
    """The traced paths in a table that `save` wrote; rows without one hold nulls."""
    n, k = shape[0], (shape[1] if len(shape) == 2 else 1)
    outputs = shape[1:]
    lines = {name: table.column(name).to_pylist() for name in _PATH_COLUMNS}
    rows = [i for i in range(n) if lines["path_score"][i * k] is not None]
    t = len(record["times"])

    def gathered(name: str, *inner: int) -> Any:
        """(rows, ..., outputs) of one list column, the outputs' axis last and only where there is one."""
        stacked = np.array([[lines[name][i * k + j] for j in range(k)] for i in rows]).reshape(len(rows), k, *inner)
        return np.moveaxis(stacked, 1, -1).reshape(len(rows), *inner, *outputs)

    counts = [len(lines["path_jump_time"][i * k]) for i in rows]
    sizes = [np.array([lines["path_jump_size"][i * k + j] for j in range(k)]).T for i in rows]
    return Paths(
        rows=np.array(rows, np.int64),
        times=np.array(record["times"], np.float64),
        score=gathered("path_score", t),
        credit=gathered("path_credit", t, features),
        jump_row=np.repeat(np.arange(len(rows)), counts),
        jump_time=np.array([v for i in rows for v in lines["path_jump_time"][i * k]], np.float64),
        jump_feature=np.array([v for i in rows for v in lines["path_jump_feature"][i * k]], np.int64),
        jump_size=np.concatenate(sizes).reshape(sum(counts), *outputs),
        references=record["references"],
        of=record["of"],
    )
