"""The definition for trees over smooth scores, by brute force: where a score passes a threshold, and who earns that.

The path is sampled densely, and wherever two neighbours lie on different sides of a threshold the crossing is bisected.
The jump there goes along the score's normal. Nothing of this is shared with the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby, pairwise

import numpy as np

from ..errors import InputError
from ..graph import Array, Graph, Input, Node, Smooth, TreeEnsemble, evaluate, needed, topological
from ..graph.rewire import columns_of
from .path import Path
from .times import UNITS

SAMPLES = 4096
"""How many times a whole path is looked at."""


@dataclass(frozen=True)
class Crossing:
    """Columns of scores that pass thresholds at one time, in units: their values just before and just after it."""

    time: float
    before: dict[tuple[Node, int], float]
    after: dict[tuple[Node, int], float]


def has_gradient(node: Node, source: Input) -> bool:
    """Whether the rows reach `node` by smooth steps alone."""
    if node is source:
        return True
    return isinstance(node, Smooth) and any(has_gradient(p, source) for p in node.parents)


def gradient(node: Node, source: Input, x: Array, output: int, values: Mapping[Node, Array] | None = None) -> Array:
    """d node[output] / d x, (n, p), by reverse accumulation; trees pass nothing back.

    `values` are those of all nodes, by default what the rows x give.
    """
    values = evaluate((node,), {source: x}) if values is None else values
    cotangents: dict[Node, Array] = {node: np.zeros_like(values[node])}
    cotangents[node][:, output] = 1.0
    for current in reversed(needed((node,), {source})):
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
    """Whether trees below `node` read smooth scores of other models, whose thresholds are no numbers of a column."""
    return bool(score_thresholds(graph, node))


def find_crossings(node: Node, path: Path, corners: list[int]) -> Iterator[Crossing]:
    """Where scores pass thresholds of trees, in order of time; `corners` are the times of all other jumps."""
    table = score_thresholds(path.graph, node)
    if any(reads_scores(path.graph, base) for base, _ in table):
        raise InputError(
            "brute_force covers trees over smooth scores, but not where such a score itself reads trees so."
        )
    found: list[tuple[float, tuple[Node, int], float, float]] = []
    for low, high in pairwise(sorted({0, *corners, UNITS})):
        times = _samples(low, high, corners)
        for (base, column), edges in table.items():

            def ask(t: Array, key: tuple[Node, int] = (base, column), inside: float = 0.5 * (low + high)) -> Array:
                return path.values(key[0], path.between(t, inside))[key[0]][:, key[1]]

            found += [(t, (base, column), old, new) for t, old, new in _passed(ask, times, edges)]
    found.sort(key=lambda crossing: crossing[0])
    for _, together in groupby(found, key=lambda crossing: round(crossing[0])):
        tied = list(together)
        before: dict[tuple[Node, int], float] = {}
        after: dict[tuple[Node, int], float] = {}
        for _, key, old, new in tied:
            before.setdefault(key, old)
            after[key] = new
        yield Crossing(tied[0][0], before, after)


def _samples(low: int, high: int, corners: list[int]) -> Array:
    """Times on a stretch between corners: its inside, and the path's own ends where no corner lies there."""
    inside = np.linspace(low, high, max(64, int(SAMPLES * (high - low) / UNITS)) + 1)
    near = min(0.1, 1e-3 * (high - low))
    if low in corners:
        inside[0] += near
    if high in corners:
        inside[-1] -= near
    return inside


def _passed(ask: Callable[[Array], Array], times: Array, edges: Array) -> list[tuple[float, float, float]]:
    """Time and the values on either side of every edge that a score passes, in the order of the path."""
    rank = np.searchsorted(
        edges, ask(times), side="left"
    )  # how many edges lie below: a value at an edge is not past it
    out: list[tuple[float, float, float]] = []
    for i in np.nonzero(np.diff(rank))[0].tolist():
        rising = rank[i + 1] > rank[i]
        between = range(rank[i], rank[i + 1]) if rising else range(rank[i] - 1, rank[i + 1] - 1, -1)
        for number in between:
            low, high = times[i], times[i + 1]
            while True:
                middle = 0.5 * (low + high)
                if not low < middle < high:
                    break
                past = (np.searchsorted(edges, ask(np.array([middle])), side="left")[0] > number) == rising
                low, high = (low, middle) if past else (middle, high)
            edge, above = float(edges[number]), float(np.nextafter(edges[number], np.inf))
            out.append((float(low), edge, above) if rising else (float(low), above, edge))
    return out


def crossing_credit(node: Node, crossing: Crossing, path: Path, shapley: Callable[[Array], Array]) -> Array:
    """Credit (p, k) of the jump at a crossing: shared among the scores that cross, then along each one's normal."""
    keys = list(crossing.before)
    here = path.between(np.full(2 ** len(keys), crossing.time), crossing.time)
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
            raise InputError("A score touches a threshold without passing it: nobody can be credited for the jump.")
        credit += np.outer(parts / parts.sum(), share)
    return credit
