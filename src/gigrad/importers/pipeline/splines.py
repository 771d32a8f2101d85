"""SplineTransformer: B-splines of one number, which are polynomials between the knots, or steps for degree 0."""

from __future__ import annotations

from collections.abc import Callable
from math import factorial
from typing import Any

import numpy as np

from ...errors import UnsupportedModelError
from ...graph import Affine, Array, Fill, Input, IsMissing, Node, PiecewisePolynomial, Product
from .pieces import before
from .steps import Stairs
from .table import Blend, Block, Feature, Table

Curves = Callable[[Node], PiecewisePolynomial]


def spline_transformer(transformer: Any, table: Table) -> Table:
    """The B-splines of each column as piecewise polynomials; of degree 0, as steps."""
    if transformer.degree == 0 and transformer.extrapolation in ("periodic", "constant"):
        why = "has steps without end" if transformer.extrapolation == "periodic" else "fails beyond its last knot"
        raise UnsupportedModelError(
            f"SplineTransformer(degree=0, extrapolation={transformer.extrapolation!r}) cannot be imported: it {why}. "
            "Use extrapolation='continue', or KBinsDiscretizer, or a degree of 1 or more."
        )
    width = transformer.bsplines_[0].c.shape[1]
    kept = width if transformer.include_bias else width - 1
    zeros = transformer.get_params().get("handle_missing", "error") == "zeros"  # an option of newer versions
    out: list[Feature] = []
    for feature, spline, ends in zip(table.features, transformer.bsplines_, _ends(transformer), strict=True):
        if spline.k == 0:
            edges, values = steps(spline, transformer.extrapolation, ends)
            knots = np.nextafter(edges, np.inf)
            flights = [Stairs(edges, values[:, i], 0.0 if zeros else None, knots) for i in range(kept)]
            out += Table((feature,) * kept).then(flights, "SplineTransformer").features
            continue
        curves = polynomials(spline, transformer.extrapolation, ends)
        block = Block("SplineTransformer", (feature,), _zero_where_missing(curves) if zeros else curves, zeros)
        out += [Blend(block, i) for i in range(kept)]
    return table.become(out, sparse=bool(transformer.sparse_output))


def _zero_where_missing(curves: Curves) -> Callable[[Node], Node]:
    """The curves, times 0 where the column is missing."""

    def build(source: Node) -> Node:
        filled = curves(Fill(source, np.zeros(1)))
        return Product(filled, Affine(IsMissing(source), -np.ones((1, 1)), np.ones(1)))

    return build


# ---------------------------------------------------------------- between the knots and beyond them


def steps(spline: Any, extrapolation: str, ends: int) -> tuple[Array, Array]:
    """The edges of splines of degree 0, and their values (edges + 1, splines) between and beyond them."""
    every = np.eye(spline.c.shape[1])
    if extrapolation != "linear":
        return before(spline.t[1:-1]), every
    knots, stop = spline.t[ends : len(spline.t) - ends], len(every) - ends
    below, above = (_beyond(spline, knots[end], True, ends, first=end == 0)[0] for end in (0, -1))
    return before(knots), np.vstack([below, every[ends:stop], above])


def polynomials(spline: Any, extrapolation: str, ends: int) -> Curves:
    """The builder of a node of all B-splines of one column, from the node of that column.

    Constant and linear extrapolation begin at the knot number `ends` from either side.
    """
    degree = int(spline.k)
    breaks = np.unique(spline.t[ends : len(spline.t) - ends])
    inside = np.stack([spline(breaks[:-1], nu=n) / factorial(n) for n in range(degree + 1)], axis=1)
    if extrapolation in ("constant", "linear"):
        slopes = extrapolation == "linear"
        below = _beyond(spline, breaks[0], slopes, ends, first=True)
        above = _beyond(spline, breaks[-1], slopes, ends, first=False)
        return lambda source: PiecewisePolynomial(source, breaks, np.concatenate([below, *inside, above]))
    period = float(breaks[-1] - breaks[0]) if extrapolation == "periodic" else None
    coefficients = np.concatenate([inside[0], *inside])  # "continue" and "error": the same polynomial goes on
    return lambda source: PiecewisePolynomial(source, breaks[:-1], coefficients, period)


def _beyond(spline: Any, end: float, slopes: bool, ends: int, *, first: bool) -> Array:
    """The coefficients beyond an end, constant or linear: only splines next to the end are not zero there."""
    out = np.zeros((int(spline.k) + 1, spline.c.shape[1]))
    near = ends + 1 if slopes and ends <= 1 else ends  # a straight spline's neighbour has a slope at the end as well
    chosen = slice(0, near) if first else slice(-near, None)
    out[0, chosen] = spline(end)[chosen]
    if slopes and spline.k > 0:
        out[1, chosen] = spline(end, nu=1)[chosen]
    return out


# ---------------------------------------------------------------- the end knots that scikit-learn uses


def _ends(transformer: Any) -> list[int]:
    """For each column the number of the knot at which its splines end: their degree, except for a bug of scikit-learn.

    For linear extrapolation of degree 0 or 1, scikit-learn (to 1.9 at least) raises the degree inside its loop over
    columns, so that every column after the first ends at an inner knot. Evaluating the transformer shows which it does.
    """
    splines, degree = transformer.bsplines_, int(transformer.degree)
    right = [degree] * len(splines)
    if transformer.extrapolation != "linear" or degree > 1 or len(splines) == 1:
        return right
    far = np.array([[s.t[0] - 1.0 for s in splines], [s.t[-1] + 1.0 for s in splines]])
    asked = transformer.transform(far)
    asked = asked.toarray() if transformer.sparse_output else np.asarray(asked)
    slipped = [min(degree + i, 2) for i in range(len(splines))]
    knots = len(splines[0].t) - 2 * degree
    for ends in (right, slipped) if knots > 2 * (2 - degree) else (right,):
        if np.allclose(_evaluated(transformer, ends, far), asked, rtol=1e-9, atol=1e-12):
            return ends
    raise UnsupportedModelError(
        f"SplineTransformer(degree={degree}, extrapolation='linear') with {knots} knots confuses the ends of all "
        "columns but the first in this version of scikit-learn. Use extrapolation='continue', or more knots."
    )


def _evaluated(transformer: Any, ends: list[int], x: Array) -> Array:
    """The values of the splines at each row of x, if they end at these knots."""
    parts = []
    for spline, end, z in zip(transformer.bsplines_, ends, x.T, strict=True):
        if spline.k == 0:
            edges, values = steps(spline, "linear", end)
            own = values[np.searchsorted(edges, z)]
        else:
            own = polynomials(spline, "linear", end)(Input(1)).forward(z[:, None])
        parts.append(own if transformer.include_bias else own[:, :-1])
    return np.concatenate(parts, axis=1)
