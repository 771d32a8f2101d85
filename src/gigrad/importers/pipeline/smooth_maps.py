"""Steps that map columns smoothly to others: kernel approximations, distances to centres, rows scaled to length one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import UnsupportedModelError
from ...graph import Affine, Array, Concat, Elementwise, KernelMachine, Node, Product, UnitRows
from ..sklearn.kernel import factor_of
from .table import Blend, Block, Table


def _mapped(transformer: Any, table: Table, width: int, build: Callable[[Node], Node]) -> Table:
    block = Block(type(transformer).__name__, table.features, build)
    return table.become([Blend(block, i) for i in range(width)])


# ---------------------------------------------------------------- random features


def rbf_sampler(transformer: Any, table: Table) -> Table:
    """RBFSampler: cosines of random projections."""
    build = _cosines(transformer)
    return _mapped(transformer, table, len(transformer.random_offset_), build)


def skewed_chi2_sampler(transformer: Any, table: Table) -> Table:
    """SkewedChi2Sampler: cosines of random projections of the logarithms of the columns."""
    shift, inner = float(transformer.skewedness), _cosines(transformer)

    def build(source: Node) -> Node:
        size = source.width
        return inner(Elementwise(Affine(source, np.eye(size), np.full(size, shift)), "log"))

    return _mapped(transformer, table, len(transformer.random_offset_), build)


def _cosines(transformer: Any) -> Callable[[Node], Node]:
    """Random Fourier features: scaled cosines of affine functions."""
    weight = np.asarray(transformer.random_weights_, np.float64).T
    offset = np.asarray(transformer.random_offset_, np.float64)
    size = np.sqrt(2.0 / len(offset)) * np.eye(len(offset))
    return lambda source: Affine(Elementwise(Affine(source, weight, offset), "cos"), size, np.zeros(len(offset)))


# ---------------------------------------------------------------- kernels


def nystroem(transformer: Any, table: Table) -> Table:
    """Nystroem: the kernel with some rows, times a matrix."""
    factor = _factor(transformer, transformer.components_)
    support, weight = (np.asarray(v, np.float64) for v in (transformer.components_, transformer.normalization_))
    bias = np.zeros(len(weight))
    return _mapped(
        transformer, table, len(weight), lambda source: KernelMachine(source, support, weight, bias, (factor,))
    )


def kernel_pca(transformer: Any, table: Table) -> Table:
    """KernelPCA: the kernel with all training rows, centred, on the components whose variance is not zero."""
    support = np.asarray(transformer.X_fit_, np.float64)
    factor = _factor(transformer, support)
    values, vectors = (np.asarray(v, np.float64) for v in (transformer.eigenvalues_, transformer.eigenvectors_))
    with np.errstate(divide="ignore", invalid="ignore"):
        scaled = np.where(values > 0, vectors / np.sqrt(np.where(values > 0, values, 1.0)), 0.0)
    centre = transformer._centerer
    # centring: subtract the mean of each row and the means of the training rows, and add the overall mean
    weight = scaled.T - scaled.sum(axis=0)[:, None] / len(support)
    bias = (centre.K_fit_all_ - centre.K_fit_rows_) @ scaled
    return _mapped(
        transformer, table, len(weight), lambda source: KernelMachine(source, support, weight, bias, (factor,))
    )


def _factor(transformer: Any, support: Any) -> Any:
    """The kernel of a Nystroem transformer or KernelPCA, for rows like those of `support`."""
    width = np.asarray(support).shape[1]
    gamma = getattr(transformer, "gamma_", transformer.gamma)
    degree, offset = transformer.degree, transformer.coef0
    return factor_of(
        transformer, transformer.kernel, width, 1.0 / width if gamma is None else float(gamma),
        3.0 if degree is None else degree, 1.0 if offset is None else offset,
    )  # fmt: skip


def rbm(transformer: Any, table: Table) -> Table:
    """BernoulliRBM: the probabilities of its hidden units."""
    weight = np.asarray(transformer.components_, np.float64)
    bias = np.asarray(transformer.intercept_hidden_, np.float64)
    return _mapped(transformer, table, len(weight), lambda source: Elementwise(Affine(source, weight, bias), "sigmoid"))


# ---------------------------------------------------------------- distances


def k_means(transformer: Any, table: Table) -> Table:
    """KMeans, MiniBatchKMeans and BisectingKMeans: distances to the centres."""
    return _distances(transformer, transformer.cluster_centers_, table)


def birch(transformer: Any, table: Table) -> Table:
    """Birch: distances to the centres of its subclusters."""
    return _distances(transformer, transformer.subcluster_centers_, table)


def _distances(transformer: Any, centres: Any, table: Table) -> Table:
    """The distances of rows from fitted centres."""
    points = np.asarray(centres, np.float64)
    count, size = points.shape
    each = np.tile(np.eye(size), (count, 1))
    total: Array = np.kron(np.eye(count), np.ones((1, size))).astype(np.float64)

    def build(source: Node) -> Node:
        squares = Elementwise(Affine(source, each, -points.ravel()), "square")
        return Elementwise(Affine(squares, total, np.zeros(count)), "sqrt")

    return _mapped(transformer, table, count, build)


# ---------------------------------------------------------------- rows scaled to length one


def normalizer(transformer: Any, table: Table) -> Table:
    """Normalizer: each row divided by its norm."""
    return _normalized(transformer, transformer.norm, np.ones(len(table)), table)


def tfidf(transformer: Any, table: Table) -> Table:
    """TfidfTransformer on dense counts: counts times the weights of their words, divided by the norm of the row."""
    if transformer.sublinear_tf:
        raise UnsupportedModelError(
            "TfidfTransformer(sublinear_tf=True) jumps where a count leaves zero and takes logarithms of all others, "
            "which is not supported. Use sublinear_tf=False, or apply it before the pipeline."
        )
    weight = np.asarray(transformer.idf_, np.float64) if transformer.use_idf else np.ones(len(table))
    return _normalized(transformer, transformer.norm, weight, table)


def _normalized(transformer: Any, norm: str | None, weight: Array, table: Table) -> Table:
    """Rows divided by their norm, after columns were weighted."""
    if norm == "max":
        raise UnsupportedModelError(
            f"{type(transformer).__name__}(norm='max') divides by the largest of several columns, with kinks where "
            "two of them are equal; norm='l1' and norm='l2' are imported."
        )
    size, zero = np.diag(weight), np.zeros(len(table))

    def build(source: Node) -> Node:
        scaled = source if (weight == 1.0).all() else Affine(source, size, zero)
        return scaled if norm is None else UnitRows(scaled, norm)

    return _mapped(transformer, table, len(table), build)


# ---------------------------------------------------------------- additive chi-squared features


def additive_chi2(transformer: Any, table: Table) -> Table:
    """AdditiveChi2Sampler: of each column its root, and cosines and sines of its logarithm times that root."""
    interval = transformer.sample_interval or {1: 0.8, 2: 0.5, 3: 0.4}[transformer.sample_steps]
    # first the roots of all columns, then for each further sample the cosines of all columns and the sines of all
    parts: list[tuple[float, float, float]] = [(float(np.sqrt(interval)), 0.0, 0.0)]
    for step in range(1, int(transformer.sample_steps)):
        size = float(np.sqrt(2.0 * interval / np.cosh(np.pi * step * interval)))
        parts += [(size, step * interval, 0.0), (size, step * interval, -0.5 * np.pi)]

    def build(source: Node) -> Node:
        return Concat(tuple(_wave(source, *part) for part in parts))

    return _mapped(transformer, table, len(parts) * len(table), build)


def _wave(source: Node, size: float, rate: float, phase: float) -> Node:
    """`size * sqrt(x) * cos(rate * log(x) + phase)`, zero where x is."""
    each, none = np.eye(source.width), np.zeros(source.width)
    root = Affine(Elementwise(source, "sqrt_or_zero"), size * each, none)
    if rate == 0.0:
        return root
    bent = Affine(Elementwise(source, "log_or_zero"), rate * each, np.full(source.width, phase))
    return Product(root, Elementwise(bent, "cos"))
