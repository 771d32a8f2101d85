"""How often an applicant's reasons change when what should not matter much is changed.

Four changes: the reference is resampled (bootstrap), the score is explained in another space (margin, prediction,
rank), discrete columns change at another point than half-way between two values, and the applicant's values vary within
their measurement error.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, Unpack

import numpy as np

from .._common import checks
from .._common.optional import frame_library
from .._common.progress import parts, shown, wanted
from .._explain.compose import SmoothedECDF
from .._explain.explainer import Explainer
from .._explain.options import Keywords, Options, takes_options
from .._io.provenance import node_fingerprint
from ..configuration import config
from ..errors import InputError, ReasonsWarning
from ..graph import Array
from . import reasons
from .trials import Listed, Trial

HALF_WAY = "half-way"


@dataclass(frozen=True)
class Change:
    """How often one applicant's reasons changed in trials of one kind.

    Attributes
    ----------
    row_id
    kind : str
        "reference", "half-way", "measurement", or the name of another score space.
    trials : int
    changed : float
        Share of the trials with another set of reasons.
    reordered : float
        Share with another set or another order.
    first_changed : float
        Share with another principal reason.
    kept : dict of str to float
        For each reason given, the share of the trials in which it stays a reason.
    entered : dict of str to float
        Features that became a reason instead, with the share of the trials in which they did.
    """

    row_id: Any
    kind: str
    trials: int
    changed: float
    reordered: float
    first_changed: float
    kept: dict[str, float]
    entered: dict[str, float]


@dataclass(frozen=True)
class Stability:
    """How stable reasons are, for each applicant and over all; see `reason_stability`.

    Attributes
    ----------
    changes : tuple of Change
        One for each applicant and kind of change.
    reference : str
        A one-line description of the reference that the applicants were compared with.
    settings : dict

    Examples
    --------
    >>> import gigrad as gig
    >>> refused = X[risk > 0.5].head(2)
    >>> stability = gig.reason_stability(model, refused, approved, bootstrap=5, spaces={})
    >>> stability.overall["reference"]["applicants"]
    2.0
    """

    changes: tuple[Change, ...]
    reference: str
    settings: dict[str, Any]

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of change that were tried: "reference", "half-way", "measurement", and names of score spaces."""
        return tuple(dict.fromkeys(c.kind for c in self.changes))

    @property
    def conventional(self) -> dict[Any, tuple[str, ...]]:
        """By applicant, the reasons that depend on the convention that discrete columns change half-way.

        These do not remain a reason in both trials of "half-way"; applicants without any are left out.
        """
        tried = [c for c in self.changes if c.kind == HALF_WAY]
        lost = {c.row_id: tuple(name for name, kept in c.kept.items() if kept < 1) for c in tried}
        return {row_id: names for row_id, names in lost.items() if names}

    def of(self, row_id: Any) -> tuple[Change, ...]:
        """The changes of one applicant's reasons, one for each kind."""
        return tuple(c for c in self.changes if c.row_id == row_id)

    @property
    def overall(self) -> dict[str, dict[str, float]]:
        """By kind of change: the mean shares over the applicants, and the share whose reasons never changed."""
        out = {}
        for kind in self.kinds:
            found = [c for c in self.changes if c.kind == kind]
            out[kind] = {
                "applicants": float(len(found)),
                "changed": float(np.mean([c.changed for c in found])),
                "reordered": float(np.mean([c.reordered for c in found])),
                "first_changed": float(np.mean([c.first_changed for c in found])),
                "never_changed": float(np.mean([c.changed == 0 for c in found])),
            }
        return out

    def to_frame(self, *, library: Literal["pandas", "polars"] = "pandas") -> Any:
        """A line for each applicant and kind of change."""
        names = ("row_id", "kind", "trials", "changed", "reordered", "first_changed")
        columns: dict[str, list[Any]] = {name: [getattr(c, name) for c in self.changes] for name in names}
        columns["least_kept"] = [min(c.kept, key=lambda name: c.kept[name], default=None) for c in self.changes]
        columns["most_entered"] = [max(c.entered, key=lambda n: c.entered[n], default=None) for c in self.changes]
        return frame_library(checks.library(library)).DataFrame(columns)

    def __str__(self) -> str:
        lines = [f"{'':<14}{'reasons change':>16}{'order changes':>16}{'first changes':>16}{'never changed':>16}"]
        for kind, shares in self.overall.items():
            cells = "".join(
                f"{100 * shares[name]:>15.1f}%" for name in ("changed", "reordered", "first_changed", "never_changed")
            )
            lines.append(f"{kind:<14}{cells}")
        return "\n".join(lines)


@takes_options
def reason_stability(
    model: Any,
    X: Any,
    reference: Any,
    *,
    higher_is_better: bool | None = None,
    top: int = 4,
    exclude: Sequence[str] | None = None,
    min_share: float = 0.0,
    bootstrap: int = 100,
    spaces: Mapping[str, Any] | None = None,
    measurement_error: Mapping[str, float | str] | None = None,
    draws: int = 20,
    progress: bool | None = None,
    **options: Unpack[Keywords],
) -> Stability:
    """How often the reasons change, for each row of X and on average.

    Where columns have no values in between, two trials (the kind "half-way") use another convention than half-way:
    missing values, categories and nominal columns change at 0.21, then at 0.79 of the path (the two-point Gauss rule),
    and every split on a discrete column lies at 0.21, then at 0.79 of the way from the smaller to the larger of the two
    values that it separates. (So a rising column crosses it after 0.21 of the gap and a falling one after 0.79, and
    vice versa in the second trial.) `Stability.conventional` lists the reasons that depend on the convention.

    Parameters
    ----------
    model, X, reference, output, target, discrete, nominal, tol, n_threads, corner_tol
        As in `gigrad.explain`: what the reasons are given for.
    higher_is_better, top, groups, exclude, min_share
        As in `gigrad.reasons`.
    bootstrap : int
        How many times the rows of the reference are resampled with replacement; 0 for never. Meant for a reference that
        is a sample of people: resampling a distilled one overstates the variation.
    spaces : mapping of str to output, optional
        Other outputs to explain, by name; each must run in the same direction. By default the margin, the prediction
        and the rank, as far as they differ from `output`. The default rank is a SmoothedECDF of the scores of the
        reference and of X together: give your own where you have one.
    measurement_error : mapping of str to number or text, optional
        For each column the half-width of the interval in which its true value may lie, as a number in its unit or as
        a percentage of the value, "5%". Values are drawn evenly from it; columns of whole numbers stay whole.
    draws : int
        How many times values are drawn.
    seed : int
    progress : bool, optional
        As in `gigrad.explain`.

    Examples
    --------
    >>> import gigrad as gig
    >>> stability = gig.reason_stability(model, X[risk > 0.5].head(2), approved, bootstrap=5)
    >>> stability.kinds
    ('reference', 'margin', 'rank')
    """
    bootstrap, draws = checks.whole(bootstrap, "bootstrap", least=0), checks.whole(draws, "draws", least=0)
    if spaces is not None:
        checks.mapping(spaces, "spaces", '{"margin": "margin"}')
    if measurement_error is not None:
        checks.mapping(measurement_error, "measurement_error", '{"income": "5%"}')
    asked = Options.of(options)
    ungrouped: Keywords = {**options, "groups": None}  # `reasons` sums the credits of groups; each column is a player
    explainer = Explainer(model, reference, progress=progress, **ungrouped)
    e = explainer(X, progress=progress)
    with warnings.catch_warnings():  # a call of `reasons` gives these warnings
        warnings.simplefilter("ignore", ReasonsWarning)
        found = reasons(e, top, None, asked.groups, exclude, min_share, higher_is_better=higher_is_better)
    trial = Trial(explainer, e, found.context.rules, asked.groups, np.random.default_rng(asked.seed))
    given = [tuple(r.feature for r in a.reasons) for a in found]
    ids = [a.row_id for a in found]
    tried = _default_spaces(trial, asked.output) if spaces is None else spaces
    half_width = _half_widths(measurement_error, trial) if measurement_error and draws else None
    with shown(wanted(progress, config.progress), "trying the reasons", len(ids), "applicants"):
        changes = _tried(trial, ids, given, tried, bootstrap, draws, half_width)
    order = {row_id: i for i, row_id in enumerate(ids)}
    note = e.provenance["reference"].get("note", "")
    settings = {"bootstrap": bootstrap, "draws": draws, "seed": asked.seed, "rules": found.context.rules.as_record()}
    return Stability(tuple(sorted(changes, key=lambda c: order[c.row_id])), note, settings)


def _tried(
    trial: Trial, ids: Sequence[Any], given: Sequence[Listed], spaces: Mapping[str, Any], bootstrap: int, draws: int,
    half_width: Array | None,
) -> list[Change]:  # fmt: skip
    """The changes of the given reasons under every kind of change, for all applicants."""
    kinds: list[tuple[str, float, Callable[[], list[list[Listed]]]]] = []  # with how long each takes, roughly
    if bootstrap:
        kinds.append(("reference", 2.0, lambda: trial.references(bootstrap)))
    kinds += [(name, 1.0, partial(trial.space, output)) for name, output in spaces.items()]
    if trial.conventions:
        kinds.append((HALF_WAY, 4.0 if trial.at_once else 2.0, trial.shares))
    if half_width is not None:
        kinds.append(("measurement", float(draws), lambda: trial.measurements(half_width, draws)))
    changes: list[Change] = []
    for stage, (kind, _, seen) in zip(parts(*(size for _, size, _ in kinds)), kinds, strict=True):
        with stage:
            changes += _compared(ids, given, seen(), kind)
    return changes


def _compared(ids: Sequence[Any], given: Sequence[Listed], trials: list[list[Listed]], kind: str) -> list[Change]:
    return [_change(row_id, kind, own, seen) for row_id, own, seen in zip(ids, given, trials, strict=True)]


def _change(row_id: Any, kind: str, given: Listed, seen: Sequence[Listed]) -> Change:
    """How often the reasons of a row were others than `given` in the trials of one kind."""
    count = len(seen)
    hits = Counter(name for one in seen for name in one)
    return Change(
        row_id=row_id,
        kind=kind,
        trials=count,
        changed=sum(set(one) != set(given) for one in seen) / count,
        reordered=sum(one != given for one in seen) / count,
        first_changed=sum(one[:1] != given[:1] for one in seen) / count,
        kept={name: hits[name] / count for name in given},
        entered={name: n / count for name, n in hits.most_common() if name not in given},
    )


def _default_spaces(trial: Trial, output: Any) -> dict[str, Any]:
    """Margin, prediction and rank, without the one that the reasons were given in and without repetitions."""
    scorer = trial.explainer.scorer
    prediction = trial.node(None)
    own, given, margin = (node_fingerprint(n) for n in (prediction, scorer.node, trial.node("margin")))
    out: dict[str, Any] = {}
    if margin not in (own, given):
        out["margin"] = "margin"
    if own != given:
        out["prediction"] = None
    scores = np.concatenate([trial.values(prediction, m) for m in (trial.explainer.reference.matrix, trial.rows)])
    if not isinstance(output, SmoothedECDF) and len(np.unique(scores)) > 1:
        out["rank"] = SmoothedECDF.fit(scores)
    return out


def _half_widths(measurement_error: Mapping[str, float | str], trial: Trial) -> Array:
    """The half-width of every value, (rows, columns)."""
    out = np.zeros_like(trial.rows)
    columns = trial.explainer.scorer.columns
    for name, size in measurement_error.items():
        found = [j for j, known in enumerate(trial.e.columns) if known == name]
        if not found:
            raise InputError(f"measurement_error must name columns of the model; {name!r} is none of them.")
        if columns[found[0]].kind != "number":
            raise InputError(f"measurement_error is for numbers; {name!r} is a category.")
        relative = isinstance(size, str) and size.endswith("%")
        try:
            width = float(str(size).removesuffix("%")) / (100.0 if relative else 1.0)
        except ValueError:
            width = -1.0
        if not 0 <= width < np.inf:
            raise InputError(
                f"The measurement error of {name!r} must be a number, 0 or more, or a percentage such as '5%'; "
                f"got {size!r}."
            )
        out[:, found[0]] = width * np.abs(trial.rows[:, found[0]]) if relative else width
    return np.where(np.isnan(out), 0.0, out)
