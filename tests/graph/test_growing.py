"""Trees written down split by split give what a search gives."""

from __future__ import annotations

import numpy as np
import pytest

from gigrad.graph import Array, Input, Tree, assemble, evaluate
from gigrad.graph.growing import Branch, Edge, Part, chained, grown, halved, stump


def scores(tree: Tree, rows: Array, outputs: int = 1) -> Array:
    source = Input(rows.shape[1])
    node = assemble(source, [tree], np.zeros(outputs))
    return evaluate((node,), {source: rows})[node]


@pytest.mark.parametrize("shape", [halved, chained])
@pytest.mark.parametrize("count", [0, 1, 2, 3, 7, 40])
def test_bins_are_those_of_a_search(shape: type, count: int) -> None:
    cuts = np.sort(np.random.default_rng(count).normal(size=count)).tolist()
    parts: list[Part] = [float(k) for k in range(count + 1)]
    bins = shape(parts, lambda k, low, high: Branch(0, low, high, Edge.below(cuts[k])))
    tree = grown(Branch(0, bins, -5.0))
    rows = np.array([*cuts, *np.nextafter(cuts, -np.inf), -9.0, 9.0, np.nan])
    expected = np.where(np.isnan(rows), -5.0, np.searchsorted(cuts, rows, side="right"))
    assert scores(tree, rows[:, None])[:, 0].tolist() == expected.tolist()


def test_codes_go_left_and_missing_values_where_they_are_told() -> None:
    last = Branch(1, 30.0, 40.0, codes=[], missing_left=True)
    tree = grown(chained([10.0, 20.0, last], lambda i, part, rest: Branch(1, part, rest, codes=[[0, 3], [1]][i])))
    rows = np.array([[0.0, code] for code in (0, 1, 2, 3, np.nan)])
    assert scores(tree, rows)[:, 0].tolist() == [10.0, 20.0, 40.0, 10.0, 30.0]


def test_a_run_of_one_part_is_not_split() -> None:
    same = Branch(1, 1.0, 2.0, Edge(0.0))
    tree = grown(halved([same, same, same, 9.0], lambda k, low, high: Branch(0, low, high, Edge(float(k)))))
    assert sorted(tree.threshold[tree.feature == 0]) == [1.0, 2.0]
    assert scores(tree, np.array([[0.0, 0.0], [2.0, 1.0], [2.5, 1.0]]))[:, 0].tolist() == [1.0, 2.0, 9.0]


def test_leaves_may_have_a_value_for_each_output() -> None:
    tree = stump(0, 0.5, [1.0, 2.0], [3.0, 4.0])
    assert scores(tree, np.array([[0.5], [0.6]]), outputs=2).tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_a_long_chain_is_no_deep_recursion() -> None:
    parts: list[Part] = [float(k) for k in range(5001)]
    tree = grown(chained(parts, lambda k, part, rest: Branch(0, part, rest, Edge(float(k)))))
    assert scores(tree, np.array([[0.0], [4999.5], [5001.0]]))[:, 0].tolist() == [0.0, 5000.0, 5000.0]
