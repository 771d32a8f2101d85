"""The cases of a switch: values or bands of a column, checked and turned into a tree whose leaves are model numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..errors import InputError, kind_of
from ..graph import Column, Graph, Input, Tree, assemble
from ..graph.growing import Branch, Edge, Part, chained, grown


def is_plain_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


@dataclass(frozen=True)
class Cases:
    """Which model is used where; models by number, the default last where there is one."""

    models: list[Any]
    bands: list[tuple[float, float, int]]  # in order, or
    values: dict[Any, int]
    missing: int | None
    default: int | None

    @classmethod
    def of(cls, cases: Any, default: Any) -> Cases:
        """The cases and the default of `gigrad.switch`, after checking their keys."""
        if not isinstance(cases, Mapping) or not cases:
            raise InputError(f"cases must be a dict of values or bands to models, with one or more; got {cases!r:.60}.")
        models: list[Any] = []
        place: dict[int, int] = {}
        for model in (*cases.values(), *(() if default is None else (default,))):
            if id(model) not in place:
                place[id(model)] = len(models)
                models.append(model)
        keys = [k for k in cases if k is not None]
        banded = [isinstance(k, tuple) for k in keys]
        if any(banded) and not all(banded):
            raise InputError("The keys of cases must be all values or all bands (low, high), besides None; got both.")
        at = {k: place[id(cases[k])] for k in cases}
        missing = at.get(None, None if default is None else place[id(default)])
        fallback = None if default is None else place[id(default)]
        bands = _bands([(k, at[k]) for k in keys], fallback) if any(banded) else []
        return cls(models, bands, {} if any(banded) else {k: at[k] for k in keys}, missing, fallback)

    def without_missing(self, by: Any, models: Sequence[Graph | None], explicit: bool) -> Cases:
        """These cases, refusing a missing value of `by` where the model chosen for it refuses one."""
        model = None if self.missing is None else models[self.missing]
        if model is None or not any(c.name == by or j == by for j, c in enumerate(model.columns) if refuses_missing(c)):
            return self
        if explicit:
            raise InputError(
                f"The case None must lead to a model that takes a missing {by!r}, or does not read it; {model.label} "
                "reads it and refuses a missing value."
            )
        return replace(self, missing=None)

    def selector(self, by: Any, first: Graph, graphs: Sequence[Graph]) -> Graph:
        """A graph of the column `by` alone whose output is the number of the model to use."""
        if isinstance(by, (int, np.integer)) and not isinstance(by, bool):
            if not 0 <= by < len(first.columns):
                raise InputError(f"by must be a column from 0 to {len(first.columns) - 1}; got {by}.")
            names, at, named = first.feature_names, int(by), any(g.named for g in graphs)
        elif isinstance(by, str):
            names, at, named = (by,), 0, True
        else:
            raise InputError(f"by must be the name of a column or its position; got {kind_of(by)}.")
        columns = [Column(name, "unused") for name in names]
        source = Input(len(columns))
        if self.bands:
            columns[at] = Column(names[at], missing=self.missing is not None)
            tree = self._number_tree(at)
        else:
            columns[at] = Column(
                names[at],
                "category",
                tuple(self.values),
                missing=self.missing is not None,
                unknown="refuse" if self.default is None else "other",
            )
            tree = self._label_tree(at)
        node = assemble(source, [tree], np.zeros(1))
        return Graph(tuple(columns), source, node, node, ("segment",), named=named, label="switch")

    def _number_tree(self, column: int) -> Tree:
        """The tree for bands: a first split that separates missing values, then one split `x < edge` for each edge."""
        edges = [low for low, _, _ in self.bands[1:]]
        models: list[Part] = [float(k) for _, _, k in self.bands]
        bands = chained(models, lambda i, band, rest: Branch(column, band, rest, Edge.below(edges[i])))
        return grown(Branch(column, bands, float(self.missing or 0)))

    def _label_tree(self, column: int) -> Tree:
        """The tree for labels: a split for each set of codes; other codes go to the default, else to the last model."""
        codes: dict[int, list[int]] = {}
        for code, k in enumerate(self.values.values()):
            codes.setdefault(k, []).append(code)
        if self.missing is not None:
            codes.setdefault(self.missing, [])
        sets = {k: c for k, c in codes.items() if k != self.default}
        models = list(sets)
        rest = self.default if self.default is not None else models[-1]

        def split(i: int, part: Part, rest: Part) -> Branch:
            return Branch(column, part, rest, codes=sets[models[i]], missing_left=models[i] == self.missing)

        return grown(chained([*map(float, models), float(rest)], split))


def _bands(given: Sequence[tuple[Any, int]], default: int | None) -> list[tuple[float, float, int]]:
    """The bands in increasing order, with gaps filled by the default; an InputError if bands overlap or leave gaps."""
    found: list[tuple[float, float, int]] = []
    for key, k in given:
        ends = tuple(e if v is None else v for v, e in zip(key, (-math.inf, math.inf), strict=False))
        if len(key) != 2 or not all(is_plain_number(v) for v in ends) or not ends[0] < ends[1]:
            raise InputError(f"A band must be (low, high) with low < high, None for an open end; got {key!r:.60}.")
        found.append((float(ends[0]), float(ends[1]), k))
    found.sort()
    out: list[tuple[float, float, int]] = []
    reached = -math.inf
    for low, high, k in [*found, (math.inf, math.inf, -1)]:
        if low < reached:
            raise InputError(
                f"Bands must not overlap; ({out[-1][0]:g}, {out[-1][1]:g}) and ({low:g}, {high:g}) do from {low:g} on."
            )
        if low > reached:
            if default is None:
                raise InputError(
                    f"The cases must cover all numbers; none holds those from {reached:g} to {low:g}. Add a band, or "
                    "give a default."
                )
            out.append((reached, low, default))
        if k >= 0:
            out.append((low, high, k))
        reached = high
    return out


def refuses_missing(column: Column) -> bool:
    return column.kind != "unused" and not column.missing
