"""scikit-learn's kernel machines: support vector machines, kernel ridge, the mean of a Gaussian process."""

from __future__ import annotations

import warnings
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from ...errors import NotFittedError, UnsupportedModelError
from ...graph import Affine, Array, Factor, Graph, Input, KernelMachine, Node, Sum
from ..common.estimator import OwnPrediction, estimator_graph, label_of, require_fitted
from ..common.links import class_left_out, class_outputs, plain_outputs
from ..common.rounding import KernelScale, held
from ..common.votes import counted
from .platt import coupled_probability

_PLATT = (
    "libsvm computes the probabilities of an SVC(probability=True) for three or more classes by an iteration over all "
    "pairs of them that stops with an error of up to 0.005, after a number of rounds that differs from row to row, so "
    "that they jump where no single decision does. Explain its decision function with output='margin', or the "
    "probabilities of CalibratedClassifierCV(SVC(), ensemble=False)."
)


def import_svm(model: Any) -> Graph:
    """SVC, NuSVC, SVR, NuSVR and OneClassSVM: the decision function, or a regressor's prediction."""
    require_fitted(model)
    support = _dense(model.support_vectors_)
    factors = _svm_factors(model, support.shape[1])
    classifier = "classes_" in vars(model)
    weight, names = _dense(model.dual_coef_), plain_outputs(1)
    method = "decision_function" if classifier or "OneClassSVM" in label_of(model) else "predict"
    if classifier:
        names = class_outputs(model.classes_)
        if len(names) > 1:
            weight = _between_classes(weight, model.n_support_)
    source = Input(support.shape[1])
    machine = KernelMachine(source, support, weight, np.asarray(model.intercept_, np.float64).ravel(), factors)
    node: Node = machine
    if classifier and len(names) > 1:
        if model.decision_function_shape == "ovr":
            against = Affine(machine, -np.eye(machine.width), np.zeros(machine.width))
            node = counted(against, len(names), 0.0)
        else:
            names = tuple(f"{a} against {b}" for a, b in combinations(names, 2))
    platt = classifier and model.get_params().get("probability") is True and len(_platt(model)[0]) > 0
    no_score = _PLATT if platt and len(names) > 1 else ""
    graph = _graph(model, source, node, OwnPrediction(model, method), names, (machine,), no_score)
    if platt and not no_score:
        return _with_probability(model, graph, machine)
    return replace(graph, opposite=class_left_out(model.classes_, 0.0)) if classifier else graph


def _with_probability(model: Any, graph: Graph, machine: KernelMachine) -> Graph:
    """The graph of the decision function of two classes with the probability of the second as its score."""
    slope, shift = (float(v[0]) for v in _platt(model))
    score = coupled_probability(machine, slope, shift)
    predict, scale = OwnPrediction(model, "predict_proba", positive=True), KernelScale((machine,))
    # The probability rises by no more than the slope where the decision function does by 1.
    own = replace(held(score, predict, graph.label, scale), rtol=scale.units * max(1.0, abs(slope)))
    return replace(
        graph, score=score, margin_names=graph.output_names, witnesses=(*graph.witnesses, own),
        opposite=class_left_out(model.classes_),
    )  # fmt: skip


def _platt(model: Any) -> tuple[Array, Array]:
    """libsvm's A and B for each pair of classes; none where the model was fitted without probabilities."""
    with warnings.catch_warnings():  # scikit-learn 1.9 announces that they will go with the option
        warnings.simplefilter("ignore", FutureWarning)
        return np.asarray(model.probA_, np.float64), np.asarray(model.probB_, np.float64)


def import_kernel_ridge(model: Any) -> Graph:
    """KernelRidge with a linear, polynomial, RBF or sigmoid kernel."""
    require_fitted(model)
    support = _dense(model.X_fit_)
    width = support.shape[1]
    gamma = 1.0 / width if model.gamma is None else float(model.gamma)
    factor = factor_of(model, model.kernel, width, gamma, model.degree, model.coef0)
    weight = np.asarray(model.dual_coef_, np.float64).reshape(len(support), -1).T
    source = Input(width)
    node = KernelMachine(source, support, weight, np.zeros(len(weight)), (factor,))
    return _graph(model, source, node, OwnPrediction(model, "predict"), plain_outputs(node.width), (node,))


def import_gaussian_process(model: Any) -> Graph:
    """GaussianProcessRegressor: the posterior mean, for sums and products of the kernels in `_gp_factor`."""
    require_fitted(model)
    if "X_train_" not in vars(model):
        raise NotFittedError("This GaussianProcessRegressor has not been fitted; call fit first.")
    support = np.asarray(model.X_train_, np.float64)
    alpha = np.asarray(model.alpha_, np.float64).reshape(len(support), -1).T
    spread, mean = np.atleast_1d(model._y_train_std)[:, None], np.atleast_1d(model._y_train_mean)
    source = Input(support.shape[1])
    parts: list[KernelMachine] = []
    for amount, factors in gp_terms(model.kernel_, support.shape[1]):
        bias = np.broadcast_to(0.0 if parts else mean, len(alpha)).astype(np.float64)
        parts.append(KernelMachine(source, support, amount * spread * alpha, bias, factors))
    if not parts:
        raise UnsupportedModelError("A Gaussian process must have more than white noise, whose mean is constant.")
    node: Node = parts[0] if len(parts) == 1 else Sum(tuple(parts))
    return _graph(model, source, node, OwnPrediction(model, "predict"), plain_outputs(node.width), tuple(parts))


# ---------------------------------------------------------------- kernels as factors


def _svm_factors(model: Any, width: int) -> tuple[Factor, ...]:
    return (factor_of(model, model.kernel, width, float(model._gamma), model.degree, model.coef0),)


def factor_of(model: Any, kernel: Any, width: int, gamma: float, degree: float, offset: float) -> Factor:
    """The kernel of scikit-learn's `pairwise_kernels` as a factor."""
    if kernel == "linear":
        return Factor("linear", np.ones(width))
    if kernel == "rbf":
        return Factor("gaussian", np.full(width, np.sqrt(gamma)))
    if kernel in ("poly", "polynomial"):
        return Factor("polynomial", np.full(width, gamma), float(offset), float(degree))
    if kernel == "sigmoid":
        return Factor("tanh", np.full(width, gamma), float(offset))
    raise UnsupportedModelError(
        f"{label_of(model)} can be imported with a linear, polynomial, rbf or sigmoid kernel; this one has "
        f"{kernel if isinstance(kernel, str) else 'a callable'}. Wrap it with gigrad.function and its gradient."
    )


def gp_terms(kernel: Any, width: int) -> list[tuple[float, tuple[Factor, ...]]]:
    """A kernel expanded into a sum of products: constants and their factors. White noise is zero between rows."""
    name = type(kernel).__name__
    if name == "Sum":
        return gp_terms(kernel.k1, width) + gp_terms(kernel.k2, width)
    if name == "Product":
        return [(a * b, f + g) for a, f in gp_terms(kernel.k1, width) for b, g in gp_terms(kernel.k2, width)]
    if name == "Exponentiation":
        return _gp_power(kernel, width)
    if name == "ConstantKernel":
        return [(float(kernel.constant_value), ())]
    if name == "WhiteKernel":
        return []
    return [(1.0, (_gp_factor(kernel, width),))]


def _gp_power(kernel: Any, width: int) -> list[tuple[float, tuple[Factor, ...]]]:
    """A kernel raised to a whole power, multiplied out into terms."""
    exponent, inner = kernel.exponent, gp_terms(kernel.kernel, width)
    if exponent != int(exponent) or exponent < 1 or exponent > 6:
        raise UnsupportedModelError(f"Kernels raised to whole powers up to 6 can be imported; got {exponent}.")
    out: list[tuple[float, tuple[Factor, ...]]] = [(1.0, ())]
    for _ in range(int(exponent)):
        out = [(a * b, f + g) for a, f in out for b, g in inner]
    return out


def _gp_factor(kernel: Any, width: int) -> Factor:
    """The factor of a kernel without parts."""
    name = type(kernel).__name__
    if name == "DotProduct":
        return Factor("linear", np.ones(width), float(kernel.sigma_0) ** 2)
    if name not in ("RBF", "Matern", "RationalQuadratic"):
        raise UnsupportedModelError(
            "Gaussian processes can be imported with sums and products of ConstantKernel, WhiteKernel, RBF, Matern (nu "
            f"0.5, 1.5, 2.5 or inf), RationalQuadratic and DotProduct; this one has a {name}."
        )
    scale: Array = np.broadcast_to(1.0 / np.asarray(kernel.length_scale, np.float64), width).copy()
    if name == "RBF":
        return Factor("gaussian", scale * np.sqrt(0.5))
    if name == "RationalQuadratic":
        return Factor("rational", scale, parameter=float(kernel.alpha))
    if kernel.nu == np.inf:
        return Factor("gaussian", scale * np.sqrt(0.5))
    profiles = {0.5: "exponential", 1.5: "matern32", 2.5: "matern52"}
    if kernel.nu not in profiles:
        raise UnsupportedModelError(f"Matern kernels can be imported with nu 0.5, 1.5, 2.5 or inf; got {kernel.nu}.")
    return Factor(profiles[kernel.nu], scale)


# ---------------------------------------------------------------- parts


def _dense(array: Any) -> Array:
    return np.asarray(array.toarray() if type(array).__module__.startswith("scipy.sparse") else array, np.float64)


def _between_classes(dual: Array, counts: Array) -> Array:
    """Weights (pairs of classes, support vectors) from libsvm's layout.

    Support vectors are sorted by class; in the decision between classes i < j, those of i have the weights of row j - 1
    and those of j the weights of row i.
    """
    edges = np.concatenate([[0], np.cumsum(counts)])
    classes = len(counts)
    rows = []
    for i, j in combinations(range(classes), 2):
        row = np.zeros(dual.shape[1])
        row[edges[i] : edges[i + 1]] = dual[j - 1, edges[i] : edges[i + 1]]
        row[edges[j] : edges[j + 1]] = dual[i, edges[j] : edges[j + 1]]
        rows.append(row)
    return np.array(rows)


def _graph(
    model: Any,
    source: Input,
    node: Node,
    predict: OwnPrediction,
    names: tuple[str, ...],
    machines: tuple[KernelMachine, ...],
    no_score: str = "",
) -> Graph:
    """The graph of kernel machines with the model's own prediction as the witness."""
    own = held(node, predict, label_of(model), KernelScale(machines))
    return estimator_graph(model, source, node, node, names, own, no_score=no_score)
