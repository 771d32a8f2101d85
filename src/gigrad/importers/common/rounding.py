"""Bounds on the rounding of a smooth model in float64: how far a witness may differ from the graph.

A sum of n rounded products has an error of about sqrt(n) units of the sum of their absolute values; activations with a
slope of at most about 1 do not amplify an error. So the sum of absolute values, propagated through the layers, is the
scale of rounding errors, for any order in which a library adds up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._io.tables import Rows
from ...graph import (
    Affine,
    Array,
    Input,
    KernelMachine,
    Node,
    Witness,
    evaluate,
    topological,
)
from ...graph.kernel_machine import PROFILES
from ...graph.witness import Predict
from .links import DOUBLE

Layer = tuple[Array, Array]  # weight (out, in), bias (out,)


def sum_units(terms: int) -> float:
    """The error of a sum of that many terms, relative to the sum of their absolute values."""
    return DOUBLE * (16.0 + 4.0 * float(np.sqrt(terms)))


@dataclass(frozen=True, eq=False)
class LayerScale:
    """The sum of absolute values, propagated through linear layers with activations of slope at most about 1.

    Attributes
    ----------
    layers : tuple of (weight, bias)
    squared : int
        The layer whose outputs are squared, which doubles a relative error; -1 for none.
    exponent : (Input, Node) or None
        For a model that ends in an exponential: its input, and the node of the exponent. An absolute error of the
        exponent is a relative error of the result.
    """

    layers: tuple[Layer, ...]
    squared: int = -1
    exponent: tuple[Input, Node] | None = None

    def __call__(self, rows: Rows) -> Array:
        size = np.abs(rows.matrix)
        for i, (weight, bias) in enumerate(self.layers):
            size = size @ np.abs(weight).T + np.abs(bias)
            if i == self.squared:
                size = 2.0 * size * size
        if self.exponent is None:
            return size
        source, node = self.exponent
        return np.asarray((1.0 + size) * np.exp(evaluate((node,), {source: rows.matrix})[node]))

    @property
    def units(self) -> float:
        return sum(sum_units(weight.shape[1]) for weight, _ in self.layers)


@dataclass(frozen=True, eq=False)
class KernelScale:
    """The scale for a sum of kernel expansions, where distances may be computed as differences of larger squares."""

    machines: tuple[KernelMachine, ...]

    def __call__(self, rows: Rows) -> Array:
        return sum((self._one(m, np.abs(rows.matrix)) for m in self.machines), np.zeros((len(rows), 1)))

    def _one(self, machine: KernelMachine, x: Array) -> Array:
        """The rounding scale of a kernel machine for each row: the sizes that may cancel in it."""
        reach = np.abs(machine.support).max(axis=0)
        size, worse = np.ones(len(x)), np.ones(len(x))
        for factor in machine.factors:
            if PROFILES[factor.profile].radial:
                worse += ((x**2 + reach**2) * factor.scale**2).sum(axis=1)
                continue
            product = abs(factor.offset) + (x * np.abs(factor.scale) * reach).sum(axis=1)
            degree = factor.parameter if factor.profile == "polynomial" else 1.0
            size *= 1.0 if factor.profile == "tanh" else product**degree
            worse += product if factor.profile == "tanh" else degree
        return np.asarray(np.outer(size * worse, np.abs(machine.weight).sum(axis=1)) + np.abs(machine.bias))

    @property
    def units(self) -> float:
        return max(sum_units(sum(m.support.shape)) for m in self.machines)


def held(
    node: Node, predict: Predict, label: str, scale: LayerScale | KernelScale, exact: Predict | None = None
) -> Witness:
    """A witness of `node` whose tolerance is the rounding of float64 arithmetic at that scale."""
    return Witness(node, predict, label, rtol=scale.units, atol=16.0 * DOUBLE, scale=scale, exact=exact)


def layers_of(weights: Sequence[Any], biases: Sequence[Any]) -> tuple[Layer, ...]:
    """Layers as float64 arrays; weights are (out, in)."""
    return tuple(
        (np.asarray(w, np.float64), np.asarray(b, np.float64).ravel()) for w, b in zip(weights, biases, strict=True)
    )


@dataclass(frozen=True, eq=False)
class NodeScale:
    """The scale for any graph of nodes, to first order: each propagates the errors of its sources by its slope."""

    source: Input
    node: Node

    def __call__(self, rows: Rows) -> Array:
        order = topological(self.node)
        values = evaluate((self.node,), {self.source: rows.matrix})
        sizes: dict[Node, Array] = {self.source: np.abs(rows.matrix)}
        for node in order:
            if node is not self.source:
                inputs = [values[p] for p in node.parents]
                sizes[node] = node.error_scale(values[node], inputs, [sizes[p] for p in node.parents])
        return sizes[self.node]

    @property
    def units(self) -> float:
        """The error of the sums of all linear layers, relative to this scale, in float64 arithmetic."""
        layers = (n for n in topological(self.node) if isinstance(n, Affine))
        return sum_units(1) + sum(sum_units(n.weight.shape[1]) for n in layers)
