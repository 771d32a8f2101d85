"""Applicants explained again under a change, for `reason_stability`."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from .._common.progress import part as stage
from .._common.progress import parts
from .._explain.explainer import Explainer
from .._explain.explanation import Explanation
from .._explain.resampling import BLOCK, bootstrap_weights, credits_by_start
from .._explain.scorer import Scorer
from .._io.tables import read_rows
from ..engine import Pairs, Population, attribute, categories_read
from ..graph import Array, Between, Input, Node, evaluate
from .ranking import Rules, choose

Listed = tuple[str, ...]  # an applicant's reasons, worst first

SHARES = (0.5 - 3.0**0.5 / 6.0, 0.5 + 3.0**0.5 / 6.0)
"""The points of the two-point Gauss rule, 0.21 and 0.79: the mean over both is that over all points, to third order."""


class Trial:
    """Explains the same applicants again under a change, and lists the resulting reasons."""

    def __init__(self, explainer: Explainer, e: Explanation, rules: Rules, groups: Any, random: Any) -> None:
        self.explainer, self.e, self.rules, self.groups, self.random = explainer, e, rules, groups, random
        self.rows: Array = read_rows(e.data, explainer.scorer.graph, what="X").matrix

    def references(self, times: int) -> list[list[Listed]]:
        """With the reference resampled: for each applicant, the reasons of every sample."""
        x, scorer = self.explainer, self.explainer.scorer
        weights = bootstrap_weights(x.weights, times, self.random)
        base = weights @ self.values(scorer.node, x.reference.matrix)
        out: list[list[Listed]] = []
        for part, credits, errors in credits_by_start(scorer, x.reference.matrix, self.rows, x.settings):
            for i, one, uncertain in zip(range(part.start, part.stop), credits, errors.of_means(weights), strict=True):
                drawn = weights @ one
                out.append(self._listed(drawn, base, np.full(times, self.e.predictions[i]), uncertain))
        return out

    def space(self, output: Any) -> list[list[Listed]]:
        """With another output of the model: for each applicant, the one list of reasons."""
        node = self.node(output)
        values = self.values(node, self.rows)
        base = self.explainer.weights @ self.values(node, self.explainer.reference.matrix)
        credits, error = self._explained(node, self.rows)
        listed = self._listed(credits, np.full(len(values), base), values, error)
        return [[one] for one in listed]

    @cached_property
    def at_once(self) -> bool:
        """Whether anything changes all at once: categories, nominal columns, missing values."""
        scorer, starts = self.explainer.scorer, self.explainer.reference.matrix
        missing = np.isnan(starts).any() or np.isnan(self.rows).any()
        return bool(missing or categories_read(scorer.node, scorer.source).any())

    @property
    def conventions(self) -> bool:
        """Whether there is anything that changes half-way by convention."""
        return bool(self.explainer.choice.discrete) or self.at_once

    def shares(self) -> list[list[Listed]]:
        """With discrete changes at another point than half-way: for each applicant, the reasons at each of `SHARES`."""
        x = self.explainer
        base = np.full(len(self.rows), float(x.base[0]))
        trials = []
        for half, share in zip(parts(1, 1), SHARES, strict=True):
            moved = x.scorer.under(x.choice, x.reference.names, share)
            with half:
                if self.at_once:
                    credits, error = self._in_two_pieces(moved, share)
                else:
                    credits, error = self._explained(moved.node, self.rows, moved.source)
            trials.append(self._listed(credits, base, self.e.predictions, error))
        return [list(own) for own in zip(*trials, strict=True)]

    def measurements(self, half_width: Array, draws: int) -> list[list[Listed]]:
        """With values drawn within their measurement error: for each applicant, the reasons of every draw."""
        whole = np.array([_is_whole(column) for column in self.rows.T])
        node = self.explainer.scorer.node
        out: list[list[Listed]] = [[] for _ in self.rows]
        base = np.full(len(self.rows), float(self.explainer.base[0]))
        for drawn in parts(*np.ones(draws)):
            moved = self.rows + self.random.uniform(-1.0, 1.0, self.rows.shape) * half_width
            moved = np.where(whole, np.rint(moved), moved)
            with drawn:
                credits, error = self._explained(node, moved)
            for held, one in zip(out, self._listed(credits, base, self.values(node, moved), error), strict=True):
                held.append(one)
        return out

    def node(self, output: Any) -> Node:
        graph, name = self.explainer.scorer.graph, self.explainer.scorer.output_names[0]
        one = len(graph.output(output)[1]) == 1
        return graph.output(output, None if one and name not in graph.labels else name)[0]

    def values(self, node: Node, matrix: Array) -> Array:
        return evaluate((node,), {self.explainer.scorer.source: matrix})[node][:, 0]

    def _explained(self, node: Node, matrix: Array, source: Input | None = None) -> tuple[Array, Array]:
        """Credits and errors of rows under the trial's reference."""
        x = self.explainer
        population = Population(x.reference.matrix, x.weights, matrix)
        credit = attribute(node, source or x.scorer.source, population, x.settings)
        return credit.values[:, :, 0], credit.error[:, 0]

    def _in_two_pieces(self, scorer: Scorer, share: float) -> tuple[Array, Array]:
        """Credits (rows, columns) and errors (rows,) with discrete changes at `share` of the path instead of one half.

        Credit is additive along a path. Each path is cut in two, so that `share` is the middle of the part in which the
        change happens; in the other part it has happened already, or not yet.
        """
        x = self.explainer
        between = Between.of(scorer.graph, scorer.node)
        source, node = scorer.source, between.nodes[0]
        references, categories = between.read(x.reference.matrix), categories_read(node, source)
        cut = 2.0 * share if share < 0.5 else 2.0 * share - 1.0
        credits, error = np.zeros((len(self.rows), len(self.e.feature_names))), np.zeros(len(self.rows))
        for i, row in enumerate(between.read(self.rows)):
            for part in (slice(first, first + BLOCK) for first in range(0, len(references), BLOCK)):
                starts = references[part]
                ends = np.tile(row, (len(starts), 1))
                leaps = np.isnan(starts) | np.isnan(ends) | categories
                middle = np.where(leaps, ends if share < 0.5 else starts, (1.0 - cut) * starts + cut * ends)
                for pairs in (Pairs(starts, middle), Pairs(middle, ends)):
                    with stage(i / len(self.rows), (i + 1) / len(self.rows)):
                        found = attribute(node, source, pairs, replace(x.settings, quiet=True))
                    credits[i] += x.weights[part] @ found.values[:, :, 0]
                    error[i] += x.weights[part] @ found.error[:, 0]
        return credits, error

    def _listed(self, credits: Array, base: Array, predictions: Array, error: Array) -> list[Listed]:
        """The reasons of each row, by the same rules as those that are tested."""
        zero = np.zeros(len(credits))
        flat = Explanation(credits, base, predictions, zero, error, None, self.e.feature_names, ("score",))
        grouped = flat.group(self.groups) if self.groups else flat
        names = self.rules.features
        chosen = (
            choose(grouped.values[i], float(base[i]), float(predictions[i]), float(error[i]), self.rules).chosen
            for i in range(len(credits))
        )
        return [tuple(names[j] for j in one) for one in chosen]


def _is_whole(values: Array) -> bool:
    present = values[~np.isnan(values)]
    return bool((present == np.rint(present)).all())
