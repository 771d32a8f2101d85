"""Trees over something continuous: where it passes a threshold they jump, and the jump goes along its normal.

A tree that reads the score of a net has boundaries that no single variable owns. Where the inner score c crosses a
threshold, a variable earns `jump * (dc/dx_i * move_i) / (dc/da)`: its share of the speed of the crossing. Columns of
such scores that pass thresholds at one time share the jump by Shapley value first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..graph import Array, Node
from .corners import AskedGame, solve
from .head import Crossings, Head, Settled
from .paths import Bools
from .settings import Settings

if TYPE_CHECKING:
    from .moments import Moments

Place = tuple[Settled, int]
"""A segment: the list it is in, and its place there."""


def share_out(head: Head, crossings: Crossings, kept: list[Settled], moments: Moments, settings: Settings) -> None:
    """Add the jumps of all crossings to the moments, as derivatives by the joints that a variable can earn from."""
    before, after = _neighbours(kept)
    for mark, columns in enumerate(crossings.columns):
        levels = [head.roles.head_levels[number] for number, _ in columns]
        players = list(dict.fromkeys((one.node, column) for one, (_, column) in zip(levels, columns, strict=True)))
        if len(players) > 1:
            shares, error = _shares(head, players, before[mark], after[mark], settings)
            moments.lost[crossings.panel[mark]] += error
        else:
            (left, i), (right, j) = before[mark], after[mark]
            shares = (right.first[j] - left.last[i])[None]
        for (node, column), share in zip(players, shares, strict=True):
            _along(head, node, column, share, before[mark], moments)


def _neighbours(kept: list[Settled]) -> tuple[dict[int, Place], dict[int, Place]]:
    """The segments before and after each crossing."""
    before: dict[int, Place] = {}
    after: dict[int, Place] = {}
    for settled in kept:
        for marks, where in ((settled.segments.enter, after), (settled.segments.leave, before)):
            for i in np.nonzero(marks >= 0)[0].tolist():
                where[int(marks[i])] = (settled, i)
    return before, after


def _shares(
    head: Head, players: list[tuple[Node, int]], before: Place, after: Place, settings: Settings
) -> tuple[Array, Array]:
    """Shapley shares (players, k) of columns that pass thresholds at one time, and their error, (k,)."""
    output, nodes = head.roles.output, tuple(dict.fromkeys(node for node, _ in players))
    sides = []
    for settled, i in (before, after):
        one = settled.part(np.array([i]))
        s = one.segments
        sides.append(head.at(nodes, s.panel, s.state, 0.5 * (s.low + s.high), one.held))
    segment = before[0].segments[np.array([before[1]])]

    def ask(past: Bools) -> Array:
        many = segment[np.zeros(len(past), np.int64)]
        panel, state, time = many.panel, many.state, many.high
        held: dict[Node, Array] = {}
        for tree in head.roles.head_trees:
            inputs = head.at((tree.source,), panel, state, time, held)[tree.source].copy()
            for j, (node, column) in enumerate(players):
                if node is tree.source:
                    old, new = (side[node][0, column] for side in sides)
                    inputs[:, column] = np.where(past[:, j], new, old)
            held[tree] = tree.forward(inputs)
        return head.at((output,), panel, state, time, held)[output]

    numbers = sum(n.width for n in head.roles.head)
    return solve(AskedGame(len(players), output.width, numbers, ask), settings.seed, settings.miss)


def _along(head: Head, node: Node, column: int, share: Array, before: Place, moments: Moments) -> None:
    """Add one share of a jump along the normal of what passes the threshold."""
    settled, i = before
    one = settled.part(np.array([i]))
    s, roles = one.segments, head.roles
    values = head.at((node, roles.output), s.panel, s.state, s.high, one.held)
    cotangent = np.zeros_like(values[node])
    cotangent[0, column] = 1.0
    back = head.back(node, cotangent, values, s.state)
    speeds = head.patch.rates(s.panel, s.high)
    speed = sum(float((part * speeds[n]).sum()) for n, part in back.items())
    if speed == 0.0:  # it touches the threshold without a direction: nobody can be credited
        moments.lost[s.panel[0]] += np.abs(share)
        return
    amount = share / speed
    parts = [back.get(n, np.zeros((1, n.width))) for n in roles.curve_ends]
    curves = np.concatenate([np.zeros((1, 0)), *parts], axis=1)[:, :, None] * amount
    lines = {n: back[n][:, :, None] * amount for n in roles.head_lines if n in back}
    moments.add_points(head, s.panel, s.high, curves, lines)
