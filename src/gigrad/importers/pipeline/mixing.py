"""Steps that mix columns: linear projections and polynomial features. Smooth models may follow them, trees may not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...graph import Affine, Array, Concat, Node, Product, Select
from .steps import Power, Present, Step
from .table import Blend, Block, Constant, Feature, Table


def pca(transformer: Any, table: Table) -> Table:
    weight = np.asarray(transformer.components_, np.float64)
    if transformer.whiten:
        scale = np.sqrt(np.asarray(transformer.explained_variance_, np.float64))
        weight = weight / np.maximum(scale, np.finfo(np.float64).eps)[:, None]
    return _projection("PCA", weight, -weight @ transformer.mean_, table)


def truncated_svd(transformer: Any, table: Table) -> Table:
    weight = np.asarray(transformer.components_, np.float64)
    return _projection("TruncatedSVD", weight, np.zeros(len(weight)), table)


def _projection(name: str, weight: Array, bias: Array, table: Table) -> Table:
    block = Block(name, table.features, lambda source: Affine(source, weight, bias))
    return table.become([Blend(block, i) for i in range(len(weight))])


def polynomial_features(transformer: Any, table: Table) -> Table:
    """Powers of one column stay tests on that column; products of several mix them."""
    table = table.then([Present()] * len(table), "PolynomialFeatures")
    terms = [tuple(Counter(_expanded(row)).items()) for row in transformer.powers_]
    products = [t for t in terms if len(t) > 1]
    block = Block("PolynomialFeatures", table.features, lambda source: _products(source, products))
    out: list[Feature] = []
    for term in terms:
        if not term:
            out.append(Constant(1.0))
        elif len(term) > 1:
            out.append(Blend(block, products.index(term)))
        else:
            column, exponent = term[0]
            step: Step | None = Power(exponent) if exponent > 1 else None
            out += table.take([column]).then([step], "PolynomialFeatures").features
    return table.become(out, sparse=table.sparse)


def _expanded(powers: Any) -> list[int]:
    return [column for column, power in enumerate(powers.tolist()) for _ in range(power)]


def _products(source: Node, terms: Sequence[tuple[tuple[int, int], ...]]) -> Node:
    """All products at once: factor by factor, terms that have run out of factors wait behind those that have not."""
    factors = [[c for c, power in term for _ in range(power)] for term in terms]
    depth = max(len(f) for f in factors)
    one = Concat((source, Affine(source, np.zeros((1, source.width)), np.ones(1))))
    node: Node = Select(one, tuple(f[0] for f in factors))
    for level in range(1, depth):
        node = Product(node, Select(one, tuple(f[level] if level < len(f) else source.width for f in factors)))
    return node
