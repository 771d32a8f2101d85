"""Reasons: the classic method on scorecards, the order and its ties, and what is left out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from conformance.binning import quantile_bins
from credited import listed, made
from hypothesis import given
from hypothesis import strategies as st
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from unchecked import unchecked

import gigrad as gig
from gigrad._reasons.ranking import order
from gigrad.graph import Column, Graph, Input, Tree, assemble

# ---------------------------------------------------------------- the classic method


def chain(column: int, edges: np.ndarray, points: np.ndarray) -> Tree:
    """A binned variable as one tree: `points[b]` for edges[b - 1] < x <= edges[b]; missing takes the last bin."""
    k = len(edges)
    feature = np.full(2 * k + 1, -1)
    feature[:k] = column
    left, right = np.full(2 * k + 1, -1), np.full(2 * k + 1, -1)
    left[:k] = k + np.arange(k)
    right[: k - 1], right[k - 1] = np.arange(1, k), 2 * k
    values = np.concatenate([np.zeros(k), points])
    threshold = np.concatenate([edges, np.zeros(k + 1)])
    return Tree(feature, threshold, left, right, np.zeros(2 * k + 1, bool), values)


@pytest.fixture(scope="module")
def scorecard() -> tuple[Graph, list[np.ndarray], list[np.ndarray]]:
    rng = np.random.default_rng(0)
    edges = [np.sort(rng.normal(size=4)) for _ in range(6)]
    points = [np.round(rng.normal(0, 20, 5)) for _ in range(6)]
    source = Input(6)
    score = assemble(
        source, [chain(j, e, p) for j, (e, p) in enumerate(zip(edges, points, strict=True))], np.array([600.0])
    )
    columns = tuple(Column(f"v{j}") for j in range(6))
    return Graph(columns, source, score, score, ("points",)), edges, points


def test_on_a_scorecard_the_reasons_are_the_points_below_the_reference(scorecard: Any) -> None:
    card, edges, points = scorecard
    rng = np.random.default_rng(1)
    X = rng.normal(size=(500, 6))
    X[rng.random(X.shape) < 0.05] = np.nan
    scores = card.predict(X)
    cutoff = float(np.median(scores))
    r = gig.references.approved(X, scores, cutoff, higher_is_better=True, weights=rng.random(500))
    refused = X[scores < cutoff]
    found = gig.reasons(gig.explain(card, refused, r), top=4)

    def own_points(rows: np.ndarray) -> np.ndarray:
        bins = [np.where(np.isnan(rows[:, j]), 4, np.searchsorted(edges[j], rows[:, j])) for j in range(6)]
        return np.stack([points[j][bins[j]] for j in range(6)], axis=1)

    below = r.weights @ own_points(r.rows) - own_points(refused)
    assert len(found) == len(refused) > 100
    for i, lost in enumerate(below):
        classic = [f"v{j}" for j in np.argsort(-lost, kind="stable") if lost[j] > 1e-9][:4]
        assert listed(found, i) == classic
        np.testing.assert_allclose(
            [-x.credit for x in found[i].reasons], [lost[int(f[1])] for f in classic], atol=1e-11
        )
        assert found[i].shortfall == pytest.approx(lost.sum())
        assert found[i].against == (lost > 1e-9).sum()
        np.testing.assert_allclose(
            [x.share * lost.sum() for x in found[i].reasons], -np.array([x.credit for x in found[i].reasons])
        )


def test_a_binned_logistic_regression_gives_its_own_scorecard(table: Any) -> None:
    data = table("german_credit")
    good = (data["credit_risk"] == "good").astype(int)
    numbers, labels = ["duration_months", "credit_amount", "age"], ["checking_account_status", "savings_account"]
    X = data[[*numbers, *labels]]
    bins = make_column_transformer(
        (quantile_bins(5, encode="onehot"), numbers),
        (OneHotEncoder(), labels),
    )
    model = make_pipeline(bins, LogisticRegression()).fit(X, good)
    odds = model.decision_function(X)
    r = gig.references.approved(X, odds, 0.5, higher_is_better=True)
    refused = X[odds < 0.5]
    found = gig.reasons(gig.explain(model, refused, r, output="margin"), top=5)

    names = np.array([n.split("__")[1] for n in bins.get_feature_names_out()])
    terms = bins.transform(X).toarray() * model[-1].coef_[0]
    points = np.stack([terms[:, [n.startswith(c) for n in names]].sum(axis=1) for c in X.columns], axis=1)
    below = points[odds >= 0.5].mean(axis=0) - points[odds < 0.5]
    assert len(found) > 100
    for i, lost in enumerate(below):
        classic = [X.columns[j] for j in np.argsort(-lost, kind="stable") if lost[j] > 1e-9]
        assert listed(found, i) == classic
        credits = [-x.credit for x in found[i].reasons]
        np.testing.assert_allclose(credits, [lost[list(X.columns).index(f)] for f in classic], atol=1e-11)


def test_order_does_not_depend_on_columns_rows_threads_or_batch(scorecard: Any) -> None:
    card, edges, points = scorecard
    X = np.random.default_rng(2).normal(size=(60, 6))
    r = gig.references.all_applicants(X, higher_is_better=True)
    whole = gig.reasons(gig.explain(card, X, r, n_threads=1))
    again = gig.reasons(gig.explain(card, X, r, n_threads=2))
    assert whole.audit() == again.audit()

    turn = np.random.default_rng(3).permutation(6)
    source = Input(6)
    turned_score = assemble(source, [chain(i, edges[j], points[j]) for i, j in enumerate(turn)], np.array([600.0]))
    turned = Graph(tuple(Column(f"v{j}") for j in turn), source, turned_score, turned_score, ("points",))
    shuffled = np.random.default_rng(4).permutation(60)
    other = gig.reasons(
        gig.explain(turned, X[shuffled][:, turn], gig.references.all_applicants(X[:, turn], higher_is_better=True))
    )
    for i, j in enumerate(shuffled):
        assert listed(other, i) == listed(whole, j)
        np.testing.assert_allclose(
            [x.credit for x in other[i].reasons], [x.credit for x in whole[j].reasons], atol=1e-11
        )

    twice = gig.reasons(gig.explain(card, np.concatenate([X[:5], X[:5]]), r))
    for i in range(5):
        assert replace(twice[i], row_id=0) == replace(twice[i + 5], row_id=0)
        assert listed(twice, i) == listed(whole, i)


# ---------------------------------------------------------------- which, and in which order


def test_only_what_counts_against_the_applicant_is_a_reason_and_groups_come_first() -> None:
    e = made([[-3.0, 2.0, -4.0, -1.0, 0.0]])
    assert listed(gig.reasons(e)) == ["c", "a", "d"]
    assert listed(gig.reasons(e, top=1)) == ["c"]
    grouped = gig.reasons(e, groups={"g": ["a", "b"], "h": ["c", "d"]})
    assert listed(grouped) == ["h", "g"]
    assert [r.credit for r in grouped[0].reasons] == [-5.0, -1.0]
    assert grouped[0].reasons[0].value == {"c": 0.0, "d": 0.0}
    worse = replace(e, provenance={"reference": {}})
    assert listed(gig.reasons(worse, higher_is_better=False)) == ["b"]


def test_shares_are_of_the_shortfall_and_min_share_cuts_by_them() -> None:
    e = made([[-6.0, 2.0, -5.0, -1.0], [-1.0, 3.0, -1.5, 0.0]])
    found = gig.reasons(e)
    assert [r.share for r in found[0].reasons] == [0.6, 0.5, 0.1]
    assert [r.share for r in found[1].reasons] == [None, None]
    assert found[1].shortfall == -0.5
    cut = gig.reasons(e, min_share=0.3)
    assert listed(cut, 0) == ["a", "c"]
    assert listed(cut, 1) == ["c", "a"]


def test_ties_go_to_the_larger_range_then_to_the_earlier_column() -> None:
    tie = -0.1 - 0.2  # not -0.3, to the bit
    values = [[-0.3, tie, -0.3, -0.3], [0.0, 0.0, 0.5, 0.0], [-0.05, 0.0, 0.0, -0.05]]
    assert listed(gig.reasons(made(values))) == ["c", "a", "b", "d"]
    ranges = {"a": 1, "b": 2, "c": 1, "d": 3}
    assert listed(gig.reasons(made(values), ranges=ranges)) == ["d", "b", "a", "c"]
    rules = gig.reasons(made(values)).audit()[0]["rules"]
    assert "larger range" in rules["tie_rule"]
    assert rules["ranges"]["c"] == pytest.approx(0.8)


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=8), st.lists(st.integers(0, 2), min_size=8, max_size=8))
def test_the_order_is_the_tie_rule(losses: list[int], ranges: list[int]) -> None:
    noisy = np.array(losses, dtype=float) + 1e-14 * np.arange(len(losses))
    wanted = sorted((j for j in range(len(losses)) if losses[j] > 0), key=lambda j: (-losses[j], -ranges[j], j))
    assert order(noisy, ranges[: len(losses)], 1e-12) == wanted


def test_what_is_excluded_is_on_the_record_with_its_rank() -> None:
    e = made([[-3.0, 2.0, -4.0, -1.0]])
    found = gig.reasons(e, top=2, exclude=["c", "b"])
    assert listed(found) == ["a", "d"]
    c, b = found[0].excluded
    assert (c.feature, c.would_rank, c.principal, c.credit) == ("c", 1, True, -4.0)
    assert (b.would_rank, b.principal) == (None, False)
    assert "excluded: c (would rank 1)" in str(found)
    assert found.audit()[0]["outcome"]["excluded"][0]["would_rank"] == 1


def test_reasons_within_the_estimated_error_are_marked() -> None:
    e = made([[-3.0, -2.0, -1.0]])
    assert gig.reasons(e)[0].settled
    assert gig.reasons(replace(e, error=np.array([0.4])))[0].settled
    assert not gig.reasons(replace(e, error=np.array([0.6])))[0].settled
    assert gig.reasons(replace(made([[-3.0, -1.0]]), error=np.array([0.6])), top=1)[0].settled


@pytest.mark.parametrize(
    ("change", "arguments", "message"),
    [
        ({"provenance": {}}, {}, "higher_is_better must be given"),
        ({}, {"higher_is_better": False}, "must be that of the reference, True .*; got False"),
        ({}, {"higher_is_better": "no"}, "must be True .* or False"),
        ({}, {"top": 0}, "top must be a positive whole number"),
        ({}, {"min_share": 1.5}, "min_share must lie between 0 and 1"),
        ({}, {"exclude": ["z"]}, "'z' is none of them"),
        ({}, {"exclude": ["a"], "groups": {"g": ["a", "b"]}}, "exclude the group"),
        ({}, {"exclude": "a"}, "must be a list"),
        ({}, {"groups": {"g": ["a", "z"]}}, "'z' is not one"),
        ({}, {"groups": {"g": ["a"], "h": ["a"]}}, "may be in one group"),
        ({}, {"ranges": {"a": 1.0}}, "'b' is missing"),
        ({}, {"row_ids": [1]}, "one id a row, 2"),
        ({"values": np.array([[np.nan, 1.0], [1.0, 1.0]])}, {}, "finite credits"),
        ({"rest": np.array([0.1, 0.0])}, {}, "no principal reason may be left out"),
    ],
)
def test_bad_arguments_are_refused_in_one_sentence(change: Any, arguments: Any, message: str) -> None:
    with pytest.raises(gig.InputError, match=message):
        gig.reasons(replace(made([[-1.0, 2.0], [1.0, 1.0]]), **change), **arguments)


def test_several_outputs_and_other_things_are_refused() -> None:
    values = np.zeros((2, 3, 2))
    flat = np.zeros((2, 2))
    e = gig.Explanation(values, flat, flat, flat, flat, np.zeros((2, 3)), ("a", "b", "c"), ("good", "bad"))
    with pytest.raises(gig.InputError, match=r"one score.*'good', 'bad'"):
        gig.reasons(e, higher_is_better=True)
    with pytest.raises(gig.InputError, match="needs an Explanation"):
        gig.reasons(unchecked(values), higher_is_better=True)


def test_explaining_only_approved_applicants_asks_for_the_direction(scorecard: Any) -> None:
    card = scorecard[0]
    X = np.random.default_rng(5).normal(size=(300, 6))
    scores = card.predict(X)
    r = gig.references.approved(X, scores, 600, higher_is_better=True)
    e = gig.explain(card, X[scores > 600], r)
    with pytest.raises(gig.InputError, match=r"Every explained row passes.*mixed up"):
        gig.reasons(e)
    assert len(gig.reasons(e, higher_is_better=True)) == (scores > 600).sum()
