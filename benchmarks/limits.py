"""What the engine's constants of speed and its special paths gain: the time at half, at twice, and without them.

    python limits.py [--quick]

Every constant of the section "Speed" of `engine/limits.py` that a workload depends on is set to other values in one
process, all values in turns; the least processor time of several repeats counts, on one thread. A ratio above 1 means
that the value in the first column is slower than the one that is used. A special path is worth its lines where the
time without it is more than 1.3 times the time with it. Results go to results/limits.md.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
import workloads
from mixed import net
from run import HERE, machine, options_on_one_thread
from sklearn.ensemble import ExtraTreesClassifier
from torch import nn

import gigrad as gig
from gigrad.engine import limits
from gigrad.engine.mixed import attribution

OFF = 1 << 40  # a limit that nothing reaches
KEEP = "_keep_freed_memory"

Work = Callable[[], Any]
Make = Callable[[], Work]
"""Makes a new graph: what the engine keeps with a graph depends on its constants."""


def ensemble(kind: str, rows: int, quick: bool) -> Make:
    """ECDF(mean of boosted trees and a net of two layers of 100 units), 100 references."""
    work = workloads.boosted(*((20, 3, rows, 4) if quick else (500, 6, rows, 100)))
    unit = nn.Tanh if kind == "tanh" else nn.ReLU
    part = net(30, [100, 100], [unit, unit])

    def make() -> Work:
        mean = gig.average([work.model, part])
        f = mean.then(gig.SmoothedECDF.fit(mean.predict(workloads.table(2_000, 30, 0)[0])))
        explainer = gig.Explainer(f, work.reference, n_threads=1)
        return lambda: explainer(work.rows)

    return make


@cache
def paper(tol: float, quick: bool) -> Make:
    """The paper's ensemble: extra trees and a net of three layers of 1,000 units below a net of 1,000, ranked."""
    width, references = (50, 1) if quick else (1000, 4)
    X, y = workloads.table(4_000, 54, 0)
    forest = ExtraTreesClassifier(100, max_depth=10, min_samples_leaf=2, random_state=0).fit(X, y)
    parts = [forest, net(54, [width] * 3, [nn.ReLU, nn.ReLU, nn.Tanh])]
    head = net(2, [width], [nn.Tanh], seed=1)

    def make() -> Work:
        f = gig.stack(parts, head=head)
        f = f.then(gig.SmoothedECDF.fit(f.predict(X[:2_000])))
        explainer = gig.Explainer(f, X[:references], n_threads=1, tol=tol)
        return lambda: explainer(X[references : references + 1])

    return make


def rows(quick: bool) -> list[tuple[str, Any, str, Make]]:
    """What is changed, to which value, on which workload."""
    big, one = paper(1e-6, quick), ensemble("tanh", 1, quick)
    relu, names = ensemble("relu", 1, quick), ("the paper's ensemble", "trees and a tanh net", "trees and a ReLU net")
    out: list[tuple[str, Any, str, Make]] = [
        ("TABLE_WIDTH", OFF, names[0], big),
        ("NARROW_CURVES", 0, names[2], relu),
    ]
    for name, where, work in (
        ("ALONE_NUMBERS", names[0], big),
        ("TRACED_WEIGHTS", names[2], relu),
        ("PANEL_NODES", names[1], one),
        ("NARROW_CURVES", names[2], relu),
        ("BLOCK_NUMBERS", names[1], one),
        ("BATCH_NUMBERS", names[1], one),
    ):
        out += [(name, value, where, work) for value in (getattr(limits, name) // 2, 2 * getattr(limits, name))]
    return out


@contextmanager
def changed(name: str, value: Any) -> Iterator[None]:
    used = getattr(limits, name)
    setattr(limits, name, value)
    try:
        yield
    finally:
        setattr(limits, name, used)


def spent(work: Work) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def ratio(name: str, value: Any, make: Make, repeats: int) -> float:
    """The time at another value over the time at the one that is used."""
    both, works, best = (getattr(limits, name), value), list[Work](), [np.inf, np.inf]
    for one_value in both:
        with changed(name, one_value):
            works.append(make())
            works[-1]()
    for _ in range(repeats):
        for i, (one_value, work) in enumerate(zip(both, works, strict=True)):
            with changed(name, one_value):
                best[i] = min(best[i], spent(work))
    return best[1] / best[0]


def freed_memory(quick: bool) -> float:
    """The same for the memory that glibc is made to keep: decided once in a process, so in processes of their own."""
    best = [np.inf, np.inf]
    for _ in range(1 if quick else 3):
        for i, more in enumerate(([], ["--without"])):
            line = [sys.executable, str(HERE / "limits.py"), "--one", *more, *(["--quick"] if quick else [])]
            best[i] = min(best[i], float(subprocess.run(line, check=True, capture_output=True, text=True).stdout))
    return best[1] / best[0]


def one(quick: bool, without: bool) -> float:
    if without:
        setattr(attribution, KEEP, lambda: None)
    work = paper(1e-6, quick)()
    return min(spent(work) for _ in range(1 if quick else 8))


def write(folder: Path, lines: Sequence[tuple[str, str, str, float]]) -> None:
    facts = machine()
    text = [
        "What other values of the engine's constants cost, and what its special paths gain: the time with the other "
        "value over the time with the one in use. A special path is worth its lines above 1.3.",
        "",
        f"Measured on {facts['date']}, {facts['processor']}, one thread, processor time, load {facts['load']}.",
        "",
        "| constant | used | other value | workload | time |",
        "|---|---|---|---|---|",
        *(
            f"| `{name}` | {getattr(limits, name, 'on')} | {value} | {where} | {times:.2f} |"
            for name, value, where, times in lines
        ),
    ]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "limits.md").write_text("\n".join(text) + "\n")


def main() -> None:
    options = options_on_one_thread(__doc__, {flag: {"action": "store_true"} for flag in ("--one", "--without")})
    torch.set_num_threads(1)
    if options.one:
        print(one(options.quick, options.without))
        return
    lines: list[tuple[str, str, str, float]] = []
    for name, value, where, make in rows(options.quick):
        told = "off" if value in (OFF, -1, 0) else str(value)
        lines.append((name, told, where, ratio(name, value, make, 1 if options.quick else 4)))
        print(*lines[-1], flush=True)
    lines.append((KEEP, "off", "the paper's ensemble", freed_memory(options.quick)))
    print(*lines[-1], flush=True)
    write(options.folder, lines)


if __name__ == "__main__":
    main()
