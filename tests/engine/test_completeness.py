"""Credits add up: whichever engine gave them, a row of which too much is missing is walked again, or warned about."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import ExtraTreesClassifier, GradientBoostingRegressor, RandomForestRegressor
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LinearRegression, LogisticRegression

import gigrad as gig
from gigrad.batch import explain_batch
from gigrad.engine import mixed
from gigrad.engine.closed_form import links, scores
from gigrad.engine.settings import Credits
from gigrad.graph import Affine, Elementwise
from gigrad.testing import brute_force

RNG = np.random.default_rng(0)
X = np.round(RNG.normal(size=(200, 3)), 2)
STARTS, ENDS = X[:20], X[20:40]
TREES = GradientBoostingRegressor(n_estimators=8, max_depth=2, random_state=0).fit(X, X[:, 0] * X[:, 1] + X[:, 2])
LINE = LinearRegression().fit(X, X @ [1.0, -2.0, 0.5])


def linear(*weights: float) -> LinearRegression:
    model = LinearRegression().fit(np.eye(len(weights)), np.zeros(len(weights)))
    model.coef_, model.intercept_ = np.array(weights), 0.0
    return model


# ------------------------------------------------------------ a steep piece between the nodes of a short path


def test_a_steep_piece_of_a_calibration_on_a_short_path() -> None:
    steep = IsotonicRegression(out_of_bounds="clip").fit([-1, 0.0245, 0.0247, 1], [0, 0, 1, 1])
    model = gig.import_model(linear(1.0, 1.0)).then(gig.import_model(steep))
    e = gig.explain_pairs(model, [[0.0, 0.0]], [[0.03, 0.01]])
    np.testing.assert_allclose(e.values, [[0.75, 0.25]], atol=1e-12)
    assert abs(e.gap[0]) <= 1e-12


@pytest.mark.parametrize("far", [1e-4, 1e-3, 0.01, 0.05])
def test_an_isotonic_calibration_on_close_pairs(far: float) -> None:
    y = (X[:, 0] + 0.5 * X[:, 1] + RNG.normal(size=len(X)) > 0).astype(int)
    model = CalibratedClassifierCV(LogisticRegression(), method="isotonic").fit(X, y)
    ends = X + far * RNG.normal(size=X.shape)
    e = gig.explain_pairs(model, X, ends)
    assert np.abs(e.gap).max() <= 1e-12
    for i in range(0, len(X), 20):
        want = brute_force(model, X[i], ends[i])[:, 0]
        assert np.abs(e.values[i] - want).max() <= e.error[i] + 1e-9


def test_a_rank_on_close_pairs() -> None:
    model = LogisticRegression().fit(X, X[:, 0] > 0)
    rank = gig.SmoothedECDF.fit(model.predict_proba(X)[:, 1])
    e = gig.explain(model, X[:12], X[12:40], output=rank)
    assert np.abs(e.gap).max() <= 1e-9


def test_a_score_of_zero_but_for_rounding_is_no_cause_of_a_warning(recwarn: Any) -> None:
    """Votes of pure leaves that add up to 0 for one row and to 1e-17 for another: no credit can be relative to that."""
    rng = np.random.default_rng(2)
    draws = [rng.integers(0, 2, 120), rng.integers(0, 2, 120), rng.integers(0, 5, 120), rng.normal(size=120).round(1)]
    rows = np.column_stack(draws).astype(float)
    votes = ExtraTreesClassifier(10, random_state=0).fit(rows, rows[:, 0] + rows[:, 2] + rng.normal(size=120) > 2.5)
    rank = gig.SmoothedECDF.fit(votes.predict_proba(rows)[:, 1], knots=5)
    e = gig.explain_pairs(votes, rows[:60], rows[60:], output=rank)
    assert np.abs(e.gap).max() <= 1e-14
    assert not recwarn


@pytest.mark.parametrize("apart", [1e-8, 1e-6])
def test_rounding_on_a_steep_rank_is_in_the_error(apart: float, recwarn: Any) -> None:
    """The rounding of a mean of trees, magnified by close knots: within the tolerance, and far above 1e-16."""
    rng = np.random.default_rng(0)
    counts = rng.integers(0, 5, (300, 4)).astype(float)
    sums = counts @ [1.0, 2.0, 3.0, 4.0] + rng.normal(size=300)
    forest = RandomForestRegressor(40, max_depth=4, random_state=0).fit(counts, sums)
    score = np.sort(forest.predict(counts))
    knots = np.array([score[0], score[150] - apart, score[150] + apart, score[-1]])
    rank = gig.SmoothedECDF(knots, np.array([0.0, 0.1, 0.9, 1.0]))
    e = gig.explain(forest, counts[:100], counts[100:200], output=rank)
    assert np.abs(e.gap).max() > 1e-12
    assert (np.abs(e.gap) <= e.error + 1e-14).all()
    assert not recwarn


# ------------------------------------------------------------ no engine is exempt


def short(found: Credits) -> Credits:
    """What an engine would give that lost a tenth of everything and did not notice."""
    return Credits(0.9 * found.values, np.zeros_like(found.error), found.finest)


def lose(monkeypatch: pytest.MonkeyPatch, module: Any, name: str, most: int | None = None) -> None:
    real, calls = getattr(module, name), [0]

    def wrong(*arguments: Any) -> Credits:
        calls[0] += 1
        return short(real(*arguments)) if most is None or calls[0] <= most else real(*arguments)

    monkeypatch.setattr(module, name, wrong)


MODELS = {
    "trees": (TREES, links, "credits"),
    "linked": (gig.import_model(TREES), links, "credits"),
    "scores": (LogisticRegression().fit(X, X[:, 0] > 0), scores, "attribute"),
    "mixed": (gig.stack([TREES, LINE], [1.0, 1.0]), mixed, "attribute"),
}
SIGMOID = {"linked", "mixed"}


def model_of(kind: str) -> Any:
    model = MODELS[kind][0]
    return model.then(_Sigmoid()) if kind in SIGMOID else model


class _Sigmoid(gig.graph.Transform):
    def apply(self, source: Any) -> Any:
        return Elementwise(source, "sigmoid")


@pytest.mark.parametrize("kind", MODELS)
def test_a_row_that_does_not_add_up_is_walked_again(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_of(kind)
    whole = gig.explain(model, ENDS, STARTS)
    _, module, name = MODELS[kind]
    lose(monkeypatch, module, name, most=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        e = gig.explain(model, ENDS, STARTS)
    np.testing.assert_allclose(e.values, whole.values, rtol=0, atol=1e-6)
    assert (np.abs(e.gap) <= 1e-6 * np.maximum(np.abs(e.predictions), np.abs(e.base_values)) + 1e-12).all()


@pytest.mark.parametrize("kind", MODELS)
def test_what_stays_missing_is_warned_about_and_in_the_error(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = model_of(kind)
    explainer = gig.Explainer(model, STARTS)
    explainer.save(tmp_path / "model.gig")
    _, module, name = MODELS[kind]
    lose(monkeypatch, module, name)
    if module is not mixed:
        lose(monkeypatch, mixed, "attribute")
    for explained in (
        lambda: explainer(ENDS),
        lambda: gig.explain_pairs(model, STARTS, ENDS),
        lambda: gig.Explainer.load(tmp_path / "model.gig")(ENDS),
        lambda: gig.explain_gap(model, ENDS, STARTS, bootstrap=0),
    ):
        with pytest.warns(gig.AccuracyWarning, match="tolerance was not reached"):
            e = explained()
        assert (np.abs(e.gap) > 1e-4).any()
        assert (np.asarray(e.error) >= np.abs(e.gap)).all()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("kind", ["trees", "line"])
def test_a_score_that_is_no_finite_number_has_no_finite_error(kind: str) -> None:
    """The logarithm of 0 is where half of the rows end: no credits add up to it."""
    X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    model = (LinearRegression() if kind == "line" else GradientBoostingRegressor()).fit(X, 3 * X[:, 0])
    graph = gig.import_model(model)
    none = graph.predict(X)[0]  # 0 but for rounding
    score = Elementwise(Affine(graph.score, np.eye(1), np.array([-none])), "log")
    endless = replace(graph, score=score, margin=score, witnesses=())
    assert np.isneginf(endless.predict(X[:1]))
    with pytest.warns(gig.AccuracyWarning, match=r"finite number to be explained; on 2 of 3 rows \(0, 2\)"):
        e = gig.explain_pairs(endless, X[[2, 2, 0]], X[[0, 3, 3]])
    assert np.isinf(e.error[[0, 2]]).all()
    assert e.error[1] < 1e-9
    assert abs(e.gap[1]) < 1e-9


def test_a_batch_says_so_too(monkeypatch: pytest.MonkeyPatch) -> None:
    explainer = gig.Explainer(TREES, STARTS)
    batch = pa.RecordBatch.from_pandas(pd.DataFrame(ENDS, columns=["x0", "x1", "x2"]))
    lose(monkeypatch, links, "credits")
    lose(monkeypatch, mixed, "attribute")
    with pytest.warns(gig.AccuracyWarning, match="tolerance was not reached"):
        out = explain_batch(explainer, batch).to_pandas()
    assert (out["error"] >= out["gap"].abs()).all()
