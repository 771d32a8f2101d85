"""Every space, wide tables and two threads."""

from __future__ import annotations

from typing import Any

import deep
import visits
import workloads

import gigrad as gig


def per_node(work: workloads.Work, repeats: int) -> dict[str, float]:
    """Nodes of the model, nodes that a pair meets, time a pair, and time a node met."""
    trees = visits.trees_of(gig.import_model(work.model))
    n = min(len(work.rows), len(work.reference))
    met = visits.count(trees, work.reference[:n], work.rows[:n]).met
    (spent,) = workloads.best_times([workloads.credits_only(work)], repeats)
    spent /= len(work.rows) * len(work.reference)
    nodes, count = len(trees.feature), len(trees.roots)
    return {"trees": count, "nodes": nodes / count, "met": met, "us": spent * 1e6, "ns a node": spent / met * 1e9}


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
        "deep": deep.measure(quick),
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
        *deep.as_text(found["deep"]),
        "",
        "Wide tables, by the nodes that a path meets (counted from the definition):",
        "",
        "| model | nodes a tree | nodes a path meets | time a pair | time a node met |",
        "|---|---|---|---|---|",
        *(line(f"{x['trees']:.0f} boosted trees, {int(c):,} columns", x) for c, x in found["wide"].items()),
    ]
