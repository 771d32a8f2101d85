"""The search for the smallest changes of one and of two columns that cross a cutoff.

Changes are tried from the cheapest on, so that the first that crosses is the smallest of those searched; a limit on how
many are tried leaves a cost up to which every one was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from ..graph import Array, value_of
from .changed_rows import Edit
from .moves import Field, Moves

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Pair = tuple[Moves, Moves]
Chosen = tuple[Ints, Ints]
Crosses = Callable[[Array], Bools]
Verify = Callable[[Sequence[Edit]], Bools]

BATCH = 20_000
"""Changes of two columns that are tried at once."""
HALVINGS = 40


@dataclass(frozen=True)
class Found:
    """A change that crosses."""

    edit: Edit
    cost: float
    complete: bool  # whether every cheaper change of these columns was tried


@dataclass(frozen=True)
class Searched:
    """How far changes of two columns were searched.

    Attributes
    ----------
    tried, of : int
        How many were tried, of how many.
    upto : float
        Every one that costs less was tried.
    """

    tried: int
    of: int
    upto: float


@dataclass(frozen=True, eq=False)
class Search:
    """Tests whether changed rows cross the cutoff, by the graph's score and by the model's own prediction.

    Attributes
    ----------
    field : Field
    crosses : callable
        Whether scores cross.
    in_doubt : callable
        Whether scores are so near the cutoff that the model's own may lie on its other side: a cutoff is often a score
        that the model gave, which the graph reproduces only up to rounding.
    verify : callable
        Whether changes cross by the model's own prediction.
    """

    field: Field
    crosses: Crosses
    in_doubt: Crosses
    verify: Verify

    def passes(self, columns: Sequence[int], values: Sequence[Array]) -> Bools:
        """Whether the row crosses with `columns` set to each of m values, (m,)."""
        rows = np.repeat(self.field.row[None], len(values[0]), axis=0)
        for column, new in zip(columns, values, strict=True):
            rows[:, column] = new
        return self._passing(rows, lambda i: {c: float(rows[i, c]) for c in columns})

    def _passing(self, rows: Array, edit: Callable[[int], Edit]) -> Bools:
        """Whether changed rows cross, (m,): by the graph, or if in doubt by the model; `edit(i)` is row i's change."""
        score = value_of(self.field.node, {self.field.source: rows})[:, 0]
        out, unsure = self.crosses(score), np.flatnonzero(self.in_doubt(score)).tolist()
        if unsure:
            out[unsure] = self.verify([edit(i) for i in unsure])
        return out

    def alone(self, moves: Moves) -> Found | None:
        """The smallest change of one column that crosses and is verified."""
        if not len(moves):
            return None
        for i in np.flatnonzero(self.passes([moves.column], [moves.values])).tolist():
            edit = {moves.column: float(moves.values[i])}
            if not moves.complete:
                edit = self._nearer(edit, {moves.column: moves})
            if self.verify([edit])[0]:
                return Found(edit, self.cost_of(edit), moves.complete)
        return None

    def cost_of(self, edit: Edit) -> float:
        return float(sum(self.field.cost(c, np.array([v]))[0][0] for c, v in edit.items()))

    def together(self, moves: Sequence[Moves], top: int, most: int) -> tuple[list[Found], Searched]:
        """The smallest changes of two columns that cross, of at most `top` pairs of columns, and how far was searched.

        No move in `moves` may cross alone: a pair with such a one is larger than the move itself.
        """
        pairs = list(combinations([m for m in moves if len(m)], 2))
        total = sum(len(a) * len(b) for a, b in pairs)
        found: dict[tuple[int, int], Found] = {}
        tried, upto = 0, 0.0
        for limit, batch in _by_cost(pairs, most):
            tried += sum(len(i) for _, (i, _) in batch)
            crossing = self._crossing(batch)
            for ((a, b), (i, j)), ok in zip(batch, crossing, strict=True):
                if (a.column, b.column) not in found and ok.any():
                    best = self._best(a, b, i[ok], j[ok])
                    if best is not None:
                        found[a.column, b.column] = best
            upto = limit
            if len(found) >= top:
                break
        ranked = sorted(found.values(), key=lambda f: f.cost)
        return ranked[:top], Searched(tried, total, np.inf if tried == total else upto)

    def _crossing(self, batch: Sequence[tuple[Pair, Chosen]]) -> list[Bools]:
        """Which changes of each pair of columns cross, evaluated in one batch."""
        sizes = [len(i) for _, (i, _) in batch]
        ends = np.cumsum(sizes)
        rows = np.repeat(self.field.row[None], ends[-1], axis=0)
        for ((a, b), (i, j)), size, end in zip(batch, sizes, ends.tolist(), strict=True):
            part = slice(end - size, end)
            rows[part, a.column], rows[part, b.column] = a.values[i], b.values[j]

        def edit(row: int) -> Edit:
            a, b = batch[int(np.searchsorted(ends, row, side="right"))][0]
            return {m.column: float(rows[row, m.column]) for m in (a, b)}

        return np.split(self._passing(rows, edit), ends[:-1])

    def _best(self, a: Moves, b: Moves, i: Ints, j: Ints) -> Found | None:
        """The cheapest of some crossing changes of two columns that is verified."""
        complete = a.complete and b.complete
        for k in np.lexsort((a.far[i] + b.far[j], a.cost[i] + b.cost[j])).tolist():
            edit = {a.column: float(a.values[i[k]]), b.column: float(b.values[j[k]])}
            if not complete:
                nearer = self._nearer(edit, {a.column: a, b.column: b})
                if not any(self.passes([c], [np.array([v])])[0] for c, v in nearer.items()):  # else one suffices
                    edit = nearer
            if self.verify([edit])[0]:
                return Found(edit, self.cost_of(edit), complete)
        return None

    def _nearer(self, edit: Edit, moves: dict[int, Moves]) -> Edit:
        """The same change with each number moved back towards the row as far as it still crosses, by halving."""
        edit = dict(edit)
        for column, one in moves.items():
            now, grid = float(self.field.row[column]), one.grid
            if one.complete or grid is None or np.isnan(now):
                continue
            good, bad = edit[column], now
            for _ in range(HALVINGS):
                middle = 0.5 * (good + bad)
                # the allowed number next to the middle, on the side away from the row
                tried = grid.first_above(middle, np.inf) if good > bad else grid.last_upto(middle, -np.inf)
                if tried is None or not min(good, bad) <= tried <= max(good, bad) or tried in (good, bad):
                    break
                trial = {**edit, column: tried}
                if self.passes(list(trial), [np.array([v]) for v in trial.values()])[0]:
                    good = tried
                else:
                    bad = tried
            edit[column] = good
        return edit


def _by_cost(pairs: Sequence[Pair], most: int) -> Iterator[tuple[float, list[tuple[Pair, Chosen]]]]:
    """Batches of changes of two columns in order of cost, about `most` in all: each batch's cost limit and changes."""
    low, given = -1.0, 0
    total = sum(len(a) * len(b) for a, b in pairs)
    while given < min(total, most):
        high = _limit(pairs, min(given + BATCH, most, total))
        if _count(pairs, high) == given:  # more changes of equal cost than a batch holds
            high = _above(pairs, low)
            if _count(pairs, high) > most:
                return
        batch = [((a, b), _between(a, b, low, high)) for a, b in pairs]
        given = _count(pairs, high)
        yield high, [(pair, chosen) for pair, chosen in batch if len(chosen[0])]
        low = high


def _count(pairs: Sequence[Pair], limit: float) -> int:
    """How many changes cost at most `limit`."""
    return sum(int(np.searchsorted(b.cost, limit - a.cost, side="right").sum()) for a, b in pairs)


def _limit(pairs: Sequence[Pair], wanted: int) -> float:
    """A cost, close to the largest possible, such that at most `wanted` changes cost no more."""
    low, high = 0.0, max((float(a.cost[-1] + b.cost[-1]) for a, b in pairs), default=0.0)
    if _count(pairs, high) <= wanted:
        return high
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if _count(pairs, middle) <= wanted else (low, middle)
    return low


def _above(pairs: Sequence[Pair], low: float) -> float:
    """The least cost above `low`."""
    sums = [a.cost[:, None] + b.cost for a, b in pairs]
    return min(float(s[s > low].min(initial=np.inf)) for s in sums)


def _between(a: Moves, b: Moves, low: float, high: float) -> Chosen:
    """The changes of two columns that cost more than `low` and at most `high`."""
    first = np.searchsorted(b.cost, low - a.cost, side="right")
    last = np.searchsorted(b.cost, high - a.cost, side="right")
    i = np.repeat(np.arange(len(a)), last - first)
    j = np.concatenate([np.arange(f, t) for f, t in zip(first, last, strict=True)]) if len(i) else i
    return i, j.astype(np.int64)
