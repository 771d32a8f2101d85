"""Compositions explained end to end: credits add up, and equal the definition."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import lightgbm
import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.compose import make_column_transformer
from sklearn.ensemble import ExtraTreesClassifier, GradientBoostingRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import gigrad as gig
from gigrad._io.tables import read_rows
from gigrad.graph import Graph
from gigrad.testing import brute_force

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(150, 4)).round(1), columns=list("abcd"))
Y = (X["a"] + X["b"] * X["c"] > 0.3).astype(int)
ENDS, STARTS = X.iloc[:2], X.iloc[50:52]


@pytest.fixture(scope="module")
def forest() -> Any:
    return ExtraTreesClassifier(4, max_depth=4, random_state=0).fit(X, Y)


@pytest.fixture(scope="module")
def net() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return MLPClassifier((5,), activation="tanh", max_iter=100, random_state=0).fit(X[["b", "c", "d"]], Y)


@pytest.fixture(scope="module")
def logit() -> Any:
    return LogisticRegression().fit(X[["d", "a"]], Y)


def follows_the_definition(graph: Graph, *, tol: float = 1e-9) -> None:
    explained = gig.explain_pairs(graph, STARTS, ENDS, tol=tol)
    assert np.abs(explained.gap).max() < tol
    values = explained.values.reshape(len(ENDS), 4, -1)
    order = list(graph.feature_names)
    for i in range(len(ENDS)):
        want = brute_force(graph, STARTS[order].to_numpy()[i], ENDS[order].to_numpy()[i])
        np.testing.assert_allclose(values[i], want, atol=1e-8)


def test_a_stack_of_a_forest_a_net_and_a_linear_model(forest: Any, net: Any, logit: Any) -> None:
    scores = np.stack([forest.predict_proba(X), net.predict_proba(X[["b", "c", "d"]])])[:, :, 1].T
    head = LogisticRegression(C=100.0).fit(np.c_[scores, logit.predict_proba(X[["d", "a"]])[:, 1]], Y)
    follows_the_definition(gig.stack([forest, net, logit], head))


def test_a_ranked_stack_of_stacks_with_passthrough(forest: Any, net: Any, logit: Any) -> None:
    mean = gig.average([forest, net], [2, 1])
    rank = gig.SmoothedECDF.fit(mean.predict(X), knots=4)
    inner = pd.DataFrame({"score": logit.predict_proba(X[["d", "a"]])[:, 1], "c": X["c"]})
    right = gig.stack([logit], LogisticRegression().fit(inner, Y), passthrough=True)
    left = mean.then(rank)
    both = np.c_[left.predict(X), right.predict(X)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        head = MLPRegressor(hidden_layer_sizes=(4,), max_iter=50, random_state=1).fit(both, Y)
    graph = gig.stack([left, right], head)
    follows_the_definition(graph.then(gig.SmoothedECDF.fit(graph.predict(X), knots=5)))


def test_a_calibrated_forest_beside_a_torch_net(forest: Any) -> None:
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(4, 2), torch.nn.ReLU(), torch.nn.Linear(2, 1)).double().eval()
    isotonic = IsotonicRegression(out_of_bounds="clip").fit(forest.predict_proba(X)[:, 1], Y)
    calibrated = gig.import_model(forest).then(gig.import_model(isotonic))
    head = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.GELU(), torch.nn.Linear(3, 2)).double().eval()
    follows_the_definition(gig.stack([calibrated, net], head))


def test_a_formula_over_scores(forest: Any, logit: Any) -> None:
    odds = gig.function(lambda z: z[:, 0] * z[:, 1], lambda z: z[:, ::-1], 2)
    follows_the_definition(gig.stack([forest, logit], odds))


def test_an_average_is_explained_by_the_average_of_explanations(forest: Any, net: Any) -> None:
    mean = gig.explain(gig.average([forest, net], [3, 1]), ENDS, X, tol=1e-9)
    alone = gig.explain(forest, ENDS, X, tol=1e-9).values
    other = np.zeros((2, 4))
    other[:, 1:] = gig.explain(net, ENDS[["b", "c", "d"]], X[["b", "c", "d"]], tol=1e-9).values
    np.testing.assert_allclose(mean.values, 0.75 * alone + 0.25 * other, atol=1e-10)
    assert np.abs(mean.gap).max() < 1e-10


def test_a_head_of_weight_one_changes_nothing(forest: Any) -> None:
    plain = gig.explain(forest, ENDS, X)
    headed = gig.explain(gig.stack([forest], [1.0]), ENDS, X)
    np.testing.assert_array_equal(headed.values, plain.values)
    np.testing.assert_array_equal(headed.base_values, plain.base_values)


def test_several_outputs_of_a_head(forest: Any, net: Any) -> None:
    two = gig.stack([forest, net], np.array([[1.0, 2.0], [0.5, -1.0]]))
    explained = gig.explain(two, ENDS, X, tol=1e-9)
    assert explained.values.shape == (2, 4, 2)
    np.testing.assert_allclose(explained.values.sum(axis=1) + explained.base_values, explained.predictions, atol=1e-9)
    first = gig.explain(two, ENDS, X, target=0, tol=1e-9)
    np.testing.assert_allclose(first.values, explained.values[:, :, 0], atol=1e-10)


def test_trees_over_the_scores_of_trees_add_up(forest: Any) -> None:
    other = ExtraTreesClassifier(3, max_depth=3, random_state=1).fit(X, Y)
    z = np.c_[forest.predict_proba(X)[:, 1], other.predict_proba(X)[:, 1]]
    head = GradientBoostingRegressor(n_estimators=5, max_depth=2, random_state=0).fit(z, X["a"])
    explained = gig.explain(gig.stack([forest, other], head), ENDS, X)
    np.testing.assert_allclose(explained.predictions, head.predict(z[:2]), rtol=1e-12)
    assert np.abs(explained.gap).max() < 1e-12


# ---------------------------------------------------------------- categories


def loans() -> Any:
    rng = np.random.default_rng(1)
    table = pd.DataFrame(
        {
            "amount": rng.normal(size=200).round(2),
            "purpose": pd.Categorical(rng.choice(["car", "house", "boat"], 200)),
            "children": rng.integers(0, 4, 200),
        }
    )
    return table, ((table["purpose"] == "car") ^ (table["amount"] > 0) ^ (table["children"] == 2)).astype(int)


def boosted(table: Any, y: Any) -> Any:
    settings = {"n_estimators": 5, "num_leaves": 6, "min_child_samples": 5, "cat_smooth": 1, "min_data_per_group": 1}
    return lightgbm.LGBMClassifier(verbose=-1, n_jobs=1, **settings).fit(table, y)


def equals_the_definition_on(graph: Graph, table: Any) -> None:
    rows = read_rows(table, graph, what="X").matrix
    explained = gig.explain_pairs(graph, table[:3], table[3:6], tol=1e-9)
    assert np.abs(explained.gap).max() < 1e-9
    for i in range(3):
        want = brute_force(graph, rows[i], rows[3 + i])[:, 0]
        np.testing.assert_allclose(explained.values[i], want, atol=1e-8)


def test_one_column_that_is_a_number_here_and_a_category_there() -> None:
    table, y = loans()
    dummies = make_column_transformer((OneHotEncoder(), ["purpose", "children"]), (StandardScaler(), ["amount"]))
    models = [
        boosted(table, y),
        make_pipeline(dummies, LogisticRegression()).fit(table, y),
        ExtraTreesClassifier(4, max_depth=4, random_state=0).fit(table[["children", "amount"]], y),
        LogisticRegression().fit(table[["children"]], y),
    ]
    scores = np.column_stack([gig.import_model(m).predict(table) for m in models])
    graph = gig.stack(models, LogisticRegression(C=50.0).fit(scores, y))
    kinds = {c.name: (c.kind, c.labels) for c in graph.columns}
    assert kinds == {
        "amount": ("number", None),
        "purpose": ("category", ("boat", "car", "house")),
        "children": ("category", (0, 1, 2, 3)),
    }
    equals_the_definition_on(graph, table)


def test_a_head_of_trees_that_reads_labels_beside_scores() -> None:
    table, y = loans()
    below = boosted(table, y)
    above = table[["purpose", "amount"]].assign(score=below.predict_proba(table)[:, 1])[["score", "purpose", "amount"]]
    graph = gig.stack([below], boosted(above, y), passthrough=True)
    equals_the_definition_on(graph, table)
    assert np.abs(gig.explain(graph, table[:5], table).gap).max() < 1e-12
    unmoved = gig.stack([below], boosted(above.assign(score=0.0), y), passthrough=True)  # its trees leave the score out
    alone = gig.explain(boosted(table[["purpose", "amount"]], y), table[:5], table)
    got = gig.explain(unmoved, table[:5], table)
    np.testing.assert_allclose(got.values[:, [1, 0]], alone.values, atol=1e-12)
    np.testing.assert_allclose(got.values[:, 2], 0.0, atol=1e-15)


def test_a_composition_can_be_pickled(forest: Any, net: Any) -> None:
    graph = gig.stack([forest, net], [1.0, 2.0]).then(gig.SmoothedECDF([0.0, 3.0], [0.0, 1.0]))
    again = pickle.loads(pickle.dumps(graph))
    np.testing.assert_array_equal(again.predict(X), graph.predict(X))
    np.testing.assert_array_equal(gig.explain(again, ENDS, X).values, gig.explain(graph, ENDS, X).values)
