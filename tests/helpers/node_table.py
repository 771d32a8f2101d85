"""One row for every kind of smooth node: the table of the tests of nodes and of portable files."""

from __future__ import annotations

import numpy as np

from gigrad.graph import (
    Affine,
    ChainedFill,
    Concat,
    Elementwise,
    Factor,
    Fill,
    KernelMachine,
    LogSoftmax,
    Node,
    Normalized,
    PiecewiseLinear,
    PiecewisePolynomial,
    Product,
    Select,
    Shares,
    Smooth,
    Softmax,
    Sum,
    Switch,
    UnitRows,
    WeightedMedian,
)
from gigrad.graph.kernel_machine import PROFILES

SCALE = np.array([0.5, 1.0, 1.5])


def smooth_nodes(x: Node, y: Node) -> dict[str, Smooth]:
    """Nodes of every kind over two nodes of three columns each."""
    rng = np.random.default_rng(0)
    support = rng.normal(size=(7, 3))

    def kernel(*factors: Factor) -> KernelMachine:
        return KernelMachine(x, support, rng.normal(size=(2, 7)), np.array([0.1, 0.2]), factors)

    return {
        "affine": Affine(x, rng.normal(size=(4, 3)), rng.normal(size=4)),
        "leaky_relu": Elementwise(x, "leaky_relu", 0.1),
        "piecewise": PiecewiseLinear(x, np.array([-1.0, 0.2, 1.0]), np.array([0.0, 2.0, 1.0])),
        "polynomial": PiecewisePolynomial(Select(x, (0,)), np.array([-1.0, 1.0]), rng.normal(size=(12, 2))),
        "softmax": Softmax(x),
        "log_softmax": LogSoftmax(x),
        "shares": Shares(Softmax(x), Affine(y, np.zeros((1, 3)), np.ones(1))),
        "layer_norm": Normalized(x, True, 1e-5),
        "rms_norm": Normalized(x, False, 1e-7),
        "l1_rows": UnitRows(x, "l1"),
        "l2_rows": UnitRows(x, "l2"),
        "median": WeightedMedian(x, np.array([0.5, 0.2, 0.4])),
        "chained_fill": ChainedFill(x, np.zeros(3), np.array([2]), np.array([[0.5, -1.0, 0.0]]), np.array([0.3])),
        "sum": Sum((x, y, x)),
        "product": Product(x, y),
        "product_by_a_column": Product(x, Select(y, (0,))),
        "product_of_a_column": Product(Select(x, (1,)), y),
        "concat": Concat((x, y)),
        "select_twice": Select(x, (2, 0, 2)),
        "fill": Fill(x, np.zeros(3)),
        "switch": Switch(Select(x, (0,)), (x, y)),
        "constant_kernel": kernel(),
        "product_of_kernels": kernel(
            Factor("gaussian", SCALE), Factor("linear", SCALE, 2.0), Factor("matern52", SCALE)
        ),
    } | {f"kernel_{name}": kernel(Factor(name, SCALE, 0.3, 3.0)) for name in PROFILES}
