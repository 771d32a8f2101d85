"""Interactions: the effect of each variable alone, and its effect because others have changed before it.

With `s_i` the start s in which variable i has the end's value already,

    own effect of i          f(s_i) - f(s)
    what i needed j for      credit of j from s_i to e, less its credit from s to e

What j loses if i changes first is the part of i's credit that depends on j having changed first. The page on the
definition derives this as a sum over steps, and shows why no symmetric matrix can do the same.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from .._common import checks, display
from .._common.optional import frame_library
from .._common.progress import part, shown, wanted
from .._explain.explainer import Explainer
from .._explain.explanation import Explanation
from .._io.tables import read_rows, under_names
from ..configuration import config
from ..engine import Population, Settings, columns_read
from ..errors import AccuracyWarning, InputError, kind_of, warn
from ..graph import Array

NAME = 34
"""Characters of a name in print, where two stand in a line."""


@dataclass(frozen=True, eq=False, repr=False)
class Interactions:
    """The effect of each variable alone, and the parts of its credit that depend on other variables.

    Attributes
    ----------
    values : (n, p, p)
        `values[r, i, i]` is the own effect of variable i: the change of the reference's mean score if variable i alone
        takes row r's value. `values[r, i, j]` is the part of i's credit that it has because j changed before it. A
        line sums to the credit: `values.sum(axis=2) + gap == explanation.values`.
    explanation : Explanation
        The credits.
    gap : (n, p)
        The part of each credit that is missing from the sum of its line.
    error : (n,)
        Estimated largest error of an entry of the row; 0 where the answer is exact.

    Examples
    --------
    >>> import gigrad as gig
    >>> found = gig.interactions(gig.Explainer(tree, [[0, 0]]), [[1, 1]])
    >>> found.values[0]  # each alone raises the score by 1, both together by 2 more
    array([[1., 1.],
           [1., 1.]])
    >>> found.pairs()["together"].tolist()
    [2.0]
    """

    values: Array
    explanation: Explanation
    gap: Array
    error: Array

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: Any) -> Interactions:
        """Some of the rows, by number, slice, list or mask."""
        try:
            index = np.atleast_1d(np.arange(len(self))[rows])
        except (IndexError, TypeError):
            raise InputError(
                f"Rows are picked by number, slice, list or mask below {len(self)}; got {rows!r}."
            ) from None
        return replace(
            self,
            values=self.values[index],
            explanation=self.explanation[index],
            gap=self.gap[index],
            error=self.error[index],
        )

    @property
    def feature_names(self) -> tuple[str, ...]:
        return self.explanation.feature_names

    @property
    def own(self) -> Array:
        """The own effect of each variable, (n, p)."""
        return np.array(np.einsum("rii->ri", self.values))

    @property
    def together(self) -> Array:
        """The joint effect of each two variables beyond their own effects, (n, p, p): symmetric, 0 on the diagonal.

        Own effects and all pairs, each counted once, add up to the score less the base value.
        """
        both = self.values + self.values.transpose(0, 2, 1)
        diagonal = np.arange(both.shape[1])
        both[:, diagonal, diagonal] = 0.0
        return np.asarray(both)

    def symmetric(self) -> Array:
        """A symmetric matrix for each row whose lines add up to the credits, (n, p, p).

        Half of `together` is off the diagonal, and the remainder of each credit on it. The diagonal is not the own
        effect: if the last of two variables to change has all of their joint effect as credit, the other variable's
        diagonal is lower than its own effect by half of it.
        """
        out = self.together / 2.0
        diagonal = np.arange(out.shape[1])
        out[:, diagonal, diagonal] = self.explanation.values - self.gap - out.sum(axis=2)
        return np.asarray(out)

    def pairs(self, *, library: Literal["pandas", "polars"] = "pandas") -> Any:
        """A data frame with a line for each two variables that interact in some row, the strongest first.

        Columns: feature, other, mean_abs (of their joint effect), together (its mean), and the two means that add up
        to this: the part of the feature's credit that depends on the other, and the reverse.
        """
        first, second = np.triu_indices(self.values.shape[1], 1)
        both = self.together[:, first, second]
        if not len(self):
            raise InputError("pairs needs at least one row; there is none.")
        strength = np.abs(both).mean(axis=0)
        order = [k for k in np.argsort(-strength, kind="stable") if strength[k] > 0]
        first, second, mean = first[order], second[order], self.values.mean(axis=0)
        names = np.array(self.feature_names, dtype=object)
        made = {
            "feature": names[first],
            "other": names[second],
            "mean_abs": strength[order],
            "together": both.mean(axis=0)[order],
            "feature_needed_other": mean[first, second],
            "other_needed_feature": mean[second, first],
        }
        return frame_library(checks.library(library)).DataFrame(made)

    def to_frame(self, *, library: Literal["pandas", "polars"] = "pandas") -> Any:
        """A data frame with a line for each row and ordered pair of features: id, feature, needed, value.

        `value` is the part of the credit of `feature` that depends on `needed`, or its own effect if both are the same.
        """
        names, p = np.array(self.feature_names, dtype=object), len(self.feature_names)
        made = {
            "id": np.repeat(self.explanation.ids, p * p),
            "feature": np.tile(np.repeat(names, p), len(self)),
            "needed": np.tile(names, len(self) * p),
            "value": self.values.ravel(),
        }
        return frame_library(checks.library(library)).DataFrame(made)

    def __repr__(self) -> str:
        n = len(self)
        if not n:
            return "Interactions of 0 rows"
        own, both = self.own.sum(axis=1).mean(), self.together
        places = display.decimals(float(np.abs(self.explanation.values).mean(axis=0).max(initial=0.0)))
        whose = f"row {self.explanation.ids[0]}" if n == 1 else f"{n:,} rows, in the mean"
        total = display.credit(float(both.sum(axis=(1, 2)).mean() / 2), places)
        lines = [f"Interactions of {whose}: alone {display.credit(float(own), places)}, together {total}"]
        first, second = np.triu_indices(both.shape[1], 1)
        strength, mean = (size[first, second] for size in (np.abs(both).mean(axis=0), both.mean(axis=0)))
        shown = [k for k in np.argsort(-strength, kind="stable")[:8] if strength[k] > 0]
        names = display.short_names(self.feature_names, NAME)
        labels = [f"{names[first[k]]} and {names[second[k]]}" for k in shown]
        width = max(map(len, labels), default=0)
        for k, label in zip(shown, labels, strict=True):
            size = "" if n == 1 else f"  (mean size {strength[k]:.{places}f})"
            lines.append(f"  {label:<{width}}  {display.credit(float(mean[k]), places)}{size}")
        return "\n".join(lines)


def interactions(explainer: Explainer, X: Any, *, progress: bool | None = None) -> Interactions:
    """Split each credit into the variable's effect alone and its effects because other variables changed before it.

    Exact wherever credits are, in every space and for every model. Takes as long as explaining the rows once more for
    each variable that the model reads.

    Parameters
    ----------
    explainer : Explainer
        Of one output. Columns of a group count as one variable.
    X : table
        A few hundred rows are enough to see which variables work together.
    progress : bool, optional
        Whether to show how far the work is, if it takes longer than two seconds; by default as `gigrad.config.progress`
        says.

    Notes
    -----
    Zero for two variables that no part of the model combines, so for all pairs in an additive model; in probability
    space the link combines all. A joint effect of three variables is counted for the last two of them to change.
    Swapping start and end changes own effects, not only signs. See the page "The definition".

    Examples
    --------
    >>> import gigrad as gig
    >>> found = gig.interactions(gig.Explainer(model, approved, output="margin"), X.head(3))
    >>> bool(abs(found.together).max() < 1e-12)  # a logistic regression adds up
    True
    """
    if not isinstance(explainer, Explainer):
        raise InputError(f"interactions must be given an Explainer of one output; got {kind_of(explainer)}.")
    if explainer.scorer.node.width != 1:
        raise InputError("interactions are about one score; build the explainer with target=.")
    graph, known = explainer.scorer.graph, explainer.reference.names
    rows = under_names(read_rows(X, graph, what="X"), known, graph, what="X", other="the reference")
    n = len(rows)
    show = wanted(progress, config.progress)
    with shown(show, "finding interactions", n):
        each = 1.0 / (len(explainer.grouping.members) + 1)  # of the time for one explanation of all rows
        with part(0.0, each):
            e = explainer(X, progress=False)
        values, error = np.zeros((n, *e.shape[1:], *e.shape[1:])), np.zeros(n)
        for r, row in enumerate(rows.matrix):
            with part(each + (1.0 - each) * r / n, each + (1.0 - each) * (r + 1) / n):
                values[r], error[r] = _of_row(explainer, row, e.values[r])
    found = Interactions(values, e, e.values - values.sum(axis=2), error + e.error)
    _warn(found, explainer.settings)
    return found


def _of_row(explainer: Explainer, row: Array, credit: Array) -> tuple[Array, float]:
    """The matrix (p, p) of one row with its credits (p,), and the largest error of the credits behind it."""
    scorer, reference = explainer.scorer, explainer.reference.matrix
    node, source = scorer.node, scorer.source
    settings, read = replace(explainer.settings, quiet=True), columns_read((node,), source)
    values, error = np.zeros((len(credit), len(credit))), 0.0
    for i, members in enumerate(explainer.grouping.members.values()):
        columns = [c for c in members if read[c]]
        held = reference.copy()
        held[:, columns] = row[columns]
        if np.array_equal(held, reference, equal_nan=True):  # the variable does not change, or the model ignores it
            continue
        paths = Population(held, explainer.weights, row[None])
        found = scorer.credit(paths, settings)
        values[i] = found.values[0, :, 0] - credit
        values[i, i] = explainer.weights @ (paths.scores(node, source)[0] - explainer.reference_scores)[:, 0]
        error = max(error, float(found.error[0, 0]))
    return values, error


def _warn(found: Interactions, settings: Settings) -> None:
    """Warn of the number of rows that missed a tolerance, once for all of the explanations behind the matrices."""
    e = found.explanation
    scale = np.maximum(np.abs(e.predictions), np.abs(e.base_values))
    largest = np.abs(e.values).max(axis=1, initial=0.0)
    allowed = 2.0 * (settings.tol * scale + settings.corner_tol * largest)
    over = found.error > allowed
    if over.any():
        warn(
            f"The tolerance was not reached on {over.sum()} of {len(found)} rows: the estimated error of an "
            f"interaction is up to {found.error[over].max():.3g}; see `error`.",
            AccuracyWarning,
        )
