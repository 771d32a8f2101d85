"""The frozen result of an explanation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .graph.node import Array


@dataclass(frozen=True, eq=False)
class Explanation:
    """How much of each row's score, against its reference, each variable deserves.

    Attributes
    ----------
    values : (n, p) or (n, p, k)
        The credits. `base_values + values.sum(axis=1) + gap == predictions`.
    base_values : (n,) or (n, k)
        The reference's score (its weighted mean), or the start's for pairs.
    predictions : (n,) or (n, k)
        The row's score, as the model itself gives it.
    gap : (n,) or (n, k)
        The part of `predictions - base_values` that the numerics lost.
    error : (n,) or (n, k)
        Estimated largest error of a credit of the row: quadrature and sampled corners. 0 where the answer is exact.
    data : array or data frame
        The explained rows as given, in the model's column order.
    feature_names : tuple of str
    output_names : tuple of str
    provenance : dict
        What was explained, against what, by which versions and settings.
    """

    values: Array
    base_values: Array
    predictions: Array
    gap: Array
    error: Array
    data: Any
    feature_names: tuple[str, ...]
    output_names: tuple[str, ...]
    provenance: dict[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.values)
