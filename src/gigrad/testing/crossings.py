"""The definition for trees over smooth scores, by brute force: where a score passes a threshold, and who earns that.

The path is sampled densely, and wherever two neighbours lie on different sides of a threshold the crossing is bisected.
The jump there goes along the score's normal. Nothing of this is shared with the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ..errors import InputError
from ..graph import Array, Graph, Input, Node, Smooth, TreeEnsemble, evaluate, needed, topological
from ..graph.rewire import columns_of

TIE = 0.0

SAMPLES = 4096
"""How many times a whole path is looked at."""

Along = Callable[[Array], Array]
"""Times (n,) -> rows (n, p) of the path."""


@dataclass(frozen=True)
class Crossing:
    """Columns of scores that pass thresholds at one time: their values just before and just after it."""

    time: float
    before: dict[tuple[Node, int], float]
    after: dict[tuple[Node, int], float]


def has_gradient(node: Node, source: Input) -> bool:
    """Whether the rows reach `node` by smooth steps alone."""
    if node is source:
        return True
    return isinstance(node, Smooth) and any(has_gradient(p, source) for p in node.parents)


def gradient(node: Node, source: Input, x: Array, output: int) -> Array:
    """d node[output] / d x, (n, p), by reverse accumulation; trees pass nothing back."""
    values = evaluate((node,), {source: x})
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


def find_crossings(graph: Graph, node: Node, along: Along, corners: list[float]) -> Iterator[Crossing]:
    """Where scores pass thresholds of trees, in order of time; `corners` are the times of all other jumps."""
    table = score_thresholds(graph, node)
    if any(reads_scores(graph, base) for base, _ in table):
        raise InputError(
            "brute_force covers trees over smooth scores, but not where such a score itself reads trees so."
        )
    found: list[tuple[float, tuple[Node, int], float, float]] = []
    for times in _samples(corners):
        for (base, column), edges in table.items():

            def ask(t: Array, base: Node = base, column: int = column) -> Array:
                return evaluate((base,), {graph.input: along(t)})[base][:, column]

            found += [(t, (base, column), old, new) for t, old, new in _passed(ask, times, edges)]
    found.sort(key=lambda crossing: crossing[0])
    while found:
        tied = [c for c in found if c[0] - found[0][0] <= TIE]
        found = found[len(tied) :]
        before: dict[tuple[Node, int], float] = {}
        after: dict[tuple[Node, int], float] = {}
        for _, key, old, new in tied:
            before.setdefault(key, old)
            after[key] = new
        yield Crossing(tied[0][0], before, after)


def _samples(corners: list[float]) -> Iterator[Array]:
    """Times on every stretch between corners: its inside, and the path's own ends where no corner lies there."""
    edges = [0.0, *corners, 1.0]
    for number, (low, high) in enumerate(pairwise(edges)):
        if high - low <= TIE:
            continue
        inside = np.linspace(low, high, max(64, int(SAMPLES * (high - low))) + 1)
        near = min(1e-10, 1e-3 * (high - low))
        if number > 0:
            inside[0] += near
        if number < len(corners):
            inside[-1] -= near
        yield inside


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


def crossing_credit(
    graph: Graph, node: Node, crossing: Crossing, point: Array, move: Array, shapley: Callable[[Array], Array]
) -> Array:
    """Credit (p, k) of the jump at a crossing: shared among the scores that cross, then along each one's normal."""
    keys = list(crossing.before)
    rows = np.repeat(point[None], 2 ** len(keys), axis=0)
    known: dict[Node, Array] = {graph.input: rows}
    for base in dict.fromkeys(base for base, _ in keys):
        known[base] = evaluate((base,), {graph.input: rows})[base].copy()
    for subset in range(len(rows)):
        for i, (base, column) in enumerate(keys):
            side = crossing.after if subset >> i & 1 else crossing.before
            known[base][subset, column] = side[base, column]
    shares = shapley(evaluate((node,), known)[node])
    credit = np.zeros((len(point), node.width))
    for (base, column), share in zip(keys, shares, strict=True):
        parts = gradient(base, graph.input, point[None], column)[0] * move
        parts = np.nan_to_num(parts)
        if parts.sum() == 0.0:
            raise InputError("A score touches a threshold without passing it: nobody can be credited for the jump.")
        credit += np.outer(parts / parts.sum(), share)
    return credit
