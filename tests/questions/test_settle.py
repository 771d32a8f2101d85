"""`settle`: certificates hold over many orders of drawing, and what was estimated adds up."""

from __future__ import annotations

from itertools import chain, combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest
from real_tables import real_table
from scipy import stats
from sklearn.ensemble import HistGradientBoostingClassifier
from xgboost import XGBClassifier

import gigrad as gig
from gigrad import InputError
from gigrad._io.tables import read_rows
from gigrad._questions import settler as settler_module
from gigrad._questions.certificate import STEPS, Plan, Schedule, named, student
from gigrad._questions.drawing import Drawing, taken_first
from gigrad._questions.regression import MarginRegression
from gigrad._questions.settler import NEAR, Drawn, Settler


def test_parts_of_the_level_add_up_to_no_more_than_the_whole() -> None:
    """Over every set of reasons that may be the true one, and whatever was guessed before."""
    rng = np.random.default_rng(0)
    plan = Plan.of(0.99, 3, 0.05, 8, 1000, Schedule(96, 1.3, 0.0))
    guesses = np.vstack([np.zeros(8), np.arange(8.0), rng.normal(size=(5, 8)), rng.exponential(size=(5, 8)) ** 3])
    all_far = plan.far(guesses)
    assert all_far.min() >= 0
    assert all_far.max() <= STEPS
    for far, miss in zip(all_far, stats.norm.sf(plan.pair_quantiles(all_far)), strict=True):
        for some in chain(*(combinations(range(8), n) for n in range(1, 4))):
            others = [j for j in range(8) if j not in some]
            spent = sum(miss[far[i] + far[j]] for i in some for j in others)
            spent += 16 * stats.norm.sf(plan.quantile(10**9))
            assert len(plan.looks) * spent <= 0.01 * (1 + 1e-6)


def test_rows_without_a_feature_near_the_cut_have_parts_of_the_level_too() -> None:
    """Weights are then small, and a comparison of two near features, which there are not, would have more than all."""
    plan = Plan.of(0.9, 1, 0.05, 2, 200, Schedule(128, 1.4, 0.0))
    guess = np.array([[1.0, 0.0]])
    far = plan.far(guess)
    assert far.tolist() == [[STEPS, STEPS]]
    miss = stats.norm.sf(plan.pair_quantiles(far))[0]
    assert miss.max() <= 0.5
    assert len(plan.looks) * (miss[2 * STEPS] + 4 * stats.norm.sf(plan.quantile(10**9))) <= 0.1 * (1 + 1e-6)


@pytest.mark.parametrize("freedom", [60, 200, 1000])
@pytest.mark.parametrize("miss", [1e-3, 1e-5, 1e-6])
def test_quantiles_are_students(freedom: int, miss: float) -> None:
    z = float(stats.norm.isf(miss))
    assert float(student(np.array(z), freedom)) == pytest.approx(float(stats.t.isf(miss, freedom)), rel=2e-4)


def wrong(true: Any, given: Any, left: Any, plan: Plan) -> bool:
    """Whether reasons are not those of the whole reference, beyond a tie."""
    tie = plan.tie * true.max()
    if len(given) < plan.top:
        return bool((true[given] < -tie).any() or (true[left] > tie).any())
    return bool((true[given] < -tie).any() or true[given].min() < true[left].max() - tie)


def positions(rows: Any, some: Any) -> Any:
    """Where each of some rows stands among all; equal rows count as one another."""
    place = {row.tobytes(): i for i, row in enumerate(rows)}
    return np.array([place[row.tobytes()] for row in some], np.int64)


def looked_up(settler: Settler, known: Drawn, rows: Any, monkeypatch: pytest.MonkeyPatch) -> Settler:
    """The settler with credits of all rows and references looked up: it then takes a thousandth of the time."""
    place = positions(settler.explainer.reference.matrix, settler.starts)

    def draw(_: Settler, some: Any, scores: Any, first: int, last: int) -> Drawn:
        return Drawn(*(x[positions(rows, some)][:, place[first:last]] for x in known))

    def beside(_: Settler, some: Any, which: Any) -> Any:
        return known.margins[positions(rows, some)][:, place[which]].sum(axis=1)

    monkeypatch.setattr(Settler, "draw", draw)
    monkeypatch.setattr(Settler, "beside", beside)
    return settler


@pytest.fixture(scope="module")
def club() -> dict[str, Any]:
    """Refused loans of Lending Club against 2,000 approved ones, credit by credit."""
    X = real_table("lending_club_2007_2011").iloc[::2].reset_index(drop=True)
    y = X.pop("loan_status") == "Charged Off"
    X = X.drop(columns=["issue_d", "earliest_cr_line", "meets_credit_policy"])
    model = XGBClassifier(n_estimators=60, max_depth=4, enable_categorical=True, n_jobs=1).fit(X, y)
    risk = model.predict_proba(X)[:, 1].astype(float)
    cutoff = float(np.quantile(risk, 0.8))
    approved = gig.references.approved(X, risk, cutoff, higher_is_better=False)
    explainer = gig.Explainer(model, gig.references.sample(approved, 2000, 0))
    rows = X[risk > cutoff].sample(12, random_state=0)
    return {"explainer": explainer, "rows": rows}


@pytest.mark.parametrize("tie", [0.05, 0.0])
@pytest.mark.parametrize("beside", [True, False], ids=["margins", "anchor"])
def test_certificates_hold_over_many_orders_on_lending_club(
    club: dict[str, Any], tie: float, beside: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The credits of every reference are computed once, and drawn in 40 orders: 480 certificates, at most 1 % wrong."""
    explainer, rows = club["explainer"], read_rows(club["rows"], club["explainer"].scorer.graph, what="X")
    scores = explainer.scorer.scores(rows).graph
    known = Settler.of(explainer, 1, 4, tie, None, 0).draw(rows.matrix, scores, 0, 2000)
    if not beside:  # as for a model that is no link over trees
        monkeypatch.setattr(settler_module, "as_linked_trees", lambda *_: None)
        known = known._replace(margins=known.margins[:, :, :0])
    true = known.credits.mean(axis=1)
    orders = [Settler.of(explainer, 0.99, 4, tie, None, seed) for seed in range(40)]
    assert {settler.linked is not None for settler in orders} == {beside}
    failed = uncovered = early = total = taken = 0
    for settler in orders:
        found = looked_up(settler, known, rows.matrix, monkeypatch).explain(rows.matrix, scores)
        stopped = found.used < 2000
        failed += sum(wrong(t, *named(v, 4), settler.plan) for t, v in zip(true, found.values, strict=True))
        uncovered += int((np.abs(found.values - true).max(axis=1) > found.error + 1e-12)[stopped].sum())
        early, total, taken = early + stopped.sum(), total + len(true), taken + found.used.sum()
    assert failed <= 0.01 * total
    assert uncovered <= 0.01 * total
    assert early > (0.9 if tie else 0.2) * total
    fewer = {(True, True): 8.0, (True, False): 2.0, (False, True): 3.0, (False, False): 1.2}[beside, tie > 0]
    assert 2000 * total / taken > fewer


def test_two_phases_estimate_without_bias_and_know_their_error() -> None:
    """Samples of 120 references of 1,500, with margins of 360 more: errors are as large as their variances say."""
    rng = np.random.default_rng(0)
    count, p, n, more = 1500, 5, 120, 360
    margins = rng.gamma(2.0, size=(count, p)) * rng.normal(1.0, 0.3, size=(count, 1))
    credits = 0.2 * margins + 0.15 * rng.normal(size=(count, p)) * margins
    shared = np.column_stack([credits.sum(axis=1), rng.normal(size=count)])
    true, ratios, errors = credits.mean(axis=0), [], []
    for _ in range(400):
        order = rng.permutation(count)
        regression = MarginRegression.of(shared[order], margins[order], Drawing(order, 0, np.ones(count)), n, more)
        some = np.concatenate([order[:n], order[count - more :]])
        first = order[:n]
        beside = margins[some].mean(axis=0)[None]
        found = regression.estimate(credits[first][None], margins[first][None], beside, true.sum()[None])
        ratios.append(np.sqrt(found.variance[0]) / regression.unseen)  # without the factor for rare values
        errors.append(found.mean[0] - true)
        np.testing.assert_allclose(found.mean.sum(), true.sum())
    spread = np.std(errors, axis=0)
    assert (np.abs(np.mean(errors, axis=0)) < 4 * spread / 20).all()
    np.testing.assert_allclose(np.sqrt(np.mean(np.square(ratios), axis=0)), spread, rtol=0.15)


def test_margins_are_multiplied_by_the_slope_of_the_link_to_the_anchor(club: dict[str, Any]) -> None:
    """Up to a constant that is the same for all; by that of the nearest where two margins are nearly equal."""
    settler = Settler.of(club["explainer"], 0.99, 4, 0.05, None, 0)
    assert settler.linked is not None
    margins = settler.linked.trees.forward(settler.starts)[:, 0]
    chance = 1.0 / (1.0 + np.exp(-margins))
    anchor = int(chance.argmax())  # higher is worse
    way = margins[anchor] - margins
    far = way > 2 * NEAR * way.max()
    assert not far.all()
    slope = (chance[anchor] - chance[far]) / way[far]
    even = settler.slope[far] - slope
    np.testing.assert_allclose(even, even[0], rtol=1e-6)
    assert 0.4 * slope.mean() < even[0] < 0.6 * slope.mean()
    np.testing.assert_allclose(settler.slope[~far], even[0] + slope[np.argmin(way[far])], rtol=0.01)


def test_all_margins_are_known_in_the_end() -> None:
    plan = Plan.of(0.99, 4, 0.05, 10, 2000, Schedule(96, 1.25, 0.0, 3.0))
    assert plan.beside[0] == 288
    assert list(plan.beside) == sorted(plan.beside)
    assert plan.looks[-1] + plan.beside[-1] >= 2000


def test_the_whole_way_gives_estimates_that_add_up_and_errors_that_hold(club: dict[str, Any]) -> None:
    explainer, rows = club["explainer"], club["rows"].head(6)
    exact = explainer(rows)
    found = gig.settle(explainer, rows, seed=3)
    e = found.explanation
    assert (found.references < 2000).any()
    assert found.of == 2000
    np.testing.assert_array_equal(found.confidence, np.where(found.references < 2000, 0.99, 1.0))
    np.testing.assert_allclose(e.base_values, exact.base_values)
    np.testing.assert_allclose(e.base_values + e.values.sum(axis=1), e.predictions, atol=1e-6)
    assert (np.abs(e.values - exact.values).max(axis=1) <= e.error + exact.error + 1e-6).all()
    assert e.provenance["settled"]["confidence"] == 0.99
    alone = gig.settle(explainer, rows.iloc[[4]], seed=3)  # who else is explained makes no difference
    assert alone.references[0] == found.references[4]
    np.testing.assert_allclose(alone.explanation.values[0], e.values[4], atol=1e-12)


def test_asking_for_everything_runs_to_the_end(club: dict[str, Any]) -> None:
    explainer, rows = club["explainer"], club["rows"].head(2)
    found = gig.settle(explainer, rows, confidence=1)
    assert found.references.tolist() == [2000, 2000]
    np.testing.assert_allclose(found.explanation.values, explainer(rows).values, atol=2e-6)


def test_says_how_many_references_it_took(club: dict[str, Any]) -> None:
    explainer, rows = club["explainer"], club["rows"].head(2)
    said = repr(gig.settle(explainer, rows))
    assert said.startswith("Settled: 2 rows, ")
    assert "0 took all, the others at a confidence of 0.99\nExplanation of 2 rows" in said
    none = gig.settle(explainer, rows.head(0))
    assert (len(none), repr(none), none.explanation.shape[0]) == (0, "Settled: 0 rows", 0)


def test_weights_and_missing_values_count() -> None:
    """With weights, the estimates are of the weighted mean."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(1500, 5)).round(1), columns=list("abcde"))
    X.loc[::9, "b"] = np.nan
    y = (X["a"] * 2 + X["b"].fillna(1) + X["c"] * (X["a"] > 0) + rng.normal(size=1500)) > 0
    model = HistGradientBoostingClassifier(max_iter=25, max_depth=3, random_state=0).fit(X, y)
    weights = rng.uniform(0.2, 3.0, 1500)
    explainer = gig.Explainer(model, X, weights=weights, output="margin")
    rows = X[model.predict_proba(X)[:, 1] > 0.8].head(8)
    exact = explainer(rows)
    found = gig.settle(explainer, rows, top=2, higher_is_better=False)
    assert (found.references < 1500).any()
    np.testing.assert_allclose(found.explanation.gap, 0, atol=1e-9)
    assert (np.abs(found.explanation.values - exact.values).max(axis=1) <= found.explanation.error + 1e-9).all()


HEAVY = {
    "one in fifty a hundredfold": lambda rng, m: np.where(rng.uniform(size=m) < 0.02, 100.0, 1.0),
    "exponential cubed": lambda rng, m: rng.exponential(size=m) ** 3,
    "Pareto, some zero": lambda rng, m: (1.0 + rng.pareto(1.5, m)) * (rng.uniform(size=m) < 0.9),
}


@pytest.mark.parametrize("kind", HEAVY)
@pytest.mark.parametrize("beside", [True, False], ids=["margins", "anchor"])
def test_certificates_and_errors_hold_with_very_unequal_weights(
    kind: str, beside: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On German credit, 20 rows by four sets of weights in 10 orders each: at most 1 % wrong, and they stop early."""
    X = real_table("german_credit")
    y = X.pop("credit_risk") == "bad"
    model = XGBClassifier(n_estimators=40, max_depth=4, enable_categorical=True, n_jobs=1).fit(X, y)
    risk = model.predict_proba(X)[:, 1].astype(float)
    reference, some = X[risk <= np.quantile(risk, 0.7)], X[risk > np.quantile(risk, 0.7)].sample(20, random_state=1)
    rng, m = np.random.default_rng(0), len(reference)
    if not beside:
        monkeypatch.setattr(settler_module, "as_linked_trees", lambda *_: None)
    failed = uncovered = total = taken = 0
    plain = gig.Explainer(model, reference)
    rows = read_rows(some, plain.scorer.graph, what="X")
    scores = plain.scorer.scores(rows).graph
    each = Settler.of(plain, 1, 4, 0.05, False, 0).draw(rows.matrix, scores, 0, m)
    for _ in range(4):
        explainer = gig.Explainer(model, reference, weights=HEAVY[kind](rng, m))
        true = np.einsum("rmp,m->rp", each.credits, explainer.weights)
        for seed in range(10):
            with monkeypatch.context() as patched:
                settler = Settler.of(explainer, 0.99, 4, 0.05, False, seed)
                by = explainer.weights * m
                slope = settler.slope[np.argsort(settler.drawing.order)]
                margins = each.margins * slope[:, None]
                known = Drawn(each.credits * by[:, None], each.errors * by, margins)
                found = looked_up(settler, known, rows.matrix, patched).explain(rows.matrix, scores)
            failed += sum(wrong(t, *named(v, 4), settler.plan) for t, v in zip(true, found.values, strict=True))
            uncovered += int((np.abs(found.values - true).max(axis=1) > found.error + 1e-12).sum())
            total, taken = total + len(true), taken + found.used.sum()
    assert failed <= 0.01 * total
    assert uncovered <= 0.01 * total
    assert m * total / taken > (2.0 if beside else 1.2)


def test_draws_are_in_proportion_to_weights_and_references_in_the_order_of_their_draws() -> None:
    """Their sample estimates weighted means without bias; references without weight are never drawn."""
    rng = np.random.default_rng(0)
    weights, known = rng.exponential(size=600) * (rng.uniform(size=600) < 0.9), rng.normal(size=(600, 2))
    weights /= weights.sum()
    found = []
    for seed in range(200):
        drawing = Drawing.of(weights, known, Schedule(128, 1.4, 0.005), seed)
        k, draws = drawing.first, np.asarray(drawing.draws(128))
        others = drawing.order[k:]
        assert sorted(drawing.order) == list(range(600))
        assert drawing.reached(128) == len(np.unique(draws))
        assert (weights[others[draws]] > 0).all()
        scaled = (known * 600 * weights[:, None])[drawing.order][None]
        np.testing.assert_allclose(drawing.mean(known[others]), np.average(known[others], 0, weights[others]))
        sample = drawing.sample(scaled, 128)[0].mean(axis=0)
        found.append(scaled[0, :k].sum(axis=0) / 600 + len(others) / 600 * sample)
    off = np.mean(found, axis=0) - weights @ known
    assert (np.abs(off) < 4 * np.std(found, axis=0) / np.sqrt(200)).all()


def test_the_stratum_leaves_no_few_references_that_a_feature_depends_on() -> None:
    """A sample without any of them would be blind for the feature, and no row settled before all were drawn."""
    known = np.zeros((1500, 3))
    known[:9, 0] = np.arange(1.0, 10.0)  # more than 0.5 %, and the largest seven make up most of the variance
    known[100:109, 1] = 1.0
    known[200:230, 2] = np.arange(1.0, 31.0) ** 3  # too many to take all: the largest seven
    taken = taken_first(known, 0.005, np.ones(1500))
    assert taken.tolist() == [*range(9), *range(100, 109), *range(223, 230)]


def test_the_rest_is_used_where_references_after_the_stratum_have_no_weight() -> None:
    weights = np.array([5.0, 3.0] + [0.0] * 700)
    drawing = Drawing.of(weights / weights.sum(), np.zeros((702, 1)), Schedule(128, 1.4, 0.005), 0)
    assert (drawing.first, drawing.count) == (702, 0)


def test_refuses_what_makes_no_sense(club: dict[str, Any]) -> None:
    explainer, rows = club["explainer"], club["rows"].head(1)
    with pytest.raises(InputError, match="confidence must lie between 0 and 1"):
        gig.settle(explainer, rows, confidence=1.5)
    with pytest.raises(InputError, match="must be given an Explainer"):
        gig.settle(rows, rows)
    plain = gig.Explainer(explainer.scorer, explainer.reference.table)
    with pytest.raises(InputError, match="higher_is_better must be given"):
        gig.settle(plain, rows)
