"""Compositions explained end to end: credits add up, and equal the definition."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import ExtraTreesClassifier, GradientBoostingRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier, MLPRegressor

import gigrad as gig
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
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1)).double().eval()
    isotonic = IsotonicRegression(out_of_bounds="clip").fit(forest.predict_proba(X)[:, 1], Y)
    calibrated = gig.import_model(forest).then(gig.import_model(isotonic))
    follows_the_definition(gig.stack([calibrated, net], [1.0, 0.5]))
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
