"""SVC(probability=True) and NuSVC(probability=True): for two classes exact, jumps of libsvm's coupling included."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, NuSVC

import gigrad as gig
from gigrad.importers.sklearn.platt import intervals
from gigrad.testing import check_importer

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 3))
Y = np.where(X[:, 0] + X[:, 1] ** 2 + 0.4 * RNG.normal(size=150) > 0.7, "pays", "fails")


@pytest.fixture(autouse=True)
def future() -> Iterator[None]:
    """scikit-learn announces that the option will go."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        yield


def one_column() -> tuple[Any, Any]:
    """A machine whose decision function is a line, and rows all over the range of its probabilities."""
    model = SVC(kernel="linear", probability=True, random_state=0).fit(X[:, :1], Y)
    slope, shift = float(model.coef_[0, 0] * model.probA_[0]), float(model.probA_[0] * model.intercept_[0])
    log_odds = np.concatenate([np.linspace(-17.0, 17.0, 200_001), *(np.array(intervals()[0])[:, None] + NEAR)])
    return model, ((log_odds + float(model.probB_[0]) - shift) / slope)[:, None]


NEAR = np.array([-1e-3, -1e-6, -1e-9, -1e-12, 1e-12, 1e-9, 1e-6, 1e-3])


def test_probabilities_are_libsvms_over_their_whole_range() -> None:
    model, rows = one_column()
    own, graph = model.predict_proba(rows), gig.import_model(model)
    assert (own[:, 1].min(), own[:, 1].max()) == pytest.approx((1e-7, 1.0 - 1e-7))
    np.testing.assert_allclose(graph.predict(rows), own[:, 1], rtol=0, atol=5e-14)
    np.testing.assert_allclose(graph.predict(rows, output="margin"), model.decision_function(rows), rtol=1e-12)


def test_libsvm_makes_up_to_two_rounds() -> None:
    edges, rounds = intervals()
    assert rounds == (1, 2, 1, 0, 1, 2, 1)
    np.testing.assert_allclose(edges, [-5.98128, -0.5950023, -0.0200007, 0.0200007, 0.7371192, 2.762765], rtol=1e-5)


def test_a_linear_machine_shares_by_what_moves_its_decision() -> None:
    """Everything is a function of one sum: each variable has its part of the sum's change, jumps or not."""
    model = SVC(kernel="linear", probability=True, random_state=0).fit(X, Y)
    starts, ends = 2.0 * X[:40], 2.0 * X[40:80]
    got = gig.explain_pairs(model, starts, ends, tol=1e-9)
    parts = model.coef_[0] * (ends - starts)
    change = model.predict_proba(ends)[:, 1] - model.predict_proba(starts)[:, 1]
    np.testing.assert_allclose(got.values, parts / parts.sum(axis=1, keepdims=True) * change[:, None], atol=1e-9)
    assert np.abs(got.gap).max() < 1e-9


@pytest.mark.parametrize(
    "model",
    [
        SVC(probability=True, random_state=0), NuSVC(nu=0.3, probability=True, random_state=0),
        SVC(kernel="poly", coef0=1.0, probability=True, random_state=0),
        SVC(kernel="sigmoid", probability=True, random_state=0),
    ],
    ids=lambda m: f"{type(m).__name__}, {m.kernel}",
)  # fmt: skip
def test_credits_are_those_of_the_definition(model: Any) -> None:
    assert check_importer(model.fit(X, Y), 2.0 * X, pairs=8).largest_difference < 1e-9


def test_both_classes_and_their_names() -> None:
    model = SVC(probability=True, random_state=0).fit(X, Y)
    pays, fails = (gig.explain(model, X[:5], X[5:25], target=name) for name in ("pays", "fails"))
    np.testing.assert_allclose(pays.predictions, model.predict_proba(X[:5])[:, 1], atol=1e-13)
    np.testing.assert_allclose(fails.predictions, model.predict_proba(X[:5])[:, 0], atol=1e-13)
    np.testing.assert_allclose(pays.values, -fails.values, atol=1e-6)


@pytest.mark.parametrize(
    "model",
    [
        make_pipeline(StandardScaler(), SVC(probability=True, random_state=0)),
        VotingClassifier([("a", SVC(probability=True, random_state=0)), ("b", LogisticRegression())], voting="soft"),
        CalibratedClassifierCV(SVC(probability=True, random_state=0), ensemble=False),
    ],
    ids=["a pipeline", "soft votes", "calibrated once more"],
)
def test_inside_other_models(model: Any) -> None:
    check_importer(model.fit(X, Y), X)


def test_more_classes_are_refused_with_what_to_do() -> None:
    three = np.digitize(X[:, 0], [-0.5, 0.5])
    graph = gig.import_model(SVC(probability=True, random_state=0).fit(X, three))
    with pytest.raises(gig.UnsupportedModelError, match=r"three or more classes.*CalibratedClassifierCV\(SVC\(\), ens"):
        graph.predict(X)
    check_importer(CalibratedClassifierCV(SVC(), ensemble=False).fit(X, three), X)


def test_a_machine_that_was_fitted_without_probabilities_has_none() -> None:
    model = SVC(random_state=0).fit(X, Y).set_params(probability=True)
    np.testing.assert_allclose(gig.import_model(model).predict(X), model.decision_function(X), rtol=1e-9)


def test_importing_says_nothing() -> None:
    model = SVC(probability=True, random_state=0).fit(X, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gig.import_model(model)


def test_a_portable_file_has_the_probability(tmp_path: Any) -> None:
    graph = gig.import_model(SVC(probability=True, random_state=0).fit(X, Y))
    graph.save(tmp_path / "svc.gig")
    np.testing.assert_array_equal(gig.Graph.load(tmp_path / "svc.gig").predict(X), graph.predict(X))
