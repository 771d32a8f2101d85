"""Unknown transformers: their `transform` is called for each column separately, and tabulated or bisected.

    labels    a column for which the transformer stores texts: each is transformed, an unknown and a missing one too
    numbers   every number that the transformer stores may be an edge or a special value; between two of them it must
              be monotone, which is tested at points of every scale; its jumps are then located by bisection. With few
              jumps it is a step function, else a curve, which only trees can follow.

A transformer that combines several columns, whose output is random or depends on other rows, or that is not monotone
between the numbers it stores is refused by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._io.tables import are_missing
from ...errors import UnsupportedModelError
from ...graph import Array
from .functions import Curve
from .pieces import LARGEST, before, between_floats, changes
from .steps import Stairs, Step
from .table import Constant, Feature, Table
from .tabulated import ColumnCall, labels_tabulated, of_module

MOST_STORED = 5_000  # stored numbers of a column; a transformer that keeps its training table has more
MOST_JUMPS = 4_096  # jumps of a step function; a curve has more in the first rounds of bisection
_PER_PIECE = 24

_LADDER = 10.0 ** np.arange(-8.0, 13.0)
_EVERY_SCALE: Array = np.concatenate([-_LADDER[::-1], [0.0], _LADDER, [-1.5, 0.5, 1.5, 2.0, 3.0, 7.0, 42.0]])


def columnwise(transformer: Any, table: Table) -> Table:
    """The transformed table of a transformer each of whose outputs depends on one column."""
    named = getattr(transformer, "feature_names_in_", None)
    names = [f"x{j}" for j in range(len(table))] if named is None else [str(n) for n in named]
    if len(names) != len(table):
        raise UnsupportedModelError(
            f"The step {of_module(transformer)} was fitted on {len(names)} columns and is given {len(table)}."
        )
    known = [_stored(transformer, j, n, len(names)) for j, n in enumerate(names)]
    rows = [{n: _usual(k, i) for n, k in zip(names, known, strict=True)} for i in (0, 1)]
    calls = [ColumnCall(transformer, row, named is not None) for row in rows]
    tried = [_tried(n, k, calls) for n, k in zip(names, known, strict=True)]
    owner = _owners(calls[0], tried, names)
    out: list[Feature] = []
    for k, j in enumerate(owner):
        if j is None:
            out.append(Constant(float(tried[0][1][0, k])))
            continue
        step = _step(calls[0], names[j], known[j], tried[j], k)
        out += table.take([j]).then([step], type(transformer).__name__).features
    return table.become(out)


# ---------------------------------------------------------------- stored values of a transformer


Stored = tuple[list[str], list[float]]  # texts and numbers, for one column


def _stored(transformer: Any, j: int, name: str, columns: int) -> Stored:
    """The texts and numbers that a transformer stores for a column: by name, by position, or for all columns."""
    texts: dict[str, None] = {}
    numbers: set[float] = set()
    for key, value in vars(transformer).items():
        if key in ("feature_names_in_", "n_features_in_"):
            continue
        for atom, own in _atoms(value, j, name, columns, False, 0):
            if isinstance(atom, str):
                if own:
                    texts[atom] = None
            elif np.isfinite(atom):
                numbers.add(float(atom))
    if len(numbers) > MOST_STORED:
        raise UnsupportedModelError(
            f"The step {of_module(transformer)} stores {len(numbers)} numbers for the column {name!r}, too many to "
            "test as edges. Apply it before the pipeline, so that its output columns are the variables."
        )
    return list(texts), sorted(numbers)


def _atoms(value: Any, j: int, name: str, columns: int, own: bool, depth: int) -> Iterator[tuple[Any, bool]]:
    """The texts and numbers inside of a value, each with whether it belongs to this column only."""
    if isinstance(value, str) or (isinstance(value, (int, float, np.number)) and not isinstance(value, bool)):
        yield value, own
        return
    if depth > 6:
        return
    if hasattr(value, "to_dict"):  # pandas
        value = value.to_dict()
    if isinstance(value, Mapping):
        mine = [k for k in value if not own and str(k) == name]
        for k, v in value.items():
            if mine and k not in mine:
                continue
            inside = own or bool(mine)
            if not mine and not are_missing([k])[0]:
                yield from _atoms(k, j, name, columns, inside, depth + 1)
            yield from _atoms(v, j, name, columns, inside, depth + 1)
    elif isinstance(value, (list, tuple, np.ndarray)):
        items = list(value)
        if not own and len(items) == columns and not all(isinstance(v, str) for v in items):
            yield from _atoms(items[j], j, name, columns, True, depth + 1)
            return
        for v in items[: MOST_STORED + 1]:
            yield from _atoms(v, j, name, columns, own, depth + 1)


def _usual(known: Stored, which: int) -> Any:
    texts, _ = known
    return texts[min(which, len(texts) - 1)] if texts else (0.5, 2.0)[which]


# ---------------------------------------------------------------- which column each output comes from


Tried = tuple[Sequence[Any], NDArray[Any]]  # values, and their transforms: (values, outputs)


def _tried(name: str, known: Stored, calls: Sequence[ColumnCall]) -> Tried:
    """Values of one column with their transforms, which must not depend on repetition, other rows or other columns."""
    texts, numbers = known
    call = calls[0]
    values: Any = texts if texts else _points(numbers)
    first = call(name, values)
    if first is None:
        raise call.refuse(
            f"cannot be imported: it refuses the trial rows by which gigrad finds its effect on the column {name!r} "
            f"(such as {values[0]!r}). {_INSTEAD}"
        )
    again = call(name, values[::-1])
    if again is None or again.shape != first.shape or not _same(again[::-1], first).all():
        raise call.refuse(f"cannot be imported: its output for a row is random, or depends on other rows. {_INSTEAD}")
    return values, first


_INSTEAD = "Apply it before the pipeline, so that its output columns are the variables."


def _owners(call: ColumnCall, tried: Sequence[Tried], names: Sequence[str]) -> list[int | None]:
    """The one column that each output depends on; None for an output that is the same for all rows."""
    width = tried[0][1].shape[1]
    found: list[int | None] = []
    other = {n: v[-1] for n, (v, _) in zip(names, tried, strict=True)}
    for k in range(width):
        moved = [j for j, (_, out) in enumerate(tried) if not _same(out[:, k], out[:1, k]).all()]
        if len(moved) > 1:
            raise _mixes(call, [names[j] for j in moved])
        found.append(moved[0] if moved else None)
    for j, (values, out) in enumerate(tried):
        beside = ColumnCall(call.transformer, {**other, names[j]: call.usual[names[j]]}, call.named)(names[j], values)
        mine = [k for k, owner in enumerate(found) if owner == j]
        if beside is not None and not _same(beside[:, mine], out[:, mine]).all():
            raise _mixes(call, [names[j], "others"])
    return found


def _mixes(call: ColumnCall, names: Sequence[str]) -> UnsupportedModelError:
    """The refusal of a function that makes a column from several."""
    return call.refuse(
        f"cannot be imported: it makes a column from several ({', '.join(names[:4])}), so splits on it are not splits "
        f"on one raw column and the credit of a raw column is not defined. {_INSTEAD}"
    )


def _same(a: NDArray[Any], b: NDArray[Any]) -> NDArray[np.bool_]:
    """Where two outputs are equal; missing values are equal to each other."""
    if a.dtype.kind in "fiub" and b.dtype.kind in "fiub":
        return np.asarray((a == b) | (np.isnan(a) & np.isnan(b)))
    shape = np.broadcast_shapes(a.shape, b.shape)
    pairs = zip(*(np.broadcast_to(x, shape).ravel().tolist() for x in (a, b)), strict=True)
    equal = [bool(x == y) or bool(are_missing([x, y]).all()) for x, y in pairs]
    return np.array(equal, bool).reshape(shape)


# ---------------------------------------------------------------- the step of one output


def _step(call: ColumnCall, column: str, known: Stored, tried: Tried, output: int) -> Step | None:
    """One output as a function of a column: a table of labels, a curve, or steps between edges; None if unchanged."""
    texts, numbers = known
    values, out = tried
    if texts:
        return labels_tabulated(call, column, texts, [output])[0]
    answers = out[:, output]
    if any(isinstance(v, str) for v in answers.tolist()):
        raise call.refuse(f"cannot be imported: it makes texts of the numbers in {column!r}. {_INSTEAD}")
    missing = call(column, [np.nan])
    nothing = None if missing is None else float(missing[0, output])
    if _same(np.asarray(answers, np.float64), np.asarray(values)).all() and nothing is not None and np.isnan(nothing):
        return None  # the column as it is

    def function(x: Array) -> Array:
        found = call(column, np.where(np.isnan(x), 0.5, x))
        if found is None:
            raise call.refuse(f"cannot be imported: it refuses some of the trial numbers in {column!r}. {_INSTEAD}")
        return np.asarray(found[:, output], np.float64)

    cuts = _with_missing(function, _cuts(numbers))
    low, high = _pieces(cuts)
    z_low, z_high = _monotone(call, column, function, low, high)
    jumps = _jumps(function, low, high, z_low, z_high)
    if jumps is None:
        return Curve(of_module(call.transformer), function, cuts, missing=nothing)
    edges = np.unique(np.concatenate([cuts, jumps]))
    values_of = function(np.append(edges, LARGEST))
    keep = ~_same(values_of[1:], values_of[:-1])
    return Stairs(edges[keep], values_of[np.append(keep, True)], nothing, _places(edges[keep], numbers))


def _cuts(numbers: Sequence[float]) -> Array:
    """The numbers after which the output may change: each stored number, and the float64 before it."""
    stored = np.asarray(numbers, np.float64)
    return np.unique(np.concatenate([before(stored), stored]))


def _pieces(cuts: Array) -> tuple[Array, Array]:
    return np.concatenate([[-LARGEST], np.nextafter(cuts, np.inf)]), np.concatenate([cuts, [LARGEST]])


def _places(edges: Array, numbers: Sequence[float]) -> Array:
    """The places of edges: the stored number that an edge equals, or is the float64 before."""
    after = np.nextafter(edges, np.inf)
    return np.where(np.isin(after, numbers) & ~np.isin(edges, numbers), after, edges)


def _points(numbers: Sequence[float]) -> Array:
    stored = np.asarray(numbers, np.float64)
    return np.unique(np.concatenate([_EVERY_SCALE, before(stored), stored, np.nextafter(stored, np.inf)]))


def _with_missing(function: Callable[[Array], Array], cuts: Array) -> Array:
    """The cuts, and the numbers after which the function starts or ceases to be defined."""
    gone = changes(lambda x: np.isnan(function(x)).astype(np.float64), cuts, lambda z, which: z > 0.0, 1)
    return np.unique(np.concatenate([cuts, gone.edges]))


def _monotone(
    call: ColumnCall, column: str, function: Callable[[Array], Array], low: Array, high: Array
) -> tuple[Array, Array]:
    """The function at both ends of each piece; an error if it is not monotone in between."""
    inside = between_floats(low, high, _PER_PIECE)
    ladder = np.broadcast_to(_EVERY_SCALE, (len(low), len(_EVERY_SCALE)))
    ladder = np.clip(ladder, low[:, None], high[:, None])
    shares = np.linspace(0.0, 1.0, _PER_PIECE)
    straight = low[:, None] * (1.0 - shares) + high[:, None] * shares
    points = np.sort(np.concatenate([low[:, None], inside, ladder, straight, high[:, None]], axis=1), axis=1)
    points = np.clip(points, low[:, None], high[:, None])
    z = function(points.ravel()).reshape(points.shape)
    for row in z:
        steps = [b - a for a, b in pairwise(row.tolist()) if a != b]
        if any(s > 0 for s in steps) and any(s < 0 for s in steps):
            raise call.refuse(
                f"cannot be imported: it is not monotone in {column!r} between the numbers that it stores, so its "
                f"thresholds cannot be found by bisection. {_INSTEAD}"
            )
    return z[:, 0], z[:, -1]


def _jumps(function: Callable[[Array], Array], low: Array, high: Array, z_low: Array, z_high: Array) -> Array | None:
    """The last numbers before the jumps of a function that is monotone on each piece; None for a curve."""
    found: list[Array] = []
    while len(low):
        open_ = ~_same(z_low, z_high)
        low, high, z_low, z_high = (v[open_] for v in (low, high, z_low, z_high))
        if len(low) + sum(map(len, found)) > MOST_JUMPS:
            return None
        middle = between_floats(low, high, 1)[:, 0]
        done = middle == low
        found.append(low[done])
        low, high, z_low, z_high, middle = (v[~done] for v in (low, high, z_low, z_high, middle))
        z = function(middle) if len(middle) else middle
        low, high = np.concatenate([low, middle]), np.concatenate([middle, high])
        z_low, z_high = np.concatenate([z_low, z]), np.concatenate([z, z_high])
    return np.sort(np.concatenate(found)) if found else np.zeros(0)
