"""One line for each run of `make bench`, in results/history.csv: what tells a regression between commits.

Ratios within one run are kept, not times: another machine, or a busy one, changes both sides alike. `python history.py`
appends the run in results/trees.json, unless its commit and date are there, and names what fell by more than a fifth
since the run before.
"""

from __future__ import annotations

import csv
import json
import subprocess
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
FELL = 0.8  # of the run before; best of five on shared machines moves by up to a tenth


def line_of(record: dict[str, Any], commit: str) -> dict[str, str]:
    """Date, commit, machine, and gigrad's lead over each competitor."""
    machine = record["machine"]
    ratios = {f"{x['work']} / {x['peer']}": f"{x['ratio']:.3g}" for x in record["lines"]}
    return {"date": machine["date"], "commit": commit, "version": machine["gigrad"],
            "machine": f"{machine['processor']}, {machine['simd']}", **ratios}  # fmt: skip


def fallen(before: dict[str, str], now: dict[str, str]) -> list[str]:
    """What is slower than in the run before, by more than the noise."""
    if before["machine"] != now["machine"]:
        return []
    both = [name for name in now if " / " in name and before.get(name)]
    return [
        f"{name}: {before[name]}x in {before['commit']}, {now[name]}x now"
        for name in both
        if float(now[name]) < FELL * float(before[name])
    ]


def append(path: Path, now: dict[str, str]) -> list[str]:
    """Add a line, with columns for works that are new; returns what fell."""
    lines = list(csv.DictReader(path.read_text().splitlines())) if path.exists() else []
    if any((x["date"], x["commit"]) == (now["date"], now["commit"]) for x in lines):
        return []
    said = fallen(lines[-1], now) if lines else []
    names = dict.fromkeys(name for x in (*lines, now) for name in x)
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, list(names), lineterminator="\n")
        writer.writeheader()
        writer.writerows([*lines, now])
    return said


if __name__ == "__main__":
    asked = ["git", "log", "-1", "--format=%h", "--", "."]
    commit = subprocess.run(asked, cwd=HERE.parent, capture_output=True, text=True, check=False).stdout.strip()
    record = json.loads((HERE / "results" / "trees.json").read_text())
    print(*append(HERE / "results" / "history.csv", line_of(record, commit)), sep="\n")
