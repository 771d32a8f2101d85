"""Checks of opaque functions: whether the gradient that was given is that of the value.

Before credits are computed, columns whose gradient is zero are moved on a few paths: a function whose value changes
with such a column is refused, since the column would get no credit. Where credits do not add up, the path with the
largest gap is searched for the cause.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ..errors import UnsupportedModelError
from ..graph import Array, Input, Node, Opaque, TreeEnsemble, topological, value_of
from . import limits
from .roles import categories_read, input_columns


@dataclass(frozen=True, eq=False)
class _Function:
    """An opaque function of a model, and which of its inputs move."""

    node: Opaque
    moving: NDArray[np.bool_]  # (w,), its inputs that move along a path, rather than all at once
    names: tuple[str, ...]  # (w,), of its inputs, for messages
    source: Input

    def inputs(self, rows: Array) -> Array:
        """Its inputs for some rows, (n, w)."""
        return value_of(self.node.source, {self.source: rows})

    @property
    def _weights(self) -> Array:
        """Fixed random weights that combine several outputs into one number, so that these do not cancel."""
        size = self.node.width
        return np.ones(1) if size == 1 else np.random.default_rng(0).normal(size=size)

    def value(self, x: Array) -> Array:
        return self.node.forward(x) @ self._weights

    def gradient(self, x: Array) -> Array:
        return self.node.pullback(np.tile(self._weights, (len(x), 1)), x)[0]


def _functions(output: Node, source: Input, names: Sequence[str]) -> Iterator[_Function]:
    """The opaque functions of a model that read no trees, with the columns that move them."""
    for node in topological(output):
        if not isinstance(node, Opaque) or any(isinstance(n, TreeEnsemble) for n in topological(node.source)):
            continue
        at_once = categories_read(output, source)
        read = input_columns(node.source, source)
        moving = np.array([not all(at_once[j] for j in columns) for columns in read])
        called = tuple(
            repr(names[next(iter(columns))]) if len(columns) == 1 else f"its input {i}"
            for i, columns in enumerate(read)
        )
        yield _Function(node, moving, called, source)


def has_functions(output: Node) -> bool:
    return any(isinstance(node, Opaque) for node in topological(output))


# ---------------------------------------------------------------- columns that a gradient ignores


def refuse_ignored(output: Node, source: Input, starts: Array, ends: Array, names: Sequence[str]) -> None:
    """Raise for a model with a function whose value changes with a column while its gradient by that column is zero.

    `starts` (m, p) and `ends` (n, p) need not belong to each other: a few of each are paired.
    """
    some = [np.linspace(0, len(rows) - 1, limits.PROBED_PATHS).astype(int) for rows in (starts, ends)]
    for function in _functions(output, source, names):
        start, end = function.inputs(starts[some[0]]), function.inputs(ends[some[1]])
        whole = ~np.isnan(start + end).any(axis=1)
        if whole.any():
            _refuse_ignored(function, start[whole], end[whole])


def _refuse_ignored(function: _Function, start: Array, end: Array) -> None:
    """Refuse a function that changes with an input for which its gradient is zero everywhere."""
    moved = (start != end).any(axis=0) & function.moving
    slopes = function.gradient(np.concatenate([start, end, (start + end) / 2.0]))
    ignored = np.nonzero(moved & (slopes == 0.0).all(axis=0))[0][:64]
    if not len(ignored):
        return
    least = limits.UNCHANGED * float(np.abs(function.value(np.concatenate([start, end]))).max())
    for steps in _moves(function, start, end, ignored, least):
        raise UnsupportedModelError(steps)


def _moves(function: _Function, start: Array, end: Array, columns: NDArray[np.int64], least: float) -> Iterator[str]:
    """The message for each column with which the value changes while the gradient is exactly zero."""
    column, rows, low, high = [], [], [], []
    base = function.value(start)
    for j in columns.tolist():
        alone = start.copy()
        alone[:, j] = end[:, j]
        change = np.abs(function.value(alone) - base)
        worst = int(np.argmax(change))
        if change[worst] > least:
            column.append(j)
            rows.append(start[worst])
            low.append(start[worst, j])
            high.append(end[worst, j])
    if not column:
        return
    line = _Line(function, np.array(rows), np.array(column))
    a, b = np.array(low), np.array(high)
    first, last, silent = line.halved(a, b)
    for i in np.nonzero(silent & (np.abs(first) > least))[0]:
        name = function.names[column[i]]
        seen = f"its output changes by {abs(first[i]):.3g} as {name} goes from {a[i]:.6g} to {b[i]:.6g}"
        if abs(last[i]) > limits.STEP_SHARE * abs(first[i]):
            yield (
                f"{function.node.label} must be continuous in every column of numbers; it jumps with {name}: {seen}, "
                "and its gradient by it is zero, so that it would get no credit. Replace what rounds or compares in it "
                "(.long(), floor, argmax, >) by something continuous; if a column holds codes, declare them: "
                "gigrad.function(..., categories={column: number of codes})."
            )
        else:
            yield (
                f"{function.node.label} must have a gradient by every column it depends on; it has none by {name}: "
                f"{seen}, and its gradient by it is zero. Look for detach(), no_grad() or NumPy inside of it, or "
                "correct the gradient that was given."
            )


@dataclass(frozen=True, eq=False)
class _Line:
    """Straight lines along each of which one input of a row moves."""

    function: _Function
    rows: Array  # (q, w)
    columns: NDArray[np.int64]  # (q,)

    def at(self, where: Array) -> Array:
        rows = self.rows.copy()
        rows[np.arange(len(rows)), self.columns] = where
        return rows

    def halved(self, low: Array, high: Array) -> tuple[Array, Array, NDArray[np.bool_]]:
        """The change from low to high, the largest change left after bisection, and whether no slope was found."""
        at_low, at_high = self.function.value(self.at(low)), self.function.value(self.at(high))
        first = at_high - at_low
        silent = np.ones(len(low), np.bool_)
        for _ in range(limits.JUMP_HALVINGS):
            middle = (low + high) / 2.0
            rows = self.at(middle)
            silent &= self.function.gradient(rows)[np.arange(len(rows)), self.columns] == 0.0
            if not silent.any():
                break
            value = self.function.value(rows)
            left = np.abs(value - at_low) >= np.abs(at_high - value)
            low, high = np.where(left, low, middle), np.where(left, middle, high)
            at_low, at_high = np.where(left, at_low, value), np.where(left, value, at_high)
        return first, at_high - at_low, silent


# ---------------------------------------------------------------- why credits do not add up


def why_not(output: Node, source: Input, starts: Array, end: Array, names: Sequence[str]) -> str:
    """Why the credits of one row, (p,), do not add up, in a sentence; "" if no function is the cause."""
    some = starts[np.unique(np.linspace(0, len(starts) - 1, 4 * limits.PROBED_PATHS).astype(int))]
    for function in _functions(output, source, names):
        from_, to = function.inputs(some), function.inputs(end[None])
        from_[:, ~function.moving] = to[:, ~function.moving]
        paths = [_Path(function, s, to[0]) for s in from_ if not np.isnan(s + to[0]).any()]
        if paths and (said := max(paths, key=lambda p: p.lost(0.0, 1.0)).reason()):
            return said
    return ""


@dataclass(frozen=True, eq=False)
class _Path:
    """A straight path through the inputs of a function."""

    function: _Function
    start: Array  # (w,)
    end: Array

    def _at(self, times: Array) -> Array:
        return np.asarray((1.0 - times)[:, None] * self.start + times[:, None] * self.end)

    def rise(self, low: float, high: float) -> float:
        """The change of the function from time `low` to `high`."""
        at_low, at_high = self.function.value(self._at(np.array([low, high])))
        return float(at_high - at_low)

    def by_gradient(self, low: float, high: float, panels: int = 8) -> float:
        """The change from time `low` to `high` by the gradient, integrated by Gauss's rule on each of some panels."""
        nodes, weights = np.polynomial.legendre.leggauss(4)
        width = (high - low) / panels
        times = low + width * (np.arange(panels)[:, None] + (nodes + 1.0) / 2.0)
        slopes = self.function.gradient(self._at(times.ravel())) @ (self.end - self.start)
        return float(slopes.reshape(panels, -1).sum(axis=0) @ weights * width / 2.0)

    def lost(self, low: float, high: float) -> float:
        lost = abs(self.rise(low, high) - self.by_gradient(low, high))
        return np.inf if np.isnan(lost) else lost

    def reason(self) -> str:
        """Why value and gradient of the function disagree on the path, found by bisection; empty if they do not."""
        label, all_lost = self.function.node.label, self.lost(0.0, 1.0)
        size = float(np.abs(self.function.value(self._at(np.linspace(0.0, 1.0, 9)))).max())
        if all_lost <= limits.AGREEING_GRADIENT * size:
            return ""
        if not np.isfinite(all_lost):
            return f"the gradient of {label} is NaN or infinite at some point of the path"
        low, high = 0.0, 1.0
        for turn in range(limits.JUMP_HALVINGS):
            middle = (low + high) / 2.0
            low, high = (low, middle) if self.lost(low, middle) >= self.lost(middle, high) else (middle, high)
            if turn == limits.JUMP_HALVINGS // 2:
                real, said, apart = self._slopes(low, high)
        if self.lost(low, high) > limits.JUMP_SHARE * all_lost:
            return (
                f"{label} jumps by {abs(self.rise(low, high)):.3g} at {self._place(low)}, which its gradient does "
                "not show; a function must be continuous (look for floor, where, comparisons and the like inside of it)"
            )
        if not apart:
            return ""
        return (
            f"the gradient of {label} is not that of its value: at {self._place(low)} the path rises by {real:.3g}, "
            f"where the gradient gives {said:.3g} (look for detach, no_grad and custom backward functions in it, "
            "or correct the gradient that was given)"
        )

    def _slopes(self, low: float, high: float) -> tuple[float, float, bool]:
        """A function's slope on a short interval, the slope by its gradient, and whether they differ almost everywhere.

        At a kink they differ too, but only on a small part of the interval.
        """
        edges = np.linspace(low, high, 9)
        real = np.array([self.rise(a, b) for a, b in pairwise(edges.tolist())]) / np.diff(edges)
        said = np.array([self.by_gradient(a, b, 1) for a, b in pairwise(edges.tolist())]) / np.diff(edges)
        off = np.abs(real - said) > limits.SLOPES_DIFFER * np.maximum(np.abs(real), np.abs(said))
        return float(real.mean()), float(said.mean()), bool(off.mean() > limits.MOSTLY)

    def _place(self, time: float) -> str:
        """The position as text: the values of the few inputs that move most."""
        far = np.argsort(-np.abs(self.end - self.start), kind="stable")[:3]
        here = self._at(np.array([time]))[0]
        return ", ".join(f"{self.function.names[j].strip(chr(39))} = {here[j]:.4g}" for j in far)
