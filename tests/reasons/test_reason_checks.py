"""Score gaps, the stability of reasons, and records held against the model."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xgboost as xgb

import gigrad as gig
from gigrad._explain.resampling import bootstrap_weights
from gigrad.graph import Column, Graph, Input, Tree, assemble


@pytest.fixture(scope="module")
def lender() -> tuple[Any, pd.DataFrame]:
    """A boosted model over numbers, whole numbers, categories and missing values."""
    rng = np.random.default_rng(0)
    n = 400
    X = pd.DataFrame(
        {
            "income": rng.lognormal(10, 0.5, n),
            "late": rng.integers(0, 6, n),
            "years": np.where(rng.random(n) < 0.2, np.nan, rng.gamma(2, 3, n)),
            "home": pd.Categorical(rng.choice(["rent", "own", "free"], n)),
        }
    )
    risk = X["late"] - np.log(X["income"]) + 10 + X["years"].isna() + (X["home"] == "rent")
    model = xgb.XGBClassifier(n_estimators=30, max_depth=3, enable_categorical=True, random_state=0, n_jobs=1)
    return model.fit(X, (risk + rng.normal(0, 1, n) > 3).astype(int)), X


# ---------------------------------------------------------------- gaps


def test_a_gap_is_the_mean_over_all_pairs_and_sums_to_the_difference(lender: Any) -> None:
    model, X = lender
    rng = np.random.default_rng(1)
    a, b = X.iloc[:23], X.iloc[100:141]
    wa, wb = rng.random(23), rng.random(41)
    found = gig.explain_gap(model, a, b, weights_a=wa, weights_b=wb, output="margin", bootstrap=0)
    rows = [(i, j) for i in range(23) for j in range(41)]
    pairs = gig.explain_pairs(model, b.iloc[[j for _, j in rows]], a.iloc[[i for i, _ in rows]], output="margin")
    weight = np.array([wa[i] / wa.sum() * wb[j] / wb.sum() for i, j in rows])
    np.testing.assert_allclose(found.values, weight @ pairs.values, atol=1e-12)
    margin = [model.predict(t, output_margin=True).astype(float) for t in (a, b)]
    difference = np.average(margin[0], weights=wa) - np.average(margin[1], weights=wb)
    assert found.difference == pytest.approx(difference, abs=1e-12)
    assert found.values.sum() + found.gap == pytest.approx(difference, abs=1e-12)
    assert abs(found.gap) < 1e-5  # XGBoost adds in float32
    assert np.isnan(found.low).all()
    turned = gig.explain_gap(model, b, a, weights_a=wb, weights_b=wa, output="margin", bootstrap=0)
    np.testing.assert_allclose(turned.values, -found.values, atol=1e-12)


def test_the_error_of_a_group_is_that_of_all_its_members(lender: Any) -> None:
    from sklearn.neural_network import MLPRegressor

    X = lender[1][["income", "late"]] / [20_000.0, 3.0]
    net = MLPRegressor(hidden_layer_sizes=(8,), activation="tanh", max_iter=50, random_state=0).fit(
        X, np.sin(X["income"] + X["late"])
    )
    alone = gig.explain_gap(net, X[:9], X[9:20], bootstrap=0)
    together = gig.explain_gap(net, X[:9], X[9:20], bootstrap=0, groups={"both": ["income", "late"]})
    assert together.feature_names == ("both",)
    assert alone.error > 0
    assert together.error == 2 * alone.error
    with pytest.raises(gig.InputError, match="'rent' is not one"):
        gig.explain_gap(net, X[:9], X[9:20], groups={"both": ["rent"]})


def test_every_bootstrap_sample_is_the_gap_of_that_sample(lender: Any) -> None:
    model, X = lender
    a, b = X.iloc[:30], X.iloc[30:55]
    random = np.random.default_rng(5)
    drawn = [bootstrap_weights(np.full(len(g), 1 / len(g)), 40, random) for g in (a, b)]
    each = [
        gig.explain_gap(model, a, b, weights_a=wa, weights_b=wb, output="margin", bootstrap=0)
        for wa, wb in zip(*drawn, strict=True)
    ]
    found = gig.explain_gap(model, a, b, output="margin", bootstrap=40, seed=5, level=0.8)
    np.testing.assert_allclose(found.low, np.quantile([g.values for g in each], 0.1, axis=0), atol=1e-12)
    np.testing.assert_allclose(found.high, np.quantile([g.values for g in each], 0.9, axis=0), atol=1e-12)
    assert found.difference_low == pytest.approx(np.quantile([g.difference for g in each], 0.1), abs=1e-12)
    assert (found.low <= found.high).all()


def test_intervals_have_the_width_that_theory_says() -> None:
    source = Input(1)
    stump = Tree(np.array([0, -1, -1]), np.array([0.0, 0, 0]), np.array([1, -1, -1]), np.array([2, -1, -1]),
                 np.zeros(3, bool), np.array([0.0, 0.0, 1.0]))  # fmt: skip
    score = assemble(source, [stump], np.zeros(1))
    graph = Graph((Column("x"),), source, score, score, ("share",))
    rng = np.random.default_rng(0)
    a, b = rng.normal(0.5, 1, (300, 1)), rng.normal(0, 1, (500, 1))
    found = gig.explain_gap(graph, a, b, bootstrap=2000)
    pa, pb = (a > 0).mean(), (b > 0).mean()
    error = np.sqrt(pa * (1 - pa) / 300 + pb * (1 - pb) / 500)
    assert found.values[0] == pytest.approx(pa - pb, abs=1e-12)
    assert (found.high - found.low)[0] / (2 * 1.96 * error) == pytest.approx(1.0, abs=0.06)


def test_gaps_can_be_grouped_read_and_traced(lender: Any) -> None:
    model, X = lender
    a = gig.references.all_applicants(X.iloc[:40])
    found = gig.explain_gap(
        model, a, X.iloc[40:90], output="margin", bootstrap=20, groups={"person": ["income", "home"]}
    )
    plain = gig.explain_gap(model, X.iloc[:40], X.iloc[40:90], output="margin", bootstrap=20)
    assert found.feature_names == ("person", "late", "years")
    assert found.values[0] == pytest.approx(plain.values[0] + plain.values[3])
    assert found.provenance["group_a"]["note"].startswith("all applicants")
    assert found.provenance["settings"]["bootstrap"] == 20
    json.dumps(found.provenance)
    frame = found.to_frame()
    assert frame["share"].sum() == pytest.approx(1.0 - found.gap / found.difference, abs=1e-12)
    assert list(np.abs(frame["credit"])) == sorted(np.abs(frame["credit"]), reverse=True)
    assert found.to_frame(library="polars").columns == ["feature", "credit", "low", "high", "share"]
    assert "person" in str(found)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"level": 95}, "level must lie between 0 and 1"),
        ({"bootstrap": -1}, "0 or more"),
        ({"weights_a": [1.0]}, "one number a row of group_a"),
        ({"groups": {"g": ["zzz"]}}, "'zzz' is not one"),
    ],
)
def test_bad_gaps_are_refused(lender: Any, arguments: Any, message: str) -> None:
    model, X = lender
    with pytest.raises(gig.InputError, match=message):
        gig.explain_gap(model, X.iloc[:5], X.iloc[5:9], output="margin", **arguments)


def test_an_empty_group_is_refused(lender: Any) -> None:
    model, X = lender
    with pytest.raises(gig.InputError, match="group_b must have at least one row"):
        gig.explain_gap(model, X.iloc[:5], X.iloc[:0], output="margin")


# ---------------------------------------------------------------- stability


def approved(model: Any, X: pd.DataFrame) -> tuple[gig.Reference, pd.DataFrame]:
    margin = model.predict(X, output_margin=True)
    return gig.references.approved(X, margin, 0.0, higher_is_better=False), X[margin > 0]


def test_stability_counts_what_explaining_again_gives(lender: Any) -> None:
    model, X = lender
    r, refused = approved(model, X)
    refused = refused.iloc[:12]
    groups = {"person": ["income", "home"]}
    found = gig.reason_stability(
        model, refused, r, output="margin", top=2, groups=groups, bootstrap=15, spaces={}, seed=3
    )
    given = gig.reasons(gig.explain(model, refused, r, output="margin"), top=2, groups=groups)
    weights = bootstrap_weights(r.weights, 15, np.random.default_rng(3))
    ranges = dict(given.context.rules.ranges)
    again = [
        gig.reasons(
            gig.explain(model, refused, r.rows, weights=w, output="margin"),
            top=2, groups=groups, higher_is_better=False, ranges=ranges,
        )
        for w in weights
    ]  # fmt: skip
    drawn = [c for c in found.changes if c.kind == "reference"]
    for i, change in enumerate(drawn):
        own = [x.feature for x in given[i].reasons]
        seen = [[x.feature for x in g[i].reasons] for g in again]
        assert change.row_id == given[i].row_id
        assert change.changed == np.mean([set(s) != set(own) for s in seen])
        assert change.reordered == np.mean([s != own for s in seen])
        assert change.first_changed == np.mean([s[:1] != own[:1] for s in seen])
        assert change.kept == {f: np.mean([f in s for s in seen]) for f in own}
    assert 0 < found.overall["reference"]["reordered"] < 1
    assert found.overall["reference"]["changed"] == pytest.approx(np.mean([c.changed for c in drawn]))
    assert list(found.to_frame()["row_id"]) == [c.row_id for c in found.changes]


def test_other_spaces_are_those_of_the_model(lender: Any) -> None:
    model, X = lender
    risk = model.predict_proba(X)[:, 1].astype(float)
    r, refused = gig.references.approved(X, risk, 0.5, higher_is_better=False), X[risk > 0.5].iloc[:25]
    ecdf = gig.SmoothedECDF.fit(risk)
    spaces = {"margin": "margin", "rank": ecdf}
    found = gig.reason_stability(model, refused, r, top=2, bootstrap=0, spaces=spaces)
    given = gig.reasons(gig.explain(model, refused, r), top=2)
    for kind, output in spaces.items():
        there = gig.reasons(gig.explain(model, refused, r, output=output), top=2)
        own = [[[x.feature for x in a.reasons] for a in side] for side in (given, there)]
        differ = [float(a != b) for a, b in zip(*own, strict=True)]
        assert [c.reordered for c in found.changes if c.kind == kind] == differ
    assert gig.reason_stability(model, refused[:2], r, bootstrap=0).kinds == ("margin", "rank", "half-way")
    for output, others in (("margin", ("prediction", "rank")), (ecdf, ("margin", "prediction"))):
        found = gig.reason_stability(model, refused[:2], r, output=output, bootstrap=0)
        assert found.kinds == (*others, "half-way")


def test_values_move_within_their_measurement_error_and_no_further(lender: Any) -> None:
    model, X = lender
    r, refused = approved(model, X)
    refused = refused.iloc[:20]
    common: dict[str, Any] = {"output": "margin", "bootstrap": 0, "spaces": {}, "top": 2, "draws": 8}
    still = gig.reason_stability(model, refused, r, measurement_error={"late": 0.4, "income": 0}, **common)
    assert still.overall["measurement"]["reordered"] == 0  # whole numbers stay whole
    some = gig.reason_stability(model, refused, r, measurement_error={"income": "1%"}, **common)
    more = gig.reason_stability(model, refused, r, measurement_error={"income": "90%", "late": 3}, **common)
    assert some.overall["measurement"]["reordered"] < more.overall["measurement"]["reordered"]
    assert [c.kind for c in more.of(refused.index[0])] == ["half-way", "measurement"]
    assert "measurement" in str(more)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        ({"zzz": 1}, "'zzz' is none of them"),
        ({"home": 1}, "'home' is a category"),
        ({"late": -1}, "0 or more, or a percentage"),
        ({"late": "lots"}, "0 or more, or a percentage"),
    ],
)
def test_bad_measurement_errors_are_refused(lender: Any, error: Any, message: str) -> None:
    model, X = lender
    r, refused = approved(model, X)
    with pytest.raises(gig.InputError, match=message):
        gig.reason_stability(model, refused, r, output="margin", bootstrap=0, spaces={}, measurement_error=error)


# ---------------------------------------------------------------- examination


def test_a_record_is_confirmed_by_the_model_and_the_reference(lender: Any) -> None:
    model, X = lender
    r, refused = approved(model, X)
    found = gig.reasons(gig.explain(model, refused.iloc[:6], r, output="margin"), groups={"person": ["income", "home"]})
    for record, applicant in zip(found.audit(), found, strict=True):
        checked = gig.verify_reasons(json.dumps(record), model, r, output="margin")
        assert checked.ok, checked.differences
        assert checked.reasons == applicant
        assert checked.largest_credit_difference < 1e-12


def test_another_model_or_reference_is_found_out(lender: Any) -> None:
    model, X = lender
    r, refused = approved(model, X)
    record = gig.reasons(gig.explain(model, refused.iloc[:1], r, output="margin")).audit()[0]
    other = gig.verify_reasons(record, model, gig.references.sample(r, len(r) - 1), output="margin")
    assert [d.split(" has ")[0] for d in other.differences][:1] == ["the reference"]
    assert other.largest_credit_difference > 0
    retrained = xgb.XGBClassifier(n_estimators=30, max_depth=2, enable_categorical=True, n_jobs=1)
    retrained.fit(X, model.predict(X))
    assert any(
        d.startswith("the model has") for d in gig.verify_reasons(record, retrained, r, output="margin").differences
    )
    narrow = xgb.XGBClassifier(n_estimators=3, n_jobs=1).fit(X[["income", "late"]], model.predict(X))
    plain = gig.references.all_applicants(X[["income", "late"]])
    assert (
        "the model has other columns than the record"
        in gig.verify_reasons(record, narrow, plain, output="margin").differences
    )
