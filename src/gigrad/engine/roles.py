"""What each node of a model does along a path: the plan of the mixed engine.

    rows ──> lines ──> curves ─────┐
      │        └───────────────────┤
      └────> trees ──> steps ──────┴──> head ──> output

Lines move piecewise linearly, curves smoothly in between kinks; neither depends on a tree, so neither is evaluated
at every jump. Trees over the raw rows jump at times that the kernel lists, and steps change only there. The head joins
both and is the only part that is evaluated on every segment between two jumps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, wraps
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..graph import (
    Affine,
    Array,
    Elementwise,
    Input,
    Node,
    Smooth,
    TreeEnsemble,
    needed,
    topological,
)
from ..graph.node import Columns, union
from . import limits
from .roots import passed

if TYPE_CHECKING:
    from .mixed.native_curves import CurveProgram
    from .mixed.program import HeadProgram
    from .mixed.sampled import LayerChain
    from .mixed.traced import LineProgram
    from .mixed.two_layers import KeptProducts

_Found = TypeVar("_Found")


@dataclass(frozen=True)
class Levels:
    """Values of a node at which something above it changes: kinks of a function, or thresholds of trees.

    `columns` is None where every column of `node` has the same levels, `table[0]`.
    """

    node: Node
    user: Node
    table: tuple[Array, ...]
    columns: tuple[int, ...] | None = None

    def passed(
        self, first: Array, last: Array, closed: NDArray[np.bool_] | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], Array]:
        """The levels that the node's columns cross from values `first` to `last`, (n, width): row, column and level.

        `closed` as in `roots.passed`.
        """
        if self.columns is None:
            return passed(self.table[0], first, last, closed)
        rows, columns, levels = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0)]
        for j, table in zip(self.columns, self.table, strict=True):
            only = slice(j, j + 1)
            row, _, level = passed(table, first[:, only], last[:, only], None if closed is None else closed[:, only])
            rows.append(row)
            columns.append(np.full(len(row), j))
            levels.append(level)
        return np.concatenate(rows), np.concatenate(columns), np.concatenate(levels)


def levels_of(user: Node) -> Levels | None:
    """The values of a node's source at which the node has kinks or jumps; None if there are none."""
    breaks = user.breaks_of_source
    return None if breaks is None else Levels(user.parents[0], user, breaks.values, breaks.columns)


@dataclass(frozen=True, eq=False)
class WideUnits:
    """A wide layer of tanh or sigmoid units over a line, and the sums that alone read it.

    `slope` has the coefficients of a unit's slope as a quadratic polynomial in its value.
    """

    units: Elementwise
    sums: Affine
    slope: tuple[float, float, float]


@dataclass(frozen=True, eq=False)
class Roles:
    """The nodes of one output by what they do, each list with parents before children."""

    output: Node
    source: Input
    lines: tuple[Node, ...]  # includes the source where anything but a tree reads it
    curves: tuple[Node, ...]
    trees: tuple[TreeEnsemble, ...]
    steps: tuple[Node, ...]
    head: tuple[Node, ...]

    @classmethod
    def of(cls, output: Node, source: Input) -> Roles:
        """Sort the nodes below `output`."""
        lists: dict[str, list[Node]] = {"lines": [], "curves": [], "trees": [], "steps": [], "head": []}
        role: dict[Node, str] = {}
        order = topological(output)
        for node in order:
            role[node] = _role(node, source, role)
            lists[role[node]].append(node)
        return cls(
            output,
            source,
            tuple(lists["lines"]),
            tuple(lists["curves"]),
            tuple(t for t in lists["trees"] if isinstance(t, TreeEnsemble)),
            tuple(lists["steps"]),
            tuple(lists["head"]),
        )

    @cached_property
    def line_ends(self) -> tuple[Node, ...]:
        """Lines that a curve or the head reads, or that are the output."""
        return self._read(self.lines, (*self.curves, *self.head))

    @cached_property
    def curve_ends(self) -> tuple[Node, ...]:
        """Curves that the head reads, or that are the output."""
        return self._read(self.curves, self.head)

    @cached_property
    def head_lines(self) -> tuple[Node, ...]:
        """Lines that the head itself reads, or that are the output."""
        return self._read(self.lines, self.head)

    @property
    def joints(self) -> tuple[Node, ...]:
        """The continuous nodes that the head reads."""
        return (*self.curve_ends, *self.head_lines)

    @cached_property
    def step_ends(self) -> tuple[Node, ...]:
        """Trees and steps that the head reads, or that are the output."""
        return self._read((*self.trees, *self.steps), self.head)

    @cached_property
    def curve_levels(self) -> tuple[Levels, ...]:
        """Kinks inside the curves."""
        return tuple(x for x in map(levels_of, self.curves) if x is not None)

    @cached_property
    def head_levels(self) -> tuple[Levels, ...]:
        """Kinks of the head, and thresholds of trees that read something continuous."""
        return tuple(x for x in map(levels_of, self.head) if x is not None)

    @cached_property
    def head_trees(self) -> tuple[TreeEnsemble, ...]:
        """Trees that read something continuous: they jump where it passes a threshold."""
        return tuple(t for t in self.head if isinstance(t, TreeEnsemble))

    @cached_property
    def exact_trees(self) -> bool:
        """Whether trees read the outputs of other trees: there a rounding error could flip the side of a threshold."""
        return any(isinstance(n, TreeEnsemble) for n in (*self.steps, *self.head))

    @cached_property
    def steady_head(self) -> bool:
        """Whether the head's derivatives are constant between its kinks and the jumps of trees."""
        return all(isinstance(n, TreeEnsemble) or n.piecewise_linear for n in self.head)

    @cached_property
    def moved_columns(self) -> NDArray[np.bool_]:
        """The columns that lines and curves may depend on, (p,)."""
        return columns_read((*self.line_ends, *self.curve_ends), self.source)

    @cached_property
    def additive_ends(self) -> tuple[Node, ...]:
        """Where sums of functions of one column each end: what such a step gives to another kind, or as the output."""
        additive: set[Node] = set()
        for node in self.lines:
            if node.additive and all(p in additive for p in node.parents):
                additive.add(node)
        others = [n for n in (*self.lines, *self.curves, *self.head) if n not in additive]
        wanted = {p for n in others for p in n.parents} | {self.output}
        return tuple(n for n in self.lines if n in additive and n in wanted)

    @cached_property
    def programs(self) -> dict[Node | None, HeadProgram | None]:
        """The head as programs of the native core, once they are made: the whole, or above a tabulated node."""
        return {}

    @cached_property
    def line_program(self) -> LineProgram | None:
        """The lines as a net of the native core; None if it does not implement them."""
        from .mixed.traced import line_program

        return line_program(self)

    @cached_property
    def curve_program(self) -> CurveProgram | None:
        """The curves as a program of the native core; None if it does not implement them."""
        from .mixed.native_curves import CurveProgram

        return CurveProgram.of(self)

    @cached_property
    def sampled_chain(self) -> LayerChain | None:
        """Wide layers of units with kinks that may be evaluated at the ends of a few intervals only."""
        from .mixed.sampled import sampled_chain

        return sampled_chain(self)

    @cached_property
    def _plans(self) -> dict[tuple[tuple[Node, ...], frozenset[Node]], list[Node]]:
        return {}

    @cached_property
    def _transposed(self) -> dict[Node, Array]:
        return {}

    def transposed(self, node: Affine) -> Array:
        """The weights of a layer by unit, (source width, width), contiguous."""
        if node not in self._transposed:
            self._transposed[node] = np.ascontiguousarray(node.weight.T)
        return self._transposed[node]

    @cached_property
    def wide_units(self) -> WideUnits | None:
        """The layer that reads the lines, if it is the only one: wide, of smooth units, below one layer of sums."""
        first = [c for c in self.curves if set(c.parents) & set(self.lines)]
        units = first[0] if len(first) == 1 else None
        above = [c for c in self.curves if units in c.parents]
        slope = units.function.quadratic_slope if isinstance(units, Elementwise) else None
        if not isinstance(units, Elementwise) or slope is None or len(above) != 1 or units in self.curve_ends:
            return None
        sums, wide = above[0], units.width >= limits.WIDE_UNITS and units.width % limits.PULLED_UNITS == 0
        return WideUnits(units, sums, slope) if wide and isinstance(sums, Affine) else None

    @cached_property
    def above_wide(self) -> tuple[Node, ...]:
        """The curves above the sums over a wide layer of units."""
        wide = self.wide_units
        return () if wide is None else tuple(c for c in self.curves if c not in (wide.units, wide.sums))

    @cached_property
    def products(self) -> KeptProducts:
        """Products of two wide layers for the latest rows."""
        from .mixed.two_layers import KeptProducts

        return KeptProducts()

    def evaluate(self, wanted: tuple[Node, ...], known: dict[Node, Array]) -> dict[Node, Array]:
        """As `graph.evaluate`; which nodes have to be computed is worked out once and kept."""
        key = (wanted, frozenset(known))
        plan = self._plans.get(key)
        if plan is None:
            plan = self._plans[key] = needed(wanted, set(known))
        values = dict(known)
        for node in plan:
            values[node] = node.forward(*(values[p] for p in node.parents))
        return values

    def _read(self, nodes: tuple[Node, ...], readers: tuple[Node, ...]) -> tuple[Node, ...]:
        wanted = {p for r in readers for p in r.parents} | {self.output}
        return tuple(n for n in nodes if n in wanted)


class KeptRoles(dict[tuple[Input, bool], Roles]):
    """The roles found for a node, by the rows' node and whether the native core is used.

    They belong to the node itself: one that is pickled or copied begins without, as programs of the core cannot be.
    """

    def __reduce__(self) -> tuple[type[KeptRoles], tuple[()]]:
        return KeptRoles, ()


def _role(node: Node, source: Input, role: dict[Node, str]) -> str:
    """A node's role from those of the nodes that it reads."""
    if node is source:
        return "lines"
    if isinstance(node, TreeEnsemble) and node.source is source:
        return "trees"
    below = {role[p] for p in node.parents}
    if below <= {"trees", "steps"}:
        return "steps"
    if isinstance(node, TreeEnsemble) or below & {"trees", "steps", "head"}:
        return "head"
    if below == {"lines"} and node.piecewise_linear:
        return "lines"
    # The head finds kinks on a joint's interpolation, curves by evaluating all layers below: a rank of a net of three
    # layers of 1,000 takes 4 ms a pair in the place of 15.
    kinked = below == {"curves"} and node.parents[0].width == 1 and levels_of(node) is not None
    return "head" if kinked else "curves"


def pulled_back(node: Node, cotangent: Array, values: dict[Node, Array]) -> tuple[Array, ...]:
    """The cotangents of a node's parents, given the values of all nodes."""
    if not isinstance(node, Smooth):
        raise TypeError(f"{type(node).__name__} has no pullback.")
    return node.pullback_at(values[node], cotangent, *(values[p] for p in node.parents))


def pull_back(order: Iterable[Node], cotangents: dict[Node, Array], values: dict[Node, Array]) -> dict[Node, Array]:
    """Pull cotangents back through the nodes of `order`, parents before children; trees pass nothing on.

    Gives the cotangents of what the nodes read, given the values of all of them.
    """
    waiting = dict(cotangents)
    for node in reversed(tuple(order)):
        if node in waiting and not isinstance(node, TreeEnsemble):
            for parent, part in zip(node.parents, pulled_back(node, waiting.pop(node), values), strict=True):
                waiting[parent] = waiting[parent] + part if parent in waiting else part
    return waiting


def columns_read(outputs: tuple[Node, ...], source: Input) -> NDArray[np.bool_]:
    """Which columns of the rows `outputs` may depend on, (p,)."""
    out = np.zeros(source.width, np.bool_)
    for output in outputs:
        out |= columns_below(output, source)
    return out


def _once_for_each_node(find: Callable[[Node, Input], _Found]) -> Callable[[Node, Input], _Found]:
    """Cache a result on the node: for a single row, finding it again would cost as much as explaining the row."""

    @wraps(find)
    def kept_result(output: Node, source: Input) -> _Found:
        kept: dict[tuple[str, Input], _Found] = output.__dict__.setdefault("_found", {})
        key = (find.__name__, source)
        if key not in kept:
            found = find(output, source)
            if isinstance(found, np.ndarray):
                found.flags.writeable = False
            kept[key] = found
        return kept[key]

    return kept_result


@_once_for_each_node
def columns_below(output: Node, source: Input) -> NDArray[np.bool_]:
    """Which columns of the rows one node may depend on, (p,)."""
    out = np.zeros(source.width, np.bool_)
    out[sorted(union(_dependencies((output,), source)[output]))] = True
    return out


@_once_for_each_node
def own_columns(output: Node, source: Input) -> NDArray[np.int64] | None:
    """The one column of the rows that each output depends on, (width,); None where one depends on several."""
    read = _dependencies((output,), source)[output]
    if any(len(columns) > 1 for columns in read):
        return None
    return np.array([next(iter(columns), 0) for columns in read], np.int64)


@_once_for_each_node
def categories_read(output: Node, source: Input) -> NDArray[np.bool_]:
    """The columns that change at once, (p,): nominal ones, and what anything below `output` reads as a category."""
    read = _dependencies((output,), source)
    out = np.zeros(source.width, np.bool_)
    out[list(source.nominal)] = True
    for node in read:
        out[sorted(node.columns_at_once([read[p] for p in node.parents]))] = True
    return out


def input_columns(node: Node, source: Input) -> Columns:
    """For every column of a node, the columns of the rows it may depend on."""
    return _dependencies((node,), source)[node]


def _dependencies(outputs: tuple[Node, ...], source: Input) -> dict[Node, Columns]:
    """For every column of every node below `outputs`, the columns of the rows it may depend on."""
    read: dict[Node, Columns] = {}
    for node in topological(*outputs):
        read[node] = node.columns_behind([read[p] for p in node.parents])
    return read
