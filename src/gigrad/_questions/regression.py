"""Mean credits over all references, estimated from those that were drawn by regression on what is known of all.

Under a link over trees, the credits for the sum of trees itself, without the link, take a seventh of the time of those
under the link, and those of each drawn reference come with its credits. Their means are taken over several times as
many references as are drawn, in the end over all. On Lending Club the residuals have a tenth (depth 3) to a quarter
(depth 5) of the variance (`MarginRegression`).

For other models, credits from every reference to one row, the anchor, are known. A model that is nearly additive has
nearly the same credits there, up to a constant (`AnchorRegression`).

Both are regression estimators for finite populations (Cochran, "Sampling techniques", chapter 7; Sarndal, Swensson and
Wretman, "Model assisted survey sampling", chapter 6).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..graph import Array
from .certificate import Estimate, Schedule
from .drawing import Drawing

ANCHORED = Schedule(first=256, growth=1.25, rare=0.01)
"""Growth by 1.4 took 5 % more references on Lending Club; a smaller factor means more looks, and so wider intervals.
Without a certainty stratum, a flag set for one loan in a hundred made most rows need up to 700 of 2,000 references."""
BESIDE_MARGINS = Schedule(first=128, growth=1.4, rare=0.005, beside=3.0)
"""The residuals are smaller, so that smaller samples do. Simulated for 60 loans of Lending Club in six orders (60 trees
of depth 4, 200 of depth 5), all margins from the start took 20 % and 25 % more time; `beside` of 2 or 4 takes up to 5 %
more for one of them. A first look at 96 and growth by 1.25 takes 5 % to 10 % fewer references, but 8 % more time with
200 trees and the same with 60: each further call costs a row about as much time as 35 references (measured: 30 of them
take 111 us each, 400 take 59). Going on to where a row is likely to be settled, by what its half-widths lack, took more
time: most rows are settled earlier than that. With `rare` of 0.01 the certainty stratum had 60 to 80
references, 40 more in all; with 0.002 it was too small, and rows needed up to 1,000."""
SAMPLE_OF_EACH = 16
"""References drawn for each principal component of the credits to the anchor that is a regressor, the largest first.
They explain much of the margin credits, and so of what is not known of these before all are computed. With 10 it took
up to 1 % less time, with 40 up to 3 % more, without them 7 %."""


def principal(known: Array) -> Array:
    """The principal components of columns (M, p), the largest first, in units of their standard deviations."""
    centred = known - known.mean(axis=0)
    size, vectors = np.linalg.eigh(centred.T @ centred)
    kept = size > 1e-10 * max(float(size.max(initial=0.0)), 1e-300)
    return np.asarray((centred @ (vectors[:, kept] * np.sqrt(len(known) / size[kept])))[:, ::-1])


@dataclass(frozen=True, eq=False)
class AnchorRegression:
    """A regression estimator of mean credits over all references, from the credits of the first n of them.

    Made once for each n: the regressors (the anchor's credits, weights and scores) are the same for every row.

    Attributes
    ----------
    basis : (n, r)
        An orthonormal basis of the regressors.
    moved : (r,)
        The basis's mean over all references less that over the first n.
    leverage : float
        The factor from the variance of the residuals to that of an estimate.
    unseen : (p,)
        A factor for the standard deviation of each feature; infinite where the sample holds too little of its variance.
    """

    basis: Array
    moved: Array
    leverage: float
    unseen: Array

    @classmethod
    def of(cls, regressors: Array, drawing: Drawing, n: int) -> AnchorRegression:
        """The estimator from the first n draws, with regressors of all references that are drawn from, (M, q).

        The first p regressors belong to the features. The last two enter the basis first: a quantity that they
        determine, such as the sum of a row's credits, is then estimated without error.
        """
        known, spread = regressors[drawing.draws(n)], drawing.variance(regressors)
        centred, shift = known - known.mean(axis=0), drawing.mean(regressors) - known.mean(axis=0)
        basis, moved = _orthonormal(centred[:, -2:], shift[-2:])
        along = basis.T @ centred[:, :-2]
        more, moved_more = _orthonormal(centred[:, :-2] - basis @ along, shift[:-2] - moved @ along)
        moved = np.concatenate([moved, moved_more])
        leverage = drawing.mean_variance(n) + float(moved @ moved)
        return cls(np.column_stack([basis, more]), moved, leverage, np.sqrt(_unseen(known[:, :-2], spread[:-2])))

    def estimate(self, credits: Array) -> Estimate:
        """The estimate from rows' credits against the first n references, (rows, n, p)."""
        middle = credits.mean(axis=1, keepdims=True)
        slopes = self.basis.T @ (credits - middle)
        rest = credits - middle - self.basis @ slopes
        freedom = credits.shape[1] - self.basis.shape[1] - 1
        covariance = _products(rest) * (self.leverage / freedom)
        covariance = _inflated(covariance, self.unseen) + _diagonal(np.isinf(self.unseen))
        return Estimate(middle[:, 0] + self.moved @ slopes, covariance, freedom)


@dataclass(frozen=True, eq=False)
class MarginRegression:
    """A regression estimator of mean credits over all references, from those of the first n and their margin credits.

    Each feature's credits are regressed on its own margin credits, and on regressors that are the same for every row.
    The margin credits of all features would leave the same variance, at the cost of a coefficient for each of them.

    Margin credits are known of those and of more references, m in all, which are all of them in the end: until then
    their mean over all is estimated by regression, too, and the estimator is one for two-phase sampling.

    Attributes
    ----------
    basis : (n, r)
        An orthonormal basis of the regressors that are the same for every row: weights, scores, margins, and principal
        components of the credits to an anchor.
    moved : (r,)
        The basis's mean over all references less that over the first n.
    moved_beside : (r,)
        The same less that over the m whose margin credits are known.
    sampled : (2,)
        The variance of a mean over a sample of n of those m references, in units of that of one; and over m of all.
    unseen : (p,)
        A factor for the standard deviation of each feature; infinite where the sample holds too little of its variance.
    """

    basis: Array
    moved: Array
    moved_beside: Array
    sampled: tuple[float, float]
    unseen: Array

    @classmethod
    def of(cls, known: Array, anchored: Array, drawing: Drawing, n: int, last: int) -> MarginRegression:
        """With what is known of all references that are drawn from, (M, q), and their credits to an anchor, (M, p).

        Margin credits are known of the first n draws and of the `last` references, which may be among them, too.
        """
        draws, mean = drawing.draws(n), drawing.mean(known)
        middle, beside = known[draws].mean(axis=0), drawing.mean_beside(known, n, last)
        basis, moved = _orthonormal(known[draws] - middle, np.stack([mean - middle, mean - beside]))
        unseen = np.sqrt(_unseen(anchored[draws], drawing.variance(anchored)))
        return cls(basis, moved[0], moved[1], drawing.sampled(n, last), unseen)

    def estimate(self, credits: Array, margins: Array, beside: Array, total: Array) -> Estimate:
        """From rows' credits and margin credits of the first n references, (rows, n, p), and what else is known.

        That is the means of the margin credits over the m, (rows, p), and the sum of the mean credits over all.
        """
        n, p = credits.shape[1:]
        both = np.concatenate([credits, margins], axis=2)
        middle, along = both.mean(axis=1), self.basis.T @ both
        rest = both - (middle[:, None] + self.basis @ along)  # what the basis leaves of them
        means = middle + self.moved @ along  # and its estimate of their means
        rest, own = rest[:, :, :p], rest[:, :, p:]
        size = np.einsum("rij,rij->rj", own, own)
        moves = size > 1e-12 * np.einsum("rij,rij->rj", margins, margins)
        per = np.where(moves, 1.0 / np.where(moves, size, 1.0), 0.0)
        slope = np.einsum("rij,rij->rj", own, rest) * per
        shift = beside + self.moved_beside @ along[:, :, p:] - means[:, p:]
        # The estimate is a weighted mean of the credits, so that its error is that of the weighted residuals.
        weight = own * (n * shift * per)[:, None] + (1.0 + n * (self.basis @ self.moved))[:, None]
        freedom = n - self.basis.shape[1] - 2
        within, beyond = self.sampled
        covariance = _products(weight * (rest - own * slope[:, None])) * (within / freedom)
        if beyond:
            covariance += _products(rest) * (beyond / freedom)
        covariance = _inflated(covariance, self.unseen)
        mean, covariance = _held_to_sum(means[:, :p] + slope * shift, covariance, total)
        return Estimate(mean, covariance + _diagonal(np.isinf(self.unseen)), freedom)


def _products(rest: Array) -> Array:
    """The sums of products of columns, (rows, p, p), of each row's matrix, (rows, n, p)."""
    return np.asarray(rest.transpose(0, 2, 1) @ rest)


def _inflated(covariance: Array, unseen: Array) -> Array:
    """Covariances (rows, p, p) with standard deviations times `unseen`, 0 where that is infinite."""
    seen = np.where(np.isinf(unseen), 0.0, unseen)
    return np.asarray(covariance * np.outer(seen, seen))


def _held_to_sum(mean: Array, covariance: Array, total: Array) -> tuple[Array, Array]:
    """Normal estimates (rows, p) and covariances, conditioned on each row's sum, which is `total` (rows,)."""
    along = covariance.sum(axis=2)
    size, variance = along.sum(axis=1, keepdims=True), np.diagonal(covariance, axis1=1, axis2=2)
    unsure = size > 1e-9 * variance.sum(axis=1, keepdims=True)
    part = np.where(unsure, along / np.where(unsure, size, 1.0), 0.0)
    # where the sum is sure, rounding is all that is missing
    likely = np.where(variance.any(axis=1, keepdims=True), variance, 1.0)
    missing = (total - mean.sum(axis=1))[:, None]
    held = mean + missing * np.where(unsure, part, likely / likely.sum(axis=1, keepdims=True))
    return held, covariance - part[:, :, None] * along[:, None, :]


def _unseen(known: Array, spread: Array) -> Array:
    """The ratio of each regressor's variance over all references to that over the drawn ones, (q,); at least 1.

    The sample underestimates the variance of a feature that matters for few references if too few of those were drawn;
    the anchor's credits show it. Infinite where they vary over all references but not over the drawn ones.
    """
    seen = known.var(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(spread > 0, spread / seen, 1.0)
    return np.asarray(np.maximum(ratio, 1.0))


def _diagonal(blind: NDArray[np.bool_]) -> Array:
    """A covariance matrix with infinite variances for the features marked in `blind`, and 0 elsewhere."""
    out = np.zeros((len(blind), len(blind)))
    out[blind, blind] = np.inf
    return out


def _orthonormal(columns: Array, shift: Array) -> tuple[Array, Array]:
    """An orthonormal basis of the span of some columns (n, q), and differences of their means (..., q) in that basis.

    The basis is smaller than q if the columns are linearly dependent.
    """
    size, vectors = np.linalg.eigh(columns.T @ columns)
    kept = size > 1e-10 * max(float(size.max(initial=0.0)), 1e-300)
    whitened = vectors[:, kept] / np.sqrt(size[kept])
    return columns @ whitened, shift @ whitened
