"""Credit for any composition `g(x, d(x))` of trees and continuous parts.

Along a path the trees jump at corners and are constant in between. A corner's jump goes to the variables that cross
there (`corners`). In between, the continuous credit is the integral of the score's derivatives by curves and lines
(`head`, `integrate`), times the derivatives of those by the columns, known at a few nodes a path (`panels`, `lines`).
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from ..graph import Array, Input, Node, Opaque, evaluate
from .games import CornerPlayers, Games, Sides
from .head import Head
from .integrate import Integral, Moments
from .jumps import find_corners, step_values
from .lines import Legs, Lines
from .panels import Panels, Patch, first_panels
from .paths import Block, Bools, Ints, Paths
from .quadrature import tails
from .roles import Roles
from .settings import Credits, Settings

LONGEST = 0.5
"""Panels begin no longer than this, in time."""

ORDERS = ((0.01, 2), (0.04, 3), (0.12, 5), (0.3, 8), (np.inf, 12))
"""Nodes of a first panel up to each length."""

CAUTION = 4.0
"""An estimate of what is not there is multiplied by this."""

BATCH = 1 << 21
"""How many numbers a batch of panels may hold at once, roughly."""


def attribute(
    term: Node, source: Input, paths: Paths, categories: Bools, allowed: Array, settings: Settings
) -> Credits:
    """Credit of every end for the node `term`.

    Parameters
    ----------
    categories : (p,)
        The columns that change at once.
    allowed : (n, k)
        Largest error that each row's credits may have.
    """
    roles = Roles.of(term, source)
    players = np.arange(source.width) if settings.players is None else settings.players
    values = np.zeros((len(paths.ends), int(players.max(initial=-1)) + 1, term.width))
    error = np.zeros((len(paths.ends), term.width))
    for block in paths.blocks(settings.block, categories):
        walk = Walk(roles, block, allowed[block.row], players, settings)
        credit, lost = walk.credits()
        np.add.at(values, block.row, credit * block.weight[:, None, None])
        np.add.at(error, block.row, lost * block.weight[:, None])
    return Credits(values, error)


class Walk:
    """One block of paths walked from start to end.

    After construction `legs` and `leg_credit` (legs, p, k) hold the continuous credit, `corners` and `corner_credit`
    the credit of the players of each corner, and `error` (paths, k) the estimated error.
    """

    def __init__(
        self, roles: Roles, block: Block, allowed: Array, players: Ints, settings: Settings, stops: Array | None = None
    ) -> None:
        self.roles, self.block, self.allowed, self.players, self.settings = roles, block, allowed, players, settings
        self.k = roles.output.width
        scores = evaluate((roles.output,), {roles.source: np.concatenate([block.starts, block.ends])})[roles.output]
        self.gain = scores[len(block) :] - scores[: len(block)]
        self.tallest = np.maximum(np.abs(scores[: len(block)]), np.abs(scores[len(block) :]))
        self.error = np.zeros((len(block), self.k))
        self.corners = find_corners(roles, block, settings.n_threads)
        self.states = step_values(roles, self.corners.trees)
        broken = np.zeros(len(block), np.bool_)
        broken[self.corners.path[self.corners.broken]] = True
        self.legs = Legs.of(len(block), broken, stops)
        self.leg_credit = np.zeros((len(self.legs), roles.source.width, self.k))
        self.corner_players = CornerPlayers.of(self.corners, players)
        if roles.joints:
            self.sides = Sides.empty(roles, self.corners, self.corner_players)
            self._continuous()
        else:
            self.sides = Sides.of_steps(roles, self.corners, self.states)
        games = Games(roles, block, self.corners, self.corner_players, self.sides, settings)
        self.corner_credit, error = games.credit(allowed)
        self.error += error

    def credits(self) -> tuple[Array, Array]:
        """Credit (paths, players, k) and its estimated error (paths, k) of every path."""
        n, width = len(self.block), int(self.players.max(initial=-1)) + 1
        out = np.zeros((n, width, self.k))
        np.add.at(out, (self.legs.path[:, None], self.players[None, :]), self.leg_credit)
        table = self.corner_players
        flat = self.corners.path[table.corner] * width + table.player
        for output in range(self.k):
            jumps = np.bincount(flat, self.corner_credit[:, output], n * width)
            out[:, :, output] += jumps.reshape(n, width)
        return out, np.maximum(self.error, np.abs(self.gain - out.sum(axis=1)))

    # ------------------------------------------------------------ between the corners

    def _continuous(self) -> None:
        roles = self.roles
        self.lines = Lines(roles, self.block, self.legs)
        pieces = len(self.lines.grid.left)
        self.sums = {n: np.zeros((self.k, pieces, n.width)) for n in roles.line_ends}
        self.rough = any(isinstance(n, Opaque) for n in roles.curves)
        queue = [self._first_panels()]
        while queue:
            panels = queue.pop()
            for order in np.unique(panels.order).tolist():
                same = panels[panels.order == order]
                for first, last in self._batches(same, order):
                    again = self._panels(same[slice(first, last)], order)
                    if len(again):
                        queue.append(again)
        for output in range(self.k):
            self.leg_credit[:, :, output] = self.lines.pull_back({n: s[output] for n, s in self.sums.items()})

    def _first_panels(self) -> Panels:
        panels = first_panels(self.lines, self.corners)
        if self.roles.curves:
            parts = np.ceil(panels.length / LONGEST).astype(np.int64)
            cut = np.repeat(np.arange(len(panels)), parts - 1)
            step = np.arange(len(cut)) - np.searchsorted(cut, cut) + 1
            time = panels.low[cut] + panels.length[cut] * step / parts[cut]
            panels = Panels.joined([panels[parts == 1], panels.cut(cut, time, self.corners, self.legs)])
            limits, orders = zip(*ORDERS, strict=True)
            panels = panels.with_order(np.array(orders)[np.searchsorted(limits, panels.length)])
        return panels

    def _batches(self, panels: Panels, order: int) -> list[tuple[int, int]]:
        """Stretches of the list of panels whose numbers fit in memory together."""
        roles = self.roles
        on_nodes = order * sum(n.width for n in (*roles.curves, *roles.line_ends))
        on_segments = 4 * sum(n.width for n in (*roles.head, *roles.joints, *roles.step_ends))
        cost = on_nodes + on_segments * (panels.end - panels.begin + 1)
        batch = np.cumsum(cost) // BATCH
        edges = np.concatenate([[0], np.nonzero(np.diff(batch))[0] + 1, [len(panels)]])
        return [(a, b) for a, b in pairwise(edges.tolist()) if b > a]

    def _panels(self, panels: Panels, order: int) -> Panels:
        """Add what some panels give; gives back those to be looked at again, finer."""
        patch = Patch(self.roles, self.lines, panels, order, self.rough)
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
        allowed = np.maximum(self.allowed[path], 1e-13 * self.tallest[path])  # below its rounding nothing is refined
        head = Head(self.roles, patch, self.states)
        moments = Integral(head, self.corners, self.sides, allowed, self.settings).run()
        sums, error = self._credit(patch, moments)
        error *= CAUTION
        bad = (error > allowed * np.maximum(panels.length, 1 / 256)[:, None]).any(axis=1) & (panels.length > 1e-9)
        good = np.nonzero(~bad)[0]
        for node, table in sums.items():
            for output in range(self.k):
                np.add.at(self.sums[node][output], panels.piece[good], table[output, good])
        np.add.at(self.error, path[good], error[good] + 2.0 * moments.lost[good])
        again.append(panels[bad].finer(self.corners, self.legs))
        return Panels.joined(again)

    def _credit(self, patch: Patch, moments: Moments) -> tuple[dict[Node, Array], Array]:
        """For each line the integral of the score's derivative over each panel, and the error of their credit."""
        sums = {n: np.zeros((self.k, len(patch.panels), n.width)) for n in self.roles.line_ends}
        error = np.zeros((len(patch.panels), self.k))
        for node, table in moments.lines.items():
            sums[node] += table
        order, column = patch.rule.size, 0
        for node in self.roles.curve_ends:
            for j in range(node.width):
                moment = moments.curves[:, :, :, column]  # (k, panels, order + 2)
                weight = moment[:, :, :order] @ patch.rule.to_coefficients
                sizes = np.zeros((order, len(patch.panels)))
                for line, slope in patch.gradient(node, j).items():  # (panels, order, width)
                    sums[line] += np.matmul(weight[:, :, None, :], slope[None])[:, :, 0, :]
                    speed = patch.line_moves[line] / patch.panels.length[:, None]
                    sizes += np.abs(np.matmul(patch.rule.to_coefficients, slope) * speed[:, None]).sum(axis=2).T
                error += _interpolation_error(sizes, np.abs(moment), self.rough)
                error += patch.doubt[:, column, None] * moments.sway[:, column]
                column += 1
        return sums, error


def _interpolation_error(sizes: Array, moments: Array, rough: bool) -> Array:
    """What the interpolation of derivatives may cost, (panels, k).

    A coefficient of degree l >= order is missing from the sum, and one of degree 2 order - l has been mistaken for l.
    """
    order = len(sizes)
    tail = tails(sizes, rough)  # degrees order .. 2 order
    missing = np.einsum("lp,kpl->pk", tail[:2], moments[:, :, order : order + 2])
    mistaken = np.einsum("lp,kpl->pk", tail[order:0:-1][:order], moments[:, :, :order])
    return np.asarray(missing + mistaken)
