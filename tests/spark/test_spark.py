"""Spark on this machine: the same credits as without it, through failing tasks too."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from forests import random_forest
from typer import testing

import gigrad as gig
from gigrad import batch
from gigrad.graph import Column, Elementwise, Graph, Input

if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
    pytest.skip("Spark needs Java, which is not here", allow_module_level=True)

ROWS = 200_000
NAMES = ("age", "income", "debt.to.income", "purpose")
LABELS = ("car", "house", "other")


@pytest.fixture(scope="module")
def explainer() -> gig.Explainer:
    rng = np.random.default_rng(0)
    columns = (
        Column("age"),
        Column("income"),
        Column("debt.to.income", missing=False),
        Column("purpose", "category", LABELS),
    )
    source = Input(4)
    trees = random_forest(rng, columns, source, trees=3, depth=3)
    graph = Graph(columns, source, Elementwise(trees, "sigmoid"), trees, ("y",), named=True)
    return gig.Explainer(graph, table(4, seed=1).select(list(NAMES)), output="margin", n_threads=1)


def table(rows: int, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    numbers = rng.integers(0, 9, (rows, 3)) / 2.0
    made: dict[str, Any] = {"loan": np.arange(rows), "note": np.arange(rows).astype(str)}
    made |= {name: numbers[:, j] for j, name in enumerate(NAMES[:3])}
    purpose = pa.array(np.array(LABELS)[rng.integers(0, 3, rows)])
    return pa.table(made).append_column("purpose", purpose)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: Any) -> Path:
    """200,000 rows in four Parquet files."""
    path = tmp_path_factory.mktemp("spark") / "in"
    path.mkdir()
    whole = table(ROWS)
    for i in range(4):
        pq.write_table(whole.slice(i * ROWS // 4, ROWS // 4), path / f"{i}.parquet")
    return path


@pytest.fixture(scope="module")
def local(explainer: gig.Explainer, folder: Path) -> Any:
    """The same without Spark."""
    out = folder.parent / "local.parquet"
    batch.run(explainer, folder, out, id_cols=["loan", "note"])
    return pq.read_table(out)


def test_200_000_rows_are_the_same_as_without_spark(
    spark: Any, explainer: gig.Explainer, folder: Path, local: Any, tmp_path: Path
) -> None:
    from gigrad.spark import explain

    found = explain(spark.read.parquet(str(folder)), explainer, id_cols=["loan", "note"])
    found.write.parquet(str(tmp_path / "out"))
    rows = pq.read_table(tmp_path / "out").sort_by("loan")
    assert rows.num_rows == ROWS
    assert rows.column_names == local.column_names
    assert rows.equals(local.cast(rows.schema)), "every number must be the same, to the bit"


def test_a_failing_task_is_done_again(
    spark: Any, explainer: gig.Explainer, folder: Path, local: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every task fails at its first attempt, after it has given some rows."""
    from gigrad.batch.tasks import credit_task
    from gigrad.spark import workers

    flags = tmp_path / "flags"
    flags.mkdir()

    class FailsOnce:
        """Makes the task of a worker, and lets each partition fail once."""

        layout: Any

        def __call__(self, explainer: Any, schema: Any) -> Any:
            from pyspark import TaskContext

            task = credit_task(explainer, schema, id_cols=("loan", "note"))
            context = TaskContext.get()
            flag = None if context is None else flags / str(context.partitionId())
            if flag is not None and not flag.exists():
                flag.write_text("failed")
                raise RuntimeError("the machine under this task has gone")
            return task

    frame = spark.read.parquet(str(folder))
    found = workers.mapped(frame, explainer, FailsOnce(), workers.Results("fail"))
    rows = pa.Table.from_batches(found.toArrow().to_batches()).sort_by("loan")
    assert len(list(flags.iterdir())) > 0
    assert rows.cast(local.schema).equals(local)


def test_bad_rows_are_left_out_emptied_or_stop_the_job(spark: Any, explainer: gig.Explainer) -> None:
    from pyspark.errors import PySparkException

    from gigrad.spark import explain, rejects

    rows = table(50).to_pandas()
    rows.loc[[3, 30], "debt.to.income"] = float("inf")
    frame = spark.createDataFrame(rows)
    assert explain(frame, explainer, id_cols=["loan"], on_error="skip").count() == 48
    emptied = explain(frame, explainer, id_cols=["loan"], on_error="null").toArrow().sort_by("loan")
    assert emptied.num_rows == 50
    assert [i for i, v in enumerate(emptied["credit_age"].to_pylist()) if v is None] == [3, 30]
    refused = rejects(frame, explainer, id_cols=["loan"]).toArrow().sort_by("loan")
    assert refused["loan"].to_pylist() == [3, 30]
    assert "'debt.to.income' is infinite" in refused["reason"][0].as_py()
    assert rejects(frame.limit(3), explainer).columns == ["reason"]
    with pytest.raises(PySparkException, match=r"'debt\.to\.income' is infinite"):
        explain(frame, explainer, id_cols=["loan"]).count()
    with pytest.raises(gig.InputError, match="id column 'nobody'"):
        explain(frame, explainer, id_cols=["nobody"])


def test_reasons_are_the_same_as_without_spark(spark: Any, explainer: gig.Explainer, tmp_path: Path) -> None:
    from gigrad.batch.reasons import reason_task
    from gigrad.spark import reasons

    content = table(500, seed=3)
    statements = {"age": "Too young", "purpose": "The purpose of the loan"}
    options: dict[str, Any] = {"statements": statements, "cutoff": 0.0, "higher_is_better": False, "top": 2}
    expected = reason_task(explainer, content.schema, id_cols=["loan"], **options)(content, "fail").table
    frame = spark.createDataFrame(content.to_pandas()).repartition(3)
    found = reasons(frame, explainer, id_cols=["loan"], **options).toArrow()
    found = found.sort_by([("loan", "ascending"), ("rank", "ascending")])
    assert found.num_rows > 100
    assert found.to_pylist() == expected.to_pylist()


def test_reasons_by_spark_leave_the_ledger_that_others_do(
    spark: Any, explainer: gig.Explainer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gigrad.cli.app import app
    from gigrad.spark import reasons

    content = table(400, seed=3)
    options: dict[str, Any] = {"cutoff": 0.0, "higher_is_better": False, "top": 2}
    ledgers = []
    for parts in (1, 3):
        frame = spark.createDataFrame(content.to_pandas()).repartition(parts)
        path = tmp_path / f"{parts}.jsonl.gz"
        found = reasons(frame, explainer, id_cols=["loan"], audit=path, key=b"a key of 16 bytes", **options)
        assert found.columns == reasons(frame, explainer, id_cols=["loan"], **options).columns
        told = {r["row_id"] for r in gig.read_ledger(path, b"a key of 16 bytes") if r["outcome"]["reasons"]}
        assert {row[0] for row in found.select("loan").distinct().collect()} == told
        ledgers.append(path.read_bytes())
    assert ledgers[0] == ledgers[1], "however the rows were spread"
    explainer.save(tmp_path / "e.gig")
    (tmp_path / "in").mkdir()
    pq.write_table(content, tmp_path / "in" / "a.parquet")
    monkeypatch.chdir(tmp_path)
    line = ["reasons", "e.gig", "in", "--id", "loan", "--cutoff", "0.0", "--lower-is-better", "--top", "2", "--all"]
    for more in ("--engine spark --audit s.jsonl -o s", "-q --audit l.jsonl -o l.parquet"):
        done = testing.CliRunner().invoke(app, [*line, *more.split()])
        assert done.exit_code == 0, done.stderr
    by_spark, local = ({r["row_id"]: r["outcome"] for r in gig.read_ledger(f"{n}.jsonl")} for n in "sl")
    assert by_spark == local
    assert len(local) == 400
    order = [("loan", "ascending"), ("rank", "ascending")]
    one, other = pq.read_table("s").sort_by(order), pq.read_table("l.parquet").sort_by(order)
    assert one.to_pylist() == other.to_pylist()
    done = testing.CliRunner().invoke(app, ["verify", "s.jsonl", "--model", "e.gig"])
    assert done.exit_code == 0, done.stderr
    for path in (tmp_path / "s", *(tmp_path / "s").iterdir(), tmp_path / "s.jsonl"):
        assert path.stat().st_mode & 0o077 == 0, "for its owner alone"
    assert not [p for p in tmp_path.iterdir() if p.name.startswith(".")]


def test_jobs_by_spark_say_how_they_went_and_are_not_done_twice(
    spark: Any, explainer: gig.Explainer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gigrad.cli.app import app

    explainer.save(tmp_path / "e.gig")
    rows = table(300, seed=5).to_pydict()
    rows["loan"][10], rows["loan"][40], rows["loan"][50] = None, 3, 3
    rows["debt.to.income"][7] = float("inf")
    (tmp_path / "in").mkdir()
    pq.write_table(pa.table(rows), tmp_path / "in" / "a.parquet")
    monkeypatch.chdir(tmp_path)

    def called(*more: str) -> Any:
        return testing.CliRunner().invoke(app, ["explain", "e.gig", "in", "--id", "loan", *more])

    def summary(name: str) -> Any:
        return json.loads((tmp_path / name).read_text())

    job = ("--engine", "spark", "--on-error", "skip", "-o", "out", "--summary", "s.json", "--skip-if-done")
    done = called(*job)
    assert done.exit_code == 0, done.stderr
    assert "1 rows have none and 2 repeat an earlier one." in done.stderr
    assert called("--on-error", "skip", "-o", "l.parquet", "--summary", "l.json", "-q").exit_code == 0
    by_spark, local = summary("s.json"), summary("l.json")
    for key in ("status", "rows", "written", "rejected", "data", "kind", "versions", "fingerprints"):
        assert by_spark[key] == local[key], key
    assert (by_spark["status"], by_spark["rows"], by_spark["written"], by_spark["rejected"]) == ("done", 300, 299, 1)
    assert by_spark["accuracy"] == local["accuracy"] | {"worst_row": None}
    assert by_spark["ids"] == local["ids"] | {"examples": []}
    assert (by_spark["skipped"], by_spark["rejects"]) == (False, "out.rejects")
    assert by_spark["run"] != local["run"], "rows stand in another order"
    told = testing.CliRunner().invoke(app, ["info", "out"])
    assert "300 read, 1 rejected" in told.stdout
    before = {p: p.stat().st_mtime_ns for p in (tmp_path / "out").iterdir()}
    done = called(*job)
    assert (done.exit_code, "done already, 299 lines from 300 rows" in done.stderr) == (0, True), done.stderr
    assert before == {p: p.stat().st_mtime_ns for p in (tmp_path / "out").iterdir()}
    assert summary("s.json")["skipped"] is True
    other = called("--engine", "spark", "-o", "out", "--skip-if-done", "--on-error", "null", "--summary", "s.json")
    assert (other.exit_code, "exists already" in other.stderr) == (5, True), "another job has another result"
    assert summary("s.json")["status"] == "failed"
    done = called("--engine", "spark", "--on-error", "skip", "-o", "new", "--ids", "fail", "--summary", "n.json")
    assert (done.exit_code, summary("n.json")["error"]) == (3, "InputError")
    assert not (tmp_path / "new").exists()
    done = called("--engine", "spark", "--on-error", "skip", "-o", "new", "--ids", "allow", "--summary", "n.json")
    assert (done.exit_code, summary("n.json")["ids"], "have none" in done.stderr) == (0, None, False)


def test_the_command_line_with_spark(
    spark: Any, explainer: gig.Explainer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In this process, whose session it takes over: another one would take as long to start as all of these tests."""
    from gigrad.cli.app import app

    explainer.save(tmp_path / "e.gig")
    content = table(300, seed=5)
    (tmp_path / "in").mkdir()
    pq.write_table(content, tmp_path / "in" / "a.parquet")
    monkeypatch.chdir(tmp_path)
    line = ["explain", "e.gig", "in", "--engine", "spark", "--id", "loan", "-o"]
    done = testing.CliRunner().invoke(app, [*line, "out"])
    assert done.exit_code == 0, done.stderr
    found = pq.read_table(tmp_path / "out").sort_by("loan")
    expected = batch.explain_batch(explainer, content.combine_chunks().to_batches()[0], id_cols=["loan"])
    assert np.array_equal(found["credit_debt.to.income"].to_numpy(), expected["credit_debt.to.income"].to_numpy())
    left = sorted(p.name for p in tmp_path.iterdir())
    for wrong, message in (("out.csv", "writes a folder"), ("out", "exists already"), ("none/out", "does not exist")):
        done = testing.CliRunner().invoke(app, [*line, wrong])
        assert done.exit_code in (3, 5)
        assert message in done.stderr
    spoiled = content.set_column(4, "debt.to.income", [[float("inf"), *[1.0] * 299]])
    pq.write_table(spoiled, tmp_path / "in" / "a.parquet")
    done = testing.CliRunner().invoke(app, [*line, "new"])
    assert done.exit_code == 3
    assert "Row 0 cannot be explained: column 'debt.to.income' is infinite" in done.stderr
    assert sorted(p.name for p in tmp_path.iterdir()) == left, "nothing is written before every row was looked at"
    done = testing.CliRunner().invoke(app, [*line, "new", "--on-error", "skip"])
    assert done.exit_code == 0, done.stderr
    assert "1 rows could not be explained; new.rejects lists them with the reasons" in done.stderr
    assert pq.read_table(tmp_path / "new").num_rows == 299
    assert pq.read_table(tmp_path / "new.rejects").to_pylist()[0]["loan"] == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([*left, "new", "new.rejects"])
