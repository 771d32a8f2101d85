"""The bill of materials of a build, as CycloneDX 1.6: python tools/sbom.py > build/sbom.json (make sbom).

It names gigrad, what is compiled into its wheel, what it needs when it runs, what builds it, and the SHA-256 of every
file of gigrad and nanobind that the build reads. The same tree and the same tools give the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import tomllib
import uuid
from importlib.metadata import PackageNotFoundError, distribution, version
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
    """The version of a tool of the build: without it there is no bill."""
    try:
        return version(name)
    except PackageNotFoundError:
        raise SystemExit(f"sbom.py: {name} must be installed where the wheel is built; got none: make sbom") from None


def compiled_in() -> dict[str, Path]:
    """The files of nanobind that are compiled into the module, by their names in its distribution."""
    files = distribution("nanobind").files or []
    kept = {str(f): Path(str(f.locate())) for f in files if f.suffix in {".h", ".cpp", ".cmake"}}
    return dict(sorted(kept.items()))


def robin_map_version() -> str:
    """As its header says; nanobind brings it along."""
    header = next(path for name, path in compiled_in().items() if name.endswith("robin_growth_policy.h"))
    numbers = dict(re.findall(r"TSL_RH_VERSION_(\w+) (\d+)", header.read_text()))
    return ".".join(numbers[part] for part in ("MAJOR", "MINOR", "PATCH"))


def library(name: str, number: str, licence: str, scope: str) -> dict[str, Any]:
    reference = f"pkg:pypi/{name}@{number}" if name != "robin-map" else f"pkg:github/tessil/robin-map@v{number}"
    return {"type": "library", "bom-ref": reference, "name": name, "version": number, "scope": scope,
            "licenses": [{"license": {"id": licence}}], "purl": reference}  # fmt: skip


def needed(requirement: str) -> dict[str, Any]:
    """A library of the run: which version is the user's choice, within the requirement."""
    name = re.split(r"[<>=]", requirement)[0]
    return {"type": "library", "bom-ref": f"pkg:pypi/{name}", "name": name, "scope": "required",
            "licenses": [{"license": {"id": LICENCES[name]}}], "purl": f"pkg:pypi/{name}",
            "properties": [{"name": "gigrad:requirement", "value": requirement}]}  # fmt: skip


def file_component(name: str, path: Path) -> dict[str, Any]:
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return {"type": "file", "bom-ref": f"file:{name}", "name": name, "hashes": [{"alg": "SHA-256", "content": digest}]}


def bill() -> dict[str, Any]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    me = f"pkg:pypi/gigrad@{own_version()}"
    inside = {"nanobind": installed("nanobind"), "robin-map": robin_map_version()}
    parts = [library(n, inside[n], licence, "required") for n, licence in COMPILED_IN.items()]
    parts += [needed(line) for line in project["project"]["dependencies"]]
    parts += [library(n, installed(n), LICENCES[n], "excluded") for n in ("scikit-build-core", "cmake", "ninja")]
    files = [file_component(str(path.relative_to(ROOT)), path) for path in build_inputs()]
    files += [file_component(name, path) for name, path in compiled_in().items()]
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
