"""The benchmarks run, on small sizes, and every competitor still computes what it is said to compute."""

from __future__ import annotations

import csv
import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


def run(folder: Path, program: str, *options: str) -> None:
    """Run a benchmark on small sizes, with its results in `folder`."""
    command: list[str | Path] = [sys.executable, BENCHMARKS / program, *(options or ["--quick"]), "--folder", folder]
    done = subprocess.run(command, capture_output=True, text=True, cwd=BENCHMARKS, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_the_tree_benchmarks_run_and_competitors_agree(tmp_path: Path) -> None:
    run(tmp_path, "run.py")
    record = json.loads((tmp_path / "trees.json").read_text())
    assert len(record["lines"]) >= 10
    for line in record["lines"]:
        if line["peer"] != "shap, path-dependent (no reference)":  # which explains from another base value
            assert float(line["check"].split("differ by ")[1].split(",")[0]) < 1e-5, line
    page = (tmp_path / "trees.md").read_text()
    for name in (*(line["work"] for line in record["lines"]), *record["scale"]["spaces"]):
        assert f"| {name} |" in page
    for line in (*record["scale"]["deep"], *record["scale"]["wide"].values()):
        assert line["trees"] < line["met"] <= line["trees"] * line["nodes"]
    for line in record["scale"]["deep"]:
        assert line["met"] / line["trees"] <= line["some"] <= line["nodes"]
        assert line["gap"] < 1e-12
    assert (tmp_path / "growth.png").exists()


@pytest.mark.slow
def test_the_mixed_benchmarks_run(tmp_path: Path) -> None:
    run(tmp_path, "mixed.py")
    record = json.loads((tmp_path / "mixed.json").read_text())
    for line in record["joined"]:
        assert float(line[1]) < float(line[2]), line


@pytest.mark.slow
def test_the_benchmark_of_constants_runs(tmp_path: Path) -> None:
    run(tmp_path, "limits.py")
    assert "| `TABLE_WIDTH` | 64 | off |" in (tmp_path / "limits.md").read_text()


@pytest.mark.slow
def test_the_benchmark_of_native_constants_runs(tmp_path: Path) -> None:
    run(tmp_path, "kernel_limits.py")
    assert "| `BLOCK` | 1024 |" in (tmp_path / "kernel_limits.md").read_text()


@pytest.mark.slow
def test_the_benchmark_of_constants_of_accuracy_runs(tmp_path: Path) -> None:
    run(tmp_path, "accuracy_limits.py")
    lines = [line.split(" | ") for line in (tmp_path / "accuracy_limits.md").read_text().splitlines()]
    (usual,) = (line for line in lines if line[0] == "| as they are")
    assert float(usual[4]) < 1.0
    assert usual[5] == "0"  # rows in which `error` did not hold
    assert sum(line[0] == "| `SUM_ROUNDING`" and len(line) == 7 for line in lines) == 2
    assert sum(len(line) == 6 and line[0].startswith("| `") for line in lines) == 1  # made cases, all of which hold


@pytest.mark.slow
def test_the_benchmarks_of_corners_run(tmp_path: Path) -> None:
    run(tmp_path, "corners.py")
    record = json.loads((tmp_path / "corners.json").read_text())
    assert len(record["curve"]) == 20
    assert all(line["error"] < 0.1 for line in record["stacks"])
    assert "| ms a pair |" in (tmp_path / "corners.md").read_text()


def test_the_benchmark_of_settling_runs(tmp_path: Path) -> None:
    run(tmp_path, "settling.py")
    (line,) = json.loads((tmp_path / "settling.json").read_text())["lines"]
    assert line["references"] < 500
    assert line["wrong"] == 0
    assert "| faster |" in (tmp_path / "settling.md").read_text()


@pytest.mark.slow
def test_the_benchmark_of_the_service_runs(tmp_path: Path) -> None:
    """A few hundred requests, every answer compared; memory is watched in the long run that results/ has."""
    run(tmp_path, "serve.py")
    run(tmp_path, "serve.py", "--soak", "200")
    record = json.loads((tmp_path / "serve.json").read_text())
    assert {line["clients"] for line in record["latencies"]} == {1, 4, 16}
    assert (record["soak"]["requests"], record["soak"]["wrong"]) == (200, 0)
    assert "| explain | 16 |" in (tmp_path / "serve.md").read_text()


def test_the_history_keeps_every_run_and_names_what_fell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    history = importlib.import_module("history")
    record = json.loads((BENCHMARKS / "results" / "trees.json").read_text())
    path = tmp_path / "history.csv"
    assert history.append(path, history.line_of(record, "aaa")) == []
    assert history.append(path, history.line_of(record, "aaa")) == []  # once
    record["lines"][0]["ratio"] *= 0.7
    record["lines"].append({"work": "something new", "peer": "shap", "ratio": 2.0})
    said = history.append(path, history.line_of(record, "bbb"))
    assert len(said) == 1
    assert record["lines"][0]["work"] in said[0]
    lines = list(csv.DictReader(path.read_text().splitlines()))
    assert [line["commit"] for line in lines] == ["aaa", "bbb"]
    assert [line["something new / shap"] for line in lines] == ["", "2"]
