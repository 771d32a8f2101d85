"""Graphs so small that their credits can be worked out by hand."""

from __future__ import annotations

import numpy as np
from forests import graph_of

from gigrad.graph import Column, Elementwise, Graph, Input, Lookup, Node, Select, Sum, Tree, assemble

E1, E2, E3 = np.exp([1.0, 2.0, 3.0])
FIRST = [E1 - 1, E3 - E1]
SECOND = [E3 - E2, E2 - 1]
TOGETHER = [(E1 - 1 + E3 - E2) / 2, (E2 - 1 + E3 - E1) / 2]
NAN = np.nan
NUMBERS = (Column("a"), Column("b"), Column("c"))


def stump(column: int, threshold: float, height: float, missing_left: bool = True) -> Tree:
    """`height` beyond a threshold, 0 at or below it."""
    return Tree(
        np.array([column, -1, -1]), np.array([threshold, 0, 0]), np.array([1, -1, -1]), np.array([2, -1, -1]),
        np.array([missing_left, False, False]), np.array([0.0, 0.0, height]),
    )  # fmt: skip


def exponential(trees: list[Tree], columns: tuple[Column, ...], engine: str) -> Graph:
    """exp of a sum of trees, for the fused walk; the mixed engine gets a third column on top, which never moves."""
    source = Input(3)
    margin: Node = assemble(source, trees, np.zeros(1))
    if engine == "mixed":
        margin = Sum((margin, Select(source, (2,))))
    return graph_of(columns, source, Elementwise(margin, "exp"))


def lookup(source: Input, column: int, *numbers: float) -> Lookup:
    return Lookup(source, column, np.array(numbers)[:, None], np.array([0.0]), np.array([10.0]))
