"""Random columns, rows and parts of models, for `compositions.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from forests import random_forest

import gigrad as gig
from gigrad.graph import (
    Affine,
    Array,
    Column,
    Concat,
    Elementwise,
    Factor,
    Fill,
    Graph,
    Input,
    IsMissing,
    KernelMachine,
    LogSoftmax,
    Lookup,
    Node,
    Opaque,
    PiecewiseLinear,
    PiecewisePolynomial,
    Product,
    Select,
    Shares,
    Softmax,
    Sum,
    TreeEnsemble,
    evaluate,
)

Rng = np.random.Generator


# ------------------------------------------------------------ columns and rows


def columns(rng: Rng) -> tuple[Column, ...]:
    """Two to five columns, of which some are categories and some may be missing; at least two are numbers."""
    size = int(rng.integers(2, 6))
    kinds: list[Any] = ["category" if j >= 2 and rng.random() < 0.25 else "number" for j in range(size)]
    return tuple(Column(f"x{j}", kind, missing=bool(rng.random() < 0.3)) for j, kind in enumerate(kinds))


def rows(rng: Rng, of: tuple[Column, ...], n: int) -> Array:
    """Numbers on a grid, where thresholds lie, or between; flags; categories, one of them unknown; missing values."""
    out = np.empty((n, len(of)))
    for j, column in enumerate(of):
        grid = rng.integers(0, 7, n) / 2.0
        if column.kind == "category":
            out[:, j] = rng.integers(-1, 4, n)
        else:
            out[:, j] = [grid, rng.normal(1.5, 1.0, n), rng.integers(0, 2, n)][int(rng.choice(3, p=[0.4, 0.4, 0.2]))]
        if column.missing:
            out[rng.random(n) < 0.25, j] = np.nan
    return out


def pairs(rng: Rng, of: tuple[Column, ...], n: int) -> tuple[Array, Array]:
    """Starts and ends; some pairs are close, some share values."""
    starts, ends = rows(rng, of, n), rows(rng, of, n)
    for i in range(n):
        how = rng.random()
        if how < 0.2:  # close: the numbers have moved a little, the rest not at all
            moved = starts[i] + 10.0 ** rng.integers(-6, 0) * rng.normal(size=len(of))
            ends[i] = np.where([c.kind == "number" for c in of], moved, starts[i])
        elif how < 0.5:
            same = rng.random(len(of)) < 0.4
            ends[i, same] = starts[i, same]
    return starts, ends


# ------------------------------------------------------------ the parts


def numbers(rng: Rng, source: Input, of: tuple[Column, ...]) -> Node:
    """What smooth parts read: numbers with missing values filled in, categories looked up, indicators."""
    plain = [j for j, c in enumerate(of) if c.kind == "number"]
    kept = sorted(rng.choice(plain, int(rng.integers(min(2, len(plain)), len(plain) + 1)), replace=False).tolist())
    chosen = Select(source, tuple(kept))
    missing = any(of[j].missing for j in kept)
    parts: list[Node] = [Fill(chosen, rng.normal(1.0, 1.0, len(kept))) if missing else chosen]
    if missing and rng.random() < 0.5:
        parts.append(IsMissing(chosen))
    for j, column in enumerate(of):
        if column.kind == "category" and rng.random() < 0.7:
            parts.append(Lookup(source, j, rng.normal(size=(4, 2)), rng.normal(size=2), rng.normal(size=2)))
    return parts[0] if len(parts) == 1 else Concat(tuple(parts))


def affine(rng: Rng, source: Node, width: int, size: float = 1.0) -> Affine:
    weight = size * rng.normal(size=(width, source.width)) / np.sqrt(source.width)
    return Affine(source, weight, 0.5 * size * rng.normal(size=width))


ACTIVATIONS = ("relu", "leaky_relu", "elu", "tanh", "sigmoid", "softplus", "gelu", "gelu_tanh", "silu", "abs")


def elementwise(source: Node, name: str) -> Elementwise:
    return Elementwise(source, name, {"leaky_relu": 0.1, "elu": 1.0}.get(name, 0.0))


def net(rng: Rng, source: Node) -> Node:
    for _ in range(int(rng.integers(1, 3))):
        source = elementwise(affine(rng, source, int(rng.integers(2, 7)), 1.5), str(rng.choice(ACTIVATIONS)))
    return affine(rng, source, 1)


def line(rng: Rng, source: Node) -> Node:
    return affine(rng, source, 1)


def kernel(rng: Rng, source: Node) -> Node:
    width, count = source.width, int(rng.integers(3, 12))
    profile = str(rng.choice(["gaussian", "exponential", "matern32", "matern52", "rational", "polynomial", "tanh"]))
    scale = np.full(width, 10.0 ** rng.uniform(-1.0, 1.0 if profile in ("gaussian", "rational") else 0.3))
    if profile in ("polynomial", "tanh"):
        scale = np.full(width, 0.2)
    factors = [Factor(profile, scale, 0.5, {"polynomial": 3.0, "rational": 1.5}.get(profile, 0.0))]
    if rng.random() < 0.2:
        factors.append(Factor("gaussian", np.full(width, 0.5)))
    support = rng.normal(1.5, 1.0, (count, width))
    return KernelMachine(source, support, rng.normal(size=(1, count)), rng.normal(size=1), tuple(factors))


def spline(rng: Rng, source: Node) -> Node:
    """Curves that are continuous, with or without kinks, of one number."""
    one = affine(rng, source, 1) if rng.random() < 0.5 else Select(source, (int(rng.integers(source.width)),))
    breaks = np.sort(rng.choice(np.arange(-2.0, 6.0, 0.5), int(rng.integers(2, 5)), replace=False))
    if rng.random() < 0.5:
        return PiecewiseLinear(one, breaks, rng.normal(size=len(breaks)))
    coefficients = [np.array([rng.normal(), 0.3 * rng.normal(), 0.0, 0.0])]
    for i, at in enumerate(breaks):
        begin = breaks[max(i - 1, 0)]
        value = np.polyval(coefficients[-1][::-1], at - begin)
        coefficients.append(np.array([value, *(0.3 * rng.normal(size=3))]))
    coefficients[-1][2:] = 0.0
    return PiecewisePolynomial(one, breaks, np.concatenate(coefficients)[:, None])


def opaque(rng: Rng, source: Node) -> Node:
    """A wave of what it reads, known by value and gradient alone."""
    weight, shift = rng.normal(size=source.width) / np.sqrt(source.width), rng.normal()

    def value(x: Array) -> Array:
        return np.sin(x @ weight + shift)[:, None]

    def gradient(x: Array, cotangent: Array) -> Array:
        return cotangent * np.cos(x @ weight + shift)[:, None] * weight

    return Opaque(source, 1, value, gradient)


def product(rng: Rng, source: Node) -> Node:
    return Product(affine(rng, source, 1), elementwise(affine(rng, source, 1), str(rng.choice(ACTIVATIONS))))


def classes(rng: Rng, source: Node) -> Node:
    several = affine(rng, source, 3, 1.5)
    if rng.random() < 0.3:
        positive = Elementwise(several, "exp")
        return Select(Shares(positive, affine(rng, Elementwise(Select(several, (0,)), "softplus"), 1, 0.0)), (1,))
    return Select(Softmax(several) if rng.random() < 0.6 else LogSoftmax(several), (int(rng.integers(3)),))


def scalar(rng: Rng, source: Node) -> Node:
    """The functions of one number that need a positive one, or one between 0 and 1."""
    name = str(rng.choice(["log", "log1p", "sqrt", "reciprocal", "box_cox", "square", "signed_square", "yeo_johnson",
                           "expm1", "logit", "normal_score"]))  # fmt: skip
    inner = affine(rng, source, 1)
    if name in ("logit", "normal_score"):
        inside = Affine(Elementwise(inner, "sigmoid"), np.array([[0.9]]), np.array([0.05]))
        return Elementwise(inside, name)
    if name in ("square", "signed_square", "yeo_johnson", "expm1"):
        return Elementwise(inner, name, 0.4)
    positive = Affine(Elementwise(inner, "softplus"), np.eye(1), np.array([0.1]))
    return Elementwise(positive, name, 0.4)


SMOOTH: tuple[Callable[[Rng, Node], Node], ...] = (
    net, net, net, line, kernel, spline, opaque, product, classes, scalar,
)  # fmt: skip


def trees(rng: Rng, source: Input, of: tuple[Column, ...]) -> TreeEnsemble:
    return random_forest(rng, of, source, trees=int(rng.integers(1, 5)), depth=int(rng.integers(1, 4)))


def over_scores(rng: Rng, source: Node) -> Node:
    """Trees that read what another part gives."""
    read = tuple(Column(f"s{j}", missing=False) for j in range(source.width))
    return random_forest(rng, read, source, trees=2, depth=2)


def link(rng: Rng, node: Node, sample: Array, source: Input) -> Node:
    """A function of one score: a probability, a count, a rank."""
    name = str(rng.choice(["sigmoid", "softplus", "exp", "tanh", "rank", "isotonic", "none"]))
    if name == "none":
        return node
    if name == "exp":
        return Elementwise(Affine(node, 0.3 * np.eye(1), np.zeros(1)), "exp")
    if name in ("rank", "isotonic"):
        scores = evaluate((node,), {source: sample})[node][:, 0]
        if len(np.unique(np.round(scores, 6))) < 5:
            return node
        rank = gig.SmoothedECDF.fit(scores, knots=int(rng.integers(4, 12)))
        height = rank.u if name == "rank" else np.round(rank.u * 3) / 3  # flat pieces and steep ones
        return PiecewiseLinear(node, rank.x, np.asarray(height))
    return Elementwise(node, name)


def joined(rng: Rng, parts: list[Node]) -> Node:
    """Several scores made into one: a sum, a product, a weighted mean, a net or trees on top."""
    how = rng.random()
    if len(parts) == 1:
        return parts[0]
    if how < 0.3:
        return Sum(tuple(parts))
    if how < 0.45:
        return Product(parts[0], Sum(tuple(parts[1:])) if len(parts) > 2 else parts[1])
    every = Concat(tuple(parts))
    if how < 0.6:
        return affine(rng, every, 1)
    return net(rng, every)


def model(rng: Rng, of: tuple[Column, ...], source: Input) -> Node:
    """A model over rows of columns `of`; any further columns of `source` are not read."""
    sample = np.zeros((60, source.width))
    sample[:, : len(of)] = rows(rng, of, 60)

    def part(depth: int) -> Node:
        draw = rng.random()
        if draw < 0.35:
            node: Node = trees(rng, source, of)
        else:
            node = SMOOTH[int(rng.integers(len(SMOOTH)))](rng, numbers(rng, source, of))
        if depth and rng.random() < 0.5:
            node = joined(rng, [node, *(part(depth - 1) for _ in range(int(rng.integers(1, 3))))])
        return link(rng, node, sample, source) if rng.random() < 0.4 else node

    node = part(2)
    if rng.random() < 0.05:
        node = over_scores(rng, node)
    return link(rng, node, sample, source)


def graph_of(of: tuple[Column, ...], source: Input, node: Node) -> Graph:
    return Graph(of, source, node, node, ("score",))
