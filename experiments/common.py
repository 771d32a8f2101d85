"""What the experiments share: where results go, claims set beside the paper's, stages that can be resumed."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
DATA = HERE.parents[1] / "shared" / "data"

Arrays = dict[str, np.ndarray]
SECONDS = "_seconds"


@dataclass(frozen=True)
class Claim:
    """One statement of the paper, what came out here, and whether it held."""

    name: str
    paper: str
    ours: str
    holds: bool | None  # None: a figure reported without a claim
    must: bool = True  # whether a run fails where it does not hold; False for a claim of the paper's alone


@dataclass
class Run:
    """One run of one experiment."""

    name: str
    quick: bool
    folder: Path
    rows: int | None = None  # how many of the first rows of the sample to explain, where not all
    claims: list[Claim] = field(default_factory=list)
    tables: dict[str, Any] = field(default_factory=dict)
    began: float = field(default_factory=time.process_time)
    spent: dict[str, float] = field(default_factory=dict)  # stage -> seconds it took, in whichever run it was done
    here: float = 0.0  # seconds of stages done in this very run

    @classmethod
    def from_command_line(cls, name: str, description: str | None) -> Run:
        parser = argparse.ArgumentParser(description=description)
        parser.add_argument("--quick", action="store_true", help="fewer rows, in seconds; results go to results/quick")
        parser.add_argument("--folder", type=Path, help="where results go instead")
        parser.add_argument("--rows", type=int, help="explain only so many of the sample's first rows")
        found = parser.parse_args()
        quick, folder = found.quick, found.folder or (HERE / "results" / "quick" if found.quick else HERE / "results")
        folder.mkdir(parents=True, exist_ok=True)
        return cls(name, quick, folder, found.rows)

    def claim(self, name: str, paper: str, ours: str, holds: bool | None, must: bool = True) -> None:
        mark = {True: "holds", False: "DOES NOT HOLD", None: "reported"}[holds]
        print(f"  {name}: {ours}  [{mark}]")
        self.claims.append(Claim(name, paper, ours, holds, must))

    def table(self, name: str, header: list[str], rows: list[list[str]]) -> None:
        self.tables[name] = {"header": header, "rows": rows}

    def figure(self, figure: Any, name: str) -> None:
        figure.savefig(self.folder / f"{self.name}_{name}.png", dpi=110, bbox_inches="tight")

    def stage(self, name: str, compute: Callable[[], Arrays]) -> Arrays:
        """The arrays of one stage: computed, or read back where an earlier run got this far."""
        path = self.folder / "stages" / f"{self.name}_{name}.npz"
        if path.exists():
            print(f"  {name}: taken from an earlier run (remove stages/{path.name} to do it again)")
            with np.load(path, allow_pickle=False) as found:
                arrays = {key: found[key] for key in found.files}
            self.spent[name] = float(arrays.pop(SECONDS))
            return arrays
        began = time.process_time()
        arrays = compute()
        path.parent.mkdir(exist_ok=True)
        self.spent[name] = time.process_time() - began
        self.here += self.spent[name]
        partial = path.with_name(f"partial_{path.name}")
        np.savez_compressed(partial, **arrays, **{SECONDS: np.array(self.spent[name])})
        partial.rename(path)
        print(f"  {name}: {self.spent[name]:.1f} s", flush=True)
        return arrays

    def seconds(self) -> float:
        """What the whole experiment takes: its stages, whenever they were done, and the rest of this run.

        Processor time of all threads: what others do on the machine meanwhile does not count.
        """
        return sum(self.spent.values()) + time.process_time() - self.began - self.here

    def finish(self) -> None:
        """Write the claims and tables; in quick mode, fail where a claim failed, so that CI sees it."""
        record = {
            "seconds": round(self.seconds(), 1), "claims": [asdict(c) for c in self.claims], "tables": self.tables,
        }  # fmt: skip
        (self.folder / f"{self.name}.json").write_text(json.dumps(record, indent=1) + "\n")
        failed = [c.name for c in self.claims if c.holds is False and c.must]
        if self.quick and failed:
            sys.exit(f"{self.name}: these claims did not hold: {', '.join(failed)}")


def progress(done: int, total: int, what: str, began: float) -> None:
    """A bar that says how far, how fast and how long still; rewritten in place on a terminal, some lines elsewhere."""
    spent = time.perf_counter() - began
    left = spent / max(done, 1) * (total - done)
    bar = "#" * (20 * done // total)
    end = "\r" if sys.stdout.isatty() and done < total else "\n"
    if sys.stdout.isatty() or done == total or done % max(1, total // 5) == 0:
        print(f"  {what} [{bar:<20}] {done}/{total}, {spent:.0f} s, {left:.0f} s left ", end=end, flush=True)


def shares(values: np.ndarray) -> np.ndarray:
    """Each variable's share of the mean |credit|."""
    size = np.abs(values).mean(axis=0)
    return size / size.sum()
