"""Walks one block of paths: corners, lines, panels, the head integrated between corners, and the error of each."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from .. import kernels
from ..graph import Array, Node, Opaque
from .breaks import find_breaks
from .bumps import bumps
from .games import CornerPlayers, Games, Sides
from .head import Head
from .integrate import Integral
from .jumps import EndValues, find_corners, step_values
from .line_parts import LineParts
from .lines import Legs, Lines
from .losses import SLOWEST, Losses
from .moments import Moments
from .panels import Panels, Patch, first_orders, first_panels
from .paths import Block, Bools, Ints
from .quadrature import ROUNDING, tails
from .roles import Roles
from .settings import Settings
from .slopes import pulled
from .table import Table

CAUTION = 3.0
"""Safety factor: error estimates from the decay of Legendre coefficients are multiplied by this."""

NOISE = 1e-13
"""What rounding may make of one panel, as a share of the numbers that are added up there."""

MOST = 16
"""Panels are refined up to this many times their first number, and 64 a leg."""

KINK = 1e-4
"""What the place of a kink of an opaque function may cost, as a share of what a path may be off by."""

BETWEEN_KINKS = 6
"""Nodes of the panels between such kinks."""

BATCH = 1 << 21
"""How many numbers a batch of panels may hold at once, roughly."""


class Walk:
    """One block of paths walked from start to end.

    After construction `legs` and `leg_credit` (legs, p, k) hold the continuous credit, `corners` and `corner_credit`
    the credit of the players of each corner, and `error` (paths, k) the estimated error. `large` are corners that are
    too large to be enumerated, and `unshared` (paths, k) their jumps, which are in nobody's credit yet.
    """

    def __init__(
        self,
        roles: Roles,
        block: Block,
        ends: EndValues,
        table: Table | None,
        allowed: Array,
        players: Ints,
        settings: Settings,
        edges: Array,
        careful: bool,
    ) -> None:
        self.careful, self.table, self.edges = careful, table, edges
        self.roles, self.block, self.allowed, self.players, self.settings = roles, block, allowed, players, settings
        self.k = roles.output.width
        first, last = ends.at_starts[roles.output][block.start], ends.at_ends[roles.output][block.row]
        self.gain, self.tallest = last - first, np.maximum(np.abs(first), np.abs(last))
        self.error = np.zeros((len(block), self.k))
        self.corners = find_corners(roles, block, ends, settings.n_threads)
        self.states = step_values(roles, self.corners.trees)
        none = np.zeros((len(self.corners) + len(block), 0))
        self.constants = np.concatenate([none, *(self.states[n] for n in roles.step_ends)], axis=1)
        broken = np.zeros(len(block), np.bool_)
        broken[self.corners.path[self.corners.broken]] = True
        self.legs = Legs.of(len(block), broken, edges)
        self.leg_credit = np.zeros((len(self.legs), roles.source.width, self.k))
        self.corner_players = CornerPlayers.of(self.corners, players)
        if roles.joints:
            self.sides = Sides.empty(roles, self.corners, self.corner_players)
            self._continuous()
        else:
            self.sides = Sides.of_steps(roles, self.corners, self.states)
        games = Games(roles, block, self.corners, self.corner_players, self.sides, settings)
        shared = games.credit(allowed)
        self.corner_credit, self.large, self.unshared = shared.credit, shared.large, shared.unshared
        self.error += shared.error

    def again(self, block: Block, ends: EndValues, allowed: Array) -> Walk:
        """Some of the paths once more, with care."""
        return Walk(
            self.roles, block, ends, self.table, allowed, self.players, self.settings, self.edges, careful=True
        )  # fmt: skip

    def credits(self) -> tuple[Array, Array]:
        """Credit (paths, pieces, players, k) and its estimated error (paths, k) of every path.

        Pieces lie between neighbouring edges. A jump at an edge belongs to the piece that ends there, as the score at
        that time is the one after the jump; at time 0 to the first.
        """
        n, pieces, width = len(self.block), len(self.edges) - 1, int(self.players.max(initial=-1)) + 1
        out: Array = np.zeros((n * pieces, width, self.k))
        leg = self.legs.path * pieces + np.searchsorted(self.edges, self.legs.low, side="right") - 1
        np.add.at(out, (leg[:, None], self.players[None, :]), self.leg_credit)
        table, corners = self.corner_players, self.corners
        corner = corners.path * pieces + np.maximum(np.searchsorted(self.edges, corners.time) - 1, 0)
        flat = corner[table.corner] * width + table.player
        for output in range(self.k):
            jumps = np.bincount(flat, self.corner_credit[:, output], len(out) * width)
            out[:, :, output] += jumps.reshape(len(out), width)
        out = out.reshape(n, pieces, width, self.k)
        return out, self.error + np.abs(self.gain - self.unshared - out.sum(axis=(1, 2)))

    # ------------------------------------------------------------ between the corners

    def _continuous(self) -> None:
        roles = self.roles
        self.lines = Lines(roles, self.block, self.legs)
        pieces = len(self.lines.grid.left)
        self.sums = {n: np.zeros((self.k, pieces, n.width)) for n in roles.line_ends}
        self.line_parts = LineParts(self.lines)
        self.lost, self.moved = np.zeros((2, len(self.legs), self.k))
        self.rough = any(isinstance(n, Opaque) for n in roles.curves)
        panels = self._first_panels()
        if self.table is not None:
            self.table.expect(3 * (len(self.corners) + len(panels)))
        self.spent, self.most = 0, MOST * (len(panels) + 64 * len(self.legs))
        while len(panels):
            again: list[Panels] = []
            for order in np.unique(panels.order).tolist():
                narrow = self.table is not None and self.table.made
                same = panels[panels.order == order]
                again += [self._panels(same[slice(*batch)], order) for batch in self._batches(same, order, narrow)]
            panels = Panels.joined(again)
        for output in range(self.k):
            self.leg_credit[:, :, output] = self.lines.pull_back({n: s[output] for n, s in self.sums.items()})
        kernels.add_rows(self.error, self.legs.path, self.lost * self._to_and_fro())

    def _to_and_fro(self) -> Array:
        """How many times as much as the score one column may lose on a leg, (legs, k).

        Where lines have kinks their speed was not taken apart by columns on the way. What the columns have earned tells
        by how much more than their sum they move the score.
        """
        if self.lines.straight:
            return np.ones_like(self.lost)
        largest = np.abs(self.leg_credit).max(axis=1, initial=0.0)
        return np.asarray(np.clip(largest / np.maximum(self.moved, np.finfo(np.float64).tiny), 1.0, 1.0 / SLOWEST))

    def _first_panels(self) -> Panels:
        panels = first_panels(self.lines, self.corners)
        if not self.roles.curves:
            return panels
        cut, time = bumps(self.roles, self.lines, panels)
        if len(cut):
            whole = np.ones(len(panels), np.bool_)
            whole[cut] = False
            panels = Panels.joined([panels[whole], panels.cut(cut, time, self.corners, self.legs)])
        parts, order = first_orders(self.roles, self.lines, panels, self.settings.tol)
        cut = np.repeat(np.arange(len(panels)), parts - 1)
        step = np.arange(len(cut)) - np.searchsorted(cut, cut) + 1
        time = panels.low[cut] + panels.length[cut] * step / parts[cut]
        panels = panels.with_order(order)
        return Panels.joined([panels[parts == 1], panels.cut(cut, time, self.corners, self.legs)])

    def _batches(self, panels: Panels, order: int, narrow: bool) -> list[tuple[int, int]]:
        """Stretches of the list of panels whose numbers fit in memory together."""
        batch = np.cumsum(self._numbers(panels, order, narrow)) // BATCH
        edges = np.concatenate([[0], np.nonzero(np.diff(batch))[0] + 1, [len(panels)]])
        return [(a, b) for a, b in pairwise(edges.tolist()) if b > a]

    def _numbers(self, panels: Panels, order: int, narrow: bool) -> Array:
        """How many numbers each panel holds at once, roughly; `narrow` where a table stands for most of the head."""
        roles = self.roles
        head = self.table.part.above if narrow and self.table is not None else roles.head
        on_nodes = order * sum(n.width for n in (*roles.curves, *roles.line_ends))
        on_segments = 4 * sum(n.width for n in (*head, *roles.joints, *roles.step_ends))
        return np.asarray(on_nodes + on_segments * (panels.end - panels.begin + 1.0))

    def _panels(self, panels: Panels, order: int) -> Panels:
        """Add what some panels give; gives back those to be looked at again, finer."""
        patch = Patch(self.roles, self.lines, panels, order, self.rough, self.careful)
        again: list[Panels] = []
        if self.roles.curve_levels:
            at, time = patch.kinks()
            if len(at):
                again.append(panels.cut(at, time, self.corners, self.legs))
                whole = np.ones(len(panels), np.bool_)
                whole[at] = False
                if not whole.any():
                    return again[0]
                patch = patch.part(np.nonzero(whole)[0])
                panels = patch.panels
        path = self.legs.path[panels.leg]
        tall = np.zeros((len(panels), self.k))
        if self.roles.output in patch.values:
            tall = np.abs(patch.values[self.roles.output]).reshape(len(panels), order, -1).max(axis=1)
        allowed = self._floor(path, tall)
        if self.roles.head:
            head = Head(self.roles, patch, self.states, self.constants, self.table)
            if head.narrow is None and len(panels) > 1 and self._numbers(panels, order, False).sum() > 2 * BATCH:
                # no table after all, and too much for the head itself
                again += [self._panels(panels[slice(*batch)], order) for batch in self._batches(panels, order, False)]
                return Panels.joined(again)
            integral = Integral(head, self.corners, self.sides, allowed, self.settings)
            moments = integral.run()
            allowed = self._floor(path, integral.tallest)
            unsure = head.unsure
            sums, error, losses = self._credit(patch, moments)
            error, lost, moved = CAUTION * error, CAUTION * losses.of(moments), losses.moved
        else:
            unsure = patch.unsure
            sums, error = self._credit_alone(patch)
            error, lost, moved = CAUTION * error, np.zeros_like(error), np.zeros_like(error)
        bad = self._too_far_off(panels, (error / allowed).max(axis=1))
        # The share of a short panel may lie below rounding. Halving only makes that worse: slopes are differences of
        # values at nodes, over ever shorter distances.
        bad &= (error > NOISE * (self.tallest[path] + _sizes(patch, sums))).any(axis=1)
        bad = (bad | unsure) & (panels.length > 1e-9)
        self.spent += len(panels)
        if self.spent > self.most:  # enough: what is lost is written down
            bad[:] = False
        good = np.nonzero(~bad)[0] if bad.any() else slice(None)
        for node, table in sums.items():
            for output in range(self.k):
                kernels.add_rows(self.sums[node][output], panels.piece[good], table[output, good])
        kernels.add_rows(self.error, path[good], error[good])
        kernels.add_rows(self.lost, panels.leg[good], lost[good])
        kernels.add_rows(self.moved, panels.leg[good], moved[good])
        if self.rough and order >= BETWEEN_KINKS and bad.any():
            again.append(self._broken(patch, bad, path, allowed))
        again.append(panels[bad].finer(self.corners, self.legs))
        return Panels.joined(again)

    def _broken(self, patch: Patch, bad: Bools, path: Ints, allowed: Array) -> Panels:
        """The bad panels on which kinks are found, cut there; these are bad no longer."""
        exact = bool(self.roles.head) or not self.lines.straight  # what a kink's place costs there is not known
        limit = np.zeros(len(bad)) if exact else KINK * allowed.min(axis=1)
        found = find_breaks(patch, np.nonzero(bad)[0], limit)
        if not exact:
            kernels.add_rows(self.error, path[found.panel], np.repeat(found.cost[:, None], self.k, axis=1))
        bad[found.panel] = False
        parts = patch.panels.cut(found.panel, found.time, self.corners, self.legs)
        return parts.with_order(np.full(len(parts), BETWEEN_KINKS))

    def _floor(self, path: Ints, tall: Array) -> Array:
        """What panels of some paths may be off by, (n, k): below the rounding of the score nothing is refined.

        `tall` (n, k) are sizes of the score seen on the panels: it may be far larger inside of a path than at its ends.
        """
        np.maximum.at(self.tallest, path, tall)
        return np.maximum(self.allowed[path], np.maximum(NOISE * self.tallest[path], np.finfo(np.float64).tiny))

    def _too_far_off(self, panels: Panels, error: Array) -> Bools:
        """Which panels to look at again, for errors (n,) as multiples of what their whole paths may have.

        The best of each row's panels are kept, as many as fit in half of what the row may be off by: what is over is
        for the others when they come back.
        """
        path = self.legs.path[panels.leg]
        row, weight = self.block.row[path], self.block.weight[path]
        order = np.lexsort((error, row))
        row, share = row[order], (weight * np.maximum(panels.length, 1 / 256))[order]
        first = np.concatenate([[True], row[1:] != row[:-1]])
        begin = np.nonzero(first)[0]
        number = np.cumsum(first) - 1
        total = np.cumsum((weight * error)[order])
        total -= np.concatenate([[0.0], total[begin[1:] - 1]])[number]
        bad = np.zeros(len(order), np.bool_)
        bad[order] = total > 0.5 * np.add.reduceat(share, begin)[number]
        return bad

    def _credit(self, patch: Patch, moments: Moments) -> tuple[dict[Node, Array], Array, Losses]:
        """For each line the integral of the score's derivative over each panel, and the error of their credit.

        The third tells what the integration of the head may have lost of one column's credit.
        """
        sums = {n: np.zeros((self.k, len(patch.panels), n.width)) for n in self.roles.line_ends}
        error = np.zeros((len(patch.panels), self.k))
        losses, off = Losses(len(patch.panels), self.k), np.zeros_like(error)
        joints = self.roles.joints
        first_column = dict(zip(joints, np.cumsum([0, *(n.width for n in joints)]).tolist(), strict=False))
        for node, table in moments.lines.items():
            sums[node] += table.transpose(2, 0, 1)
            largest, speed = self.line_parts.on(node, patch.panels)
            losses.add_line(table, largest, speed)
            at = first_column[node]
            off += np.einsum("pwk,pw->pk", moments.off[:, at : at + node.width], largest)
        order, column = patch.rule.size, 0
        for node in self.roles.curve_ends:
            for j in range(node.width):
                moment = moments.curves[:, :, column].transpose(2, 0, 1)  # (k, panels, order + 2)
                parts, rates = pulled(patch, node, j, moment[:, :, :order] @ patch.rule.to_coefficients)
                for line, part in parts.items():
                    sums[line] += part
                losses.add_curve(moment, rates)
                off += moments.off[:, column] * rates.largest[:, None]
                tail = tails(rates.last, order, self.rough)  # degrees order .. 2 order
                error += _interpolation_error(tail, np.abs(moment))
                error += patch.doubt[:, column, None] * np.sqrt(moments.sway[:, column])
                error += (patch.astray[:, column] / patch.panels.length)[:, None] * np.abs(moment[:, :, 0]).T
                column += 1
        losses.off += off
        return sums, error, losses

    def _credit_alone(self, patch: Patch) -> tuple[dict[Node, Array], Array]:
        """As `_credit`, where the output is a line or a curve itself: plain Gauss quadrature.

        The output's own change over a panel, which its derivatives must add up to, tells what they lose.
        """
        roles, rule, panels, output = self.roles, patch.rule, patch.panels, self.roles.output
        sums = {n: np.zeros((self.k, len(panels), n.width)) for n in roles.line_ends}
        error = np.zeros((len(panels), self.k))
        if output in sums:  # a line
            sums[output] += np.eye(self.k)[:, None, :] * panels.length[None, :, None]
            return sums, error
        check = self.careful or self.lines.straight  # between kinks the way is short, and the path's own gap will do
        ends = patch.edges() if check else None
        for j in range(self.k):
            parts, speed = pulled(patch, output, j, 0.5 * rule.weights * panels.length[None, :, None])
            for line, part in parts.items():
                sums[line][j] = part[0]
            tail = tails(speed.last, rule.size, self.rough)[-1]  # of degree 2 order
            error[:, j] = tail.max(axis=1) * panels.length
            if ends is not None:
                first, last = (values[output][:, j] for values in ends)
                means = {line: sums[line][j] / panels.length[:, None] for line in parts}
                gained = sum((mean * patch.line_moves[line]).sum(axis=1) for line, mean in means.items())
                sizes = sum((np.abs(mean) * patch.line_sizes[line]).sum(axis=1) for line, mean in means.items())
                # What rounding makes of a panel no halving mends; the path's own gap still tells it.
                noise = ROUNDING * (np.abs(first) + np.abs(last) + sizes)
                error[:, j] = np.maximum(error[:, j], np.abs(last - first - gained)) - noise
        np.maximum(error, 0.0, out=error)
        return sums, error


def _sizes(patch: Patch, sums: dict[Node, Array]) -> Array:
    """How large the parts are that the credit of each panel is the sum of, (panels, k)."""
    out: Array = np.zeros((len(patch.panels), patch.roles.output.width))
    for line, table in sums.items():
        if line in patch.line_moves:
            speed = np.abs(patch.line_moves[line]) / patch.panels.length[:, None]
            out += np.einsum("kpw,pw->pk", np.abs(table), speed)
    return out


def _interpolation_error(tail: Array, moments: Array) -> Array:
    """What the interpolation of derivatives may cost, (panels, k): the most that one column's credit may be off.

    `tail` (order + 1, panels, columns) are coefficients of degrees order .. 2 order. One of degree l >= order is
    missing from the sum over all degrees, and one of degree 2 order - l has been mistaken for l.
    """
    order = len(tail) - 1
    missing = np.einsum("lpc,kpl->pck", tail[:2], moments[:, :, order : order + 2])
    mistaken = np.einsum("lpc,kpl->pck", tail[order:0:-1], moments[:, :, :order])
    return np.asarray((missing + mistaken).max(axis=1))
