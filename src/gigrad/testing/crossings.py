"""The definition for trees over smooth scores, by brute force: crossings of thresholds by scores, and their credit.

The path is sampled densely, and wherever two neighbours lie on different sides of a threshold the crossing is bisected.
The jump there is credited along the score's gradient. Nothing of this is shared with the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..graph import Array, Graph, Input, Node, Smooth, TreeEnsemble, evaluate, needed, topological
from ..graph.rewire import columns_of
from .path import Path, lowered
from .times import UNITS

SAMPLES = 4096
"""The number of sample times on a whole path."""


NOTHING = 1e-12
"""Times below this, in units of 2^-30, count as the start: a product of two columns grows from zero as a square."""


@dataclass(frozen=True)
class Crossing:
    """Columns of scores that pass thresholds at one time, in units: their values just before and just after it.

    `inside` is a time between the same two corners, at which no column jumps.
    """

    time: float
    inside: float
    before: dict[tuple[Node, int], float]
    after: dict[tuple[Node, int], float]


def has_gradient(node: Node, source: Input) -> bool:
    """Whether the rows reach `node` by smooth steps alone."""
    if node is source:
        return True
    return isinstance(node, Smooth) and any(has_gradient(p, source) for p in node.parents)


def gradient(
    node: Node,
    source: Input,
    x: Array,
    output: int,
    values: Mapping[Node, Array] | None = None,
    order: Sequence[Node] | None = None,
) -> Array:
    """d node[output] / d x, (n, p), by reverse accumulation; the gradient of trees is 0.

    `values` are those of all nodes, by default at the rows x; `order` are the nodes above the source that `node` needs,
    parents first.
    """
    values = evaluate((node,), {source: x}) if values is None else values
    cotangents: dict[Node, Array] = {node: np.zeros_like(values[node])}
    cotangents[node][:, output] = 1.0
    for current in reversed(needed((node,), {source}) if order is None else order):
        if current in cotangents and isinstance(current, Smooth):
            back = current.pullback(cotangents[current], *(values[p] for p in current.parents))
            for parent, part in zip(current.parents, back, strict=True):
                cotangents[parent] = cotangents[parent] + part if parent in cotangents else part
    return cotangents.get(source, np.zeros_like(x))


def score_thresholds(graph: Graph, node: Node) -> dict[tuple[Node, int], Array]:
    """The thresholds of every column of a smooth score that trees below `node` read, by (score, column)."""
    found: dict[tuple[Node, int], set[float]] = {}
    for base, column, edge in numeric_splits(node):
        if base is not graph.input and has_gradient(base, graph.input):
            found.setdefault((base, column), set()).add(edge)
    return {key: np.sort(np.array(list(edges))) for key, edges in found.items()}


def numeric_splits(node: Node) -> Iterator[tuple[Node, int, float]]:
    """Every numeric split of the trees below `node`: the node that it reads, its column there, and the threshold."""
    for tree in topological(node):
        if isinstance(tree, TreeEnsemble):
            read = columns_of(tree.source)
            numeric = (tree.feature >= 0) & (tree.category_set < 0)
            for feature, edge in zip(tree.feature[numeric].tolist(), tree.threshold[numeric].tolist(), strict=True):
                yield *read[feature], edge


def reads_scores(graph: Graph, node: Node) -> bool:
    """Whether trees below `node` read smooth scores of other models."""
    return bool(score_thresholds(graph, node))


def find_crossings(node: Node, path: Path, corners: list[int]) -> Iterator[Crossing]:
    """Where scores pass thresholds of trees, in order of time; `corners` are the times of all other jumps."""
    table = score_thresholds(path.graph, node)
    if any(reads_scores(path.graph, base) for base, _ in table):
        raise InputError(
            "brute_force covers trees over smooth scores, but not scores that read trees over smooth scores."
        )
    for low, high in pairwise(sorted({0, *corners, UNITS})):
        found: list[tuple[float, tuple[Node, int], float, float]] = []
        times = _samples(low, high)
        for (base, column), edges in table.items():

            def ask(t: Array, key: tuple[Node, int] = (base, column), inside: float = 0.5 * (low + high)) -> Array:
                return path.values(key[0], path.between(t, inside))[key[0]][:, key[1]]

            met = np.isin(times, corners)
            found += [(t, (base, column), old, new) for t, old, new in _passed(ask, times, edges, met)]
        found.sort(key=lambda crossing: crossing[0])
        for _, together in groupby(found, key=lambda crossing: round(crossing[0])):
            tied = list(together)
            before: dict[tuple[Node, int], float] = {}
            after: dict[tuple[Node, int], float] = {}
            for _, key, old, new in tied:
                before.setdefault(key, old)
                after[key] = new
            yield Crossing(tied[0][0], 0.5 * (low + high), before, after)


def _samples(low: int, high: int) -> Array:
    """Sample times between two corners."""
    return np.linspace(low, high, max(64, int(SAMPLES * (high - low) / UNITS)) + 1)


def _passed(
    ask: Callable[[Array], Array], times: Array, edges: Array, met: NDArray[np.bool_]
) -> list[tuple[float, float, float]]:
    """Time and the values on either side of every edge that a score passes, in the order of the path.

    Where `met` is set, at corners, an edge that the score equals up to rounding does not count as passed.
    """
    values = ask(times)
    values = np.where(met, lowered(values, np.full(len(values), np.abs(values).max())), values)
    rank = np.searchsorted(edges, values, side="left")  # how many edges lie below: a value at an edge is not past it
    out: list[tuple[float, float, float]] = []
    for i in np.nonzero(np.diff(rank))[0].tolist():
        rising = rank[i + 1] > rank[i]
        between = range(rank[i], rank[i + 1]) if rising else range(rank[i] - 1, rank[i + 1] - 1, -1)
        for number in between:
            low, high = times[i], times[i + 1]
            while True:
                middle = 0.5 * (low + high)
                if not low < middle < high or high < NOTHING:
                    break
                past = (np.searchsorted(edges, ask(np.array([middle])), side="left")[0] > number) == rising
                low, high = (low, middle) if past else (middle, high)
            low = high if high < NOTHING else low  # the score has begun to move, and has a gradient
            edge, above = float(edges[number]), float(np.nextafter(edges[number], np.inf))
            out.append((float(low), edge, above) if rising else (float(low), above, edge))
    return out


def crossing_credit(node: Node, crossing: Crossing, path: Path, shapley: Callable[[Array], Array]) -> Array:
    """Credit (p, k) of the jump at a crossing: shared among the scores that cross, then along each one's normal."""
    keys = list(crossing.before)
    here = path.between(np.full(2 ** len(keys), crossing.time), crossing.inside)
    given = {base: path.values(base, here)[base].copy() for base, _ in keys}
    for subset in range(2 ** len(keys)):
        for i, (base, column) in enumerate(keys):
            side = crossing.after if subset >> i & 1 else crossing.before
            given[base][subset, column] = side[base, column]
    shares = shapley(path.values(node, here, given)[node])
    credit = np.zeros((len(path.start), node.width))
    for (base, column), share in zip(keys, shares, strict=True):
        values = path.values(base, here)
        slope = gradient(base, path.graph.input, values[path.graph.input], column, values)[0]
        parts = np.nan_to_num(slope * path.move)
        if parts.sum() == 0.0:
            raise InputError("A score touches a threshold without passing it: the jump cannot be credited.")
        credit += np.outer(parts / parts.sum(), share)
    return credit
