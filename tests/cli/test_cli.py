"""The command `gigrad`, typed as a person types it: what it writes, what it says, and how it exits."""

from __future__ import annotations

import gzip
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import typer
import xgboost
from office import NAMES, called, furnish, typed

import gigrad as gig


@pytest.fixture(scope="module")
def office(tmp_path_factory: Any) -> Path:
    return furnish(tmp_path_factory.mktemp("office"))


# ------------------------------------------------------------ every command, typed


def test_help_shows_every_command_and_examples(office: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = typed("gigrad --help", office)
    assert shown.returncode == 0
    for command in ("explain", "reasons", "report", "save", "check", "info", "demo"):
        assert command in shown.stdout
        assert called(f"gigrad {command} --help", office, monkeypatch).exit_code == 0
    assert "gigrad explain model.json" in called("gigrad explain --help", office, monkeypatch).stdout
    assert called("gigrad --version", office, monkeypatch).stdout == f"gigrad {gig.__version__}\n"
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
    for heavy in (
        "numpy",
        "rich",
        "pyarrow",
        "pandas",
        "xgboost",
        "sklearn",
        "torch",
        "matplotlib",
        "jinja2",
        "pyspark",
        "scipy",
    ):
        if heavy == "rich" and typer.__version__.startswith("0.16."):
            continue  # which Typer itself loads, until 0.17
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
    assert "Warning: The model uses columns that are named like a prohibited basis: 'age'." in done.stderr
    done = typed(f"{line} --permitted age --restart", office)
    assert done.returncode == 0, done.stderr
    assert done.stderr == "Warning: there is no statement for 'age', 'income', 'years'.\n"
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
    """Line by line the same, ties included, whatever the rows at a time."""
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
    explainer = gig.Explainer(model, approved, output="margin", n_threads=1)
    expected = gig.reasons(
        explainer(new[NAMES]), higher_is_better=False, row_ids=new["number"].tolist(), ranges=explainer.credit_ranges()
    ).to_frame()
    assert lines["number"].tolist() == expected["row_id"].tolist()
    assert lines["feature"].tolist() == expected["feature"].tolist()
    assert lines["credit"].tolist() == expected["credit"].tolist()


def test_every_reason_has_a_record_that_can_be_examined(office: Path, tmp_path: Path) -> None:
    line = (
        "gigrad reasons model.json new.parquet --reference past.parquet --cutoff 0.5 --lower-is-better --top 2 "
        f"--batch-rows 40 --statements book.toml --id number -q -o {tmp_path}/reasons.parquet --audit {tmp_path}"
    )
    for name in ("records.jsonl", "records.jsonl.gz"):
        done = typed(f"{line}/{name}", office)
        assert done.returncode == 0, done.stderr
    plain = (tmp_path / "records.jsonl").read_bytes()
    assert gzip.decompress((tmp_path / "records.jsonl.gz").read_bytes()) == plain
    records = list(gig.read_ledger(tmp_path / "records.jsonl"))
    lines = pd.read_parquet(tmp_path / "reasons.parquet")
    assert [r["row_id"] for r in records] == lines["number"].drop_duplicates().tolist()
    model = xgboost.XGBClassifier()
    model.load_model(office / "model.json")
    past = pd.read_parquet(office / "past.parquet")[NAMES]
    risk = gig.import_model(model).predict(past)
    approved = gig.references.approved(past, risk, 0.5, higher_is_better=False)
    for record in records[::20]:
        examined = gig.verify_reasons(record, model, approved)
        assert examined.ok, examined.differences
        given = lines[lines["number"] == record["row_id"]]
        assert [r.feature for r in examined.reasons.reasons] == given["feature"].tolist()
        assert record["provenance"]["data"]["files"][0]["name"] == "new.parquet"
    assert typed(f"{line}/records.csv", office).returncode == 3


def test_reasons_from_an_explainer_are_for_those_below_its_cutoff(
    office: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = "gigrad save model.json --reference past.csv --lower-is-better -q"
    for name, cutoff in (("own", "--cutoff 0.5"), ("none", "--reference-rows 30")):
        done = called(f"{line} {cutoff} -o {tmp_path}/{name}.gig", office, monkeypatch)
        assert done.exit_code == 0, done.stderr
    reasons = f"gigrad reasons {tmp_path}/%s.gig new.csv --lower-is-better --id number -q -o {tmp_path}/%s.csv"
    for name, more in (("own", ""), ("none", " --cutoff 0.5")):
        done = called(reasons % (name, name) + more, office, monkeypatch)
        assert done.exit_code == 0, done.stderr
    refused = [set(pd.read_csv(tmp_path / f"{name}.csv")["number"]) for name in ("own", "none")]
    assert refused[0] == refused[1] != set()
    done = called(reasons % ("own", "x") + " --cutoff 0.4", office, monkeypatch)
    assert (done.exit_code, "those who pass 0.5; got the cutoff 0.4" in done.stderr) == (3, True)
    done = called(reasons % ("none", "x"), office, monkeypatch)
    assert (done.exit_code, "(--cutoff), or ask for all (--all)" in done.stderr) == (3, True)


def test_report_save_and_check_as_typed(office: Path, tmp_path: Path) -> None:
    line = "gigrad report ready.gig new.csv --id number --id age --rows 10"
    done = typed(f"{line} --title <b>Past&new</b> -o {tmp_path}/report.html", office)
    assert done.returncode == 0, done.stderr
    assert "first 10 of 250 rows" in done.stderr
    page = (tmp_path / "report.html").read_text()
    assert "&lt;b&gt;Past&amp;new&lt;/b&gt;" in page
    age = pd.read_csv(office / "new.csv", dtype=str)["age"][0]
    assert f"A-0150 / {age}" in page, "rows are called as in every other output"
    done = typed(f"gigrad explain ready.gig new.csv --id number --id age -q -o {tmp_path}/may.csv", office)
    assert done.returncode == 0, done.stderr
    against = f"--against {tmp_path}/may.csv --against-data new.csv --lower-is-better"
    done = typed(f"{line} {against} -o {tmp_path}/report.html", office)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "report.html").read_text()
    assert "new.csv (10 applicants) against may.csv (250)" in " ".join(page.split())
    assert "Of 10 rows in both" in page, "by both ids"
    done = typed(f"{line} --against r.jsonl -o {tmp_path}/report.html", office)
    assert done.returncode == 3
    assert "must be a result of `gigrad explain`, which has all rows" in done.stderr
    done = typed(f"gigrad save model.json --reference past.csv --output margin -o {tmp_path}/e.gig", office)
    assert done.returncode == 0, done.stderr
    assert "a portable explainer" in typed(f"gigrad info {tmp_path}/e.gig", office).stdout
    explained = gig.Explainer.load(tmp_path / "e.gig")(pd.read_parquet(office / "new.parquet"))
    assert len(explained) == 250
    done = typed("gigrad check model.json new.parquet -q", office)
    assert done.returncode == 0, done.stderr
    for word in ("XGBClassifier, 4 columns", "8 trees, sigmoid", "250 read, 0 that", "equal to the model's own"):
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
        time.sleep(0.002)
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=60)[1]
    assert process.returncode == 130, said
    assert "resumes where it stopped" in said
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
