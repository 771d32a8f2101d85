"""Which columns have no values in between: the choice of discrete and nominal columns, made once for a whole graph.

Between 0 and 1 a flag has no values, and where a library puts its threshold in that gap is arbitrary: `x < 1`,
`x <= 0.5` and `x <= 1e-35` agree on every row that can exist. On a *discrete* column the place of every split is
therefore half-way between the two values of the column's support that it separates, so that credits depend only on the
model's decisions. A *nominal* column changes all at once, half-way, in the smooth parts of the model too.

The choice is part of the problem, like the reference: what the caller gives takes precedence, else `decide` uses the
reference's values and types and the thresholds of all trees. `under` returns the graph for a choice.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .columns import Column
from .model import Graph
from .node import Input, Node, topological
from .places import in_support
from .rewire import rewire
from .trees import TreeEnsemble

Bools = NDArray[np.bool_]
Support = tuple[float, ...] | None
"""The values that a discrete column takes; None stands for the whole numbers."""
Why = Literal["given", "type", "thresholds"]

_FARTHEST = 1e300
"""Larger thresholds, and infinite ones, only separate missing values and say nothing about the values."""
_NEAR = 1e-5
"""XGBoost stores splits that only separate missing values as 2.00001 or 1e-6, rounded to float32."""


@dataclass(frozen=True)
class Choice:
    """Which columns are discrete and which are nominal; all others are continuous, or categories of the model's own.

    Attributes
    ----------
    discrete : dict of str to tuple of float, or None
        The values that each discrete column takes, None for the whole numbers.
    nominal : tuple of str
    why : dict of str to "given", "type" or "thresholds"
        Why each discrete column is one: given by the caller, by the reference's type, or by the trees' thresholds.
    flags : tuple of str
        Columns that trees split on, whose reference values are all 0 or 1, and that are nevertheless neither.
    """

    discrete: dict[str, Support] = field(default_factory=dict)
    nominal: tuple[str, ...] = ()
    why: dict[str, Why] = field(default_factory=dict)
    flags: tuple[str, ...] = ()

    def as_record(self) -> dict[str, Any]:
        """The choice as JSON holds it, for provenance and files."""
        record: dict[str, Any] = {
            "discrete": {
                why: names for why in get_args(Why) if (names := [n for n in self.discrete if self.why[n] == why])
            }
        }
        values = {name: list(support) for name, support in self.discrete.items() if support is not None}
        if values:
            record["values"] = values
        record["nominal"] = list(self.nominal)
        if self.flags:
            record["flags_not_discrete"] = list(self.flags)
        return record

    @classmethod
    def from_record(cls, record: Any, columns: Sequence[Column], names: Sequence[str]) -> Choice:
        """The choice that `as_record` wrote, for columns called `names`; an InputError if the record is invalid."""
        discrete, nominal = words_of(record)
        why: dict[str, Why] = {n: w for w in get_args(Why) for n in record["discrete"].get(w, ())}
        word = Word.of(discrete, nominal, columns, names)
        flags = tuple(_names(record.get("flags_not_discrete", ()), "flags_not_discrete"))
        return cls({n: discrete[n] for n in names if n in discrete}, word.nominal, why, flags)


def words_of(record: Any) -> tuple[dict[str, Support], list[str]]:
    """The arguments `discrete` and `nominal` that reproduce a recorded choice; an InputError if it is invalid."""
    discrete = record.get("discrete") if isinstance(record, Mapping) else None
    values = record.get("values", {}) if isinstance(record, Mapping) else None
    if not isinstance(discrete, Mapping) or not isinstance(values, Mapping) or not set(discrete) <= set(get_args(Why)):
        raise InputError(
            f"A choice of columns must be an object whose 'discrete' lists names under {', '.join(get_args(Why))}."
        )
    names = [name for listed in discrete.values() for name in _names(listed, "discrete")]
    if len(set(names)) < len(names) or not set(values) <= set(names):
        raise InputError("A choice of columns must name each discrete column once, and give values of no others.")
    return {n: _support(n, values.get(n)) for n in names}, _names(record.get("nominal", ()), "nominal")


@dataclass(frozen=True, eq=False)
class Evidence:
    """What tables show about columns; (p,) each.

    Attributes
    ----------
    integer : (p,) bool
        Whether the column's type is boolean or integer.
    whole : (p,) bool
        Whether no row holds a finite value that is not whole. All true where there is no reference.
    flag : (p,) bool
        Whether all values are 0 or 1, and both occur. All false where there is no reference.
    """

    integer: Bools
    whole: Bools
    flag: Bools


@dataclass(frozen=True)
class Word:
    """The discrete and nominal columns given by the caller, checked; `discrete` is None for the default rule."""

    discrete: dict[str, Support] | None
    nominal: tuple[str, ...]

    @classmethod
    def of(cls, discrete: Any, nominal: Any, columns: Sequence[Column], names: Sequence[str]) -> Word:
        """Read `discrete` (None, names, or a mapping of names to values) and `nominal` (None or names)."""
        supports: dict[str, Support] | None = None
        if isinstance(discrete, Mapping):
            supports = {str(name): _support(name, values) for name, values in discrete.items()}
        elif discrete is not None:
            supports = dict.fromkeys(_names(discrete, "discrete"))
        at_once = tuple(dict.fromkeys(_names(() if nominal is None else nominal, "nominal")))
        kinds = dict(zip(names, (c.kind for c in columns), strict=True))
        for what, given in (("discrete", supports or {}), ("nominal", at_once)):
            for name in given:
                if name not in kinds:
                    raise InputError(
                        f"{what} must name columns of the model; {name!r} is not one of its {len(names)} columns "
                        f"({_brief(names)})."
                    )
                if kinds[name] == "category":
                    raise InputError(
                        f"{what} must name columns of numbers; {name!r} is a category, which changes all at once as it "
                        "is. Leave it out."
                    )
        both = [name for name in supports or {} if name in at_once]
        if both:
            raise InputError(f"A column is discrete or nominal, not both; {both[0]!r} is in both lists.")
        return cls(supports, at_once)


def decide(graph: Graph, names: Sequence[str], evidence: Evidence, discrete: Any = None, nominal: Any = None) -> Choice:
    """The choice for a whole graph, whose columns are called `names`.

    What the caller gives takes precedence. By default a column that trees split on is discrete if its finite reference
    values are all whole, and its type in the reference is boolean or integer or every threshold on it lies within a
    unit of float32 or 1e-5 of a multiple of one half. On columns that no tree splits on it has no effect.
    """
    word = Word.of(discrete, nominal, graph.columns, names)
    split, halves = _thresholds(graph)
    number = np.array([c.kind == "number" for c in graph.columns], np.bool_)
    free = number & split & np.array([name not in word.nominal for name in names], np.bool_)
    if word.discrete is None:
        why: dict[str, Why] = {}
        for j in np.flatnonzero(free & evidence.whole & (evidence.integer | halves)).tolist():
            why[names[j]] = "type" if evidence.integer[j] else "thresholds"
        supports: dict[str, Support] = dict.fromkeys(why)
    else:
        supports = {name: word.discrete[name] for name in names if name in word.discrete}
        why = dict.fromkeys(supports, "given")
    flags = tuple(names[j] for j in np.flatnonzero(free & evidence.flag).tolist() if names[j] not in supports)
    return Choice(supports, word.nominal, why, flags)


def under(
    graph: Graph, choice: Choice, names: Sequence[str], *nodes: Node, share: float = 0.5
) -> tuple[Graph, tuple[Node, ...]]:
    """The graph with the places of splits that a choice implies, and the new nodes for some of its nodes.

    `graph` is one as importers return it, with columns called `names`. On discrete columns the place of a split is at
    `share` of the way from the smaller to the larger of two values: one half, except to test what depends on that.
    """
    position = {name: j for j, name in enumerate(names)}
    supports = {position[name]: support for name, support in choice.discrete.items()}
    nominal = tuple(sorted(position[name] for name in choice.nominal))
    source = Input(graph.input.size, nominal) if nominal else graph.input
    outputs = (*_outputs(graph), *nodes)
    new: dict[Node, Node] = {graph.input: source}
    for tree in topological(*outputs):
        if isinstance(tree, TreeEnsemble) and tree.source is graph.input:
            new[tree] = _placed(tree, source, supports, nominal, share)
    if all(a is b for a, b in new.items()):
        return graph, nodes
    moved = rewire(outputs, new)
    witnesses = tuple(
        replace(w, node=moved[w.node], source=None if w.source is None else moved[w.source]) for w in graph.witnesses
    )
    placed = replace(graph, input=source, score=moved[graph.score], margin=moved[graph.margin], witnesses=witnesses)
    return placed, tuple(moved[node] for node in nodes)


def _placed(
    trees: TreeEnsemble, source: Input, supports: Mapping[int, Support], nominal: Sequence[int], share: float
) -> TreeEnsemble:
    """The same trees with the places of their splits on discrete and nominal columns."""
    numeric = (trees.feature >= 0) & (trees.category_set < 0)
    place, low, high = trees.place.copy(), trees.equal_low.copy(), trees.equal_high.copy()
    for j, support in supports.items():
        mine = np.flatnonzero(numeric & (trees.feature == j))
        half = in_support(trees.threshold[mine], None if support is None else np.array(support), share)
        mine, half = mine[~np.isnan(half)], half[~np.isnan(half)]
        # No value counts as equal to the stored threshold any more: it crosses at the place like all others.
        place[mine] = low[mine] = high[mine] = half
    place[numeric & np.isin(trees.feature, nominal)] = np.nan
    if source is trees.source and np.array_equal(place, trees.place, equal_nan=True):
        return trees
    placed = replace(trees, source=source, place=place, equal_low=low, equal_high=high)
    trees.forget_native()  # the imported trees are only kept for saving
    return placed


def _thresholds(graph: Graph) -> tuple[Bools, Bools]:
    """Which columns some tree has a numeric threshold on, and where all of them are near multiples of one half."""
    split, odd = (np.zeros(graph.input.width, np.bool_) for _ in range(2))
    for tree in topological(*_outputs(graph)):
        if isinstance(tree, TreeEnsemble) and tree.source is graph.input:
            counted = (tree.feature >= 0) & (tree.category_set < 0) & (np.abs(tree.place) <= _FARTHEST)
            column, place = tree.feature[counted], np.abs(tree.place[counted])
            unit = np.spacing(np.minimum(place, 2.0**24).astype(np.float32))
            far = np.abs(place - np.rint(2.0 * place) / 2.0) > unit + _NEAR
            split[column] = True
            odd[column[far]] = True
    return split, split & ~odd


def _outputs(graph: Graph) -> tuple[Node, ...]:
    """The nodes of a graph that together depend on all of its nodes."""
    sources = (w.source for w in graph.witnesses if w.source is not None)
    return (graph.score, graph.margin, *(w.node for w in graph.witnesses), *sources)


def _names(given: Any, what: str) -> list[str]:
    """The column names that the caller gives, as texts."""
    if isinstance(given, (str, bytes, Mapping)) or not isinstance(given, Collection):
        example = (
            '["owns_home"]' if what == "nominal" else '["owns_home"] or a dict of values such as {"term": [36, 60]}'
        )
        raise InputError(f"{what} must be a list of column names such as {example}; got {given!r:.80}.")
    return [str(name) for name in given]


def _support(name: Any, values: Any) -> Support:
    """The values of a discrete column, in order; None for the whole numbers."""
    if values is None:
        return None
    try:
        found = np.unique(np.asarray(values, dtype=np.float64))
    except (TypeError, ValueError):
        found = np.zeros(0)
    if len(found) < 2 or not np.isfinite(found).all():
        raise InputError(
            f"The values of {name!r} in discrete must be two or more different finite numbers, or None for the whole "
            f"numbers; got {values!r:.80}."
        )
    return tuple(found.tolist())


def _brief(names: Collection[str], most: int = 8) -> str:
    shown = ", ".join(list(names)[:most])
    return shown if len(names) <= most else f"{shown}, and {len(names) - most} more"
