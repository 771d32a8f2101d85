"""`explain_change`: adds up in every order, is linear, and names the cause that made data were made with."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from unchecked import unchecked

import gigrad as gig
from gigrad import InputError

NAMES = ["utilisation", "enquiries", "owns_home", "months"]


def month(n: int, seed: int) -> Any:
    """Customers with a share, a count, a flag and a duration, some of it missing."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "utilisation": rng.uniform(0, 1, n).round(2),
            "enquiries": rng.poisson(1.5, n),
            "owns_home": rng.integers(0, 2, n),
            "months": rng.integers(1, 120, n).astype(float),
        },
        index=[f"customer {i}" for i in range(n)],
    )


def outcome(X: Any, seed: int, age_matters: float = 0.0) -> Any:
    rng = np.random.default_rng(1000 + seed)
    z = 3 * X["utilisation"] + 0.6 * X["enquiries"] - X["owns_home"] - 2 + age_matters * (X["months"] > 60)
    return (rng.random(len(X)) < 1 / (1 + np.exp(-z))).astype(int)


@pytest.fixture(scope="module")
def months() -> dict[str, Any]:
    train, rows = month(800, 0), month(60, 1)
    later = rows.copy()
    later["utilisation"] = (later["utilisation"] + np.where(np.arange(60) % 2, 0.3, 0.0)).round(2)
    later["enquiries"] += np.arange(60) % 3
    old = GradientBoostingClassifier(n_estimators=25, random_state=0).fit(train, outcome(train, 0))
    new = LogisticRegression(max_iter=2000).fit(train, outcome(train, 1, age_matters=2.0))
    ranks = tuple(gig.SmoothedECDF.fit(m.predict_proba(t)[:, 1], 30) for m, t in ((old, train), (new, train)))
    return {"train": train, "rows": rows, "later": later, "old": old, "new": new, "ranks": ranks}


def score(m: dict[str, Any], state: tuple[int, int, int]) -> Any:
    """A score in a state, by the libraries' own predictions."""
    rows, model = m[("rows", "later")[state[0]]], m[("old", "new")[state[1]]]
    return m["ranks"][state[2]](model.predict_proba(rows)[:, 1])


def test_every_order_is_made_of_the_models_own_scores(months: dict[str, Any]) -> None:
    m = months
    change = gig.explain_change((m["old"], m["rows"]), (m["new"], m["later"]), transform=m["ranks"])
    assert change.steps == ("data", "model", "transform")
    axes = ("data", "model", "transform")
    assert set(change.orders) == set(permutations(axes))
    mean = np.zeros((60, 3))
    for order, totals in change.orders.items():
        state = [0, 0, 0]
        for k, axis in enumerate(order):
            here = score(m, (state[0], state[1], state[2]))
            state[axes.index(axis)] = 1
            there = score(m, (state[0], state[1], state[2]))
            np.testing.assert_allclose(totals[:, k], there - here, atol=1e-12)
            mean[:, axes.index(axis)] += totals[:, k] / 6
        np.testing.assert_allclose(totals.sum(axis=1), change.after - change.before, atol=1e-12)
    np.testing.assert_allclose(change.totals, mean, atol=1e-12)
    np.testing.assert_allclose(change.before, score(m, (0, 0, 0)), atol=1e-12)
    np.testing.assert_allclose(change.after, score(m, (1, 1, 1)), atol=1e-12)


@pytest.mark.parametrize("order", ["mean", *permutations(("data", "model", "transform"))])
@pytest.mark.parametrize("with_reference", [False, True])
def test_parts_add_up_in_any_order(months: dict[str, Any], order: Any, with_reference: bool) -> None:
    m = months
    reference = m["train"].head(25) if with_reference else None
    change = gig.explain_change(
        (m["old"], m["rows"].head(8)), (m["new"], m["later"].head(8)), transform=m["ranks"], reference=reference,
        cutoff=(0.5, 0.4), order=order,
    )  # fmt: skip
    parts = change.values.sum(axis=(1, 2)) + change.level.sum(axis=1) + change.gap.sum(axis=1)
    np.testing.assert_allclose(change.before + parts, change.after, atol=1e-13)
    assert np.abs(change.gap).max() < 1e-6
    np.testing.assert_allclose(change.totals[:, -1], 0.1, atol=1e-15)  # the cutoff fell
    assert change.steps[-1] == "cutoff"
    assert order == "mean" or change.steps[:3] == order
    assert change.provenance["order"] == ("mean" if order == "mean" else list(order))


def test_each_step_is_what_its_own_explanation_says(months: dict[str, Any]) -> None:
    """Data by pairs under one state, model and transform by differences of explanations: asked one at a time."""
    m = months
    rows, later, reference = m["rows"].head(10), m["later"].head(10), m["train"].head(30)
    order = ("model", "data", "transform")
    change = gig.explain_change(
        (m["old"], rows), (m["new"], later), transform=m["ranks"], reference=reference, order=order,
        discrete=["enquiries", "owns_home", "months"],
    )  # fmt: skip
    told: dict[str, Any] = {"discrete": ["enquiries", "owns_home", "months"]}

    def against(model: Any, rank: int, table: Any) -> Any:
        return gig.explain(model, table, reference, output=m["ranks"][rank], **told)

    old, new = against(m["old"], 0, rows), against(m["new"], 0, rows)
    np.testing.assert_allclose(change.values[:, 0], new.values - old.values, atol=1e-9)
    np.testing.assert_allclose(change.level[:, 0], new.base_values - old.base_values, atol=1e-9)
    pairs = gig.explain_pairs(m["new"], rows, later, output=m["ranks"][0], **told)
    np.testing.assert_allclose(change.values[:, 1], pairs.values, atol=1e-9)
    first, second = against(m["new"], 0, later), against(m["new"], 1, later)
    np.testing.assert_allclose(change.values[:, 2], second.values - first.values, atol=1e-9)


def test_is_linear_in_the_models() -> None:
    train, rows = month(300, 5), month(20, 6)
    later = rows.assign(utilisation=(rows["utilisation"] * 0.5).round(2), enquiries=rows["enquiries"] + 1)
    rng = np.random.default_rng(0)
    made = [
        GradientBoostingRegressor(n_estimators=10, random_state=i).fit(train, rng.normal(size=300)) for i in range(4)
    ]
    told: dict[str, Any] = {"reference": train.head(15), "discrete": ["enquiries", "owns_home"]}
    one = gig.explain_change((made[0], rows), (made[1], later), **told)
    two = gig.explain_change((made[2], rows), (made[3], later), **told)
    both = gig.explain_change(
        (gig.stack([made[0], made[2]], [2.0, -3.0]), rows), (gig.stack([made[1], made[3]], [2.0, -3.0]), later), **told
    )
    np.testing.assert_allclose(both.values, 2 * one.values - 3 * two.values, atol=1e-12)
    np.testing.assert_allclose(both.level, 2 * one.level - 3 * two.level, atol=1e-12)


def test_names_the_column_that_moved(months: dict[str, Any]) -> None:
    m = months
    later = m["rows"].assign(utilisation=(m["rows"]["utilisation"] + 0.4).round(2))
    change = gig.explain_change((m["old"], m["rows"]), (m["old"], later))
    assert change.steps == ("data",)
    moved = np.abs(change.values[:, 0]).sum(axis=0)
    assert moved[0] > 0
    assert (moved[1:] == 0).all()
    table = change.portfolio()
    assert table["feature"].tolist() == ["(total)", "utilisation"]
    assert table["low"][0] > 0


def test_names_what_a_new_model_learnt(months: dict[str, Any]) -> None:
    """The new model differs in one thing: long durations count. Same rows, so that nothing is due to data."""
    train, rows = months["train"], months["rows"]
    z = 3 * train["utilisation"] + 0.6 * train["enquiries"]
    kinds = {"n_estimators": 60, "max_depth": 2, "random_state": 0}
    old = GradientBoostingRegressor(**kinds).fit(train, z)
    new = GradientBoostingRegressor(**kinds).fit(train, z + 2.0 * (train["months"] > 60))
    change = gig.explain_change((old, rows), (new, rows), reference=train.head(100))
    assert not change.totals[:, change.steps.index("data")].any()
    model = np.abs(change.values[:, change.steps.index("model")]).mean(axis=0)
    assert NAMES[int(model.argmax())] == "months"
    assert model[3] > 10 * model[:3].max()
    levels = change.level[:, change.steps.index("model")]
    assert np.ptp(levels) == 0.0
    assert levels[0] == pytest.approx(2.0 * (train["months"].head(100) > 60).mean(), abs=0.05)


def test_a_new_calibration_alone_is_the_transform(months: dict[str, Any]) -> None:
    m = months
    raw = m["old"].predict_proba(m["train"])[:, 1]
    calibrators = [IsotonicRegression(out_of_bounds="clip").fit(raw, outcome(m["train"], seed)) for seed in (0, 1)]
    change = gig.explain_change((m["old"], m["rows"]), (m["old"], m["rows"]), transform=tuple(calibrators))
    own = [c.predict(m["old"].predict_proba(m["rows"])[:, 1]) for c in calibrators]
    assert change.steps == ("data", "transform")
    np.testing.assert_allclose(change.totals[:, 1], own[1] - own[0], atol=1e-12)
    assert not change.values.any()


def test_groups_are_one_variable(months: dict[str, Any]) -> None:
    m = months
    groups = {"borrowing": ["utilisation", "enquiries"]}
    change = gig.explain_change((m["old"], m["rows"]), (m["new"], m["later"]), groups=groups, reference=m["train"][:20])
    assert change.feature_names == ("borrowing", "owns_home", "months")
    assert change.raw("borrowing") is None
    assert np.abs(change.gap).max() < 1e-6


def test_intervals_of_a_portfolio_hold_and_zero_steps_stay_zero(months: dict[str, Any]) -> None:
    m = months
    change = gig.explain_change((m["old"], m["rows"]), (m["new"], m["later"]), reference=m["train"].head(20))
    table = change.portfolio(bootstrap=400).set_index(["step", "feature"])
    for step, total in zip(change.steps, change.totals.mean(axis=0), strict=True):
        assert table.loc[(step, "(total)"), "change"] == pytest.approx(total)
        assert table.loc[step].drop("(total)")["change"].sum() == pytest.approx(total, abs=1e-7)
    inside = (table["low"] <= table["change"] + 1e-12) & (table["change"] <= table["high"] + 1e-12)
    assert inside.all()
    spread = change.totals[:, 0].std() / np.sqrt(60)
    width = table.loc[("data", "(total)"), "high"] - table.loc[("data", "(total)"), "low"]
    assert width == pytest.approx(2 * 1.96 * spread, rel=0.15)
    assert ("data", "months") not in table.index


def test_slices_frames_and_words(months: dict[str, Any]) -> None:
    m = months
    change = gig.explain_change((m["old"], m["rows"]), (m["new"], m["later"]))
    some = change[[3, 5]]
    assert some.ids.tolist() == ["customer 3", "customer 5"]
    values = some.raw("utilisation")
    assert values is not None
    assert values[1].tolist() == m["later"]["utilisation"].iloc[[3, 5]].tolist()
    frame = some.to_frame()
    assert frame.groupby("id")["change"].sum().to_numpy() == pytest.approx(
        (some.after - some.before - some.gap.sum(axis=1)).tolist()
    )
    assert "customer 3: score from" in repr(change[3])
    long = replace(change, feature_names=tuple(f"{name}_{'x' * 90}" for name in change.feature_names))
    assert max(map(len, repr(long).splitlines())) < 80
    assert change.by_order()["order"].tolist() == ["data, model", "model, data"]


def test_refuses_what_makes_no_sense(months: dict[str, Any]) -> None:
    m = months
    with pytest.raises(InputError, match=r"must be a pair \(model, rows\)"):
        gig.explain_change(m["old"], (m["old"], m["rows"]))
    with pytest.raises(InputError, match="59 after"):
        gig.explain_change((m["old"], m["rows"]), (m["old"], m["later"].head(59)))
    with pytest.raises(InputError, match="same customers in the same order; row 0"):
        gig.explain_change((m["old"], m["rows"]), (m["old"], m["later"].iloc[::-1]))
    with pytest.raises(InputError, match="order must be"):
        gig.explain_change((m["old"], m["rows"]), (m["new"], m["later"]), order=["model"])
    with pytest.raises(InputError, match="order must be"):
        gig.explain_change((m["old"], m["rows"]), (m["new"], m["later"]), order=unchecked(3))
    with pytest.raises(InputError, match="weights are those of the reference"):
        gig.explain_change((m["old"], m["rows"]), (m["new"], m["later"]), weights=[1.0] * 60)
    with pytest.raises(InputError, match="scores are mapped by a transform such as a SmoothedECDF"):
        gig.explain_change((m["old"], m["rows"]), (m["new"], m["later"]), transform=("rank", "rank"))
    assert repr(gig.explain_change((m["old"], m["rows"]), (m["new"], m["later"]))[:0]) == "0 customers"
    with pytest.raises(InputError, match="cutoff must be a pair"):
        gig.explain_change((m["old"], m["rows"]), (m["new"], m["later"]), cutoff=unchecked(0.5))
    with pytest.raises(InputError, match="at least one row"):
        gig.explain_change((m["old"], m["rows"]), (m["new"], m["later"]), reference=m["train"].head(0))
