"""`what_if` beside enumeration: every allowed change asked of the model itself, on German credit and Taiwan default."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier
from real_tables import real_table
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor
from xgboost import XGBClassifier

import gigrad as gig
from gigrad import InputError
from gigrad.datasets import german_credit


def mid_rank(held: Any, value: float) -> float:
    held = np.asarray(held, float)
    held = held[~np.isnan(held)]
    return float(((held < value).mean() + (held <= value).mean()) / 2)


def cost(reference: Any, name: str, old: Any, new: Any) -> float:
    if isinstance(reference[name].dtype, pd.CategoricalDtype) or pd.isna(old):
        return 1.0
    return abs(mid_rank(reference[name], new) - mid_rank(reference[name], old))


def enumerated(score: Any, row: Any, reference: Any, allowed: dict[str, list[Any]], cutoff: float) -> dict[Any, float]:
    """The least cost of a crossing change of every one and every two columns, by asking the model about all of them."""
    out: dict[Any, float] = {}

    def least(free: dict[str, list[Any]]) -> float:
        grids = np.meshgrid(*(np.arange(len(v)) for v in free.values()), indexing="ij")
        table = row.loc[row.index.repeat(grids[0].size)].copy()
        total = np.zeros(grids[0].size)
        for (name, values), grid in zip(free.items(), grids, strict=True):
            table[name] = pd.Series([values[i] for i in grid.ravel()], index=table.index).astype(row[name].dtype)
            total += np.array([cost(reference, name, row[name].iloc[0], v) for v in values])[grid.ravel()]
        return float(total[score(table) <= cutoff].min(initial=np.inf))

    for name in allowed:
        out[name] = least({name: allowed[name]})
    alone = {n: set(_crossing_values(score, row, n, values, cutoff)) for n, values in allowed.items()}
    kept = {n: [v for v in values if v not in alone[n]] for n, values in allowed.items()}
    for pair in combinations([n for n in allowed if kept[n]], 2):
        out[pair] = least({n: kept[n] for n in pair})
    return {names: found for names, found in out.items() if found < np.inf}


def _crossing_values(score: Any, row: Any, name: str, values: list[Any], cutoff: float) -> list[Any]:
    table = row.loc[row.index.repeat(len(values))].copy()
    table[name] = pd.Series(values, index=table.index).astype(row[name].dtype)
    return [v for v, ok in zip(values, score(table) <= cutoff, strict=True) if ok]


@pytest.fixture(scope="module")
def bank() -> dict[str, Any]:
    X, bad = german_credit(protected=True)
    model = XGBClassifier(n_estimators=40, max_depth=4, enable_categorical=True, n_jobs=1).fit(X, bad)
    risk = model.predict_proba(X)[:, 1].astype(float)
    approved = gig.references.approved(X, risk, 0.3, higher_is_better=False)
    return {"X": X, "model": model, "risk": risk, "approved": approved, "explainer": gig.Explainer(model, approved)}


def rules_of(X: Any, free: dict[str, Any]) -> dict[str, Any]:
    return {name: free.get(name, "frozen") for name in X.columns}


def test_trees_agree_with_enumeration_on_german_credit(bank: dict[str, Any]) -> None:
    """Numbers in steps and bounds, a one-way column, categories: every change is asked of XGBoost itself."""
    X, reference = bank["X"], bank["approved"].rows
    free = {
        "duration_months": {"direction": "down", "step": 3, "low": 4},
        "credit_amount": {"step": 500, "low": 500, "high": 9000},
        "installment_rate_pct_of_income": "any",
        "savings_account": "any",
        "checking_account_status": "any",
    }

    def score(table: Any) -> Any:
        return bank["model"].predict_proba(table)[:, 1].astype(float)

    checked = 0
    for i in np.flatnonzero(bank["risk"] > 0.6)[:4]:
        row = X.iloc[[i]]
        now = row.iloc[0]
        allowed: dict[str, list[Any]] = {
            "duration_months": [v for v in range(6, 73, 3) if v < now["duration_months"]],
            "credit_amount": [v for v in range(500, 9001, 500) if v != now["credit_amount"]],
            "installment_rate_pct_of_income": [v for v in (1, 2, 3, 4) if v != now["installment_rate_pct_of_income"]],
        }
        for name in ("savings_account", "checking_account_status"):
            allowed[name] = [v for v in reference[name].unique() if v != now[name]]
        found = gig.what_if(bank["explainer"], row, rules=rules_of(X, free), top=100)
        wanted = enumerated(score, row, reference, {n: v for n, v in allowed.items() if v}, 0.3)
        agrees(found, wanted)
        for change in (*found.single, *found.double):
            again = row.copy()
            for name, value in zip(change.features, change.after, strict=True):
                again[name] = pd.Series([value], index=row.index).astype(row[name].dtype)
            assert float(score(again)[0]) == change.score <= 0.3
            checked += 1
        assert found.searched.tried == found.searched.of
        assert set(found.impossible) == set(free) - {c.features[0] for c in found.single}
    assert checked > 10


def agrees(found: Any, wanted: dict[Any, float]) -> None:
    """Hold the single and double changes against what enumeration found."""
    single = {k: v for k, v in wanted.items() if isinstance(k, str)}
    double = {frozenset(k): v for k, v in wanted.items() if not isinstance(k, str)}
    assert {c.features[0]: c.cost for c in found.single} == pytest.approx(single, abs=1e-8)
    assert {frozenset(c.features): c.cost for c in found.double} == pytest.approx(double, abs=1e-8)
    assert all(c.exhaustive for c in (*found.single, *found.double))


def test_a_mixed_ensemble_agrees_with_enumeration_on_german_credit() -> None:
    """A net and boosted trees under a logistic head that was fitted on their scores."""
    X, bad = german_credit(protected=True)
    X = X.select_dtypes("number")
    trees = LGBMClassifier(n_estimators=20, num_leaves=8, verbose=-1, n_jobs=1).fit(X, bad)
    net = make_pipeline(StandardScaler(), MLPClassifier((6,), max_iter=150, random_state=0)).fit(X, bad)
    head = LogisticRegression().fit(np.column_stack([m.predict_proba(X)[:, 1] for m in (trees, net)]), bad)

    def score(table: Any) -> Any:
        return head.predict_proba(np.column_stack([m.predict_proba(table)[:, 1] for m in (trees, net)]))[:, 1]

    risk = score(X)
    cutoff = float(np.quantile(risk, 0.6))
    approved = gig.references.approved(X, risk, cutoff, higher_is_better=False)
    explainer = gig.Explainer(gig.stack([trees, net], head), gig.references.sample(approved, 150, 0))
    free = {
        "duration_months": {"direction": "down", "step": 3, "low": 4},
        "credit_amount": {"step": 500, "low": 500, "high": 9000},
        "installment_rate_pct_of_income": "any",
    }
    for i in np.flatnonzero(risk > cutoff + 0.05)[:4]:
        row, now = X.iloc[[i]], X.iloc[i]
        allowed: dict[str, list[Any]] = {
            "duration_months": [v for v in range(6, 73, 3) if v < now["duration_months"] and v <= 60],
            "credit_amount": [v for v in range(500, 9001, 500) if v != now["credit_amount"]],
            "installment_rate_pct_of_income": [v for v in (1, 2, 3, 4) if v != now["installment_rate_pct_of_income"]],
        }
        found = gig.what_if(explainer, row, cutoff=cutoff, rules=rules_of(X, free), top=100)
        top = explainer.reference.matrix[:, list(X.columns).index("duration_months")].max()
        allowed["duration_months"] = [v for v in allowed["duration_months"] if v <= top]
        reference = pd.DataFrame(explainer.reference.matrix, columns=X.columns)
        agrees(found, enumerated(score, row, reference, {n: v for n, v in allowed.items() if v}, cutoff))


@pytest.fixture(scope="module")
def taiwan() -> dict[str, Any]:
    table = real_table("taiwan_credit_default").sample(6000, random_state=0).reset_index(drop=True)
    y = table.pop("default_payment_next_month")
    trees = LGBMClassifier(n_estimators=40, num_leaves=15, verbose=-1, n_jobs=1).fit(table, y)
    net = make_pipeline(StandardScaler(), MLPClassifier((8,), max_iter=60, random_state=0)).fit(table, y)
    mixed = gig.average([trees, net])

    def mean(rows: Any) -> Any:
        return (trees.predict_proba(rows)[:, 1] + net.predict_proba(rows)[:, 1]) / 2

    return {"X": table, "trees": trees, "net": net, "mixed": mixed, "mean": mean}


@pytest.mark.parametrize("kind", ["trees", "mixed"])
def test_agrees_with_enumeration_on_taiwan_default(taiwan: dict[str, Any], kind: str) -> None:
    """Where every column has finitely many allowed values, a mixed ensemble is searched through as trees are."""
    X = taiwan["X"]
    score = taiwan["mean"] if kind == "mixed" else lambda rows: taiwan["trees"].predict_proba(rows)[:, 1]
    risk = score(X)
    cutoff = float(np.quantile(risk, 0.7))
    reference = gig.references.sample(gig.references.approved(X, risk, cutoff, higher_is_better=False), 300, 0)
    explainer = gig.Explainer(taiwan[kind], reference)
    free = {
        "limit_bal": {"direction": "up", "step": 20_000, "high": 300_000},
        "pay_0": {"direction": "down", "low": -2},
        "pay_2": {"direction": "down", "low": -2},
        "pay_amt1": {"direction": "up", "step": 1000, "low": 0, "high": 15_000},
    }
    for i in np.flatnonzero((risk > cutoff) & (risk < cutoff + 0.1))[:6]:
        row = X.iloc[[i]]
        now = row.iloc[0]
        allowed = {
            "limit_bal": [
                v for v in range(20_000, 300_001, 20_000) if v > now["limit_bal"] and v >= X_min(reference, "limit_bal")
            ],
            "pay_0": [v for v in range(-2, X_max(reference, "pay_0") + 1) if v < now["pay_0"]],
            "pay_2": [v for v in range(-2, X_max(reference, "pay_2") + 1) if v < now["pay_2"]],
            "pay_amt1": [v for v in range(0, 15_001, 1000) if v > now["pay_amt1"]],
        }
        found = gig.what_if(explainer, row, cutoff=cutoff, rules=rules_of(X, free), top=100)
        wanted = enumerated(score, row, reference.rows, {n: v for n, v in allowed.items() if v}, cutoff)
        agrees(found, wanted)
        assert all(c.score <= cutoff for c in (*found.single, *found.double))


def X_min(reference: Any, name: str) -> int:
    return int(reference.rows[name].min())


def X_max(reference: Any, name: str) -> int:
    return int(reference.rows[name].max())


def test_a_mixed_ensemble_that_moves_freely_says_what_it_sampled(taiwan: dict[str, Any]) -> None:
    """Every change is verified by both libraries; what is not searched through is not called so."""
    X = taiwan["X"].assign(limit_bal=taiwan["X"]["limit_bal"] * 1.0123456)
    trees = LGBMClassifier(n_estimators=30, verbose=-1, n_jobs=1).fit(X, taiwan["X"]["pay_0"] > 0)
    line = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(X, taiwan["X"]["pay_0"] > 0)
    names = ["limit_bal", "bill_amt1"]
    risk = (trees.predict_proba(X)[:, 1] + line.predict_proba(X)[:, 1]) / 2
    explainer = gig.Explainer(gig.average([trees, line]), X.head(200))
    seen = 0
    for i in np.flatnonzero(risk > 0.3)[:5]:
        row = X.iloc[[i]]
        target = float(risk[i]) * 0.97
        found = gig.what_if(
            explainer, row, cutoff=target, higher_is_better=False, rules=rules_of(X, dict.fromkeys(names, "any"))
        )
        for change in found.double:  # neither is enough alone
            for name, value in zip(change.features, change.after, strict=True):
                half = row.assign(**{name: value})
                assert (trees.predict_proba(half)[0, 1] + line.predict_proba(half)[0, 1]) / 2 > target
        for change in (*found.single, *found.double):
            assert not change.exhaustive
            again = row.assign(**dict(zip(change.features, change.after, strict=True)))
            own = float((trees.predict_proba(again)[0, 1] + line.predict_proba(again)[0, 1]) / 2)
            assert own == pytest.approx(change.score, abs=1e-12)
            assert own <= target
            seen += 1
    assert seen


# ---------------------------------------------------------------- curves


def test_curves_of_trees_are_the_models_own_everywhere(bank: dict[str, Any]) -> None:
    X, model = bank["X"], bank["model"]
    row = X.iloc[[int(np.argmax(bank["risk"]))]]
    found = gig.what_if(bank["explainer"], row, rules=dict.fromkeys(X.columns, "frozen"))
    for name in ("duration_months", "credit_amount", "age"):
        curve = found.curves[name]
        assert curve.kind == "steps"
        asked = np.concatenate(
            [np.arange(1, 80), curve.breakpoints, np.nextafter(curve.breakpoints, np.inf), [250.0, 5000.0, 1e6]]
        )
        table = row.loc[row.index.repeat(len(asked))].astype({name: float})
        table[name] = asked
        np.testing.assert_allclose(curve(asked), model.predict_proba(table)[:, 1], atol=1e-6)
        assert (np.diff(curve.scores) != 0).all()
        assert len(curve.breakpoints) == len(curve.scores) - 1
    labels = found.curves["purpose"]
    assert labels.kind == "labels"
    table = row.loc[row.index.repeat(len(labels.values))].copy()
    table["purpose"] = pd.Series(labels.values, index=table.index).astype(X["purpose"].dtype)
    np.testing.assert_allclose(labels.scores, model.predict_proba(table)[:, 1], atol=1e-6)


def test_curves_of_a_mixed_ensemble_are_asked_on_both_sides_of_every_threshold(taiwan: dict[str, Any]) -> None:
    X = taiwan["X"]
    row = X.iloc[[5]]
    found = gig.what_if(gig.Explainer(taiwan["mixed"], X.head(100)), row, cutoff=0.0, higher_is_better=False, most=1)
    curve = found.curves["bill_amt1"]
    assert curve.kind == "points"
    assert set(curve.breakpoints) <= set(curve.values)
    table = row.loc[row.index.repeat(len(curve.values))].astype({"bill_amt1": float})
    table["bill_amt1"] = curve.values
    np.testing.assert_allclose(curve.scores, taiwan["mean"](table), atol=1e-9)
    with pytest.raises(InputError, match="Only a curve of steps"):
        curve([0.0])


# ---------------------------------------------------------------- rules, limits, words


def test_a_limit_leaves_the_cost_up_to_which_all_was_tried(bank: dict[str, Any]) -> None:
    row = bank["X"].iloc[[int(np.argmax(bank["risk"]))]]
    whole = gig.what_if(bank["explainer"], row, top=1000)
    some = gig.what_if(bank["explainer"], row, top=1000, most=500)
    assert whole.searched.tried == whole.searched.of
    assert whole.searched.upto == np.inf
    assert some.searched.tried <= 500 < some.searched.of
    cheap = [c for c in whole.double if c.cost <= some.searched.upto]
    assert [(c.features, c.cost) for c in some.double] == [(c.features, c.cost) for c in cheap]


def test_a_cutoff_that_is_a_score_of_the_model_is_reached() -> None:
    """XGBoost's scores are float32: the graph meets such a cutoff up to rounding alone, from below as often as not."""
    rng = np.random.default_rng(4)
    X = rng.integers(0, 4, (400, 3)).astype(float)
    model = XGBClassifier(n_estimators=8, max_depth=3, n_jobs=1)
    model.fit(X, X.sum(axis=1) + rng.normal(size=400) > 4.5)
    every = np.stack(np.meshgrid(*[np.arange(4.0)] * 3), axis=-1).reshape(-1, 3)
    own, graph = model.predict_proba(every)[:, 1].astype(float), gig.import_model(model).predict(every)
    explainer = gig.Explainer(model, X[:100])
    missed = 0
    for cutoff in np.unique(own)[10:-5:4].tolist():
        for row in every[own < cutoff][::7]:
            changed = every != row
            one, two = (
                {
                    tuple(f"f{j}" for j in np.flatnonzero(c))
                    for c in changed[(changed.sum(axis=1) == n) & (own >= cutoff)]
                }
                for n in (1, 2)
            )
            found = gig.what_if(explainer, row[None], cutoff=cutoff, higher_is_better=True, top=9)
            assert {c.features for c in found.single} == one
            assert {p for p in two if not {p[:1], p[1:]} & one} <= {c.features for c in found.double} <= two
            missed += int(((graph < cutoff) & (own >= cutoff) & (changed.sum(axis=1) == 1)).any())
    assert missed > 3


def test_prices_and_missing_values() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"debt": rng.integers(0, 50, 400) * 100.0, "income": rng.normal(3000, 900, 400)})
    X.loc[::7, "income"] = np.nan
    y = (X["debt"] / 1000 - X["income"].fillna(1500) / 1500 + rng.normal(0, 0.5, 400)) > 0.5
    model = LGBMClassifier(n_estimators=20, verbose=-1, n_jobs=1).fit(X, y)
    explainer = gig.Explainer(model, X)
    row = pd.DataFrame({"debt": [3000.0], "income": [np.nan]})
    asked: dict[str, Any] = {"cutoff": 0.3, "higher_is_better": False}
    found = gig.what_if(explainer, row, rules={"debt": "down"}, prices={"debt": 0.001}, **asked)
    by_name = {c.features[0]: c for c in found.single}
    assert by_name["debt"].cost == pytest.approx(0.001 * (3000 - by_name["debt"].after[0]), abs=1e-8)
    assert by_name["debt"].after[0] % 1 == 0  # the reference's values are whole numbers
    assert by_name["income"].before == (None,)
    assert by_name["income"].cost == 1.0
    assert "debt: 3000 ->" in repr(found)
    frame = found.to_frame()
    assert frame["cost"].is_monotonic_increasing
    assert gig.what_if(explainer, row.assign(debt=0.0, income=9000.0), **asked).passes


def test_arrays_polars_and_groups() -> None:
    pl = pytest.importorskip("polars")
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.integers(0, 9, 300), rng.integers(0, 2, (300, 2))]).astype(float)
    y = X[:, 0] + 3 * X[:, 1] > 6
    model = XGBClassifier(n_estimators=10, max_depth=2, n_jobs=1).fit(X, y)
    asked: dict[str, Any] = {"cutoff": 0.5, "higher_is_better": True}
    plain = gig.what_if(gig.Explainer(model, X), X[[int(np.argmin(X[:, 0]))]], **asked)
    frame = pl.DataFrame(X, schema=["a", "b", "c"])
    named = gig.what_if(gig.Explainer(model, frame), frame[[int(np.argmin(X[:, 0]))]], **asked)
    assert [c.after for c in plain.single] == [c.after for c in named.single]
    grouped = gig.Explainer(model, frame, groups={"both": ["b", "c"]})
    left = gig.what_if(grouped, frame[[0]], **asked)
    assert left.provenance["what_if"]["left_alone"] == ["b", "c"]
    assert all(c.features == ("a",) for c in left.single)


def test_listed_values_may_lie_beyond_the_reference() -> None:
    X = pd.DataFrame({"a": np.arange(40.0)})
    model = DecisionTreeRegressor().fit(X, X["a"])
    explainer = gig.Explainer(model, X.iloc[20:30])
    found = gig.what_if(explainer, X.iloc[[25]], cutoff=5, higher_is_better=False,
                        rules={"a": {"values": np.array([3, 22, 38])}})  # fmt: skip
    assert [c.after for c in found.single] == [(3,)]
    none = gig.what_if(explainer, X.iloc[[25]], cutoff=5, higher_is_better=False)
    assert none.impossible == ("a",)


def test_categories_that_the_reference_does_not_hold() -> None:
    """Integer codes in an array, and a label that CatBoost knows only as a hash."""
    lightgbm, catboost = pytest.importorskip("lightgbm"), pytest.importorskip("catboost")
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 8, 600), rng.normal(size=600)])
    y = ((X[:, 0] % 3 == 0) + X[:, 1] > 0.8).astype(int)
    asked: dict[str, Any] = {"cutoff": 0.5, "higher_is_better": True}
    few = X[X[:, 0] < 4]
    trees = lightgbm.LGBMClassifier(n_estimators=10, num_leaves=6, verbose=-1, n_jobs=1)
    for code in (7.0, 99.0):
        row = np.array([[code, -0.2]])
        found = gig.what_if(gig.Explainer(trees.fit(X, y, categorical_feature=[0]), few), row, **asked)
        curve = found.curves["Column_0"]
        assert curve.now == code
        np.testing.assert_allclose(curve.scores[list(curve.values).index(code)], found.score)
        assert all(c.before[0] == code for c in found.single if c.features == ("Column_0",))
    frame = pd.DataFrame({"code": X[:, 0].astype(int), "x": X[:, 1]})
    model = catboost.CatBoostClassifier(
        iterations=10, depth=3, cat_features=["code"], one_hot_max_size=20, verbose=0, thread_count=1,
        allow_writing_files=False,
    ).fit(frame, y)  # fmt: skip
    row = pd.DataFrame({"code": [7], "x": [-0.2]})
    found = gig.what_if(gig.Explainer(model, frame[frame["code"] < 4]), row, **asked)
    assert found.curves["code"].now == 7
    changes = [*found.single, *found.double]
    assert {name for c in changes for name in c.features} == {"code", "x"}
    for change in changes:
        changed = row.assign(**dict(zip(change.features, change.after, strict=True)))
        assert model.predict_proba(changed)[0, 1] == pytest.approx(change.score, abs=1e-12)
        assert change.score >= 0.5


def test_refuses_what_makes_no_sense(bank: dict[str, Any]) -> None:
    X, explainer = bank["X"], bank["explainer"]
    with pytest.raises(InputError, match="'wage' is not one"):
        gig.what_if(explainer, X.head(1), rules={"wage": "up"})
    with pytest.raises(InputError, match="direction of 'age' must be one of"):
        gig.what_if(explainer, X.head(1), rules={"age": "sideways"})
    with pytest.raises(InputError, match="step of 'age' must be a positive number"):
        gig.what_if(explainer, X.head(1), rules={"age": {"step": 0}})
    for rule, said in (
        ({"low": 50, "high": 20}, "low of 'age' must not be above its high"),
        ({"values": ["young"]}, "values of 'age' must be finite numbers; got 'young'"),
        ({"values": [30, None]}, "values of 'age' must be finite numbers; got None"),
    ):
        with pytest.raises(InputError, match=said):
            gig.what_if(explainer, X.head(1), rules={"age": rule})
    for odd in ("up", {"step": 1}, {"low": 2}):
        with pytest.raises(InputError, match="'purpose' is a category, which has no order"):
            gig.what_if(explainer, X.head(1), rules={"purpose": odd})
    with pytest.raises(InputError, match="a table of one row; it has 2"):
        gig.what_if(explainer, X.head(2))
    with pytest.raises(InputError, match="labels that the model knows; got 'yacht'"):
        gig.what_if(explainer, X[bank["risk"] > 0.5].head(1), rules={"purpose": {"values": ["yacht"]}})
    with pytest.raises(InputError, match="cutoff must be given"):
        gig.what_if(gig.Explainer(bank["model"], X.head(20)), X.head(1), higher_is_better=False)
    with pytest.raises(InputError, match="must be given an Explainer"):
        gig.what_if(bank["model"], X.head(1))
