"""Products of a wide layer's matrix with rows that turn slowly along a path, mostly in float32.

Neighbouring rows, such as the units of a layer at a path's kinks, are nearly alike. Every few rows one is an *anchor*,
multiplied in float64; the others are combinations of the two anchors around them and a rest, a thousandth of their
size, whose product in float32 is off by the rounding of float32 of that rest alone. How far, is measured: sums of
some columns of the product are compared with the same sums in float64.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...graph import Array
from .. import limits
from ..paths import Ints


@dataclass(frozen=True, eq=False)
class RoundedProduct:
    """Rows times a matrix, (n, width).

    Attributes
    ----------
    values : (n, width)
    anchors : (m,)
        The rows that were multiplied in float64.
    off : float
        The root of the sum of squares of the errors of all values, measured.
    """

    values: Array
    anchors: Ints
    off: float


def anchors(offsets: Ints) -> Ints:
    """Every few rows of each leg, whose rows are offsets[i] .. offsets[i + 1] - 1, and its last."""
    parts = [
        np.append(np.arange(first, last - 1, limits.ANCHOR_ROWS), last - 1)
        for first, last in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)
    ]
    return np.concatenate(parts)


def forward(rows: Array, offsets: Ints, by_unit: Array, single: NDArray[np.float32]) -> RoundedProduct:
    """Units `rows` (n, units) times the weights by unit, (units, width), and their float32 copy."""
    used = np.nonzero(rows.any(axis=0))[0]
    out, at = np.arange(by_unit.shape[1]), anchors(offsets)
    checked, sign = _checks(len(out))
    probe = by_unit[np.ix_(used, checked)] @ sign
    share, rest, expected = kernels.split_rows(rows, at, used, probe)
    fine = rest @ single[used]
    return _joined(rows[at] @ by_unit, at, share, fine, out, checked, sign, expected)


def backward(
    rows: Array, offsets: Ints, by_unit: Array, single: NDArray[np.float32], used: Ints
) -> RoundedProduct:
    """Derivatives `rows` (n, width) by a layer, times its weights: those by the units `used`, 0 for the others."""
    at = anchors(offsets)
    checked, sign = _checks(len(used))
    probe = sign @ by_unit[used[checked]]
    share, rest, expected = kernels.split_rows(rows, at, np.arange(rows.shape[1]), probe)
    fine = rest @ single[used].T
    return _joined(rows[at] @ by_unit.T, at, share, fine, used, checked, sign, expected)


def _checks(columns: int) -> tuple[Ints, Array]:
    """Some columns whose sums are compared, and the signs that these have in them."""
    checked = np.arange(0, columns, max(columns // limits.CHECKED_SUMS, 1))
    return checked, np.random.default_rng(0).choice([-1.0, 1.0], len(checked))


def _joined(
    product: Array,
    at: Ints,
    share: Array,
    fine: NDArray[np.float32],
    used: Ints,
    checked: Ints,
    sign: Array,
    expected: Array,
) -> RoundedProduct:
    """The products of all rows, from those of the anchors and of the rests."""
    values, squares = kernels.join_rows(product, at, share, fine, used, checked, sign, expected)
    return RoundedProduct(values, at, float((squares * len(used) / max(len(checked), 1)) ** 0.5))
