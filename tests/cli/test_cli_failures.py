"""What goes wrong on the command line is one sentence and an exit code, and nothing is left behind."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xgboost
from office import called, furnish
from pyarrow import csv

import gigrad as gig


@pytest.fixture(scope="module")
def office(tmp_path_factory: Any) -> Path:
    return furnish(tmp_path_factory.mktemp("office"))


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
        ("gigrad explain model.json new.csv --reference past.csv --cutoff 0.5 -o x.csv", 3, "which decides who passes"),
        ("gigrad explain model.json new.csv --reference past.csv --weights nobody -o x.csv", 3, "'nobody'"),
        (
            "gigrad explain new.csv new.csv --reference past.csv -o x.csv",
            4,
            "The scorecard new.csv must have the columns",
        ),
        ("gigrad reasons model.json new.csv --reference past.csv -o x.csv", 3, "--higher-is-better"),
        ("gigrad reasons model.json new.csv --reference past.csv --lower-is-better -o x.csv", 3, "--cutoff"),
        ("gigrad report model.json new.csv --reference past.csv -o x.pdf", 3, "must end in .html"),
        ("gigrad save model.json -o x.zip", 3, "must end in .gig"),
        ("gigrad info none.parquet", 3, "does not exist"),
        ("gigrad info past.parquet", 3, "must be a result with gigrad's metadata"),
        ("gigrad info model.json", 3, "must be a .gig file or a result"),
        ("gigrad check damaged.gig", 4, "damaged.gig: This is not a whole .gig file"),
        ("gigrad explain model.json new.csv --reference past.csv --seed -1 -o x.csv", 3, "seed must be"),
        ("gigrad explain model.json new.csv --reference past.csv --engine sparc -o x.csv", 3, "local or spark"),
        ("gigrad explain model.json new.csv --reference past.csv --reference-rows 0 -o x.csv", 3, "--reference-rows"),
        ("gigrad explain model.json new.csv --reference past.csv --columns age,income,debt,debt -o x.csv", 3, "twice"),
        ("gigrad explain model.json twice.parquet --reference past.csv -o x.csv", 3, "'age' comes 2 times"),
        ("gigrad explain model.json new.csv --reference twice.parquet -o x.csv", 3, "'age' comes 2 times"),
        ("gigrad explain model.json new.csv --reference word.csv -o x.csv", 3, "Row 1 of word.csv cannot be used: it"),
        ("gigrad explain model.json latin.csv --reference past.csv --id number -q -o x.csv", 3, "Save it in UTF-8"),
        # nothing that is read is written over, and nothing is written twice
        ("gigrad explain model.json new.csv --reference past.csv -o new.csv", 5, "new.csv is also the data"),
        ("gigrad explain model.json new.csv --reference past.csv -o past.csv", 5, "past.csv is also the reference"),
        ("gigrad explain ready.gig parts -o parts/x.parquet", 5, "lies in the data"),
        ("gigrad explain ready.gig new.csv --on-error skip --rejects x.csv -o x.csv", 5, "is also the result"),
        ("gigrad save ready.gig -o ready.gig", 5, "is also the model"),
        ("gigrad report ready.gig new.csv --rows 0 -o x.html", 3, "--rows must be"),
        (
            "gigrad report ready.gig word.csv -o x.html",
            3,
            "Row 1 of word.csv cannot be explained: it must hold numbers",
        ),
        ("gigrad demo /proc/x", 5, "/proc/x cannot be written"),
    ],
)
def test_failures_are_one_sentence_and_a_code(
    line: str, code: int, message: str, office: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (office / "damaged.gig").write_bytes(b"PK\x03\x04 and nothing more")
    whole = pq.read_table(office / "new.parquet")
    pq.write_table(
        pa.table([*whole.columns, whole["age"]], names=[*whole.column_names, "age"]), office / "twice.parquet"
    )
    first = (office / "past.csv").read_text().splitlines()[:3]
    (office / "word.csv").write_text("\n".join([*first[:2], first[2].rsplit(",", 1)[0] + ",long"]) + "\n")
    (office / "latin.csv").write_bytes("\n".join([*first, first[2].replace("A-", "\xe9")]).encode("latin-1"))
    (office / "parts").mkdir(exist_ok=True)
    pq.write_table(whole, office / "parts" / "a.parquet")
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
    assert "Row 8 cannot be read: it has 1 cells; the header has 5" in done.stderr
    assert not (tmp_path / "out.csv").exists()
    done = called(f"{line} --on-error skip -q", office, monkeypatch)
    assert done.exit_code == 0, done.stderr
    assert "2 of 250 rows could not be explained" in done.stderr
    rejected = pd.read_csv(tmp_path / "out.csv.rejects.csv")
    assert rejected["row"].tolist() == [4, 8]
    assert rejected["number"].tolist()[0] == '\'=HYPERLINK("http://x")'
    assert "got 'many'" in rejected["reason"][0]
    done = called(f"gigrad check model.json {tmp_path}/bad.csv -q", office, monkeypatch)
    assert done.exit_code == 3
    assert "2 that the model cannot score (row 4: " in done.stdout


def test_a_fault_of_our_own_is_said_to_be_one(office: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from gigrad.cli import info

    monkeypatch.setattr(info, "_portable", lambda path: 1 / 0)
    (office / "x.gig").write_bytes(b"")
    done = called("gigrad info x.gig", office, monkeypatch)
    assert done.exit_code == 1
    assert "failed unexpectedly (ZeroDivisionError" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_missing_package_is_named(office: Path) -> None:
    code = "import sys; sys.modules['typer'] = None\nfrom gigrad.cli import main\nmain()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 7
    assert 'pip install "gigrad[cli]"' in done.stderr
    assert "Traceback" not in done.stderr


def test_a_failure_leaves_before_python_is_torn_down(office: Path) -> None:
    """Arrow's threads, still busy with a file, would now and then abort the process then: its exit code was lost."""
    lines = (office / "new.csv").read_text().splitlines()
    (office / "broken.csv").write_text("\n".join([*lines[:2], "broken", *lines[2:]]) + "\n")
    code = (
        "import atexit, sys; from gigrad.cli import main; atexit.register(print, 'tidied up')\n"
        "sys.argv = 'gigrad explain ready.gig broken.csv -o x.parquet'.split()\n"
        "try: main()\nfinally: print('torn down')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=office)
    assert done.returncode == 3
    assert "Row 1 cannot be read: it has 1 cells" in done.stderr
    assert done.stdout == "tidied up\n"


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
