"""One link over one sum of trees, the commonest model of all, has a native walk of its own."""

from __future__ import annotations

import numpy as np

from .. import kernels
from ..graph import Affine, Elementwise, Input, Node, PiecewiseLinear, Select, Softmax, TreeEnsemble
from ..kernels import Stage
from .paths import Pairs, Paths
from .settings import Credits, Settings


def as_link(term: Node, source: Input) -> tuple[TreeEnsemble, list[Stage]] | None:
    """The trees and the stages above them, where `term` is a chain of functions over one sum of trees of the rows."""
    stages: list[Stage] = []
    while True:
        if isinstance(term, TreeEnsemble):
            return (term, stages[::-1]) if term.source is source else None
        elif isinstance(term, Affine):
            stages.append(Stage("affine", term.weight, term.bias))
        elif isinstance(term, Select):
            stages.append(Stage("affine", np.eye(term.source.width)[list(term.columns)], np.zeros(term.width)))
        elif isinstance(term, Elementwise) and term.name in kernels.LINK_FUNCTIONS:
            stages.append(Stage(term.name, np.array([term.parameter])))
        elif isinstance(term, PiecewiseLinear):
            stages.append(Stage("piecewise_linear", term.x, term.y))
        elif isinstance(term, Softmax):
            stages.append(Stage("softmax"))
        else:
            return None
        term = term.source


def credits(trees: TreeEnsemble, link: list[Stage], paths: Paths, settings: Settings) -> Credits:
    """Credit of every end for a link over a sum of trees; without stages, for the sum itself."""
    forest, threads, seed = trees.grouped_forest(settings.players), settings.n_threads, settings.seed
    if isinstance(paths, Pairs):
        if link:
            return Credits(*kernels.linked_credits_pairs(forest, link, paths.starts, paths.ends, threads, seed=seed))
        values = kernels.credits_pairs(forest, paths.starts, paths.ends, threads)
    else:
        if link:
            found = kernels.linked_credits(forest, link, paths.starts, paths.weights, paths.ends, threads, seed=seed)
            return Credits(*found)
        values = kernels.credits(forest, paths.starts, paths.weights, paths.ends, threads)
    return Credits(values, np.zeros((len(values), trees.width)))
