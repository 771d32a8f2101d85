"""Several models over one shared table: the union of their columns, each model reading its own.

Columns are matched by name where models have column names, by position elsewhere:

- models with column names: the union, in the order in which the models first name them;
- models that do not (a torch net, a model fitted on an array) beside those that do: by position, so all that know names
  must name the same columns in the same order;
- no names at all: by position, the same number of columns in each.

A column that all read as a number is a number, and may be missing if all accept a missing value. If a model reads it as
a category with labels, it is a category for all, since a variable either moves or changes at once: the labels are
merged, and a model that reads the column unencoded (a number, an integer code) reads the label itself. Labels that a
model would refuse are refused; so are labels unknown to all, unless the models treat them alike. A model that does not
use a column does not matter for its type.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .columns import Column
from .encode import Lookup
from .forests import with_sets, words_of
from .model import Graph
from .node import Array, Concat, Input, Node, Select, topological
from .rewire import with_parents
from .sets import contains
from .trees import TreeEnsemble

if TYPE_CHECKING:
    from .._io.tables import Rows


def merge(graphs: Sequence[Graph]) -> tuple[Graph, ...]:
    """The same models, in the same order, over one shared Input; all have the same `columns`, `input` and `named`."""
    if not graphs:
        raise InputError("merge needs at least one model; got none.")
    positions, names = _positions(graphs)
    readers: list[list[tuple[Graph, Column]]] = [[] for _ in names]
    for graph, places in zip(graphs, positions, strict=True):
        for place, column in zip(places, graph.columns, strict=True):
            readers[place].append((graph, column))
    columns = tuple(_joined(name, r) for name, r in zip(names, readers, strict=True))
    shared, named = Input(len(columns)), any(g.named for g in graphs)
    done: dict[int, Graph] = {}
    for graph, places in zip(graphs, positions, strict=True):
        if id(graph) not in done:
            done[id(graph)] = _moved(graph, _Reader(places, graph.columns, columns), shared, named)
    return tuple(done[id(g)] for g in graphs)


# ---------------------------------------------------------------- which column is which


def _positions(graphs: Sequence[Graph]) -> tuple[list[tuple[int, ...]], list[str]]:
    """For every graph the positions of its columns among the merged ones, and the merged names."""
    named = [g for g in graphs if g.named]
    names = list(dict.fromkeys(n for g in (named or graphs[:1]) for n in g.feature_names))
    place = {name: i for i, name in enumerate(names)}
    agree = all(g.feature_names == named[0].feature_names for g in named)
    out: list[tuple[int, ...]] = []
    for graph in graphs:
        if graph.named:
            out.append(tuple(place[n] for n in graph.feature_names))
            continue
        if not agree or len(graph.columns) != len(names):
            raise InputError(_unmatched(graph, graphs[0], bool(named), len(names)))
        out.append(tuple(range(len(names))))
    return out, names


def _unmatched(graph: Graph, first: Graph, named: bool, width: int) -> str:
    """Why the columns of two models cannot be matched, and what to do."""
    cure = "Name its columns: gigrad.import_model(model).with_columns([...])."
    if named:
        return (
            f"{graph.label} does not know its columns by name, so the other models must have the same columns in the "
            f"same order; it has {len(graph.columns)}, they name {width} in all. {cure}"
        )
    return (
        "Models that do not know their columns by name must have the same number of them; "
        f"{graph.label} has {len(graph.columns)} and {first.label} {width}. {cure}"
    )


def _joined(name: str, readers: Sequence[tuple[Graph, Column]]) -> Column:
    """The merged column for all models that read it."""
    readers = [(g, c) for g, c in readers if c.kind != "unused"] or readers[:1]
    columns = [c for _, c in readers]
    missing = all(c.missing for c in columns)
    if len({(c.missing_value, c.compared_in) for c in columns}) > 1:
        raise InputError(
            f"Column {name!r} must mean the same to all models; a value that some of them take for a missing one "
            f"({', '.join(sorted({str(c.missing_value) for c in columns} - {'None'}))}) is a number to others."
        )
    missing_value = columns[0].missing_value
    labelled = [c for c in columns if c.labels is not None]
    if any(c.known_as != "label" for c in labelled):
        return _joined_hashes(name, readers, missing)
    if not labelled:
        if len({c.kind for c in columns}) > 1:
            number = next(g.label for g, c in readers if c.kind == "number")
            codes = next(g.label for g, c in readers if c.kind == "category")
            raise InputError(
                f"Column {name!r} must be a number or a category for all models; {number} reads it as a number and "
                f"{codes} as a category of unknown labels. Fit the latter on a labelled category."
            )
        least, most = ([v for c in columns if (v := getattr(c, end)) is not None] for end in ("least", "most"))
        fills = {c.fill for c in columns}
        return replace(
            columns[0], name=name, missing=missing, least=max(least, default=None), most=min(most, default=None),
            fill=fills.pop() if len(fills) == 1 else float("nan"),
        )  # fmt: skip
    as_it_comes = [g.label for g, c in readers if c.labels is None]
    refusing = [set(c.labels) for c in labelled if c.labels is not None and c.unknown == "refuse"]
    union = dict.fromkeys(label for c in labelled for label in c.labels or ())
    labels = tuple(label for label in union if all(label in known for known in refusing))
    odd = [v for v in labels if not _is_number(v)]
    if as_it_comes and odd:
        raise InputError(
            f"Column {name!r} must mean the same to all models; {as_it_comes[0]} reads it as a number and "
            f"{next(g.label for g, c in readers if c.labels is not None)} as a category with labels such as {odd[0]!r}."
        )
    rules = {c.unknown for c in labelled}
    agreed = len(rules) == 1 and not as_it_comes
    return Column(name, "category", labels, missing, rules.pop() if agreed else "refuse", missing_value)


def _joined_hashes(name: str, readers: Sequence[tuple[Graph, Column]], missing: bool) -> Column:
    """The merged column if some models store only hashes of its labels: the others' labels are hashed too."""
    columns = [c for _, c in readers]
    if any(c.labels is None for c in columns):
        other = next(g.label for g, c in readers if c.labels is None)
        raise InputError(f"Column {name!r} must mean the same to all models; {other} reads it as a number, others not.")
    plain = [(g, c) for g, c in readers if c.known_as == "label"]
    if plain:
        return replace(_joined(name, plain), missing=missing, unknown="refuse")
    labels = tuple(dict.fromkeys(label for c in columns for label in c.labels or ()))
    return replace(columns[0], labels=labels, missing=missing)


def _by_hash(column: Column, hashes: Sequence[object]) -> Array:
    return replace(column, known_as="label").codes(hashes)


def _is_number(label: object) -> bool:
    return isinstance(label, (int, float, np.integer, np.floating, np.bool_))


# ---------------------------------------------------------------- a model rewritten to read the merged columns


@dataclass(frozen=True, eq=False)
class _Reader:
    """The mapping from the merged columns to one model's own."""

    places: tuple[int, ...]  # of its columns among the merged ones
    own: tuple[Column, ...]
    joined: tuple[Column, ...]

    @cached_property
    def recoded(self) -> dict[int, Array]:
        """For its columns whose codes differ: for every merged code, the value that the model itself reads."""
        out: dict[int, Array] = {}
        for j, (place, column) in enumerate(zip(self.places, self.own, strict=True)):
            labels = self.joined[place].labels
            if labels is None or labels == column.labels or column.kind == "unused":
                continue
            if column.labels is None:
                out[j] = np.array([float(v) for v in labels])
            else:
                codes = column.codes(labels) if self.joined[place].known_as == "label" else _by_hash(column, labels)
                out[j] = np.where(codes < 0, np.nan, codes) if column.unknown == "missing" else codes
        return out

    @cached_property
    def same(self) -> bool:
        return not self.recoded and self.places == tuple(range(len(self.joined)))

    def rows(self, rows: Rows) -> Rows:
        """The rows as this model reads them: its columns, in its order and its own codes."""
        if self.same:
            return rows
        matrix = rows.matrix[:, list(self.places)]
        for j, values in self.recoded.items():
            matrix[:, j] = _recode(matrix[:, j], values)
        return rows.select(self.places, matrix)

    def view(self, shared: Input) -> Node:
        """A node over the shared Input with exactly the output of the model's own Input."""
        if self.same:
            return shared
        if not self.recoded:
            return Select(shared, self.places)
        parts: list[Node] = []
        for j, place in enumerate(self.places):
            if j in self.recoded:
                table = self.recoded[j][:, None]
                parts.append(Lookup(shared, place, table, np.array([-1.0]), np.array([np.nan])))
            else:
                parts.append(Select(shared, (place,)))
        return Concat(tuple(parts))


def _recode(codes: Array, values: Array) -> Array:
    """Codes of one model as those of the merged column; unknown ones become -1."""
    out = np.where(np.isnan(codes), np.nan, -1.0)
    known = (codes >= 0) & (codes < len(values))
    out[known] = values[codes[known].astype(np.int64)]
    return out


def _moved(graph: Graph, reader: _Reader, shared: Input, named: bool) -> Graph:
    """A graph rewritten to read the merged columns, with its witnesses."""
    new: dict[Node, Node] = {graph.input: reader.view(shared)}
    sources = [w.source for w in graph.witnesses if w.source is not None]
    for node in topological(graph.score, graph.margin, *(w.node for w in graph.witnesses), *sources):
        if node not in new:
            new[node] = _on_columns(node, graph.input, reader, shared) or with_parents(node, new)
    witnesses = tuple(
        w.behind(new[w.node], reader.rows) if w.source is None else replace(w, node=new[w.node], source=new[w.source])
        for w in graph.witnesses
    )
    return replace(
        graph, columns=reader.joined, input=shared, score=new[graph.score], margin=new[graph.margin],
        witnesses=witnesses, named=named,
    )  # fmt: skip


def _on_columns(node: Node, old: Input, reader: _Reader, shared: Input) -> Node | None:
    """The node reading the shared columns directly, which keeps trees on the fastest path; None if it cannot."""
    if isinstance(node, TreeEnsemble) and node.source is old:
        return _trees_on_columns(node, reader, shared)
    if isinstance(node, Select) and node.source is old and not set(node.columns) & set(reader.recoded):
        return Select(shared, tuple(reader.places[j] for j in node.columns))
    if isinstance(node, Lookup) and node.source is old:
        place = reader.places[node.column]
        if node.column not in reader.recoded:
            return replace(node, source=shared, column=place)
        codes = np.zeros((len(reader.recoded[node.column]), old.width))
        codes[:, node.column] = reader.recoded[node.column]
        return replace(node, source=shared, column=place, table=node.forward(codes))
    return None


def _trees_on_columns(trees: TreeEnsemble, reader: _Reader, shared: Input) -> TreeEnsemble:
    """The trees of a model, reading the merged columns and their codes."""
    split = trees.feature >= 0
    feature = trees.feature.copy()
    feature[split] = np.array(reader.places, np.int32)[trees.feature[split]]
    left: dict[int, NDArray[np.bool_]] = {}
    for node in np.nonzero(np.isin(trees.feature, list(reader.recoded)) & split)[0].tolist():
        # a split becomes the set of merged codes that go left; a numeric one the set of labels up to its threshold
        values = reader.recoded[int(trees.feature[node])]
        left[node] = np.where(np.isnan(values), trees.missing_left[node], _goes_left(trees, node, values))
    return with_sets(trees, left, source=shared, feature=feature)


def _goes_left(trees: TreeEnsemble, node: int, values: Array) -> NDArray[np.bool_]:
    """Whether each of some values of its column goes left at a split; missing ones are not decided here."""
    which = int(trees.category_set[node])
    if which < 0:
        return np.asarray(values <= trees.threshold[node])
    return contains(words_of(trees, which), np.nan_to_num(values, nan=-1.0))
