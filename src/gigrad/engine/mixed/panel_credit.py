"""The credit of panels of one order: integrals of the score's derivatives with respect to lines, and their errors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...graph import Array, Node
from .. import limits
from ..paths import Bools
from ..quadrature import tails
from ..settings import Settings
from .games import CornerScores
from .head import Head
from .integrate import integrated
from .jumps import Corners
from .line_parts import LineParts
from .losses import ErrorTerms
from .moments import Moments
from .patch import PanelCurves
from .slopes import opposed, pulled


@dataclass(frozen=True, eq=False)
class PanelCredit:
    """The credit of panels, for outputs k.

    Attributes
    ----------
    sums : dict of (k, panels, width)
        For each line that others read, the integral of the score's derivative with respect to it.
    error : (panels, k)
        Estimated error of one column's credit, from interpolating the derivatives of curves.
    slow : (panels, k)
        The error of one column's credit from slow scores at thresholds, which finer panels do not reduce.
    lost, moved : (panels, k)
        A bound on the error of one column's credit from the head's quadrature, and the change of the score.
    tallest : (panels, k)
        The largest |score| seen between corners.
    unsure : (panels,)
        Where a kink may have been missed.
    """

    sums: dict[Node, Array]
    error: Array
    slow: Array
    lost: Array
    moved: Array
    tallest: Array
    unsure: Bools

    def sizes(self, patch: PanelCurves) -> Array:
        """The size of the terms of which the credit of each panel is the sum, (panels, k)."""
        out: Array = np.zeros_like(self.error)
        for line, table in self.sums.items():
            if line in patch.line_moves:
                speed = np.abs(patch.line_moves[line]) / patch.panels.length[:, None]
                out += np.einsum("kpw,pw->pk", np.abs(table), speed)
        return out


def credit_by_head(
    head: Head, corners: Corners, sides: CornerScores, line_parts: LineParts, allowed: Array, settings: Settings
) -> PanelCredit:
    """The credit of panels if a head reads lines and curves. The score beside their corners is written to `sides`."""
    found = integrated(head, corners, sides, allowed, settings)
    sums, error, losses = _from_moments(head.patch, line_parts, found.moments)
    lost = limits.CAUTION * losses.of(found.moments)
    return PanelCredit(
        sums, limits.CAUTION * error, found.moments.slow, lost, losses.moved, found.tallest, found.unsure
    )


def _from_moments(
    patch: PanelCurves, line_parts: LineParts, moments: Moments
) -> tuple[dict[Node, Array], Array, ErrorTerms]:
    """For each line the integral of the score's derivative over each panel, the error from interpolating curves, and a
    bound on the error from the integration of the head.
    """
    roles, (panels, k) = patch.roles, moments.lost.shape
    sums = {n: np.zeros((k, panels, n.width)) for n in roles.line_ends}
    error = np.zeros((panels, k))
    losses, off = ErrorTerms(panels, k), np.zeros_like(error)
    joints = roles.joints
    first_column = dict(zip(joints, np.cumsum([0, *(n.width for n in joints)]).tolist(), strict=False))
    for node, table in moments.lines.items():
        sums[node] += table.transpose(2, 0, 1)
        largest, speed = line_parts.on(node, patch.panels)
        losses.add_line(table, largest, speed)
        at = first_column[node]
        # a line's speed is of degree 0
        off += np.einsum("pwk,pw->pk", moments.off[0, :, at : at + node.width], largest)
    if patch.run is not None:
        through, found = patch.run.credit(patch.astray, patch.panels.length, moments)
        for line, part in through.items():
            sums[line] += part
        losses.add_found(found)
        losses.off += off
        return sums, found.error, losses
    order, column = patch.rule.size, 0
    for node in roles.curve_ends:
        for j in range(node.width):
            moment = moments.curves[:, :, column].transpose(2, 0, 1)  # (k, panels, order + 2)
            parts, rates = pulled(patch, node, j, moment[:, :, :order] @ patch.rule.to_coefficients)
            for line, part in parts.items():
                sums[line] += part
            losses.add_curve(moment, rates)
            off += np.einsum("opk,op->pk", moments.off[:, :, column], rates.largest_seen)
            tail = tails(rates.last, order, patch.least_rate)  # degrees order .. 2 order
            error += _interpolation_error(tail, np.abs(moment), patch.rule.alias)
            # An error of the curve moves the times of the head's kinks, by that error over the curve's speed.
            error += (patch.doubt[:, column] * rates.opposed)[:, None] * np.sqrt(moments.sway[:, column])
            error += (patch.astray[:, column] / patch.panels.length)[:, None] * np.abs(moment[:, :, 0]).T
            column += 1
    losses.off += off
    return sums, error, losses


def _interpolation_error(tail: Array, moments: Array, alias: Array) -> Array:
    """The error of one column's credit from interpolating derivatives, (panels, k).

    `tail` (order + 1, panels, columns) are coefficients of degrees order .. 2 order. One of degree l >= order is
    missing from the sum over all degrees, and mistaken for lower ones: at Gauss's nodes for degree 2 order - l.
    """
    order = len(tail) - 1
    missing = np.einsum("lpc,kpl->pck", tail[:2], moments[:, :, order : order + 2])
    mistaken = np.einsum("lpc,kpl->pck", np.tensordot(alias, tail, axes=1), moments[:, :, :order])
    return np.asarray((missing + mistaken).max(axis=1))


def credit_alone(patch: PanelCurves, line_parts: LineParts, check: bool) -> PanelCredit:
    """The credit of panels if the output is a line or a curve itself: plain Gauss quadrature.

    With `check` set, the error is measured by the output's own change over a panel, to which its derivatives must add
    up. Between kinks panels are short, and the gap of the whole path suffices.
    """
    roles, rule, panels, output = patch.roles, patch.rule, patch.panels, patch.roles.output
    sums = {n: np.zeros((output.width, len(panels), n.width)) for n in roles.line_ends}
    error = np.zeros((len(panels), output.width))
    if output in sums:  # a line
        sums[output] += np.eye(output.width)[:, None, :] * panels.length[None, :, None]
    else:
        ends = patch.edges() if check else None
        for j in range(output.width):
            parts, speed = pulled(patch, output, j, 0.5 * rule.weights * panels.length[None, :, None])
            for line, part in parts.items():
                sums[line][j] = part[0]
            # What is mistaken for a constant: at Gauss's nodes that of degree 2 order.
            tail = np.tensordot(rule.alias[0], tails(speed.last, rule.size, patch.least_rate), axes=1)
            error[:, j] = tail.max(axis=1) * panels.length
            if ends is not None:
                first, last = (values[output][:, j] for values in ends)
                means = {line: sums[line][j] / panels.length[:, None] for line in parts}
                missing = np.abs(last - first - _gained(patch, means))
                # Halving does not reduce rounding errors; the gap of the path still shows them.
                rounding = limits.ROUNDING * (np.abs(first) + np.abs(last) + _sizes(patch, means))
                against = _opposed(patch, line_parts, means)
                error[:, j] = np.maximum(error[:, j] - rounding, against * (missing - rounding))
        np.maximum(error, 0.0, out=error)
    zero = np.zeros_like(error)
    return PanelCredit(sums, limits.CAUTION * error, zero, zero, zero, zero, patch.unsure)


def _opposed(patch: PanelCurves, line_parts: LineParts, means: dict[Node, Array]) -> Array:
    """How many times as large one column's part of the speed of a line is as that speed, (panels,), at least 1.

    Where columns move a line in opposite directions, the error of one column's credit is as many times that of the
    score's change. A mean over lines, weighted by mean derivatives with respect to them, (panels, width).
    """
    parts, speeds = np.zeros((2, len(patch.panels)))
    for line, mean in means.items():
        largest, speed = line_parts.on(line, patch.panels)
        parts += (np.abs(mean) * largest).sum(axis=1)
        speeds += np.abs(mean * speed).sum(axis=1)
    return opposed(parts, speeds)


def _gained(patch: PanelCurves, means: dict[Node, Array]) -> Array:
    """The change of the output implied by mean derivatives with respect to lines, (panels, width): (panels,)."""
    return np.asarray(sum((mean * patch.line_moves[line]).sum(axis=1) for line, mean in means.items()))


def _sizes(patch: PanelCurves, means: dict[Node, Array]) -> Array:
    """The size of the terms that `_gained` adds up, (panels,)."""
    return np.asarray(sum((np.abs(mean) * patch.line_sizes[line]).sum(axis=1) for line, mean in means.items()))
