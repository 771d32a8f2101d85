"""Random small models full of ties, for property tests."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import gigrad as gig
from gigrad.graph import Array, Column, Elementwise, Graph, Input, Node, Softmax, Tree, TreeEnsemble, assemble


def random_tree(rng: np.random.Generator, columns: tuple[Column, ...], depth: int, outputs: int, output: int) -> Tree:
    """A random tree over a small integer grid: thresholds on grid values and between them, categories 0..3."""
    arrays: tuple[list[Any], ...] = ([], [], [], [], [], [])
    feature, threshold, left, right, missing, values = arrays
    categories: dict[int, NDArray[np.int64]] = {}

    def grow(level: int) -> int:
        node = len(feature)
        leaf = level == depth or rng.random() < 0.15
        j = -1 if leaf else int(rng.integers(len(columns)))
        feature.append(j)
        threshold.append(float(rng.integers(0, 7)) / 2)
        missing.append(bool(rng.integers(2)))
        values.append(rng.normal(size=outputs) if output < 0 else rng.normal())
        left.append(-1)
        right.append(-1)
        if not leaf:
            if columns[j].kind == "category":
                categories[node] = rng.choice(4, int(rng.integers(1, 4)), replace=False)
            left[node], right[node] = grow(level + 1), grow(level + 1)
        return node

    grow(0)
    return Tree(
        np.array(feature), np.array(threshold), np.array(left), np.array(right), np.array(missing), np.array(values),
        output, categories,
    )  # fmt: skip


def random_columns(rng: np.random.Generator, size: int) -> tuple[Column, ...]:
    """Columns of which about a third are categories."""
    return tuple(Column(f"x{j}", "category" if rng.random() < 0.3 else "number") for j in range(size))


def random_forest(
    rng: np.random.Generator,
    columns: tuple[Column, ...],
    source: Node,
    trees: int = 4,
    depth: int = 4,
    outputs: int = 1,
) -> TreeEnsemble:
    """A sum of random trees; with several outputs, vector leaves and class-interleaved trees both occur."""
    grown = [
        random_tree(
            rng, columns, depth, outputs, -1 if outputs > 1 and rng.random() < 0.5 else int(rng.integers(outputs))
        )
        for _ in range(trees)
    ]
    return assemble(source, grown, rng.normal(size=outputs))


def random_rows(rng: np.random.Generator, columns: tuple[Column, ...], n: int) -> Array:
    """Rows on the grid that the thresholds lie on, with missing values and categories (one of them unknown)."""
    rows = rng.integers(0, 7, (n, len(columns))) / 2.0
    for j, column in enumerate(columns):
        if column.kind == "category":
            rows[:, j] = rng.integers(-1, 4, n)
    rows[rng.random(rows.shape) < 0.1] = np.nan
    return rows


def graph_of(columns: tuple[Column, ...], source: Input, score: Node, margin: Node | None = None) -> Graph:
    margin = margin or score
    return Graph(
        columns, source, score, margin, tuple(f"y{k}" for k in range(score.width)),
        tuple(f"y{k}" for k in range(margin.width)),
    )  # fmt: skip


def tree_explainer(number: int, outputs: int = 1, rows: int = 7, **options: Any) -> tuple[gig.Explainer, Any]:
    """An explainer of random trees, and rows to explain."""
    rng = np.random.default_rng(number)
    columns = random_columns(rng, 5)
    source = Input(5)
    margin = random_forest(rng, columns, source, outputs=outputs)
    score = Softmax(margin) if outputs > 1 else Elementwise(margin, "sigmoid")
    graph = graph_of(columns, source, score, margin)
    explainer = gig.Explainer(graph, random_rows(rng, columns, rows), weights=rng.random(rows), **options)
    return explainer, random_rows(rng, columns, 20)
