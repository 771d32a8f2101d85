"""Credit is linear in the model: an output is taken apart into weighted terms, each done the fastest exact way.

`output = constant + sum of matrix @ term`. A sum of trees goes to the native walk, everything else to the mixed engine.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from .. import kernels
from ..graph import Affine, Array, Concat, Elementwise, Input, Node, Select, Sum, TreeEnsemble
from .settings import Credits, Settings


@dataclass(frozen=True, eq=False)
class Population:
    """Every end against all starts: the mean credit, by weight.

    Attributes
    ----------
    starts : (m, p)
    weights : (m,)
        They sum to 1.
    ends : (n, p)
    """

    starts: Array
    weights: Array
    ends: Array


@dataclass(frozen=True, eq=False)
class Pairs:
    """Every end against the start of the same row; both (n, p)."""

    starts: Array
    ends: Array


def attribute(node: Node, source: Input, paths: Population | Pairs, settings: Settings) -> Credits:
    """Credit of every end for the output `node` of a graph whose rows enter at `source`."""
    values = np.zeros((*paths.ends.shape, node.width))
    error = np.zeros((len(paths.ends), node.width))
    for matrix, term in linear_terms(node):
        part = _term(term, source, paths, settings)
        values += part.values @ matrix.T
        error += part.error @ np.abs(matrix).T
    return Credits(values, error)


def _term(term: Node, source: Input, paths: Population | Pairs, settings: Settings) -> Credits:
    if isinstance(term, TreeEnsemble) and term.source is source:
        return _trees(term, paths, settings)
    from . import mixed  # the quadrature tables are needed by few

    return mixed.attribute(term, source, paths, settings)


def _trees(term: TreeEnsemble, paths: Population | Pairs, settings: Settings) -> Credits:
    if isinstance(paths, Pairs):
        values = kernels.credits_pairs(term.forest, paths.starts, paths.ends, settings.n_threads)
    else:
        values = kernels.credits(term.forest, paths.starts, paths.weights, paths.ends, settings.n_threads)
    return Credits(values, np.zeros((len(values), term.width)))


def linear_terms(node: Node) -> list[tuple[Array, Node]]:
    """The terms of a node: (matrix of shape (node.width, term.width), term), every term once, constants left out."""
    merged: dict[Node, Array] = {}
    for matrix, term in _expand(np.eye(node.width), node):
        merged[term] = merged[term] + matrix if term in merged else matrix
    return [(matrix, term) for term, matrix in merged.items()]


def _expand(matrix: Array, node: Node) -> Iterator[tuple[Array, Node]]:
    if isinstance(node, Affine):
        yield from _expand(matrix @ node.weight, node.source)
    elif isinstance(node, Sum):
        for source in node.sources:
            yield from _expand(matrix, source)
    elif isinstance(node, Concat):
        edges = np.cumsum([s.width for s in node.sources])[:-1]
        for part, source in zip(np.split(matrix, edges, axis=1), node.sources, strict=True):
            if part.any():
                yield from _expand(part, source)
    elif isinstance(node, Select):
        yield from _expand(matrix @ np.eye(node.source.width)[list(node.columns)], node.source)
    elif isinstance(node, Elementwise) and node.name == "identity":
        yield from _expand(matrix, node.source)
    else:
        yield matrix, node
