"""Products of a wide layer's matrix with rows that turn slowly along a path, mostly in float32.

Neighbouring rows, such as the units of a layer at a path's kinks, are nearly alike. Every few rows one is an *anchor*,
multiplied in float64; the others are combinations of the two anchors around them and a rest, a hundredth of their
size, whose product in float32 is off by the rounding of float32 of that rest alone. By how much is measured: sums of
some columns of the product, with signs, are compared with the same sums in float64.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ... import kernels
from ...graph import Array
from .. import limits
from ..paths import Ints

if TYPE_CHECKING:
    from ..roles import ByUnit, Singles


@dataclass(frozen=True, eq=False)
class RoundedProduct:
    """Rows times a matrix.

    Attributes
    ----------
    values : (n, width)
    off : float
        The root of the sum of squares of their errors, measured.
    """

    values: Array
    off: float


def forward(rows: Array, weights: ByUnit) -> RoundedProduct:
    """The values of units, (n, units), times a layer's weights: (n, width)."""
    out = np.empty((len(rows), weights.width))
    every, squares = np.arange(weights.width), 0.0
    checked, sign = _checks(weights.width)
    columns, until = _by_last_use(rows)
    rows, double, single = rows[:, columns], weights.double[columns], weights.single[columns]
    for some, at, product in _blocks(rows, double):
        used = np.arange(until[some.start])  # units at rest on all of these rows and later ones cost nothing
        probe = double[: len(used), checked] @ sign
        share, rest, expected = kernels.split_rows(rows[some], at, used, probe)
        fine = rest @ single[: len(used)]
        squares += _join(product, at, share, fine, every, checked, sign, expected, out[some])
    return RoundedProduct(out, squares**0.5)


def backward(rows: Array, slopes: Array, weights: ByUnit) -> RoundedProduct:
    """Derivatives by a layer, (n, width), times its weights and the slopes of its units, (n, units)."""
    every, squares = np.arange(weights.width), 0.0
    columns, until = _by_last_use(slopes)
    double, single = weights.double[columns], weights.single[columns]
    found = np.empty((len(rows), len(columns)))
    for some, at, product in _blocks(rows, double.T):
        used = np.arange(until[some.start])
        checked, sign = _checks(len(used))
        probe = sign @ double[checked]
        share, rest, expected = kernels.split_rows(rows[some], at, every, probe)
        fine = rest @ single[: len(used)].T
        squares += _join(product, at, share, fine, used, checked, sign, expected, found[some])
    out = np.zeros((len(rows), len(weights.double)))
    out[:, columns] = found * slopes[:, columns]
    return RoundedProduct(out, squares**0.5)


def _by_last_use(rows: Array) -> tuple[Ints, Ints]:
    """The columns that are not 0 everywhere, those used longest first; and how many are used from each row on."""
    used = rows != 0.0
    last = len(rows) - 1 - used[::-1].argmax(axis=0)
    columns = np.nonzero(used.any(axis=0))[0]
    columns = columns[np.argsort(-last[columns], kind="stable")]
    return columns, np.searchsorted(-last[columns], -np.arange(len(rows)), side="right")


def _blocks(rows: Array, matrix: Array) -> Iterator[tuple[slice, Ints, Array]]:
    """Blocks of rows; for each its anchors, every few rows and the last of them, and the anchors' products."""
    firsts = range(0, len(rows), limits.SLOW_ROWS)
    blocks = [slice(first, min(first + limits.SLOW_ROWS, len(rows))) for first in firsts]
    step = limits.ANCHOR_ROWS
    anchors = [np.append(np.arange(0, b.stop - b.start - 1, step), b.stop - b.start - 1) for b in blocks]
    every = np.concatenate([b.start + at for b, at in zip(blocks, anchors, strict=True)])
    products = np.split(rows[every] @ matrix, np.cumsum([len(at) for at in anchors])[:-1])
    return zip(blocks, anchors, products, strict=True)


def _checks(columns: int) -> tuple[Ints, Array]:
    """Some columns whose sums are compared, and the signs that these have in them."""
    checked = np.arange(0, columns, max(columns // limits.CHECKED_SUMS, 1))
    return checked, np.where(checked * 0.6180339887 % 1.0 < 0.5, 1.0, -1.0)


def _join(
    product: Array,
    at: Ints,
    share: Array,
    fine: Singles,
    used: Ints,
    checked: Ints,
    sign: Array,
    expected: Array,
    out: Array,
) -> float:
    """Write the products of all rows, from those of the anchors and of the rests; gives their squared errors' sum."""
    squares = kernels.join_rows(product, at, share, fine, used, checked, sign, expected, out)
    return squares * len(used) / max(len(checked), 1)
