"""Forests grown to purity: whether time follows the nodes that paths really meet, up to 500 trees of 100,000 nodes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import visits
import workloads
from sklearn.ensemble import ExtraTreesClassifier

import gigrad as gig
from gigrad.graph import Graph, Input, TreeEnsemble
from gigrad.graph.forests import weighted_sum

COLUMNS = 30
Line = dict[str, float]


def measure(quick: bool) -> list[Line]:
    """Trees of more and more nodes, then more and more of the largest."""
    group, n_rows, n_references, repeats = (2, 4, 8, 1) if quick else (50, 10, 100, 5)
    samples = (200, 400) if quick else (6_400, 16_000, 32_000, 64_000)  # two of them make about three nodes
    new = np.random.default_rng(1).normal(size=(n_rows + n_references, COLUMNS))
    found = []
    for size in samples:
        counts = (1,) if size < samples[-1] else (1, 2) if quick else (1, 2, 5, 10)
        for graph, own in forests(size, group, counts, new):
            found.append(line_of(graph, new[:n_rows], new[n_rows:], own[:n_rows] - own[n_rows:].mean(), repeats))
    return found


def forests(samples: int, group: int, counts: tuple[int, ...], new: np.ndarray) -> Iterator[tuple[Graph, np.ndarray]]:
    """For each count so many groups of trees as one model, and what the groups themselves say about the `new` rows.

    Labels are pure noise: nothing makes a tree deeper. Groups are fitted one after the other and only their trees are
    kept: 500 trees of scikit-learn's own would take four gigabytes more.
    """
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(samples, COLUMNS)), rng.integers(0, 2, samples)
    source = Input(COLUMNS)
    parts: list[TreeEnsemble] = []
    own: list[np.ndarray] = []
    for count in counts:
        while len(parts) < count:
            model = ExtraTreesClassifier(group, max_features=1, n_jobs=1, random_state=len(parts)).fit(X, y)
            graph = gig.import_model(model)
            parts.append(replace(visits.trees_of(graph), source=source))
            own.append(model.predict_proba(new)[:, 1])
        score = parts[0] if count == 1 else weighted_sum(parts, [1.0 / count] * count)
        yield Graph(graph.columns, source, score, score, graph.output_names), np.mean(own, axis=0)


def line_of(graph: Graph, rows: np.ndarray, reference: np.ndarray, rises: np.ndarray, repeats: int) -> Line:
    """Nodes, those met by every path from a reference row to a row, and times; credits must add up to the `rises`."""
    trees = visits.trees_of(graph)
    found = visits.count(trees, np.tile(reference, (len(rows), 1)), np.repeat(rows, len(reference), axis=0))
    explainer = gig.Explainer(graph, reference, output="margin", n_threads=1)
    gap = np.abs(
        explainer(rows).values.sum(axis=1) - rises
    ).max()  # the first call, not timed, finds what it needs once
    # processor time: a call takes seconds, in which somebody else always wants the processor, too
    (spent,) = workloads.best_times([lambda: explainer(rows)], repeats, time.process_time)
    spent /= len(rows) * len(reference)
    count, nodes = len(trees.roots), len(trees.feature)
    return {
        "trees": count, "nodes": nodes / count, "met": found.met, "some": found.some / count, "us": spent * 1e6,
        "ns a node": spent / found.met * 1e9, "gap": float(gap), "pairs": len(rows) * len(reference),
    }  # fmt: skip


def law(found: list[Line]) -> tuple[float, float, float]:
    """Nanoseconds a node met, and more where a path is the first to meet it; and the worst deviation from these two."""
    firsts = [x["some"] * x["trees"] / x["pairs"] for x in found]
    spent = np.array([x["us"] * 1e3 for x in found])
    parts = np.array([[x["met"], first] for x, first in zip(found, firsts, strict=True)])
    rates = np.linalg.lstsq(parts / spent[:, None], np.ones(len(found)))[0]
    return float(rates[0]), float(rates[1]), float(np.abs(parts @ rates / spent - 1.0).max())


def as_text(found: list[Line]) -> list[str]:
    each, first, worst = law(found)
    gap = max(x["gap"] for x in found)
    return [
        f"Extra trees grown to purity, {found[0]['pairs']:,.0f} pairs of a row and a reference row, by the nodes that "
        "paths meet (counted from the definition), in processor time:",
        "",
        "| trees | nodes a tree | of which some path meets | nodes of all trees that a path meets | time a pair "
        "| time a node met |",
        "|---|---|---|---|---|---|",
        *(
            f"| {x['trees']:.0f} | {x['nodes']:,.0f} | {x['some']:,.0f} | {x['met']:,.0f} | {x['us']:,.1f} us "
            f"| {x['ns a node']:.1f} ns |"
            for x in found
        ),
        "",
        f"Fitted to these rows, time is {each:.0f} ns a node that a path meets and {first:.0f} ns more for each node "
        f"that some path meets, which has to be fetched; the row farthest from that is {worst:.0%} off. "
        f"Credits add up to the forest's own predictions within {gap:.0e}.",
    ]
