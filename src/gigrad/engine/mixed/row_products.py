"""Two layers of a net multiplied into one, for the slopes that the units between them have at a row.

A path to the row passes some hundred kinks of the units below, at each of which a wide layer's values have to be known.
Most of its units have the same slope there as at the row itself: for these the two layers are one, whose values follow
from kink to kink without a product. Only units with another slope are multiplied, about half as many as those that are
not at rest. The one product of two matrices serves all paths to the row.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np

from ...graph import Affine, Array
from .. import limits

if TYPE_CHECKING:
    from .lines import LayerKinks, Lines


@dataclass(frozen=True, eq=False)
class RowProduct:
    """A layer over units with kinks, over another layer, as one layer.

    Attributes
    ----------
    below : Affine
        The layer that the units read.
    slope : (units,)
        The units' slopes at the row.
    by_unit : (source width of the layer below, width)
        The weights of both layers for these slopes.
    bias : (width,)
    """

    below: Affine
    slope: Array
    by_unit: Array
    bias: Array


@dataclass(frozen=True, eq=False)
class KeptProducts:
    """The latest few products, which threads share."""

    kept: dict[tuple[Affine, bytes], RowProduct] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)

    def of(self, node: Affine, below: Affine, slope: Array, weights: Array) -> RowProduct:
        """The product for some slopes; `weights` are those of the layer above by unit, (units, width)."""
        key = (node, slope.tobytes())
        with self.lock:
            if key not in self.kept:
                if len(self.kept) >= limits.KEPT_PRODUCTS:
                    del self.kept[next(iter(self.kept))]
                moving = np.nonzero(slope)[0]
                turned = slope[moving, None] * weights[moving]
                by_unit = below.weight[moving].T @ turned
                self.kept[key] = RowProduct(below, slope, by_unit, node.bias + below.bias[moving] @ turned)
            return self.kept[key]


def row_product(lines: Lines, node: Affine, hinges: LayerKinks, slope: Array) -> RowProduct | None:
    """The product for a layer and the one below the units that it reads, `slope` (units,) being their slopes at the row.

    None if too few paths lead to the row for it to pay, or if no units with kinks are below.
    """
    below = node.source.parents[0]
    if lines.block.references < limits.ROW_PRODUCT_PATHS or not isinstance(below, Affine):
        return None
    under = lines.hinges.get(below.source)
    if under is None or under.level + 1 != hinges.level:
        return None
    return lines.roles.row_products.of(node, below, slope, lines.roles.transposed(node))
