"""How many references are enough: rows explained until their reasons are settled."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from .._common import checks
from .._common.progress import part, shown, wanted
from .._explain.explainer import Explainer
from .._explain.explanation import Explanation
from .._io.tables import Rows, read_rows, under_names
from ..configuration import config
from ..engine import Credits, LinkedTrees, Population, as_linked_trees, attribute_singly
from ..errors import InputError, kind_of
from ..graph import Array
from ..references.direction import adverse_sign, agreed_direction
from .certificate import Estimate, Ints, Plan
from .regression import ANCHORED, BESIDE_MARGINS, AnchorRegression, MarginRegression, taken_first

TIE = 0.05
"""Credits that differ by less than this share of the row's largest are tied, unless the caller says otherwise."""
TOGETHER = 2**20
"""Credits of single references that are worked on at once, for the rows of a table: 8 MB of each kind of them."""


@dataclass(frozen=True, eq=False)
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


def settle(
    explainer: Explainer,
    X: Any,
    *,
    confidence: float = 0.99,
    top: int = 4,
    tie: float = TIE,
    higher_is_better: bool | None = None,
    seed: int = 0,
    progress: bool | None = None,
) -> Settled:
    """Explain rows against references drawn at random, until it is certain enough which reasons are the largest.

    With the given confidence, the reasons of a row, its `top` most adverse credits, are those that the whole reference
    would give: no omitted credit exceeds a given one by more than a tie. Their order is not guaranteed. Rows whose
    reasons are too close to call are explained against all references.

    The result is an estimate, for looking at many rows; it is not what `verify_reasons` compares an audit record with.
    A letter should be based on all references.

    Parameters
    ----------
    explainer : Explainer
        Of one output, with a reference of a few thousand rows; up to about 130 nothing is saved for a link over trees,
        such as a probability, and up to about 340 for other models.
    X : table
    confidence : float
        For each row, whenever its drawing stops; 1 uses all references.
    top : int
        How many reasons.
    tie : float
        Credits that differ by less than this share of the row's largest are tied, and either may be given; 0 for none.
    higher_is_better : bool, optional
        Which direction is adverse; by default as the reference says.
    seed : int
        Of the order in which references are drawn: the same for all rows, so that a row does not depend on the others.
    progress : bool, optional
        Whether to show how far the work is, if it takes longer than two seconds; by default as `gigrad.config.progress`
        says.

    Notes
    -----
    Bounds are Student's, corrected for a finite population, and hold together over all comparisons and all times at
    which the drawing may stop, by a union bound. They assume that means of about a hundred residuals or more are
    normal, which no sample can prove: for 12 loans of Lending Club against 2,000 others, in 40 random orders, at most
    1 % of the answers had wrong reasons. For a link over trees, credits are estimated by regression on those in margin
    space, which are fast to compute against all references. For a sum of trees in margin space nothing is gained.

    Examples
    --------
    >>> import gigrad as gig
    >>> found = gig.settle(gig.Explainer(model, approved), X.head(3), confidence=1)
    >>> found.references.tolist()
    [579, 579, 579]
    """
    settler = Settler.of(explainer, confidence, top, tie, higher_is_better, seed)
    graph, known = explainer.scorer.graph, explainer.reference.names
    rows = under_names(read_rows(X, graph, what="X"), known, graph, what="X", other="the reference")
    with shown(wanted(progress, config.progress), "settling", len(rows)):
        return settler(rows)


class Drawn(NamedTuple):
    """A row's credits against some references, one by one, scaled by their weights."""

    credits: Array  # (n, p)
    errors: Array  # (n,)
    margins: Array  # (n, p): the credits for the sum of trees under the link; (n, 0) where there is no such sum

    def and_(self, more: Drawn) -> Drawn:
        return Drawn(*map(np.concatenate, zip(self, more, strict=True)))


class Aim(NamedTuple):
    """What is known of a row before anything is drawn: over all references, the sum of its mean credits, and its mean
    margin credits, (p,) or (0,); and how far each feature lies from the cut between reasons and others, (p,)."""

    total: float
    margins: Array
    far: Ints


class _Found(NamedTuple):
    values: Array  # (p,)
    error: float
    used: int


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
    linked : LinkedTrees or None
        The model, if it is a link over trees.
    first : int
        The number of references in the certainty stratum.
    regressions : tuple
        One for each look of the plan.
    """

    explainer: Explainer
    plan: Plan
    sign: float
    asked: dict[str, Any]
    starts: Array
    scale: Array
    scores: Array
    linked: LinkedTrees | None = None
    first: int = 0
    regressions: tuple[AnchorRegression | MarginRegression, ...] = ()

    @classmethod
    def of(
        cls, explainer: Explainer, confidence: float, top: int, tie: float, higher_is_better: bool | None, seed: int
    ) -> Settler:
        """The settler for an explainer: the order of drawing, and the regressors that all rows share."""
        if not isinstance(explainer, Explainer) or explainer.scorer.node.width != 1:
            raise InputError(f"settle must be given an Explainer of one output; got {kind_of(explainer)}.")
        sure = 1.0 if checks.is_number(confidence) and confidence == 1 else checks.inside(confidence, "confidence")
        sign = adverse_sign(agreed_direction(explainer.provenance["reference"], higher_is_better))
        top, tie, seed = checks.whole(top, "top"), checks.target(tie, "tie"), checks.seed(seed)
        features, count = len(explainer.grouping.members), len(explainer.weights)
        asked = {"confidence": sure, "top": top, "tie": tie, "seed": seed}
        scale, scores = explainer.weights * count, explainer.reference_scores
        linked = as_linked_trees(explainer.scorer.node, explainer.scorer.graph.input)
        # the regression on an anchor has a coefficient for each feature: four references for every one of them
        anchored = ANCHORED._replace(first=max(ANCHORED.first, 4 * (features + 2)))
        plan = Plan.of(sure, top, tie, features, count, BESIDE_MARGINS if linked else anchored)
        whole = cls(explainer, plan, sign, asked, explainer.reference.matrix, scale, scores, linked)
        return whole._ordered(seed) if plan.looks else whole

    def _ordered(self, seed: int) -> Settler:
        """This settler with its references in drawing order: the certainty stratum first, the others at random."""
        anchored, schedule = self._anchored(), self.plan.schedule
        first = taken_first(anchored, schedule.rare)
        others = np.setdiff1d(np.arange(len(anchored)), first)
        drawn = others[np.random.default_rng(seed).permutation(len(others))]
        order = np.concatenate([first, drawn])
        plan = self.plan.over(len(others))
        return replace(
            self,
            plan=plan,
            asked=self.asked | {"taken_first": len(first), "looks": [len(first) + n for n in plan.looks]},
            starts=self.starts[order],
            scale=self.scale[order],
            scores=self.scores[order],
            first=len(first),
            regressions=self._regressions(anchored[drawn], drawn, plan),
        )

    def _anchored(self) -> Array:
        """Credits from every reference to one of them, in units of their standard deviations, (m, p).

        Of a link over trees those for the trees alone: they show as well where a rare value matters, in half the time.
        """
        # The most adverse reference is the one most like the rows that are refused.
        anchor = int((self.sign * self.scores[:, 0]).argmax())
        row = self.starts[[anchor]]
        if self.linked is None:
            (drawn,) = self.draw(row, self.scores[[anchor]], 0, len(self.starts))
            return _standard(drawn.credits)
        back = self.linked.sums(Population(row, np.ones(1), self.starts), self.explainer.settings)
        return _standard(-back * self.scale[:, None])

    def _regressions(self, anchored: Array, drawn: Ints, plan: Plan) -> tuple[AnchorRegression | MarginRegression, ...]:
        """With credits to the anchor, (drawn, p), of the references that are drawn, in that order."""
        scale = self.scale[drawn]
        known = [scale, scale * self.scores[drawn, 0]]  # with these, estimates on an anchor add up exactly
        spread, count = anchored.var(axis=0), len(drawn)
        if self.linked is None:
            seen = np.column_stack([anchored, _standard(np.column_stack(known))])
            mean, spread = seen.mean(axis=0), seen.var(axis=0)
            return tuple(AnchorRegression.of(seen[:n], mean, spread, count) for n in plan.looks)
        margins = self.linked.trees.forward(self.starts[drawn])[:, 0]
        shared = _standard(np.column_stack([*known, scale * margins]))
        mean = shared.mean(axis=0)
        return tuple(MarginRegression.of(shared[:n], mean, anchored[:n], spread, count) for n in plan.looks)

    def __call__(self, rows: Rows) -> Settled:
        """Explain rows, each against as many references as settle its reasons."""
        explainer, scorer = self.explainer, self.explainer.scorer
        scores, count = scorer.scores(rows), len(self.starts)
        scorer.refuse_ignored(explainer.reference, rows)
        found: list[_Found] = []
        width = (self.first + self.plan.looks[0] if self.plan.looks else count) * self.plan.features
        step = max(TOGETHER // max(width, 1), 1)
        for r in range(0, len(rows), step):
            with part(r / len(rows), min(r + step, len(rows)) / len(rows)):
                found += self.explain(rows.matrix[r : r + step], scores.graph[r : r + step])
        values = np.array([f.values for f in found]).reshape(len(rows), self.plan.features, 1)
        error = np.array([f.error for f in found]).reshape(len(rows), 1)
        used = np.array([f.used for f in found], np.int64)
        base = np.broadcast_to(explainer.base, scores.own.shape)
        credit = scorer.held_to_own(Credits(values, error), base, scores.own, explainer.settings.tol)
        record = {**explainer.provenance, "settled": self.asked}
        e = scorer.explanation(credit, base, scores.own, rows, explainer.grouping, record)
        return Settled(e, used, self.confidence(used), count)

    def confidence(self, used: Ints) -> Array:
        """The confidence in the reasons of rows that used so many references, (n,)."""
        return np.where(used < len(self.starts), self.plan.confidence, 1.0)

    def draw(self, rows: Array, scores: Array, first: int, last: int) -> list[Drawn]:
        """Each row's credits against the references from `first` to `last`, one by one."""
        x, some = self.explainer, slice(first, last)
        scorer, scale = x.scorer, self.scale[some]
        paths = Population(self.starts[some], scale, rows)
        paths.tell(scorer.node, self.scores[some], scores)
        settings = replace(x.settings, quiet=True)
        found, margins = attribute_singly(scorer.node, scorer.graph.input, self.linked, paths, settings)
        each = found.values[:, :, 0], found.error, margins
        credits, errors, margins = (x.reshape(len(rows), last - first, x.shape[1]) * scale[:, None] for x in each)
        return [Drawn(*one) for one in zip(credits, errors[:, :, 0], margins, strict=True)]

    def explain(self, rows: Array, scores: Array) -> list[_Found]:
        """The credits of rows (n, columns) with scores (n, 1), from as many references as settle their reasons."""
        aims, seen, found = self.aims(rows, scores), dict[int, Drawn](), dict[int, _Found]()
        undecided, taken = list(range(len(rows))), 0
        for n, regression in zip(self.plan.looks, self.regressions, strict=True):
            self._draw_more(seen, rows, scores, undecided, taken, self.first + n)
            taken = self.first + n
            for r in undecided:
                settled = self._settled(seen[r], regression, aims[r])
                if settled is not None:
                    found[r] = settled
            undecided = [r for r in undecided if r not in found]
            if not undecided:
                break
        if undecided:
            self._draw_more(seen, rows, scores, undecided, taken, len(self.starts))
        for r in undecided:
            found[r] = _Found(seen[r].credits.mean(axis=0), float(seen[r].errors.mean()), len(self.starts))
        return [found[r] for r in range(len(rows))]

    def _draw_more(
        self, seen: dict[int, Drawn], rows: Array, scores: Array, some: list[int], first: int, last: int
    ) -> None:
        """Add to what was seen of some rows their credits against the references from `first` to `last`."""
        for r, more in zip(some, self.draw(rows[some], scores[some], first, last), strict=True):
            seen[r] = seen[r].and_(more) if r in seen else more

    def aims(self, rows: Array, scores: Array) -> list[Aim]:
        """What is known of rows before anything is drawn."""
        total = scores[:, 0] - float((self.scale * self.scores[:, 0]).mean())
        near = np.zeros(self.plan.features, np.int64)
        if self.linked is None or not self.plan.looks:
            return [Aim(float(t), np.zeros(0), near) for t in total]
        paths = Population(self.starts, self.scale / len(self.starts), rows)
        margins = self.linked.sums(paths, self.explainer.settings)
        change = margins.sum(axis=1)
        slope = np.where(change != 0.0, total / np.where(change != 0.0, change, 1.0), 0.0)
        return [
            Aim(float(t), m, self.plan.far(self.sign * m * b)) for t, m, b in zip(total, margins, slope, strict=True)
        ]

    def _settled(self, seen: Drawn, regression: AnchorRegression | MarginRegression, aim: Aim) -> _Found | None:
        found = self.estimate(seen, regression, aim)
        if not self.plan.settled(found._replace(mean=self.sign * found.mean), aim.far):
            return None
        half = self.plan.quantile(found.freedom) * np.sqrt(np.diag(found.covariance).max())
        return _Found(found.mean, float(half + seen.errors.mean()), len(seen.credits))

    def estimate(self, seen: Drawn, regression: AnchorRegression | MarginRegression, aim: Aim) -> Estimate:
        """Estimated mean credits over all references, from those of the certainty stratum and of the drawn ones."""
        count, k = len(self.starts), self.first
        taken, share = seen.credits[:k].sum(axis=0) / count, self.plan.references / count
        if isinstance(regression, AnchorRegression):
            drawn = regression.estimate(seen.credits[k:])
        else:
            margins = (aim.margins - seen.margins[:k].sum(axis=0) / count) / share
            total = (aim.total - float(taken.sum())) / share
            drawn = regression.estimate(seen.credits[k:], seen.margins[k:], margins, total)
        return Estimate(taken + share * drawn.mean, share**2 * drawn.covariance, drawn.freedom)


def _standard(known: Array) -> Array:
    """Columns in units of their standard deviations."""
    spread = known.std(axis=0)
    return np.asarray(known / np.where(spread > 0, spread, 1.0))
