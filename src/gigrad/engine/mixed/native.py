"""A head integrated over the segments of a patch by the native core: what `integrate.Integral` does in Python."""

from __future__ import annotations

from functools import cache

import numpy as np

from ... import kernels
from ...graph import Array
from .. import limits
from ..quadrature import gauss, legendre
from ..roles import Roles
from ..settings import Settings
from .games import CornerScores
from .head import Head
from .jumps import Corners
from .moments import Moments, PanelIntegrals
from .program import HeadProgram


def native_moments(
    head: Head,
    program: HeadProgram,
    corners: Corners,
    sides: CornerScores,
    allowed: Array,
    settings: Settings,
) -> PanelIntegrals:
    """All moments of a patch; writes the score beside its corners to `sides`."""
    roles, patch, panels = head.roles, head.patch, head.patch.panels
    grid, head_lines = patch.lines.grid, roles.head_lines
    left = grid.left[panels.piece]
    start = grid.time[left]
    state = panels.begin + patch.lines.legs.path[panels.leg]
    row, table = head.table_rows(state)
    lines = patch.lines.head_ends if head_lines else np.zeros((0, 0))
    found = kernels.head_moments(
        program.native,
        [panels.low, panels.high, start, grid.time[left + 1] - start],
        [panels.begin, panels.end, state, row, left],
        (patch.coefficients, patch.steepness, patch.doubt),
        lines, corners.time, sides.place, head.constants, allowed,
        segment_rules(patch.rule.size + 2), np.array(segment_lengths(roles, settings)), table, sides.before,
        sides.after, kernels.threads(settings.n_threads),
    )  # fmt: skip
    place, first = sides.place[found.corner], 0
    doubts = patch.split(patch.doubt[found.panel], {})
    for node in roles.joints:
        sides.joints[node][place] = found.joints[:, first : first + node.width]
        first += node.width
        if node in doubts:
            sides.doubts[node][place] = doubts[node]
    edges = np.cumsum([0, *(n.width for n in head_lines)])
    by_line = {n: found.lines[:, a:b] for n, a, b in zip(head_lines, edges[:-1], edges[1:], strict=True)}
    slow = np.zeros_like(found.lost)  # it has no trees over scores
    moments = Moments(found.curves, by_line, found.lost, slow, found.wander, found.sway, found.off)
    return PanelIntegrals(moments, found.tallest, patch.unsure | found.unsure.astype(np.bool_))


def segment_lengths(roles: Roles, settings: Settings) -> tuple[float, float, float]:
    """The lengths of segments up to which one, two and four nodes are tried first."""
    # Between its kinks a head that is piecewise linear has one slope, which a single node gives.
    steady = np.inf if roles.steady_head else 5.0 * settings.tol**0.5
    return steady, max(steady, 0.6 * settings.tol**0.25), max(steady, 2.0 * settings.tol**0.125)


@cache
def segment_rules(degrees: int) -> list[tuple[Array, ...]]:
    """The rules of segments on panels with so many moments, as `kernels.head_moments` takes them."""
    out: list[tuple[Array, ...]] = []
    for size in limits.SEGMENT_NODES:
        rule, finer = gauss(size), gauss((degrees + size) // 2)
        refine = np.polynomial.legendre.legvander(finer.nodes, size - 1) @ rule.to_coefficients
        ends = np.polynomial.legendre.legvander(np.array([-1.0, 1.0]), size - 1) @ rule.to_coefficients
        highest = rule.to_coefficients[[-2, -1] if size > 2 else [-1, -1]]  # with two nodes the first is the mean
        ends = np.concatenate([ends, highest])
        out.append((rule.nodes, finer.nodes, finer.weights, refine, up_to_nodes(size, finer.size), ends))
    return out


@cache
def up_to_nodes(size: int, finer: int) -> Array:
    """The matrix (size, finer) from the contributions of a finer rule's nodes to an integral to the integrals from -1
    to the nodes of the rule with `size` nodes."""
    nodes, rule = gauss(size).nodes, gauss(finer)
    basis = legendre(nodes, finer + 1)
    below = np.empty((finer, size))  # integrals of the Legendre polynomials from -1 to the nodes
    below[0] = nodes + 1.0
    for degree in range(1, finer):
        below[degree] = (basis[degree + 1] - basis[degree - 1]) / (2 * degree + 1)
    return np.asarray(below.T @ rule.to_coefficients / rule.weights)
