"""Heads that read lines alone: integrated from kink to kink at once, since exact lines leave nothing to refine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ... import kernels
from ...graph import Array, Node
from ...kernels.stopping import check_stopped
from .. import limits
from ..roles import Roles
from ..settings import Settings
from .games import CornerScores
from .jumps import Corners
from .line_parts import LineParts
from .losses import ErrorTerms
from .native import line_moments
from .program import HeadProgram, whole_program
from .table import Table


@dataclass(frozen=True, eq=False)
class LineHeadCredit:
    """The integrals of the score's derivatives by lines, for outputs k.

    Attributes
    ----------
    sums : dict of (k, pieces, width)
        The derivative with respect to each line, integrated over every piece of the lines' finest grid.
    lost, moved, tallest : (legs, k)
        A bound on the error of one column's credit, the way of the score between corners, and the largest |score|.
    """

    sums: dict[Node, Array]
    lost: Array
    moved: Array
    tallest: Array


def line_head(roles: Roles, table: Table | None, settings: Settings) -> HeadProgram | None:
    """The program of a head that reads lines alone; None for others, and for what the native core lacks."""
    if not settings.native or roles.curves or not roles.head or table is not None:
        return None
    return whole_program(roles)


def integrated_lines(
    program: HeadProgram,
    line_parts: LineParts,
    corners: Corners,
    sides: CornerScores,
    constants: Array,
    allowed: Array,
    settings: Settings,
) -> LineHeadCredit:
    """The integrals over all legs; `allowed` (paths, k) is the error of each path. The score beside corners is written
    to `sides`."""
    lines = line_parts.lines
    roles, grid, k = lines.roles, lines.grid, lines.roles.output.width
    sums = {n: np.empty((k, len(grid.left), n.width)) for n in roles.line_ends}
    lost, moved, tallest = np.zeros((3, len(lines.legs), k))
    for legs in _batches(roles, grid.offsets):
        check_stopped()
        found = line_moments(program, lines, legs, corners, sides, constants, allowed, roles, settings)
        pieces = slice(grid.offsets[legs.start] - legs.start, grid.offsets[legs.stop] - legs.stop)
        piece = np.arange(pieces.start, pieces.stop)
        leg, terms, first = grid.leg[grid.left[pieces]], ErrorTerms(len(piece), k), 0
        for node, table in found.moments.lines.items():
            sums[node][:, pieces] = table.transpose(2, 0, 1)
            largest, speed = line_parts.along(node, piece, leg)
            terms.add_line(table, largest, speed)
            terms.off += np.einsum("pwk,pw->pk", found.moments.off[0, :, first : first + node.width], largest)
            first += node.width
        kernels.add_rows(lost, leg, limits.CAUTION * terms.of(found.moments))
        kernels.add_rows(moved, leg, terms.moved)
        begin = grid.offsets[legs] - np.arange(legs.start, legs.stop) - pieces.start
        tallest[legs] = np.maximum.reduceat(found.tallest, begin)
    return LineHeadCredit(sums, lost, moved, tallest)


def _batches(roles: Roles, offsets: Array) -> Iterator[slice]:
    """Batches of consecutive legs whose integrals fit in memory."""
    each = 2 * len(limits.SEGMENT_NODES) * sum(n.width for n in roles.joints) * roles.output.width
    batch = each * (offsets[:-1] - offsets[0]) // limits.BATCH_NUMBERS
    edges = np.concatenate([[0], np.nonzero(np.diff(batch))[0] + 1, [len(batch)]])
    return (slice(a, b) for a, b in pairwise(edges.tolist()) if b > a)
