"""Links from a margin to the score, for every library of trees, and bounds on the library's own rounding."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._io.tables import Rows
from ...errors import UnsupportedModelError
from ...graph import Affine, Array, Elementwise, Node, Opposite, Softmax, TreeEnsemble, Witness, topological

SINGLE, DOUBLE = 2.0**-24, 2.0**-53  # the unit roundoff of float32 and float64 arithmetic
_LINK_ROUNDINGS = 16.0  # an exponential, a division and the sums of a softmax, in units of roundoff


@dataclass(frozen=True)
class Link:
    """A link: the function from a margin to the score.

    Attributes
    ----------
    apply : callable
        Margin node -> score node.
    slope : float
        A Lipschitz constant of the link. For a `relative` link, relative to the score.
    relative : bool
        Whether an absolute error of the margin is a relative error of the score, as for an exponential.
    """

    apply: Callable[[Node], Node]
    slope: float = 1.0
    relative: bool = False


LINKS: dict[str, Link] = {
    "identity": Link(lambda m: m),
    "sigmoid": Link(lambda m: Elementwise(m, "sigmoid"), 0.25),
    "softmax": Link(Softmax),
    "exp": Link(lambda m: Elementwise(m, "exp"), relative=True),
    "softplus": Link(lambda m: Elementwise(m, "softplus")),
}

MEANS: dict[str, Callable[[Node], Node]] = {
    "identity": lambda m: m,
    "log": lambda m: Elementwise(m, "exp"),
    "logit": lambda m: Elementwise(m, "sigmoid"),
    "probit": lambda m: Elementwise(m, "normal_cdf"),
    "cloglog": lambda m: times(-1.0, Elementwise(times(-1.0, Elementwise(m, "exp")), "expm1")),
    "sqrt": lambda m: Elementwise(m, "square"),
    "inverse": lambda m: Elementwise(m, "reciprocal"),
}
"""The mean of a generalised linear model from its linear predictor, by the name of the link, whose inverse it is."""


def scaled_sigmoid(factor: float) -> Link:
    """1 / (1 + exp(-factor * margin))."""
    if factor == 1.0:
        return LINKS["sigmoid"]
    return Link(lambda m: Elementwise(times(factor, m), "sigmoid"), 0.25 * abs(factor))


def signed_square(bound: float) -> Link:
    """sign(margin) * margin^2, for margins no larger than `bound`."""
    return Link(lambda m: Elementwise(m, "signed_square"), 2.0 * bound)


def times(factor: float, node: Node) -> Node:
    """A node multiplied by a number; for trees, their leaves are scaled, so that the result is trees."""
    if isinstance(node, TreeEnsemble):
        return node.scaled(factor)
    return Affine(node, factor * np.eye(node.width), np.zeros(node.width))


def bound(trees: TreeEnsemble) -> float:
    """A bound on the absolute sum of leaves of any row, for the output with the largest."""
    if not len(trees.roots):
        return float(np.abs(trees.base).max())
    size = np.zeros((len(trees.feature), 1 if (trees.tree_output >= 0).all() else trees.width))
    leaves = np.nonzero(trees.feature < 0)[0]
    size[leaves] = np.abs(trees.values[trees.value[leaves, None] + np.arange(size.shape[1])])
    largest = np.maximum.reduceat(size, trees.roots)
    total = np.abs(trees.base)
    for output, most in zip(trees.tree_output.tolist(), largest, strict=True):
        if output < 0:
            total = total + most
        else:
            total[output] += most[0]
    return float(total.max())


def sum_error(trees: TreeEnsemble, unit: float) -> float:
    """A bound on the absolute difference between sums over the trees in the library's order and in ours.

    Rounding errors of different numbers grow like the square root of their count; those of equal numbers, as the trees
    of a forest often give, all have one sign and grow like the count itself, by up to a quarter unit on average.
    """
    n = len(trees.roots)
    return unit * (16.0 + 4.0 * float(np.sqrt(n)) + n / 4.0) * bound(trees)


def trees_error(node: Node, unit: float) -> float:
    """The sum of `sum_error` over all trees that a node depends on."""
    return sum(sum_error(n, unit) for n in topological(node) if isinstance(n, TreeEnsemble))


def witness(
    node: Node, predict: Callable[[Rows], Any], label: str, unit: float, error: float, link: Link | None = None
) -> Witness:
    """The witness of `node`, for a library that computes the margin up to `error`.

    Parameters
    ----------
    node : Node
    predict : callable
    label : str
    unit : float
        SINGLE or DOUBLE: the library's arithmetic.
    error : float
        Of the margin, in absolute terms.
    link : Link, optional
        The link from the margin to `node`; None for the margin itself.
    """
    if link is None or link is LINKS["identity"]:
        return Witness(node, predict, label, rtol=_LINK_ROUNDINGS * unit, atol=error)
    if link.relative:
        return Witness(node, predict, label, rtol=float(np.expm1(error)) + _LINK_ROUNDINGS * unit, atol=0.0)
    return Witness(node, predict, label, rtol=_LINK_ROUNDINGS * unit, atol=link.slope * error + _LINK_ROUNDINGS * unit)


def class_outputs(classes: Array | list[Any]) -> tuple[str, ...]:
    """The names of a classifier's scores: the positive class alone when there are two."""
    names = tuple(str(c) for c in classes)
    return names[1:] if len(names) == 2 else names


def class_left_out(classes: Array | list[Any], score_total: float = 1.0, margin_total: float = 0.0) -> Opposite | None:
    """The class that `class_outputs` leaves out when there are two, with the totals of both scores and margins."""
    names = tuple(str(c) for c in classes)
    return Opposite(names[:1], score_total, margin_total) if len(names) == 2 else None


def plain_outputs(width: int) -> tuple[str, ...]:
    """The names of the scores of a model without classes."""
    return ("prediction",) if width == 1 else tuple(str(k) for k in range(width))


def unknown_objective(library: str, objective: str) -> UnsupportedModelError:
    """The error for an objective whose link is unknown."""
    return UnsupportedModelError(
        f"{library} models with the objective {objective!r} cannot be imported: the link from its margin to its score "
        "is unknown. Please report it."
    )
