"""The trees of a CatBoost model's JSON as plain splits on the columns of the table.

Symmetric trees have the same question on a whole level; others are nested.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from ...errors import CorruptModelError
from ...graph import Tree
from ...graph.growing import Nodes
from .questions import LEFT, Question, Questions
from .statistics import Hashes


def read_trees(dump: dict[str, Any], hashes: Hashes, outputs: int) -> Iterator[Tree]:
    """Every tree of a model, with leaves of `outputs` numbers."""
    questions = Questions(dump, hashes)
    if "oblivious_trees" in dump:
        return (_symmetric(t, questions, outputs) for t in dump["oblivious_trees"])
    return (_nested(t, questions, outputs) for t in dump["trees"])


class _Growing:
    """A tree in the making, children before their parents."""

    def __init__(self, outputs: int) -> None:
        self.outputs = outputs
        self.nodes = Nodes()

    def split(self, question: Question, left: int, right: int) -> int:
        """Add the tests of a question with the exits `left` and `right`; returns the node of its first test."""
        base = len(self.nodes)

        def to(step: int) -> int:
            return base + step if step >= 0 else left if step == LEFT else right

        for test, a, b in zip(question.tests, question.left, question.right, strict=True):
            below = (to(b), to(a)) if test.turned else (to(a), to(b))
            self.nodes.split(test.column, *below, test.edge, test.left, test.missing_left)
        return to(question.root)

    def leaf(self, values: Any) -> int:
        numbers = np.broadcast_to(np.asarray(values, np.float64), (self.outputs,))
        return self.nodes.leaf(numbers[0] if self.outputs == 1 else numbers)

    def tree(self, root: int) -> Tree:
        """The tree below a node, which becomes its root."""
        return replace(self.nodes.tree(0 if self.outputs == 1 else -1, root), midpoints=True)


def _symmetric(dump: dict[str, Any], questions: Questions, outputs: int) -> Tree:
    """A symmetric tree: question k decides bit k of the leaf's number.

    The order of levels does not matter. The longest questions come first: that of level l is repeated 2^l times.
    """
    asked = [questions[s] for s in dump["splits"] or ()]
    values = np.asarray(dump["leaf_values"], np.float64)
    if values.size != outputs << len(asked):
        raise CorruptModelError(f"A symmetric tree of depth {len(asked)} has {values.size} leaf values.")
    tree = _Growing(outputs)
    below = {i: tree.leaf(leaf) for i, leaf in enumerate(values.reshape(-1, outputs))}
    for k in sorted(range(len(asked)), key=lambda k: len(asked[k].tests)):
        below = {i: tree.split(asked[k], below[i], below[i | 1 << k]) for i in below if not i >> k & 1}
    return tree.tree(below[0])


def _nested(dump: dict[str, Any], questions: Questions, outputs: int) -> Tree:
    """A tree that is saved as nested splits, built from its leaves up."""
    nodes: list[dict[str, Any]] = [dump]  # level by level
    children: dict[int, tuple[int, int]] = {}
    for i, node in enumerate(nodes):  # grows while it is read
        if "split" in node:
            children[i] = (len(nodes), len(nodes) + 1)
            nodes += [node["left"], node["right"]]
    tree = _Growing(outputs)
    at: dict[int, int] = {}
    for i in reversed(range(len(nodes))):
        if i in children:
            left, right = children[i]
            at[i] = tree.split(questions[nodes[i]["split"]], at[left], at[right])
        else:
            at[i] = tree.leaf(nodes[i]["value"])
    return tree.tree(at[0])
