"""Where a path passes a support vector of a narrow kernel: bumps that quadrature nodes could miss, found analytically.

Along a straight line the squared distance to a support vector is a parabola in time, so the interval on which a radial
kernel is not negligible is known beforehand. It is cut into cells of about the kernel's own width; the rest of the
path, on which the kernel is negligible, stays in one piece.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ... import kernels
from ...graph import Array, KernelMachine, Node
from ...graph.kernel_machine import PROFILES, Factor
from .. import limits
from ..paths import Ints
from ..roles import Roles

if TYPE_CHECKING:
    from .lines import Lines
    from .panels import Panels


def bumps(roles: Roles, lines: Lines, panels: Panels) -> tuple[Ints, Array]:
    """The panels to cut, and the times, where curves pass support vectors of narrow kernels, sorted by both."""
    found: list[tuple[Ints, Array]] = [(np.zeros(0, np.int64), np.zeros(0))]
    grid = lines.grid
    for machine, factor in radial(roles.curves):
        count = 1 if machine.source in lines.ends else limits.KERNEL_STRETCHES
        left = np.repeat(grid.left[panels.piece], count + 1)
        part = np.tile(np.arange(count + 1) / count, len(panels))
        known = {n: kernels.between_rows(values, left, part) for n, values in lines.ends.items()}
        rows = roles.evaluate((machine.source,), known)[machine.source].reshape(len(panels), count + 1, -1)
        found.append(cells(machine, factor, rows))
    panel, part = (np.concatenate(parts) for parts in zip(*found, strict=True))
    panel, part = _sorted(panel, part)
    return panel, panels.low[panel] + panels.length[panel] * part


def kernel_lengths(roles: Roles, lines: Lines, panels: Panels) -> Array:
    """The length of panels in units of the narrowest kernel that reads a line, (panels,)."""
    out = np.zeros(len(panels))
    left = lines.grid.left[panels.piece]
    share = panels.length / (lines.grid.time[left + 1] - lines.grid.time[left])
    for machine, factor in radial(roles.curves):
        if machine.source in lines.ends:
            rows = lines.ends[machine.source]
            way = (rows[left + 1] - rows[left]) * factor.scale
            out = np.maximum(out, share * np.sqrt((way * way).sum(axis=1)))
    return out


def radial(nodes: tuple[Node, ...]) -> list[tuple[KernelMachine, Factor]]:
    """The radial factors of all kernel machines among some nodes."""
    machines = [n for n in nodes if isinstance(n, KernelMachine)]
    return [(n, f) for n in machines for f in n.factors if PROFILES[f.profile].radial]


def cells(machine: KernelMachine, factor: Factor, rows: Array) -> tuple[Ints, Array]:
    """Where to cut polylines through rows (n, points, width), for one factor of a kernel.

    Returns the polyline and the position along it, from 0 to 1, (cuts,) each, sorted: the edges of all cells near a
    support vector. Polylines that are no longer than two cells are not cut.
    """
    steps = np.diff(rows, axis=1) * factor.scale
    length = np.sqrt((steps * steps).sum(axis=2))
    long = np.nonzero(np.isfinite(length).all(axis=1) & (length.sum(axis=1) > 2 * limits.KERNEL_CELL))[0]
    count = length.shape[1]
    line: list[Ints] = [np.zeros(0, np.int64)]
    part: list[Array] = [np.zeros(0)]
    step = max(limits.DISTANCES // max(len(machine.support) * count, 1), 1)
    for some in (long[i : i + step] for i in range(0, len(long), step)):
        first, way, each = rows[some, :-1].reshape(len(some) * count, -1), steps[some], length[some].ravel()
        stretch, begin, end = _reached(machine, factor, first, way.reshape(len(each), -1), each)
        stretch, where = _edges(stretch, begin, end, np.maximum(np.ceil(each / limits.KERNEL_CELL), 1).astype(np.int64))
        line.append(some[stretch // count])
        part.append((stretch % count + where) / count)
    return _sorted(np.concatenate(line), np.concatenate(part))


def _sorted(line: Ints, part: Array) -> tuple[Ints, Array]:
    """Cuts in order, each once, without those at the very ends."""
    inner = (part > limits.SAME_EDGE) & (part < 1.0 - limits.SAME_EDGE)
    line, part = line[inner], part[inner]
    order = np.lexsort((part, line))
    line, part = line[order], part[order]
    fresh = np.ones(len(line), np.bool_)
    fresh[1:] = (line[1:] != line[:-1]) | (np.diff(part) > limits.SAME_EDGE)
    return line[fresh], part[fresh]


def _reached(
    machine: KernelMachine, factor: Factor, first: Array, way: Array, length: Array
) -> tuple[Ints, Array, Array]:
    """The intervals of straight lines near support vectors, as positions along the line: (line, from, to)."""
    support, start = machine.support * factor.scale, first * factor.scale
    direction = way / np.maximum(length, np.finfo(np.float64).tiny)[:, None]
    along = direction @ support.T - (direction * start).sum(axis=1)[:, None]  # distance to the closest point
    square = (start * start).sum(axis=1)[:, None] - 2.0 * start @ support.T + (support * support).sum(axis=1)
    left = limits.KERNEL_REACH[factor.profile] ** 2 - (
        square - along * along
    )  # half-width of the interval within reach
    row, vector = np.nonzero(left > 0)
    half = np.sqrt(left[row, vector])
    begin, end = along[row, vector] - half, along[row, vector] + half
    inside = (end > 0) & (begin < length[row]) & (length[row] > 0)
    row, begin, end = row[inside], begin[inside], end[inside]
    return row, begin / length[row], end / length[row]


def _edges(row: Ints, begin: Array, end: Array, count: Ints) -> tuple[Ints, Array]:
    """The edges of the cells, of which line i has count[i], that intervals (row, begin, end) of lines touch."""
    first = np.concatenate([[0], np.cumsum(count + 1)])  # the index of each line's first edge
    low = np.clip(np.floor(begin * count[row]), 0, count[row]).astype(np.int64)
    high = np.clip(np.ceil(end * count[row]), 0, count[row]).astype(np.int64)
    marks = np.zeros(first[-1] + 1, np.int64)
    np.add.at(marks, first[row] + low, 1)
    np.add.at(marks, first[row] + high + 1, -1)
    edge = np.nonzero(np.cumsum(marks)[:-1] > 0)[0]
    owner = np.searchsorted(first, edge, side="right") - 1
    return owner, (edge - first[owner]) / count[owner]
