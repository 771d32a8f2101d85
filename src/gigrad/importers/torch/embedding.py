"""nn.Embedding: which columns of a module an embedding reads, and stacks that begin with one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import UnsupportedModelError
from ...graph import Column, Concat, Lookup, Node
from ..common.codes import coded
from .copy import is_plain


def columns_looked_up(module: Any, width: int) -> dict[int, int]:
    """Column -> the number of codes, for columns that an nn.Embedding of the module reads directly.

    The module is called on a row of zeros, and on one with a 1 in each column; the inputs of its embeddings show which
    columns they read. A column that is transformed first (shifted, or combined with others) is left out.
    """
    import torch

    tables = [m for m in module.modules() if isinstance(m, (torch.nn.Embedding, torch.nn.EmbeddingBag))]
    if not tables:
        return {}
    lookups: list[tuple[Any, Any]] = []
    handles = [t.register_forward_pre_hook(lambda table, given: lookups.append((table, given[0]))) for t in tables]
    rows = torch.cat([torch.zeros((1, width)), torch.eye(width)]).double()
    try:
        with torch.no_grad():
            module(rows)
    except (RuntimeError, IndexError, ValueError):  # the error is raised when the model is explained
        return {}
    finally:
        for handle in handles:
            handle.remove()
    return columns_looked_up_in([(table.num_embeddings, codes) for table, codes in lookups], width)


def columns_looked_up_in(lookups: Sequence[tuple[int, Any]], width: int) -> dict[int, int]:
    """Column -> the number of codes, from the lookups in tables of given sizes.

    The rows were one of zeros, and one with a 1 in each column.
    """
    found: dict[int, int] = {}
    others: set[int] = set()
    for size, codes in lookups:
        if len(codes) != width + 1:
            continue
        codes = codes.reshape(width + 1, -1)
        for at_zero, at_one in zip(codes[0].tolist(), (codes[1:] - codes[0]).T.tolist(), strict=True):
            read = [j for j, change in enumerate(at_one) if change]
            if len(read) == 1 and at_one[read[0]] == 1 and at_zero == 0:
                found[read[0]] = min(found.get(read[0], size), size)
            else:
                others.update(read)
    return {j: size for j, size in found.items() if j not in others}


def with_looked_up(module: Any, columns: Sequence[Column]) -> tuple[Column, ...]:
    """The columns, with those that an embedding reads as categories; columns declared by the caller are kept."""
    sizes = columns_looked_up(module, len(columns))
    return tuple(coded(c, range(sizes[j])) if j in sizes and c.kind == "number" else c for j, c in enumerate(columns))


# ---------------------------------------------------------------- nn.Embedding first in an nn.Sequential


def begins_with_table(layers: Sequence[Any]) -> bool:
    """Whether a stack of layers begins with an nn.Embedding, so that it reads codes alone."""
    import torch

    return bool(layers) and isinstance(layers[0], torch.nn.Embedding)


def stacked_width(layers: Sequence[Any]) -> int:
    """The number of columns of codes that a stack reads, from the first linear layer after its nn.Embedding."""
    import torch

    size = next((layer.in_features for layer in layers if isinstance(layer, torch.nn.Linear)), 0)
    if not size or size % layers[0].embedding_dim:
        raise UnsupportedModelError(
            "The number of columns of a Sequential that begins with nn.Embedding cannot be inferred here; give it: "
            'gigrad.function(module, "autograd", columns=...), with their number or names.'
        )
    return int(size // layers[0].embedding_dim)


def looked_up(source: Node, layers: Sequence[Any]) -> tuple[Node, list[Any]]:
    """The node of an nn.Embedding and of the nn.Flatten after it, and the remaining layers."""
    import torch

    table, *others = layers
    while others and type(others[0]) in (torch.nn.Identity, torch.nn.Dropout) and is_plain(others[0]):
        others = others[1:]
    flattens = bool(others) and type(others[0]) is torch.nn.Flatten and others[0].start_dim == 1
    plain = type(table) is torch.nn.Embedding and table.max_norm is None and is_plain(table)
    if not flattens or not plain or not is_plain(others[0]):
        raise UnsupportedModelError(
            "A Sequential may begin with nn.Embedding (without max_norm or hooks) if nn.Flatten() follows it; this one "
            "does not. Write it as a module that reads its columns as x[:, j].long()."
        )
    weight = table.weight.numpy()
    nothing = np.full(weight.shape[1], np.nan)
    parts = tuple(Lookup(source, j, weight, nothing, nothing) for j in range(source.width))
    return (parts[0] if len(parts) == 1 else Concat(parts)), others[1:]
