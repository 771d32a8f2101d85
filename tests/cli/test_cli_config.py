"""Configurations: the same run from a file, ensembles described in one, and files that make no sense."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import xgboost
from office import NAMES, called, furnish
from skops import io

import gigrad as gig


@pytest.fixture(scope="module")
def office(tmp_path_factory: Any) -> Path:
    return furnish(tmp_path_factory.mktemp("office"))


def test_a_configuration_gives_the_same_run(office: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "conf").mkdir()
    line = (
        f"gigrad explain model.json new.csv --reference past.csv --id number --output rank --scores scores.parquet "
        f"--reference-rows 25 --seed 3 -q -o {tmp_path}/a.csv --save-config {tmp_path}/conf/run.toml"
    )
    assert called(line, office, monkeypatch).exit_code == 0
    saved = (tmp_path / "conf" / "run.toml").read_text()
    assert 'output = "rank"' in saved
    assert "seed = 3" in saved
    # from another folder: paths in the file are relative to the file
    done = called(f"gigrad explain --config conf/run.toml -q -o {tmp_path}/b.csv", tmp_path, monkeypatch)
    assert done.exit_code == 0, done.stderr
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    done = called("gigrad explain --config conf/run.toml -q --output margin -o m.csv", tmp_path, monkeypatch)
    assert done.exit_code == 3, "scores are for ranks"
    assert "--scores must be given with --output rank only" in done.stderr


def test_an_ensemble_is_described_in_the_configuration(
    office: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sklearn.ensemble import ExtraTreesClassifier
    from sklearn.linear_model import LogisticRegression

    past = pd.read_parquet(office / "past.parquet")
    numbers = past[["age", "debt"]]
    bad = past["debt"] > past["age"]
    forest = ExtraTreesClassifier(5, max_depth=3, random_state=0).fit(numbers, bad)
    gbm = xgboost.XGBClassifier()
    gbm.load_model(office / "model.json")
    columns = np.column_stack([gbm.predict_proba(past[NAMES])[:, 1], forest.predict_proba(numbers)[:, 1]])
    head = LogisticRegression().fit(columns, bad)
    io.dump(forest, tmp_path / "forest.skops")
    io.dump(head, tmp_path / "head.skops")
    common = f"""
data = "{office}/new.csv"
reference = "{office}/past.csv"
reference_rows = 10
output = "margin"
[ensemble]
members = ["{office}/model.json", {{ file = "forest.skops" }}]
"""
    (tmp_path / "stack.toml").write_text(common + 'kind = "stack"\nhead = "head.skops"\n')
    (tmp_path / "mean.toml").write_text(common + 'kind = "average"\nweights = [3, 1]\n')
    for name, graph in (("stack", gig.stack([gbm, forest], head)), ("mean", gig.average([gbm, forest], [3, 1]))):
        done = called(f"gigrad explain --config {name}.toml -q -o {name}.parquet", tmp_path, monkeypatch)
        assert done.exit_code == 0, done.stderr
        chosen = gig.references.sample(gig.references.all_applicants(past[NAMES]), 10)
        expected = gig.explain(graph, pd.read_parquet(office / "new.parquet")[NAMES], chosen, output="margin")
        found = pq.read_table(tmp_path / f"{name}.parquet")
        values = np.column_stack([found[f"credit_{n}"].to_numpy() for n in expected.feature_names])
        assert np.allclose(values, expected.values, rtol=0, atol=1e-9)
    done = called("gigrad check --config stack.toml -q", tmp_path, monkeypatch)
    assert done.exit_code == 0
    assert "LogisticRegression over XGBClassifier, ExtraTreesClassifier" in done.stdout


def test_configurations_come_back_as_they_were(tmp_path: Path) -> None:
    from gigrad.cli.config import Config, Ensemble, Member, read_config, write_config

    hostile = 'a "quoted"\\name\nwith\ttabs, \x7f and é = [x]'
    members = (Member("/m.json", "/s.csv"), Member(f"/{hostile}"))
    config = Config(
        data="/x/data.csv", out="/out.csv", id=(hostile, "b"), tol=1e-7, seed=12, threads=2,
        cutoff=-0.5, higher_is_better=False, groups={"Two words": ("a", hostile), "plain": ("c",)}, title=hostile,
        ensemble=Ensemble("stack", members, weights=(0.1, 1e300), passthrough=True),
    )  # fmt: skip
    write_config(config, tmp_path / "c.toml")
    assert read_config(tmp_path / "c.toml") == config


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("model = ", "is not TOML"),
        ("modle = 'x'", "has 'modle', which is not known; did you mean 'model'?"),
        ("hue = 'x'", "has 'hue', which is not known; known are ledger, this,"),
        ("seed = 'x'", "must be a whole number; got 'x'"),
        ("seed = true", "must be a whole number; got True"),
        ("groups = 3", "must be a table"),
        (f"id = {'[' * 5000}{']' * 5000}", "is nested too deeply"),
        (f"top = {'9' * 5000}", "is not TOML"),
        ("data = 'in\\u0000.csv'".replace("'", '"'), "without the character NUL"),
        ("lower-is-better = 'yes'", "must say higher_is_better or lower-is-better"),
        ("lower_is_better = true\nhigher_is_better = true", "one of them once"),
        ("[ensemble]\nkind = 'stack'", "must have 'members'"),
        ("[ensemble]\nkind = 'vote'\nmembers = ['model.json']", 'must be "stack" or "average"'),
        ("[ensemble]\nkind = 'stack'\nmembers = ['model.json']", "must have a head or weights"),
        ("model = 'model.json'\n[ensemble]\nkind = 'stack'\nmembers = ['model.json']", "not both"),
    ],
)
def test_a_configuration_that_makes_no_sense(
    text: str, message: str, office: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (office / "wrong.toml").write_text(text)
    done = called("gigrad check --config wrong.toml", office, monkeypatch)
    assert done.exit_code == 3
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_lower_is_better_may_be_said_as_it_is_typed(tmp_path: Path) -> None:
    from gigrad.cli.config import read_config

    (tmp_path / "c.toml").write_text("lower-is-better = true")
    assert read_config(tmp_path / "c.toml").higher_is_better is False


def test_a_file_may_be_called_reference(tmp_path: Path) -> None:
    """Only the scores of a whole run can be the reference's own; elsewhere the word is a path like any other."""
    from gigrad.cli.config import Config, Ensemble, Member, read_config, write_config

    ensemble = Ensemble("average", (Member("reference", "reference"),), head="reference")
    config = Config(model="reference", reference="reference", scores="reference", ensemble=ensemble)
    (tmp_path / "conf").mkdir()
    write_config(config, tmp_path / "conf" / "run.toml")
    again = read_config(tmp_path / "conf" / "run.toml")
    assert again.scores == "reference"
    assert again.ensemble is not None
    member = again.ensemble.members[0]
    for path in (again.model, again.reference, member.file, member.scores, again.ensemble.head):
        assert path is not None
        assert Path(path).resolve() == (Path.cwd() / "reference").resolve()
