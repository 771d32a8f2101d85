"""The trees of a CatBoost model's JSON as plain splits on the columns of the table.

Symmetric trees have the same question on a whole level; others are nested.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...errors import CorruptModelError
from ...graph import Array, Tree
from .questions import LEFT, Question, Questions, Test
from .statistics import Hashes


def read_trees(dump: dict[str, Any], hashes: Hashes, outputs: int) -> Iterator[Tree]:
    """Every tree of a model, with leaves of `outputs` numbers."""
    questions = Questions(dump, hashes)
    if "oblivious_trees" in dump:
        return (_symmetric(t, questions, outputs) for t in dump["oblivious_trees"])
    return (_nested(t, questions, outputs) for t in dump["trees"])


class _Growing:
    """Nodes of a tree, children before their parents: the last one is the root."""

    def __init__(self, outputs: int) -> None:
        self.outputs = outputs
        self.tests: list[Test | None] = []
        self.children: list[tuple[int, int]] = []
        self.values: list[Array] = []

    def split(self, question: Question, left: int, right: int) -> int:
        """Add the tests of a question with the exits `left` and `right`; returns the node of its first test."""
        base = len(self.tests)

        def to(step: int) -> int:
            return base + step if step >= 0 else left if step == LEFT else right

        for test, a, b in zip(question.tests, question.left, question.right, strict=True):
            self._add(test, (to(b), to(a)) if test.turned else (to(a), to(b)), np.zeros(self.outputs))
        return to(question.root)

    def leaf(self, values: Any) -> int:
        self._add(None, (0, 0), np.broadcast_to(np.asarray(values, np.float64), (self.outputs,)))
        return len(self.tests) - 1

    def _add(self, test: Test | None, children: tuple[int, int], values: Array) -> None:
        self.tests.append(test)
        self.children.append(children)
        self.values.append(values)

    def tree(self, root: int) -> Tree:
        """The tree below a node, which becomes its root."""
        tests = [t or _LEAF for t in self.tests[root::-1]]
        sides = root - np.array(self.children[root::-1], np.int64).reshape(-1, 2)
        one = self.outputs == 1
        values = np.array(self.values[root::-1])
        low, high = np.array([t.equal for t in tests]).T
        return Tree(
            feature=np.array([t.column for t in tests]),
            threshold=np.array([t.threshold for t in tests]),
            left=sides[:, 0],
            right=sides[:, 1],
            missing_left=np.array([t.missing_left for t in tests]),
            values=values[:, 0] if one else values,
            output=0 if one else -1,
            categories={i: t.left for i, t in enumerate(tests) if t.left is not None},
            equal=(low, high),
            single=True,
            midpoints=True,
        )


_LEAF = Test(-1)


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
