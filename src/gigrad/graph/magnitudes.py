"""The size of the terms that add up to a score, from which bounds on its rounding error follow."""

from __future__ import annotations

import numpy as np

from .node import Array, Input, Node, evaluate, needed


def size_of_terms(output: Node, source: Input, rows: Array) -> Array:
    """The sum of absolute values of the terms of every output, (n, width), for rows (n, p) of `source`."""
    values = evaluate((output,), {source: rows})
    sizes: dict[Node, Array] = {source: np.abs(rows)}
    for node in needed((output,), {source}):
        sizes[node] = node.magnitude(values[node], *(sizes[p] for p in node.parents))
    return sizes[output]
