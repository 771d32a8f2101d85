"""Support vector machines: kernel expansions over their support vectors."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from ...errors import CorruptModelError, UnsupportedModelError
from ...graph import Affine, Concat, Factor, KernelMachine, Node
from ..sklearn.platt import coupled_probability
from .common import affine, node_of, post, scaled
from .proto import Operator, unsupported
from .values import Numbers, Value


def support_vectors(operator: Operator, values: Sequence[Value]) -> Numbers:
    """SVMRegressor, and the decisions of SVMClassifier between each two classes: kernel expansions."""
    if operator.kind == "SVMClassifier":
        return _decisions(operator, node_of(operator, values[0]))
    if int(operator.get("one_class", 0)):
        raise UnsupportedModelError("SVMRegressor with one_class gives only a sign, which cannot be explained.")
    node = node_of(operator, values[0])
    weight = np.array(operator.get("coefficients", []), np.float64)
    rho = np.array(operator.get("rho", [0.0]), np.float64)
    count = int(operator.get("n_supports", 0))
    if not count:
        return Numbers(post(operator, affine(node, weight.reshape(1, -1), rho[:1])))
    support = np.array(operator.get("support_vectors", []), np.float64).reshape(count, node.width)
    machine = KernelMachine(node, support, weight.reshape(1, count), rho[:1], (_kernel(operator, node.width),))
    return Numbers(post(operator, machine))


def _decisions(operator: Operator, node: Node) -> Numbers:
    """The decisions between each two classes, in onnxruntime's order of outputs.

    For two classes these are the negative of the decision, and the decision. Coefficients are as in LIBSVM: for each
    support vector one for each other class, in the order of the classes.
    """
    counts = [int(v) for v in operator.get("vectors_per_class", [])]
    sigmoids = [[float(v) for v in operator.get(k) or []] for k in ("prob_a", "prob_b")]
    if len(counts) < 2 or operator.get("post_transform", "NONE") != "NONE":
        raise UnsupportedModelError(
            "SVMClassifier must have support vectors of each class, and no post_transform, to be imported. Explain the "
            "model in the library that trained it, or convert its decisions."
        )
    if any(sigmoids) and len(counts) > 2:
        raise UnsupportedModelError(
            f"SVMClassifier with probabilities of {len(counts)} classes is not imported: they come out of an iteration "
            "of many rounds; those of two classes are imported. Train with probability=False and calibrate with "
            "CalibratedClassifierCV, or convert the decisions: options={id(model): {'raw_scores': True}} in skl2onnx."
        )
    weight, rho = (np.array(operator.get(k, []), np.float64) for k in ("coefficients", "rho"))
    support = np.array(operator.get("support_vectors", []), np.float64).reshape(sum(counts), node.width)
    dual = weight.reshape(len(counts) - 1, sum(counts))
    starts = np.cumsum([0, *counts])
    pairs = list(combinations(range(len(counts)), 2))
    each = np.zeros((len(pairs), sum(counts)))
    for k, (i, j) in enumerate(pairs):
        each[k, starts[i] : starts[i + 1]] = dual[j - 1, starts[i] : starts[i + 1]]
        each[k, starts[j] : starts[j + 1]] = dual[i, starts[j] : starts[j + 1]]
    machine = KernelMachine(node, support, each, rho[: len(pairs)], (_kernel(operator, node.width),))
    if len(counts) > 2:
        return Numbers(machine)
    if any(sigmoids):
        return _probabilities(operator, machine, *sigmoids)
    return Numbers(Affine(machine, np.array([[-1.0], [1.0]]), np.zeros(2)))


def _probabilities(operator: Operator, machine: Node, slope: Sequence[float], shift: Sequence[float]) -> Numbers:
    """The probabilities of two classes, by libsvm's coupling of Platt's sigmoid, which onnxruntime repeats."""
    if len(slope) != 1 or len(shift) != 1:
        raise CorruptModelError(
            f"SVMClassifier of two classes must have one of prob_a and of prob_b; it has {len(slope)} and {len(shift)}."
        )
    second = coupled_probability(scaled(machine, -np.ones(1), np.zeros(1)), slope[0], shift[0])
    labels = tuple(operator.get("classlabels_strings") or operator.get("classlabels_ints") or ())
    both = Concat((scaled(second, -np.ones(1), np.ones(1)), second))
    return Numbers(both, labels if len(labels) == 2 else None)


def _kernel(operator: Operator, width: int) -> Factor:
    """The kernel of a support vector machine."""
    gamma, offset, degree = (float(v) for v in (*operator.get("kernel_params", []), 0.0, 0.0, 0.0)[:3])
    kind = operator.get("kernel_type", "LINEAR")
    if kind == "LINEAR":
        return Factor("linear", np.ones(width))
    if kind == "RBF":
        return Factor("gaussian", np.full(width, np.sqrt(gamma)))
    if kind == "POLY":
        return Factor("polynomial", np.full(width, gamma), offset, degree)
    if kind == "SIGMOID":
        return Factor("tanh", np.full(width, gamma), offset)
    raise unsupported(f"The kernel {kind}")
