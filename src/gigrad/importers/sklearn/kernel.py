"""scikit-learn's kernel machines: support vector machines, kernel ridge, the mean of a Gaussian process."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from ...errors import NotFittedError, UnsupportedModelError
from ...graph import Array, Factor, Graph, Input, KernelMachine, Node, Sum
from ..common.estimator import Ask, label_of, names_of, number_columns, require_fitted
from ..common.links import class_left_out, class_outputs, plain_outputs
from ..common.rounding import KernelScale, held

_VOTES = (
    "The decision function of an SVC with several classes counts votes (decision_function_shape='ovr'), and a vote "
    "jumps where no single variable does; call model.set_params(decision_function_shape='ovo') to explain the "
    "decisions between each two classes."
)
_PLATT = (
    "The probabilities of an SVC(probability=True) come out of an iteration that stops up to 0.005 short, so they are "
    'no steady function of x; explain its decision function with output="margin", or calibrate the SVC with '
    "CalibratedClassifierCV."
)


def import_svm(model: Any) -> Graph:
    """SVC, NuSVC, SVR, NuSVR and OneClassSVM: the decision function, or what a regressor predicts."""
    require_fitted(model)
    support = _dense(model.support_vectors_)
    factors = _svm_factors(model, support.shape[1])
    classifier = "classes_" in vars(model)
    weight, names = _dense(model.dual_coef_), plain_outputs(1)
    method = "decision_function" if classifier or "OneClassSVM" in label_of(model) else "predict"
    if classifier:
        names = class_outputs(model.classes_)
        if len(names) > 1:
            if model.decision_function_shape == "ovr":
                raise UnsupportedModelError(_VOTES)
            weight = _between_classes(weight, model.n_support_)
            names = tuple(f"{a} against {b}" for a, b in combinations(names, 2))
    source = Input(support.shape[1])
    node = KernelMachine(source, support, weight, np.asarray(model.intercept_, np.float64).ravel(), factors)
    platt = classifier and model.get_params().get("probability") is True
    graph = _graph(model, source, node, Ask(model, method), names, (node,), _PLATT if platt else "")
    return replace(graph, opposite=class_left_out(model.classes_, 0.0)) if classifier else graph


def import_kernel_ridge(model: Any) -> Graph:
    """KernelRidge with a linear, polynomial, RBF or sigmoid kernel."""
    require_fitted(model)
    support = _dense(model.X_fit_)
    width = support.shape[1]
    gamma = 1.0 / width if model.gamma is None else float(model.gamma)
    factor = _factor(model, model.kernel, width, gamma, model.degree, model.coef0)
    weight = np.asarray(model.dual_coef_, np.float64).reshape(len(support), -1).T
    source = Input(width)
    node = KernelMachine(source, support, weight, np.zeros(len(weight)), (factor,))
    return _graph(model, source, node, Ask(model, "predict"), plain_outputs(node.width), (node,))


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
    for amount, factors in _gp_terms(model.kernel_, support.shape[1]):
        bias = np.broadcast_to(0.0 if parts else mean, len(alpha)).astype(np.float64)
        parts.append(KernelMachine(source, support, amount * spread * alpha, bias, factors))
    if not parts:
        raise UnsupportedModelError("A Gaussian process of white noise alone has a constant mean: nothing to explain.")
    node: Node = parts[0] if len(parts) == 1 else Sum(tuple(parts))
    return _graph(model, source, node, Ask(model, "predict"), plain_outputs(node.width), tuple(parts))


# ---------------------------------------------------------------- kernels as factors


def _svm_factors(model: Any, width: int) -> tuple[Factor, ...]:
    return (_factor(model, model.kernel, width, float(model._gamma), model.degree, model.coef0),)


def _factor(model: Any, kernel: Any, width: int, gamma: float, degree: float, offset: float) -> Factor:
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


def _gp_terms(kernel: Any, width: int) -> list[tuple[float, tuple[Factor, ...]]]:
    """A kernel multiplied out: constants and the factors they go with. White noise is zero between different rows."""
    name = type(kernel).__name__
    if name == "Sum":
        return _gp_terms(kernel.k1, width) + _gp_terms(kernel.k2, width)
    if name == "Product":
        return [(a * b, f + g) for a, f in _gp_terms(kernel.k1, width) for b, g in _gp_terms(kernel.k2, width)]
    if name == "Exponentiation":
        return _gp_power(kernel, width)
    if name == "ConstantKernel":
        return [(float(kernel.constant_value), ())]
    if name == "WhiteKernel":
        return []
    return [(1.0, (_gp_factor(kernel, width),))]


def _gp_power(kernel: Any, width: int) -> list[tuple[float, tuple[Factor, ...]]]:
    exponent, inner = kernel.exponent, _gp_terms(kernel.kernel, width)
    if exponent != int(exponent) or exponent < 1 or exponent > 6:
        raise UnsupportedModelError(f"Kernels raised to whole powers up to 6 can be imported; got {exponent}.")
    out: list[tuple[float, tuple[Factor, ...]]] = [(1.0, ())]
    for _ in range(int(exponent)):
        out = [(a * b, f + g) for a, f in out for b, g in inner]
    return out


def _gp_factor(kernel: Any, width: int) -> Factor:
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

    Support vectors come class by class; in the decision between classes i < j those of i weigh by row j - 1 and those
    of j by row i.
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
    predict: Ask,
    names: tuple[str, ...],
    machines: tuple[KernelMachine, ...],
    no_score: str = "",
) -> Graph:
    return Graph(
        columns=number_columns(model),
        input=source,
        score=node,
        margin=node,
        output_names=names,
        witnesses=(held(node, predict, label_of(model), KernelScale(machines)),),
        named=names_of(model) is not None,
        label=label_of(model),
        no_score=no_score,
    )
