"""The native core: walks over trees, behind plain arrays.

Everything here is exact in float64 and follows one routing rule (`side.hpp`): a numeric split sends `x <= threshold`
left, a category split sends the codes of its set left, NaN takes the missing side. A split is *crossed* by a pair
(start, end) that lies on different sides of it, at time `(place - start) / (end - start)` clipped to [0, 1] and rounded
to a multiple of 2^-30, or at one half where either value is not finite, the split is categorical or its place is NaN.
Splits of float32 read starts and ends as the shortest decimals of their float32 forms. Equal times are one corner.

Results are bitwise the same for any number of threads; the GIL is released; nothing is shared between calls.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import _native
from .heads import PROGRAM_FUNCTIONS as PROGRAM_FUNCTIONS
from .heads import HeadMoments as HeadMoments
from .heads import Program as Program
from .heads import head_moments as head_moments
from .heads import linear_credits as linear_credits

Array = NDArray[np.float64]

DEFAULT_TARGET: float = _native.DEFAULT_TARGET
"""How far off the credits of sampled corners may be, as a part of the row's largest credit."""

TRACED = 64
"""Groups of orders that are drawn for a large corner of a path that is traced."""

Forest = _native.Forest
"""The checked native form of a sum of trees; the constructor raises ValueError for trees that cannot be walked."""


LINK_FUNCTIONS = frozenset(_native.link_functions())
"""The functions of `graph.functions.FUNCTIONS` that a link may use."""


class Jumps(NamedTuple):
    """What the trees do along each path, sorted by time within each pair.

    Pair `i` owns entries `offsets[i]:offsets[i + 1]`, one for every (corner, variable): at `time` the trees' outputs
    change by `delta` on account of `variable`. Where several variables share a corner (equal `time`, to the bit), each
    `delta` is that variable's Shapley share of the change, so that the deltas of a corner always sum to its jump.
    """

    offsets: NDArray[np.int64]  # (pairs + 1,)
    time: Array  # (entries,)
    variable: NDArray[np.int32]  # (entries,)
    delta: Array  # (entries, outputs)


class Stage(NamedTuple):
    """One step of a link: the functions that stand between a sum of trees and the score, applied in order.

    `name` and its numbers `a`, `b`:

    - "affine": weight (out, in) and bias (out,); any number of outputs
    - "piecewise_linear": knots x and y, flat beyond the first and the last
    - "softmax": over the outputs
    - the names in `LINK_FUNCTIONS`, on every number; those with a parameter ("elu", "box_cox"...) take it as `a`
    """

    name: str
    a: Array = np.zeros(0)
    b: Array = np.zeros(0)


class LargeCorners(NamedTuple):
    """Corners of so many variables that not all coalitions were asked, in order of end, start and time; each (n,)."""

    end: NDArray[np.int64]
    start: NDArray[np.int64]
    time: Array
    players: NDArray[np.int64]


class Linked(NamedTuple):
    """Credits (n, columns, link outputs), and the corners whose jumps are not in them."""

    values: Array
    large: LargeCorners


class SampledCorners(NamedTuple):
    """Corners to be sampled, in order of `row`, where their credit goes; all (n,).

    A corner is that at `time` of the path from `starts[start]` to `ends[end]`; it counts `weight`, and so many `groups`
    of orders are drawn from `seed`.
    """

    row: NDArray[np.int64]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    time: Array
    weight: Array
    groups: NDArray[np.int64]
    seed: NDArray[np.uint64]


def threads(n_threads: int | None) -> int:
    """The number of threads to use: what was asked for, or every core this process may run on."""
    if n_threads is not None:
        return n_threads
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def shortest_decimals(low: Array, high: Array) -> Array:
    """The decimal of the fewest digits in each interval [low, high], the nearest to its middle; all finite."""
    return _native.shortest_decimals(_rows(low), _rows(high))


def decimals_of_float32(x: Array) -> Array:
    """For each number (n,) the shortest decimal with the same float32 form; infinities and NaN as they are."""
    return _native.decimals_of_float32(_rows(x))


def simd_choices() -> list[str]:
    """The walks this processor can run, the fastest first.

    "avx512" and "avx2" take many pairs through a tree at once; "lanes" is the same in plain C++, for tests; "portable"
    walks node by node in float64 everywhere. They differ by rounding alone.
    """
    return _native.simd_choices()


_watcher: ContextVar[Callable[[float], object] | None] = ContextVar("watcher", default=None)


@contextmanager
def watched(callback: Callable[[float], object] | None) -> Iterator[None]:
    """Call `callback(done)` every now and then while native calls of this thread run: the part of the call, 0 to 1.

    An exception that it raises ends the call. None watches nothing.
    """
    before = _watcher.get()
    token = _watcher.set(callback)
    _native.watch(callback)
    try:
        yield
    finally:
        _watcher.reset(token)
        _native.watch(before)


def watcher() -> Callable[[float], object] | None:
    """What `watched` has set, for work in Python that says itself how far it is."""
    return _watcher.get()


def get_simd() -> str:
    """The walk that is used."""
    return _native.get_simd()


def set_simd(name: str) -> None:
    """Use another walk from now on, in this process; ValueError for one that this processor cannot run."""
    _native.set_simd(name)


def predict(forest: Any, x: Array) -> Array:
    """`base + sum of trees`, (n, outputs), for rows x (n, columns)."""
    return _native.predict(forest, _rows(x))


def credits(forest: Any, starts: Array, weights: Array, ends: Array, n_threads: int | None = None) -> Array:
    """Mean credit over weighted starts: (ends, columns, outputs). Memory does not grow with the number of starts."""
    return _native.credits(forest, _rows(starts), _rows(weights), _rows(ends), threads(n_threads))


def credits_pairs(forest: Any, starts: Array, ends: Array, n_threads: int | None = None) -> Array:
    """Credit of pair i, from starts[i] to ends[i]: (pairs, columns, outputs)."""
    return _native.credits_pairs(forest, _rows(starts), _rows(ends), threads(n_threads))


def linked_credits(
    forest: Any,
    link: Sequence[Stage],
    starts: Array,
    weights: Array,
    ends: Array,
    n_threads: int | None = None,
    *,
    target: float = DEFAULT_TARGET,
) -> Linked:
    """Mean credit over weighted starts for `link(sum of trees)`, with the corners across trees.

    Corners at which few variables cross are enumerated; `corner_policy.hpp` says which. The others are left out and
    listed. A row's answer does not depend on the other rows.
    """
    values, end, start, time, players = _native.linked_credits(
        forest, _stages(link), _rows(starts), _rows(weights), _rows(ends), target, threads(n_threads)
    )
    return Linked(values, LargeCorners(end, start, time, players))


def linked_credits_pairs(
    forest: Any,
    link: Sequence[Stage],
    starts: Array,
    ends: Array,
    n_threads: int | None = None,
    *,
    target: float = DEFAULT_TARGET,
) -> Linked:
    """Credit of pair i, from starts[i] to ends[i], for `link(sum of trees)`; see `linked_credits`."""
    values, end, start, time, players = _native.linked_credits_pairs(
        forest, _stages(link), _rows(starts), _rows(ends), target, threads(n_threads)
    )
    return Linked(values, LargeCorners(end, start, time, players))


def sample_corners(
    forest: Any,
    link: Sequence[Stage],
    starts: Array,
    ends: Array,
    corners: SampledCorners,
    rows: int,
    n_threads: int | None = None,
) -> Array:
    """Sampled credit of large corners of `link(sum of trees)`, summed by row: (4, rows, columns, link outputs).

    The sums are those of `engine.sampling.Sums`. The strongest players are enumerated, the others join in random
    orders (`corner_orders.hpp`).
    """
    row, start, end, groups = (
        np.ascontiguousarray(x, np.int64) for x in (corners.row, corners.start, corners.end, corners.groups)
    )
    return _native.sample_corners(
        forest, _stages(link), _rows(starts), _rows(ends), row, start, end, _rows(corners.time), _rows(corners.weight),
        groups, corners.seed, rows, threads(n_threads),
    )  # fmt: skip


def corner_credits(
    forest: Any,
    link: Sequence[Stage],
    starts: Array,
    ends: Array,
    pair: NDArray[np.int64],
    time: Array,
    n_threads: int | None = None,
) -> Array:
    """What the variables that cross at given corners earn there for `link(sum of trees)`: (corners, columns, outputs).

    Corner i is the one at `time[i]` of pair `pair[i]`. Those of more than 16 variables are sampled, with `TRACED`
    groups of orders each: good enough to be drawn.
    """
    pair = np.ascontiguousarray(pair, np.int64)
    values, large = _native.corner_credits(
        forest, _stages(link), _rows(starts), _rows(ends), pair, _rows(time), threads(n_threads)
    )
    which = np.flatnonzero(large)
    if len(which):
        n = np.arange(len(which))
        some = SampledCorners(
            n, pair[which], pair[which], time[which], np.ones(len(n)), np.full(len(n), TRACED), which.astype(np.uint64)
        )
        values[which] = sample_corners(forest, link, starts, ends, some, len(n), n_threads)[0]
    return values


def jumps(forest: Any, starts: Array, ends: Array, n_threads: int | None = None) -> Jumps:
    """Every change of the trees' outputs along the path of each pair (starts[i], ends[i]), in order of time."""
    return Jumps(*_native.jumps(forest, _rows(starts), _rows(ends), threads(n_threads)))


def cells(
    forest: Any, starts: Array, ends: Array, pair: Any, time: Array, past: Any, n_threads: int | None = None
) -> Array:
    """The trees' outputs in cells around corners: (queries, outputs).

    Query q stands on the path of pair `pair[q]` at the corner at `time[q]`. Splits crossed earlier are on the end's
    side, later ones on the start's side; splits of variable j crossed at `time[q]` are on the end's side
    where `past[q, j]` is set, on the start's side elsewhere.
    """
    return _native.cells(
        forest, _rows(starts), _rows(ends), np.ascontiguousarray(pair, np.int64), _rows(time),
        np.ascontiguousarray(past, np.uint8), threads(n_threads),
    )  # fmt: skip


def tanh(x: Array) -> Array:
    """tanh of every number of an array of any shape, within two units in the last place."""
    return _native.tanh(_rows(x).ravel()).reshape(np.shape(x))


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x)) of every number of an array of any shape, within two units in the last place."""
    return _native.sigmoid(_rows(x).ravel()).reshape(np.shape(x))


def series(coefficients: Array, panel: NDArray[np.int64], u: Array) -> Array:
    """Legendre series (panels, degrees, columns) at points u (n,), in -1..1, of the given panels (n,): (n, columns)."""
    return _native.series(_rows(coefficients), panel, _rows(u))


def point_moments(panel: NDArray[np.int64], u: Array, mass: Array, panels: int, degrees: int) -> Array:
    """Sums over points of `mass` (n, columns) times P_0, P_1, ... at u (n,): (panels, degrees, columns)."""
    return _native.point_moments(panel, _rows(u), _rows(mass), panels, degrees)


def segment_moments(
    panel: NDArray[np.int64], low: Array, high: Array, density: Array, panels: int, degrees: int
) -> Array:
    """Sums over segments of `density` (n, columns) times the integrals of P_0, P_1, ... over them.

    Segments reach from `low` to `high` (n,) in their panels' own coordinate. Gives (panels, degrees, columns).
    """
    return _native.segment_moments(panel, _rows(low), _rows(high), _rows(density), panels, degrees)


def between_rows(rows: Array, at: NDArray[np.int64], part: Array) -> Array:
    """Rows in between: row at[i] and the one after it, mixed `part[i]` of the way, (n, columns)."""
    return _native.between_rows(_rows(rows), at, _rows(part))


def bend_rows(
    coarse: Array,
    at: NDArray[np.int64],
    part: Array,
    time: Array,
    point: NDArray[np.int64],
    bend: Array,
    unit: NDArray[np.int64],
    rows: Array,
) -> Array:
    """A layer over units with kinks, at the points of a grid, (n, columns), from its values at a coarser one's.

    Point i lies `part[i]` of the way from coarse point `at[i]` to the next, at `time[i]`; part 0 is the coarse point
    itself. At point `point[k]`, in order, the layer's slope changes by `bend[k]` times row `unit[k]` of `rows`. This
    costs a few additions a number where the layer's matrix would cost a product with all units.
    """
    return _native.bend_rows(_rows(coarse), at, _rows(part), _rows(time), point, _rows(bend), unit, _rows(rows))


def suffix_products(
    sums: Array, begin: NDArray[np.int64], end: NDArray[np.int64], unit: NDArray[np.int64], rows: Array
) -> Array:
    """Row `unit[k]` of `rows` times the sum of rows `begin[k]` .. `end[k] - 1` of `sums`; `begin` in order."""
    return _native.suffix_products(_rows(sums), begin, end, unit, _rows(rows))


def sum_groups(rows: Array, first: NDArray[np.int64]) -> Array:
    """Sums of the rows first[g] .. first[g + 1] - 1, the last group to the end; no group is empty."""
    return _native.sum_groups(_rows(rows), first)


def add_rows(table: Array, row: NDArray[np.int64], values: Array) -> None:
    """`table[row] += values` in place, (n, columns), where rows may come more than once; tables must be contiguous."""
    _native.add_rows(table, row, _rows(values))


def passed_rows(rows: Array, left: NDArray[np.int64], level: float) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where a column passes `level` from row left[i] to the next: every such i and column, in order."""
    return _native.passed_rows(_rows(rows), left, level)


def largest_steps(rows: Array, left: NDArray[np.int64]) -> Array:
    """The largest change of any column from row left[i] to the next, (n,)."""
    return _native.largest_steps(_rows(rows), left)


UNITS = frozenset({"tanh", "sigmoid"})
"""The units that `units_at` knows."""


def units_at(name: str, rows: Array, at: NDArray[np.int64], part: Array, weight: Array) -> tuple[Array, Array]:
    """Units over a line, `name` of what `between_rows` gives: (n, columns), and products with `weight`, (n, w)."""
    return _native.units_at(name, _rows(rows), at, _rows(part), _rows(weight))


def units_back(
    name: str,
    units: Array,
    cotangent: Array,
    weight: Array,
    node_weight: Array,
    top: Array,
    rows: Array,
    at: NDArray[np.int64],
    share: Array,
) -> tuple[Array, Array, Array]:
    """Pull derivatives by the products that `units_at` gives back to the line, for panels of several nodes each.

    Parameters
    ----------
    units, cotangent : (panels * nodes, columns), (panels * nodes, w)
        The units, and the derivatives of a score by their products with `weight` (w, columns).
    node_weight : (panels * nodes,)
    top : (degrees, nodes)
        Takes values at the nodes of a panel to some coefficients.
    rows, at, share : (n, columns), (panels,), (panels,)
        On panel p the line moves by `share[p] * (rows[at[p] + 1] - rows[at[p]])`.

    Returns
    -------
    line : (panels, columns)
        The sum of the derivatives by the line over the nodes of each panel, each times its weight.
    sum, squares : (degrees, panels)
        The coefficients of those derivatives times the line's moves: their sum, and the sum of their squares.
    """
    return _native.units_back(
        name,
        _rows(units),
        _rows(cotangent),
        _rows(weight),
        _rows(node_weight),
        _rows(top),
        _rows(rows),
        at,
        _rows(share),
    )


def _rows(x: Array) -> Array:
    return np.ascontiguousarray(x, dtype=np.float64)


def _stages(link: Sequence[Stage]) -> list[tuple[str, Array, Array]]:
    return [(stage.name, _rows(stage.a).ravel(), _rows(stage.b).ravel()) for stage in link]
