"""Credit is linear in the model: an output is taken apart into weighted terms, each done the fastest exact way.

`output = constant + sum of matrix @ term`. A sum of trees goes to the native walk, everything else to the mixed engine.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np

from .. import kernels
from ..errors import AccuracyWarning
from ..graph import Affine, Array, Concat, Elementwise, Input, Node, Select, Sum, TreeEnsemble, evaluate
from . import mixed
from .paths import Pairs, Paths
from .roles import categories_read
from .settings import Credits, Settings


def attribute(node: Node, source: Input, paths: Paths, settings: Settings) -> Credits:
    """Credit of every end for the output `node` of a graph whose rows enter at `source`."""
    allowed = settings.tol * _scale(node, source, paths)
    categories = categories_read(node, source)
    width = source.width if settings.players is None else int(settings.players.max(initial=-1)) + 1
    values = np.zeros((len(paths.ends), width, node.width))
    error = np.zeros((len(paths.ends), node.width))
    terms = linear_terms(node)
    for matrix, term in terms:
        if isinstance(term, TreeEnsemble) and term.source is source and settings.players is None:
            part = _trees(term, paths, settings)
        else:
            part = mixed.attribute(term, source, paths, categories, _share(allowed, matrix) / len(terms), settings)
        values += part.values @ matrix.T
        error += part.error @ np.abs(matrix).T
    _warn(error, allowed)
    return Credits(values, error)


def _scale(node: Node, source: Input, paths: Paths) -> Array:
    """The larger of |prediction| and |base|, (n, k)."""
    ends = evaluate((node,), {source: paths.ends})[node]
    starts = evaluate((node,), {source: paths.starts})[node]
    return np.maximum(np.abs(ends), np.abs(paths.base(starts)))


def _share(allowed: Array, matrix: Array) -> Array:
    """The error that each output of a term may have, (n, term outputs), for outputs that may have `allowed` (n, k)."""
    weight = np.abs(matrix)
    with np.errstate(divide="ignore"):
        each = allowed[:, :, None] / (weight * np.maximum((weight > 0).sum(axis=1), 1)[:, None])
    return np.asarray(np.nan_to_num(each, nan=np.inf).min(axis=1))


def _warn(error: Array, allowed: Array) -> None:
    over = np.nonzero((error > allowed).any(axis=1))[0]
    if len(over):
        named = ", ".join(map(str, over[:10].tolist())) + (", ..." if len(over) > 10 else "")
        warnings.warn(
            f"The tolerance was not reached on {len(over)} of {len(error)} rows ({named}): the estimated error of their "
            f"credits is up to {error[over].max():.3g} where {allowed[over].min():.3g} was allowed; see `error`.",
            AccuracyWarning,
            stacklevel=3,
        )


def _trees(term: TreeEnsemble, paths: Paths, settings: Settings) -> Credits:
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
        wide = np.zeros((len(matrix), node.source.width))
        np.add.at(wide, (slice(None), list(node.columns)), matrix)
        yield from _expand(wide, node.source)
    elif isinstance(node, Elementwise) and node.name == "identity":
        yield from _expand(matrix, node.source)
    else:
        yield matrix, node
