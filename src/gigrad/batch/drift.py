"""Drift: what has changed between two runs, compared with what chance alone would do."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._common import checks
from .._common.log import logger
from .._io.durable import replacing
from .._output.spreadsheet import harmless
from ..errors import InputError
from .sides import Array, Side, side_of

DRAWS = 1000
BINS = 10
_Z = 1.959963984540054  # the normal's 97.5 % quantile
_EXAMPLES = 20
_log = logger("monitor")


@dataclass(frozen=True)
class ReasonShift:
    """How often a feature is among the reasons: shares in this run and in that one, and their difference with a 95 %
    interval (Newcombe's, from Wilson's scores)."""

    feature: str
    this: float
    that: float
    difference: float
    low: float
    high: float

    @property
    def shifted(self) -> bool:
        """Whether the interval excludes zero."""
        return not self.low <= 0.0 <= self.high


@dataclass(frozen=True)
class CreditShift:
    """How the credits of a feature are distributed: the population stability index over tenths of that run.

    `low` and `high` are a bias-corrected 95 % bootstrap interval; `chance` is the 95 % quantile of the index for two
    samples of these sizes from the same population.
    """

    feature: str
    psi: float
    low: float
    high: float
    chance: float
    mean_this: float
    mean_that: float

    @property
    def shifted(self) -> bool:
        """Whether the index is larger than chance explains."""
        return self.psi > self.chance


@dataclass(frozen=True)
class Changed:
    """Counts of the rows in both runs, matched by id: all, those with the same data in the columns that both runs have,
    and those of them with other reasons.

    `examples` are the first of the last: id, reasons in that run, reasons in this one.
    """

    matched: int
    same_data: int
    changed: int
    examples: tuple[tuple[Any, tuple[str, ...], tuple[str, ...]], ...]


@dataclass(frozen=True)
class Drift:
    """The result of `monitor`; print it, or write it with `to_json`, `to_csv` or `plots.drift`.

    Attributes
    ----------
    this, that : str
        The names of the two runs.
    rows : (int, int)
        Applicants in this and that.
    reasons : tuple of ReasonShift
        The largest difference first; empty where reasons are not known.
    credits : tuple of CreditShift
        The largest index first; empty for results of reasons, which have no credits of all features.
    changed : Changed or None
        None where rows cannot be matched, or their data are not known.
    """

    this: str
    that: str
    rows: tuple[int, int]
    reasons: tuple[ReasonShift, ...]
    credits: tuple[CreditShift, ...]
    changed: Changed | None

    def as_record(self) -> dict[str, Any]:
        """Plain dicts and lists, ready for JSON."""
        return {"format": "gigrad.drift/1", **asdict(self)}

    def to_json(self, path: str | Path) -> None:
        """Write everything as JSON."""
        with replacing(Path(path)) as aside:
            text = json.dumps(self.as_record(), indent=2, ensure_ascii=False, default=str)
            aside.write_text(text + "\n", encoding="utf-8")

    def to_csv(self, path: str | Path) -> None:
        """Write a line for each reason and for each feature's credits."""
        import csv

        with replacing(Path(path)) as aside, aside.open("w", encoding="utf-8", newline="") as file:
            lines = csv.writer(file)
            lines.writerow(["kind", "feature", "this", "that", "measure", "low", "high", "chance", "shifted"])
            for r in self.reasons:
                row = ["reason", harmless(r.feature), r.this, r.that, r.difference, r.low, r.high, "", r.shifted]
                lines.writerow(row)
            for c in self.credits:
                means = [c.mean_this, c.mean_that]
                lines.writerow(["psi", harmless(c.feature), *means, c.psi, c.low, c.high, c.chance, c.shifted])

    def __str__(self) -> str:
        parts = [f"{self.this} ({self.rows[0]:,} applicants) against {self.that} ({self.rows[1]:,})"]
        if self.reasons:
            parts.append(_table(
                ("reason of", "this", "that", "difference", "95 % interval"),
                [(r.feature, f"{r.this:.1%}", f"{r.that:.1%}", f"{r.difference:+.1%}{' *' * r.shifted}",
                  f"{r.low:+.1%} to {r.high:+.1%}") for r in self.reasons],
            ))  # fmt: skip
        if self.credits:
            parts.append(_table(
                ("credits of", "PSI", "95 % interval", "by chance below"),
                [(c.feature, f"{c.psi:.4f}{' *' * c.shifted}", f"{c.low:.4f} to {c.high:.4f}", f"{c.chance:.4f}")
                 for c in self.credits],
            ))  # fmt: skip
        if self.changed is not None:
            c = self.changed
            parts.append(
                f"Of {c.matched:,} rows in both, {c.same_data:,} have the same data; the reasons of {c.changed:,} of "
                "these changed."
            )
        return "\n\n".join([*parts, "* beyond chance, at 95 %"])


def monitor(
    this: Any,
    against: Any,
    *,
    ids: Sequence[str] | None = None,
    data: Any = None,
    against_data: Any = None,
    top: int = 4,
    higher_is_better: bool | None = None,
    seed: int = 0,
) -> Drift:
    """Compare the explanations of two runs, say this month's applicants with last month's.

    Parameters
    ----------
    this, against : Explanation, Reasons, or path
        A path is a result of `gigrad explain` or `gigrad reasons`, or a ledger of audit records.
    ids : sequence of str, optional
        Columns that identify rows in both results; by default the ids recorded in the results.
    data, against_data : path, optional
        The tables that the results were made from, which show whose data did not change; an Explanation, Reasons or a
        ledger contains them.
    top : int
        How many features are reasons where a run has credits alone.
    higher_is_better : bool, optional
        Which way is better, where a run has credits alone and its reference does not say.
    seed : int
        For the bootstrap.

    Returns
    -------
    Drift

    Examples
    --------
    >>> import gigrad as gig
    >>> explainer = gig.Explainer(model, X[bad == 0].head(50))
    >>> drift = gig.monitor(explainer(X[500:]), explainer(X[:500]), higher_is_better=False)
    >>> drift.rows, [c.feature for c in drift.credits if c.shifted]
    ((500, 500), ['duration_months'])
    """
    top = checks.whole(top, "top")
    a = side_of(this, ids, top, higher_is_better, data)
    b = side_of(against, ids, top, higher_is_better, against_data)
    if not a.rows or not b.rows:
        raise InputError(f"Both runs must have applicants to be compared; {(b if a.rows else a).name} has none.")
    if a.credits and b.credits and a.credits.keys() != b.credits.keys():
        raise InputError("Two runs must have the same features to be compared; these have different ones.")
    rng = np.random.default_rng(checks.seed(seed))
    names = (a.name, b.name) if a.name != b.name else ("this", "that")
    found = Drift(*names, (a.rows, b.rows), _reasons(a, b), _credits(a, b, rng), _changed(a, b))
    _log.info("%s against %s: %d reasons and the credits of %d features shifted", a.name, b.name,
              sum(r.shifted for r in found.reasons), sum(c.shifted for c in found.credits))  # fmt: skip
    return found


def _reasons(a: Side, b: Side) -> tuple[ReasonShift, ...]:
    """How the frequency of each reason changed, the largest change first."""
    if a.reasons is None or b.reasons is None:
        return ()
    one, other = (Counter(f for given in s.reasons or () for f in set(given)) for s in (a, b))
    found = [_shift(name, one[name], a.rows, other[name], b.rows) for name in sorted({*one, *other})]
    return tuple(sorted(found, key=lambda r: -abs(r.difference)))


def _shift(feature: str, k: int, n: int, j: int, m: int) -> ReasonShift:
    """The change of a frequency from j of m to k of n rows, with Newcombe's interval."""
    p, q = k / n, j / m
    (pl, ph), (ql, qh) = _wilson(k, n), _wilson(j, m)
    low, high = p - q - np.hypot(p - pl, qh - q), p - q + np.hypot(ph - p, q - ql)
    return ReasonShift(feature, p, q, p - q, float(low), float(high))


def _wilson(k: int, n: int) -> tuple[float, float]:
    p, z2 = k / n, _Z * _Z
    middle, half = (p + z2 / (2 * n)) / (1 + z2 / n), _Z * np.sqrt(p * (1 - p) / n + z2 / (4 * n * n)) / (1 + z2 / n)
    return float(middle - half), float(middle + half)


def _credits(a: Side, b: Side, rng: np.random.Generator) -> tuple[CreditShift, ...]:
    found = [_psi_of(name, a.credits[name], b.credits[name], rng) for name in (a.credits if b.credits else ())]
    return tuple(sorted(found, key=lambda c: -c.psi))


def _psi_of(feature: str, this: Array, that: Array, rng: np.random.Generator) -> CreditShift:
    """The stability index of one feature's credits, with its interval and what chance alone would give."""
    edges = np.unique(np.quantile(that, np.linspace(0, 1, BINS + 1)[1:-1]))
    counts = [np.bincount(np.searchsorted(edges, x, "left"), minlength=len(edges) + 1) for x in (this, that)]
    n, m = len(this), len(that)
    psi = float(index(*counts))
    drawn = index(*(rng.multinomial(c.sum(), c / c.sum(), DRAWS) for c in counts))
    pooled = (counts[0] + counts[1]) / (n + m)
    chance = np.quantile(index(*(rng.multinomial(size, pooled, DRAWS) for size in (n, m))), 0.95)
    low, high = np.quantile(drawn, (0.025, 0.975)) - (drawn.mean() - psi)
    return CreditShift(
        feature, psi, max(float(low), 0.0), max(float(high), 0.0), float(chance), float(this.mean()), float(that.mean())
    )


def index(one: NDArray[np.int64], other: NDArray[np.int64]) -> Any:
    """The population stability index of counts (..., bins); half a count in each bin keeps empty ones finite."""
    p, q = ((c + 0.5) / (c.sum(axis=-1, keepdims=True) + 0.5 * c.shape[-1]) for c in (one, other))
    return ((p - q) * np.log(p / q)).sum(axis=-1)


def _changed(a: Side, b: Side) -> Changed | None:
    """Counts of rows in both runs whose data, or only reasons, changed; None where rows cannot be matched."""
    if not a.ids or not b.ids or a.data is None or b.data is None or a.reasons is None or b.reasons is None:
        return None
    shared = [name for name in a.columns if name in b.columns]
    if not shared:
        return None
    at_a, at_b = ([s.columns.index(name) for name in shared] for s in (a, b))
    keys_a, keys_b = ([" / ".join(map(str, key)) for key in s.ids] for s in (a, b))  # ids as `Explanation` shows them
    where = {key: i for i, key in enumerate(keys_b)}
    twice = {key for keys in (keys_a, keys_b) for key, n in Counter(keys).items() if n > 1}
    matched = same = 0
    examples = []
    for i, key in enumerate(keys_a):
        j = where.get(key)
        if j is None or key in twice:
            continue
        matched += 1
        if [a.data[i][c] for c in at_a] != [b.data[j][c] for c in at_b]:
            continue
        same += 1
        if a.reasons[i] != b.reasons[j]:
            own = a.ids[i]
            examples.append((own[0] if len(own) == 1 else own, b.reasons[j], a.reasons[i]))
    return Changed(matched, same, len(examples), tuple(examples[:_EXAMPLES]))


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """Rows of text below a head, in columns of equal width."""
    widths = [max(len(row[j]) for row in (head, *rows)) for j in range(len(head))]
    return "\n".join(
        "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in (head, *rows)
    )
