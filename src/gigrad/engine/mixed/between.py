"""The continuous credit between the corners of a block of paths, panel by panel, until every panel is accurate."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from ... import kernels
from ...graph import Array, Node, Opaque
from ...kernels.stopping import check_stopped
from .. import limits
from ..paths import Block, Bools, Ints
from ..quadrature import by_ends
from ..roles import Roles
from .breaks import find_breaks
from .bumps import bumps
from .curve_kinks import curve_kinks
from .games import CornerPlayers, CornerScores
from .head import Head
from .jumps import Corners
from .line_heads import credit_along_lines, line_head
from .line_parts import LineParts
from .lines import Legs, Lines
from .native_curves import usable
from .panel_credit import PanelCredit, credit_alone, credit_by_head
from .panels import Panels, first_orders, first_panels
from .patch import PanelCurves
from .slopes import opposed
from .traced import lines_of
from .unit_ends import shares_ends

if TYPE_CHECKING:
    from .walk import Plan

Trace = Callable[[Legs], Lines]
"""The lines of a block on its legs."""


@dataclass(frozen=True, eq=False)
class ContinuousCredit:
    """The continuous credit of a block of paths, between its corners.

    Attributes
    ----------
    legs : Legs
        The parts of paths without jumps of columns that continuous parts read.
    credit : (legs, p, k)
    sides : CornerScores
        The score on both sides of every corner.
    error, tallest : (paths, k)
        Estimated error, and the largest |score| seen.
    """

    legs: Legs
    credit: Array
    sides: CornerScores
    error: Array
    tallest: Array


@dataclass(frozen=True, eq=False)
class Inputs:
    """The inputs of the computation of panels.

    Attributes
    ----------
    states : dict of (states, width)
        The outputs of trees and steps between corners; `constants` has them concatenated.
    sides : CornerScores
        Filled in as the head is integrated: the score beside every corner.
    allowed : (paths, k)
        The error that each path may have.
    """

    plan: Plan
    block: Block
    corners: Corners
    states: dict[Node, Array]
    constants: Array
    legs: Legs
    lines: Lines
    line_parts: LineParts
    sides: CornerScores
    allowed: Array
    careful: bool

    @property
    def roles(self) -> Roles:
        return self.plan.roles

    @property
    def rough(self) -> bool:
        """Whether a curve is an opaque function, known only by its values and gradients."""
        return any(isinstance(n, Opaque) for n in self.roles.curves)

    @property
    def most_nodes(self) -> int:
        """Panels that need more nodes than this are halved."""
        return by_ends().rule.size if shares_ends(self.roles, self.lines) else limits.PANEL_NODES

    @property
    def least_rate(self) -> float:
        """The fastest decay of the coefficients of curves that is trusted, see `quadrature.tails`."""
        if self.rough:
            return 1.0
        return 0.0 if all(n.analytic for n in self.roles.curves) else limits.ROOTS_RATE

    def path(self, panels: Panels) -> Ints:
        """The path of each panel."""
        return self.legs.path[panels.leg]


class Totals:
    """The sums over all panels accepted so far."""

    def __init__(self, inputs: Inputs, tallest: Array) -> None:
        k, legs = inputs.roles.output.width, inputs.legs
        pieces = len(inputs.lines.grid.left)
        self.sums = {n: np.zeros((k, pieces, n.width)) for n in inputs.roles.line_ends}
        self.error = np.zeros((len(inputs.block), k))
        self.tallest = tallest.copy()
        self.lost, self.moved = np.zeros((2, len(legs), k))
        self.panels = 0

    def add(self, inputs: Inputs, panels: Panels, found: PanelCredit, good: Ints | slice) -> None:
        """Add the credit of the panels `good`."""
        for node, table in found.sums.items():
            for output, sums in enumerate(self.sums[node]):
                kernels.add_rows(sums, panels.piece[good], table[output, good])
        kernels.add_rows(self.error, inputs.path(panels)[good], found.error[good] + found.slow[good])
        kernels.add_rows(self.lost, panels.leg[good], found.lost[good])
        kernels.add_rows(self.moved, panels.leg[good], found.moved[good])

    def floor(self, inputs: Inputs, path: Ints, tall: Array) -> Array:
        """The error allowed on panels of some paths, (n, k), at least the rounding of the score.

        `tall` (n, k) are sizes of the score on the panels: it may be far larger inside of a path than at its ends.
        """
        if tall.any():
            np.maximum.at(self.tallest, path, tall)
        return least_error(inputs.allowed[path], self.tallest[path])


def least_error(allowed: Array, tall: Array) -> Array:
    """The error allowed, but at least the rounding of the score, whose sizes are `tall`."""
    return np.maximum(allowed, np.maximum(limits.PANEL_ROUNDING * tall, np.finfo(np.float64).tiny))


def between_corners(
    plan: Plan,
    block: Block,
    corners: Corners,
    players: CornerPlayers,
    states: dict[Node, Array],
    allowed: Array,
    tallest: Array,
    careful: bool,
    trace: Trace | None,
) -> ContinuousCredit:
    """The continuous credit of a block of paths; the arguments are those of `walk` and its intermediate results."""
    roles, k = plan.roles, plan.roles.output.width
    broken = np.zeros(len(block), np.bool_)
    broken[corners.path[corners.broken]] = True
    legs = Legs.of(len(block), broken, plan.edges)
    if not roles.joints:  # trees alone: constant in between
        nothing = np.zeros((len(legs), roles.source.width, k))
        return ContinuousCredit(
            legs, nothing, CornerScores.of_steps(roles, corners, states), np.zeros((len(block), k)), tallest
        )

    ends = [states[n] for n in roles.step_ends]
    none = np.zeros((len(corners) + len(block), 0))
    constants = ends[0] if len(ends) == 1 else np.concatenate([none, *ends], axis=1)
    program = line_head(roles, plan.table, plan.settings)
    lines = trace(legs) if trace else lines_of(roles, block, legs, plan.settings, program is not None)
    sides = CornerScores.empty(roles, corners, players)
    if program is not None:
        floor = least_error(allowed, tallest)
        whole = credit_along_lines(program, lines, corners, sides, constants, floor, plan.settings)
        error, highest = np.zeros_like(tallest), tallest.copy()
        kernels.add_rows(error, legs.path, whole.error)
        np.maximum.at(highest, legs.path, whole.tallest)
        return ContinuousCredit(legs, whole.credit, sides, error, highest)
    parts = LineParts(lines)
    inputs = Inputs(plan, block, corners, states, constants, legs, lines, parts, sides, allowed, careful)
    totals = Totals(inputs, tallest)
    integrate_panels(inputs, totals)

    # Pull the score's derivatives with respect to lines back to the columns, leg by leg.
    credit = np.zeros((len(legs), roles.source.width, k))
    for output in range(k):
        credit[:, :, output] = lines.pull_back({n: s[output] for n, s in totals.sums.items()})
    kernels.add_rows(totals.error, legs.path, _lost(inputs, totals, credit))
    return ContinuousCredit(legs, credit, sides, totals.error, totals.tallest)


def integrate_panels(inputs: Inputs, totals: Totals) -> None:
    """Integrate panel by panel: those that are not accurate enough are refined, up to a maximal number of panels."""
    table, legs = inputs.plan.table, inputs.legs
    panels = _first(inputs)
    if table is not None:
        table.expect(3 * (len(inputs.corners) + len(panels)))
    most = limits.PANEL_GROWTH * (len(panels) + 64 * len(legs))
    while len(panels):
        again: list[Panels] = []
        orders = np.unique(panels.order).tolist()
        for order in orders:
            narrow = table is not None and table.made
            same = panels if len(orders) == 1 else panels[panels.order == order]
            again += [integrate(inputs, totals, some, order, most) for some in _batches(inputs, same, order, narrow)]
        panels = Panels.joined(again)


def integrate(inputs: Inputs, totals: Totals, panels: Panels, order: int, most: int) -> Panels:
    """Integrate panels of one order and add the accurate ones to `totals`; returns the others, refined."""
    check_stopped()
    plan, corners, legs = inputs.plan, inputs.corners, inputs.legs
    patch = PanelCurves.of(plan.roles, inputs.lines, panels, order, inputs.least_rate, inputs.careful, plan.settings)
    again: list[Panels] = []
    if plan.roles.curve_levels:
        kinks = curve_kinks(patch)
        patch = replace(patch, unsure=kinks.unsure)
        if len(kinks.panel):
            again.append(panels.cut(kinks.panel, kinks.time, corners, legs))
            whole = _all_but(kinks.panel, len(panels))
            if not whole.any():
                return again[0]
            patch = patch.part(np.nonzero(whole)[0])
            panels = patch.panels
    path = inputs.path(panels)
    allowed = totals.floor(inputs, path, _heights(plan.roles, patch))
    if plan.roles.head:
        head = Head.of(plan.roles, patch, inputs.states, inputs.constants, plan.table)
        if (
            head.narrow is None
            and len(panels) > 1
            and _numbers(inputs, panels, order, False).sum() > 2 * limits.BATCH_NUMBERS
        ):
            # without a table these panels are too many for the head itself
            parts = _batches(inputs, panels, order, narrow=False)
            return Panels.joined(again + [integrate(inputs, totals, some, order, most) for some in parts])
        found = credit_by_head(head, corners, inputs.sides, inputs.line_parts, allowed, plan.settings)
        allowed = totals.floor(inputs, path, found.tallest)
    else:
        found = credit_alone(patch, inputs.line_parts, check=inputs.careful or inputs.lines.straight)
    bad = _too_far_off(inputs, panels, (found.error / allowed).max(axis=1))
    # The share of a short panel may lie below rounding. Halving only makes that worse: slopes are differences of
    # values at nodes, over ever shorter distances.
    if bad.any():
        bad &= (found.error > limits.PANEL_ROUNDING * (totals.tallest[path] + found.sizes(patch))).any(axis=1)
    bad = (bad | found.unsure) & (panels.length > limits.SHORTEST_PANEL)
    totals.panels += len(panels)
    if totals.panels > most:  # stop refining; the loss is counted as error
        bad[:] = False
    totals.add(inputs, panels, found, np.nonzero(~bad)[0] if bad.any() else slice(None))
    if inputs.rough and order >= limits.NODES_BETWEEN_KINKS and bad.any():
        parts_, bad = _broken(inputs, totals, patch, bad, allowed)
        again.append(parts_)
    again.append(panels[bad].finer(corners, legs, inputs.most_nodes) if bad.any() else panels[:0])
    return Panels.joined(again)


def _first(inputs: Inputs) -> Panels:
    """The initial panels: one for each piece of the lines, cut at narrow kernels and where curvature is large."""
    roles, lines, corners, legs = inputs.roles, inputs.lines, inputs.corners, inputs.legs
    panels = first_panels(lines, corners)
    if not roles.curves:
        return panels
    cut, time = bumps(roles, lines, panels)
    if len(cut):
        panels = Panels.joined([panels[_all_but(cut, len(panels))], panels.cut(cut, time, corners, legs)])
    parts, order = first_orders(roles, lines, panels, inputs.plan.settings.tol, inputs.most_nodes)
    cut = np.repeat(np.arange(len(panels)), parts - 1)
    step = np.arange(len(cut)) - np.searchsorted(cut, cut) + 1
    time = panels.low[cut] + panels.length[cut] * step / parts[cut]
    panels = panels.with_order(order)
    return Panels.joined([panels[parts == 1], panels.cut(cut, time, corners, legs)])


def _all_but(some: Ints, count: int) -> Bools:
    out = np.ones(count, np.bool_)
    out[some] = False
    return out


def _batches(inputs: Inputs, panels: Panels, order: int, narrow: bool) -> Iterator[Panels]:
    """Batches of consecutive panels that fit in memory."""
    batch = np.cumsum(_numbers(inputs, panels, order, narrow)) // limits.BATCH_NUMBERS
    edges = np.concatenate([[0], np.nonzero(np.diff(batch))[0] + 1, [len(panels)]])
    return (panels[a:b] for a, b in pairwise(edges.tolist()) if b > a)


def _numbers(inputs: Inputs, panels: Panels, order: int, narrow: bool) -> Array:
    """The approximate memory of each panel, in numbers; `narrow` if a table replaces most of the head."""
    roles, table = inputs.roles, inputs.plan.table
    head = table.part.above if narrow and table is not None else roles.head
    program = usable(roles, inputs.lines, inputs.plan.settings)
    if roles.wide_units is not None and shares_ends(roles, inputs.lines):
        on_nodes = 2 * roles.wide_units.units.width
    elif program is None:
        on_nodes = order * sum(n.width for n in (*roles.curves, *roles.line_ends))
    else:  # derivatives alone are kept
        on_nodes = order * sum(n.width for n in roles.curve_ends) * sum(n.width for n in program.read)
    on_segments = 4 * sum(n.width for n in (*head, *roles.joints, *roles.step_ends))
    return np.asarray(on_nodes + on_segments * (panels.end - panels.begin + 1.0))


def _heights(roles: Roles, patch: PanelCurves) -> Array:
    """The largest |score| at the nodes of each panel, (panels, k), where the score is a curve itself; else 0."""
    if roles.output not in roles.curve_ends:
        return np.zeros((len(patch.panels), roles.output.width))
    first = patch.place(roles.output)
    return np.asarray(np.abs(patch.ends[:, :, first : first + roles.output.width]).max(axis=1))


def _too_far_off(inputs: Inputs, panels: Panels, error: Array) -> Bools:
    """Which panels to refine, for errors (n,) as multiples of those allowed for their whole paths.

    The most accurate of each row's panels are accepted, as many as fit in half of the row's tolerance; the other half
    is left for the refined panels.
    """
    path, block = inputs.path(panels), inputs.block
    row, weight = block.row[path], block.weight[path]
    share = weight * np.maximum(panels.length, 1 / 256)
    if (np.bincount(row, weight * error) <= 0.5 * np.bincount(row, share)).all():
        return np.zeros(len(error), np.bool_)
    order = np.lexsort((error, row))
    row, share = row[order], share[order]
    first = np.concatenate([[True], row[1:] != row[:-1]])
    begin = np.nonzero(first)[0]
    number = np.cumsum(first) - 1
    total = np.cumsum((weight * error)[order])
    total -= np.concatenate([[0.0], total[begin[1:] - 1]])[number]
    bad = np.zeros(len(order), np.bool_)
    bad[order] = total > 0.5 * np.add.reduceat(share, begin)[number]
    return bad


def _broken(inputs: Inputs, totals: Totals, patch: PanelCurves, bad: Bools, allowed: Array) -> tuple[Panels, Bools]:
    """The bad panels on which kinks are found, cut there, and which are still bad."""
    exact = bool(inputs.roles.head) or not inputs.lines.straight  # the effect of a kink's uncertain time is unknown
    limit = np.zeros(len(bad)) if exact else limits.KINK_SHARE * allowed.min(axis=1)
    found = find_breaks(patch, np.nonzero(bad)[0], limit)
    if not exact:
        cost = np.repeat(found.cost[:, None], inputs.roles.output.width, axis=1)
        kernels.add_rows(totals.error, inputs.path(patch.panels)[found.panel], cost)
    parts = patch.panels.cut(found.panel, found.time, inputs.corners, inputs.legs)
    return parts.with_order(np.full(len(parts), limits.NODES_BETWEEN_KINKS)), bad & _all_but(found.panel, len(bad))


def _lost(inputs: Inputs, totals: Totals, credit: Array) -> Array:
    """A bound on the error of one column's credit on each leg from the head's quadrature, (legs, k).

    Where lines have kinks, their speed was not split by columns. The credits of the columns show by how much the sum of
    their sizes exceeds the size of their sum.
    """
    if inputs.lines.straight:
        return totals.lost
    return np.asarray(
        limits.KINKED_CAUTION * totals.lost * opposed(np.abs(credit).max(axis=1, initial=0.0), totals.moved)
    )
