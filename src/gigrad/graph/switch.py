"""Another model for each segment: a node that passes on one of its sources, row by row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .assembly import DTYPES, Arrays, join
from .node import Array, Node, Smooth
from .rewire import with_parents
from .trees import TreeEnsemble


@dataclass(frozen=True, eq=False)
class Switch(Smooth):
    """The output of the source whose number `selector` gives; all sources have one width.

    The other sources are ignored: they may be NaN on rows that their model was not made for.
    """

    selector: Node  # one column of whole numbers, a sum of trees
    sources: tuple[Node, ...]

    def __post_init__(self) -> None:
        if self.selector.width != 1 or len({s.width for s in self.sources}) != 1:
            raise InputError("Switch needs a selector of one column, and sources of one width.")

    @cached_property
    def width(self) -> int:
        return self.sources[0].width

    def forward(self, *inputs: Array) -> Array:
        chosen = _index(inputs[0], len(self.sources))
        out = np.empty_like(inputs[1])
        for k, source in enumerate(inputs[1:]):
            out[chosen == k] = source[chosen == k]
        return out

    def pullback(self, cotangent: Array, *inputs: Array) -> tuple[Array, ...]:
        chosen = _index(inputs[0], len(self.sources))
        parts = (np.where((chosen == k)[:, None], cotangent, 0.0) for k in range(len(self.sources)))
        return np.zeros_like(inputs[0]), *parts

    @property
    def piecewise_linear(self) -> bool:
        return True


def _index(selector: Array, sources: int) -> NDArray[np.int64]:
    return np.clip(np.rint(selector[:, 0]), 0, sources - 1).astype(np.int64)


def switched(selector: TreeEnsemble, sources: Sequence[Node]) -> Node:
    """A node that selects one of the sources by a tree, in the form that is explained fastest.

    Sums of trees over the same rows become one sum of trees, each below the selector's splits; if each has the same
    link, that link over the sum; anything else is a Switch.
    """
    first = sources[0]
    if all(isinstance(s, TreeEnsemble) and s.source is selector.source for s in sources):
        return _guarded(selector, [s for s in sources if isinstance(s, TreeEnsemble)])
    if all(_same_link(first, s) for s in sources):
        below = switched(selector, [s.parents[0] for s in sources])
        return with_parents(first, {first.parents[0]: below})
    return Switch(selector, tuple(sources))


def _same_link(a: Node, b: Node) -> bool:
    """Whether both are the same nonlinear function of one node each, by their forms for the native core."""
    first, second = a.stage(), b.stage()
    if first is None or second is None or a.slope_is_constant or len(a.parents) != 1 or len(b.parents) != 1:
        return False
    same = first.name == second.name and a.parents[0].width == b.parents[0].width
    return same and np.array_equal(first.a, second.a) and np.array_equal(first.b, second.b)


# ---------------------------------------------------------------- trees below the selector's splits


def _guarded(selector: TreeEnsemble, cases: Sequence[TreeEnsemble]) -> TreeEnsemble:
    """The trees of all cases, each 0 unless the selector selects its case; and a tree for their bases."""
    outputs = cases[0].width
    bases = np.stack([case.base for case in cases])
    index = np.rint(selector.values).astype(np.int64)
    parts: list[Arrays] = [
        {name: getattr(selector, name) for name in DTYPES}
        | {"values": bases[index, k].copy(), "tree_output": np.array([k], np.int32)}
        for k in range(outputs)
    ]
    for k, case in enumerate(cases):
        if len(case.roots):
            parts.append(_behind(selector, k, case))
    return TreeEnsemble(source=selector.source, **join(parts), base=np.zeros(outputs))


def _behind(selector: TreeEnsemble, k: int, case: TreeEnsemble) -> Arrays:
    """The trees of a case, each below the splits of the selector that separate its case from the others."""
    size = len(selector.feature)
    leaf = selector.feature < 0
    only, some = np.zeros(size, np.bool_), np.zeros(size, np.bool_)
    only[leaf] = some[leaf] = np.rint(selector.values[selector.value[leaf]]) == k
    for i in np.flatnonzero(~leaf)[::-1]:  # children come after their parents
        children = [selector.left[i], selector.right[i]]
        only[i], some[i] = only[children].all(), some[children].any()
    tests = np.flatnonzero(some & ~only)
    if not len(tests):
        return {name: getattr(case, name) for name in DTYPES} if only[0] else _nothing(case)
    block, trees = len(tests) + 1, len(case.roots)  # the splits, and a leaf of 0
    number = np.full(size, block - 1)
    number[tests] = np.arange(len(tests))
    shift = block * trees
    width = max(case.width, 1)
    arrays: Arrays = {}
    for name in DTYPES:
        if name in ("set_start", "set_words", "roots", "tree_output", "values", "left", "right", "value"):
            continue
        own = np.append(getattr(selector, name)[tests], getattr(selector, name)[np.flatnonzero(leaf)[0]])
        if name == "category_set":
            sets = len(case.set_start) - 1
            own = np.where(own >= 0, own + sets, own)
        arrays[name] = np.concatenate([np.tile(own, trees), getattr(case, name)]).astype(DTYPES[name])
    first = np.repeat(np.arange(trees) * block, block)
    root = np.repeat(case.roots + shift, block)
    inner = np.tile(np.append(np.ones(len(tests), bool), False), trees)
    for name in ("left", "right"):
        child = np.append(getattr(selector, name)[tests], 0)
        to = np.where(np.tile(only[child], trees), root, first + np.tile(number[child], trees))
        old = getattr(case, name)
        arrays[name] = np.concatenate([np.where(inner, to, -1), np.where(old >= 0, old + shift, -1)]).astype(np.int32)
    nothing = len(case.values)
    arrays["value"] = np.concatenate([np.where(inner, -1, nothing), case.value]).astype(np.int32)
    arrays["values"] = np.concatenate([case.values, np.zeros(width)])
    arrays["set_start"] = np.concatenate([case.set_start, case.set_start[-1] + selector.set_start[1:]]).astype(np.int32)
    arrays["set_words"] = np.concatenate([case.set_words, selector.set_words])
    arrays["roots"] = (np.arange(trees) * block).astype(np.int32)
    arrays["tree_output"] = case.tree_output
    return arrays


def _nothing(case: TreeEnsemble) -> Arrays:
    """No tree at all: a case that no row is in."""
    empty = replace(case, roots=case.roots[:0], tree_output=case.tree_output[:0])
    return {name: getattr(empty, name) for name in DTYPES}
