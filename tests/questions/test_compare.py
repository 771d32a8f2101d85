"""`compare`: the difference of two models is the difference of their explanations under one choice of columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import gigrad as gig
from gigrad import InputError
from gigrad.datasets import german_credit

COLUMNS = ["duration_months", "credit_amount", "age", "existing_credits_at_bank", "people_liable_for"]


@pytest.fixture(scope="module")
def lender() -> dict[str, Any]:
    X, bad = german_credit(protected=True)
    X = X[COLUMNS]
    forest = RandomForestClassifier(15, max_depth=4, random_state=0).fit(X, bad)
    net = make_pipeline(StandardScaler(), MLPClassifier((8,), max_iter=300, random_state=0)).fit(X, bad)
    risk = forest.predict_proba(X)[:, 1]
    approved = gig.references.approved(X, risk, 0.35, higher_is_better=False)
    return {"X": X, "bad": bad, "forest": forest, "net": net, "approved": approved, "risk": risk}


@pytest.mark.parametrize("output", [None, "margin"])
def test_equals_explaining_the_difference_as_one_model(lender: dict[str, Any], output: Any) -> None:
    """`stack(head=[-1, 1])` is the same function: its explanation is an independent way to the same credits."""
    L = lender
    rows, reference = L["X"].head(6), L["X"].tail(40)
    linear = LogisticRegression(max_iter=5000).fit(L["X"], L["bad"])
    trees = LGBMClassifier(n_estimators=15, verbose=-1).fit(L["X"], L["bad"])
    found = gig.compare(linear, trees, rows, reference, output=output)
    one = gig.explain(gig.stack([linear, trees], [-1.0, 1.0], output=output), rows, reference)
    np.testing.assert_allclose(found.difference.values, one.values, atol=1e-9)
    np.testing.assert_allclose(found.difference.base_values, one.base_values, atol=1e-9)
    np.testing.assert_allclose(found.difference.predictions, one.predictions, atol=1e-9)
    assert found.difference.provenance["choice"] == one.provenance["choice"]


def test_works_with_the_approved_of_the_champion(lender: dict[str, Any]) -> None:
    """A difference of two scores has no direction; the reference's is compared with each of the two."""
    L = lender
    found = gig.compare(L["forest"], L["net"], L["X"].head(8), L["approved"])
    own = [m.predict_proba(L["X"].head(8))[:, 1] for m in (L["forest"], L["net"])]
    np.testing.assert_allclose(found.champion.predictions, own[0], atol=1e-12)
    np.testing.assert_allclose(found.difference.predictions, own[1] - own[0], atol=1e-12)
    sums = found.difference.base_values + found.difference.values.sum(axis=1) + found.difference.gap
    np.testing.assert_allclose(sums, own[1] - own[0], atol=1e-12)
    assert found.champion.provenance["reference"]["cutoff_in_output_units"] is True
    assert found.challenger.provenance["reference"]["cutoff_in_output_units"] is False
    assert "higher_is_better" not in found.difference.provenance["reference"]
    letters = gig.reasons(found.champion[found.champion.predictions > 0.35], permitted=["age"])
    assert len(letters) == int((own[0] > 0.35).sum())


def test_a_challenger_that_runs_the_other_way_is_refused(lender: dict[str, Any]) -> None:
    L = lender
    good = RandomForestClassifier(15, max_depth=4, random_state=0).fit(L["X"], 1 - L["bad"])
    with pytest.raises(InputError, match="challenger and the reference do not agree"):
        gig.compare(L["forest"], good, L["X"].head(3), L["approved"])


def test_both_models_are_under_one_choice_of_discrete_columns() -> None:
    """A column is discrete for both or for neither: one model's odd threshold decides for the other, too."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"count": rng.integers(0, 5, 200).astype(float), "flag": rng.integers(0, 2, 200).astype(float)})
    y = X["count"] + 2 * X["flag"] + rng.normal(0, 0.1, 200)
    whole = RandomForestClassifier(5, max_depth=3, random_state=0).fit(X, y > 3)
    odd = RandomForestClassifier(5, max_depth=3, random_state=0).fit(X.assign(count=X["count"] + 0.25), y > 3)
    found = gig.compare(whole, odd, X.head(4), X.tail(20), discrete=["flag"])
    assert found.champion.provenance["choice"] == found.challenger.provenance["choice"]
    by_rule = gig.compare(whole, odd, X.head(4), X.tail(20))
    assert by_rule.champion.provenance["choice"]["discrete"] == {"thresholds": ["flag"]}
    assert gig.Explainer(whole, X.tail(20)).choice.as_record()["discrete"] == {"thresholds": ["count", "flag"]}


def test_columns_that_one_model_does_not_read_earn_nothing_there(lender: dict[str, Any]) -> None:
    L = lender
    small = LogisticRegression(max_iter=5000).fit(L["X"][["age", "duration_months"]], L["bad"])
    found = gig.compare(small, L["forest"], L["X"].head(4), L["X"].tail(20))
    alone = gig.explain(L["forest"], L["X"].head(4), L["X"].tail(20))
    np.testing.assert_allclose(found.challenger[:, list(alone.feature_names)].values, alone.values, atol=1e-12)
    assert not found.champion[:, "credit_amount"].values.any()
    frame = found[0].to_frame().set_index("feature")
    assert frame.loc["credit_amount", "champion"] == 0.0
    np.testing.assert_allclose(frame["difference"], frame["challenger"] - frame["champion"])


def test_each_model_may_have_a_transform_of_its_own(lender: dict[str, Any]) -> None:
    L = lender
    ranks = tuple(gig.SmoothedECDF.fit(m.predict_proba(L["X"])[:, 1], 20) for m in (L["forest"], L["net"]))
    found = gig.compare(L["forest"], L["net"], L["X"].head(3), L["X"].tail(20), output=ranks)
    wanted = [r(m.predict_proba(L["X"].head(3))[:, 1]) for r, m in zip(ranks, (L["forest"], L["net"]), strict=True)]
    np.testing.assert_allclose(found.difference.predictions, wanted[1] - wanted[0], atol=1e-12)
    assert "mean score" in repr(found)


def test_one_score_each(lender: dict[str, Any]) -> None:
    L = lender
    three = RandomForestClassifier(3, max_depth=2, random_state=0).fit(L["X"], L["X"]["people_liable_for"] + L["bad"])
    with pytest.raises(InputError, match="challenger must give one score"):
        gig.compare(L["forest"], three, L["X"].head(3), L["X"].tail(20))


def test_models_that_agree_are_said_to() -> None:
    from sklearn.tree import DecisionTreeRegressor

    tree = DecisionTreeRegressor().fit([[0, 0], [0, 1], [1, 0], [1, 1]], [0, 1, 1, 4])
    found = gig.compare(tree, tree, [[1, 1]], [[0, 0]])
    assert "both models score every row alike" in repr(found)
    assert repr(found[:0]) == "Comparison of 0 rows"
