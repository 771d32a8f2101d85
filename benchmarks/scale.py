"""Deep forests, wide tables and two threads: whether time follows the nodes that the paths really meet."""

from __future__ import annotations

from typing import Any

import numpy as np
import workloads
from sklearn.ensemble import ExtraTreesClassifier

import gigrad as gig
from gigrad.graph import Graph, TreeEnsemble, topological


def trees_of(graph: Graph) -> TreeEnsemble:
    """The first sum of trees in the order of evaluation: there is one."""
    return next(node for node in topological(graph.score) if isinstance(node, TreeEnsemble))


def visited(trees: TreeEnsemble, starts: np.ndarray, ends: np.ndarray) -> float:
    """Nodes of all trees that a path meets, on average: counted from the definition, without the kernel."""
    pairs = np.repeat(np.arange(len(starts)), len(trees.roots))
    node = np.tile(np.asarray(trees.roots), len(starts))
    low, high = np.zeros(len(node)), np.ones(len(node))
    total = 0
    while len(node):
        total += len(node)
        inner = trees.feature[node] >= 0
        pairs, node, low, high = pairs[inner], node[inner], low[inner], high[inner]
        column, threshold = trees.feature[node], trees.threshold[node]
        s, e = starts[pairs, column], ends[pairs, column]
        start_left, end_left = s <= threshold, e <= threshold
        crossed = start_left != end_left
        with np.errstate(all="ignore"):
            when = np.where(crossed, (threshold - s) / (e - s), 0.0)
        near, far = (
            np.where(start_left, trees.left[node], trees.right[node]),
            np.where(end_left, trees.left[node], trees.right[node]),
        )
        # a path that does not cross goes on alone; one that crosses has a part before and a part after
        before, after = ~crossed | (low < when), crossed & (when < high)
        parts = [
            (pairs[before], near[before], low[before], np.where(crossed, np.minimum(high, when), high)[before]),
            (pairs[after], far[after], np.maximum(low, when)[after], high[after]),
        ]
        pairs, node, low, high = (np.concatenate(x) for x in zip(*parts, strict=True))
    return total / len(starts)


def per_node(work: workloads.Work, repeats: int) -> dict[str, float]:
    """Nodes of the model, nodes that a pair meets, time a pair, and time a node met."""
    trees = trees_of(gig.import_model(work.model))
    n = min(len(work.rows), len(work.reference))
    met = visited(trees, work.reference[:n], work.rows[:n])
    (spent,) = workloads.best_times([workloads.credits_only(work)], repeats)
    spent /= len(work.rows) * len(work.reference)
    nodes, count = len(trees.feature), len(trees.roots)
    return {"trees": count, "nodes": nodes / count, "met": met, "us": spent * 1e6, "ns a node": spent / met * 1e9}


def deep(samples: int, trees: int, rows: int, references: int, repeats: int) -> dict[str, float]:
    """Extra trees grown to purity on labels that are pure noise: nothing makes a tree deeper."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(samples, 30))
    model = ExtraTreesClassifier(trees, max_features=1, n_jobs=1, random_state=0).fit(X, rng.integers(0, 2, samples))
    new = rng.normal(size=(rows + references, 30))
    return per_node(workloads.Work(model, new[:rows], new[rows:]), repeats)


def wide(columns: int, trees: int, depth: int, rows: int, references: int, repeats: int) -> dict[str, float]:
    return per_node(workloads.boosted(trees, depth, rows, references, columns, samples=3_000), repeats)


def spaces(trees: int, depth: int, rows: int, references: int, repeats: int) -> dict[str, float]:
    """Microseconds a pair in every space, and with half of the columns binary."""
    work, ties = (workloads.boosted(trees, depth, rows, references, binary=b) for b in (0, 15))
    third = workloads.classes(max(1, trees // 3), depth, rows, references)
    ranked = gig.SmoothedECDF.fit(gig.import_model(work.model).predict(workloads.table(2_000, 30, 0)[0]))
    functions = {
        "margin": workloads.credits_only(work),
        "probability": workloads.credits_only(work, None),
        "rank (ECDF of the probability)": workloads.credits_only(work, ranked),
        "margin, half of the columns binary": workloads.credits_only(ties),
        "probability, half of the columns binary": workloads.credits_only(ties, None),
        "three classes, margins": workloads.credits_only(third),
        "three classes, softmax": workloads.credits_only(third, None),
        "margin, two threads": workloads.credits_only(work, threads=2),
        "probability, two threads": workloads.credits_only(work, None, threads=2),
    }
    times = workloads.best_times(list(functions.values()), repeats)
    return {name: spent / (rows * references) * 1e6 for name, spent in zip(functions, times, strict=True)}


def measure(quick: bool) -> dict[str, Any]:
    repeats = 1 if quick else 5
    found: dict[str, Any] = {
        "spaces": spaces(*((6, 3, 8, 8) if quick else (500, 6, 100, 100)), repeats),
        "deep": [
            deep(samples, *((3, 4, 8) if quick else (50, 10, 100)), repeats)
            for samples in ((200, 400) if quick else (10_000, 20_000, 40_000, 80_000))
        ],
        "wide": {
            columns: wide(columns, *((5, 3, 4, 8) if quick else (200, 6, 100, 100)), repeats)
            for columns in ((20, 40) if quick else (30, 300, 2000))
        },
    }
    print("\n".join(as_text(found)), flush=True)
    return found


def as_text(found: dict[str, Any]) -> list[str]:
    spaces = found["spaces"]
    one = [spaces["margin"] / spaces["margin, two threads"], spaces["probability"] / spaces["probability, two threads"]]
    binary = spaces["margin, half of the columns binary"] / spaces["margin"]

    def line(name: str, x: dict[str, float]) -> str:
        cells = (f"{x['nodes']:,.0f}", f"{x['met']:,.0f}", f"{x['us']:.1f} us", f"{x['ns a node']:.1f} ns")
        return f"| {name} | {' | '.join(cells)} |"

    return [
        "XGBoost 500 x depth 6, 100 rows x 100 references; with three classes a third of the trees for each:",
        "",
        "| space | time a pair |",
        "|---|---|",
        *(f"| {name} | {us:.1f} us |" for name, us in spaces.items()),
        "",
        f"Half of the columns binary costs {binary:.2f} times as much (goal: at most 2). Two threads are {one[0]:.2f} "
        f"times as fast as one in margin space, {one[1]:.2f} times in probability space (goal: 1.8).",
        "",
        "Deep forests and wide tables, by the nodes that a path meets (counted from the definition):",
        "",
        "| model | nodes a tree | nodes a path meets | time a pair | time a node met |",
        "|---|---|---|---|---|",
        *(line(f"{x['trees']:.0f} extra trees grown to purity", x) for x in found["deep"]),
        *(line(f"{x['trees']:.0f} boosted trees, {int(c):,} columns", x) for c, x in found["wide"].items()),
    ]
