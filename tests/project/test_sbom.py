"""The bill of materials names every part by a version that is known, and every file that is built with its hash."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def bill() -> dict[str, Any]:
    done = subprocess.run([sys.executable, ROOT / "tools" / "sbom.py"], capture_output=True, text=True, check=True)
    out: dict[str, Any] = json.loads(done.stdout)
    return out


def test_parts_have_the_versions_that_are_built_with(bill: dict[str, Any]) -> None:
    parts = {part["name"]: part for part in bill["components"] if part["type"] == "library"}
    for name in ("nanobind", "scikit-build-core", "cmake", "ninja"):
        assert parts[name]["purl"] == f"pkg:pypi/{name}@{version(name)}"
    assert re.fullmatch(r"\d+\.\d+\.\d+", parts["robin-map"]["version"])
    assert "unknown" not in json.dumps(list(parts.values()))


def test_libraries_of_the_run_have_their_requirement_and_no_version(bill: dict[str, Any]) -> None:
    """Which NumPy runs is the user's choice: a version here would be that of the machine that built the wheel."""
    parts = {part["name"]: part for part in bill["components"] if part["type"] == "library"}
    for name in ("numpy", "narwhals"):
        assert "version" not in parts[name]
        assert parts[name]["properties"][0]["value"].startswith(f"{name}>=")


def test_what_is_compiled_has_its_hash(bill: dict[str, Any]) -> None:
    files = {part["name"]: part["hashes"][0]["content"] for part in bill["components"] if part["type"] == "file"}
    core = "src/gigrad/kernels/bindings/module.cpp"
    assert files[core] == hashlib.sha256((ROOT / core).read_bytes()).hexdigest()
    assert any(name.endswith("robin_map.h") for name in files)
    assert any(name.endswith("nb_type.cpp") for name in files)
    references = [part["bom-ref"] for part in bill["components"]]
    assert len(set(references)) == len(references)
