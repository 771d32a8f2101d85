"""The command `gigrad`, typed as a person types it: what it writes, what it says, and how it exits."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gigrad as gig

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
csv = pytest.importorskip("pyarrow.csv")
testing = pytest.importorskip("typer.testing")
xgboost = pytest.importorskip("xgboost")
pd = pytest.importorskip("pandas")

NAMES = ["age", "income", "debt", "years"]


@pytest.fixture(scope="module")
def office(tmp_path_factory: Any) -> Path:
    """A folder with a model, a table of past applicants and one of new ones, as CSV and Parquet."""
    folder = tmp_path_factory.mktemp("office")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.integers(0, 20, (400, 4)) / 2.0, columns=NAMES)
    frame.loc[rng.random(400) < 0.1, "income"] = np.nan
    bad = frame["debt"] + rng.normal(size=400) > frame["age"]
    model = xgboost.XGBClassifier(n_estimators=8, max_depth=3, n_jobs=1).fit(frame, bad)
    model.save_model(folder / "model.json")
    ready = frame[:30].copy()
    frame.insert(0, "number", [f"A-{i:04d}" for i in range(400)])
    for name, part in (("past", frame[:150]), ("new", frame[150:])):
        part.to_parquet(folder / f"{name}.parquet", index=False)
        part.to_csv(folder / f"{name}.csv", index=False)
    pq.write_table(pa.table({"score": rng.random(50)}), folder / "scores.parquet")
    gig.Explainer(model, ready, n_threads=1).save(folder / "ready.gig")
    (folder / "book.toml").write_text('[debt]\ncode = "D1"\nstatement = "=too much debt"\n')
    return folder


def typed(line: str, folder: Path, **options: Any) -> subprocess.CompletedProcess[str]:
    """Type a command in a shell of its own."""
    command = [sys.executable, "-m", "gigrad", *line.split()[1:]]
    environment = {**os.environ, "COLUMNS": "100", "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, env=environment, check=False, timeout=300, **options
    )


def called(line: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The same in this process, which is quicker: exit code, stdout and stderr."""
    from gigrad.cli.app import app

    monkeypatch.chdir(folder)
    return testing.CliRunner().invoke(app, line.split()[1:])


# ------------------------------------------------------------ every command, typed


def test_help_shows_every_command_and_examples(office: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = typed("gigrad --help", office)
    assert shown.returncode == 0
    for command in ("explain", "reasons", "report", "save", "check", "info", "demo"):
        assert command in shown.stdout
        assert called(f"gigrad {command} --help", office, monkeypatch).exit_code == 0
    assert "gigrad explain model.json" in called("gigrad explain --help", office, monkeypatch).stdout
    for wrong in ("gigrad", "gigrad nonsense", "gigrad explain --nonsense"):
        assert called(wrong, office, monkeypatch).exit_code == 2


def test_help_loads_nothing_that_it_does_not_need(office: Path) -> None:
    code = (
        "import sys; sys.argv = ['gigrad', '--help']\n"
        "from gigrad.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print(sorted({m.split('.')[0] for m in sys.modules}), file=sys.stderr)"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stderr
    for heavy in ("pyarrow", "pandas", "xgboost", "sklearn", "torch", "matplotlib", "jinja2", "pyspark", "scipy"):
        assert f"'{heavy}'" not in loaded, heavy


def test_explain_as_typed(office: Path, tmp_path: Path) -> None:
    line = f"gigrad explain model.json new.csv --reference past.csv --id number -o {tmp_path}/credits.parquet"
    done = typed(line, office)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert "checking: 250 of 250 rows" in done.stderr
    assert f"{tmp_path}/credits.parquet: 250 lines from 250 rows." in done.stderr
    found = pq.read_table(tmp_path / "credits.parquet")
    model = xgboost.XGBClassifier()
    model.load_model(office / "model.json")
    past, new = (pd.read_parquet(office / f"{n}.parquet") for n in ("past", "new"))
    expected = gig.explain(model, new[NAMES], past[NAMES], n_threads=1)
    assert found["number"].to_pylist() == new["number"].tolist()
    assert np.array_equal(np.column_stack([found[f"credit_{n}"].to_numpy() for n in NAMES]), expected.values)
    assert np.array_equal(found["prediction"].to_numpy(), expected.predictions)
    told = typed(f"gigrad info {tmp_path}/credits.parquet", office)
    assert told.returncode == 0
    for word in (
        "250 lines",
        "age, income, debt, years",
        "xgboost",
        "new.csv",
        expected.provenance["model"]["fingerprint"],
    ):
        assert word in told.stdout


def test_reasons_as_typed(office: Path, tmp_path: Path) -> None:
    line = (
        "gigrad reasons model.json new.parquet --reference past.parquet --cutoff 0.5 --lower-is-better --top 2 "
        f"--statements book.toml --id number -q -o {tmp_path}/reasons.csv"
    )
    done = typed(line, office)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    lines = pd.read_csv(tmp_path / "reasons.csv")
    model = xgboost.XGBClassifier()
    model.load_model(office / "model.json")
    new = pd.read_parquet(office / "new.parquet")
    refused = new["number"][model.predict_proba(new[NAMES])[:, 1] > 0.5]
    assert set(lines["number"]) == set(refused)
    assert lines["rank"].max() == 2
    assert set(lines["statement"].dropna()) == {"'=too much debt"}, "a formula in a CSV file is made harmless"
    assert set(lines.loc[lines["feature"] == "debt", "code"]) == {"D1"}


def test_reasons_are_those_of_the_library(office: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Line by line the same, whatever the rows at a time."""
    line = (
        "gigrad reasons model.json new.csv --reference past.csv --cutoff 0.5 --lower-is-better --id number "
        f"--output margin --batch-rows 17 -q -o {tmp_path}/r.parquet --all"
    )
    done = called(line.replace("--cutoff 0.5", "--cutoff -0.2"), office, monkeypatch)
    assert done.exit_code == 0, done.stderr
    lines = pd.read_parquet(tmp_path / "r.parquet")
    model = xgboost.XGBClassifier()
    model.load_model(office / "model.json")
    past, new = (pd.read_parquet(office / f"{n}.parquet") for n in ("past", "new"))
    margins = gig.import_model(model).predict(past[NAMES], output="margin")
    approved = gig.references.approved(past[NAMES], margins, -0.2, higher_is_better=False)
    explanation = gig.explain(model, new[NAMES], approved, output="margin", n_threads=1)
    expected = gig.reasons(explanation, higher_is_better=False, row_ids=new["number"].tolist()).to_frame()
    assert lines["number"].tolist() == expected["row_id"].tolist()
    assert np.allclose(lines["credit"], expected["credit"], rtol=1e-9)
    same = lines["feature"].to_numpy() == expected["feature"].to_numpy()
    ties = lines.duplicated(["number", "credit"], keep=False).to_numpy()
    assert (same | ties).all(), "they may differ only where credits tie"


def test_report_save_and_check_as_typed(office: Path, tmp_path: Path) -> None:
    line = "gigrad report ready.gig new.csv --id number --rows 10"
    done = typed(f"{line} --title <b>Past&new</b> -o {tmp_path}/report.html", office)
    assert done.returncode == 0, done.stderr
    assert "first 10 of 250 rows" in done.stderr
    page = (tmp_path / "report.html").read_text()
    assert "&lt;b&gt;Past&amp;new&lt;/b&gt;" in page
    assert "A-0150" in page
    done = typed(f"gigrad save model.json --reference past.csv --output margin -o {tmp_path}/e.gig", office)
    assert done.returncode == 0, done.stderr
    assert "a portable explainer" in typed(f"gigrad info {tmp_path}/e.gig", office).stdout
    explained = gig.Explainer.load(tmp_path / "e.gig")(pd.read_parquet(office / "new.parquet"))
    assert len(explained) == 250
    done = typed("gigrad check model.json new.parquet -q", office)
    assert done.returncode == 0, done.stderr
    for word in ("XGBClassifier, 4 columns", "8 trees, sigmoid", "250 read, 0 that", "the same as the model's own"):
        assert word in done.stdout


def test_demo_tells_its_story_where_it_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import gigrad.demo

    told: list[str] = []
    monkeypatch.setattr(gigrad.demo, "main", told.append)
    assert called("gigrad demo there", tmp_path, monkeypatch).exit_code == 0
    assert told == ["there"]


def test_killed_by_the_user_it_goes_on(office: Path, tmp_path: Path) -> None:
    line = "gigrad explain ready.gig new.csv --batch-rows 5 --id number"
    command = [sys.executable, "-m", "gigrad", *line.split()[1:], "-o", str(tmp_path / "out.parquet")]
    process = subprocess.Popen(command, cwd=office, stderr=subprocess.PIPE, text=True)
    while not list(tmp_path.glob("out.parquet.unfinished/part-000005*")):
        assert process.poll() is None, "it ended before it could be interrupted"
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=60)[1]
    assert process.returncode == 130, said
    assert "goes on where it stopped" in said
    assert "Traceback" not in said
    told = typed(f"gigrad info {tmp_path}/out.parquet.unfinished", office)
    assert "an interrupted run" in told.stdout
    again = typed(f"{line} --on-error skip -o {tmp_path}/out.parquet", office)
    assert again.returncode == 6
    assert "begun with another on_error" in again.stderr
    again = typed(f"{line} -o {tmp_path}/out.parquet", office)
    assert again.returncode == 0, again.stderr
    assert "were done already by an earlier, interrupted run" in again.stderr
    assert pq.read_table(tmp_path / "out.parquet").num_rows == 250


# ------------------------------------------------------------ configuration


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
    assert "--scores are for --output rank" in done.stderr


def test_an_ensemble_is_described_in_the_configuration(
    office: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    io = pytest.importorskip("skops.io")
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
        data="/x/data.csv", out="/out.csv", id=(hostile, "b"), tol=1e-7, seed=12, threads=2, trust_pickle=True,
        cutoff=-0.5, higher_is_better=False, groups={"Two words": ("a", hostile), "plain": ("c",)}, title=hostile,
        ensemble=Ensemble("stack", members, weights=(0.1, 1e300), passthrough=True),
    )  # fmt: skip
    write_config(config, tmp_path / "c.toml")
    assert read_config(tmp_path / "c.toml") == config


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("model = ", "is not TOML"),
        ("modle = 'x'", "has 'modle', which is not known"),
        ("seed = 'x'", "must be a whole number; 'x' came"),
        ("seed = true", "must be a whole number; True came"),
        ("groups = 3", "must be a table"),
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


# ------------------------------------------------------------ what goes wrong


@pytest.mark.parametrize(
    ("line", "code", "message"),
    [
        ("gigrad explain", 3, "DATA must be given"),
        ("gigrad explain model.json new.csv", 3, "--out must be given"),
        ("gigrad explain model.json new.csv -o x.csv", 3, "--reference must be given"),
        ("gigrad explain none.json new.csv --reference past.csv -o x.csv", 3, "none.json does not exist"),
        ("gigrad explain model.json none.csv --reference past.csv -o x.csv", 3, "none.csv does not exist"),
        ("gigrad explain model.json new.csv --reference none.csv -o x.csv", 3, "reference must be a file"),
        (
            "gigrad explain model.json scores.parquet --reference past.csv -o x.csv",
            3,
            "'age', 'income', 'debt', 'years'",
        ),
        ("gigrad explain model.json new.csv --reference past.csv -o none/x.csv", 5, "does not exist"),
        ("gigrad explain model.json new.csv --reference past.csv -o x.xlsx", 3, "says its format"),
        ("gigrad explain model.json new.csv --reference past.csv --id name -o x.csv", 3, "id column 'name'"),
        (
            "gigrad explain model.json new.csv --reference past.csv --output odds -o x.csv",
            3,
            "margin, probability or rank",
        ),
        ("gigrad explain model.json new.csv --reference past.csv --output rank -o x.csv", 3, "needs --scores"),
        ("gigrad explain model.json new.csv --reference past.csv --target 7 -o x.csv", 3, "target must be one of"),
        ("gigrad explain model.json new.csv --reference past.csv --on-error maybe -o x.csv", 3, "fail, skip or null"),
        ("gigrad explain model.json new.csv --reference past.csv --tol 7 -o x.csv", 3, "tol must lie between"),
        ("gigrad explain model.json new.csv --reference past.csv --threads 0 -o x.csv", 3, "n_threads must be"),
        ("gigrad explain model.json new.csv --reference past.csv --cutoff 0.5 -o x.csv", 3, "which says who passes"),
        ("gigrad explain model.json new.csv --reference past.csv --weights nobody -o x.csv", 3, "'nobody'"),
        ("gigrad explain new.csv new.csv --reference past.csv -o x.csv", 4, "ending that is not known"),
        ("gigrad reasons model.json new.csv --reference past.csv -o x.csv", 3, "--higher-is-better"),
        ("gigrad reasons model.json new.csv --reference past.csv --lower-is-better -o x.csv", 3, "--cutoff"),
        ("gigrad report model.json new.csv --reference past.csv -o x.pdf", 3, "must end in .html"),
        ("gigrad save model.json -o x.zip", 3, "must end in .gig"),
        ("gigrad info none.parquet", 3, "does not exist"),
        ("gigrad info past.parquet", 3, "says nothing of gigrad"),
        ("gigrad info model.json", 3, "must be a .gig file or a result"),
        ("gigrad check damaged.gig", 4, "not a whole .gig file"),
    ],
)
def test_failures_are_one_sentence_and_a_code(
    line: str, code: int, message: str, office: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (office / "damaged.gig").write_bytes(b"PK\x03\x04 and nothing more")
    before = sorted(p.name for p in office.iterdir())
    done = called(line, office, monkeypatch)
    assert done.exit_code == code, (done.stdout, done.stderr)
    assert done.stderr.startswith("Error: ")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert sorted(p.name for p in office.iterdir()) == before, "nothing may be left behind"


def test_bad_rows_are_rejected_as_told(office: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = (office / "new.csv").read_text().splitlines()
    lines[5] = lines[5].replace("A-0154", '"=HYPERLINK(""http://x"")"').rsplit(",", 1)[0] + ",many"
    lines[9] = "A-broken"
    (tmp_path / "bad.csv").write_text("\n".join(lines) + "\n")
    line = f"gigrad explain model.json {tmp_path}/bad.csv --reference past.csv --id number -o {tmp_path}/out.csv"
    done = called(line, office, monkeypatch)
    assert done.exit_code == 3
    assert "Row 8 is no row: it has 1 cells; the header has 5" in done.stderr
    assert not (tmp_path / "out.csv").exists()
    done = called(f"{line} --on-error skip -q", office, monkeypatch)
    assert done.exit_code == 0, done.stderr
    assert "2 of 250 rows could not be explained" in done.stderr
    rejected = pd.read_csv(tmp_path / "out.csv.rejects.csv")
    assert rejected["row"].tolist() == [4, 8]
    assert rejected["number"].tolist()[0] == '\'=HYPERLINK("http://x")'
    assert "'many' came" in rejected["reason"][0]
    done = called(f"gigrad check model.json {tmp_path}/bad.csv -q", office, monkeypatch)
    assert done.exit_code == 3
    assert "2 that the model cannot take (row 4: " in done.stdout


def test_a_fault_of_our_own_is_said_to_be_one(office: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from gigrad.cli import info

    monkeypatch.setattr(info, "_portable", lambda path: 1 / 0)
    (office / "x.gig").write_bytes(b"")
    done = called("gigrad info x.gig", office, monkeypatch)
    assert done.exit_code == 1
    assert "failed in a way it should not (ZeroDivisionError" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_missing_package_is_named(office: Path) -> None:
    code = "import sys; sys.modules['typer'] = None\nfrom gigrad.cli import main\nmain()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 7
    assert 'pip install "gigrad[cli]"' in done.stderr
    assert "Traceback" not in done.stderr


def test_a_closed_pipe_is_no_failure(office: Path) -> None:
    done = subprocess.run(
        f"{sys.executable} -m gigrad info {office}/ready.gig | head -0; {sys.executable} -m gigrad --help | head -1",
        shell=True, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "Traceback" not in done.stdout + done.stderr


def test_hostile_names_pass_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns called like markup, formulas and shell commands."""
    names = ["<script>alert(1)</script>", "=1+1", "a,b", "$(rm -rf x)"]
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.random((60, 4)), columns=names)
    booster = xgboost.train({"nthread": 1}, xgboost.DMatrix(frame.to_numpy(), frame.iloc[:, 0]), 3)
    booster.save_model(tmp_path / "m.json")
    graph = gig.import_model(booster).with_columns(names)
    graph.save(tmp_path / "m.gig")
    frame.to_csv(tmp_path / "x.csv", index=False)
    line = "gigrad explain m.gig x.csv --reference x.csv --reference-rows 5 -q -o out.csv"
    done = called(line, tmp_path, monkeypatch)
    assert done.exit_code == 0, done.stderr
    header = csv.read_csv(tmp_path / "out.csv").column_names
    assert header[-4:] == [f"credit_{n}" for n in names]
    done = called(
        "gigrad report m.gig x.csv --reference x.csv --reference-rows 5 -q -o out.html", tmp_path, monkeypatch
    )
    assert done.exit_code == 0, done.stderr
    assert "<script>alert" not in (tmp_path / "out.html").read_text()
    assert json.loads((tmp_path / "out.csv.provenance.json").read_text())["feature_names"] == names
