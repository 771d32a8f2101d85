"""Heads that read lines alone: integrated from kink to kink at once, since exact lines leave nothing to refine.

The native core follows a leg, integrates the head on it and pulls the derivatives back before it goes to the next one:
the ECDF of the mean of a boosted forest and a ReLU net takes 0.67 of the time it took panel by panel, and 0.77 of it
with these steps in calls of their own (`benchmarks/results/mixed.md`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ... import kernels
from ...graph import Array, Node
from .. import limits
from ..roles import Roles
from ..settings import Settings
from .games import CornerScores
from .jumps import Corners
from .line_parts import LineParts
from .lines import Lines
from .native import segment_lengths, segment_rules
from .program import HeadProgram, whole_program
from .slopes import opposed
from .table import Table
from .traced import TracedLines


@dataclass(frozen=True, eq=False)
class LineHeadCredit:
    """The credit between corners: (legs, p, k), its error and the largest |score|, (legs, k) each."""

    credit: Array
    error: Array
    tallest: Array


def line_head(roles: Roles, table: Table | None, settings: Settings) -> HeadProgram | None:
    """The program of a head that reads lines alone; None for others, and for what the native core lacks."""
    if not settings.native or roles.curves or not roles.head or table is not None:
        return None
    return whole_program(roles)


def credit_along_lines(
    program: HeadProgram,
    lines: Lines,
    corners: Corners,
    sides: CornerScores,
    constants: Array,
    allowed: Array,
    settings: Settings,
) -> LineHeadCredit:
    """The credit on all legs; `allowed` (paths, k) is the error of each path. The score beside corners is written to
    `sides`."""
    roles, legs, threads = lines.roles, lines.legs, kernels.threads(settings.n_threads)
    k = roles.output.width
    joints = np.zeros((len(next(iter(sides.joints.values()))), sum(n.width for n in roles.joints)))
    parts = LineParts(lines)
    speeds = [_or_unknown(parts.by_leg(n), len(legs), n) for n in roles.joints]
    met = kernels.LegCorners(
        legs.path, *corners.on(legs), corners.time, sides.place, constants, allowed, np.concatenate(speeds, axis=1),
        limits.SLOWEST_JOINT, segment_rules(3), np.array(segment_lengths(roles, settings)), sides.before, sides.after,
        joints,
    )  # fmt: skip
    credit = np.zeros((len(legs), roles.source.width, k))
    if isinstance(lines, TracedLines):
        found = kernels.head_along_net(
            program.native, lines.program.native, legs.low, legs.high, lines.rows, met, threads
        )
        for output in range(k):
            credit[:, :, output] = lines.pull_straight(found.sums[output])
    else:
        grid = lines.grid
        found = kernels.head_along_lines(program.native, grid.offsets, grid.time, lines.head_ends, met, threads)
        for output in range(k):
            credit[:, :, output] = lines.pull_back(_by_node(roles, found.sums[output]))
    for node, table in _by_node(roles, joints).items():
        sides.joints[node][:] = table
    error = limits.CAUTION * found.lost
    if isinstance(lines, TracedLines) or not lines.straight:
        # With kinks the parts of the lines' speeds are unknown. The credits of columns show by how much they cancel.
        error *= limits.KINKED_CAUTION * opposed(np.abs(credit).max(axis=1, initial=0.0), found.moved)
    return LineHeadCredit(credit, error, found.tallest)


def _or_unknown(largest: Array | None, legs: int, node: Node) -> Array:
    return np.full((legs, node.width), -1.0) if largest is None else largest


def _by_node(roles: Roles, columns: Array) -> dict[Node, Array]:
    """The columns of all lines that the head reads, by node."""
    edges = np.cumsum([0, *(n.width for n in roles.joints)]).tolist()
    return {n: columns[:, a:b] for n, a, b in zip(roles.joints, edges[:-1], edges[1:], strict=True)}
