"""Explains rows against references in drawing order, until their reasons are settled."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._common import checks
from .._common.progress import part
from .._explain.explainer import Explainer
from .._explain.explanation import Explanation
from .._io.tables import Rows
from ..engine import Credits, LinkedTrees, Population, as_linked_trees, attribute_singly
from ..errors import InputError, kind_of
from ..graph import Array
from ..references.direction import adverse_sign, agreed_direction
from .certificate import Estimate, Ints, Plan
from .drawing import Drawing, as_drawn
from .regression import (
    ANCHORED,
    BESIDE_MARGINS,
    SAMPLE_OF_EACH,
    AnchorRegression,
    MarginRegression,
    principal,
)

GUESSED = 32
"""References that the guess rests on which features are near the cut: with 100 or 400 it took 1 % fewer in all, at the
cost of that many more margin credits. They must not depend on the order of drawing, or parts of the level would."""
NEAR = 1e-3
"""References whose margin is nearer to the anchor's than this share of the farthest have the next one's slope of the
link: that between two numbers that are nearly equal is lost to rounding."""
EVEN = 0.5
"""The multiple of the link's mean slope that is added to each slope, see `Settler._slope`."""
TOGETHER = 2**20
"""Credits of single references that are worked on at once, for the rows of a table: 8 MB of each kind of them."""


@dataclass(frozen=True, eq=False, repr=False)
class Settled:
    """Explanations against as many references as it took to settle the reasons.

    Attributes
    ----------
    explanation : Explanation
        Against the whole reference: exact where all references were used; elsewhere the credits are estimates, which
        add up to the score as always, and `error` is how far each may be off at the given confidence.
    references : (n,) int
        How many references each row took.
    confidence : (n,)
        The confidence in the reasons of each row; 1 where all references were used.
    of : int
        How many references there are.

    Examples
    --------
    >>> import gigrad as gig
    >>> found = gig.settle(gig.Explainer(model, approved), X.head(3))
    >>> found.of, len(found.references)
    (579, 3)
    """

    explanation: Explanation
    references: Ints
    confidence: Array
    of: int

    def __len__(self) -> int:
        return len(self.references)

    def __repr__(self) -> str:
        n, whole = len(self), int((self.references == self.of).sum())
        if not n:
            return "Settled: 0 rows"
        took = f"{self.references.mean():,.0f} of {self.of:,} references a row in the mean"
        sure = f", the others at a confidence of {self.confidence.min():.5g}" if whole < n else ""
        rows = "row" if n == 1 else "rows"
        return f"Settled: {n:,} {rows}, {took}; {whole:,} took all{sure}\n{self.explanation!r}"


class Drawn(NamedTuple):
    """Credits of rows against some references, one by one, scaled by their weights."""

    credits: Array  # (rows, n, p)
    errors: Array  # (rows, n)
    margins: Array  # (rows, n, p): for the sum of trees under the link, by `Settler.slope`; (rows, n, 0) if none

    def and_(self, more: Drawn) -> Drawn:
        """With those against further references."""
        return Drawn(*(np.concatenate(both, axis=1) for both in zip(self, more, strict=True)))


class Aim(NamedTuple):
    """What is known of rows before anything is drawn: the sum of their mean credits over all references, (rows,), how
    far each feature lies from the cut between reasons and others, (rows, p), and what follows for comparisons."""

    total: Array
    far: Ints
    widths: Array  # (rows, 2 * STEPS + 1): `Plan.pair_quantiles`


class _Seen(NamedTuple):
    """What is known of the rows that are not settled yet, after a look."""

    row: Ints  # (rows,)
    aim: Aim
    drawn: Drawn
    beside: Array  # (rows, p): the sum of `Drawn.margins` over the references at the end of the order

    def only(self, some: NDArray[np.bool_]) -> _Seen:
        aim = Aim(self.aim.total[some], self.aim.far[some], self.aim.widths[some])
        drawn = Drawn(*(part[some] for part in self.drawn))
        return _Seen(self.row[some], aim, drawn, self.beside[some])


class _Found(NamedTuple):
    """The credits of rows that are settled, their errors, and the number of references used for each."""

    values: Array  # (rows, p)
    error: Array  # (rows,)
    used: Ints  # (rows,)


@dataclass(frozen=True, eq=False)
class Settler:
    """Explains rows against the references in drawing order, which are scaled so that plain means are weighted means.

    Attributes
    ----------
    explainer : Explainer
    plan : Plan
        For the references that are drawn at random.
    sign : float
        The factor that makes adverse credits positive.
    asked : dict
        The arguments given, for the provenance.
    starts : (m, p columns)
    scale : (m,)
        Weights times m.
    scores : (m, 1)
        By the graph.
    slope : (m,)
        What margin credits are multiplied by: `scale` times the mean slope of the link from a reference to the anchor.
    linked : LinkedTrees or None
        The model, if it is a link over trees.
    drawing : Drawing
        The order of the references.
    regressions : tuple
        One for each look of the plan.
    typical : (GUESSED,) int
        References that the guess rests on which features are near the cut, chosen whatever the order of drawing.
    """

    explainer: Explainer
    plan: Plan
    sign: float
    asked: dict[str, Any]
    starts: Array
    scale: Array
    scores: Array
    slope: Array
    linked: LinkedTrees | None
    drawing: Drawing
    regressions: tuple[AnchorRegression | MarginRegression, ...] = ()
    typical: Ints = field(default_factory=lambda: np.zeros(0, np.int64))

    @classmethod
    def of(
        cls, explainer: Explainer, confidence: float, top: int, tie: float, higher_is_better: bool | None, seed: int
    ) -> Settler:
        """The settler for an explainer: the order of drawing, and the regressors that all rows share."""
        if not isinstance(explainer, Explainer):
            raise InputError(f"settle must be given an Explainer of one output; got {kind_of(explainer)}.")
        if explainer.scorer.node.width != 1:
            raise InputError("settle is about one score; build the explainer with target=.")
        sure = 1.0 if checks.is_number(confidence) and confidence == 1 else checks.inside(confidence, "confidence")
        sign = adverse_sign(agreed_direction(explainer.provenance["reference"], higher_is_better))
        top, tie, seed = checks.whole(top, "top"), checks.target(tie, "tie"), checks.seed(seed)
        features, count = len(explainer.grouping.members), len(explainer.weights)
        asked = {"confidence": sure, "top": top, "tie": tie, "seed": seed}
        scale, scores = explainer.weights * count, explainer.reference_scores
        linked = as_linked_trees(explainer.scorer.node, explainer.scorer.source)
        # the regression on an anchor has a coefficient for each feature: four references for every one of them
        anchored = ANCHORED._replace(first=max(ANCHORED.first, 4 * (features + 2)))
        plan = Plan.of(sure, top, tie, features, count, BESIDE_MARGINS if linked else anchored)
        drawing = Drawing(np.arange(count), 0, scale)  # as they come, where all are used
        whole = cls(explainer, plan, sign, asked, explainer.reference.matrix, scale, scores, scale, linked, drawing)
        return whole._ordered(seed) if plan.looks else whole

    def _ordered(self, seed: int) -> Settler:
        """This settler with its references in drawing order: the certainty stratum first, the others at random."""
        # The most adverse reference is the one most like the rows that are refused.
        anchor = int((self.sign * self.scores[:, 0]).argmax())
        slope, schedule = self._slope(anchor), self.plan.schedule
        anchored = _standard(as_drawn(self._anchored(anchor, slope), self.explainer.weights))
        drawing = Drawing.of(self.explainer.weights, anchored, schedule, seed)
        plan, order = self.plan.over(drawing.count), drawing.order
        looks = [drawing.first + drawing.reached(n) for n in plan.looks]
        return replace(
            self,
            plan=plan,
            asked=self.asked | {"taken_first": drawing.first, "looks": looks},
            starts=self.starts[order],
            scale=self.scale[order],
            scores=self.scores[order],
            slope=slope[order],
            drawing=drawing,
            regressions=self._regressions(anchored[order[drawing.first :]], drawing, plan) if plan.looks else (),
            typical=np.argsort(order)[self._typical()],
        )

    def _slope(self, anchor: int) -> Array:
        """The factor (m,) by which the margin credits of each reference approximate credits under the link.

        Credits under the link are nearly margin credits times the mean slope of the link along the path. The slopes of
        the paths to different rows are nearly proportional, so those of the paths to the anchor serve for all rows.
        They vary more than others, since most rows score higher than the anchor: `EVEN` times their mean is added. On
        Lending Club the residuals have 9 % less variance (200 trees of depth 5) to 25 % (60 of depth 4, 100 of depth 3)
        than without factors, as with the slopes of each row's own paths; without `EVEN` it is 6 % and 22 %.
        """
        if self.linked is None:
            return self.scale
        margins = self.linked.trees.forward(self.starts)[:, 0]
        way, rise = margins[anchor] - margins, self.scores[anchor, 0] - self.scores[:, 0]
        far = np.abs(way) > NEAR * np.abs(way).max()
        if not far.any():
            return self.scale
        slope = np.divide(rise, way, out=np.zeros_like(way), where=far)
        slope[~far] = slope[np.argmin(np.where(far, np.abs(way), np.inf))]
        return np.asarray(self.scale * (slope + EVEN * slope.mean()))

    def _anchored(self, anchor: int, slope: Array) -> Array:
        """Credits from every reference to one of them, scaled by their weights, (m, p).

        Of a link over trees those for the trees alone: they show as well where a rare value matters, in half the time.
        """
        row = self.starts[[anchor]]
        if self.linked is None:
            return np.asarray(self.draw(row, self.scores[[anchor]], 0, len(self.starts)).credits[0])
        back = self.linked.sums(Population(row, np.ones(1), self.starts), self.explainer.settings)
        return np.asarray(-back * slope[:, None])

    def _typical(self) -> Ints:
        """Some references at equal steps of the score."""
        ranks = (2 * np.arange(GUESSED) + 1) * len(self.starts) // (2 * GUESSED)
        return np.argsort(self.scores[:, 0], kind="stable")[np.unique(ranks)]

    def _regressions(
        self, anchored: Array, drawing: Drawing, plan: Plan
    ) -> tuple[AnchorRegression | MarginRegression, ...]:
        """With credits to the anchor, (others, p), of the references that are drawn from, in order."""
        scale, others = drawing.scale, drawing.order[drawing.first :]
        known = [scale, scale * self.scores[others, 0]]  # with these, estimates on an anchor add up exactly
        if self.linked is None:
            seen = np.column_stack([anchored, _standard(np.column_stack(known))])
            return tuple(AnchorRegression.of(seen, drawing, n) for n in plan.looks)
        margins = self.linked.trees.forward(self.starts[others])[:, 0]
        shared = np.column_stack([_standard(np.column_stack([*known, scale * margins])), principal(anchored)])
        looks = zip(plan.looks, drawing.beside(plan), strict=True)
        return tuple(
            MarginRegression.of(shared[:, : 3 + n // SAMPLE_OF_EACH], anchored, drawing, n, m) for n, m in looks
        )

    def __call__(self, rows: Rows) -> Settled:
        """Explain rows, each against as many references as settle its reasons."""
        explainer, scorer = self.explainer, self.explainer.scorer
        scores, count = scorer.scores(rows), len(self.starts)
        scorer.refuse_ignored(explainer.reference, rows)
        found = [_Found(np.zeros((0, self.plan.features)), np.zeros(0), np.zeros(0, np.int64))]
        width = (self.drawing.first + self.plan.looks[0] if self.plan.looks else count) * self.plan.features
        step = max(TOGETHER // max(width, 1), 1)
        for r in range(0, len(rows), step):
            with part(r / len(rows), min(r + step, len(rows)) / len(rows)):
                found.append(self.explain(rows.matrix[r : r + step], scores.graph[r : r + step]))
        values, error, used = (np.concatenate(parts) for parts in zip(*found, strict=True))
        values, error = values[:, :, None], error[:, None]
        base = np.broadcast_to(explainer.base, scores.own.shape)
        credit = scorer.held_to_own(Credits(values, error), base, scores.own, explainer.settings.tol)
        record = {**explainer.provenance, "settled": self.asked}
        e = scorer.explanation(credit, base, scores.own, rows, explainer.grouping, record)
        return Settled(e, used, self.confidence(used), count)

    def confidence(self, used: Ints) -> Array:
        """The confidence in the reasons of rows that used so many references, (n,)."""
        return np.where(used < len(self.starts), self.plan.confidence, 1.0)

    def draw(self, rows: Array, scores: Array, first: int, last: int) -> Drawn:
        """Rows' credits against the references from `first` to `last`, one by one."""
        x, some = self.explainer, slice(first, last)
        scorer, scale = x.scorer, self.scale[some]
        paths = Population(self.starts[some], scale, rows)
        paths.tell(scorer.node, self.scores[some], scores)
        settings = replace(x.settings, quiet=True)
        found, margins = attribute_singly(scorer.node, scorer.source, self.linked, paths, settings)
        each = (found.values[:, :, 0], scale), (found.error, scale), (margins, self.slope[some])
        credits, errors, margins = (x.reshape(len(rows), last - first, -1) * by[:, None] for x, by in each)
        return Drawn(credits, errors[:, :, 0], margins)

    def beside(self, rows: Array, some: slice | Ints) -> Array:
        """The sum of `Drawn.margins` of rows over some references, (n, p); of no features if there are no margins."""
        starts, slope = self.starts[some], self.slope[some]
        if self.linked is None or not len(starts):
            return np.zeros((len(rows), 0 if self.linked is None else self.plan.features))
        return self.linked.sums(Population(starts, slope, rows), self.explainer.settings)

    def explain(self, rows: Array, scores: Array) -> _Found:
        """The credits of rows (n, columns) with scores (n, 1), from as many references as settle their reasons."""
        count, row = len(self.starts), np.arange(len(rows))
        out = _Found(np.zeros((len(rows), self.plan.features)), np.zeros(len(rows)), np.full(len(rows), count))
        beside = self.beside(rows, slice(0, 0))
        nothing = Drawn(np.zeros((len(rows), 0, self.plan.features)), np.zeros((len(rows), 0)), beside[:, None][:, :0])
        seen = _Seen(row, self.aim(rows, scores), nothing, beside)
        taken = known = 0
        for look, (n, m) in enumerate(zip(self.plan.looks, self.drawing.beside(self.plan), strict=True)):
            at, last = rows[seen.row], self.drawing.first + self.drawing.reached(n)
            drawn = seen.drawn.and_(self.draw(at, scores[seen.row], taken, last))
            beside = seen.beside + self.beside(at, slice(count - m, count - known))
            seen, taken, known = seen._replace(drawn=drawn, beside=beside), last, m
            found = self.estimate(seen, look)
            done = self.plan.settled(found._replace(mean=self.sign * found.mean), seen.aim.far, seen.aim.widths)
            half = self.plan.quantile(found.freedom) * np.sqrt(found.variance[done].max(axis=1))
            settled, seen = seen.only(done), seen.only(~done)
            out.values[settled.row] = found.mean[done]
            out.error[settled.row] = half + settled.drawn.errors.mean(axis=1)
            out.used[settled.row] = taken
            if not len(seen.row):
                return out
        rest = seen.drawn.and_(self.draw(rows[seen.row], scores[seen.row], taken, count))
        out.values[seen.row], out.error[seen.row] = rest.credits.mean(axis=1), rest.errors.mean(axis=1)
        return out

    def aim(self, rows: Array, scores: Array) -> Aim:
        """What is known of rows before anything is drawn."""
        total = scores[:, 0] - float((self.scale * self.scores[:, 0]).mean())
        guess = np.zeros((len(rows), self.plan.features))
        if self.linked is not None and self.plan.looks:
            margins = self.beside(rows, self.typical)
            change = margins.sum(axis=1)
            slope = np.where(change != 0.0, total / np.where(change != 0.0, change, 1.0), 0.0)
            guess = self.sign * margins * slope[:, None]
        far = self.plan.far(guess)
        return Aim(total, far, self.plan.pair_quantiles(far) if self.plan.looks else np.zeros((len(rows), 0)))

    def estimate(self, seen: _Seen, look: int) -> Estimate:
        """Estimated mean credits over all references, from those of the certainty stratum and of the drawn ones."""
        count, k, regression = len(self.starts), self.drawing.first, self.regressions[look]
        taken, share = seen.drawn.credits[:, :k].sum(axis=1) / count, self.plan.references / count
        n = self.plan.looks[look]
        credits = self.drawing.sample(seen.drawn.credits, n)
        if isinstance(regression, AnchorRegression):
            drawn = regression.estimate(credits)
        else:
            last, margins = self.drawing.beside(self.plan)[look], self.drawing.sample(seen.drawn.margins, n)
            others = seen.drawn.margins[:, k:][:, : self.plan.references - last]  # those that are not among the last
            beside = (others.sum(axis=1) + seen.beside) / (others.shape[1] + last)
            drawn = regression.estimate(credits, margins, beside, (seen.aim.total - taken.sum(axis=1)) / share)
        return Estimate(taken + share * drawn.mean, share**2 * drawn.covariance, drawn.freedom)


def _standard(known: Array) -> Array:
    """Columns in units of their standard deviations."""
    spread = known.std(axis=0)
    return np.asarray(known / np.where(spread > 0, spread, 1.0))
