"""Credit is linear in the model: an output is taken apart into weighted terms, each done the fastest exact way.

`output = constant + sum of matrix @ term`. A sum of trees, or a link over one, goes to the native walk; a term of which
every output reads one column alone gives that column the whole difference; a function of one straight score has a
closed form, and so have trees with linear leaves and trees over straight scores; everything else goes to the mixed
engine.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import NamedTuple

import numpy as np

from ..graph import Affine, Array, Input, Node, TreeEnsemble, value_of
from ..kernels import Stage
from .closed_form import leaves, links, oblique
from .paths import Bools, Ints, Paths
from .roles import categories_read, own_columns
from .settings import Credits, Settings


def credits_of(node: Node, source: Input, paths: Paths, settings: Settings) -> Credits:
    """Credit of every end for the output `node` of a graph whose rows enter at `source`, as the engines give it."""

    @cache
    def allowed() -> Array:  # called only if something is not exact: it costs a prediction of every row
        starts, ends = paths.scores(node, source)
        return settings.tol * np.maximum(np.abs(ends), np.abs(paths.base(starts)))

    categories = categories_read(node, source)
    width = source.width if settings.players is None else int(settings.players.max(initial=-1)) + 1
    values = np.zeros((len(paths.ends), width, node.width))
    error, finest, sampled = (np.zeros((len(paths.ends), node.width)) for _ in range(3))
    players = np.zeros(len(paths.ends), np.int64)
    terms = linear_terms(node)
    settings = replace(settings, miss=settings.miss / max(len(terms), 1))  # so that their bounds hold together
    count = max(len(terms), 1)
    linear = None if settings.careful else leaves.as_linear_leaves(terms, source)
    if linear is not None:
        part = leaves.credits(linear, source, paths, categories, allowed() / count, settings)
        values, error, finest, sampled = part.values, part.error, finest + part.finest, sampled + part.sampled
        players = np.maximum(players, part.players)
        terms = [one for one in terms if one[1] not in (linear.trees, linear.product)]
    for matrix, term in terms:
        own = own_columns(term, source)
        if own is not None:
            _add_differences(values, matrix, term, source, paths, own, settings)
            continue
        linked = None if settings.careful else links.as_link(term, source)
        if linked is not None:
            part = links.credits(*linked, paths, settings)
        else:
            matrix, term = as_outputs(matrix, term)
            part = _walked(term, source, paths, categories, share(allowed(), matrix) / count, settings)
        values += part.values @ matrix.T
        error += part.error @ np.abs(matrix).T
        finest += np.broadcast_to(part.finest, part.error.shape) @ np.abs(matrix).T
        sampled += np.broadcast_to(part.sampled, part.error.shape) @ np.abs(matrix).T
        players = np.maximum(players, part.players)
    return Credits(values, error, finest, sampled, players)


def _walked(term: Node, source: Input, paths: Paths, categories: Bools, allowed: Array, settings: Settings) -> Credits:
    """Credits by the first method that fits: a straight score, trees over straight scores, the mixed engine."""
    from . import mixed  # half of the engine, not imported for trees alone
    from .closed_form import scores

    score = None if settings.careful else scores.straight_score(term, source)
    if score is not None:
        return scores.attribute(term, score, source, paths, categories, allowed, settings)
    trees = None if settings.careful else oblique.as_oblique(term, source)
    if trees is not None:
        return oblique.credits(term, trees, source, paths, categories, allowed, settings)
    return mixed.attribute(term, source, paths, categories, allowed, settings)


def _add_differences(
    values: Array, matrix: Array, term: Node, source: Input, paths: Paths, own: Ints, settings: Settings
) -> None:
    """Add the credit of a term of which every output reads one column alone: its difference is that column's."""
    ends, starts = (value_of(term, {source: rows}) for rows in (paths.ends, paths.starts))
    change = ends - paths.base(starts)
    change[:, ~matrix.any(axis=0)] = 0.0  # a column that another term reads may be missing here
    player = own if settings.players is None else settings.players[own]
    np.add.at(values.swapaxes(0, 1), player, (change[:, :, None] * matrix.T).swapaxes(0, 1))


class LinkedTrees(NamedTuple):
    """An output that is `factor * link(sum of trees)` and a constant, of one number each."""

    trees: TreeEnsemble
    link: list[Stage]
    factor: float

    def sums(self, paths: Paths, settings: Settings) -> Array:
        """Credit of every end for the sum of the trees, (n, players): far quicker than under the link."""
        return links.credits(self.trees, [], paths, settings).values[:, :, 0]


def as_linked_trees(node: Node, source: Input) -> LinkedTrees | None:
    """The one link over one sum of trees of the rows that an output is, None if it is anything else."""
    terms = linear_terms(node)
    found = links.as_link(terms[0][1], source) if len(terms) == 1 else None
    if found is None or not found[1] or node.width != 1 or found[0].width != 1 or terms[0][1].width != 1:
        return None
    return LinkedTrees(*found, float(terms[0][0][0, 0]))


def as_outputs(matrix: Array, term: Node) -> tuple[Array, Node]:
    """The term `matrix @ term` with the matrix applied by a node, where the term is wider than the output."""
    width = len(matrix)
    if term.width <= width:
        return matrix, term
    # of the units of a net's last layer, only the weighted sum is an output
    return np.eye(width), Affine(term, matrix, np.zeros(width))


def share(allowed: Array, matrix: Array) -> Array:
    """The error that each output of a term may have, (n, term outputs), for outputs that may have `allowed` (n, k)."""
    weight = np.abs(matrix)
    with np.errstate(divide="ignore", invalid="ignore"):  # 0 / 0: nothing is allowed, and nothing is read either
        each = allowed[:, :, None] / (weight * np.maximum((weight > 0).sum(axis=1), 1)[:, None])
    return np.asarray(np.nan_to_num(each, nan=np.inf).min(axis=1))


def linear_terms(node: Node) -> list[tuple[Array, Node]]:
    """The terms of a node: (matrix of shape (node.width, term.width), term), every term once, constants left out."""
    merged: dict[Node, Array] = {}
    for matrix, term in _expand(np.eye(node.width), node):
        merged[term] = merged[term] + matrix if term in merged else matrix
    return [(matrix, term) for term, matrix in merged.items()]


def _expand(matrix: Array, node: Node) -> Iterator[tuple[Array, Node]]:
    """The weighted nodes that a sum consists of, down to those that are no sums."""
    parts = node.as_sum(matrix)
    if parts is None:
        yield matrix, node
        return
    for part, source in parts:
        if part.any():
            yield from _expand(part, source)
