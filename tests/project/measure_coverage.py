"""Which lines the tests reach, in Python and in C++, held to the floors of `[tool.gigrad.coverage]` in pyproject.toml.

`make coverage` builds the native core once more, so that it counts its lines, runs the tests with it, and then this.
"""

from __future__ import annotations

import argparse
import gzip
import json
import subprocess
import sys
import tempfile
import tomllib
from collections import defaultdict
from pathlib import Path

import coverage

ROOT = Path(__file__).parents[2]
KERNELS = "src/gigrad/kernels/"


def python_lines() -> dict[str, tuple[int, int]]:
    """For each file how many lines were reached, and how many there are."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        measured = coverage.Coverage()
        measured.load()
        measured.json_report(outfile=str(report))
        files = json.loads(report.read_text())["files"]
    return {name: (f["summary"]["covered_lines"], f["summary"]["num_statements"]) for name, f in files.items()}


def native_lines(build: Path) -> dict[str, tuple[int, int]]:
    """The same of the C++ code, from what gcov says of every object that ran; headers are in several of them."""
    counts: dict[str, dict[int, int]] = defaultdict(dict)
    with tempfile.TemporaryDirectory() as folder:
        for data in sorted(build.resolve().rglob("*.gcda")):
            subprocess.run(["gcov", "--json-format", str(data)], cwd=folder, check=True, capture_output=True)
            for made in Path(folder).glob("*.gcov.json.gz"):
                with gzip.open(made, "rt") as file:
                    found = json.load(file)["files"]
                made.unlink()
                for one in found:
                    name = one["file"].partition(KERNELS)
                    if name[1]:
                        lines = counts[KERNELS + name[2]]
                        for line in one["lines"]:
                            number = line["line_number"]
                            lines[number] = max(lines.get(number, 0), line["count"])
    return {name: (sum(c > 0 for c in lines.values()), len(lines)) for name, lines in counts.items()}


def share(files: dict[str, tuple[int, int]]) -> float:
    """The percentage of all lines that were reached."""
    return 100.0 * sum(f[0] for f in files.values()) / max(sum(f[1] for f in files.values()), 1)


def main() -> int:
    """Print the least covered files and the shares, and say whether a share fell below its floor."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", type=Path, help="the folder that the counting native core was built in")
    asked = parser.parse_args()
    floors = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["gigrad"]["coverage"]
    failed = 0
    for language, files in (("python", python_lines()), ("cpp", native_lines(asked.build))):
        for name, (reached, lines) in sorted(files.items(), key=lambda f: f[1][0] - f[1][1])[:10]:
            print(f"{lines - reached:5} of {lines:5} lines not reached  {name}")
        reached_share, floor = share(files), floors[language]
        below = reached_share < floor
        failed += below
        print(f"{language}: {reached_share:.2f} % of lines, at least {floor} %{': TOO LOW' if below else ''}")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
