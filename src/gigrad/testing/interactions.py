"""Interactions by brute force: credits by the definition, recomputed with each variable held at its end value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .._explain.grouping import Grouping
from ..graph import Array, evaluate
from ..importers import import_model
from .definition import brute_force


def brute_force_interactions(
    model: Any,
    start: Any,
    end: Any,
    *,
    output: Any = None,
    target: str | float | None = None,
    groups: Mapping[str, Sequence[str]] | None = None,
    **choice: Any,
) -> Array:
    """The matrix of `gigrad.interactions` for one pair by the definition itself: (features, features, k).

    Parameters
    ----------
    model : fitted model or Graph
    start, end : (p,) encoded rows
    output, target, groups
        As in `gigrad.explain`.
    **choice
        `discrete` and `nominal`, as in `brute_force`.

    Examples
    --------
    >>> from gigrad.testing import brute_force_interactions
    >>> brute_force_interactions(tree, start=[0.0, 0.0], end=[1.0, 1.0])[:, :, 0]
    array([[1., 1.],
           [1., 1.]])
    """
    graph = import_model(model)
    node, _ = graph.output(output, target)
    start, end = np.asarray(start, np.float64), np.asarray(end, np.float64)
    asked = {"output": output, "target": target, "groups": groups, **choice}

    def score(row: Array) -> Array:
        return np.asarray(evaluate((node,), {graph.input: row[None]})[node][0])

    credit = brute_force(model, start, end, **asked)
    out = np.zeros((len(credit), *credit.shape))
    for i, columns in enumerate(Grouping.of(graph.feature_names, groups).members.values()):
        held = start.copy()
        held[list(columns)] = end[list(columns)]
        out[i] = brute_force(model, held, end, **asked) - credit
        out[i, i] = score(held) - score(start)
    return out
