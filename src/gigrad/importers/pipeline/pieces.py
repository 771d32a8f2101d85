"""The numbers at which a test of a function of one number changes its result, found exactly among all float64.

A transformer maps a raw number x to z = F(x) and a tree tests `z <= T`. The equivalent raw thresholds are found with
the transformer's own arithmetic, by bisection over the ordered floats, so no rounding can put a row on the wrong side.
F must be monotone, up or down, on each *piece* `(cut, next cut]`; nothing else is required of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...graph.node import Array

LARGEST = float(np.finfo(np.float64).max)
_CELLS = 4_000_000  # results held at once: bounds the memory of many thresholds on a function of many pieces

Function = Callable[[Array], Array]
Test = Callable[[Array, NDArray[np.intp]], NDArray[np.bool_]]  # (z, which test) -> result, elementwise
Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Changes:
    """For each of several yes-or-no tests of a number: the result at -infinity, and the edges where it flips.

    Test t flips after each of `edges[offsets[t]:offsets[t + 1]]`, in increasing order: an edge is the last number with
    the old result.
    """

    first: Bools  # (tests,)
    offsets: NDArray[np.int64]  # (tests + 1,)
    edges: Array

    def of(self, test: int) -> Array:
        """The edges of one test."""
        return self.edges[self.offsets[test] : self.offsets[test + 1]]

    @property
    def owners(self) -> NDArray[np.intp]:
        """The test of each edge."""
        return np.repeat(np.arange(len(self.first)), np.diff(self.offsets))


def before(x: Array) -> Array:
    """The largest float64 below each x: `v < x` is `v <= before(x)`."""
    return np.nextafter(x, -np.inf)


def changes(function: Function, cuts: Array, test: Test, tests: int) -> Changes:
    """Where each of `tests` tests of `function(x)` flips, for x over all finite float64 numbers.

    Parameters
    ----------
    function : callable
        Elementwise, monotone on every piece between neighbouring `cuts`.
    cuts : (pieces - 1,)
        Finite and strictly increasing; a piece includes its right end.
    test : callable
        `test(z, which)`: the results of the tests `which` for the values z. On a monotone range of z it may flip once.
    """
    low = np.concatenate([[-LARGEST], np.nextafter(cuts, np.inf)])
    high = np.concatenate([cuts, [LARGEST]])
    with np.errstate(all="ignore"):
        z_low, z_high = function(low), function(high)
        block = max(1, _CELLS // len(low))
        parts = [
            _flips(function, test, np.arange(begin, min(begin + block, tests)), low, high, z_low, z_high)
            for begin in range(0, tests, block)
        ]
    first = np.concatenate([p[0] for p in parts]) if parts else np.zeros(0, bool)
    which = np.concatenate([p[1] for p in parts]) if parts else np.zeros(0, np.intp)
    edges = np.concatenate([p[2] for p in parts]) if parts else np.zeros(0)
    order = np.lexsort((edges, which))
    return Changes(first, np.searchsorted(which[order], np.arange(tests + 1)), edges[order])


def _flips(
    function: Function, test: Test, which: NDArray[np.intp], low: Array, high: Array, z_low: Array, z_high: Array
) -> tuple[Bools, NDArray[np.intp], Array]:
    """The first result of the tests `which`, and their flips as (test, edge) in no order."""
    shape = (len(which), len(low))
    grid = np.broadcast_to(which[:, None], shape).ravel()
    at_low = test(np.broadcast_to(z_low, shape).ravel(), grid).reshape(shape)
    at_high = test(np.broadcast_to(z_high, shape).ravel(), grid).reshape(shape)
    between_t, between_p = np.nonzero(at_high[:, :-1] != at_low[:, 1:])
    inside_t, inside_p = np.nonzero(at_low != at_high)
    found = _bisect(function, test, which[inside_t], low[inside_p], high[inside_p], at_low[inside_t, inside_p])
    return (
        at_low[:, 0],
        np.concatenate([which[between_t], which[inside_t]]),
        np.concatenate([high[between_p], found]),
    )


def stretch(
    function: Function, cuts: Array, inside: Test, which: NDArray[np.intp], edges: Array
) -> tuple[Array, Array, Bools]:
    """The interval of numbers at each edge whose function values are all `inside`.

    Parameters
    ----------
    inside : callable
        `inside(z, which)`: whether z belongs to the interval `which`.
    which, edges : (n,)
        Which test, and the edge: the interval holds it, or the number after it, or both.

    Returns
    -------
    low, high : (n,)
        The least and the largest number of the interval.
    found : (n,)
        Whether there is one: else `low` and `high` are the edge and the number after it.
    """
    after = np.nextafter(edges, np.inf)
    with np.errstate(all="ignore"):
        here, there = inside(function(edges), which), inside(function(after), which)
        low, high = np.where(here | ~there, edges, after), np.where(there | ~here, after, edges)
        low[here] = _reach(function, cuts, inside, which[here], low[here], up=False)
        high[there] = _reach(function, cuts, inside, which[there], high[there], up=True)
    return low, high, here | there


def _reach(function: Function, cuts: Array, inside: Test, which: NDArray[np.intp], x: Array, up: bool) -> Array:
    """The last number from x upwards, or downwards, up to which all numbers are `inside`, as x is."""
    ends = np.concatenate([cuts, [LARGEST]]) if up else np.concatenate([[-LARGEST], np.nextafter(cuts, np.inf)])
    out, going = x.copy(), np.arange(len(x))
    while len(going):
        # a function that is monotone on a piece and inside at both ends is inside everywhere on it
        at, mine = out[going], which[going]
        end = ends[np.searchsorted(cuts, at)]
        whole = inside(function(end), mine)
        part, there = going[~whole], at[~whole]
        if up:
            out[part] = _bisect(function, inside, mine[~whole], there, end[~whole], np.ones(len(part), bool))
        else:
            outside = _bisect(function, inside, mine[~whole], end[~whole], there, np.zeros(len(part), bool))
            out[part] = np.nextafter(outside, np.inf)
        out[going[whole]] = end[whole]
        beyond = np.nextafter(end, np.inf if up else -np.inf)
        more = whole & np.isfinite(beyond) & inside(function(beyond), mine)
        going = going[more]
        out[going] = beyond[more]
    return out


def _bisect(function: Function, test: Test, which: NDArray[np.intp], low: Array, high: Array, answer: Bools) -> Array:
    """The last float in [low, high) at which each test still has the result `answer`, which it has not at `high`."""
    a, b = _keys(low), _keys(high)
    while True:
        # the two keys may have opposite signs and their difference overflow, so halve before adding
        middle = (a >> 1) + (b >> 1) + (a & b & 1)
        open_ = middle > a
        if not open_.any():
            return _floats(a)
        same = test(function(_floats(middle)), which) == answer
        a = np.where(open_ & same, middle, a)
        b = np.where(open_ & ~same, middle, b)


def between_floats(low: Array, high: Array, count: int) -> Array:
    """`count` numbers between each pair, evenly spread among the floats, (n, count); low where there are none."""
    a, b = _keys(low), _keys(high)
    part = np.arange(1, count + 1)
    # with Python's integers: the difference of two keys may exceed 64 bits
    keys = [[x + (y - x) * int(p) // (count + 1) for p in part] for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    return _floats(np.array(keys, np.int64).reshape(len(a), count))


def _keys(x: Array) -> NDArray[np.int64]:
    """Integers in the order of the floats, one apart for neighbours; 0 for both zeros."""
    bits = np.ascontiguousarray(x, np.float64).view(np.int64)
    return np.where(bits >= 0, bits, np.iinfo(np.int64).min - bits)


def _floats(keys: NDArray[np.int64]) -> Array:
    bits = np.where(keys >= 0, keys, np.iinfo(np.int64).min - keys)
    return np.ascontiguousarray(bits).view(np.float64)
