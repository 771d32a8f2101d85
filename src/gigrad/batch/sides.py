"""One of two runs that are compared: its credits, reasons, ids and data, read from any kind of result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._common.display import is_missing, plain
from .._explain.explanation import Explanation
from .._reasons import Reasons
from .._reasons.ledger import read_ledger
from ..errors import InputError, kind_of
from ..references.direction import adverse_sign
from .sources import Source
from .targets import head_of_source

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Side:
    """One of two runs.

    Attributes
    ----------
    name : str
        For messages.
    rows : int
        The number of applicants.
    reasons : list of tuple of str, or None
        The reasons of each, worst first; None where they cannot be known.
    credits : dict
        The credits of each feature, (rows,).
    ids : list of tuple
        The id of each applicant; empty where there are none.
    data : list of tuple, or None
        The values of each applicant, in the order of `columns`.
    """

    name: str
    rows: int
    reasons: list[tuple[str, ...]] | None
    credits: Mapping[str, Array]
    ids: list[tuple[Any, ...]]
    data: list[tuple[Any, ...]] | None = field(default=None)
    columns: tuple[str, ...] = ()


def side_of(what: Any, ids: Sequence[str] | None, top: int, higher_is_better: bool | None, data: Any = None) -> Side:
    """One run: an Explanation, Reasons, a ledger, or a result on disk with the table that it was made from."""
    if isinstance(what, Explanation):
        return _of_explanation(what, top, higher_is_better)
    if isinstance(what, Reasons):
        own = [tuple(r.feature for r in applicant.reasons) for applicant in what]
        rows = [tuple(map(_cell, case.values.values())) for case in what.cases]
        e = what.explanation
        names = (*(what.cases[0].values if what.cases else ()),)
        return Side("Reasons", len(own), own, _columns(e), [(c.row_id,) for c in what.cases], rows, names)
    if not isinstance(what, (str, Path)):
        raise InputError(
            f"A run must be an Explanation, Reasons, or the path of a result or a ledger; got {kind_of(what)}."
        )
    path = Path(what)
    if path.name.endswith((".jsonl", ".jsonl.gz")):
        return _of_ledger(path)
    return _of_result(path, ids, top, higher_is_better, data)


def _of_explanation(e: Explanation, top: int, better: bool | None) -> Side:
    """One side of a comparison of runs, from an Explanation in memory."""
    if e.values.ndim != 2:
        raise InputError("Runs are compared on one output; choose one with e[:, :, name].")
    better = e.provenance.get("reference", {}).get("higher_is_better") if better is None else better
    columns = _columns(e)
    ids = [] if e.ids is None else [(plain(i),) for i in e.ids]
    table = e.data if isinstance(e.data, np.ndarray) else np.asarray(e.data, dtype=object)
    rows = [tuple(map(_cell, row)) for row in table.tolist()]
    names = (*e.columns,)
    return Side("Explanation", len(e), _principal(columns, top, better), columns, ids, rows, names)


def _columns(e: Explanation) -> dict[str, Array]:
    return dict(zip(e.feature_names, e.values.T, strict=True))


def _of_ledger(path: Path) -> Side:
    """One side of a comparison from a ledger's records."""
    reasons, ids, data, credits = [], [], [], list[list[float]]()
    features: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    for record in read_ledger(path):
        if features not in ((), (*record["credits"],)):
            raise InputError(f"The records of {path} must all have the same features; they have several sets.")
        features, columns = (*record["credits"],), (*record["applicant"],)
        reasons.append(tuple(r["feature"] for r in record["outcome"]["reasons"]))
        ids.append((record["row_id"],))
        data.append(tuple(map(_cell, record["applicant"].values())))
        credits.append([*record["credits"].values()])
    by_feature = dict(zip(features, np.array(credits, np.float64).T, strict=True))
    return Side(path.name, len(ids), reasons, by_feature, ids, data, columns)


def _of_result(path: Path, ids: Sequence[str] | None, top: int, better: bool | None, data: Any) -> Side:
    """One side of a comparison from a table of credits or of reasons; `data` is the table that was explained."""
    source = Source.open(path, "a result")
    head = head_of_source(source)
    named = tuple(head.get("ids", ()) if ids is None else ids)
    names = source.schema().names
    absent = [name for name in named if name not in names]
    if absent:
        raise InputError(f"{path} must have the column {absent[0]!r}, which names rows; it has {', '.join(names)}.")
    if {"rank", "feature"} <= set(names):
        return _of_reasons(source, named, data)
    wanted = [name for name in names if name.startswith("credit_")]
    if not wanted or "output" in names:
        raise InputError(f"{path} must be a result of gigrad explain, with one output, or of gigrad reasons.")
    table = source.read([*dict.fromkeys((*named, *wanted))])
    kept = np.flatnonzero(~np.asarray(table.column(wanted[0]).is_null().to_numpy()))  # rows that had no result
    table = table.take(kept)
    credits = {name.removeprefix("credit_"): _numbers(table.column(name)) for name in wanted}
    rows = list(zip(*(table.column(name).to_pylist() for name in named), strict=True)) if named else []
    better = head.get("provenance", {}).get("reference", {}).get("higher_is_better") if better is None else better
    own = _principal(credits, top, better)
    return Side(path.name, table.num_rows, own, credits, rows, *_data_of(data, named, rows))


def _of_reasons(source: Source, named: tuple[str, ...], data: Any) -> Side:
    """One side of a comparison from a table of reasons: one line for each reason, in the order of applicants."""
    table = source.read([*dict.fromkeys((*named, "rank", "feature"))])
    ranks = table.column("rank").to_pylist()
    features = table.column("feature").to_pylist()
    keys = list(zip(*(table.column(n).to_pylist() for n in named), strict=True)) if named else [()] * len(ranks)
    own: list[list[str]] = []
    ids = []
    for rank, feature, key in zip(ranks, features, keys, strict=True):
        if rank is None:  # a row that had no result
            continue
        if int(rank) == 1:  # the first line of an applicant
            own.append([])
            ids.append(key)
        own[-1].append(feature)
    rows = ids if named else []
    return Side(source.path.name, len(own), list(map(tuple, own)), {}, rows, *_data_of(data, named, rows))


def _data_of(
    data: Any, named: tuple[str, ...], ids: list[tuple[Any, ...]]
) -> tuple[list[tuple[Any, ...]] | None, tuple[str, ...]]:
    """The raw values of the rows with these ids, and the names of their columns, from the table that was explained.

    `named` are the columns of the ids; (None, ()) without a table.
    """
    if data is None:
        return None, ()
    if not named:
        raise InputError("Ids must be given to find the rows of a result in its data; name their columns (--id).")
    table = Source.open(data, "the data").read()
    rest = [name for name in table.column_names if name not in named]
    keys = zip(*(table.column(name).to_pylist() for name in named), strict=True)
    cells = zip(*(table.column(name).to_pylist() for name in rest), strict=True)
    found: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    for key, row in zip(keys, cells, strict=True):
        found[tuple(map(str, key))] = tuple(map(_cell, row))
    absent = next((key for key in ids if tuple(map(str, key)) not in found), None)
    if absent is not None:
        raise InputError(f"{data} must have every row of the result; it has none with the id {absent}.")
    return [found[tuple(map(str, key))] for key in ids], (*rest,)


def _principal(credits: Mapping[str, Array], top: int, better: bool | None) -> list[tuple[str, ...]] | None:
    """The features that count most against each row, worst first; None where the direction of the score is unknown."""
    if better is None or not credits:
        return None
    names = list(credits)
    against = np.column_stack(list(credits.values())) * adverse_sign(better)
    order = np.argsort(-against, axis=1, kind="stable")[:, :top]
    return [tuple(names[j] for j in row if against[i, j] > 0) for i, row in enumerate(order)]


def _cell(value: Any) -> Any:
    return None if is_missing(value) else plain(value)


def _numbers(column: Any) -> Array:
    return np.asarray(column.cast("float64").to_numpy(), dtype=np.float64)
