"""The credit of one block of paths: the mixed engine from start to end, step by step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ... import kernels
from ...graph import Array
from ...kernels.stopping import check_stopped
from .. import limits
from ..paths import Block, Ints
from ..roles import Roles
from ..settings import Settings
from .between import Trace, between_corners
from .games import CornerPlayers, Games
from .jumps import Corners, EndValues, find_corners, step_values
from .large_games import LargeCorner
from .lines import Legs
from .table import Table


@dataclass(frozen=True, eq=False)
class Plan:
    """The inputs that all blocks share.

    Attributes
    ----------
    roles : Roles
        The role of each node of the model along a path.
    ends : EndValues
        The score, and the head's inputs, at all starts and ends.
    table : Table or None
        A wide head that reads few numbers, tabulated.
    players : (p,)
        The player that each column belongs to.
    edges : (pieces + 1,)
        Times from 0 to 1 between which credit is reported separately.
    """

    roles: Roles
    ends: EndValues
    table: Table | None
    players: Ints
    settings: Settings
    edges: Array

    @property
    def player_count(self) -> int:
        """How many players there are."""
        return int(self.players.max(initial=-1)) + 1


@dataclass(frozen=True, eq=False)
class PathCredits:
    """The credits of one block of paths, for outputs k.

    Attributes
    ----------
    credit : (paths, pieces, players, k)
        Without the corners in `large`.
    error : (paths, k)
        Estimated error of that.
    tallest : (paths, k)
        The largest |score| seen on each path.
    corners, corner_players : Corners, CornerPlayers
        Where the score jumps, and the players that cross there.
    corner_credit : (players of all corners, k)
        Their credit there; zero at large corners.
    large : list of LargeCorner
        Corners of too many players for all coalitions: orders are sampled for the row, once all its paths are done.
    """

    block: Block
    credit: Array
    error: Array
    tallest: Array
    corners: Corners
    corner_players: CornerPlayers
    corner_credit: Array
    large: list[LargeCorner]


def walk(plan: Plan, block: Block, allowed: Array, careful: bool, trace: Trace | None = None) -> PathCredits:
    """Credit of every path of a block; `allowed` (paths, k) is the error that each may have.

    With `careful` set, curves are also evaluated at the ends of panels. `trace` gives the lines, where
    they are not to be followed from kink to kink.
    """
    roles, settings, ends = plan.roles, plan.settings, plan.ends

    # The corners, the players that cross there, and the outputs of the trees in between.
    corners = find_corners(roles, block, ends, settings.n_threads)
    players = CornerPlayers.of(corners, plan.players)
    states = step_values(roles, corners.trees)

    # The change of the score on every path, to which the credits must add up.
    first, last = ends.at_starts[roles.output][block.start], ends.at_ends[roles.output][block.row]
    tallest = np.maximum(np.abs(first), np.abs(last))

    # Between the corners: lines and curves integrated, and the score on both sides of every corner.
    between = between_corners(plan, block, corners, players, states, allowed, tallest, careful, trace)

    check_stopped()
    # At the corners: Shapley's value of the players that cross there.
    shared = Games(roles, block, corners, players, between.sides, settings).credit(allowed)

    # Sums by path, piece and player. The mismatch with the score's change is a known error; since errors of columns may
    # cancel in it, it is multiplied by a safety factor.
    credit = _by_piece(plan, len(block), between.legs, between.credit)
    credit += _jumps_by_piece(plan, len(block), corners, players, shared.credit)
    gap = np.abs(last - first - shared.unshared - credit.sum(axis=(1, 2)))
    error = between.error + shared.error + limits.GAP_CAUTION * gap
    return PathCredits(block, credit, error, between.tallest, corners, players, shared.credit, shared.large)


def _by_piece(plan: Plan, paths: int, legs: Legs, leg_credit: Array) -> Array:
    """Credit (legs, p, k) between corners, summed by path, piece and player."""
    pieces, k = len(plan.edges) - 1, leg_credit.shape[2]
    out = np.zeros((paths * pieces, plan.player_count, k))
    piece = legs.path * pieces + np.searchsorted(plan.edges, legs.low, side="right") - 1
    if np.array_equal(plan.players, np.arange(plan.player_count)):  # every column for itself
        kernels.add_rows(out.reshape(len(out), -1), piece, leg_credit.reshape(len(piece), -1))
    else:
        np.add.at(out, (piece[:, None], plan.players[None, :]), leg_credit)
    return out.reshape(paths, pieces, plan.player_count, k)


def _jumps_by_piece(plan: Plan, paths: int, corners: Corners, players: CornerPlayers, credit: Array) -> Array:
    """The credit of the players of corners, (players of all corners, k), summed by path, piece and player.

    A jump at an edge belongs to the piece that ends there, as the score at that time is the one after the jump; at time
    0 to the first.
    """
    pieces, width, k = len(plan.edges) - 1, plan.player_count, credit.shape[1]
    first = corners.first
    if pieces > 1:
        piece = corners.path * pieces + np.maximum(np.searchsorted(plan.edges, corners.time) - 1, 0)
        first = np.concatenate([[0], np.cumsum(np.bincount(piece, minlength=paths * pieces))])
    out = np.zeros((paths * pieces, width * k))
    kernels.add_grouped(out, players.offsets[first], players.player, credit)
    return out.reshape(paths, pieces, width, k)
