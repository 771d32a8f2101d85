"""What the importers of trees stand on: exact thresholds, trees that share children, layouts old and new, refusals."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from conformance import data, rows_lightgbm, rows_sklearn_trees, rows_xgboost

import gigrad as gig
from gigrad.errors import CorruptModelError, InputError, NotFittedError, UnsupportedModelError
from gigrad.graph import Column, Graph, Input, Tree, TreeEnsemble, assemble
from gigrad.importers import xgboost as xgboost_importer
from gigrad.importers.common.thresholds import at_most_in_float32, less_in_float32
from gigrad.importers.lightgbm.trees import read_tree
from gigrad.testing import brute_force

# ---------------------------------------------------------------- thresholds


def any_floats(kind: Any, bits: Any, n: int) -> Any:
    """Random bit patterns: every magnitude, denormals and the largest numbers included."""
    values = np.random.default_rng(0).integers(0, np.iinfo(bits).max, n, dtype=bits).view(kind)
    edges = np.array([0.0, -0.0, 1.0, np.finfo(np.float32).max, -np.finfo(np.float32).max, np.inf, -np.inf, 1e-45])
    return np.concatenate([values[~np.isnan(values)], edges.astype(kind)])


def neighbours(T: Any) -> list[Any]:
    out = [T]
    for way in (np.inf, -np.inf):
        x = T
        for _ in range(3):
            x = np.nextafter(x, way)
            out.append(x)
    return out


@pytest.mark.parametrize(
    ("fold", "decide", "t"),
    [
        (less_in_float32, lambda x, t: x < t.astype(np.float32), any_floats(np.float32, np.uint32, 100_000)),
        (at_most_in_float32, lambda x, t: x <= t, any_floats(np.float64, np.uint64, 100_000)),
        (at_most_in_float32, lambda x, t: x <= t, any_floats(np.float32, np.uint32, 100_000).astype(np.float64)),
    ],
    ids=["less", "at most, float64", "at most, float32"],
)
def test_folded_thresholds_decide_as_float32_does_for_every_neighbour(fold: Any, decide: Any, t: Any) -> None:
    with np.errstate(all="ignore"):
        T = fold(t).threshold
        for x in [*neighbours(T), t.astype(np.float64), -T]:
            finite = np.isfinite(x)
            rounded = x.astype(np.float32).astype(np.float64)
            np.testing.assert_array_equal((x <= T)[finite], decide(rounded, t.astype(np.float64))[finite])


# ---------------------------------------------------------------- trees that share children


def tree(feature: Any, left: Any, right: Any, values: Any, threshold: Any = None, **more: Any) -> Tree:
    n = len(feature)
    return Tree(
        feature=np.array(feature),
        threshold=np.zeros(n) if threshold is None else np.array(threshold, float),
        left=np.array(left),
        right=np.array(right),
        missing_left=np.zeros(n, bool),
        values=np.array(values, float),
        **more,
    )


def graph_of(*trees: Tree, columns: int = 2) -> Graph:
    source = Input(columns)
    score = assemble(source, trees, np.zeros(1))
    return Graph(tuple(Column(f"x{j}") for j in range(columns)), source, score, score, ("score",))


def test_shared_children_in_any_order_equal_the_definition() -> None:
    # x0 <= -1 left, else x0 <= 1 right, else left: node 0 and 3 share leaf 2, written before its parents' numbers
    shared = tree([0, 1, -1, 0, -1], [2, 4, -1, 1, -1], [3, 2, -1, 2, -1], [0, 0, 5, 0, 1], [-1, 0, 0, 1, 0])
    graph = graph_of(shared)
    rows = np.array([[-2.0, 0.0], [0.0, -1.0], [0.0, 1.0], [2.0, 0.0]])
    np.testing.assert_array_equal(graph.predict(rows), [5, 1, 5, 5])
    start, end = np.array([-2.0, 1.0]), np.array([2.0, -1.0])
    got = gig.explain_pairs(graph, start[None], end[None], discrete=()).values[0]
    np.testing.assert_allclose(got, brute_force(graph, start, end)[:, 0], atol=1e-12)


def test_a_long_chain_of_shared_children_is_numbered_at_once() -> None:
    # 15 levels, each with three ways down: 14 million ways from the root to the leaf, 31 nodes
    feature, left, right = [], [], []
    for level in range(15):
        feature += [0, 1]
        left += [2 * level + 1, 2 * level + 2]
        right += [2 * level + 2, 2 * level + 2]
    diamond = tree([*feature, -1], [*left, -1], [*right, -1], [0.0] * 30 + [3.0])
    assert graph_of(diamond).predict(np.zeros((1, 2)))[0] == 3.0


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (lambda: tree([0, 0, -1], [1, 0, -1], [2, 2, -1], [0, 0, 1]), "cycle"),
        (lambda: tree([0, -1], [0, -1], [1, -1], [0, 1]), "cycle"),
        (lambda: tree([0, -1, -1], [1, -1, -1], [7, -1, -1], [0, 1, 2]), "child outside"),
        (lambda: tree([0, -1, -1], [1, -1, -1], [-5, -1, -1], [0, 1, 2]), "child outside"),
        (lambda: tree([0, -1, -1], [1, -1, -1], [2, -1, -1], [0, 1, 2], [np.nan, 0, 0]), "not a number"),
        (lambda: tree([9, -1, -1], [1, -1, -1], [2, -1, -1], [0, 1, 2]), "column 9"),
        (lambda: tree([0, -1, -1], [1, -1, -1], [2, -1, -1], [0, np.nan, 2]), "finite"),
        (lambda: tree([0, -1, -1], [1, -1, -1], [2, -1, -1], [0, 1, 2], categories={0: np.array([-3])}), "codes"),
        (lambda: tree([0, -1, -1], [1, -1, -1], [2, -1, -1], [0, 1, 2], categories={0: np.array([2**40])}), "codes"),
        (lambda: tree([], [], [], []), "no nodes"),
    ],
)
def test_corrupt_trees_are_refused_and_never_walked(broken: Callable[[], Tree], message: str) -> None:
    with pytest.raises(CorruptModelError, match=message):
        graph_of(broken())


# ---------------------------------------------------------------- XGBoost: layouts and damage


def learner_of(row: tuple[Any, Any]) -> tuple[Any, Any, dict[str, Any]]:
    model, X = row
    return model, X, xgboost_importer._learner(model)


def imported(monkeypatch: pytest.MonkeyPatch, model: Any, learner: dict[str, Any]) -> Graph:
    """The graph of a model whose JSON is the given one."""
    monkeypatch.setattr(xgboost_importer, "_learner", lambda _: learner)
    return gig.import_model(model)


def as_newer_dart(learner: dict[str, Any]) -> dict[str, Any]:
    old = learner["gradient_booster"]
    if "gbtree" not in old:  # the installed one writes it so itself
        return learner
    model = {**old["gbtree"]["model"], "weight_drop": old["weight_drop"]}
    return {**learner, "gradient_booster": {"name": "gbtree", "model": model}}


def with_one_base_score(learner: dict[str, Any]) -> dict[str, Any]:
    """Up to 3.0 `base_score` was a single number, `cats` and sometimes `iteration_indptr` were not there."""
    parameters = dict(learner["learner_model_param"])
    parameters["base_score"] = str(json.loads(parameters["base_score"])[0])
    booster = json.loads(json.dumps(learner["gradient_booster"]))
    for name in ("cats", "iteration_indptr"):
        booster["model"].pop(name)
    return {**learner, "learner_model_param": parameters, "gradient_booster": booster}


def with_weights_in_every_node(learner: dict[str, Any]) -> dict[str, Any]:
    """Up to 3.0 vector leaves stood among the weights of all nodes."""
    learner = json.loads(json.dumps(learner))
    for dump in learner["gradient_booster"]["model"]["trees"]:
        size = int(dump["tree_param"]["size_leaf_vector"])
        weights = np.array(dump["base_weights"]).reshape(-1, size)
        leaves = np.array(dump.pop("leaf_weights")).reshape(-1, size)
        for node, (left, place) in enumerate(zip(dump["left_children"], dump["right_children"], strict=True)):
            if left == -1:
                weights[node] = leaves[place]
        dump["base_weights"] = weights.ravel().tolist()
    return learner


@pytest.mark.parametrize(
    ("build", "other"),
    [
        (lambda: rows_xgboost.fit("XGBClassifier", data.with_missing(), data.binary(), booster="dart", rate_drop=0.5),
         as_newer_dart),
        (rows_xgboost.early_stopped, with_one_base_score),
        (lambda: rows_xgboost.fit("XGBRegressor", data.numbers(), data.two_targets(),
                                  multi_strategy="multi_output_tree"),
         with_weights_in_every_node),
    ],
    ids=["dart from 3.3", "base_score up to 3.0", "vector leaves up to 3.0"],
)  # fmt: skip
def test_older_and_newer_layouts_of_xgboost_are_the_same_model(
    build: Any, other: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("xgboost", "3.1")
    model, X, learner = learner_of(build())
    want = gig.import_model(model).predict(X, output="margin")
    changed = other(learner)
    if other is as_newer_dart and changed == learner:
        pytest.skip("this XGBoost, 3.3 or newer, writes that layout itself")
    assert changed != learner
    np.testing.assert_array_equal(imported(monkeypatch, model, changed).predict(X, output="margin"), want)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [("left_children", 0, "cycle"), ("right_children", 99, "child outside"),
     ("split_conditions", float("nan"), "number"), ("split_indices", 50, "column 50")],
)  # fmt: skip
def test_damaged_xgboost_models_are_refused(
    field: str, value: Any, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, _, learner = learner_of(rows_xgboost.fit("XGBRegressor", data.numbers(), data.target()))
    learner["gradient_booster"]["model"]["trees"][3][field][0] = value
    with pytest.raises(CorruptModelError, match=message):
        imported(monkeypatch, model, learner)


def test_a_hinge_has_a_margin_and_no_score() -> None:
    model, X = rows_xgboost.train("binary:hinge", data.binary())
    graph = gig.import_model(model)
    with pytest.raises(UnsupportedModelError, match='output="margin"'):
        graph.predict(X)
    assert graph.predict(X, output="margin").shape == (len(X),)


def test_labels_xgboost_does_not_know_are_refused() -> None:
    pytest.importorskip("xgboost", "3.1")
    model, X = rows_xgboost.fit("XGBClassifier", data.frame(), data.frame_target(), **rows_xgboost.CATEGORIES)
    X = X.assign(purpose="yacht")
    with pytest.raises(InputError, match="'yacht' is not one of its 5"):
        gig.explain(model, X, data.frame(), output="margin")


@pytest.mark.parametrize("fit", [rows_xgboost.fit, rows_lightgbm.fit], ids=["XGBoost", "LightGBM"])
def test_a_single_row_may_miss_its_category(fit: Any) -> None:
    pytest.importorskip("xgboost", "3.1")  # which keeps the labels of categories in its models
    options = rows_xgboost.CATEGORIES if fit is rows_xgboost.fit else rows_lightgbm.CATEGORIES
    model, X = fit(
        "XGBRegressor" if fit is rows_xgboost.fit else "LGBMRegressor", data.frame(), data.target(), **options
    )
    missing = X[X["purpose"].isna()][:1]
    found = gig.explain(model, missing, X)
    assert len(missing) == 1
    assert np.abs(found.gap).max() < 1e-5


def test_labels_that_xgboost_has_stored_damaged_are_refused() -> None:
    pytest.importorskip("xgboost", "3.1")
    table = data.frame()
    table = table.assign(purpose=table["purpose"].cat.rename_categories({"car": "vélo"}))
    model, _ = rows_xgboost.fit("XGBClassifier", table, data.frame_target(), **rows_xgboost.CATEGORIES)
    with pytest.raises(UnsupportedModelError, match="ASCII"):
        gig.import_model(model)


# ---------------------------------------------------------------- LightGBM and scikit-learn


def tree_fields(**changes: str) -> dict[str, str]:
    fields = {
        "number": "0", "num_leaves": "3", "split_feature": "0 1", "threshold": "0.5 1.5", "decision_type": "2 2",
        "left_child": "-1 -2", "right_child": "1 -3", "leaf_value": "1 2 3",
    }  # fmt: skip
    return {**fields, **changes}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"leaf_value": "1 2"}, "3 numbers of leaf_value"),
        ({"left_child": "0 -2"}, "cycle"),
        ({"right_child": "1 -9"}, "child outside"),
        ({"threshold": "nan 1.5"}, "not a number"),
        ({"decision_type": "1 2"}, "without its set"),
        ({"is_linear": "1", "leaf_const": "1 2 3", "num_features": "1 0 0", "leaf_features": "", "leaf_coeff": "2"},
         "do not match"),
    ],
)  # fmt: skip
def test_damaged_lightgbm_trees_are_refused(changes: dict[str, str], message: str) -> None:
    columns = (Column("a"), Column("b"))
    with pytest.raises(CorruptModelError, match=message):
        graph_of(read_tree(tree_fields(**changes), columns).tree)


def lightgbm_goes_left(x: float, t: float, default_left: bool, missing: int) -> bool:
    """`Tree::NumericalDecision` of LightGBM, after its predictor has read numbers close to zero as zero."""
    zero = float(np.float32(1e-35))
    x = 0.0 if abs(x) <= zero or (math.isnan(x) and missing != 2) else x
    if (missing == 1 and x == 0.0) or (missing == 2 and math.isnan(x)):
        return default_left
    return x <= t


@pytest.mark.parametrize("missing", [0, 1, 2])
@pytest.mark.parametrize("default_left", [False, True])
def test_lightgbm_splits_about_zero_take_its_own_sides(default_left: bool, missing: int) -> None:
    zero = float(np.float32(1e-35))
    edges = [1.0, 1e-40, zero, float(np.nextafter(zero, 1)), float(np.nextafter(zero, 0)), 2e-35]
    numbers = np.array([*edges, *(-v for v in edges), 0.0, math.nan])
    kind = 2 * default_left + 4 * missing
    for t in numbers[:-1].tolist():
        fields = tree_fields(threshold=f"{t!r} 1.5", decision_type=f"{kind} 2", right_child="-2 -3", left_child="-1 -2")
        trees = assemble(Input(2), [read_tree(fields, (Column("a"), Column("b"))).tree], np.zeros(1))
        found = trees.forward(np.stack([numbers, np.zeros(len(numbers))], axis=1))[:, 0]
        expected = [lightgbm_goes_left(x, t, default_left, missing) for x in numbers.tolist()]
        assert np.array_equal(found == 1.0, expected), t


def test_lightgbm_names_that_lost_their_spaces_find_their_columns() -> None:
    table = data.named().rename(columns={"income": "yearly income"})
    model, _ = rows_lightgbm.fit("LGBMRegressor", table, data.target())
    assert gig.import_model(model).feature_names[1] == "yearly_income"
    found = gig.explain(model, table[["debt", "yearly income", "arrears", "age"]][:3], table)
    assert found.feature_names == ("age", "yearly income", "debt", "arrears")
    with pytest.raises(InputError, match="'yearly_income' is missing"):
        gig.explain(model, table.assign(**{"yearly_income ": 0}).drop(columns="yearly income"), table)


def test_zero_as_missing_splits_share_children_and_stay_few() -> None:
    X = rows_lightgbm.with_zeros()
    model, _ = rows_lightgbm.fit("LGBMRegressor", X, data.target(), zero_as_missing=True)
    trees = gig.import_model(model).score
    assert isinstance(trees, TreeEnsemble)
    nodes = len(trees.feature)
    splits = sum(t["num_leaves"] - 1 for t in model.booster_.dump_model()["tree_info"])
    assert splits < nodes <= 5 * splits


@pytest.mark.parametrize(
    ("init", "message"),
    [("DummyClassifier", "random number"), ("KNeighborsClassifier", "init model that cannot be imported")],
)
def test_starts_of_gradient_boosting_that_cannot_be_explained_are_refused(init: str, message: str) -> None:
    from sklearn.dummy import DummyClassifier
    from sklearn.neighbors import KNeighborsClassifier

    starts = {"DummyClassifier": DummyClassifier(strategy="stratified"), "KNeighborsClassifier": KNeighborsClassifier()}
    model, _ = rows_sklearn_trees.fit(
        "ensemble.GradientBoostingClassifier", data.numbers(), data.binary(), init=starts[init]
    )
    with pytest.raises(UnsupportedModelError, match=message):
        gig.import_model(model)


def unfitted() -> list[Any]:
    import catboost
    import lightgbm
    import xgboost
    from sklearn import ensemble
    from sklearn import tree as trees

    return [
        xgboost.XGBClassifier(), xgboost.Booster(), lightgbm.LGBMClassifier(),
        lightgbm.Booster(train_set=lightgbm.Dataset(data.numbers(), data.binary(), params={"verbose": -1})),
        catboost.CatBoostClassifier(), trees.DecisionTreeClassifier(), trees.ExtraTreeRegressor(),
        ensemble.RandomForestRegressor(), ensemble.ExtraTreesClassifier(), ensemble.GradientBoostingClassifier(),
        ensemble.HistGradientBoostingRegressor(),
    ]  # fmt: skip


def test_models_that_are_not_fitted_say_so() -> None:
    for model in unfitted():
        with pytest.raises(NotFittedError, match=type(model).__name__):
            gig.import_model(model)


def test_a_tree_that_asks_about_zero_too_often_is_refused_with_what_to_do() -> None:
    """A chain of splits above zero, each of which is passed below zero as well: twice as many ways at every level."""
    splits = 40
    fields = {
        "number": "7",
        "num_leaves": str(splits + 1),
        "leaf_value": " ".join(["1"] * (splits + 1)),
        "split_feature": " ".join(["0"] * splits),
        "decision_type": " ".join(["4"] * splits),  # zero is missing, and goes right
        "threshold": " ".join(str(splits - i) for i in range(splits)),
        "left_child": " ".join(str(i + 1 if i + 1 < splits else -1) for i in range(splits)),
        "right_child": " ".join(str(-2 - i) for i in range(splits)),
    }
    with pytest.raises(UnsupportedModelError, match=r"Tree 7 .*zero_as_missing.*3\.3e\+12 paths.*max_depth=12"):
        read_tree(fields, (Column("x"),))
