"""Operators that cut numbers into steps: comparisons, the largest of some scores, tables looked up, votes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx_graphs import helper, model, node

import gigrad as gig
from gigrad.testing import check_importer

runtime = pytest.importorskip("onnxruntime")
RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3)).round(1)


def single(*shape: int) -> Any:
    return RNG.normal(size=shape).astype(np.float32)


def ints(*numbers: int) -> Any:
    return np.array(numbers, np.int64)


def floats(*numbers: float) -> Any:
    return np.array(numbers, np.float32)


def asked(made: Any, rows: Any) -> Any:
    """What onnxruntime itself gives."""
    session = runtime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    return np.asarray(session.run(["Y"], {"X": rows.astype(np.float32)})[0], np.float64)


COMPARISONS = ("Less", "Greater", "LessOrEqual", "GreaterOrEqual", "Equal")


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("kind", COMPARISONS)
def test_columns_compared_with_constants(kind: str, turned: bool) -> None:
    """Ties and missing values, each column with its own constant, then three constants for one column."""
    rows = X.copy()
    rows[:8, 0], rows[4:12, 1], rows[3, 2] = np.float32(0.1), -0.3, np.nan
    sides = "t X" if turned else "X t"
    layers = [node(kind, sides, "c"), node("Not", "c", "n"), node("Cast", "n", "f", to=1), node("MatMul", "f A", "Y")]
    made = model(layers, {"t": floats(0.1, -0.3, 0.0), "A": single(3, 2)})
    check_importer(made, rows)
    layers = [
        node("Gather", "X first", "x", axis=1), node(kind, sides.replace("X", "x"), "c"), node("Cast", "c", "f", to=1),
        node("MatMul", "f A", "Y"),
    ]  # fmt: skip
    check_importer(model(layers, {"t": floats(0.1, -0.3, 0.0), "A": single(3, 2), "first": ints(0)}), rows)


@pytest.mark.parametrize("kind", COMPARISONS)
def test_scores_compared_with_constants_and_scores(kind: str) -> None:
    layers = [
        node("MatMul", "X A", "h"), node(kind, "h t", "c"), node("Cast", "c", "f", to=1), node("MatMul", "X B", "g"),
        node(kind, "h g", "d"), node("Cast", "d", "e", to=1), node("Sum", "f e g", "Y"),
    ]  # fmt: skip
    made = model(layers, {"A": single(3, 2), "B": single(3, 2), "t": floats(0.2, -0.1)})
    if kind != "Equal":
        check_importer(made, X, tol=1e-7)
        assert np.ptp(asked(made, X)) > 1.0
    else:
        gig.explain(made, X[:5], X[20:])


def test_the_largest_of_some_scores() -> None:
    """The place of it looked up, in one-hot form, and compared."""
    layers = [
        node("MatMul", "X A", "h"), node("ArgMax", "h", "best", axis=1), node("Gather", "table best", "t", axis=0),
        node("Squeeze", "t one", "u"), node("ArgMin", "h", "worst", axis=1, keepdims=0),
        node("OneHotEncoder", "worst", "o", "ai.onnx.ml", cats_int64s=[0, 1, 2, 3]), node("MatMul", "o B", "v"),
        node("Equal", "best two", "e"), node("Where", "e a b", "w"), node("Sum", "u v w", "Y"),
    ]  # fmt: skip
    constants = {
        "A": single(3, 4), "B": single(4, 2), "table": single(4, 2), "one": ints(1), "two": ints(2),
        "a": floats(3.0), "b": floats(-1.0),
    }  # fmt: skip
    check_importer(model(layers, constants), X, tol=1e-7)


@pytest.mark.parametrize("last", [0, 1])
def test_the_first_or_the_last_of_equal_scores(last: int) -> None:
    """Steps of columns and leaves of a tree, many of them equal."""
    layers = [
        node("Less", "X t", "c"), node("Cast", "c", "f", to=1), node("Gather", "f first", "g", axis=1),
        node("ArgMax", "f", "i", axis=1, select_last_index=last), node("Cast", "i", "Y", to=1),
    ]  # fmt: skip
    one = [node("Gather", "X first", "x", axis=1), node("Less", "x t", "c"), node("Cast", "c", "f", to=1), *layers[3:]]
    for nodes in (layers, one):
        made = model(nodes, {"t": floats(0.5, 1.0, -0.5), "first": ints(0)})
        check_importer(made, X)
        assert len(np.unique(asked(made, X))) > 1


def test_the_nearest_of_some_constants() -> None:
    """As isotonic calibration is written: a score clipped to the range of constants, some of them equal."""
    knots = floats(0.05, 0.2, 0.2, 0.21, 0.5, 0.9)
    layers = [
        node("MatMul", "X A", "h"), node("Sigmoid", "h", "p"), node("Clip", "p low high", "q"),
        node("Sub", "q knots", "d"), node("Abs", "d", "e"), node("ArgMin", "e", "i", axis=1),
        node("ArrayFeatureExtractor", "table i", "v", "ai.onnx.ml"), node("Reshape", "v s", "Y"),
    ]  # fmt: skip
    constants = {
        "A": single(3, 1), "knots": knots, "table": single(6), "low": floats(0.05)[0], "high": floats(0.9)[0],
        "s": ints(-1, 1),
    }  # fmt: skip
    made = model(layers, constants)
    check_importer(made, X, tol=1e-7)
    assert len(np.unique(asked(made, X))) >= 4


def test_half_way_between_constants_is_found_to_the_last_bit() -> None:
    """Trees give scores right at the middles and one float32 beside them: onnxruntime says which constant is nearer."""
    knots = np.sort(single(5))
    middles = ((knots[1:].astype(np.float64) + knots[:-1]) / 2.0).astype(np.float32)
    near = [np.nextafter(middles, np.float32(s)) for s in (-np.inf, np.inf)]
    values = np.clip(np.concatenate([knots, middles, *near]), knots[0], knots[-1])
    rows = np.arange(len(values), dtype=np.float64)[:, None]
    count = len(values)
    numbers = list(range(2 * count - 1))
    trees = node(
        "TreeEnsembleRegressor", "X", "s", "ai.onnx.ml", n_targets=1, nodes_treeids=[0] * len(numbers),
        nodes_nodeids=numbers, nodes_featureids=[0] * len(numbers),
        nodes_values=[i + 0.5 for i in range(count - 1)] + [0.0] * count,
        nodes_modes=["BRANCH_LEQ"] * (count - 1) + ["LEAF"] * count,
        nodes_truenodeids=[count - 1 + i for i in range(count - 1)] + [0] * count,
        nodes_falsenodeids=[i + 1 if i < count - 2 else 2 * count - 2 for i in range(count - 1)] + [0] * count,
        target_treeids=[0] * count, target_nodeids=numbers[count - 1 :], target_ids=[0] * count,
        target_weights=values.tolist(),
    )  # fmt: skip
    layers = [
        trees, node("Add", "s zero", "z"), node("MatMul", "z one", "w"), node("Sub", "w knots", "d"),
        node("Abs", "d", "e"), node("ArgMin", "e", "i", axis=1), node("Cast", "i", "Y", to=1),
    ]  # fmt: skip
    constants = {"zero": floats(0.0), "one": floats(1.0)[None], "knots": knots}
    made = model(layers, constants, width=1)
    np.testing.assert_array_equal(gig.explain(made, rows, rows[:3]).predictions, asked(made, rows)[:, 0])


def test_numbers_cut_off_after_the_point() -> None:
    """Codes that are looked up; a score compared with a whole number."""
    codes = RNG.integers(0, 4, (60, 1)) + RNG.choice([0.0, 0.4], (60, 1))
    layers = [
        node("Cast", "X", "i", to=7), node("ArrayFeatureExtractor", "table i", "t", "ai.onnx.ml"),
        node("Transpose", "t", "Y", perm=[1, 0]),
    ]  # fmt: skip
    check_importer(model(layers, {"table": single(2, 4)}, width=1), codes)
    for whole in (-1, 0, 2):
        layers = [
            node("MatMul", "X A", "h"), node("Cast", "h", "i", to=6), node("Equal", "i w", "e"),
            node("Cast", "e", "f", to=1), node("Add", "f h", "Y"),
        ]  # fmt: skip
        check_importer(model(layers, {"A": 2.0 * single(3, 1), "w": np.array([whole], np.int32)}), X, tol=1e-7)


def test_both_and_one_of_two() -> None:
    layers = [
        node("MatMul", "X A", "h"), node("Less", "h t", "a"), node("Greater", "h u", "b"), node("And", "a b", "c"),
        node("Or", "a b", "d"), node("Cast", "c", "e", to=1), node("Cast", "d", "f", to=1), node("Sub", "e f", "Y"),
    ]  # fmt: skip
    made = model(layers, {"A": single(3, 1), "t": floats(0.4), "u": floats(-0.4)})
    check_importer(made, X, tol=1e-7)


@pytest.mark.parametrize("constants", [0, 1])
def test_one_of_two_numbers(constants: int) -> None:
    """By a condition for each column, or by one for all."""
    layers = [
        node("MatMul", "X A", "h"), node("Less", "h t" if constants else "h u", "c"), node("MatMul", "X B", "g"),
        node("Less", "half g", "d"), node("Tanh", "g", "r"), node("Where", "d r half", "s"),
        node("Where", "c h s", "w"), node("MatMul", "w C", "Y"),
    ]  # fmt: skip
    numbers = {"t": floats(0.2), "u": floats(0.2, -0.1), "half": floats(0.5)}
    first = single(3, 1) if constants else single(3, 2)
    made = model(layers, {"A": first, "B": single(3, 2), "C": single(2, 1), **numbers})
    check_importer(made, X, tol=1e-7)


@pytest.mark.parametrize("classes", [2, 3, 4])
def test_decisions_of_support_vectors_and_their_votes(classes: int) -> None:
    """One decision between each two classes; which of them are negative is counted."""
    counts = [3, 2, 4, 2][:classes]
    pairs = classes * (classes - 1) // 2
    weights = single((classes - 1) * sum(counts)).tolist()
    machine = node(
        "SVMClassifier", "X", "label s", "ai.onnx.ml", classlabels_ints=list(range(classes)), kernel_type="RBF",
        kernel_params=[0.3, 0.0, 3.0], vectors_per_class=counts, coefficients=weights,
        support_vectors=single(sum(counts) * 3).tolist(), rho=single(pairs).tolist(), post_transform="NONE",
    )  # fmt: skip
    votes = [machine, node("Less", "s zero", "n"), node("Cast", "n", "f", to=1), node("Add", "f s", "Y")]
    made = model(votes, {"zero": floats(0.0)})
    check_importer(made, X, tol=1e-7)
    assert asked(made, X).shape[1] == max(pairs, 2)


def test_votes_of_trees() -> None:
    """As AdaBoost is written: the class of each tree, weighted, and exponentials divided by their sum."""
    from sklearn.ensemble import AdaBoostClassifier

    skl2onnx = pytest.importorskip("skl2onnx")
    target = (X[:, 0] * X[:, 1] > 0).astype(int) + (X[:, 2] > 0.5)
    fitted = AdaBoostClassifier(n_estimators=5, random_state=0).fit(X.astype(np.float32), target)
    made = skl2onnx.to_onnx(fitted, X[:1].astype(np.float32))
    check_importer(made, X)
    e = gig.explain(made, X[:10], X[30:])
    np.testing.assert_allclose(e.predictions, fitted.predict_proba(X[:10]), atol=1e-6)


REFUSED: dict[str, tuple[list[Any], dict[str, Any], str]] = {
    "the largest of many": ([node("MatMul", "X A", "h"), node("ArgMax", "h", "i", axis=1),
                             node("Cast", "i", "Y", to=1)],
                            {"A": single(3, 9)}, "at most 8 scores; got 9"),
    "the largest row": ([node("MatMul", "X A", "h"), node("ArgMax", "h", "i", axis=0), node("Cast", "i", "Y", to=1)],
                        {"A": single(3, 2)}, "other axes"),
    "truncated numbers": ([node("MatMul", "X A", "h"), node("Cast", "h", "i", to=7), node("Cast", "i", "Y", to=1)],
                        {"A": single(3, 1)}, "truncated to integers"),
    "constants too near": ([node("MatMul", "X A", "h"), node("Clip", "h low high", "q"), node("Sub", "q k", "d"),
                            node("Abs", "d", "e"), node("ArgMin", "e", "i", axis=1), node("Cast", "i", "Y", to=1)],
                           {"A": single(3, 1), "low": floats(0.0)[0], "high": floats(1.0)[0],
                            "k": floats(0.0, 1e-10, 1.0)}, "float32 tells apart"),
    "no clip": ([node("MatMul", "X A", "h"), node("Sub", "h k", "d"), node("Abs", "d", "e"),
                 node("ArgMin", "e", "i", axis=1), node("Cast", "i", "Y", to=1)],
                {"A": single(3, 1), "k": floats(0.0, 0.5, 1.0)}, "clipped"),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_steps_that_are_not_read_are_named(what: str) -> None:
    nodes, constants, why = REFUSED[what]
    with pytest.raises(gig.UnsupportedModelError, match=why) as said:
        gig.import_model(model(nodes, constants))
    assert str(said.value).endswith(".")


def test_probabilities_of_support_vectors_of_three_classes_are_refused() -> None:
    machine = helper.make_node(
        "SVMClassifier", ["X"], ["label", "Y"], domain="ai.onnx.ml", classlabels_ints=[0, 1, 2], kernel_type="LINEAR",
        kernel_params=[0.1, 0.0, 3.0], vectors_per_class=[1, 1, 1], coefficients=[1.0, -1.0] * 3, prob_a=[-1.0] * 3,
        prob_b=[0.1] * 3, support_vectors=[0.0] * 9, rho=[0.1] * 3,
    )  # fmt: skip
    with pytest.raises(gig.UnsupportedModelError, match="probabilities of 3 classes is not imported"):
        gig.import_model(model([machine]))
