"""Kinks of curves inside of panels, where the input of a function passes its kink; found before integration."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...graph import Array, Node
from .. import limits
from ..paths import Bools, Ints
from ..quadrature import legendre, tails
from ..roles import Levels
from ..roots import solve
from .patch import PanelCurves


@dataclass(frozen=True, eq=False)
class CurveKinks:
    """Panels with kinks of a curve inside, and their times, sorted by panel and time; each (n,).

    `unsure` (panels,) marks panels that may have a kink, since there are too few nodes to decide.
    """

    panel: Ints
    time: Array
    unsure: Bools


def curve_kinks(patch: PanelCurves) -> CurveKinks:
    """The kinks inside of panels.

    Only the first function with a kink on a panel is examined: functions of it have a kink there too.
    """
    n, order, unsure = len(patch.panels), patch.rule.size, patch.unsure.copy()
    found_panel: list[Ints] = [np.zeros(0, np.int64)]
    found_time: list[Array] = [np.zeros(0)]
    open_ = np.ones(n, np.bool_)
    for levels in patch.roles.curve_levels:
        z = patch.values[levels.node].reshape(n, order, -1)
        coefficients = np.matmul(patch.rule.to_coefficients, z)
        sign = (-1.0) ** np.arange(order)[None, :, None]
        ends = (coefficients * sign).sum(axis=1), coefficients.sum(axis=1)
        z = np.concatenate([ends[0][:, None], z, ends[1][:, None]], axis=1)
        u = np.concatenate([[-1.0], patch.rule.nodes, [1.0]])
        row, column, level = levels.passed(
            z[:, :-1].reshape(n * (order + 1), -1), z[:, 1:].reshape(n * (order + 1), -1)
        )
        panel, gap = row // (order + 1), row % (order + 1)
        doubt = tails(np.abs(coefficients[:, -4:]).transpose(1, 0, 2), order, 0.0)[:2].sum(axis=0)
        unsure[may_pass(levels, z.min(axis=1), z.max(axis=1), doubt)] = True
        more = _turned(patch, coefficients, z, u, levels)
        panel, column = np.append(panel, more[0]), np.append(column, more[1])
        level, from_, to = np.append(level, more[2]), np.append(u[gap], more[3]), np.append(u[gap + 1], more[4])
        keep = open_[panel]
        panel, column, level, from_, to = panel[keep], column[keep], level[keep], from_[keep], to[keep]
        low = patch.middle[panel] + patch.half[panel] * from_
        high = patch.middle[panel] + patch.half[panel] * to
        real, root = _roots(patch, levels.node, panel, column, level, low, high)
        near = limits.SAME_CUT * patch.panels.length[panel]
        real &= (root > patch.panels.low[panel] + near) & (root < patch.panels.high[panel] - near)
        found_panel.append(panel[real])
        found_time.append(root[real])
        open_[panel[real]] = False
    panel, time = np.concatenate(found_panel), np.concatenate(found_time)
    which = patch.panels.apart(panel, time)
    return CurveKinks(panel[which], time[which], unsure)


def _turned(
    patch: PanelCurves, coefficients: Array, z: Array, u: Array, levels: Levels
) -> tuple[Ints, Ints, Array, Array, Array]:
    """Levels that a column crosses twice between two nodes, around an extremum.

    Returns the panel, the column, the level, and the interval of each crossing, in the panel's own coordinate.
    """
    steep = np.matmul(patch.rule.derivative, coefficients)
    slope = np.matmul(np.polynomial.legendre.legvander(u, patch.rule.size - 1), steep)
    panel, gap, column = np.nonzero(slope[:, :-1] * slope[:, 1:] < 0)
    before, after = slope[panel, gap, column], slope[panel, gap + 1, column]
    turn = u[gap] + (u[gap + 1] - u[gap]) * before / (before - after)
    basis = legendre(turn, patch.rule.size)
    top = np.einsum("ln,nl->n", basis, coefficients[panel, :, column])
    low, high = np.zeros((2, 2 * len(panel), z.shape[2]))  # a column without an extremum crosses nothing
    every, doubled = np.arange(2 * len(panel)), np.tile(column, 2)
    low[every, doubled] = np.concatenate([z[panel, gap, column], z[panel, gap + 1, column]])
    high[every, doubled] = np.tile(top, 2)
    row, column, level = levels.passed(low, high)
    from_, to = np.concatenate([u[gap], turn])[row], np.concatenate([turn, u[gap + 1]])[row]
    return np.tile(panel, 2)[row], column, level, from_, to


def _roots(
    patch: PanelCurves, node: Node, panel: Ints, column: Ints, level: Array, low: Array, high: Array
) -> tuple[Bools, Array]:
    """Whether and when a column of a curve has a level, by the curve itself, not by its interpolant."""
    rows = np.arange(len(panel))

    def function(index: Ints, time: Array) -> Array:
        values = patch.roles.evaluate((node,), patch.lines_at(panel[index], time))[node]
        return values[np.arange(len(index)), column[index]] - level[index]

    if not len(panel):
        return np.zeros(0, np.bool_), low
    at_low, at_high = function(rows, low), function(rows, high)
    real = np.sign(at_low) * np.sign(at_high) < 0
    noise = np.where(real, 1e-15 * np.maximum(np.abs(at_low), np.abs(at_high)) + 1e-16 * np.abs(level), np.inf)
    root = solve(function, low, high, np.where(real, at_low, -1.0), np.where(real, at_high, 1.0), noise)
    return real, root


def may_pass(levels: Levels, least: Array, most: Array, doubt: Array) -> Ints:
    """Rows on which a node with values from `least` to `most` at its nodes, off by `doubt`, may pass another level."""
    return np.concatenate([levels.passed(least - doubt, least)[0], levels.passed(most, most + doubt)[0]])
