"""The benchmarks run, on small sizes, and every competitor still computes what it is said to compute."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.mark.slow
def test_the_tree_benchmarks_run_and_competitors_agree(tmp_path: Path) -> None:
    command = [sys.executable, BENCHMARKS / "run.py", "--quick", "--folder", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, cwd=BENCHMARKS, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
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
    command = [sys.executable, BENCHMARKS / "mixed.py", "--quick", "--folder", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, cwd=BENCHMARKS, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    record = json.loads((tmp_path / "mixed.json").read_text())
    for line in record["joined"]:
        assert float(line[1]) < float(line[2]), line


@pytest.mark.slow
def test_the_benchmarks_of_corners_run(tmp_path: Path) -> None:
    command = [sys.executable, BENCHMARKS / "corners.py", "--quick", "--folder", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, cwd=BENCHMARKS, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    record = json.loads((tmp_path / "corners.json").read_text())
    assert len(record["curve"]) == 20
    assert all(line["error"] < 0.1 for line in record["stacks"])
    assert "| ms a pair |" in (tmp_path / "corners.md").read_text()
