"""Mean credits over all references, estimated from those that were drawn by regression on what is known of all.

Under a link over trees, the credits for the sum of trees itself, without the link, are known: their means over all
references take a tenth of the time of those under the link, and those of each drawn reference come with its credits.
On Lending Club the residuals have a tenth (depth 3) to a quarter (depth 5) of the variance (`MarginRegression`).

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
from .certificate import Estimate, Ints, Schedule

ANCHORED = Schedule(first=256, growth=1.25, rare=0.01)
"""Growth by 1.4 took 5 % more references on Lending Club; a smaller factor means more looks, and so wider intervals.
Without a certainty stratum, a flag set for one loan in a hundred made most rows need up to 700 of 2,000 references."""
BESIDE_MARGINS = Schedule(first=96, growth=1.3, rare=0.005)
"""The residuals are smaller, so that smaller samples do. On Lending Club (60 trees of depth 4, 200 of depth 5), a first
look at 128 took 11 % and 3 % more references, at 64 6 % fewer and 2 % more; growth by 1.4 took 2 % and 4 % more. With
`rare` of 0.01 the certainty stratum had 60 to 80 references, 40 more in all; with 0.002 it was too small, and rows
needed up to 1,000."""


def taken_first(known: Array, rare: float) -> Ints:
    """The certainty stratum: the references that make up half of the variance of a column of `known` (M, p), if few."""
    far = (known - np.median(known, axis=0)) ** 2
    most = int(rare * len(known))
    first = np.argsort(-far, axis=0, kind="stable")[:most]
    taken = [index[far[index, j] > 0] for j, index in enumerate(first.T) if far[index, j].sum() > 0.5 * far[:, j].sum()]
    return np.unique(np.concatenate([np.zeros(0, np.int64), *taken]))


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
    def of(cls, known: Array, mean_known: Array, spread: Array, references: int) -> AnchorRegression:
        """The estimator from the regressors of the first n references, (n, q), and their means and variances over all.

        The first p regressors belong to the features. The last two enter the basis first: a quantity that they
        determine, such as the sum of a row's credits, is then estimated without error.
        """
        n = len(known)
        centred, shift = known - known.mean(axis=0), mean_known - known.mean(axis=0)
        basis, moved = _orthonormal(centred[:, -2:], shift[-2:])
        along = basis.T @ centred[:, :-2]
        more, moved_more = _orthonormal(centred[:, :-2] - basis @ along, shift[:-2] - moved @ along)
        moved = np.concatenate([moved, moved_more])
        leverage = (1.0 - n / references) / n + float(moved @ moved)
        return cls(np.column_stack([basis, more]), moved, leverage, np.sqrt(_unseen(known[:, :-2], spread[:-2])))

    def estimate(self, credits: Array) -> Estimate:
        """The estimate from a row's credits against the first n references, (n, p)."""
        middle = credits.mean(axis=0)
        slopes = self.basis.T @ (credits - middle)
        rest = credits - middle - self.basis @ slopes
        freedom = len(credits) - self.basis.shape[1] - 1
        blind = np.isinf(self.unseen)
        rare = np.where(blind, 0.0, self.unseen)
        covariance = rest.T @ rest / freedom * self.leverage * np.outer(rare, rare) + _diagonal(blind)
        return Estimate(middle + self.moved @ slopes, covariance, freedom)


@dataclass(frozen=True, eq=False)
class MarginRegression:
    """A regression estimator of mean credits over all references, from those of the first n and their margin credits.

    Each feature's credits are regressed on its own margin credits, and on regressors that are the same for every row.
    The margin credits of all features would leave the same variance, at the cost of a coefficient for each of them.

    Attributes
    ----------
    basis : (n, r)
        An orthonormal basis of the regressors that are the same for every row: weights, scores and margins.
    moved : (r,)
        The basis's mean over all references less that over the first n.
    unsampled : float
        The share of the references that are not among the first n.
    unseen : (p,)
        A factor for the standard deviation of each feature; infinite where the sample holds too little of its variance.
    """

    basis: Array
    moved: Array
    unsampled: float
    unseen: Array

    @classmethod
    def of(cls, known: Array, mean_known: Array, anchored: Array, spread: Array, references: int) -> MarginRegression:
        """With what is known of the first n references, (n, q), and its means over all, (q,); and credits to an anchor
        of the first n, (n, p), with their variances over all, (p,)."""
        basis, moved = _orthonormal(known - known.mean(axis=0), mean_known - known.mean(axis=0))
        return cls(basis, moved, 1.0 - len(known) / references, np.sqrt(_unseen(anchored, spread)))

    def estimate(self, credits: Array, margins: Array, mean_margins: Array, total: float) -> Estimate:
        """From credits and margin credits of the first n references, (n, p), and what is known over all.

        That is the means of the margin credits, (p,), and the sum of the mean credits.
        """
        n, p = credits.shape
        both = np.concatenate([credits, margins], axis=1)
        middle, along = both.mean(axis=0), self.basis.T @ both
        rest = both - (middle + self.basis @ along)  # what the basis leaves of them
        means = middle + self.moved @ along  # and its estimate of their means
        rest, own = rest[:, :p], rest[:, p:]
        size = np.einsum("ij,ij->j", own, own)
        moves = size > 1e-12 * np.einsum("ij,ij->j", margins, margins)
        per = np.where(moves, 1.0 / np.where(moves, size, 1.0), 0.0)
        slope = np.einsum("ij,ij->j", own, rest) * per
        shift = mean_margins - means[p:]
        # The estimate is a weighted mean of the credits, so that its error is that of the weighted residuals.
        weight = own * (n * shift * per) + (1.0 + n * (self.basis @ self.moved))[:, None]
        error = weight * (rest - own * slope)
        freedom = n - self.basis.shape[1] - 2
        blind = np.isinf(self.unseen)
        rare = np.where(blind, 0.0, self.unseen)
        covariance = error.T @ error * np.outer(rare, rare) * (self.unsampled / (n * freedom))
        mean, covariance = _held_to_sum(means[:p] + slope * shift, covariance, total)
        return Estimate(mean, covariance + _diagonal(blind), freedom)


def _held_to_sum(mean: Array, covariance: Array, total: float) -> tuple[Array, Array]:
    """Estimates, given that they must add up to `total`: what is missing goes where it is most likely missing."""
    along = covariance.sum(axis=1)
    size, variance = float(along.sum()), np.diag(covariance)
    missing = total - float(mean.sum())
    if size > 1e-9 * float(variance.sum()):
        return mean + along * (missing / size), covariance - np.outer(along, along) / size
    likely = variance if variance.any() else np.ones(len(mean))  # rounding is all that is missing
    return mean + likely * (missing / float(likely.sum())), covariance


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
    """An orthonormal basis of the span of some columns (n, q), and a difference of their means (q,) in that basis.

    The basis is smaller than q if the columns are linearly dependent.
    """
    size, vectors = np.linalg.eigh(columns.T @ columns)
    kept = size > 1e-10 * max(float(size.max(initial=0.0)), 1e-300)
    whitened = vectors[:, kept] / np.sqrt(size[kept])
    return columns @ whitened, shift @ whitened
