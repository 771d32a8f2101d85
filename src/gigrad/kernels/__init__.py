"""The native core: walks over trees, behind plain arrays.

Everything here is exact in float64 and follows one routing rule (`side.hpp`): a numeric split sends `x <= threshold`
left, a category split sends the codes of its set left, NaN takes the missing side. A split is *crossed* by a pair
(start, end) that lies on different sides of it, at time `(place - start) / (end - start)` clipped to [0, 1] and rounded
to a multiple of 2^-30, or at one half where either value is not finite, the split is categorical or its place is NaN.
Splits of float32 read starts and ends as the shortest decimals of their float32 forms. Equal times are one corner.

Results are bitwise the same for any number of threads; the GIL is released; nothing is shared between calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import _native
from .arrays import Array as Array
from .arrays import numbers as _rows
from .arrays import threads as threads
from .curves import CurveCredit as CurveCredit
from .curves import CurveValues as CurveValues
from .curves import curve_credit as curve_credit
from .curves import curve_values as curve_values
from .curves import weigh_nodes as weigh_nodes
from .heads import PROGRAM_FUNCTIONS as PROGRAM_FUNCTIONS
from .heads import PROGRAM_STAGES as PROGRAM_STAGES
from .heads import HeadMoments as HeadMoments
from .heads import LegCorners as LegCorners
from .heads import Program as Program
from .heads import head_along_lines as head_along_lines
from .heads import head_along_net as head_along_net
from .heads import head_moments as head_moments
from .heads import linear_credits as linear_credits
from .lines import IntervalKinks as IntervalKinks
from .lines import LineNet as LineNet
from .lines import TracedLegs as TracedLegs
from .lines import UnitLayer as UnitLayer
from .lines import interval_kinks as interval_kinks
from .lines import late_products as late_products
from .lines import later_rows as later_rows
from .lines import middle_slopes as middle_slopes
from .lines import piece_corners as piece_corners
from .lines import trace_lines as trace_lines
from .lines import units_between as units_between
from .links import DEFAULT_TARGET as DEFAULT_TARGET
from .links import LINK_FUNCTIONS as LINK_FUNCTIONS
from .links import LINK_STAGES as LINK_STAGES
from .links import LargeCorners as LargeCorners
from .links import Linked as Linked
from .links import SampledCorners as SampledCorners
from .links import Stage as Stage
from .links import corner_credits as corner_credits
from .links import linked_credits as linked_credits
from .links import linked_credits_pairs as linked_credits_pairs
from .links import linked_credits_singly as linked_credits_singly
from .links import sample_corners as sample_corners

Forest = _native.Forest
"""The checked native form of a sum of trees; the constructor raises ValueError for trees that cannot be walked."""


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
    """Call `callback(done)` regularly while native calls of this thread run; `done` is the completed part, 0 to 1.

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
    """The callback that `watched` has set, for work in Python that reports its own progress."""
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


def power(base: Array, exponent: Array, single: bool) -> Array:
    """base ** exponent as the C library computes it, in float32 if `single`; two arrays of one shape.

    NumPy has functions of its own on processors with AVX-512: 21 % of the powers of random float32 numbers differ.
    """
    return _native.power(_rows(base).ravel(), _rows(exponent).ravel(), single).reshape(np.shape(base))


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
    """Interpolated rows: `part[i]` of the way from row at[i] to the next, (n, columns)."""
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
    """The outputs of a layer over units with kinks on a fine grid, (n, columns), from those on a coarser grid.

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


def add_grouped(table: Array, first: NDArray[np.int64], column: NDArray[np.int64], values: Array) -> None:
    """`table[g, column[i]] += values[i]` for the entries i = first[g] .. first[g + 1] - 1 of every row g, in place.

    Of k outputs (n, k), column j has the numbers k j .. k j + k - 1 of a row.
    """
    _native.add_grouped(table, first, column, _rows(values))


def passed_rows(rows: Array, left: NDArray[np.int64], level: float) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where a column passes `level` from row left[i] to the next: every such i and column, in order."""
    return _native.passed_rows(_rows(rows), left, level)


def largest_steps(rows: Array, left: NDArray[np.int64]) -> Array:
    """The largest change of any column from row left[i] to the next, (n,)."""
    return _native.largest_steps(_rows(rows), left)


def speed_parts(rows: Array, to_coefficients: Array) -> tuple[Array, Array, Array, Array]:
    """How fast columns move a curve on panels: sizes of the coefficients of its speed's parts, column by column.

    Parameters
    ----------
    rows : (panels, nodes, columns)
        The parts at the nodes.
    to_coefficients : (nodes, nodes)
        See `engine.quadrature.Rule`.

    Returns
    -------
    last : (up to 4, panels, columns)
        Sizes of the highest coefficients.
    first : (panels,)
        The size of the largest coefficient of degree 0.
    above : (nodes, panels)
        For each degree the largest sum over a part's coefficients of that degree or more, by size.
    total : (nodes, panels)
        The coefficients of the sum of all parts.
    """
    last, first, above, total = _native.speed_parts(_rows(rows), _rows(to_coefficients))
    return last, first, above, total
