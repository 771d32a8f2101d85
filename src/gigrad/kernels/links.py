"""Links over a sum of trees: the functions between the trees and the score, and credits of their composition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import _native
from .arrays import Array, Ints, integers, numbers, threads

DEFAULT_TARGET: float = _native.DEFAULT_TARGET
"""How far off the credits of sampled corners may be, as a part of the row's largest credit."""

TRACED = 64
"""Groups of orders that are drawn for a large corner of a path that is traced."""

LINK_FUNCTIONS = frozenset(_native.link_functions())
"""The functions of `graph.functions.FUNCTIONS` that a link may use."""

LINK_STAGES = LINK_FUNCTIONS | {"affine", "piecewise_linear", "softmax", "select"}
"""The stages that a link may have."""


class Stage(NamedTuple):
    """One node of a model in the words of the native core: of a link over trees, or of the program of a head.

    `name` and its numbers `a`, `b`:

    - "affine": weight (out, in) and bias (out,); any number of outputs
    - "piecewise_linear": knots x and y, flat beyond the first and the last
    - "softmax", "log_softmax": over the outputs
    - "select": the columns, in order, and how many there are to select from
    - "concat", "sum", "product": of several nodes
    - a name of `graph.functions.FUNCTIONS`, on every number, with its parameter as `a`

    `LINK_STAGES` and `PROGRAM_STAGES` say which of them a link and a program may have.
    """

    name: str
    a: Array = np.zeros(0)
    b: Array = np.zeros(0)


class LargeCorners(NamedTuple):
    """Corners of so many variables that not all coalitions are evaluated, by end, start and time; each (n,)."""

    end: Ints
    start: Ints
    time: Array
    players: Ints


class Linked(NamedTuple):
    """Credits (n, columns, link outputs), and the corners whose jumps are not in them.

    `found` is what the walk keeps of these corners for `sample_corners`.
    """

    values: Array
    large: LargeCorners
    found: Any


class SampledCorners(NamedTuple):
    """Corners to be sampled, in order of `row`, where their credit goes; all (n,).

    A corner is that at `time` of the path from `starts[start]` to `ends[end]`; it counts `weight`, and so many `groups`
    of orders are drawn from `seed`; with 0 all coalitions are evaluated. With `allowed` (n,) and `scale` (n, outputs)
    more groups may be drawn, until the standard error is within `allowed` times the corner's largest credit, or times
    `scale`. With `found` of a `Linked` corner i is number `number[i]` of its large corners: the same answer up to
    rounding, usually without another walk through the trees.
    """

    row: Ints
    start: Ints
    end: Ints
    time: Array
    weight: Array
    groups: Ints
    seed: NDArray[np.uint64]
    allowed: Array = np.zeros(0)
    scale: Array = np.zeros((0, 0))
    found: Any = None
    number: Ints = np.zeros(0, np.int64)


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
    values, end, start, time, players, found = _native.linked_credits(
        forest, _stages(link), numbers(starts), numbers(weights), numbers(ends), target, threads(n_threads)
    )
    return Linked(values, LargeCorners(end, start, time, players), found)


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
    values, end, start, time, players, found = _native.linked_credits_pairs(
        forest, _stages(link), numbers(starts), numbers(ends), target, threads(n_threads)
    )
    return Linked(values, LargeCorners(end, start, time, players), found)


def linked_credits_singly(
    forest: Any,
    link: Sequence[Stage],
    starts: Array,
    ends: Array,
    n_threads: int | None = None,
    *,
    target: float = DEFAULT_TARGET,
) -> tuple[Linked, Array]:
    """Credit of every start with every end by itself for `link(sum of trees)`, and for the sum of trees, from one walk.

    Both (ends * starts, columns, outputs), all starts of the first end first. Corners that are left out have the number
    of their pair for start and end.
    """
    sums, (values, end, start, time, players, found) = _native.linked_credits_singly(
        forest, _stages(link), numbers(starts), numbers(ends), target, threads(n_threads)
    )
    return Linked(values, LargeCorners(end, start, time, players), found), sums


def sample_corners(
    forest: Any,
    link: Sequence[Stage],
    starts: Array,
    ends: Array,
    corners: SampledCorners,
    rows: int,
    n_threads: int | None = None,
) -> tuple[Array, Array, Array, Array, Array, Array, Array, Ints]:
    """Sampled credit of large corners of `link(sum of trees)`, summed by row: the fields of `engine.sampling.Sums`.

    The strongest players are enumerated, the others join in random orders (`corner_orders.hpp`).
    """
    row, start, end, groups = (integers(x) for x in (corners.row, corners.start, corners.end, corners.groups))
    sums, common, spread, drawn = _native.sample_corners(
        forest, _stages(link), numbers(starts), numbers(ends), row, start, end, numbers(corners.time),
        numbers(corners.weight), groups, corners.seed, numbers(corners.allowed), numbers(corners.scale), corners.found,
        integers(corners.number), rows, threads(n_threads),
    )  # fmt: skip
    return sums[0], sums[1], sums[2], sums[3], sums[4], common, spread, drawn


def corner_credits(
    forest: Any,
    link: Sequence[Stage],
    starts: Array,
    ends: Array,
    pair: Ints,
    time: Array,
    n_threads: int | None = None,
) -> Array:
    """What the variables that cross at given corners earn there for `link(sum of trees)`: (corners, columns, outputs).

    Corner i is the one at `time[i]` of pair `pair[i]`. Those of more than 16 variables are sampled, with `TRACED`
    groups of orders each: good enough to be drawn.
    """
    pair = integers(pair)
    values: Array
    values, large = _native.corner_credits(
        forest, _stages(link), numbers(starts), numbers(ends), pair, numbers(time), threads(n_threads)
    )
    which = np.flatnonzero(large)
    if len(which):
        n = np.arange(len(which))
        some = SampledCorners(
            n, pair[which], pair[which], time[which], np.ones(len(n)), np.full(len(n), TRACED), which.astype(np.uint64)
        )
        drawn, settled, *_ = sample_corners(forest, link, starts, ends, some, len(n), n_threads)
        values[which] = drawn + settled
    return values


def _stages(link: Sequence[Stage]) -> list[tuple[str, Array, Array]]:
    return [(s.name, numbers(s.a).ravel(), numbers(s.b).ravel()) for s in map(_as_affine, link)]


def _as_affine(stage: Stage) -> Stage:
    """A selection of columns as the matrix that selects them, the form that links have for it."""
    if stage.name != "select":
        return stage
    return Stage("affine", np.eye(int(stage.b[0]))[stage.a.astype(np.int64)], np.zeros(len(stage.a)))
