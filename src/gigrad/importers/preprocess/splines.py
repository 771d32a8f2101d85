"""SplineTransformer: B-splines of one number, which are polynomials between the knots."""

from __future__ import annotations

from math import factorial
from typing import Any

import numpy as np

from ...errors import UnsupportedModelError
from ...graph import Affine, Array, Fill, IsMissing, Node, PiecewisePolynomial, Product
from .table import Blend, Block, Feature, Table


def spline_transformer(transformer: Any, table: Table) -> Table:
    if transformer.extrapolation == "periodic" or transformer.degree == 0:
        raise UnsupportedModelError(
            "SplineTransformer is supported with a degree of 1 or more and any extrapolation but 'periodic'; "
            f"degree={transformer.degree} and {transformer.extrapolation!r} came. Use KBinsDiscretizer for steps."
        )
    if transformer.degree == 1 and transformer.extrapolation == "linear" and len(table) > 1:
        # scikit-learn (to 1.9 at least) raises the degree inside its loop over columns, and so continues every column
        # but the first from the wrong knots
        raise UnsupportedModelError(
            "SplineTransformer(degree=1, extrapolation='linear') continues all columns but the first from a wrong knot "
            "in scikit-learn. Use extrapolation='continue', which means the same, or one transformer a column."
        )
    width = transformer.bsplines_[0].c.shape[1]
    kept = width if transformer.include_bias else width - 1
    zeros = transformer.get_params().get("handle_missing", "error") == "zeros"  # an option of newer versions
    out: list[Feature] = []
    for feature, spline in zip(table.features, transformer.bsplines_, strict=True):
        breaks, coefficients = polynomials(spline, transformer.extrapolation)
        block = Block("SplineTransformer", (feature,), _curves(breaks, coefficients, zeros), zeros)
        out += [Blend(block, i) for i in range(kept)]
    return Table(tuple(out), sparse=bool(transformer.sparse_output))


def _curves(breaks: Array, coefficients: Array, zeros: bool) -> Any:
    """The splines of one column; all zero where it is missing, if the transformer takes that."""

    def build(source: Node) -> Node:
        if not zeros:
            return PiecewisePolynomial(source, breaks, coefficients)
        curves = PiecewisePolynomial(Fill(source, np.array([breaks[0]])), breaks, coefficients)
        return Product(curves, Affine(IsMissing(source), -np.ones((1, 1)), np.ones(1)))

    return build


def polynomials(spline: Any, extrapolation: str) -> tuple[Array, Array]:
    """The breaks and coefficients of all B-splines of one column, as PiecewisePolynomial takes them."""
    degree = int(spline.k)
    breaks = np.unique(spline.t[degree : len(spline.t) - degree])
    inside = np.stack([spline(breaks[:-1], nu=n) / factorial(n) for n in range(degree + 1)], axis=1)
    below = inside[0]  # "continue" and "error": the same polynomial goes on
    if extrapolation in ("constant", "linear"):
        slopes = extrapolation == "linear"
        below = _beyond(spline, breaks[0], slopes, degree, first=True)
        above = _beyond(spline, breaks[-1], slopes, degree, first=False)
        return breaks, np.concatenate([below, *inside, above])
    return breaks[:-1], np.concatenate([below, *inside])


def _beyond(spline: Any, end: float, slopes: bool, degree: int, *, first: bool) -> Array:
    """Constant or linear beyond an end: only the `degree` splines next to it are not zero there."""
    out = np.zeros((degree + 1, spline.c.shape[1]))
    near = max(degree, 2) if slopes else degree  # a straight spline's neighbour has a slope at the end as well
    chosen = slice(0, near) if first else slice(-near, None)
    out[0, chosen] = spline(end)[chosen]
    if slopes:
        out[1, chosen] = spline(end, nu=1)[chosen]
    return out
