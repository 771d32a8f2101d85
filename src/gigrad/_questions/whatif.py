"""What would have to change: the curve of every variable, and the smallest changes that cross the cutoff."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from .._common import checks, display
from .._common.optional import frame_library
from .._explain.explainer import Explainer
from .._io import provenance
from .._io.tables import Rows, read_rows, under_names
from ..errors import InputError, kind_of
from ..graph.witness import LOW_PRECISION
from ..references.direction import agreed_direction, passing
from .changed_rows import Edit, changed, raw_value
from .curves import Curve, curve_of
from .moves import Field, Moves
from .rules import Rule, read_rules
from .search import Found, Search, Searched


@dataclass(frozen=True)
class Change:
    """A change of one or two columns that crosses the cutoff, by the model's own prediction.

    Attributes
    ----------
    features : tuple of str
    before, after : tuple
        The values, as a table holds them; None where missing.
    score : float
        The model's own, after the change.
    cost : float
        The share of the reference that the change passes over, added up; or by the prices that were given.
    exhaustive : bool
        Whether every allowed change of these columns that costs less was tried.
    """

    features: tuple[str, ...]
    before: tuple[Any, ...]
    after: tuple[Any, ...]
    score: float
    cost: float
    exhaustive: bool

    @property
    def lines(self) -> list[str]:
        """A line for each column: its name, its old value and its new one."""
        return [
            f"{f}: {display.text(a)} -> {display.text(b)}"
            for f, a, b in zip(self.features, self.before, self.after, strict=True)
        ]

    def __str__(self) -> str:
        return ", ".join(self.lines)


@dataclass(frozen=True, eq=False, repr=False)
class WhatIf:
    """What would have to change for one row to pass.

    Attributes
    ----------
    score, cutoff : float
        The row's score as the model itself gives it, and the passing score.
    higher_is_better : bool
    passes : bool
        Whether the row passes as it is; nothing is searched then.
    curves : dict of str to Curve
        The score along each variable.
    single : tuple of Change
        For each variable that can do it alone, its smallest change that crosses; the smallest first.
    double : tuple of Change
        The smallest changes of two variables of which neither crosses alone, one for each pair; the smallest first.
    impossible : tuple of str
        Variables of which every allowed value was tried and none crosses alone.
    searched : Searched
        How many changes of two variables there are and were tried, and up to which cost all were.
    provenance : dict

    Examples
    --------
    >>> import gigrad as gig
    >>> explainer = gig.Explainer(tree, [[0, 0], [0, 1], [1, 0], [1, 1]])
    >>> found = gig.what_if(explainer, [[0, 1]], cutoff=3, higher_is_better=True)
    >>> print(found.single[0], found.single[0].score)
    x0: 0 -> 1 4.0
    >>> found.curves["x0"].breakpoints.round(6), found.curves["x0"].scores
    (array([0.5]), array([1., 4.]))
    """

    score: float
    cutoff: float
    higher_is_better: bool
    passes: bool
    curves: dict[str, Curve]
    single: tuple[Change, ...]
    double: tuple[Change, ...]
    impossible: tuple[str, ...]
    searched: Searched
    provenance: dict[str, Any]

    def to_frame(self, *, library: Literal["pandas", "polars"] = "pandas") -> Any:
        """A line for each change, the smallest first: features, change, score, cost, exhaustive."""
        changes = sorted((*self.single, *self.double), key=lambda c: c.cost)
        made = {
            "features": [" and ".join(c.features) for c in changes],
            "change": [str(c) for c in changes],
            "score": [c.score for c in changes],
            "cost": [c.cost for c in changes],
            "exhaustive": [c.exhaustive for c in changes],
        }
        return frame_library(checks.library(library)).DataFrame(made)

    def __repr__(self) -> str:
        sign = ">=" if self.higher_is_better else "<="
        first = f"score {display.number(self.score)}; to pass it must be {sign} {display.number(self.cutoff)}"
        if self.passes:
            return f"{first}: it passes"
        lines = [first]
        for title, found in (("one variable", self.single), ("two variables", self.double)):
            lines.append(f"  {title}:" if found else f"  {title}: none found")
            for change in found[:5]:
                sampled = "" if change.exhaustive else " (sampled)"
                lines.append(f"    cost {change.cost:.3f}{sampled}, score {display.number(change.score)}")
                lines += [f"      {line}" for line in change.lines]
        s = self.searched
        whole = "all" if s.tried == s.of else f"all up to cost {s.upto:.3f},"
        lines.append(f"  changes of two variables: {whole} {s.tried:,} of {s.of:,} tried")
        return "\n".join(lines)


def what_if(
    explainer: Explainer,
    row: Any,
    *,
    cutoff: float | None = None,
    higher_is_better: bool | None = None,
    rules: Mapping[str, Any] | None = None,
    prices: Mapping[str, float] | None = None,
    top: int = 5,
    most: int = 200_000,
) -> WhatIf:
    """Find the smallest changes of one and of two variables with which a row would pass.

    It describes the model's score of a changed row, not the effect of a change in the real world.

    Parameters
    ----------
    explainer : Explainer
        Of one output. Its reference says which values there are and how far apart they lie.
    row : table of one row
    cutoff, higher_is_better
        The passing score, and which side of it passes. By default those of the explainer's reference, where it was
        built from scores of the explained output (`gigrad.references.approved`).
    rules : mapping of str to rule, optional
        For a column "frozen", "up", "down" or "any" (the default), or a dict with `direction`, `step` (new values are
        its multiples), `low`, `high` and `values` (the only new values). By default numbers stay within the range of
        the reference and move in whole steps if the column is discrete, in steps of the last decimal of the reference's
        values if they have at most four, else freely. No value becomes missing; a missing one may become known.
        Columns in a group of the explainer, such as dummies, are left as they are.
    prices : mapping of str to float, optional
        What a unit of a column costs, or another category. By default a change costs the share of the reference between
        the old value and the new one, and another category 1.
    top : int
        How many pairs of variables to find changes for.
    most : int
        How many changes of two variables to try at most, from the cheapest on.

    Notes
    -----
    Where only trees read a column, the score is constant between thresholds, so that one value of each piece represents
    all of it and the search is exhaustive; so it is where a column may take at most 5,000 values. Other columns are
    tried at 200 points and beside every threshold, and changes that cross are reduced by bisection: `exhaustive` is
    False there, and a smaller change may exist. A freely moving number is rounded to as few digits as its piece allows.

    Examples
    --------
    >>> import gigrad as gig
    >>> explainer = gig.Explainer(model, approved)
    >>> refused = X[risk > 0.5].head(1)
    >>> found = gig.what_if(explainer, refused, rules={"credit_amount": "frozen"})
    >>> [change.features for change in found.single]
    [('duration_months',)]
    """
    if not isinstance(explainer, Explainer):
        raise InputError(f"what_if must be given an Explainer; got {kind_of(explainer)}.")
    if explainer.scorer.node.width != 1:
        raise InputError("what_if is about one score; build the explainer with target=.")
    line, better = _cutoff(explainer, cutoff, higher_is_better)
    rows = _one_row(explainer, row)
    names = explainer.reference.names
    field = Field(explainer, rows, _prices(prices, names))
    declared = read_rules(rules, names, {n for j, n in enumerate(names) if field.is_category(j)})
    score = float(explainer.scorer.own(rows)[0, 0])
    passes = bool(passing(np.array([score]), line, better)[0])
    curves = {names[j]: curve_of(field, j) for j, c in enumerate(field.columns) if c.kind != "unused"}
    search = _search(field, line, better)
    alone = _grouped(explainer)
    moves = [] if passes else [field.moves(j, declared[names[j]]) for j in range(len(names)) if j not in alone]
    single = [found for m in moves if (found := search.alone(m)) is not None]
    double, searched = search.together(
        [_not_alone(search, m) for m in moves], checks.whole(top, "top"), checks.whole(most, "most")
    )
    crossing = {c for found in single for c in found.edit}
    return WhatIf(
        score, line, better, passes, curves,
        tuple(_change(explainer, rows, f) for f in sorted(single, key=lambda f: f.cost)),
        tuple(_change(explainer, rows, f) for f in double),
        tuple(names[m.column] for m in moves if m.complete and m.column not in crossing and _may(declared, names, m)),
        searched,
        {
            **explainer.provenance,
            "data": provenance.data_record(rows),
            "what_if": {
                "cutoff": line, "higher_is_better": better, "most": most, "prices": dict(prices or {}),
                "rules": {n: record for n, r in declared.items() if (record := r.as_record())},
                "left_alone": [names[j] for j in sorted(alone)],
                "verified_by": "the model" if explainer.scorer.graph.witnesses else "the saved graph",
            },
        },
    )  # fmt: skip


def _search(field: Field, line: float, better: bool) -> Search:
    """The search for changes with which the row passes; near the cutoff the model's own prediction decides."""
    explainer = field.explainer
    rounding = LOW_PRECISION * max(abs(line), float(np.abs(explainer.reference_scores).max()))

    def verify(edits: Sequence[Edit]) -> NDArray[np.bool_]:
        own = explainer.scorer.own(changed(explainer, field.given, edits))[:, 0]
        return np.asarray(passing(own, line, better))

    return Search(
        field,
        lambda scores: np.asarray(passing(scores, line, better)),
        lambda scores: np.abs(scores - line) <= rounding,
        verify,
    )


def _may(declared: Mapping[str, Rule], names: Sequence[str], moves: Moves) -> bool:
    return declared[names[moves.column]].direction != "frozen"


def _not_alone(search: Search, moves: Moves) -> Moves:
    """The moves that do not cross by themselves."""
    if not len(moves):
        return moves
    return moves.take(np.flatnonzero(~search.passes([moves.column], [moves.values])))


def _change(explainer: Explainer, rows: Rows, found: Found) -> Change:
    """A change as it is shown, with the model's own score after it."""
    own = float(explainer.scorer.own(changed(explainer, rows, [found.edit]))[0, 0])
    columns = list(found.edit)
    return Change(
        tuple(rows.names[c] for c in columns),
        tuple(raw_value(explainer, rows, c, float(rows.matrix[0, c])) for c in columns),
        tuple(raw_value(explainer, rows, c, v) for c, v in found.edit.items()),
        own,
        found.cost,
        found.complete,
    )


def _one_row(explainer: Explainer, row: Any) -> Rows:
    """The row to change, read as the explainer's reference is."""
    graph, known = explainer.scorer.graph, explainer.reference.names
    rows = under_names(read_rows(row, graph, what="row"), known, graph, what="row", other="the reference")
    if len(rows) != 1:
        raise InputError(f"row must be a table of one row; it has {len(rows)}. Pick one, say X.iloc[[3]].")
    return rows


def _cutoff(explainer: Explainer, cutoff: float | None, higher_is_better: bool | None) -> tuple[float, bool]:
    """The cutoff and whether higher is better: as given, or as recorded in the reference."""
    facts = explainer.provenance["reference"]
    better = agreed_direction(facts, higher_is_better)
    if cutoff is None:
        if not facts.get("cutoff_in_output_units"):
            raise InputError(
                "cutoff must be given, in units of the explained score: the reference does not carry it. One from "
                "gigrad.references.approved, built with scores of the explained output, does."
            )
        return float(facts["cutoff"]), better
    if not checks.is_number(cutoff) or not np.isfinite(cutoff):
        raise InputError(f"cutoff must be a finite number; got {cutoff!r}.")
    return float(cutoff), better


def _prices(prices: Mapping[str, float] | None, names: Sequence[str]) -> dict[str, float]:
    """The price of a unit of each column, checked."""
    given = checks.mapping(prices, "prices", '{"debt": 0.01}') if prices is not None else {}
    for name, price in given.items():
        if name not in names:
            raise InputError(f"prices must name columns of the model; {name!r} is not one.{display.near(name, names)}")
        if not checks.is_number(price) or not 0 <= price < np.inf:
            raise InputError(f"The price of {name!r} must be a number that is not negative; got {price!r}.")
    return {name: float(price) for name, price in given.items()}


def _grouped(explainer: Explainer) -> set[int]:
    """The columns that are in a group, which may not change alone."""
    return {c for members in explainer.grouping.members.values() if len(members) > 1 for c in members}
