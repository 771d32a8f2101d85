"""Steps that mix columns linearly, and polynomial features: smooth models read them as layers, trees as scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import UnsupportedModelError
from ...graph import Affine, Array, Concat, Node, Product, Select
from .steps import Power, Present, Step
from .table import Blend, Block, Constant, Feature, Table


def pca(transformer: Any, table: Table) -> Table:
    """Principal components, whitened if they were fitted so."""
    weight = np.asarray(transformer.components_, np.float64)
    if transformer.whiten:
        scale = np.sqrt(np.asarray(transformer.explained_variance_, np.float64))
        weight = weight / np.maximum(scale, np.finfo(np.float64).eps)[:, None]
    return _projection(transformer, weight, -weight @ transformer.mean_, table)


def truncated_svd(transformer: Any, table: Table) -> Table:
    weight = np.asarray(transformer.components_, np.float64)
    return _projection(transformer, weight, np.zeros(len(weight)), table)


def components(transformer: Any, table: Table) -> Table:
    """FastICA, random projections, neighbourhood components: the mean is subtracted, then a matrix applied."""
    matrix = transformer.components_
    weight = np.asarray(matrix.toarray() if hasattr(matrix, "toarray") else matrix, np.float64)
    mean = getattr(transformer, "mean_", None) if getattr(transformer, "whiten", None) else None
    bias = np.zeros(len(weight)) if mean is None else -weight @ np.asarray(mean, np.float64)
    return _projection(transformer, weight, bias, table)


def factor_analysis(transformer: Any, table: Table) -> Table:
    """The posterior mean of the factors."""
    loadings = np.asarray(transformer.components_, np.float64)
    scaled = loadings / transformer.noise_variance_
    weight = np.linalg.inv(np.eye(len(loadings)) + scaled @ loadings.T) @ scaled
    return _projection(transformer, weight, -weight @ transformer.mean_, table)


def linear_map(transformer: Any, table: Table) -> Table:
    """Transformers that are linear maps, which are found by transforming zero and the unit vectors.

    SparsePCA, which is a ridge regression on its components, and discriminant analysis.
    """
    size = int(transformer.n_features_in_)
    rows = np.concatenate([np.zeros((1, size)), np.eye(size), np.full((1, size), 3.0)])
    asked = np.asarray(transformer.transform(rows), np.float64)
    weight, bias = (asked[1:-1] - asked[0]).T, asked[0]
    off = np.abs(rows[-1] @ weight.T + bias - asked[-1]).max()
    if off > 1e-9 * max(1.0, float(np.abs(asked).max())):
        raise UnsupportedModelError(
            f"The step {type(transformer).__name__} must be linear to be imported; its error for other rows is "
            f"{off:.3g}. Apply it before the pipeline, so that its output columns are the variables."
        )
    return _projection(transformer, weight, bias, table)


def feature_agglomeration(transformer: Any, table: Table) -> Table:
    """The mean of the columns of each cluster."""
    if transformer.pooling_func is not np.mean:
        name = getattr(transformer.pooling_func, "__name__", "a function of yours")
        raise UnsupportedModelError(
            f"FeatureAgglomeration must pool by np.mean to be imported; this one pools by {name}. Fit it with "
            "pooling_func=np.mean, or pool before the pipeline."
        )
    member = transformer.labels_ == np.arange(transformer.n_clusters_)[:, None]
    weight = member / member.sum(axis=1, keepdims=True)
    return _projection(transformer, weight, np.zeros(len(weight)), table)


def _projection(transformer: Any, weight: Array, bias: Array, table: Table) -> Table:
    name = type(transformer).__name__
    block = Block(name, table.features, lambda source: Affine(source, weight, bias))
    return table.become([Blend(block, i) for i in range(len(weight))])


def polynomial_features(transformer: Any, table: Table) -> Table:
    """PolynomialFeatures: powers of one column stay functions of that column; products combine several."""
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
    """All products at once, factor by factor; terms with fewer factors are carried along unchanged."""
    factors = [[c for c, power in term for _ in range(power)] for term in terms]
    depth = max(len(f) for f in factors)
    one = Concat((source, Affine(source, np.zeros((1, source.width)), np.ones(1))))
    node: Node = Select(one, tuple(f[0] for f in factors))
    for level in range(1, depth):
        node = Product(node, Select(one, tuple(f[level] if level < len(f) else source.width for f in factors)))
    return node
