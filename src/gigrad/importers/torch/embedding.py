"""nn.Embedding: which columns of a module are looked up in a table, and a stack that begins with one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import UnsupportedModelError
from ...graph import Column, Concat, Lookup, Node
from ..common.codes import coded
from .copy import is_plain


def columns_looked_up(module: Any, width: int) -> dict[int, int]:
    """Column -> the number of codes, for columns that reach an nn.Embedding of the module as they are.

    The module is asked for a row of zeros, and for one with a 1 in each column; what its embeddings are asked for tells
    the columns they read. A column that reaches one in another way (shifted, or made of several) is left out.
    """
    import torch

    tables = [m for m in module.modules() if isinstance(m, (torch.nn.Embedding, torch.nn.EmbeddingBag))]
    if not tables:
        return {}
    asked: list[tuple[Any, Any]] = []
    handles = [t.register_forward_pre_hook(lambda table, given: asked.append((table, given[0]))) for t in tables]
    rows = torch.cat([torch.zeros((1, width)), torch.eye(width)]).double()
    try:
        with torch.no_grad():
            module(rows)
    except (RuntimeError, IndexError, ValueError):  # what is asked when the model is explained will say why
        return {}
    finally:
        for handle in handles:
            handle.remove()
    found: dict[int, int] = {}
    others: set[int] = set()
    for table, codes in asked:
        if len(codes) != len(rows):
            continue
        codes = codes.reshape(len(rows), -1)
        for at_zero, at_one in zip(codes[0].tolist(), (codes[1:] - codes[0]).T.tolist(), strict=True):
            read = [j for j, change in enumerate(at_one) if change]
            if len(read) == 1 and at_one[read[0]] == 1 and at_zero == 0:
                found[read[0]] = min(found.get(read[0], table.num_embeddings), table.num_embeddings)
            else:
                others.update(read)
    return {j: size for j, size in found.items() if j not in others}


def with_looked_up(module: Any, columns: Sequence[Column]) -> tuple[Column, ...]:
    """The columns, those that are looked up in a table as categories; what the caller said of one holds."""
    sizes = columns_looked_up(module, len(columns))
    return tuple(coded(c, range(sizes[j])) if j in sizes and c.kind == "number" else c for j, c in enumerate(columns))


# ---------------------------------------------------------------- nn.Embedding first in an nn.Sequential


def begins_with_table(layers: Sequence[Any]) -> bool:
    """Whether a stack of layers begins with an nn.Embedding, so that it reads codes alone."""
    import torch

    return bool(layers) and isinstance(layers[0], torch.nn.Embedding)


def stacked_width(layers: Sequence[Any]) -> int:
    """How many columns of codes a stack reads, from the first linear layer behind its nn.Embedding."""
    import torch

    size = next((layer.in_features for layer in layers if isinstance(layer, torch.nn.Linear)), 0)
    if not size or size % layers[0].embedding_dim:
        raise UnsupportedModelError(
            "How many columns a Sequential that begins with nn.Embedding reads cannot be told from its layers; say so: "
            'gigrad.function(module, "autograd", columns=...), with their number or names.'
        )
    return int(size // layers[0].embedding_dim)


def looked_up(source: Node, layers: Sequence[Any]) -> tuple[Node, list[Any]]:
    """The node of an nn.Embedding and of the nn.Flatten behind it, and the layers that are left."""
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
