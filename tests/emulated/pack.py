"""Gathers what a run of tests loads, Python and its libraries included, into a folder that can be a whole file system.

python pack.py FOLDER PYTEST-ARGUMENTS

runs the tests here, then copies every module and shared library that the run has used. The modules lie side by side in
FOLDER/modules, wherever they came from.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest


def loaded_modules() -> list[tuple[Path, Path]]:
    """(file, place below FOLDER/modules) of every module, and of its compiled form."""
    out = []
    for module in list(sys.modules.values()):
        spec, file = getattr(module, "__spec__", None), getattr(module, "__file__", None)
        if spec is None or file is None or not Path(file).exists():
            continue
        path, parts = Path(file), spec.name.split(".")
        place = Path(*parts if path.stem == "__init__" else parts[:-1], path.name)
        out.append((path, place))
        cached = Path(spec.cached or "")
        if cached.is_file():
            out.append((cached, place.parent / "__pycache__" / cached.name))
    return out


def mapped_libraries() -> list[Path]:
    """The shared libraries of this process, the loader among them."""
    maps = [line.split(maxsplit=5) for line in Path("/proc/self/maps").read_text().splitlines()]
    return sorted({Path(fields[5]) for fields in maps if len(fields) == 6 and ".so" in fields[5]})


def copy(source: Path, target: Path) -> None:
    """With its time, by which Python knows that a compiled form belongs to its source."""
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(source, target)


def pack(folder: Path) -> None:
    """Copies what this process has loaded."""
    modules = loaded_modules()
    for source, place in modules:
        copy(source, folder / "modules" / place)
    for library in set(mapped_libraries()) - {source for source, _ in modules}:
        copy(library, folder / "lib64" / library.name)
    subprocess.run(["/sbin/ldconfig", "-n", folder / "lib64"], check=True)  # the names by which libraries are asked for
    copy(Path(sys.executable).resolve(), folder / "python")


if __name__ == "__main__":
    status = pytest.main(sys.argv[2:])
    if status:
        sys.exit(f"pack.py: the tests must pass here before they are packed, and pytest returned {int(status)}")
    pack(Path(sys.argv[1]))
