"""Model files of lenders through check, explain and save: scorecards, Keras nets that read text, survival models."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from keras_lookups import FILES, table
from office import called

import gigrad as gig

CARD = """variable,bin,points
base,,300
age,< 25,0
age,"[25, 40)",12
age,>= 40,20
home,own,15
home,rent,5
home,other,0
"""
PMML = """<?xml version="1.0"?>
<PMML version="4.4" xmlns="http://www.dmg.org/PMML-4_4"><DataDictionary>
<DataField name="age" optype="continuous" dataType="double"/>
<DataField name="home" optype="categorical" dataType="string"><Value value="own"/><Value value="rent"/></DataField>
</DataDictionary><Scorecard functionName="regression" initialScore="300" useReasonCodes="false">
<MiningSchema><MiningField name="age"/><MiningField name="home"/></MiningSchema><Characteristics>
<Characteristic name="a">
<Attribute partialScore="0"><SimplePredicate field="age" operator="lessThan" value="25"/></Attribute>
<Attribute partialScore="20"><SimplePredicate field="age" operator="greaterOrEqual" value="25"/></Attribute>
</Characteristic>
<Characteristic name="h">
<Attribute partialScore="15"><SimplePredicate field="home" operator="equal" value="own"/></Attribute>
<Attribute partialScore="5"><SimplePredicate field="home" operator="equal" value="rent"/></Attribute>
</Characteristic>
</Characteristics></Scorecard></PMML>
"""
TOML = 'base = 300\n[age]\n"< 25" = 0\n">= 25" = 20\n[home]\nown = 15\nrent = 5\n'


def applicants() -> Any:
    rng = np.random.default_rng(6)
    return pd.DataFrame({"age": rng.integers(18, 70, 30), "home": rng.choice(["own", "rent"], 30)})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in (("card.csv", CARD), ("card.toml", TOML), ("card.pmml", PMML)):
        (tmp_path / name).write_text(text)
    shutil.copy(FILES / "lookups_given.keras", tmp_path / "net.keras")
    applicants().to_csv(tmp_path / "people.csv", index=False)
    table().to_csv(tmp_path / "loans.csv", index=False)
    return tmp_path


@pytest.mark.parametrize(
    ("model", "data"),
    [("card.csv", "people"), ("card.toml", "people"), ("card.pmml", "people"), ("net.keras", "loans")],
)
def test_a_model_file_is_checked_explained_and_saved(
    model: str, data: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if model.endswith(".keras"):
        pytest.importorskip("h5py", reason="h5py is not installed, which reads the weights of .keras files")
    done = called(f"gigrad check {model} {data}.csv", folder, monkeypatch)
    assert done.exit_code == 0, done.output
    line = f"gigrad explain {model} {data}.csv --reference {data}.csv -q -o direct.parquet"
    done = called(line, folder, monkeypatch)
    assert done.exit_code == 0, done.output
    done = called(f"gigrad save {model} --reference {data}.csv -q -o ready.gig", folder, monkeypatch)
    assert done.exit_code == 0, done.output
    done = called(f"gigrad explain ready.gig {data}.csv -q -o saved.parquet", folder, monkeypatch)
    assert done.exit_code == 0, done.output
    direct, saved = (pd.read_parquet(folder / f"{n}.parquet").select_dtypes("number") for n in ("direct", "saved"))
    np.testing.assert_array_equal(direct.to_numpy(), saved.to_numpy())
    own = gig.explain(
        gig.Scorecard.read(folder / model) if data == "people" else _net(folder / model),
        pd.read_csv(folder / f"{data}.csv"), pd.read_csv(folder / f"{data}.csv"),
    )  # fmt: skip
    for j, name in enumerate(own.feature_names):
        np.testing.assert_allclose(direct[next(c for c in direct if c.endswith(name))], own.values[:, j], atol=1e-9)


def _net(path: Path) -> Any:
    from gigrad._io.modelfiles import load_model

    return load_model(path)


def test_a_survival_model_is_saved_at_a_horizon(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sksurv", reason="scikit-survival is not installed, and the model is of it")
    import joblib
    from conformance.rows_survival import sksurv

    model, X = sksurv("ensemble.RandomSurvivalForest", n_estimators=3, max_depth=2, random_state=0)()
    joblib.dump(model, folder / "forest.joblib")
    pd.DataFrame(X, columns=[f"x{j}" for j in range(4)]).to_csv(folder / "rows.csv", index=False)
    line = "gigrad save forest.joblib --trust-pickle --target 3.5 --reference rows.csv -q -o forest.gig"
    done = called(line, folder, monkeypatch)
    assert done.exit_code == 0, done.output
    explained = gig.Explainer.load(folder / "forest.gig")(X[:5])
    own = [curve(3.5) for curve in model.predict_survival_function(X[:5])]
    np.testing.assert_allclose(explained.predictions, own, rtol=1e-12)
    done = called(line.replace("3.5", "700"), folder, monkeypatch)
    assert done.exit_code == 3
    assert "target must be a time up to 6" in done.output
