"""Distances that a loop measures, kernels of them, and weighted medians: what many operators say together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx_graphs import T, helper, model, node, onnx

import gigrad as gig
from gigrad.graph import KernelMachine, WeightedMedian, topological
from gigrad.testing import check_importer

pytest.importorskip("onnxruntime")
RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3)).round(1)
SUPPORT = X[:12].astype(np.float32)


def loop(*body: Any, axis: int = 1, **attributes: Any) -> Any:
    """Scan over the support vectors; by default their squared distances from the rows."""
    inner = list(body) or [
        node("Identity", "rows", "kept"), node("Sub", "rows one", "d"),
        node("ReduceSumSquare", "d axis", "far", keepdims=0),
    ]  # fmt: skip
    graph = helper.make_graph(
        inner, "body",
        [helper.make_tensor_value_info(n, T.FLOAT, None) for n in ("rows", "one")],
        [helper.make_tensor_value_info(n, T.FLOAT, None) for n in ("kept", "far")],
        [onnx.numpy_helper.from_array(np.array([axis], np.int64), "axis")],
    )  # fmt: skip
    return node("Scan", "X S", "state D", body=graph, num_scan_inputs=1, **attributes)


TURN = node("Transpose", "D", "q", perm=[1, 0])
SUM = node("MatMul", "k W", "Y")
WEIGHTS = {"W": RNG.normal(size=(12, 2)).astype(np.float32), "S": SUPPORT}


def test_a_kernel_of_distances_is_a_kernel_machine() -> None:
    layers = [loop(), TURN, node("Mul", "q c", "m"), node("Neg", "m", "n"), node("Exp", "n", "k"), SUM]
    made = model(layers, {**WEIGHTS, "c": np.array([0.4], np.float32)})
    check_importer(made, X, tol=1e-7)
    assert isinstance(gig.import_model(made).score, KernelMachine)


@pytest.mark.parametrize("kind", ["Sqrt", "Softplus", "Identity"])
def test_distances_as_numbers(kind: str) -> None:
    """Also from rows that the model has seen, where the distance is zero and its root has no slope."""
    layers = [loop(), TURN, node(kind, "q", "r"), node("Neg", "r", "s"), node("Exp", "s", "k"), SUM]
    check_importer(model(layers, WEIGHTS), X, tol=1e-7)


def test_distances_that_are_too_many_are_refused() -> None:
    many = RNG.normal(size=(1500, 3)).astype(np.float32)
    layers = [loop(), TURN, node("Sqrt", "q", "k"), SUM]
    made = model(layers, {"S": many, "W": RNG.normal(size=(1500, 1)).astype(np.float32)})
    with pytest.raises(gig.UnsupportedModelError, match="too many"):
        gig.import_model(made)


KEPT, DIFFERENCE = node("Identity", "rows", "kept"), node("Sub", "rows one", "d")
SQUARES = node("ReduceSumSquare", "d axis", "far", keepdims=0)
OTHER_LOOPS = {
    "sums for other axes": lambda: loop(axis=0),
    "rows that change": lambda: loop(node("Neg", "rows", "kept"), DIFFERENCE, SQUARES),
    "sums": lambda: loop(KEPT, node("Add", "rows one", "d"), SQUARES),
    "products": lambda: loop(KEPT, DIFFERENCE, node("ReduceProd", "d axis", "far", keepdims=0)),
    "axes that are kept": lambda: loop(KEPT, DIFFERENCE, node("ReduceSumSquare", "d axis", "far")),
    "backwards": lambda: loop(scan_input_directions=[1]),
    "names that lead in a circle": lambda: loop(
        node("Identity", "far", "kept"), DIFFERENCE, node("Identity", "kept", "far")
    ),
    "a loop in a loop": lambda: loop(KEPT, node("Scan", "rows one", "d far", num_scan_inputs=1)),
}


@pytest.mark.parametrize("name", OTHER_LOOPS)
def test_other_loops_are_refused(name: str) -> None:
    layers = [OTHER_LOOPS[name](), TURN, node("Neg", "q", "n"), node("Exp", "n", "k"), SUM]
    with pytest.raises((gig.UnsupportedModelError, gig.CorruptModelError), match="Scan") as said:
        gig.import_model(model(layers, WEIGHTS))
    assert str(said.value).endswith(".")


def median(half: float = 0.5, sign: float = -1.0) -> Any:
    """What skl2onnx writes for AdaBoostRegressor, over scores of a layer."""
    layers = [
        node("MatMul", "X A", "s"), node("Mul", "s minus", "m"), node("TopK", "m count", "v i", axis=1),
        node("ArrayFeatureExtractor", "w i", "t", "ai.onnx.ml"), node("Reshape", "t wide", "u"),
        node("CumSum", "u axis", "c"), node("ArrayFeatureExtractor", "c end", "e", "ai.onnx.ml"),
        node("Mul", "e half", "h"), node("Less", "c h", "l"), node("Cast", "l", "f", to=1),
        node("ArgMin", "f", "j", axis=1), node("GatherElements", "i j", "k", axis=1),
        node("GatherElements", "s k", "Y", axis=1),
    ]  # fmt: skip
    numbers = {
        "minus": np.float32(sign),
        "half": np.float32(half),
        "w": np.array([0.31, 1.07, 0.43, 0.22, 0.51], np.float32),
    }
    places = {"count": [5], "end": [4], "wide": [-1, 5], "axis": [1]}
    return model(
        layers,
        {"A": np.random.default_rng(3).normal(size=(3, 5)).astype(np.float32), **numbers}
        | {k: np.array(v, np.int64) for k, v in places.items()},
    )


def test_a_weighted_median() -> None:
    made = median()
    check_importer(made, X, tol=1e-7)
    assert any(isinstance(n, WeightedMedian) for n in topological(gig.import_model(made).score))


@pytest.mark.parametrize("change", [{"half": 0.4}, {"sign": 1.0}])
def test_what_is_no_median_is_refused(change: dict[str, float]) -> None:
    with pytest.raises(gig.UnsupportedModelError, match="weighted median"):
        gig.import_model(median(**change))
