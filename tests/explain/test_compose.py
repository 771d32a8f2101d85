"""Stacks, averages and their nestings: predictions must equal the composition by hand."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
import xgboost as xgb
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.neural_network import MLPClassifier, MLPRegressor

import gigrad as gig
from gigrad._io.tables import read_rows
from gigrad.graph import Graph, Input, TreeEnsemble, own_values, topological

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(200, 4)), columns=list("abcd"))
Y = (X["a"] + X["b"] * X["c"] > 0.3).astype(int)
CLASSES = np.digitize(X["a"], [-0.5, 0.5])
REAL = X["a"] - X["d"] ** 2


@pytest.fixture(scope="module")
def gbm() -> Any:
    return xgb.XGBClassifier(n_estimators=12, max_depth=3, n_jobs=1).fit(X, Y)


@pytest.fixture(scope="module")
def net() -> Any:
    return MLPClassifier((6,), activation="tanh", max_iter=300, tol=1e-3, random_state=0).fit(X[["b", "c"]], Y)


@pytest.fixture(scope="module")
def logit() -> Any:
    return LogisticRegression().fit(X[["d", "a"]], Y)


@pytest.fixture(autouse=True)
def _unfinished_nets_will_do() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def agrees(graph: Graph, want: Any, table: Any = X) -> None:
    """The graph's own numbers and, exactly, those that the models' own libraries compose to."""
    want = np.asarray(want, np.float64).reshape(len(table), -1)
    rows = read_rows(table, graph, what="X")
    np.testing.assert_allclose(graph.predict(table).reshape(want.shape), want, rtol=1e-5, atol=1e-6)
    own = own_values(graph.score, graph.witnesses, graph.input, rows)
    np.testing.assert_allclose(own, want, rtol=1e-12, atol=1e-12)


def positive(model: Any, table: Any) -> Any:
    return model.predict_proba(table)[:, 1].astype(np.float64)


def scores(gbm: Any, net: Any, logit: Any) -> Any:
    return np.c_[positive(gbm, X), positive(net, X[["b", "c"]]), positive(logit, X[["d", "a"]])]


def test_a_stack_under_a_logistic_head(gbm: Any, net: Any, logit: Any) -> None:
    z = scores(gbm, net, logit)
    head = LogisticRegression().fit(z, Y)
    graph = gig.stack([gbm, net, logit], head)
    assert graph.feature_names == ("a", "b", "c", "d")
    assert graph.output_names == ("1",)
    agrees(graph, head.predict_proba(z)[:, 1])
    np.testing.assert_allclose(graph.predict(X, output="margin"), head.decision_function(z), rtol=1e-6, atol=1e-6)
    agrees(graph, head.predict_proba(z)[:, 1], X[["d", "c", "b", "a"]])


def test_a_stack_of_margins(gbm: Any, logit: Any) -> None:
    z = np.c_[gbm.predict(X, output_margin=True), logit.decision_function(X[["d", "a"]])].astype(np.float64)
    head = MLPRegressor(hidden_layer_sizes=(5,), max_iter=200, random_state=0).fit(z, REAL)
    agrees(gig.stack([gbm, logit], head, output="margin"), head.predict(z))


def test_a_head_of_weights_is_used_as_it_is(gbm: Any, net: Any) -> None:
    z = np.c_[positive(gbm, X), positive(net, X[["b", "c"]])]
    agrees(gig.stack([gbm, net], [2.0, -1.0]), 2 * z[:, 0] - z[:, 1])
    two = gig.stack([gbm, net], np.array([[1.0, 0.0], [0.5, 0.5]]))
    assert two.output_names == ("0", "1")
    agrees(two, z @ np.array([[1.0, 0.5], [0.0, 0.5]]))


def test_multiclass_models_give_all_their_classes(net: Any) -> None:
    many = xgb.XGBClassifier(n_estimators=6, max_depth=2, n_jobs=1).fit(X, CLASSES)
    z = np.c_[many.predict_proba(X).astype(np.float64), positive(net, X[["b", "c"]])]
    head = LogisticRegression().fit(z, CLASSES)
    graph = gig.stack([many, net], head)
    assert graph.output_names == ("0", "1", "2")
    agrees(graph, head.predict_proba(z))


def test_passthrough_appends_the_columns_by_name(gbm: Any, net: Any) -> None:
    z = np.c_[positive(gbm, X), positive(net, X[["b", "c"]])]
    table = pd.DataFrame(z, columns=["first", "second"]).assign(d=X["d"].to_numpy(), b=X["b"].to_numpy())
    head = LogisticRegression().fit(table, Y)
    agrees(gig.stack([gbm, net], head, passthrough=True), head.predict_proba(table)[:, 1])
    array = np.c_[z, X.to_numpy()]
    unnamed = gig.import_model(LogisticRegression().fit(array, Y))
    with pytest.raises(gig.InputError, match=r"LogisticRegression does not know its columns by name.*with_columns"):
        gig.stack([gbm, net], unnamed, passthrough=True)
    only = gig.stack([gbm], LogisticRegression().fit(array[:, [0, 2, 3, 4, 5]], Y), passthrough=True)
    want = LogisticRegression().fit(array[:, [0, 2, 3, 4, 5]], Y).predict_proba(array[:, [0, 2, 3, 4, 5]])[:, 1]
    agrees(only, want)


def test_passthrough_may_bring_columns_of_its_own(net: Any) -> None:
    table = pd.DataFrame({"score": positive(net, X[["b", "c"]]), "d": X["d"]})
    head = Ridge().fit(table, REAL)
    graph = gig.stack([net], head, passthrough=True)
    assert graph.feature_names == ("b", "c", "d")
    agrees(graph, head.predict(table))


def test_trees_over_scores(gbm: Any, logit: Any) -> None:
    z = np.c_[positive(gbm, X), positive(logit, X[["d", "a"]])]
    head = xgb.XGBRegressor(n_estimators=5, max_depth=2, n_jobs=1).fit(z, REAL)
    graph = gig.stack([gbm, logit], head)
    over = [t for t in topological(graph.score) if isinstance(t, TreeEnsemble) and not isinstance(t.source, Input)]
    assert len(over) == 1
    # XGBoost splits at scores it was fitted on, and knows them in float32: a row that sits on one has no sure side.
    thresholds = over[0].threshold[over[0].feature >= 0]
    clear = np.abs(z[:, :, None] - thresholds).min(axis=(1, 2)) > 1e-6
    assert clear.mean() > 0.9
    agrees(graph, head.predict(z)[clear], X[clear])
    own_values(graph.score, graph.witnesses, graph.input, read_rows(X, graph, what="X"))


def test_averages(gbm: Any, net: Any, logit: Any) -> None:
    z = scores(gbm, net, logit)
    agrees(gig.average([gbm, net, logit]), z.mean(axis=1))
    agrees(gig.average([gbm, net, logit], [1, 1, 2]), z @ [0.25, 0.25, 0.5])
    margins = gig.average([gbm, logit], output="margin")
    agrees(margins, (gbm.predict(X, output_margin=True) + logit.decision_function(X[["d", "a"]])) / 2)
    np.testing.assert_array_equal(margins.predict(X), margins.predict(X, output="margin"))
    first, second = (LogisticRegression(C=c).fit(X, CLASSES) for c in (0.1, 10.0))
    agrees(gig.average([first, second], [3, 1]), 0.75 * first.predict_proba(X) + 0.25 * second.predict_proba(X))


def test_nesting(gbm: Any, net: Any, logit: Any) -> None:
    """A stack of (a ranked average) and (a calibrated stack with passthrough), ranked."""
    z = scores(gbm, net, logit)
    mean = z[:, :2].mean(axis=1)
    rank = gig.SmoothedECDF.fit(mean, knots=20)
    left = gig.average([gbm, net]).then(rank)
    inner_table = pd.DataFrame({"s": z[:, 2], "c": X["c"]})
    inner = LinearRegression().fit(inner_table, Y)
    steps = IsotonicRegression(out_of_bounds="clip").fit(inner.predict(inner_table), Y)
    right = gig.stack([logit], inner, passthrough=True).then(gig.import_model(steps))
    both = np.c_[rank(mean), steps.predict(inner.predict(inner_table))]
    head = MLPRegressor(hidden_layer_sizes=(4,), max_iter=200, random_state=1).fit(both, REAL)
    top = gig.SmoothedECDF.fit(head.predict(both))
    graph = gig.stack([left, right], head).then(top)
    agrees(graph, top(head.predict(both)))
    assert len([n for n in topological(graph.score) if isinstance(n, Input)]) == 1


def test_a_torch_head_and_a_forest() -> None:
    forest = RandomForestClassifier(5, max_depth=3, random_state=0).fit(X.to_numpy(), Y)
    torch.manual_seed(0)
    head = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU(), torch.nn.Linear(3, 1)).double().eval()
    logit = LogisticRegression().fit(X.to_numpy(), Y)
    z = np.c_[forest.predict_proba(X.to_numpy())[:, 1], logit.predict_proba(X.to_numpy())[:, 1]]
    agrees(gig.stack([forest, logit], head), head(torch.from_numpy(z)).detach().numpy(), X.to_numpy())


def wrong() -> dict[str, Any]:
    models = [LogisticRegression().fit(X, Y), LogisticRegression().fit(X, CLASSES)]
    four, nine = LinearRegression().fit(X, REAL), LinearRegression().fit(np.zeros((3, 9)), np.zeros(3))
    return {
        "list of one or more models; got an empty one": lambda: gig.stack([], four),
        "list of one or more models; got a LinearRegression": lambda: gig.average(four),
        "4 scores (1 from LogisticRegression, 3 from LogisticRegression); LinearRegression reads 9 columns. If": (
            lambda: gig.stack(models, nine)
        ),
        "reads 4 columns in all": lambda: gig.stack(models, four, passthrough=True),
        "must be finite numbers": lambda: gig.stack(models, [1.0, np.nan, 0.0, 0.0]),
        "weighted sum reads 2 columns": lambda: gig.stack(models, [1.0, 2.0]),
        "same outputs in the same order": lambda: gig.average(models),
        "one number a model, 2": lambda: gig.average([four, four], [1.0]),
        "not negative": lambda: gig.average([four, four], [1.0, -1.0]),
        "then must be given": lambda: gig.import_model(four).then(four),
        'output must be None, "margin"': lambda: gig.stack([four], [1.0], output="odds"),
    }


@pytest.mark.parametrize("message", wrong())
def test_what_cannot_be_joined_says_why(message: str) -> None:
    with pytest.raises(gig.InputError, match=re.escape(message)):
        wrong()[message]()
