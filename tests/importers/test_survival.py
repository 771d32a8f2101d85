"""Survival models at a horizon: `target` is a time, the margin the log of the partial hazard."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conformance import data
from conformance.rows_survival import durations, lifelines, sksurv

import gigrad as gig
from gigrad._io.tables import read_rows
from gigrad.testing import brute_force

pytestmark = pytest.mark.filterwarnings("ignore")


def cox() -> Any:
    pytest.importorskip("lifelines", reason="lifelines is not installed, and the model is of it")
    return lifelines()()


def forest(**options: Any) -> Any:
    pytest.importorskip("sksurv", reason="scikit-survival is not installed, and the model is of it")
    settings = {"n_estimators": 5, "max_depth": 3, "random_state": 0, **options}
    return sksurv("ensemble.RandomSurvivalForest", **settings)()


@pytest.mark.parametrize("time", [3, 3.0, "3", 2.5, 4.75])
def test_survival_at_a_time_of_lifelines(time: Any) -> None:
    model, X = cox()
    explained = gig.explain(model, X[:8], X[8:30], target=time)
    own = model.predict_survival_function(X, times=[float(time)]).to_numpy()[0]
    np.testing.assert_allclose(explained.predictions, own[:8], rtol=1e-12)
    np.testing.assert_allclose(explained.values.sum(axis=1), own[:8] - own[8:30].mean(), atol=1e-9)
    rows = read_rows(X, gig.import_model(model), what="X").matrix
    pair = gig.explain_pairs(model, X[:1], X[9:10], target=time).values[0]
    np.testing.assert_allclose(pair, brute_force(model, rows[0], rows[9], target=time)[:, 0], atol=1e-9)


def test_the_margin_is_the_log_of_the_partial_hazard() -> None:
    model, X = cox()
    explained = gig.explain_pairs(model, X[:20], X[20:40], output="margin", target=3)
    moved = X[20:40].to_numpy() - X[:20].to_numpy()
    np.testing.assert_allclose(explained.values, moved * model.params_.to_numpy(), atol=1e-12)
    without = gig.explain_pairs(model, X[:20], X[20:40], output="margin")
    np.testing.assert_array_equal(without.values, explained.values)


@pytest.mark.parametrize("time", [1, 3, 3.7, 6])
def test_survival_at_a_time_of_a_forest_is_that_of_the_last_step(time: float) -> None:
    model, X = forest()
    explained = gig.explain(model, X[:8], X[8:30], target=time)
    own = np.array([curve(time) for curve in model.predict_survival_function(X)])
    np.testing.assert_allclose(explained.predictions, own[:8], rtol=1e-12)
    np.testing.assert_allclose(explained.values.sum(axis=1), own[:8] - own[8:30].mean(), atol=1e-12)
    margin = gig.explain(model, X[:8], X[8:30], output="margin")
    np.testing.assert_allclose(margin.predictions, model.predict(X[:8]), rtol=1e-12)


@pytest.mark.parametrize("time", [7, -1, "soon", True, float("nan"), float("inf")])
def test_times_that_the_model_has_not_seen_are_refused(time: Any) -> None:
    model, X = forest()
    with pytest.raises(gig.InputError, match="target must be a time up to 6, the last that the model has seen; got"):
        gig.explain(model, X[:2], X[8:30], target=time)


def test_a_model_that_knows_its_columns_by_name_is_asked_quietly() -> None:
    pytest.importorskip("sksurv", reason="scikit-survival is not installed, and the model is of it")
    from sksurv.linear_model import CoxPHSurvivalAnalysis
    from sksurv.util import Surv

    months, event = durations()
    X = data.named()
    model = CoxPHSurvivalAnalysis().fit(X, Surv.from_arrays(event, months))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        explained = gig.explain(model, X[["debt", "income", "age", "arrears"]].head(3), X, target=3)
    assert explained.feature_names == tuple(X.columns)


def test_a_time_is_never_a_position() -> None:
    """5 is the fifth month and not the sixth output."""
    model, X = forest()
    assert model.unique_times_.tolist() == [1, 2, 3, 4, 5, 6]
    explained = gig.explain(model, X[:4], X[8:20], target=5)
    np.testing.assert_allclose(explained.predictions, model.predict_survival_function(X[:4], return_array=True)[:, 4])
    assert explained.output_names == ("5",)


def test_times_are_kept_in_portable_files(tmp_path: Path) -> None:
    model, X = forest()
    graph = gig.import_model(model)
    graph.save(tmp_path / "forest.gig")
    again = gig.Graph.load(tmp_path / "forest.gig")
    before, after = (gig.explain(g, X[:3], X[8:20], target=2.5).values for g in (graph, again))
    np.testing.assert_array_equal(before, after)


def test_pipelines_keep_the_times() -> None:
    pytest.importorskip("sksurv", reason="scikit-survival is not installed, and the model is of it")
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sksurv.linear_model import CoxPHSurvivalAnalysis
    from sksurv.util import Surv

    months, event = durations()
    model = make_pipeline(StandardScaler(), CoxPHSurvivalAnalysis()).fit(
        data.numbers(), Surv.from_arrays(event, months)
    )
    X = data.numbers()
    explained = gig.explain(model, X[:4], X[8:20], target=3.5)
    own = np.array([curve(3.5) for curve in model.predict_survival_function(X[:4])])
    np.testing.assert_allclose(explained.predictions, own, rtol=1e-9)


def test_what_cannot_be_exact_is_refused_by_name() -> None:
    pytest.importorskip("lifelines", reason="lifelines is not installed, and the models are of it")
    from lifelines import CoxPHFitter

    months, event = durations()
    table = data.named().assign(months=months, event=event, arrears=(data.numbers()[:, 3] > 0).astype(int))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        strata = CoxPHFitter().fit(table, "months", "event", strata=["arrears"])
        formula = CoxPHFitter().fit(table, "months", "event", formula="age * debt")
    with pytest.raises(gig.UnsupportedModelError, match="another baseline for each stratum"):
        gig.import_model(strata)
    with pytest.raises(gig.UnsupportedModelError, match="with a formula is not imported"):
        gig.import_model(formula)
    with pytest.raises(gig.NotFittedError, match="has not been fitted"):
        gig.import_model(CoxPHFitter())


def test_models_without_curves_say_so() -> None:
    X = forest()[1]
    with pytest.raises(gig.UnsupportedModelError, match="low_memory=True stores no survival curves"):
        gig.import_model(forest(low_memory=True)[0])
    net = sksurv("linear_model.CoxnetSurvivalAnalysis", n_alphas=3)()[0]
    with pytest.raises(gig.UnsupportedModelError, match="has no baseline"):
        gig.explain(net, X[:2], X[2:5])
    explained = gig.explain(net, X[:2], X[2:5], output="margin")
    np.testing.assert_allclose(explained.predictions, net.predict(X[:2]), rtol=1e-12)
