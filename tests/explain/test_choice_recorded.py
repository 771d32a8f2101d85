"""The choice of discrete and nominal columns in files, records, configurations and trials."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import xgboost
from office import called
from real_tables import real_table

import gigrad as gig
from gigrad import portable
from gigrad._reasons.audit import fingerprint
from gigrad.graph import TreeEnsemble


def loans(n: int = 300) -> tuple[Any, Any]:
    """Flags that interact, a term of three lengths and an amount; float-typed, so that thresholds decide."""
    rng = np.random.default_rng(1)
    X = pd.DataFrame(
        {
            "owns": rng.integers(0, 2, n), "phone": rng.integers(0, 2, n), "term": rng.choice([12, 24, 36], n),
            "amount": np.round(rng.gamma(2.0, 10.0, n), 2),
        }
    ).astype(float)  # fmt: skip
    score = 1.5 * X["owns"] * (X["term"] > 20) - X["phone"] * (X["amount"] > 20) + X["owns"] * X["phone"]
    return X, (score + rng.normal(0, 0.5, n) > 0.5).astype(int)


@pytest.fixture(scope="module")
def model() -> Any:
    X, y = loans()
    return xgboost.XGBClassifier(n_estimators=20, max_depth=4, learning_rate=0.4).fit(X, y)


OPTIONS: dict[str, dict[str, Any]] = {
    "default": {},
    "none": {"discrete": ()},
    "values": {"discrete": {"term": [12, 24, 36], "owns": None}, "nominal": ["phone"]},
}


# ---------------------------------------------------------------- files


@pytest.mark.parametrize("name", OPTIONS)
def test_a_portable_file_keeps_the_choice(name: str, model: Any, tmp_path: Path) -> None:
    X, _ = loans()
    explainer = gig.Explainer(model, X.head(40), **OPTIONS[name])
    explainer.save(tmp_path / "x.gig")
    again = gig.Explainer.load(tmp_path / "x.gig")
    assert again.choice == explainer.choice
    assert np.array_equal(again(X.tail(9)).values, explainer(X.tail(9)).values)
    again.save(tmp_path / "y.gig")
    # once more: what was loaded is saved as it was imported, and not with its places moved
    third = gig.Explainer.load(tmp_path / "y.gig")
    assert np.array_equal(third(X.tail(9)).values, explainer(X.tail(9)).values)
    graph = gig.Graph.load(tmp_path / "x.gig")
    other = gig.Explainer(graph, X.head(40), discrete=())
    assert np.array_equal(other(X.tail(9)).values, gig.explain(model, X.tail(9), X.head(40), discrete=()).values)


def edited(data: bytes, change: Any) -> bytes:
    """The same .gig file with another document."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
        for info in old.infolist():
            content = old.read(info)
            if info.filename == "gigrad.json":
                document = json.loads(content)
                change(document)
                content = json.dumps(document).encode()
            new.writestr(zipfile.ZipInfo(info.filename), content)
    return out.getvalue()


def test_an_older_file_is_refused_with_what_to_do(model: Any) -> None:
    data = portable.to_bytes(gig.Explainer(model, loans()[0].head(5)))
    with pytest.raises(gig.CorruptModelError, match=r"format version 1.*definition 1.*[Ss]ave it again"):
        portable.from_bytes(edited(data, lambda d: d.update(version=1)))
    with pytest.raises(gig.CorruptModelError, match=r"under definition 3.*save it again"):
        portable.from_bytes(edited(data, lambda d: d["provenance"].update(definition=3)))


@pytest.mark.parametrize(
    "choice",
    [
        None, [], {}, {"discrete": []}, {"discrete": {"luck": ["owns"]}}, {"discrete": {"given": ["home"]}},
        {"discrete": {"given": "owns"}}, {"discrete": {"given": ["owns"], "type": ["owns"]}},
        {"discrete": {"given": ["owns"]}, "values": {"owns": [1]}}, {"discrete": {}, "values": {"owns": [0, 1]}},
        {"discrete": {}, "nominal": ["home"]}, {"discrete": {"type": ["owns"]}, "nominal": ["owns"]},
        {"discrete": {}, "values": 3}, {"discrete": {}, "nominal": 3},
    ],
)  # fmt: skip
def test_a_damaged_choice_is_refused(choice: Any, model: Any) -> None:
    data = portable.to_bytes(gig.Explainer(model, loans()[0].head(5)))
    with pytest.raises(gig.CorruptModelError):
        portable.from_bytes(edited(data, lambda d: d["provenance"].update(choice=choice)))


def test_an_explanation_keeps_the_choice(model: Any, tmp_path: Path) -> None:
    X, _ = loans()
    e = gig.explain(model, X.tail(3), X.head(40), nominal=["phone"])
    e.save(tmp_path / "e.parquet")
    again = gig.Explanation.load(tmp_path / "e.parquet")
    assert again.provenance == e.provenance
    assert again.provenance["definition"] == 2
    assert "discrete: 2 columns (owns, term); nominal: 1 column (phone)" in str(again)
    older = {k: v for k, v in e.provenance.items() if k not in ("definition", "choice")}
    assert "explained under definition 1" in str(gig.Explanation(
        e.values, e.base_values, e.predictions, e.gap, e.error, e.data, e.feature_names, e.output_names, older
    ))  # fmt: skip


# ---------------------------------------------------------------- records


def reasons_of(model: Any, **options: Any) -> tuple[Any, Any, Any]:
    X, _ = loans()
    risk = model.predict_proba(X)[:, 1]
    approved = gig.references.approved(X, risk, 0.4, higher_is_better=False)
    e = gig.explain(model, X[risk > 0.6].head(3), approved, **options)
    return gig.reasons(e), approved, e


@pytest.mark.parametrize("name", OPTIONS)
def test_a_record_is_verified_under_its_own_choice(name: str, model: Any) -> None:
    found, approved, e = reasons_of(model, **OPTIONS[name])
    record = found.audit()[0]
    assert record["provenance"]["definition"] == 2
    assert record["provenance"]["choice"] == e.provenance["choice"]
    examined = gig.verify_reasons(record, model, approved)
    assert examined.ok, examined.differences
    assert examined.definition == 2


def remade(record: dict[str, Any], change: Any) -> dict[str, Any]:
    """A changed record under a fingerprint of its own."""
    changed = json.loads(json.dumps({k: v for k, v in record.items() if k != "fingerprint"}))
    change(changed["provenance"])
    return {**changed, "fingerprint": fingerprint(changed)}


def test_an_older_record_is_neither_confirmed_nor_refuted(model: Any) -> None:
    found, approved, _ = reasons_of(model)
    older = remade(
        found.audit()[0], lambda p: (p.pop("definition"), p.pop("choice"), p["model"].update(fingerprint="x"))
    )
    examined = gig.verify_reasons(older, model, approved)
    assert examined.definition == 1
    assert not examined.ok
    (said,) = examined.differences
    assert said.startswith("explained under definition 1")
    assert "fingerprint" not in said
    assert np.isnan(examined.largest_credit_difference)
    assert examined.reasons.reasons == found[0].reasons


def test_a_record_with_another_choice_does_not_verify(model: Any) -> None:
    found, approved, _ = reasons_of(model)
    forged = remade(found.audit()[0], lambda p: p.update(choice={"discrete": {}, "nominal": []}))
    assert any("a credit differs" in d for d in gig.verify_reasons(forged, model, approved).differences)
    for choice in (None, 3, {"discrete": 3}, {"discrete": {"given": ["home"]}}):
        damaged = remade(found.audit()[0], lambda p, choice=choice: p.update(choice=choice))
        with pytest.raises(gig.InputError):
            gig.verify_reasons(damaged, model, approved)


# ---------------------------------------------------------------- commands


@pytest.fixture(scope="module")
def office(model: Any, tmp_path_factory: Any) -> Path:
    folder: Path = tmp_path_factory.mktemp("office")
    model.save_model(folder / "model.json")
    X, _ = loans()
    X = X.astype({"owns": int, "phone": int, "term": int})
    X.head(40).to_csv(folder / "past.csv", index=False)
    X.head(40).to_parquet(folder / "past.parquet")
    X.tail(9).to_csv(folder / "new.csv", index=False)
    return folder


def credits_of(path: Path) -> Any:
    table = pq.read_table(path).to_pandas()
    return table[[c for c in table.columns if c.startswith("credit_")]].to_numpy()


@pytest.mark.parametrize(
    ("words", "options"),
    [
        ("", {}),
        ("--discrete none", {"discrete": ()}),
        ("--discrete owns --discrete term=12,24,36 --nominal phone",
         {"discrete": {"owns": None, "term": [12, 24, 36]}, "nominal": ["phone"]}),
    ],
)  # fmt: skip
def test_the_command_takes_the_choice(
    words: str, options: Any, office: Path, model: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, _ = loans()
    right = gig.explain(model, X.tail(9), X.head(40), **options).values
    end = f"-q -o {tmp_path}/a.parquet --save-config {tmp_path}/run.toml"
    done = called(f"gigrad explain model.json new.csv --reference past.csv {words} {end}", office, monkeypatch)
    assert done.exit_code == 0, done.stderr
    assert np.array_equal(credits_of(tmp_path / "a.parquet"), right)
    done = called(f"gigrad explain --config {tmp_path}/run.toml -q -o {tmp_path}/b.parquet", office, monkeypatch)
    assert done.exit_code == 0, done.stderr
    assert np.array_equal(credits_of(tmp_path / "b.parquet"), right)
    done = called(
        f"gigrad save model.json --reference past.parquet {words} -q -o {tmp_path}/x.gig", office, monkeypatch
    )
    assert done.exit_code == 0, done.stderr
    done = called(f"gigrad explain {tmp_path}/x.gig new.csv -q -o {tmp_path}/c.parquet", office, monkeypatch)
    assert done.exit_code == 0, done.stderr
    assert np.array_equal(credits_of(tmp_path / "c.parquet"), right)
    told = called(f"gigrad info {tmp_path}/c.parquet", office, monkeypatch).stdout
    assert "Definition         2" in told


def test_mistakes_on_the_command_line(office: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start = f"gigrad explain model.json new.csv --reference past.csv -q -o {tmp_path}/a.parquet"
    for words, message in (
        ("--discrete home", "'home' is not one of its 4 columns"),
        ("--discrete term=12,x", "term=36,60; got 'term=12,x'"),
        ("--discrete owns --nominal owns", "not both"),
    ):
        done = called(f"{start} {words}", office, monkeypatch)
        assert done.exit_code == 3
        assert message in done.stderr
    assert (
        called(f"gigrad save model.json --reference past.csv -q -o {tmp_path}/x.gig", office, monkeypatch).exit_code
        == 0
    )
    done = called(f"gigrad explain {tmp_path}/x.gig new.csv --discrete owns -o {tmp_path}/a.csv", office, monkeypatch)
    assert done.exit_code == 3
    assert "leave out --discrete" in done.stderr


def test_a_run_under_another_choice_is_not_gone_on_with(model: Any, tmp_path: Path) -> None:
    from gigrad.batch.identity import identity_of  # what an interrupted run is compared by
    from gigrad.batch.sources import Source
    from gigrad.batch.targets import Target
    from gigrad.batch.tasks import credit_task

    X, _ = loans()
    X.to_parquet(tmp_path / "new.parquet")
    source, target = Source.open(tmp_path / "new.parquet"), Target.open(tmp_path / "out.parquet")
    keys = [
        identity_of(credit_task(gig.Explainer(model, X.head(9), **o), source.schema()), source, target, "fail", 100)
        for o in OPTIONS.values()
    ]
    assert keys[0] != keys[1] != keys[2]
    assert {k for k in keys[0] if keys[0][k] != keys[1][k]} == {"choice of discrete columns"}


# ---------------------------------------------------------------- trials


def test_reasons_that_depend_on_the_convention_are_named(model: Any) -> None:
    X, _ = loans()
    risk = model.predict_proba(X)[:, 1]
    approved = gig.references.approved(X, risk, 0.4, higher_is_better=False)
    refused = X[risk > 0.6].head(40)
    options: dict[str, Any] = {"bootstrap": 0, "spaces": {}, "top": 2}
    stability = gig.reason_stability(model, refused, approved, **options)
    assert stability.kinds == ("half-way",)
    assert {c.trials for c in stability.changes} == {2}
    named = stability.conventional
    assert named  # flags that interact: whoever comes second takes the credit
    for change in stability.changes:
        assert set(named.get(change.row_id, ())) == {n for n, kept in change.kept.items() if kept < 1}
    assert gig.reason_stability(model, refused, approved, discrete=(), **options).changes == ()


def test_additive_scores_do_not_depend_on_the_convention() -> None:
    X, y = loans()
    stumps = xgboost.XGBRegressor(n_estimators=30, max_depth=1, learning_rate=0.5).fit(X, y)
    score = stumps.predict(X)
    approved = gig.references.approved(X, score, 0.5, higher_is_better=False)
    stability = gig.reason_stability(stumps, X[score > 0.6].head(20), approved, bootstrap=0, spaces={}, top=2)
    assert stability.kinds == ("half-way",)
    assert stability.conventional == {}
    assert stability.overall["half-way"]["reordered"] == 0


# ---------------------------------------------------------------- values of training tables


def test_the_values_of_a_training_table() -> None:
    X, _ = loans()
    found = {"owns": None, "phone": None, "term": (12.0, 24.0, 36.0)}
    assert gig.discrete_values(X) == found
    assert gig.discrete_values(X.assign(text="a", when=pd.Timestamp("2026-01-01"), same=1)) == found
    assert gig.discrete_values(X.to_numpy()) == {"x0": None, "x1": None, "x2": (12.0, 24.0, 36.0)}
    assert gig.discrete_values(X, ["term"]) == {"term": (12.0, 24.0, 36.0)}
    assert gig.discrete_values(X.assign(term=X["term"].where(X["owns"] == 1))) == found  # missing values are no values
    assert gig.discrete_values(X, most=2) == {"owns": None, "phone": None, "term": None}
    assert gig.discrete_values(X.head(20)) == {"owns": None, "phone": None, "term": None}  # too short to show all
    assert gig.discrete_values(X[["amount"]]) == {}
    with pytest.raises(gig.InputError, match="'home' is no such column"):
        gig.discrete_values(X, ["home"])
    with pytest.raises(gig.InputError, match="'text' is text or categories"):
        gig.discrete_values(X.assign(text="a"), ["text"])


@pytest.mark.data
def test_the_values_of_real_tables() -> None:
    club = gig.discrete_values(real_table("lending_club_2007_2011"))
    assert club["term_months"] == (36.0, 60.0)
    assert club["total_acc"] is None  # float-typed, since some are missing
    inquiries = club["inq_last_6mths"]
    assert inquiries is not None
    assert inquiries[-2:] == (32.0, 33.0)
    assert not {"int_rate", "annual_inc", "dti", "grade", "purpose"} & set(club)
    taiwan = gig.discrete_values(real_table("taiwan_credit_default"))
    assert taiwan["pay_5"] == (-2.0, -1.0, 0.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0)  # nobody is one month late
    assert taiwan["sex"] is None
    assert taiwan["bill_amt1"] is None


@pytest.mark.data
def test_a_term_is_crossed_at_the_same_time_in_every_library() -> None:
    import lightgbm
    from sklearn.tree import DecisionTreeRegressor

    X = real_table("lending_club_2007_2011")[["term_months", "loan_amnt"]].iloc[::10]
    y = 1.0 * ((X["term_months"] == 60) & (X["loan_amnt"] > 12000))
    values = gig.discrete_values(X)
    start = pd.DataFrame({"term_months": [36], "loan_amnt": [2000]})
    end = pd.DataFrame({"term_months": [60], "loan_amnt": [22000]})
    for model in (
        xgboost.XGBRegressor(n_estimators=1, max_depth=2, learning_rate=1, reg_lambda=0),
        lightgbm.LGBMRegressor(n_estimators=1, num_leaves=4, learning_rate=1, min_child_samples=1, verbose=-1),
        DecisionTreeRegressor(max_depth=2),
    ):
        trees = gig.import_model(model.fit(X, y)).margin
        explainer = gig.Explainer(model, start, discrete=values)
        placed = explainer.scorer.node
        assert isinstance(trees, TreeEnsemble)
        assert isinstance(placed, TreeEnsemble)
        assert set(placed.place[trees.feature == 0]) == {48.0}
        explainer(end)


def trial_of(model: Any, X: Any, reference: Any, **options: Any) -> tuple[Any, Any]:
    """A trial, and the credits of X."""
    from gigrad._reasons.ranking import Rules
    from gigrad._reasons.trials import Trial

    explainer = gig.Explainer(model, reference, **options)
    e = explainer(X)
    rules: Rules = gig.reasons(e, higher_is_better=False).context.rules
    return Trial(explainer, e, rules, None, np.random.default_rng(0)), e


def at_share(trial: Any, share: float) -> Any:
    x = trial.explainer
    return trial._in_two_pieces(x.scorer.under(x.choice, x.reference.names, share), share)[0]


@pytest.mark.parametrize("float_type", [np.float32, np.float64])
def test_pieces_of_a_path_add_up_and_keep_corners(float_type: Any) -> None:
    rng = np.random.default_rng(2)
    X = pd.DataFrame(rng.integers(0, 2, (400, 3)).astype(float_type), columns=["a", "b", "c"])
    X["region"] = pd.Categorical.from_codes(rng.integers(0, 3, 400), ["north", "east", "south"])
    X["amount"] = np.round(rng.gamma(2.0, 2.0, 400), 1).astype(float_type)
    X.loc[rng.random(400) < 0.1, "amount"] = np.nan
    y = X["a"] * X["b"] * (X["region"] == "east") + X["c"] * (X["amount"] > 3) + (X["region"] == "south") * X["a"]
    model = xgboost.XGBRegressor(n_estimators=15, max_depth=4, enable_categorical=True).fit(X, y)
    trial, e = trial_of(model, X.head(6), X.iloc[20:60])
    assert trial.at_once
    # at one half it is the explanation itself
    assert np.abs(at_share(trial, 0.5) - e.values).max() < 1e-9 * np.abs(e.values).max()
    for share in (0.2113, 0.7887):
        assert np.abs(at_share(trial, share).sum(axis=1) - e.values.sum(axis=1)).max() < 1e-9
    # flags that rise and a category, and nothing else: whenever they change, they do so together
    start, end = X.iloc[[0]].assign(a=0, b=0, c=0, region="north", amount=3.0), None
    start["region"] = start["region"].astype(X["region"].dtype)
    end = start.assign(a=1, b=1, c=1, region="east")
    end["region"] = end["region"].astype(X["region"].dtype)
    trial, e = trial_of(model, end, start)
    assert trial.explainer.choice.discrete.keys() == {"a", "b", "c"}
    for share in (0.2113, 0.7887):
        assert np.abs(at_share(trial, share) - e.values).max() < 1e-9 * np.abs(e.values).max()


def test_a_category_that_comes_before_or_after_a_number() -> None:
    from sklearn.ensemble import HistGradientBoostingRegressor

    X = pd.DataFrame({"amount": np.linspace(0, 1, 200), "region": pd.Categorical(["A", "B"] * 100)})
    y = 1.0 * ((X["amount"] > 0.3) & (X["region"] == "B"))
    model = HistGradientBoostingRegressor(max_iter=1, learning_rate=1, min_samples_leaf=1).fit(X, y)
    start, end = X.iloc[[0]], X.iloc[[199]]  # from (0, A) to (1, B): the one that comes last completes it
    trial, e = trial_of(model, end, start)
    assert np.allclose(e.values, [[0, 1]])
    assert np.allclose(at_share(trial, 0.2113), [[1, 0]])
    assert np.allclose(at_share(trial, 0.7887), [[0, 1]])
    stability = gig.reason_stability(model, end, start, higher_is_better=False, bootstrap=0, spaces={})
    assert stability.kinds == ("half-way",)
    assert list(stability.conventional.values()) == [("region",)]
