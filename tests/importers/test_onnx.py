"""ONNX models built operator by operator, trees of every mode, and files that are damaged or hostile."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx_graphs import model, node

import gigrad as gig
from gigrad._io.modelfiles import _load_onnx, load_model
from gigrad.importers.onnx.network import OPERATORS
from gigrad.testing import check_importer

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
helper, T = onnx.helper, onnx.TensorProto
RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3)).round(1)


def single(*shape: int) -> Any:
    return RNG.normal(size=shape).astype(np.float32)


# ------------------------------------------------------------ operators


@pytest.mark.parametrize(
    ("kind", "attributes"),
    [
        ("Relu", {}), ("LeakyRelu", {"alpha": 0.2}), ("Sigmoid", {}), ("Tanh", {}), ("Softmax", {"axis": -1}),
        ("LogSoftmax", {"axis": 1}), ("Elu", {"alpha": 0.7}), ("Selu", {}), ("Gelu", {}),
        ("Gelu", {"approximate": "tanh"}), ("Erf", {}), ("Exp", {}), ("Softplus", {}), ("Abs", {}), ("Neg", {}),
        ("Identity", {}), ("Flatten", {}),
    ],
)  # fmt: skip
def test_a_function_between_two_layers(kind: str, attributes: dict[str, Any]) -> None:
    layers = [
        node("Gemm", "X A a", "h", transB=1, alpha=0.5),
        node(kind, "h", "z", **attributes),
        node("MatMul", "z B", "m"),
        node("Add", "m b"),
    ]
    made = model(layers, {"A": single(4, 3), "a": single(4), "B": single(4, 1), "b": single(1)})
    check_importer(made, X, tol=1e-7)


def test_arithmetic_of_nodes_and_constants() -> None:
    layers = [
        node("Gemm", "X A a", "h"), node("Sigmoid", "h", "p"), node("Sub", "one p", "q"), node("Mul", "p q", "v"),
        node("Div", "v two", "w"), node("Add", "one p", "n"), node("Div", "w n", "r"), node("Sum", "r p q", "s"),
        node("Clip", "s low high", "c"), node("Concat", "c h", "both", axis=1),
        node("Slice", "both from to axes", "cut"), node("Mul", "cut cut", "squares"), node("MatMul", "squares B", "Y"),
    ]  # fmt: skip
    numbers = {
        "one": np.array([1], np.float32),
        "two": np.array([2], np.float32),
        "low": np.float32(0.3),
        "high": np.float32(2.0),
    }
    places = {"from": np.array([1], np.int64), "to": np.array([5], np.int64), "axes": np.array([1], np.int64)}
    made = model(layers, {"A": single(3, 3), "a": single(3), "B": single(4, 1), **numbers, **places})
    check_importer(made, X, tol=1e-7)


def test_float64_models_are_exact() -> None:
    layers = [node("MatMul", "X A", "h"), node("Tanh", "h", "t"), node("MatMul", "t B", "Y")]
    made = model(layers, {"A": RNG.normal(size=(3, 4)), "B": RNG.normal(size=(4, 1))}, kind=T.DOUBLE)
    e = gig.explain(made, X[:5], X[20:], tol=1e-13)
    assert np.abs(e.gap).max() < 1e-13


def test_every_operator_of_the_page_is_known() -> None:
    page = (Path(__file__).parents[2] / "docs" / "onnx.md").read_text()
    listed = page.split("<!-- operators -->")[1]
    assert [w.strip(" `\n") for w in listed.replace("\n", " ").split(",")] == list(OPERATORS)


@pytest.mark.parametrize("name", ["softplus", "module"])
def test_what_the_dynamo_exporter_of_torch_writes(name: str) -> None:
    """Where between a number and its softplus; Slice, Sin and Squeeze.

    Nets of the conformance table, written by torch 2.13 with `dynamo=True`, which needs onnxscript; all 20 import.
    """
    written = load_model(Path(__file__).parent / "files" / f"torch_dynamo_{name}.onnx")
    check_importer(written, RNG.normal(size=(40, 4)).round(1), tol=1e-7)


# ------------------------------------------------------------ trees


def tree(mode: str, tracks: int = 0) -> Any:
    """Two splits of one mode on two columns, and three leaves."""
    return node(
        "TreeEnsembleRegressor", domain="ai.onnx.ml", n_targets=1, nodes_treeids=[0] * 5, nodes_nodeids=[0, 1, 2, 3, 4],
        nodes_featureids=[0, 1, 0, 0, 0], nodes_values=[0.1, -0.3, 0.0, 0.0, 0.0],
        nodes_modes=[mode, mode, "LEAF", "LEAF", "LEAF"], nodes_truenodeids=[1, 3, 0, 0, 0],
        nodes_falsenodeids=[2, 4, 0, 0, 0], nodes_missing_value_tracks_true=[tracks] * 5, target_treeids=[0, 0, 0],
        target_nodeids=[2, 3, 4], target_ids=[0, 0, 0], target_weights=[1.0, 2.5, -1.5], base_values=[0.25],
    )  # fmt: skip


@pytest.mark.parametrize("tracks", [0, 1])
@pytest.mark.parametrize("mode", ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"])
def test_trees_of_every_mode(mode: str, tracks: int) -> None:
    rows = X[:, :2].copy()
    rows[:8, 0], rows[4:12, 1] = 0.1, -0.3  # ties
    rows[3, 0] = rows[9, 1] = np.nan
    made = model([tree(mode, tracks)], width=2)
    check_importer(made, rows)
    assert len(np.unique(gig.explain(made, rows, rows[:5]).predictions)) == 3


def test_trees_of_version_5() -> None:
    trees = node(
        "TreeEnsemble", domain="ai.onnx.ml", n_targets=2, tree_roots=[0, 2], nodes_featureids=[0, 1, 2],
        nodes_splits=onnx.numpy_helper.from_array(np.array([0.1, -0.3, 0.2], np.float32)),
        nodes_modes=onnx.numpy_helper.from_array(np.array([0, 1, 2], np.uint8)), nodes_truenodeids=[1, 0, 3],
        nodes_trueleafs=[0, 1, 1], nodes_falsenodeids=[1, 2, 4], nodes_falseleafs=[1, 1, 1],
        leaf_targetids=[0, 1, 0, 1, 0], leaf_weights=onnx.numpy_helper.from_array(np.arange(1, 6, dtype=np.float32)),
        aggregate_function=1, post_transform=0,
    )  # fmt: skip
    made = model([trees])
    made.opset_import[1].version = 5
    check_importer(made, X)


@pytest.mark.parametrize("weights", [(0.2, 0.7), (-0.2, 0.7)])
@pytest.mark.parametrize("post", ["NONE", "LOGISTIC"])
def test_two_classes_with_one_number(weights: tuple[float, float], post: str) -> None:
    """What onnxruntime makes of it depends on the link, and on whether all numbers are positive."""
    trees = node(
        "TreeEnsembleClassifier", gives="label Y", domain="ai.onnx.ml", nodes_treeids=[0] * 3, nodes_nodeids=[0, 1, 2],
        nodes_featureids=[0] * 3, nodes_values=[0.1, 0.0, 0.0], nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"],
        nodes_truenodeids=[1, 0, 0], nodes_falsenodeids=[2, 0, 0], class_treeids=[0, 0], class_nodeids=[1, 2],
        class_ids=[0, 0], class_weights=list(weights), classlabels_int64s=[0, 1], post_transform=post,
    )  # fmt: skip
    made = model([trees])
    e = gig.explain(made, X[:5], X[20:])
    assert e.output_names == ("1",)
    check_importer(made, X)


# ------------------------------------------------------------ columns


def test_a_column_of_codes_and_labels() -> None:
    """An integer column through LabelEncoder, beside a text column in one-hot form."""
    graph = helper.make_graph(
        [
            node("LabelEncoder", "grade", "g", "ai.onnx.ml", keys_int64s=[1, 2, 3], values_floats=[0.5, -1.0, 2.0],
                 default_float=9.0),
            node("OneHotEncoder", "job", "o", "ai.onnx.ml", cats_strings=["a", "b"], zeros=1),
            node("Reshape", "o flat", "j"),
            node("Concat", "g j", "all", axis=1), node("MatMul", "all A", "m"), node("Sigmoid", "m", "Y"),
        ],
        "made",
        [helper.make_tensor_value_info("grade", T.INT64, [None, 1]),
         helper.make_tensor_value_info("job", T.STRING, [None, 1])],
        [helper.make_tensor_value_info("Y", T.FLOAT, None)],
        [onnx.numpy_helper.from_array(np.array([[1.0], [0.3], [-0.4]], np.float32), "A"),
         onnx.numpy_helper.from_array(np.array([-1, 2], np.int64), "flat")],
    )  # fmt: skip
    versions = [helper.make_opsetid("", 20), helper.make_opsetid("ai.onnx.ml", 3)]
    made = helper.make_model(graph, opset_imports=versions, ir_version=9)
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"grade": [1, 2, 3, 7, 1, 2], "job": ["a", "b", "c", "a", "b", "a"]})
    e = gig.explain(made, table, table[:3])
    assert e.feature_names == ("grade", "job")
    np.testing.assert_allclose(e.values.sum(axis=1), e.predictions - e.base_values, atol=1e-7)
    with pytest.raises(gig.InputError, match=r"whole numbers|grade"):
        gig.explain(made, table.assign(grade=1.5), table[:3])


def test_the_evaluator_of_onnx_is_asked_where_onnxruntime_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    made = model([node("MatMul", "X A", "h"), node("Sigmoid", "h")], {"A": single(3, 1)})
    with_runtime = gig.explain(made, X[:4], X[20:])
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    without = gig.explain(made, X[:4], X[20:])
    np.testing.assert_allclose(without.values, with_runtime.values, rtol=1e-12)


# ------------------------------------------------------------ what is refused


def test_an_operator_that_is_not_read_is_named() -> None:
    with pytest.raises(gig.UnsupportedModelError, match=r"operator Tan .* not supported.*Gemm"):
        gig.import_model(model([node("Tan")]))


def external() -> Any:
    made = model([node("MatMul", "X A")], {"A": single(3, 1)})
    tensor = made.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = T.EXTERNAL
    entry = tensor.external_data.add()
    entry.key, entry.value = "location", "../../secrets"
    return made


def with_dims(*dims: int) -> Any:
    made = model([node("MatMul", "X A")], {"A": single(3, 1)})
    made.graph.initializer[0].dims[:] = dims
    return made


def nan_threshold() -> Any:
    made = model([tree("BRANCH_LEQ")])
    values = next(a for a in made.graph.node[0].attribute if a.name == "nodes_values")
    values.floats[0] = np.nan
    return made


def led_back() -> Any:
    made = model([tree("BRANCH_LEQ")])
    next(a for a in made.graph.node[0].attribute if a.name == "nodes_truenodeids").ints[1] = 0
    return made


HOSTILE = {
    "a cycle": lambda: model([node("Add", "Y X", "h"), node("Relu", "h", "Y")]),
    "data in another file": external,
    "a huge declared shape": lambda: with_dims(1 << 40, 1 << 20),
    "a negative dimension": lambda: with_dims(-3, 1),
    "a NaN threshold": nan_threshold,
    "a tree that leads back": led_back,
    "a wide input": lambda: model([node("Relu")], width=1 << 40),
    "no operators": lambda: model([]),
    "an operator of another domain": lambda: model([node("Relu", domain="com.example")]),
    "something unknown read": lambda: model([node("Add", "X nothing")]),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_models_are_refused(name: str) -> None:
    with pytest.raises((gig.CorruptModelError, gig.UnsupportedModelError)) as said:
        gig.import_model(HOSTILE[name]())
    assert str(said.value).endswith(".")


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    content = model([node("MatMul", "X A", "h"), node("Sigmoid", "h")], {"A": single(3, 1)}).SerializeToString()
    path = tmp_path / "model.onnx"
    path.write_bytes(content)
    loaded = load_model(path)
    assert np.isfinite(gig.explain(loaded, X[:3], X[20:]).values).all()
    for damaged in (content[: len(content) // 2], b"", b"not a model", bytes(reversed(content))):
        path.write_bytes(damaged)
        with pytest.raises((gig.CorruptModelError, gig.UnsupportedModelError)):
            load_model(path)
    rng = np.random.default_rng(1)
    for _ in range(60):  # flipped bytes: read, or refused with a sentence
        flipped = bytearray(content)
        for place in rng.integers(len(flipped), size=2):
            flipped[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(flipped)
        with suppress(gig.GigradError):
            gig.import_model(_load_onnx(path))
