"""Discrete and nominal columns: how they are chosen, and what the choice does to a graph."""

from __future__ import annotations

import warnings
from itertools import combinations
from math import factorial
from typing import Any

import lightgbm
import numpy as np
import pandas as pd
import pytest
import xgboost
from forests import graph_of, random_forest
from sklearn.ensemble import ExtraTreesRegressor, HistGradientBoostingRegressor
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor
from unchecked import unchecked

import gigrad as gig
from gigrad.graph import Column, Elementwise, Graph, Input, Tree, TreeEnsemble, assemble, topological

NAMES = ("flag", "count", "amount")


def stumps(*splits: tuple[int, float], kinds: tuple[str, ...] = ("number",) * 3) -> Graph:
    """A sum of stumps: column j split at a threshold."""
    source = Input(len(kinds))
    trees = [
        Tree(np.array([j, -1, -1]), np.array([t, 0, 0]), np.array([1, -1, -1]), np.array([2, -1, -1]),
             np.zeros(3, bool), np.array([0.0, 0.0, 1.0]))
        for j, t in splits
    ]  # fmt: skip
    columns = tuple(Column(n, unchecked(k)) for n, k in zip(NAMES, kinds, strict=False))
    return graph_of(columns, source, assemble(source, trees, np.zeros(1)))


def chosen(graph: Graph, reference: Any, **options: Any) -> dict[str, str]:
    return dict(gig.Explainer(graph, reference, **options).choice.why)


WHOLE = np.array([[0.0, 2.0, 3.0], [1.0, 5.0, np.nan]])


# ---------------------------------------------------------------- the rule


def test_thresholds_at_halves_make_a_column_discrete() -> None:
    assert chosen(stumps((0, 0.5), (1, 2.0), (2, 3.25)), WHOLE) == {"flag": "thresholds", "count": "thresholds"}


@pytest.mark.parametrize(
    ("threshold", "discrete"),
    [(2.00001, True), (1e-6, True), (1e-35, True), (2.0001, False), (0.3, False), (np.inf, False), (1e301, False),
     (float(np.float32(2e6 + 0.5)) + 0.1, True), (2e5 + 0.1, False)],
)  # fmt: skip
def test_a_threshold_is_near_a_half_by_a_unit_of_float32_or_1e_5(threshold: float, discrete: bool) -> None:
    assert ("flag" in chosen(stumps((0, threshold)), WHOLE)) is discrete


def test_infinite_thresholds_do_not_count_beside_others() -> None:
    assert chosen(stumps((0, 0.5), (0, np.inf), (0, -1e301)), WHOLE) == {"flag": "thresholds"}
    assert chosen(stumps((0, 0.5), (0, 0.3)), WHOLE, discrete=None) == {}


def test_a_value_between_whole_numbers_makes_a_column_continuous() -> None:
    assert chosen(stumps((0, 0.5)), np.array([[0.0, 0, 0], [0.5, 0, 0]])) == {}
    table = pd.DataFrame({"flag": [0, 1], "count": [2, 3], "amount": [1.0, 2.0]})
    graph = stumps((0, 0.3), (1, 0.3), (2, 0.3)).with_columns(NAMES)
    assert chosen(graph, table) == {"flag": "type", "count": "type"}
    assert chosen(graph, table.astype({"flag": bool, "count": "Int64", "amount": object})) == chosen(graph, table)
    objects = table.astype(object).assign(amount=pd.Series([3, None], dtype=object))
    assert chosen(graph, objects) == {"flag": "type", "count": "type", "amount": "type"}


@pytest.mark.parametrize("library", ["numpy", "pandas", "polars", "pyarrow"])
def test_the_type_is_read_in_every_library(library: str) -> None:
    table: Any = pd.DataFrame({"flag": [0, 1], "count": [2, 3], "amount": [4, 5]})
    if library == "numpy":
        table = table.to_numpy()
    elif library == "polars":
        table = pytest.importorskip(
            "polars", reason="polars is not installed, and this row is a table of it"
        ).from_pandas(table)
    elif library == "pyarrow":
        table = pytest.importorskip(
            "pyarrow", reason="pyarrow is not installed, and this row is a table of it"
        ).Table.from_pandas(table)
    assert set(chosen(stumps((0, 0.3), (1, 0.3)), table)) == {"flag", "count"}


def test_columns_that_no_tree_splits_on_are_not_listed() -> None:
    assert chosen(stumps((0, 0.5)), WHOLE.astype(object)) == {"flag": "thresholds"}
    assert chosen(stumps((0, 0.5)), [[0, 1, 2]]) == {"flag": "type"}


def test_the_callers_word_comes_first() -> None:
    graph = stumps((0, 0.5), (1, 24.0), (2, 0.3))
    assert chosen(graph, WHOLE, discrete=()) == {}
    assert chosen(graph, WHOLE, discrete=["amount", "amount"]) == {"amount": "given"}
    explainer = gig.Explainer(graph, WHOLE, discrete={"count": [36, 12, 24, 24], "flag": None}, nominal=["amount"])
    assert explainer.choice.discrete == {"flag": None, "count": (12.0, 24.0, 36.0)}
    assert explainer.choice.nominal == ("amount",)
    assert "flag" not in chosen(graph, WHOLE, nominal=["flag"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"discrete": "flag"}, "discrete must be a list of column names"),
        ({"discrete": 3}, "discrete must be a list of column names"),
        ({"nominal": {"flag": 1}}, "nominal must be a list of column names"),
        ({"discrete": ["flags"]}, "'flags' is not one of its 3 columns"),
        ({"nominal": ["flags"]}, "'flags' is not one of its 3 columns"),
        ({"discrete": ["flag"], "nominal": ["flag"]}, "not both; 'flag' is in both"),
        ({"discrete": ["amount"]}, "'amount' is a category"),
        ({"nominal": ["amount"]}, "'amount' is a category"),
        ({"discrete": {"flag": [1]}}, "two or more different finite numbers"),
        ({"discrete": {"flag": [1, np.inf]}}, "two or more different finite numbers"),
        ({"discrete": {"flag": ["a", "b"]}}, "two or more different finite numbers"),
    ],
)
def test_mistakes_are_named(options: dict[str, Any], message: str) -> None:
    graph = stumps((0, 0.5), kinds=("number", "number", "category"))
    for ask in (
        lambda: gig.Explainer(graph, WHOLE, **options),
        lambda: gig.explain_pairs(graph, WHOLE, WHOLE, **options),
        lambda: gig.explain_gap(graph, WHOLE, WHOLE, bootstrap=0, **options),
    ):
        with pytest.raises(gig.InputError, match=message):
            ask()


def test_flags_that_are_left_out_are_named_once() -> None:
    graph = stumps((0, 0.3), (1, 0.5))
    with pytest.warns(gig.ColumnWarning, match="'flag' is 0 or 1 in all reference rows") as told:
        explainer = gig.Explainer(graph, WHOLE)
    assert len(told) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        e = explainer(WHOLE)
        gig.Explainer(graph, WHOLE, discrete=())
        gig.Explainer(graph, WHOLE, nominal=["flag"])
        gig.Explainer(graph, WHOLE[:1])  # 0 throughout: it may well be an amount
    assert e.provenance["choice"]["flags_not_discrete"] == ["flag"]
    assert "0 or 1 but not discrete: 1 column (flag)" in str(e)
    assert "discrete: 1 column (count)" in str(e)
    assert "discrete: 1 column (count)" in e._repr_html_()


def test_pairs_go_by_thresholds_or_by_the_types_of_both_tables() -> None:
    graph = stumps((0, 0.5), (1, 0.3))

    def of(start: Any, end: Any) -> list[str]:
        record = gig.explain_pairs(graph, start, end).provenance["choice"]
        return [name for names in record["discrete"].values() for name in names]

    floats, ints = np.array([[0.25, 1.0, 2.0]]), np.array([[1, 2, 3]])
    assert of(floats, floats) == ["flag"]  # the rows never alter it
    assert of(ints, floats) == ["flag"]
    assert of(ints, ints) == ["flag", "count"]


def test_a_gap_takes_both_groups_for_the_reference() -> None:
    graph = stumps((0, 0.5))
    halves = np.array([[0.5, 1.0, 1.0]])
    for a, b in ((WHOLE, halves), (halves, WHOLE)):
        gap = gig.explain_gap(graph, a, b, bootstrap=0)
        assert gap.provenance["choice"] == {"discrete": {}, "nominal": []}
    assert gig.explain_gap(graph, WHOLE, WHOLE, bootstrap=0).provenance["choice"]["discrete"] == {
        "thresholds": ["flag"]
    }


# ---------------------------------------------------------------- the graph under a choice


def table(n: int = 400) -> tuple[Any, Any]:
    """Flags, a count, a term and an amount, float-typed as files often are, and a score full of interactions."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "owns": rng.integers(0, 2, n), "phone": rng.integers(0, 2, n), "late": rng.poisson(1.0, n),
            "term": rng.choice([12, 24, 36], n), "amount": np.round(rng.gamma(2.0, 10.0, n), 2),
        }
    ).astype(float)  # fmt: skip
    y = 3 * X["owns"] * (X["late"] > 1) + 2 * X["phone"] * (X["term"] > 20) + X["owns"] * X["phone"] * X["amount"] / 20
    return X, y


@pytest.fixture(scope="module")
def models() -> dict[str, Any]:
    X, y = table()
    trees = {
        "xgboost": xgboost.XGBRegressor(n_estimators=20, max_depth=4, learning_rate=0.4),
        "lightgbm": lightgbm.LGBMRegressor(n_estimators=20, num_leaves=12, verbose=-1),
        "tree": DecisionTreeRegressor(max_depth=6, random_state=0),
        "scaled": make_pipeline(StandardScaler(), DecisionTreeRegressor(max_depth=6, random_state=0)),
    }
    for model in trees.values():
        model.fit(X, y)
    layers = MLPRegressor(hidden_layer_sizes=(8,), max_iter=300, random_state=0, solver="lbfgs")
    net = make_pipeline(StandardScaler(), layers).fit(X, y)
    stacked = gig.stack([trees["xgboost"], net], head=_head(trees["xgboost"], net, X, y), passthrough=True)
    return {**trees, "sum": gig.average([*trees.values(), net]), "stack": stacked}


def _head(trees: Any, net: Any, X: Any, y: Any) -> Any:
    columns = X.assign(trees=trees.predict(X), net=net.predict(X))
    columns = columns[["trees", "net", *X.columns]]
    return DecisionTreeRegressor(max_depth=5, random_state=0).fit(columns.to_numpy(), y)


@pytest.mark.parametrize("name", ["xgboost", "lightgbm", "tree", "scaled", "sum", "stack"])
def test_one_choice_holds_for_all_parts(name: str, models: dict[str, Any]) -> None:
    X, _ = table()
    explainer = gig.Explainer(models[name], X.head(30))
    assert set(explainer.choice.discrete) <= {"owns", "phone", "late", "term"}
    assert {"owns", "phone", "late"} <= set(explainer.choice.discrete)
    graph, columns = explainer.scorer.graph, list(X.columns)
    trees = [t for t in topological(graph.score) if isinstance(t, TreeEnsemble) and t.source is graph.input]
    assert trees
    for tree in trees:
        plain = np.abs(tree.place) < 1e300  # not those that only tell missing values apart
        for flag in ("owns", "phone"):
            assert set(tree.place[plain & (tree.feature == columns.index(flag))]) <= {0.5}
        assert (np.mod(tree.place[plain & (tree.feature == columns.index("late"))], 1.0) == 0.5).all()
    # the models' own predictions are still compared, through the replaced nodes
    assert len(graph.witnesses) == len(gig.import_model(models[name]).witnesses)
    e = explainer(X.tail(5))
    assert np.abs(e.gap).max() < 1e-5
    assert e.provenance["definition"] == 2


def test_the_values_of_a_term_put_splits_half_way_between_them(models: dict[str, Any]) -> None:
    X, _ = table()
    listed = gig.Explainer(models["xgboost"], X.head(30), discrete={"term": [12, 24, 36]})
    tree = listed.scorer.node
    assert isinstance(tree, TreeEnsemble)
    assert set(tree.place[tree.feature == 3]) == {18.0, 30.0}
    other = gig.Explainer(models["xgboost"], X.head(30)).scorer.node
    assert isinstance(other, TreeEnsemble)
    assert set(other.place[tree.feature == 3]) == {23.5, 35.5}


def test_nominal_columns_change_at_once_in_every_part(models: dict[str, Any]) -> None:
    X, _ = table()
    explainer = gig.Explainer(models["sum"], X.head(4), nominal=["owns", "term"])
    graph = explainer.scorer.graph
    assert graph.input.nominal == (0, 3)
    for tree in topological(graph.score):
        if isinstance(tree, TreeEnsemble):
            assert np.isnan(tree.place[np.isin(tree.feature, (0, 3))]).all()
    e = explainer(X.tail(3))
    assert np.abs(e.gap).max() < 1e-5


def shapley(ask: Any, start: Any, end: Any) -> Any:
    """Baseline Shapley values by enumeration."""
    moved = np.flatnonzero(start != end)
    out, k = np.zeros(len(start)), len(moved)
    for j in moved:
        others = [i for i in moved if i != j]
        for size in range(k):
            weight = factorial(size) * factorial(k - size - 1) / factorial(k)
            for some in combinations(others, size):
                row = start.copy()
                row[list(some)] = end[list(some)]
                without = ask(row)
                row[j] = end[j]
                out[j] += weight * (ask(row) - without)
    return out


@pytest.mark.parametrize("name", ["xgboost", "lightgbm", "tree", "sum"])
def test_flags_alone_are_baseline_shapley_values(name: str, models: dict[str, Any]) -> None:
    graph = gig.import_model(models[name])
    if name != "sum":  # a net reads the flags along the straight path, unless they are nominal
        graph = graph.then(_Squash())
    options: dict[str, Any] = {"nominal": ["owns", "phone", "late"]} if name == "sum" else {}
    start, end = np.array([0.0, 1.0, 0.0, 24.0, 20.0]), np.array([1.0, 0.0, 1.0, 24.0, 20.0])
    found = gig.explain_pairs(graph, start[None], end[None], **options).values[0]
    right = shapley(lambda row: float(graph.predict(row[None])[0]), start, end)
    assert np.abs(found - right).max() < 1e-9 * max(np.abs(right).max(), 1.0)


class _Squash(gig.graph.Transform):
    def apply(self, source: Any) -> Any:
        return Elementwise(source, "tanh")


def moved(graph: Graph, rng: np.random.Generator, columns: list[int]) -> Graph:
    """The same decisions on whole numbers, with thresholds elsewhere in the gaps of some columns."""
    trees = graph.margin
    assert isinstance(trees, TreeEnsemble)
    at = np.isin(trees.feature, columns) & (trees.category_set < 0)
    threshold = np.where(at, np.floor(trees.threshold) + rng.choice([0.0, 0.25, 0.5, 0.999], len(at)), trees.threshold)
    grown = TreeEnsemble(
        **{**{f: getattr(trees, f) for f in trees.__dataclass_fields__}, "threshold": threshold, "place": threshold,
           "equal_low": threshold, "equal_high": threshold}
    )  # fmt: skip
    score = Elementwise(grown, "sigmoid") if graph.score is not graph.margin else grown
    return graph_of(graph.columns, graph.input, score, grown)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("output", [None, "margin"])
def test_moving_thresholds_inside_gaps_changes_no_credit(seed: int, output: str | None) -> None:
    rng = np.random.default_rng(seed)
    columns = tuple(Column(f"x{j}", "category" if j == 5 else "number") for j in range(6))
    source = Input(6)
    margin = random_forest(rng, columns, source, trees=6)
    graph = graph_of(columns, source, Elementwise(margin, "sigmoid"), margin)
    rows = np.column_stack([rng.integers(0, 4, (40, 5)), rng.integers(0, 4, 40)]).astype(float)
    rows[:, 4] /= 2.0  # continuous: its thresholds stay where they are
    rows[rng.random(rows.shape) < 0.1] = np.nan
    discrete = ["x0", "x1", "x2", "x3"]
    options: dict[str, Any] = {"discrete": discrete, "output": output}
    credit = gig.explain(graph, rows[20:], rows[:20], **options).values
    other = gig.explain(moved(graph, rng, [0, 1, 2, 3]), rows[20:], rows[:20], **options).values
    assert np.abs(other - credit).max() <= 1e-12 * np.abs(credit).max()
    groups = {"both": ["x0", "x1"]}
    credit = gig.explain(graph, rows[20:], rows[:20], groups=groups, **options).values
    other = gig.explain(moved(graph, rng, [0, 1, 2, 3]), rows[20:], rows[:20], groups=groups, **options).values
    assert np.abs(other - credit).max() <= 1e-12 * np.abs(credit).max()


@pytest.mark.parametrize("seed", range(6))
def test_counting_down_instead_of_up_changes_nothing(seed: int) -> None:
    rng = np.random.default_rng(seed)
    columns = tuple(Column(f"x{j}") for j in range(4))
    source = Input(4)
    trees = random_forest(rng, columns, source, trees=5)
    at = (trees.feature >= 0) & (trees.feature < 2)
    swapped = {"left": np.where(at, trees.right, trees.left), "right": np.where(at, trees.left, trees.right)}
    down = np.where(at, 3.0 - np.floor(trees.threshold) - 0.75, trees.threshold)  # 3 - x <= t
    fields = {f: getattr(trees, f) for f in trees.__dataclass_fields__} | swapped
    fields |= {"threshold": down, "place": down, "equal_low": down, "equal_high": down}
    other = TreeEnsemble(**{**fields, "missing_left": np.where(at, ~trees.missing_left, trees.missing_left)})
    rows = rng.integers(0, 4, (30, 4)).astype(float)
    recoded = rows.copy()
    recoded[:, :2] = 3.0 - recoded[:, :2]
    options: dict[str, Any] = {"discrete": ["x0", "x1"]}
    credit = gig.explain(graph_of(columns, source, trees), rows[15:], rows[:15], **options).values
    again = gig.explain(graph_of(columns, source, other), recoded[15:], recoded[:15], **options).values
    assert np.abs(credit - again).max() <= 1e-12 * np.abs(credit).max()


def test_four_libraries_give_half_each() -> None:
    catboost = pytest.importorskip("catboost", reason="catboost is not installed, and the model is of it")
    X = pd.DataFrame({"flag": [0, 0, 1, 1] * 50, "region": pd.Categorical(["A", "B"] * 100)})
    y = 100.0 * ((X["flag"] == 1) & (X["region"] == "B"))
    text = X.astype({"region": str})
    fitted = [
        (xgboost.XGBRegressor(n_estimators=1, learning_rate=1, max_depth=2, reg_lambda=0, enable_categorical=True), X),
        (lightgbm.LGBMRegressor(n_estimators=1, learning_rate=1, min_child_samples=1, verbose=-1, min_data_per_group=1,
                                cat_smooth=0, cat_l2=0), X),
        (HistGradientBoostingRegressor(max_iter=1, learning_rate=1, min_samples_leaf=1), X),
        (catboost.CatBoostRegressor(iterations=1, learning_rate=1, depth=2, l2_leaf_reg=0, verbose=0,
                                    cat_features=["region"], one_hot_max_size=5), text),
    ]  # fmt: skip
    for model, rows in fitted:
        model.fit(rows, y)
        credit = gig.explain(model, rows.iloc[[3]], rows.iloc[[0]]).values[0]
        assert np.allclose(credit, 50.0, rtol=1e-6), type(model).__name__


def test_answers_do_not_depend_on_the_explained_rows_or_their_types(models: dict[str, Any]) -> None:
    X, _ = table()
    explainer = gig.Explainer(models["xgboost"], X.head(30))
    few = X.tail(4)
    credit = explainer(few).values
    ints = few.astype({"owns": int, "phone": bool, "late": "int8", "term": "Int64"})
    assert np.array_equal(explainer(ints).values, credit)
    odd = pd.concat([few, few.assign(owns=0.37, late=0.5)])
    assert np.array_equal(explainer(odd).values[:4], credit)
    assert np.abs(explainer(odd).gap).max() < 1e-5  # values outside of the support: sides decide


def test_random_thresholds_need_a_type_or_a_word() -> None:
    X, y = table()
    model = ExtraTreesRegressor(10, max_depth=5, random_state=0).fit(X, y)
    with pytest.warns(gig.ColumnWarning, match="'owns', 'phone' are 0 or 1"):
        assert gig.Explainer(model, X.head(30)).choice.discrete == {}
    typed = gig.Explainer(model, X.head(30).astype({"owns": int, "phone": int}))
    assert typed.choice.why == {"owns": "type", "phone": "type"}
    named = gig.Explainer(model, X.head(30), discrete=["owns", "phone"])
    assert np.array_equal(typed(X.tail(3)).values, named(X.tail(3)).values)
