"""Commands as a scheduler runs them: what they may write, whom they trust, how they end."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from office import called, furnish, typed

from gigrad.cli.options import OPTIONS, Config


@pytest.fixture(scope="module")
def office(tmp_path_factory: Any) -> Path:
    return furnish(tmp_path_factory.mktemp("office"))


READ = {
    "model": "model.json", "data": "new.csv", "reference": "past.csv", "scores": "scores.parquet",
    "statements": "book.toml", "config": "run.toml",
}  # fmt: skip


def test_nothing_that_is_read_is_ever_written(office: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every option that names a file to write, held against every file that is read."""
    (office / "run.toml").write_text('title = "x"\n')
    before = {p.name: p.read_bytes() for p in office.iterdir() if p.is_file()}
    common = (
        "--reference past.csv --scores scores.parquet --output rank --cutoff 0.5 --lower-is-better --config run.toml"
    )
    tried = 0
    for name, option in OPTIONS.items():
        if option.file != "write" or "reasons" not in option.commands:
            continue
        flag = option.names[0] if option.names else f"--{name.replace('_', '-')}"
        others = "" if name == "out" else "-o result.csv"
        for file in READ.values():
            line = f"gigrad reasons model.json new.csv --statements book.toml {common} {others} {flag} ./{file}"
            done = called(line, office, monkeypatch)
            assert done.exit_code == 5, (line, done.stderr)
            assert "which would be changed; choose another name" in done.stderr
            tried += 1
    assert tried == 5 * len(READ)
    assert {p.name: p.read_bytes() for p in office.iterdir() if p.is_file()} == before


def test_files_of_an_ensemble_are_kept_apart_too(tmp_path: Path, office: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("model.json", "head.skops", "scores.csv"):
        (tmp_path / name).write_text("x")
    (tmp_path / "e.toml").write_text(
        f'data = "{office}/new.csv"\nreference = "{office}/past.csv"\n[ensemble]\nkind = "stack"\nhead = "head.skops"\n'
        'members = [{ file = "model.json", scores = "scores.csv" }]\n'
    )
    for name in ("model.json", "head.skops", "scores.csv"):
        done = called(f"gigrad explain --config e.toml -o x.csv --save-config {name}", tmp_path, monkeypatch)
        assert done.exit_code == 5, done.stderr
        assert (tmp_path / name).read_text() == "x"
    (tmp_path / "x.csv.rejects.csv").write_text("x")
    line = (
        f"gigrad explain {office}/model.json x.csv.rejects.csv --reference {office}/past.csv --on-error skip -o x.csv"
    )
    done = called(line, tmp_path, monkeypatch)
    assert done.exit_code == 5, done.stderr
    assert (tmp_path / "x.csv.rejects.csv").read_text() == "x"


class Bomb:
    def __reduce__(self) -> Any:
        return (Path.touch, (Path("exploded"),))


def test_a_configuration_grants_no_trust(office: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "m.pkl").write_bytes(pickle.dumps(Bomb()))
    for text, flag in (
        ("trust_pickle = true", "--trust-pickle"),
        ("trust-pickle = true", "--trust-pickle"),
        ('trust = ["posix.system"]', "--trust"),
    ):
        (tmp_path / "c.toml").write_text(f'model = "m.pkl"\n{text}\n')
        done = called("gigrad check --config c.toml", tmp_path, monkeypatch)
        assert done.exit_code == 3
        assert f"a file may not grant trust; leave it out, and type {flag} where it is meant" in done.stderr
        assert not (tmp_path / "exploded").exists()
    line = f"gigrad explain {office}/ready.gig {office}/new.csv --trust-pickle --trust B -o x.csv --save-config s.toml"
    assert called(line, tmp_path, monkeypatch).exit_code == 0
    assert "trust" not in (tmp_path / "s.toml").read_text(), "what was typed once is not granted for ever"
    assert set(Config.__dataclass_fields__) - set(OPTIONS) == {"groups", "ensemble"}


def test_a_hostile_skops_file_is_not_recommended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import FunctionTransformer
    from skops import io

    io.dump(FunctionTransformer(os.system), tmp_path / "bomb.skops")
    done = called("gigrad check bomb.skops", tmp_path, monkeypatch)
    assert done.exit_code == 4
    assert "posix.system" in done.stderr
    assert "--trust" not in done.stderr
    assert "may run any code" in done.stderr
    from gigrad._io import modelfiles

    monkeypatch.setattr(modelfiles, "TRUSTED", ())
    monkeypatch.setattr(modelfiles, "rehearse", lambda *args: None)
    monkeypatch.setattr(io, "get_untrusted_types", lambda file: ["sklearn.linear_model._logistic.LogisticRegression"])
    io.dump(LogisticRegression().fit(np.eye(2), [0, 1]), tmp_path / "m.skops")
    done = called("gigrad check m.skops", tmp_path, monkeypatch)
    assert "(--trust sklearn.linear_model._logistic.LogisticRegression)" in done.stderr, done.stderr


@pytest.mark.parametrize(
    ("number", "code", "word"), [(signal.SIGTERM, 143, "Terminated."), (signal.SIGINT, 130, "Int")]
)
def test_terminated_it_stops_cleanly_and_goes_on(
    number: int, code: int, word: str, office: Path, tmp_path: Path
) -> None:
    line = "gigrad explain ready.gig new.csv --batch-rows 5 --id number"
    out = tmp_path / "out.parquet"
    command = [sys.executable, "-m", "gigrad", *line.split()[1:], "-o", str(out), "--summary", str(tmp_path / "s.json")]
    process = subprocess.Popen(command, cwd=office, stderr=subprocess.PIPE, text=True)
    while not list(tmp_path.glob("out.parquet.unfinished/part-000005*")):
        assert process.poll() is None, "it ended before it could be terminated"
        time.sleep(0.002)
    process.send_signal(number)
    said = process.communicate(timeout=60)[1]
    assert process.returncode == code, said
    assert word in said
    assert "The same command resumes where it stopped." in said
    assert "Traceback" not in said
    assert json.loads((tmp_path / "s.json").read_text())["status"] == "failed"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out.parquet.unfinished", "s.json"]
    again = typed(f"{line} -o {out} --summary {tmp_path}/s.json", office)
    assert again.returncode == 0, again.stderr
    assert "were done already" in again.stderr
    assert json.loads((tmp_path / "s.json").read_text())["status"] == "done"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out.parquet", "s.json"]


def test_a_job_that_fails_early_says_so_in_its_summary(
    office: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    summary = tmp_path / "s.json"
    line = f"gigrad explain ready.gig %s -q -o {tmp_path}/x.parquet --summary {summary}"
    assert called(line % "new.csv", office, monkeypatch).exit_code == 0
    assert json.loads(summary.read_text())["status"] == "done"
    assert called(line % "none.csv", office, monkeypatch).exit_code == 3
    said = json.loads(summary.read_text())
    assert (said["status"], said["error"]) == ("failed", "InputError")
    assert "none.csv does not exist" in said["message"]


def test_a_model_is_imported_once(office: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from gigrad import importers
    from gigrad.graph import Graph

    imported = []
    plain = importers.import_model

    def counting(model: Any) -> Any:
        if not isinstance(model, Graph):
            imported.append(type(model).__name__)
        return plain(model)

    for module in ("gigrad.cli.build", "gigrad.cli.commands", "gigrad._explain.scorer", "gigrad._explain.compose"):
        monkeypatch.setattr(f"{module}.import_model", counting)
    line = (
        f"gigrad explain model.json new.csv --reference past.csv --cutoff 0.5 --lower-is-better -q -o {tmp_path}/x.csv"
    )
    assert called(line, office, monkeypatch).exit_code == 0
    assert imported == ["XGBClassifier"]


def test_options_for_jobs(office: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from sklearn.linear_model import LogisticRegression
    from skops import io

    past = pq.read_table(office / "past.parquet").to_pandas()[["age", "debt"]]
    io.dump(LogisticRegression().fit(past, past["age"] > past["debt"]), office / "smooth.skops")
    line = f"gigrad explain smooth.skops new.csv --reference past.csv --id number -q -o {tmp_path}/out.parquet"
    done = called(f"{line} --max-error 0 --file-mode 640", office, monkeypatch)
    assert done.exit_code == 8, (done.stdout, done.stderr)
    assert "credits that may be off by more than max_error 0" in done.stderr
    assert not (tmp_path / "out.parquet").exists()
    done = called(f"{line} --max-error 1e-6 --file-mode 640", office, monkeypatch)
    assert done.exit_code == 0, done.stderr
    assert (tmp_path / "out.parquet").stat().st_mode & 0o777 == 0o640
    told = called(f"gigrad info {tmp_path}/out.parquet", office, monkeypatch)
    assert "Accuracy           0 rows out of tolerance; the largest error of a credit is" in told.stdout
    assert "Rows               250 read, 0 rejected" in told.stdout
    before = (tmp_path / "out.parquet").stat().st_mtime_ns
    done = called(f"{line} --skip-if-done".replace(" -q", ""), office, monkeypatch)
    assert "done already, 250 lines from 250 rows" in done.stderr
    assert (tmp_path / "out.parquet").stat().st_mtime_ns == before
    for wrong in ("abc", "777", "400", "9"):
        done = called(f"{line} --file-mode {wrong}", office, monkeypatch)
        assert (done.exit_code, "--file-mode must be octal digits" in done.stderr) == (3, True)
    frame = pq.read_table(office / "new.parquet")
    pq.write_table(frame.set_column(0, "number", [["A"] * len(frame)]), tmp_path / "same.parquet")
    line = f"gigrad explain model.json {tmp_path}/same.parquet --reference past.csv --id number -q -o {tmp_path}/o.csv"
    done = called(line, office, monkeypatch)
    assert done.exit_code == 0
    assert "Warning: The ids of" in done.stderr
    assert "249 repeat an earlier one" in done.stderr
    assert called(f"{line} --ids fail", office, monkeypatch).exit_code == 3
    assert called(f"{line} --ids allow", office, monkeypatch).stderr == ""
    done = called(f"{line} --ids allow --log-level info", office, monkeypatch)
    assert "INFO gigrad.batch: done:" in done.stderr
    assert called(f"{line} --log-level loud", office, monkeypatch).exit_code == 3


@pytest.mark.parametrize("more", ["", "--reference-rows 20", "--output rank --scores reference"])
def test_the_model_is_imported_once_and_asked_about_the_reference_once(
    more: str, office: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import xgboost

    from gigrad._explain import scorer
    from gigrad.cli import build
    from gigrad.graph import Graph

    asked: list[int] = []
    imported: list[Any] = []
    plain = build.import_model

    def counting(predict: Any) -> Any:
        def counted(self: Any, data: Any, *args: Any, **options: Any) -> Any:
            asked.append(data.num_row() if isinstance(data, xgboost.DMatrix) else len(data))
            return predict(self, data, *args, **options)

        return counted

    def importing(model: Any) -> Any:
        imported.extend([model] if not isinstance(model, Graph) else [])
        return plain(model)

    for name in ("predict", "inplace_predict"):
        monkeypatch.setattr(xgboost.Booster, name, counting(getattr(xgboost.Booster, name)))
    monkeypatch.setattr(build, "import_model", importing)
    monkeypatch.setattr(scorer, "import_model", importing)
    line = f"gigrad save model.json --reference past.csv --cutoff 0.5 --lower-is-better {more} -o {tmp_path / 'e.gig'}"
    done = called(line, office, monkeypatch)
    assert done.exit_code == 0, done.stderr
    rows = len((office / "past.csv").read_text().splitlines()) - 1
    assert asked == [rows], "whoever passes is found, and explained against, by one prediction"
    assert len(imported) == 1
