"""How cost grows: doubling rows, references or trees should double the time; memory should not grow with references."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import workloads

SIZES = {  # from sizes at which lanes are full and what a call does once no longer counts: smaller ones cost more each
    "rows": [50, 100, 200, 400],
    "references": [128, 256, 512, 1024],
    "trees": [250, 500, 1000, 2000],
    "depth": [3, 4, 6, 8],
}
QUICK = {"rows": [8, 16], "references": [8, 16], "trees": [10, 20], "depth": [2, 3]}


def work_of(kind: str, size: int, quick: bool) -> workloads.Work:
    trees, depth, rows, references = (20, 3, 8, 8) if quick else (250, 6, 100, 100)
    if kind == "rows":
        rows = size
    elif kind == "references":
        references = size
    elif kind == "trees":
        trees = size
    else:
        depth = size
    return workloads.boosted(trees, depth, rows, references)


def measure(quick: bool, folder: Path) -> dict[str, Any]:
    """Times for each size, the slope in a log-log plot, and the peak memory by references; draws them."""
    found: dict[str, Any] = {}
    for kind, sizes in SIZES.items():
        chosen = QUICK[kind] if quick else sizes
        works = [workloads.credits_only(work_of(kind, size, quick)) for size in chosen]
        times = workloads.best_times(works, 1 if quick else 7)
        slope = float(np.polyfit(np.log(chosen), np.log(times), 1)[0])
        found[kind] = {"sizes": chosen, "seconds": times, "slope": slope}
        print(f"growth with {kind}: slope {slope:.2f}", flush=True)
    found["memory"] = memory(quick)
    print("peak memory above the model's, MB, by references:", found["memory"], flush=True)
    draw(found, folder)
    return found


def memory(quick: bool) -> dict[str, float]:
    return {str(m): peak_memory(m) for m in ((10, 20) if quick else (100, 1000))}


def peak_memory(references: int) -> float:
    """MB that explaining 20,000 rows adds to the memory of a fresh process at its peak, which Linux can count anew."""
    code = f"""
import numpy as np
import gigrad as gig
from gigrad.graph import *
rng = np.random.default_rng(0)
a = np.array
def stump(j):
    return Tree(a([j, -1, -1]), np.zeros(3), a([1, -1, -1]), a([2, -1, -1]), np.zeros(3, bool), np.arange(3.0))
s = Input(30)
g = assemble(s, [stump(j % 30) for j in range(60)], np.zeros(1))
m = Graph(tuple(Column(str(j)) for j in range(30)), s, g, g, ("y",))
X, R = rng.normal(size=(20000, 30)), rng.normal(size=({references}, 30))
explainer = gig.Explainer(m, R, n_threads=1)
def memory(name):
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith(name))
explainer(X[:10])
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")
before = memory("VmRSS")
explainer(X)
print((memory("VmHWM") - before) / 1024)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return round(float(done.stdout), 1)


def draw(found: dict[str, Any], folder: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 4, figsize=(14, 3.4), layout="constrained")
    for ax, kind in zip(axes, SIZES, strict=True):
        sizes, times = found[kind]["sizes"], np.array(found[kind]["seconds"]) * 1e3
        ax.loglog(sizes, times, "o-", color="#0072B2")
        ax.set(xlabel=kind, title=f"slope {found[kind]['slope']:.2f}")
        ax.set_xticks(sizes, [str(s) for s in sizes])
        ax.set_yticks(times, [f"{t:.0f}" for t in times])
        ax.minorticks_off()
        ax.grid(alpha=0.3)
    axes[0].set_ylabel("milliseconds, one thread")
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "growth.png", dpi=110)
    plt.close(figure)


def as_text(found: dict[str, Any]) -> list[str]:
    slopes = [f"{kind} {found[kind]['slope']:.2f}" for kind in SIZES]
    memory = ", ".join(f"{m} references {mb:g} MB" for m, mb in found["memory"].items())
    return [
        f"Growth (slope of log time against log size): {', '.join(slopes)}.",
        f"Memory that 20,000 rows add to the peak: {memory}.",
    ]
