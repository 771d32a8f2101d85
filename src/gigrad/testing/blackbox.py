"""Rows that lie in a given cell of a model's trees, for evaluating the model itself as a black box."""

from __future__ import annotations

import numpy as np

from ..errors import InputError
from ..graph import Array
from .path import Cells, Path


def representatives(path: Path, cells: Cells) -> Array:
    """For each cell a row on the same side of every split."""
    rows = path.rows(cells)
    every = np.arange(len(rows))
    above = np.full(rows.shape, -np.inf)  # values must lie above this
    up_to = np.full(rows.shape, np.inf)  # and may reach this
    for tree, sides in path.sides.items():
        numeric = (sides.column >= 0) & (tree.category_set < 0)
        for split in np.nonzero(numeric & ~path.jumping[sides.column])[0].tolist():
            j = sides.column[split]
            gone = cells.gone(sides.time[split], j, every)
            left = np.where(gone, sides.end_left[split], sides.start_left[split])
            edge = tree.threshold[split]
            up_to[:, j] = np.where(left, np.minimum(up_to[:, j], edge), up_to[:, j])
            above[:, j] = np.where(left, above[:, j], np.maximum(above[:, j], edge))
    if (above >= up_to).any():
        raise InputError("score cannot be evaluated: the crossings of two splits on one column contradict each other.")
    rows = np.where(rows <= above, np.nextafter(above, np.inf), rows)
    return np.where(rows > up_to, up_to, rows)
