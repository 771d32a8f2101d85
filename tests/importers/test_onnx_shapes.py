"""Tensors with more axes than rows and columns: what moves numbers, adds them up and broadcasts them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx_graphs import model, node

import gigrad as gig
from gigrad.importers.onnx.shape import Shape
from gigrad.testing import check_importer

pytest.importorskip("onnxruntime")
RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3)).round(1)


def single(*shape: int) -> Any:
    return RNG.normal(size=shape).astype(np.float32)


def ints(*numbers: int) -> Any:
    return np.array(numbers, np.int64)


LAYER = {"A": single(3, 6), "B": single(6, 1), "C": single(3, 1)}
WAYS: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "an axis in front": ([node("Reshape", "h s", "r"), node("ReduceMean", "r zero", "m", keepdims=0)],
                         {"s": ints(1, -1, 6), "zero": ints(0)}),
    "columns as two axes": ([node("Reshape", "h s", "r"), node("Mul", "r w", "p"),
                             node("ReduceSum", "p last", "q", keepdims=0), node("Concat", "q q q", "m", axis=1)],
                            {"s": ints(-1, 2, 3), "w": single(1, 2, 3), "last": ints(2)}),
    "turned twice": ([node("Transpose", "h", "t", perm=[1, 0]), node("Mul", "t w", "u"),
                      node("Transpose", "u", "m", perm=[1, 0])], {"w": single(6, 1)}),
    "turned in three axes": ([node("Reshape", "h s", "r"), node("Transpose", "r", "t", perm=[2, 0, 1]),
                              node("ReduceMax", "t zero", "q", keepdims=0), node("Concat", "q h q", "f", axis=1),
                              node("Slice", "f from to one", "m")],
                             {"s": ints(0, 2, 3), "zero": ints(0), "from": ints(1), "to": ints(7), "one": ints(1)}),
    "rows below each other": ([node("Gather", "h even", "a", axis=1), node("Gather", "h odd", "b", axis=1),
                               node("Concat", "a b", "c", axis=0), node("Reshape", "c s", "r"),
                               node("Transpose", "r", "t", perm=[1, 0, 2]), node("Flatten", "t", "m")],
                              {"even": ints(0, 2, 4), "odd": ints(1, 3, 5), "s": ints(2, -1, 3)}),
    "axes put in and left out": ([node("Unsqueeze", "h one", "u"), node("Sub", "u w", "d"), node("Abs", "d", "e"),
                                  node("ReduceMin", "e two", "n", keepdims=1), node("Squeeze", "n both", "v"),
                                  node("Unsqueeze", "v one", "f"), node("Mul", "f h", "m")],
                                 {"one": ints(1), "two": ints(1, 2), "both": ints(1, 2), "w": single(1, 4, 6)}),
    "a product of columns": ([node("ReduceProd", "X one", "p", keepdims=1), node("Mul", "p h", "m")], {"one": ints(1)}),
    "the shape that was": ([node("Shape", "h", "z"), node("Reshape", "h s", "r"), node("Tanh", "r", "t"),
                            node("Reshape", "t z", "m")], {"s": ints(-1, 3, 2)}),
    "ones for each row": ([node("Shape", "h", "z"), node("ConstantOfShape", "z", "o"), node("Add", "o one", "p"),
                           node("Add", "p h", "m")], {"one": np.ones(1, np.float32)}),
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_tensors_of_any_shape(way: str) -> None:
    nodes, constants = WAYS[way]
    layers = [node("MatMul", "X A", "h"), *nodes, node("Tanh", "m", "g"), node("MatMul", "g B", "Y")]
    made = model(layers, {**LAYER, **constants})
    check_importer(made, X, tol=1e-7)
    assert np.ptp(gig.explain(made, X[:9], X[20:]).predictions) > 0


def test_columns_stay_columns_in_other_shapes() -> None:
    """A tree behind axes that came and went reads the raw columns."""
    nodes = [
        node("Reshape", "X s", "r"), node("Transpose", "r", "t", perm=[0, 2, 1]), node("Flatten", "t", "f"),
        node("Gather", "f back", "g", axis=1),
        node("TreeEnsembleRegressor", "g", domain="ai.onnx.ml", n_targets=1, nodes_treeids=[0] * 3,
             nodes_nodeids=[0, 1, 2], nodes_featureids=[2, 0, 0], nodes_values=[0.1, 0.0, 0.0],
             nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"], nodes_truenodeids=[1, 0, 0], nodes_falsenodeids=[2, 0, 0],
             target_treeids=[0, 0], target_nodeids=[1, 2], target_ids=[0, 0], target_weights=[1.0, 2.0]),
    ]  # fmt: skip
    made = model(nodes, {"s": ints(-1, 1, 3), "back": ints(2, 1, 0)})
    check_importer(made, X)
    credits = gig.explain(made, X[:9], X[20:]).values
    assert np.abs(credits[:, 0]).max() > 0
    assert not credits[:, 1:].any()


def test_an_output_with_its_columns_in_front_is_read() -> None:
    """As skl2onnx stacks the labels of a MultiOutputClassifier."""
    made = model([node("Transpose", "X", "Y", perm=[1, 0])])
    check_importer(made, X)
    np.testing.assert_allclose(gig.explain(made, X[:9], X[20:], target=1).predictions, X[:9, 1], rtol=1e-6)


REFUSED: dict[str, tuple[list[Any], dict[str, Any], str]] = {
    "rows mixed by Reshape": ([node("Reshape", "X s", "Y")], {"s": ints(3, 3, -1)}, "mixes rows"),
    "rows added up": ([node("ReduceSum", "X zero", "Y")], {"zero": ints(0)}, "over the rows"),
    "all added up": ([node("ReduceSum", "X", "Y")], {}, "over the rows"),
    "some rows": ([node("Gather", "X zero", "Y", axis=0)], {"zero": ints(0)}, "along the rows"),
    "rows against rows": ([node("MatMul", "X C", "h"), node("Squeeze", "h one", "v"), node("Add", "v X", "Y")],
                          {"C": single(3, 1), "one": ints(1)}, "mixes rows"),
    "a constant for each of 40 rows": ([node("Add", "X w", "Y")], {"w": single(40, 3)}, "mixes rows"),
    "a layer of three axes": ([node("Reshape", "X s", "r"), node("MatMul", "r C", "Y")],
                              {"s": ints(1, -1, 3), "C": single(3, 1)}, "rows and columns"),
    "an axis that is none": ([node("Gather", "X zero", "Y", axis=7)], {"zero": ints(0)}, "axis 7"),
    "a column that is none": ([node("Gather", "X far", "Y", axis=1)], {"far": ints(9)}, "reads column 9 of 3"),
    "a wrong order of axes": ([node("Transpose", "X", "Y", perm=[0, 0])], {}, "must order"),
    "a huge constant": ([node("ConstantOfShape", "s", "h"), node("Add", "X h", "Y")], {"s": ints(1 << 40, 1 << 20)},
                        "at most"),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_what_would_mix_rows_is_refused(what: str) -> None:
    nodes, constants, why = REFUSED[what]
    with pytest.raises((gig.UnsupportedModelError, gig.CorruptModelError), match=why) as said:
        gig.import_model(model(nodes, constants))
    assert str(said.value).endswith(".")


@pytest.mark.parametrize("seed", range(40))
def test_shapes_are_those_of_numpy(seed: int) -> None:
    """Columns of a row found by the shape, against NumPy on a tensor with five rows."""
    rng = np.random.default_rng(seed)
    sizes = [int(s) for s in rng.integers(1, 4, rng.integers(1, 4))]
    axis = int(rng.integers(0, len(sizes) + 1))
    shape = Shape(tuple(sizes[:axis]), tuple(sizes[axis:]))
    rows = 5
    content = np.arange(rows * shape.size).reshape(*sizes[:axis], rows, *sizes[axis:])
    wanted = [1, *sizes[:axis], -1, *sizes[axis:]] if rng.random() < 0.5 else [int(np.prod(sizes[:axis])), -1]
    new = shape.reshaped(wanted)
    reached = content.reshape(wanted).reshape(*new.before, new.lead, rows, new.trail, *new.after)
    first = len(new.before) + 1
    by_rows = np.moveaxis(reached, first, 0).reshape(rows, -1)
    assert np.array_equal(by_rows, np.moveaxis(content, axis, 0).reshape(rows, -1))
