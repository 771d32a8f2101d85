"""Mixed ensembles: error and time of exact credit for trees and nets joined, beside the parts alone and Captum.

Nets have random weights (He's scale) over standard normal columns, so that anybody can repeat them. Errors are the
largest difference of a credit from a run at tol 1e-10, relative to the largest credit. Times are per (row, reference)
pair on one thread, in one run. `--quick` runs small sizes, so that the benchmarks cannot rot unnoticed.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
import workloads
from captum.attr import IntegratedGradients
from run import HERE, ONE_THREAD, machine
from sklearn.ensemble import ExtraTreesClassifier
from torch import nn

import gigrad as gig


def net(columns: int, widths: list[int], activations: list[type[nn.Module]], seed: int = 0) -> nn.Sequential:
    torch.manual_seed(seed)
    layers: list[nn.Module] = []
    for width, activation in zip(widths, activations, strict=True):
        linear = nn.Linear(columns, width)
        nn.init.kaiming_normal_(linear.weight)
        layers += [linear, activation()]
        columns = width
    return nn.Sequential(*layers, nn.Linear(columns, 1), nn.Sigmoid()).double().eval()


def timed(function: Callable[[], np.ndarray], repeats: int) -> tuple[float, np.ndarray]:
    best, value = np.inf, function()
    for _ in range(repeats):
        began = time.perf_counter()
        value = function()
        best = min(best, time.perf_counter() - began)
    return best, value


def gradients(module: nn.Module, rows: np.ndarray) -> np.ndarray:
    x = torch.tensor(rows, requires_grad=True)
    (found,) = torch.autograd.grad(module(x).sum(), x)
    return found.numpy()


def joined(kind: str, quick: bool) -> list[str]:
    """ECDF(0.5 GBM + 0.5 net), 30 columns, 100 references, against the tree part and 64 gradients of the net."""
    trees, depth, references = (20, 3, 4) if quick else (500, 6, 100)
    work = workloads.boosted(trees, depth, 1, references)
    activation = nn.Tanh if kind == "tanh" else nn.ReLU
    module = net(30, [100, 100], [activation, activation])
    mean = gig.average([work.model, module])
    f = mean.then(gig.SmoothedECDF.fit(mean.predict(workloads.table(2_000, 30, 0)[0])))
    explainer = gig.Explainer(f, work.reference, n_threads=1)
    exact = gig.Explainer(f, work.reference, n_threads=1, tol=1e-10)(work.rows).values
    repeats = 1 if quick else 3
    spent, values = timed(lambda: explainer(work.rows).values, repeats)
    tree = gig.Explainer(gig.import_model(work.model), work.reference, n_threads=1)
    alone, _ = timed(lambda: tree(work.rows).values, repeats)
    points = np.repeat(work.reference, 64, axis=0)
    slope, _ = timed(lambda: gradients(module, points), repeats)
    error = np.abs(values - exact).max() / np.abs(exact).max()
    parts = (alone + slope) / references
    goal = 1e-6 if kind == "tanh" else 1e-8
    return [
        f"ECDF(mean of GBM {trees} x depth {depth} and net 100-100 {kind}), {references} references",
        f"{error:.1e}", f"{goal:.0e}", f"{spent / references * 1e3:.2f} ms", f"{parts * 1e3:.2f} ms",
        f"{spent / references / parts:.1f}",
    ]  # fmt: skip


def paper_size(quick: bool) -> list[list[str]]:
    """The paper's ensemble, and Captum on its net alone."""
    width, pairs = (50, 2) if quick else (1000, 6)
    X, y = workloads.table(4_000, 54, 0)
    forest = ExtraTreesClassifier(100, max_depth=10, min_samples_leaf=2, random_state=0).fit(X, y)
    module = net(54, [width] * 3, [nn.ReLU, nn.ReLU, nn.Tanh])
    head = net(2, [width], [nn.Tanh], seed=1)
    f = gig.stack([forest, module], head=head)
    f = f.then(gig.SmoothedECDF.fit(f.predict(X[:2_000])))
    starts, ends = X[:pairs], X[pairs : 2 * pairs]
    lines = []
    for name, model in (("the whole ensemble, ranked", f), ("its net alone", module)):
        exact = gig.explain_pairs(model, starts, ends, n_threads=1, tol=1e-10).values
        spent, values = timed(lambda m=model: gig.explain_pairs(m, starts, ends, n_threads=1, tol=1e-8).values, 1)
        error = np.abs(values - exact).max() / np.abs(exact).max()
        lines.append([f"gigrad, tol 1e-8: {name}", f"{error:.1e}", f"{spent / pairs * 1e3:.0f} ms"])
    explain = IntegratedGradients(module)
    for steps in (50, 200) if quick else (50, 200, 1000):
        spent, values = timed(
            lambda n=steps: explain.attribute(torch.tensor(ends), torch.tensor(starts), n_steps=n).numpy(), 1
        )
        error = np.abs(values - exact).max() / np.abs(exact).max()
        lines.append(
            [f"Captum, {steps} steps, float64: its net alone", f"{error:.1e}", f"{spent / pairs * 1e3:.0f} ms"]
        )
    return lines


def write(folder: Path, first: list[list[str]], second: list[list[str]]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    facts = machine()
    text = [
        f"Measured on {facts['date']}, {facts['processor']}, one thread; torch {torch.__version__}; random weights.",
        "",
        "| model | largest error | goal | time a pair | its trees + 64 gradients of its net | ratio (goal 2) |",
        "|---|---|---|---|---|---|",
        *(f"| {' | '.join(line)} |" for line in first),
        "",
        "The paper's size: extra trees (100 of depth 10), a net of 1000-1000 ReLU and 1000 tanh units over 54 columns, "
        "joined by a net of 1000 units, ranked.",
        "",
        "| method | largest error | time a pair |",
        "|---|---|---|",
        *(f"| {' | '.join(line)} |" for line in second),
    ]
    (folder / "mixed.md").write_text("\n".join(text) + "\n")
    (folder / "mixed.json").write_text(
        json.dumps({"machine": facts, "joined": first, "paper": second}, indent=1) + "\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--folder", type=Path, default=HERE / "results")
    options = parser.parse_args()
    if os.environ.get("OMP_NUM_THREADS") != "1":  # libraries read these when they load, so begin again with them set
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **ONE_THREAD})
    torch.set_num_threads(1)
    first = []
    for kind in ("tanh", "relu"):
        first.append(joined(kind, options.quick))
        print("  ".join(first[-1]), flush=True)
    second = paper_size(options.quick)
    for line in second:
        print("  ".join(line), flush=True)
    write(options.folder, first, second)


if __name__ == "__main__":
    main()
