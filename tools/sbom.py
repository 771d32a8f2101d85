"""The bill of materials of a build, as CycloneDX 1.6: python tools/sbom.py > build/sbom.json (make sbom).

It names gigrad, what is compiled into its wheel, what it needs when it runs, what builds it, and the SHA-256 of every
file that the build reads. The same tree and the same tools give the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import tomllib
import uuid
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
COMPILED_IN = {"nanobind": "BSD-3-Clause", "robin-map": "MIT"}  # the second comes inside the first
LICENCES = {"numpy": "BSD-3-Clause", "narwhals": "MIT", "scikit-build-core": "Apache-2.0", "cmake": "BSD-3-Clause",
            "ninja": "Apache-2.0"}  # fmt: skip


def build_inputs() -> list[Path]:
    """The files that a wheel is built from, as git knows them."""
    asked = ["src", "CMakeLists.txt", "pyproject.toml", "README.md", "LICENSE", "NOTICE"]
    done = subprocess.run(["git", "ls-files", "-z", *asked], cwd=ROOT, capture_output=True, text=True, check=True)
    return [ROOT / name for name in sorted(done.stdout.split("\0")) if name]


def own_version() -> str:
    found = re.search(r'^__version__ = "(.+)"$', (ROOT / "src/gigrad/__init__.py").read_text(), re.MULTILINE)
    assert found is not None
    return found[1]


def installed(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "unknown"


def library(name: str, number: str, licence: str, scope: str) -> dict[str, Any]:
    reference = f"pkg:pypi/{name}@{number}" if name != "robin-map" else "robin-map"
    out = {"type": "library", "bom-ref": reference, "name": name, "version": number, "scope": scope,
           "licenses": [{"license": {"id": licence}}]}  # fmt: skip
    return out | ({"purl": reference} if reference.startswith("pkg:") else {})


def file_component(path: Path) -> dict[str, Any]:
    name = str(path.relative_to(ROOT))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return {"type": "file", "bom-ref": f"file:{name}", "name": name, "hashes": [{"alg": "SHA-256", "content": digest}]}


def bill() -> dict[str, Any]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    me = f"pkg:pypi/gigrad@{own_version()}"
    needed = [re.split(r"[<>=]", line)[0] for line in project["project"]["dependencies"]]
    inside = {"nanobind": installed("nanobind"), "robin-map": f"as in nanobind {installed('nanobind')}"}
    parts = [library(n, inside[n], licence, "required") for n, licence in COMPILED_IN.items()]
    parts += [library(n, installed(n), LICENCES[n], "required") for n in needed]
    parts += [library(n, installed(n), LICENCES[n], "excluded") for n in ("scikit-build-core", "cmake", "ninja")]
    files = [file_component(path) for path in build_inputs()]
    dated = subprocess.run(["git", "log", "-1", "--format=%cI"], cwd=ROOT, capture_output=True, text=True, check=True)
    content = {
        "metadata": {
            "timestamp": dated.stdout.strip(),
            "component": {"type": "library", "bom-ref": me, "name": "gigrad", "version": own_version(), "purl": me,
                          "licenses": [{"license": {"id": "Apache-2.0"}}]},
        },
        "components": parts + files,
        "dependencies": [{"ref": me, "dependsOn": [p["bom-ref"] for p in parts if p["scope"] == "required"]}],
    }  # fmt: skip
    number = uuid.uuid5(uuid.NAMESPACE_URL, hashlib.sha256(json.dumps(content).encode()).hexdigest())
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{number}",
        "version": 1,
    } | content


if __name__ == "__main__":
    print(json.dumps(bill(), indent=1))
