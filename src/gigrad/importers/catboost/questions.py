"""The split conditions of a CatBoost model, here called questions: tests on one column, and diagrams of such tests.

A question is about a number (`x > border` goes right), about one label (that label goes right), about a statistic of a
label (those above a border go right), or about a statistic of a combination of labels and tests. The last depends on
several columns; as a small decision diagram, every test in it is on one column, with its own side and place, so that it
can be a part of a tree and every column of the combination is a player.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import CorruptModelError
from ...graph.growing import EVERY_NUMBER, Edge
from ..common.thresholds import at_most_in_float32
from .statistics import Combinations, Hashes, Ints, label_values, only_category

LEFT, RIGHT = -1, -2
"""Exits of a diagram, in place of a child: the two answers."""


@dataclass(frozen=True, eq=False)
class Test:
    """A split: the column that it reads and the values that go left.

    Attributes
    ----------
    column : int
    edge : Edge
        Numbers up to it go left; unused for categories.
    missing_left : bool
    left : (codes,) or None
        Categories: the codes that go left, or right where `turned` (the side that unknown labels do not take).
    turned : bool
    """

    column: int
    edge: Edge = EVERY_NUMBER
    missing_left: bool = False
    left: NDArray[np.int64] | None = None
    turned: bool = False


@dataclass(frozen=True, eq=False)
class Question:
    """A yes-or-no question as a decision diagram: tests, children before their parents.

    `left` and `right` are the children of each test: an earlier test, or LEFT or RIGHT. `root` is the first test; or
    LEFT or RIGHT if the answer is always the same.
    """

    tests: tuple[Test, ...]
    left: tuple[int, ...] = (LEFT,)
    right: tuple[int, ...] = (RIGHT,)
    root: int = 0


class Questions:
    """The questions of a model by number: all borders of numbers, then all tested labels, then all borders of CTRs."""

    def __init__(self, dump: dict[str, Any], hashes: Hashes) -> None:
        info = dump["features_info"]
        self.dump, self.hashes = dump, hashes
        self.numbers = {f["feature_index"]: f for f in info.get("float_features", ())}
        self.column = {f["feature_index"]: f["flat_feature_index"] for f in info.get("categorical_features", ())}
        self._made: dict[int, Question] = {}
        self._combined: dict[str, Combinations] = {}
        self._makers: list[Callable[[], Question]] = []
        for f in info.get("float_features", ()):
            self._makers += [_one(_number, f, border) for border in f["borders"] or ()]
        for f in info.get("categorical_features", ()):
            self._makers += [_one(self._label, f["feature_index"], v) for v in f.get("values", ())]
        for ctr in info.get("ctrs", ()):
            ask = self._combination if only_category(ctr) is None else self._statistic
            self._makers += [_later(ask, ctr, border) for border in ctr["borders"]]

    def __getitem__(self, split: Any) -> Question:
        index = split["split_index"]
        if not 0 <= index < len(self._makers):
            raise CorruptModelError(f"A split refers to condition {index}; the model has {len(self._makers)}.")
        if index not in self._made:
            self._made[index] = self._makers[index]()
        return self._made[index]

    def _label(self, category: int, value: int) -> Test:
        code = self.hashes[category].index(value & 0xFFFFFFFF)
        return Test(self.column[category], left=np.array([code]), turned=True)

    def _statistic(self, ctr: dict[str, Any], border: float) -> Question:
        """A test of the target statistic of one category: the set of its labels above the border."""
        values, unknown = label_values(self.dump, ctr)
        category = only_category(ctr)
        labels = self.hashes[category] if category is not None else ()
        above = np.array([values.get(h, unknown) > np.float32(border) for h in labels], bool)
        turned = not unknown > np.float32(border)  # a label that is not in the set goes right
        codes = np.flatnonzero(above if turned else ~above)
        return Question((Test(self.column[category or 0], left=codes, turned=turned),))

    def _combination(self, ctr: dict[str, Any], border: float) -> Question:
        """A test of the statistic of combined columns, as a diagram of tests on each."""
        if ctr["identifier"] not in self._combined:  # several statistics share one table
            self._combined[ctr["identifier"]] = Combinations.of(self.dump, ctr, self.hashes)
        known = self._combined[ctr["identifier"]]
        values, unknown = known.values(self.dump, ctr)
        usual = bool(unknown > np.float32(border))
        listed = (values > np.float32(border)) != usual
        return _Diagram([self._element(e) for e in ctr["elements"]], usual, known).question(known.codes[listed])

    def _element(self, element: dict[str, Any]) -> Test | int:
        """An element of a combination: a test, or the column whose label is the element."""
        kind = element["combination_element"]
        if kind == "cat_feature_value":
            return int(self.column[element["cat_feature_index"]])
        if kind == "cat_feature_exact_value":
            return self._label(element["cat_feature_index"], element["value"])
        return _number(self.numbers[element["float_feature_index"]], element["border"])


def _later(make: Callable[..., Question], *given: Any) -> Callable[[], Question]:
    return lambda: make(*given)


def _one(make: Callable[..., Test], *given: Any) -> Callable[[], Question]:
    return lambda: Question((make(*given),))


def _number(feature: dict[str, Any], border: float) -> Test:
    """A test of a number, which CatBoost compares in float32."""
    folded = at_most_in_float32(np.array([np.float32(border)], np.float64))
    low, high = folded.equal
    edge = Edge(float(folded.threshold[0]), (float(low[0]), float(high[0])), single=True)
    return Test(feature["flat_feature_index"], edge, feature["nan_value_treatment"] != "AsTrue")


# ---------------------------------------------------------------- combinations


class _Diagram:
    """A decision diagram for "is this combination one of a list?", in which equal sub-diagrams are shared.

    Elements are tested in order of their number of values, so that the diagram stays small. Frequent labels need few
    tests.
    """

    def __init__(self, elements: Sequence[Test | int], usual: bool, known: Combinations) -> None:
        self.elements = elements
        self.outside, self.inside = (RIGHT, LEFT) if usual else (LEFT, RIGHT)
        self.frequency = [np.bincount(codes, known.count) for codes in known.codes.T]
        self.tests: list[Test] = []
        self.left: list[int] = []
        self.right: list[int] = []
        self.known: dict[tuple[int, bytes], int] = {}
        self.asked: dict[tuple[Any, ...], int] = {}

    def question(self, listed: Ints) -> Question:
        """The question whether a combination is in a list, (n, elements), with the answers `inside` and `outside`."""
        values = [len(np.unique(codes)) for codes in listed.T]
        order = sorted(range(len(values)), key=lambda i: (isinstance(self.elements[i], int), values[i]))
        self.elements, self.frequency = [self.elements[i] for i in order], [self.frequency[i] for i in order]
        answer = self._rest(np.unique(listed[:, order], axis=0), 0)
        return Question(tuple(self.tests), tuple(self.left), tuple(self.right), answer)

    def _rest(self, listed: Ints, level: int) -> int:
        """The sub-diagram for the elements from `level` on, for combinations (n, elements) with equal earlier ones."""
        if not len(listed):
            return self.outside
        if level == len(self.elements):
            return self.inside
        key = (level, np.ascontiguousarray(listed[:, level:]).tobytes())
        if key not in self.known:
            values, first = np.unique(listed[:, level], return_index=True)
            parts = np.split(listed, first[1:])
            leads = {int(v): self._rest(part, level + 1) for v, part in zip(values, parts, strict=True)}
            element = self.elements[level]
            if isinstance(element, Test):
                self.known[key] = self._ask(element, leads.get(0, self.outside), leads.get(1, self.outside), level)
            else:
                self.known[key] = self._among(element, leads, level)
        return self.known[key]

    def _among(self, column: int, leads: dict[int, int], level: int) -> int:
        """Tests that separate the labels of a column by the sub-diagrams they lead to; others lead to `outside`."""
        codes: dict[int, list[int]] = {}
        for code, to in leads.items():
            if to != self.outside:
                codes.setdefault(to, []).append(code)
        frequency = self.frequency[level]
        weight = {to: float(frequency[named].sum()) for to, named in codes.items()}
        # Huffman's tree: the two rarest parts are joined first; the second number breaks ties of weights.
        heap = [(weight[to], i, to, named) for i, (to, named) in enumerate(codes.items(), 1)]
        heap.append((float(frequency.sum()) - sum(weight.values()), 0, self.outside, []))
        heapify(heap)
        while len(heap) > 1:
            parts = sorted((heappop(heap), heappop(heap)), key=lambda part: not part[3])  # the listed labels go left
            (a, i, left, named), (b, j, right, others) = parts
            to = self._ask(Test(column, left=np.array(sorted(named))), left, right, (column, *sorted(named)))
            heappush(heap, (a + b, min(i, j), to, [*named, *others] if others else []))
        return heap[0][2]

    def _ask(self, test: Test, left: int, right: int, what: Any) -> int:
        """A node of the diagram with these children, shared with an equal one; none if both are the same."""
        if left == right:
            return left
        key = (what, left, right)
        if key not in self.asked:
            self.asked[key] = len(self.tests)
            self.tests.append(test)
            self.left.append(left)
            self.right.append(right)
        return self.asked[key]
