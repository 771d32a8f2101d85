"""`make bench`: every claim about speed, as ratios within one run on this machine.

Each competitor runs on one thread and the same rows, best of five, interleaved with gigrad, and is checked for what it
computes: credits must add up to the model's own margins, and those that integrate along the path must equal ours.
`--quick` runs small sizes once, so that the benchmarks cannot rot unnoticed.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import growth
import numpy as np
import pages
import peers
import scale
import workloads
from pages import seconds
from peers import Peer
from workloads import Work

import gigrad as gig

HERE = Path(__file__).resolve().parent
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")


@dataclass(frozen=True)
class Row:
    """One line of the table: a workload, how gigrad does it, and against whom, with the ratio to reach."""

    name: str
    work: Callable[[bool], Work]
    mine: Callable[[Work], Callable[[], np.ndarray]]
    against: list[tuple[Peer, float | None]]


INTERVENTIONAL = Peer("shap, interventional", peers.shap_trees())
PROBABILITY = Peer("shap, interventional, probability", peers.shap_trees("probability"))
PATH_DEPENDENT = Peer("shap, path-dependent (no reference)", peers.shap_trees(reference=False))
TREEIG = Peer("TreeIG", peers.treeig, same_question=True)
UNIFIEDIG = Peer("UnifiedIG", peers.unifiedig, same_question=True)
WOODELF = Peer("WOODELF (which uses one core)", peers.woodelf)


def boosted(rows: int, references: int, binary: int = 0) -> Callable[[bool], Work]:
    return lambda quick: workloads.boosted(*((20, 3, 8, 8) if quick else (500, 6, rows, references)), binary=binary)


ROWS = [
    Row(
        "XGBoost 500 x depth 6, 30 columns, 100 rows x 100 references, margin", boosted(100, 100), peers.gigrad(),
        [(INTERVENTIONAL, 15.0), (TREEIG, 20.0), (UNIFIEDIG, None)],
    ),
    Row(
        "the same, by the portable walk, without vectors", boosted(100, 100), peers.gigrad(simd="portable"),
        [(INTERVENTIONAL, 2.5)],
    ),
    Row("the same, probability", boosted(100, 100), peers.gigrad(None), [(PROBABILITY, 8.0)]),
    Row("the same, margin, half of the columns binary", boosted(100, 100, 15), peers.gigrad(), [(INTERVENTIONAL, 8.0)]),
    Row(
        "LightGBM 1,000 trees of 31 leaves, margin",
        lambda quick: workloads.leafwise(*((20, 7, 8, 8) if quick else (1000, 31, 100, 100))),
        peers.gigrad(), [(INTERVENTIONAL, 15.0)],
    ),
    Row(
        "random forest, 200 trees of depth 20",
        lambda quick: workloads.forest(*((10, 5, 8, 8) if quick else (200, 20, 20, 100))),
        peers.gigrad(), [(INTERVENTIONAL, 10.0)],
    ),
    Row(
        "XGBoost 500 x depth 6, 1,000 rows x 1,000 references, two threads", boosted(1000, 1000),
        peers.gigrad(threads=2), [(WOODELF, 1.0)],
    ),
    Row("XGBoost 500 x depth 6, 1,000 rows x 2 references", boosted(1000, 2), peers.gigrad(), [(INTERVENTIONAL, None)]),
    Row("XGBoost 500 x depth 6, one row x 100 references", boosted(1, 100), peers.gigrad(), [(PATH_DEPENDENT, 2.0)]),
]  # fmt: skip


PAIRS = "XGBoost 500 x depth 6, one reference per row, 10,000 pairs"


@dataclass
class Results:
    lines: list[dict[str, Any]] = field(default_factory=list)

    def add(self, work: str, mine: float, peer: str, theirs: float, goal: float | None, check: str) -> None:
        ratio = theirs / mine
        reached = "" if goal is None else ("yes" if ratio >= goal else "no")
        line = {"work": work, "gigrad": mine, "peer": peer, "time": theirs, "ratio": ratio, "goal": goal}
        self.lines.append({**line, "reached": reached, "check": check})
        aim = "" if goal is None else f", goal {goal:g}x: {reached}"
        print(f"  {peer}: {seconds(theirs)} against {seconds(mine)}, {ratio:.1f}x{aim}   [{check}]", flush=True)


def timed(functions: list[Callable[[], np.ndarray]], repeats: int) -> tuple[list[float], list[np.ndarray]]:
    """Best time of each, taken in turns so that a busy moment of the machine hits all alike, and what each gave.

    The first call is not timed: it may compile.
    """
    best = [np.inf] * len(functions)
    values = [function() for function in functions]
    for _ in range(repeats):
        for i, function in enumerate(functions):
            began = time.perf_counter()
            values[i] = function()
            best[i] = min(best[i], time.perf_counter() - began)
    return best, values


def verdict(peer: Peer, mine: np.ndarray, theirs: np.ndarray) -> str:
    """How far a competitor's sums are from ours and, where it asks the same question, its credits."""
    scale = np.abs(mine).max()
    sums = np.abs(mine.sum(axis=1) - theirs.sum(axis=1)).max() / scale
    text = f"its sums differ by {sums:.0e}"
    if peer.same_question:
        text += f", its credits by {np.abs(mine - theirs).max() / scale:.0e}"
    return text


def compare(row: Row, quick: bool, results: Results) -> None:
    print(row.name, flush=True)
    work = row.work(quick)
    mine = row.mine(work)
    for peer, goal in row.against:
        theirs = peer.prepare(work)
        (own, other), (ours, found) = timed([mine, theirs], 1 if quick else 5 if len(work.rows) <= 100 else 2)
        results.add(row.name, own, peer.name, other, goal, verdict(peer, ours, found))


def one_reference_each(quick: bool, results: Results) -> None:
    """Pairs against the model's own prediction of one row, both on one thread."""
    print(PAIRS, flush=True)
    pairs = 50 if quick else 10_000
    work = workloads.boosted(*((20, 3) if quick else (500, 6)), pairs, pairs)
    graph = gig.import_model(work.model)
    bare = gig.Graph(
        graph.columns, graph.input, graph.score, graph.margin, graph.output_names
    )  # credits alone are timed
    booster = work.model.get_booster()
    booster.set_param({"nthread": 1})
    (own, other), (ours, found) = timed(
        [
            lambda: gig.explain_pairs(bare, work.reference, work.rows, output="margin", n_threads=1).values,
            lambda: booster.inplace_predict(work.rows, predict_type="margin")[:, None],
        ],
        1 if quick else 5,
    )
    rise = found[:, 0] - booster.inplace_predict(work.reference, predict_type="margin")
    gap = np.abs(ours.sum(axis=1) - rise).max() / np.abs(rise).max()
    results.add(PAIRS, own, "the model's own predict", other, 1 / 2.5, f"sums differ by {gap:.0e}")


def start_up() -> dict[str, float]:
    """Import and first explanation of a process, best of six fresh processes."""
    code = (
        "import time; a = time.perf_counter(); import gigrad as gig; b = time.perf_counter(); import numpy as np; "
        "from gigrad.graph import *; s = Input(2); t = Tree(np.array([0, -1, -1]), np.zeros(3), np.array([1, -1, -1]), "
        "np.array([2, -1, -1]), np.zeros(3, bool), np.arange(3.0)); g = assemble(s, [t], np.zeros(1)); "
        "m = Graph((Column('a'), Column('b')), s, g, g, ('y',)); c = time.perf_counter(); "
        "gig.explain(m, np.ones((1, 2)), -np.ones((1, 2))); print(b - a, time.perf_counter() - c)"
    )
    # an installed package has its bytecode; a checkout has it from the first process on, where it may be written
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-c", code]
    runs = [subprocess.run(command, capture_output=True, text=True, check=True, env=environment) for _ in range(6)]
    found = np.array([[float(v) for v in r.stdout.split()] for r in runs]).min(axis=0)
    print(f"import gigrad {found[0]:.3f} s (goal 0.2), first explanation {found[1]:.3f} s (goal 0.3)")
    return {"import": float(found[0]), "first explanation": float(found[1])}


def machine() -> dict[str, str]:
    processor = platform.processor() or "unknown"
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        processor = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), processor)
    wanted = ("numpy", "xgboost", "lightgbm", "scikit-learn", "shap", "treeig", "unifiedig", "woodelf_explainer")
    installed = {d.name.lower().replace("-", "_"): d.version for d in distributions()}
    packages = [name for name in wanted if name.replace("-", "_") in installed]
    facts = {"date": date.today().isoformat(), "processor": processor, "simd": gig.config.simd}
    facts |= {"load": f"{os.getloadavg()[0]:.1f}", "python": platform.python_version()}
    return facts | {"gigrad": gig.__version__} | {name: installed[name.replace("-", "_")] for name in packages}


def again(rows: list[str], folder: Path) -> None:
    """Measures the named rows again and keeps the rest of what was measured last."""
    record = json.loads((folder / "trees.json").read_text())
    results = Results()
    for row in ROWS:
        if row.name in rows:
            compare(row, False, results)
    if PAIRS in rows:
        one_reference_each(False, results)
    fresh = {(line["work"], line["peer"]): line for line in results.lines}
    record["lines"] = [fresh.get((line["work"], line["peer"]), line) for line in record["lines"]]
    record["growth"]["memory"] = growth.memory(False)
    growth.draw(record["growth"], folder)
    pages.write(folder, record, HERE.parent / "README.md")


def options_on_one_thread(
    description: str | None, more: Mapping[str, Mapping[str, Any]] | None = None
) -> argparse.Namespace:
    """The options of a benchmark, in a process whose libraries use one thread: --quick, --folder and those of `more`.

    `more` maps a flag to the keywords of `add_argument`. Libraries read the number of threads when they load, so the
    process replaces itself by one where it is set.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--folder", type=Path, default=HERE / "results")
    for flag, settings in (more or {}).items():
        parser.add_argument(flag, **settings)
    options = parser.parse_args()
    if os.environ.get("OMP_NUM_THREADS") != "1":
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **ONE_THREAD})
    return options


def main() -> None:
    names = [*(row.name for row in ROWS), PAIRS]
    options = options_on_one_thread(__doc__, {"--again": {"action": "append", "default": [], "choices": names}})
    if options.again:
        again(options.again, options.folder)
        return
    facts = machine()
    results = Results()
    for row in ROWS:
        compare(row, options.quick, results)
    one_reference_each(options.quick, results)
    start = start_up()
    record = {
        "machine": facts,
        "lines": results.lines,
        "start": start,
        "growth": growth.measure(options.quick, options.folder),
        "scale": scale.measure(options.quick),
    }
    pages.write(options.folder, record, None if options.quick else HERE.parent / "README.md")


if __name__ == "__main__":
    main()
