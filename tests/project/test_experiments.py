"""The paper's experiments run, on fewer rows, and their claims hold."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from real_tables import real_file

EXPERIMENTS = Path(__file__).resolve().parents[2] / "experiments"


def run(name: str, folder: Path) -> dict[str, object]:
    """Run one experiment in quick mode; it exits with an error where a claim does not hold."""
    command: list[str | Path] = [sys.executable, EXPERIMENTS / f"{name}.py", "--quick", "--folder", folder]
    done = subprocess.run(command, capture_output=True, text=True, cwd=EXPERIMENTS, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    record: dict[str, object] = json.loads((folder / f"{name}.json").read_text())
    assert record["claims"]
    assert list(folder.glob(f"{name}_*.png")) or name == "comparison"
    return record


@pytest.mark.parametrize("name", ["figures", "moons", "ovals"])
def test_made_data(name: str, tmp_path: Path) -> None:
    run(name, tmp_path)


@pytest.mark.data
@pytest.mark.slow
def test_covertype_and_the_comparison_of_methods(tmp_path: Path) -> None:
    real_file("covertype")
    run("covertype", tmp_path)
    if find_spec("keras") is not None:
        run("covertype_keras", tmp_path)
    run("comparison", tmp_path)
